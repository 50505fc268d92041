//! Copies of a state folder, backups, adoption, and witnesses.

use tempfile::TempDir;

use super::*;
use crate::setup::SetupError;

const ROWS: RowFingerprint = RowFingerprint([5; 32]);

fn charge(iteration: u32) -> PendingStep {
    PendingStep {
        charged: vec![recorded(iteration)],
        ..PendingStep::default()
    }
}

/// Makes answers up to an iteration.
fn answer(store: &mut Store, until: u32) {
    let study = store.studies().pop().unwrap();
    let last = store.charges().unwrap().len() as u32;
    for t in last + 1..=until {
        store.append_step(&study, &ROWS, &charge(t)).unwrap();
    }
}

/// Returns a folder with a state that has so many answers in `state`.
fn home(answers: u32) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("state")).unwrap();
    store.begin_study(study_record).unwrap();
    answer(&mut store, answers);
    folder
}

/// Copies the files of a state folder into new ones.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for name in [JOURNAL_FILE, SECRETS_FILE] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// Writes the bytes of a copy into the files of a folder, as a file system does that goes back to a snapshot.
fn roll_back(folder: &Path, copy: &Path) {
    for name in [JOURNAL_FILE, SECRETS_FILE] {
        fs::write(folder.join(name), fs::read(copy.join(name)).unwrap()).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_copy_is_refused_until_it_is_adopted() {
    let folder = home(3);
    let (state, other) = (folder.path().join("state"), folder.path().join("other"));
    copy(&state, &other);
    let error = Store::open(&other).err().unwrap();
    assert!(matches!(error, StoreError::Elsewhere(_)), "{error}");
    let remedy = format!("radmm state adopt --state {}", other.display());
    assert!(error.to_string().contains(&remedy), "{error}");
    // It can be read, and the state at home goes on.
    assert_eq!(
        Store::open_read_only(&other)
            .unwrap()
            .charges()
            .unwrap()
            .len(),
        3
    );
    answer(&mut Store::open(&state).unwrap(), 4);

    let adoption = Adoption::examine(&other, None).unwrap();
    assert_eq!((adoption.is_home(), adoption.incomplete()), (false, None));
    adoption.complete().unwrap();
    let mut store = Store::open(&other).unwrap();
    // It has everything that it needs to go on.
    store.noise_secret(0).unwrap();
    answer(&mut store, 4);
    drop(store);
    assert!(Adoption::examine(&other, None).unwrap().is_home());
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_renamed_lives_where_it_did() {
    let folder = home(1);
    let other = folder.path().join("other");
    fs::rename(folder.path().join("state"), &other).unwrap();
    answer(&mut Store::open(&other).unwrap(), 2);
}

#[test]
fn a_state_of_another_machine_is_refused() {
    let folder = home(1);
    let state = folder.path().join("state");
    let mut store = Store::open(&state).unwrap();
    let inode = store.journal.inode().unwrap().unwrap();
    let there = Location::new(&store.index.salt, Some("another machine"), inode);
    store
        .append(LOCATION, &there.to_bytes(), Entry::Location(there))
        .unwrap();
    let is_known = Location::here(&[0; 32], 1) != Location::new(&[0; 32], None, 1);
    drop(store);
    match Store::open(&state) {
        Err(StoreError::Elsewhere(_)) => assert!(is_known),
        Err(error) => panic!("{error}"),
        // A machine without an id.
        Ok(_) => assert!(!is_known),
    }
}

#[cfg(unix)]
#[test]
fn a_backup_is_made_beside_a_running_party_and_is_no_state_to_go_on_from() {
    let folder = home(3);
    let backup = folder.path().join("backup");
    let mut running = Store::open(&folder.path().join("state")).unwrap();
    let reader = Store::open_read_only(&folder.path().join("state")).unwrap();
    answer(&mut running, 5);
    reader.back_up(&backup).unwrap();
    let names: Vec<_> = fs::read_dir(&backup)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, [JOURNAL_FILE]);
    // What it had when it was opened, and a whole journal.
    assert_eq!(
        Store::open_read_only(&backup)
            .unwrap()
            .charges()
            .unwrap()
            .len(),
        3
    );
    assert!(matches!(
        Store::open(&backup),
        Err(StoreError::Elsewhere(_))
    ));
    // It does not overwrite one that is there.
    assert!(matches!(
        reader.back_up(&backup),
        Err(StoreError::Folder { .. })
    ));

    // If the state is gone for good, the account goes on, and its unfinished study does not.
    let adoption = Adoption::examine(&backup, None).unwrap();
    let reason = adoption.incomplete().unwrap();
    assert!(
        reason.contains("the secret of the noise is missing"),
        "{reason}"
    );
    adoption.complete().unwrap();
    let mut store = Store::open(&backup).unwrap();
    assert!(matches!(
        store.noise_secret(0),
        Err(StoreError::SecretErased(_))
    ));
    let next = store.begin_study(study_record).unwrap();
    store.noise_secret(next.number).unwrap();
}

#[cfg(unix)]
#[test]
fn a_folder_that_was_proved_to_be_an_old_copy_stays_refused() {
    let folder = home(2);
    let state = folder.path().join("state");
    Store::open(&state)
        .unwrap()
        .append_forgotten(0, "birch", 7)
        .unwrap();
    for _ in 0..2 {
        let error = Store::open(&state).err().unwrap();
        let text = error.to_string();
        assert!(
            matches!(error, StoreError::Forgotten { iteration: 7, .. }),
            "{text}"
        );
        assert!(text.contains("birch has shown that it received"), "{text}");
    }
    let adoption = Adoption::examine(&state, None).unwrap();
    assert!(adoption.is_home());
    assert!(adoption.incomplete().unwrap().contains("birch"));
    adoption.complete().unwrap();
    // Other studies may go on with the account, and this one never.
    let mut store = Store::open(&state).unwrap();
    assert_eq!(store.forgotten(0), Some(("birch", 7)));
    assert!(store.noise_secret(0).is_err());
    // Another proof refuses it again.
    store.append_forgotten(0, "rowan", 8).unwrap();
    drop(store);
    assert!(matches!(
        Store::open(&state),
        Err(StoreError::Forgotten { .. })
    ));
}

#[test]
fn a_journal_older_than_its_secrets_is_adopted_without_its_unfinished_studies() {
    let folder = home(2);
    let (state, old) = (folder.path().join("state"), folder.path().join("old"));
    copy(&state, &old);
    let mut store = Store::open(&state).unwrap();
    answer(&mut store, 4);
    store.begin_study(study_record).unwrap();
    answer(&mut store, 5);
    drop(store);
    let bytes = fs::read(old.join(JOURNAL_FILE)).unwrap();
    fs::write(state.join(JOURNAL_FILE), bytes).unwrap();
    let refused = Store::open(&state);
    assert!(matches!(refused, Err(StoreError::RolledBack { .. })));
    Adoption::examine(&state, None).unwrap().complete().unwrap();
    let mut store = Store::open(&state).unwrap();
    assert_eq!(store.charges().unwrap().len(), 2);
    assert!(matches!(
        store.noise_secret(0),
        Err(StoreError::SecretErased(_))
    ));
}

#[test]
fn studies_that_an_adoption_ends_are_charged_for_all_that_they_planned() {
    let folder = tempfile::tempdir().unwrap();
    let (state, old) = (folder.path().join("state"), folder.path().join("old"));
    let mut store = Store::open(&state).unwrap();
    let planned = |iterations: &[u32]| {
        let charges: Vec<_> = iterations
            .iter()
            .map(|t| (*t, recorded(*t).event))
            .collect();
        PlannedCharges::of(&charges)
    };
    let over = PendingStep {
        finished: true,
        ..charge(1)
    };
    let plans = [
        (&[1, 3][..], over),
        (&[1, 3, 5], charge(1)),
        (&[2, 4], charge(2)),
    ];
    for (plan, step) in plans {
        let study = store.begin_study(|number| StudyRecord {
            plan: planned(plan),
            ..study_record(number)
        });
        store.append_step(&study.unwrap(), &ROWS, &step).unwrap();
    }
    drop(store);
    copy(&state, &old);
    fs::remove_file(old.join(SECRETS_FILE)).unwrap();
    let charged = |store: &Store| {
        let charges = store.charges().unwrap().into_iter();
        charges
            .map(|one| (one.study, one.iteration))
            .collect::<Vec<_>>()
    };
    // Twice, as after a kill before the folder had its new place.
    for _ in 0..2 {
        Adoption::examine(&old, None).unwrap().complete().unwrap();
        let mut store = Store::open(&old).unwrap();
        let asked = [(0, 1), (1, 1), (2, 2)];
        assert_eq!(
            charged(&store),
            [&asked[..], &[(1, 3), (1, 5), (2, 4)]].concat()
        );
        assert_eq!(
            store.charges().unwrap()[3].rows.to_string(),
            "11".repeat(32)
        );
        let ended = store.studies().into_iter().map(|study| study.ended);
        assert_eq!(ended.collect::<Vec<_>>(), [false, true, true]);
        let study = store.studies().remove(2);
        assert!(store.append_step(&study, &ROWS, &charge(6)).is_err());
        drop(store);
        fs::remove_file(old.join(SECRETS_FILE)).unwrap();
    }
    // Nothing is missing in a copy of the last state: its studies go on.
    let whole = folder.path().join("whole");
    copy(&state, &whole);
    Adoption::examine(&whole, None).unwrap().complete().unwrap();
    assert_eq!(charged(&Store::open(&whole).unwrap()).len(), 3);
}

#[test]
fn a_fit_that_an_adoption_ended_counts_in_full_and_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (state, backup) = (folder.path().join("state"), folder.path().join("backup"));
    let key = SecretKey::generate().unwrap().to_pem();
    let fit = |folder: &Path, limit| ratchet::fit(Store::open(folder).unwrap(), &key, limit);
    let mut first = fit(&state, 1.02).unwrap();
    assert!(first.advance_alone().unwrap() && first.advance_alone().unwrap());
    let asked = first.spent_on_rows()[0].epsilon;
    // The account as it was then, while the fit went on.
    let reader = Store::open_read_only(&state).unwrap();
    reader.back_up(&backup).unwrap();
    while first.advance_alone().unwrap() {}
    let spent = first.spent_on_rows()[0].epsilon;
    assert!(spent > 1.5 * asked);
    drop(first);
    let adoption = Adoption::examine(&backup, None).unwrap();
    assert!(adoption.incomplete().is_some());
    adoption.complete().unwrap();
    // What the first fit has spent leaves no room for a second one under the limit of one fit.
    let refused = fit(&backup, 1.02).err().unwrap();
    assert!(
        matches!(&refused, SetupError::BeyondLimit { spent: counted, .. } if *counted == spent),
        "{refused}"
    );
    let mut second = fit(&backup, 3.0).unwrap();
    assert!(second.spent_on_rows()[0].epsilon >= spent);
    while second.advance_alone().unwrap() {}
    assert!(second.is_finished());
    let names = second
        .store()
        .0
        .studies()
        .into_iter()
        .map(|study| study.name);
    assert_eq!(names.collect::<Vec<_>>(), ["fit 1", "fit 2"]);
}

#[test]
fn a_witness_refuses_an_older_state() {
    let folder = home(2);
    let (state, old) = (folder.path().join("state"), folder.path().join("old"));
    let witness = folder.path().join("disk/witness");
    fs::create_dir(folder.path().join("disk")).unwrap();
    let with_witness = || Store::open(&state).unwrap().with_witness(&witness);
    answer(&mut with_witness().unwrap(), 3);
    copy(&state, &old);
    answer(&mut with_witness().unwrap(), 4);
    roll_back(&state, &old);
    // Without the witness nothing tells: journal and secrets are of one time, in their own files.
    Store::open(&state).unwrap();
    let error = with_witness().err().unwrap();
    assert!(matches!(error, StoreError::WitnessAhead { .. }), "{error}");
    let reader = Store::open_read_only(&state).unwrap();
    assert!(reader.check_named_witness(Some(&witness)).is_err());
    // Nor may the witness be left out, deleted or damaged.
    let unnamed = reader.check_named_witness(None);
    assert!(matches!(unnamed, Err(StoreError::WitnessUnnamed(_))));
    let bytes = fs::read(&witness).unwrap();
    for damaged in [vec![], vec![0; 512], bytes[..511].to_vec()] {
        fs::write(&witness, damaged).unwrap();
        assert!(matches!(with_witness(), Err(StoreError::WitnessMissing(_))));
    }
    fs::remove_file(&witness).unwrap();
    assert!(matches!(with_witness(), Err(StoreError::WitnessMissing(_))));
}

#[test]
fn a_state_that_its_witness_does_not_confirm_is_adopted_without_its_unfinished_studies() {
    for lost in [false, true] {
        let folder = home(2);
        let (state, old) = (folder.path().join("state"), folder.path().join("old"));
        let witness = folder.path().join("disk/witness");
        fs::create_dir(folder.path().join("disk")).unwrap();
        let with_witness = || Store::open(&state).unwrap().with_witness(&witness);
        answer(&mut with_witness().unwrap(), 3);
        copy(&state, &old);
        let named = Adoption::examine(&state, Some(&witness)).unwrap();
        assert_eq!(named.incomplete(), None);
        assert!(
            Adoption::examine(&state, None)
                .unwrap()
                .incomplete()
                .is_some()
        );
        answer(&mut with_witness().unwrap(), 4);
        roll_back(&state, &old);
        if lost {
            fs::remove_file(&witness).unwrap();
        }
        let adoption = Adoption::examine(&state, Some(&witness)).unwrap();
        assert!(adoption.incomplete().unwrap().contains("witness"));
        adoption.complete().unwrap();
        // Another witness may begin, and nothing is answered again.
        let _ = fs::remove_file(&witness);
        let mut store = with_witness().unwrap();
        assert!(matches!(
            store.noise_secret(0),
            Err(StoreError::SecretErased(_))
        ));
        drop(store);
        with_witness().unwrap();
    }
}

#[test]
fn a_state_that_advances_while_it_is_checked_is_not_taken_for_an_old_one() {
    let folder = home(2);
    let state = folder.path().join("state");
    let witness = folder.path().join("witness");
    let running = Store::open(&state).unwrap();
    let mut running = Some(running.with_witness(&witness).unwrap());
    let mut answers = 2;
    // A step before the journal is read, and one after it.
    let checked = Store::checked(&state, Some(&witness), || {
        let mut step = || {
            answers += 1;
            answer(running.as_mut().unwrap(), answers);
        };
        step();
        let store = Store::open_read_only(&state);
        step();
        store
    });
    assert_eq!(checked.unwrap().charges().unwrap().len(), 3);
    // A study that begins, and has an answer.
    let checked = Store::checked(&state, Some(&witness), || {
        let running = running.as_mut().unwrap();
        if running.studies().len() == 1 {
            let second = running.begin_study(study_record).unwrap();
            running.append_step(&second, &ROWS, &charge(1)).unwrap();
        }
        Store::open_read_only(&state)
    });
    assert_eq!(checked.unwrap().studies().len(), 2);
    // An old state is old whenever it is looked at.
    let old = folder.path().join("old");
    copy(&state, &old);
    let study = study_record(1);
    let step = running
        .as_mut()
        .unwrap()
        .append_step(&study, &ROWS, &charge(2));
    step.unwrap();
    drop(running.take());
    roll_back(&state, &old);
    let checked = Store::open_checked(&state, Some(&witness));
    assert!(matches!(checked, Err(StoreError::WitnessAhead { .. })));
}

#[test]
fn a_witness_that_is_created_while_its_state_is_checked_is_found() {
    let folder = home(2);
    let state = folder.path().join("state");
    let witness = folder.path().join("witness");
    let mut starting = Some(Store::open(&state).unwrap());
    let mut running = None;
    let checked = Store::checked(&state, Some(&witness), || {
        if let Some(starting) = starting.take() {
            running = Some(starting.with_witness(&witness)?);
        }
        Store::open_read_only(&state)
    });
    checked.unwrap();
    // One that is written over at this moment.
    let bytes = fs::read(&witness).unwrap();
    fs::write(&witness, &bytes[..200]).unwrap();
    let checked = Store::checked(&state, Some(&witness), || {
        let store = Store::open_read_only(&state);
        fs::write(&witness, &bytes).unwrap();
        store
    });
    checked.unwrap();
    fs::remove_file(&witness).unwrap();
    let checked = Store::open_checked(&state, Some(&witness));
    assert!(matches!(checked, Err(StoreError::WitnessMissing(_))));
}

#[test]
fn a_check_refuses_the_secrets_that_a_start_refuses() {
    let folder = home(2);
    let (state, old) = (folder.path().join("state"), folder.path().join("old"));
    copy(&state, &old);
    answer(&mut Store::open(&state).unwrap(), 3);
    let journal = fs::read(old.join(JOURNAL_FILE)).unwrap();
    fs::write(state.join(JOURNAL_FILE), journal).unwrap();
    let check = || Store::open_checked(&state, None);
    assert!(matches!(check(), Err(StoreError::RolledBack { .. })));
    fs::remove_file(state.join(SECRETS_FILE)).unwrap();
    assert!(matches!(check(), Err(StoreError::SecretsMissing(_))));
    fs::copy(old.join(SECRETS_FILE), state.join(SECRETS_FILE)).unwrap();
    check().unwrap();
}

#[test]
fn a_state_in_use_is_not_examined_for_adoption() {
    let folder = home(2);
    let state = folder.path().join("state");
    let running = Store::open(&state).unwrap();
    let examined = Adoption::examine(&state, None);
    assert!(matches!(examined, Err(StoreError::InUse(_))));
    drop(running);
    let bytes = fs::read(state.join(JOURNAL_FILE)).unwrap();
    Adoption::examine(&state, None).unwrap();
    assert_eq!(fs::read(state.join(JOURNAL_FILE)).unwrap(), bytes);
}

#[test]
fn the_names_beside_a_file_without_a_folder_are_made_durable() {
    let folder = Path::new("witness").parent().unwrap();
    sync_names(folder).unwrap();
}

#[test]
fn a_witness_may_be_behind_and_not_of_another_journal() {
    let folder = home(2);
    let state = folder.path().join("state");
    let witness = folder.path().join("witness");
    let mut store = Store::open(&state).unwrap().with_witness(&witness).unwrap();
    let behind = fs::read(&witness).unwrap();
    answer(&mut store, 3);
    assert_ne!(fs::read(&witness).unwrap(), behind);
    drop(store);
    // A process that is killed between record and witness.
    fs::write(&witness, &behind).unwrap();
    let store = Store::open(&state).unwrap().with_witness(&witness).unwrap();
    drop(store);
    assert_ne!(fs::read(&witness).unwrap(), behind);
    let another = home(5);
    let another = Store::open(&another.path().join("state")).unwrap();
    let refused = another.with_witness(&witness);
    assert!(matches!(refused, Err(StoreError::WitnessAhead { .. })));
}

#[cfg(unix)]
#[test]
fn a_witness_that_is_taken_away_ends_the_use_of_its_store() {
    let folder = home(2);
    let witness = folder.path().join("witness");
    let mut store = Store::open(&folder.path().join("state"))
        .unwrap()
        .with_witness(&witness)
        .unwrap();
    fs::remove_file(&witness).unwrap();
    let study = store.studies().remove(0);
    let appended = store.append_step(&study, &ROWS, &charge(3));
    assert!(matches!(appended, Err(StoreError::Replaced(path)) if path == witness));
}
