mod trouble;

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use radmm::account::{Event, Ideal};
use radmm::message::Message;
use radmm::private::Law;
use radmm::public::release::Release;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::faulty_storage::Disk;
use super::*;
use crate::key::SecretKey;

fn recorded(iteration: u32) -> Recorded {
    Recorded {
        iteration,
        event: Event::on_grid(Ideal::Additive {
            sensitivity: 0.1,
            law: Law::Gaussian { sigma: 2.0 },
        }),
        answer: Release::on_grid(vec![i64::from(iteration), -7, 1 << 60]),
    }
}

fn signed(from: u32, iteration: u32, key: &SecretKey) -> Signed {
    let release = Release::on_grid(vec![3, i64::from(iteration), i64::from(from)]).unwrap();
    let from = NodeId(from);
    let message = Message {
        from,
        iteration,
        release,
    };
    Signed::new(message, &[7; 32], key)
}

fn open(disk: &Disk) -> Result<Store, StoreError> {
    Store::on(Path::new("state"), disk.clone())
}

fn begun(number: u32) -> Begun {
    Begun {
        number,
        name: "trial".to_owned(),
        sha256: "00".repeat(32),
        party: 0,
        fingerprint: "11".repeat(32),
        rows: 10,
        seeded: false,
        finished: false,
        served: BTreeSet::new(),
        assured: BTreeSet::new(),
    }
}

/// Everything that a store holds of its first study.
#[derive(Debug, PartialEq)]
struct Contents {
    studies: Vec<Begun>,
    charges: Vec<Charge>,
    recorded: Vec<Recorded>,
    heard: Vec<Signed>,
    said: Vec<Signed>,
    secret: [u8; 32],
}

fn contents(store: &Store) -> Result<Contents, StoreError> {
    let (mut heard, mut said) = (Vec::new(), Vec::new());
    store.all_heard(0, |signed| {
        heard.push(signed);
        Ok(())
    })?;
    store.all_said(0, |signed| {
        said.push(signed);
        Ok(())
    })?;
    Ok(Contents {
        studies: store.studies(),
        charges: store.charges()?,
        recorded: store.recorded(0)?,
        heard,
        said,
        secret: store.secret(0)?,
    })
}

/// A store after three steps.
fn three_steps() -> (Disk, Contents) {
    let disk = Disk::default();
    let mut store = open(&disk).unwrap();
    let begun = store.begin(begun).unwrap();
    let key = SecretKey::generate().unwrap();
    for t in 0..3 {
        let step = Step {
            heard: vec![signed(1, t, &key), signed(2, t, &key)],
            charged: vec![recorded(t + 1)],
            said: vec![signed(0, t + 1, &key)],
            finished: t == 2,
        };
        store.keep(&begun, &Fingerprint([5; 32]), &step).unwrap();
    }
    let all = contents(&store).unwrap();
    (disk, all)
}

#[test]
fn what_was_kept_is_there_after_a_kill() {
    let (disk, all) = three_steps();
    let again = contents(&open(&disk.after_kill()).unwrap()).unwrap();
    assert_eq!(again, all);
    assert_eq!(all.recorded, [recorded(1), recorded(2), recorded(3)]);
    assert!(all.studies[0].finished);
    assert_eq!((all.heard.len(), all.said.len()), (6, 3));
}

#[test]
fn a_step_is_there_or_not_whenever_the_power_fails() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let key = SecretKey::generate().unwrap();
    let step = Step {
        heard: vec![signed(1, 3, &key)],
        charged: vec![recorded(4)],
        said: vec![signed(0, 4, &key)],
        finished: false,
    };
    let (mut before, mut after) = (0, 0);
    // It takes a write, and the wait until it is on the disk; before that as much again where no room was made ahead.
    for operations in (0..5).cycle().take(100) {
        let (disk, all) = three_steps();
        let mut bytes = disk.bytes();
        if operations % 2 == 0 {
            bytes.truncate(disk.used() + [0, 100][operations as usize % 4 / 2]);
        }
        let disk = Disk::holding(bytes);
        let mut store = open(&disk).unwrap();
        disk.fail_after(operations);
        let kept = store.keep(&all.studies[0], &Fingerprint([5; 32]), &step);
        drop(store);
        for _ in 0..5 {
            let found = contents(&open(&disk.after_power_failure(&mut rng)).unwrap()).unwrap();
            let whole = found.charges.len() == 4;
            assert_eq!(found.said.len(), if whole { 4 } else { 3 });
            assert_eq!(found.heard.len(), if whole { 7 } else { 6 });
            assert_eq!(found.recorded.len(), found.charges.len());
            // What was reported as kept is kept.
            assert!(whole || kept.is_err());
            *(if whole { &mut after } else { &mut before }) += 1;
        }
    }
    assert!(before > 100 && after > 100, "{before} {after}");
}

#[test]
fn nothing_is_answered_or_said_twice() {
    let (disk, all) = three_steps();
    let mut store = open(&disk.after_kill()).unwrap();
    let key = SecretKey::generate().unwrap();
    let again = Step {
        charged: vec![recorded(2)],
        ..Step::default()
    };
    let said = Step {
        said: vec![signed(0, 2, &key)],
        ..Step::default()
    };
    for step in [again, said] {
        let refused = store.keep(&all.studies[0], &Fingerprint([5; 32]), &step);
        assert!(matches!(refused, Err(StoreError::Corrupt { .. })));
    }
    assert_eq!(contents(&store).unwrap(), all);
}

/// Where records begin, and where the last one ends.
fn places(disk: &Disk) -> Vec<usize> {
    let mut places = Vec::new();
    let store = open(&disk.after_kill()).unwrap();
    let told = store.journal.each(|record| {
        places.push(record.at as usize);
        Ok(())
    });
    told.unwrap();
    places.push(disk.used());
    places
}

#[test]
fn a_record_that_was_removed_emptied_or_put_elsewhere_shows() {
    let (disk, _) = three_steps();
    let places = places(&disk);
    // What was made and begun, and three steps of two sectors at least.
    assert_eq!(places.len(), 6);
    let bytes = disk.bytes();
    let record = |k: usize| bytes[places[k]..places[k + 1]].to_vec();
    let all = |order: &[usize]| order.iter().flat_map(|k| record(*k)).collect::<Vec<u8>>();
    let empty = |k: usize| {
        let mut bytes = bytes.clone();
        bytes[places[k]..places[k + 1]].fill(0);
        bytes
    };
    let changed = [
        all(&[0, 1, 3, 4]),
        all(&[0, 1, 2, 4]),
        all(&[0, 1, 3, 2, 4]),
        all(&[0, 1, 2, 2, 3, 4]),
        all(&[1, 2, 3, 4]),
        empty(0),
        empty(1),
        empty(3),
    ];
    for (case, bytes) in changed.into_iter().enumerate() {
        let error = open(&Disk::holding(bytes)).err().unwrap();
        assert!(
            matches!(error, StoreError::Corrupt { .. }),
            "{case}: {error}"
        );
    }
    // What ends earlier is a journal too: neighbours remember the rest.
    let shorter = open(&Disk::holding(all(&[0, 1, 2, 3]))).unwrap();
    assert_eq!(shorter.charges().unwrap().len(), 2);
}

#[test]
fn a_record_that_was_put_in_anothers_place_shows() {
    let (one, _) = three_steps();
    let (other, _) = three_steps();
    let (places, bytes) = (places(&one), other.bytes());
    let step = places[3]..places[4];
    let mut mixed = one.bytes();
    mixed[step.clone()].copy_from_slice(&bytes[step]);
    let error = open(&Disk::holding(mixed)).err().unwrap();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[test]
fn of_a_record_that_was_cut_off_nothing_is_left_whichever_sectors_are_there() {
    const SECTOR: usize = 512;
    let (disk, all) = three_steps();
    let places = places(&disk);
    let (last, end) = (places[4], places[5]);
    let bytes = disk.bytes();
    let sectors = (end - last) / SECTOR;
    assert!(sectors > 1);
    let key = SecretKey::generate().unwrap();
    for subset in 0..1 << sectors {
        let mut bytes = bytes.clone();
        for missing in (0..sectors).filter(|k| subset & (1 << k) == 0) {
            bytes[last + missing * SECTOR..][..SECTOR].fill(0);
        }
        let disk = Disk::holding(bytes);
        let mut store = open(&disk).unwrap();
        let whole = subset == (1 << sectors) - 1;
        let kept = if whole { 3 } else { 2 };
        assert_eq!(store.charges().unwrap().len(), kept, "{subset:b}");
        // What comes next is not disturbed by what was there.
        let next = Step {
            said: vec![signed(0, 9, &key)],
            ..Step::default()
        };
        store
            .keep(&all.studies[0], &Fingerprint([5; 32]), &next)
            .unwrap();
        let again = open(&disk.after_kill()).unwrap();
        assert_eq!(again.charges().unwrap().len(), kept);
        assert_eq!(again.said(0, 9).unwrap(), Some(signed(0, 9, &key)));
    }
}

#[test]
fn after_a_write_that_failed_nothing_more_is_kept() {
    let (disk, all) = three_steps();
    let disk = disk.after_kill();
    let mut store = open(&disk).unwrap();
    disk.fail_after(1);
    let key = SecretKey::generate().unwrap();
    for (t, healthy) in [(4, false), (5, true)] {
        if healthy {
            disk.heal();
        }
        let step = Step {
            said: vec![signed(0, t, &key)],
            ..Step::default()
        };
        let kept = store.keep(&all.studies[0], &Fingerprint([5; 32]), &step);
        assert!(matches!(kept, Err(StoreError::Disk { .. })));
    }
    drop(store);
    // Whoever opens it again sees what is there.
    let found = contents(&open(&disk.after_kill()).unwrap()).unwrap();
    assert_eq!(found.charges, all.charges);
}

#[test]
fn a_store_is_opened_once_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let first = Store::open(&state).unwrap();
    let error = Store::open(&state).err().unwrap();
    assert!(matches!(error, StoreError::InUse(_)), "{error}");
    assert!(error.to_string().contains("in use by another process"));
    drop(first);
    Store::open(&state).unwrap();
    let missing = Store::existing(&folder.path().join("elsewhere"));
    assert!(matches!(missing, Err(StoreError::Missing(_))));
}

#[test]
fn a_file_that_is_no_store_is_told_apart_from_an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE), "rows, rows, rows\n".repeat(1000)).unwrap();
    let error = Store::open(folder.path()).err().unwrap();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}

#[test]
fn who_was_killed_while_it_made_its_store_makes_it_anew() {
    let folder = tempfile::tempdir().unwrap();
    let unfinished = folder.path().join(UNFINISHED);
    // Its length is there, and nothing else.
    fs::write(&unfinished, [0; 8192]).unwrap();
    let missing = Store::existing(folder.path());
    assert!(matches!(missing, Err(StoreError::Missing(_))));
    let mut store = Store::open(folder.path()).unwrap();
    store.begin(begun).unwrap();
    assert!(!unfinished.exists());
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.studies(), [begun(0)]);
}

#[test]
fn an_account_that_was_emptied_is_not_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(folder.path()).unwrap());
    fs::write(folder.path().join(FILE), []).unwrap();
    let refused = Store::open(folder.path()).err().unwrap().to_string();
    assert!(refused.contains("the state is corrupt"), "{refused}");
}

#[test]
fn rows_have_another_name_in_every_folder() {
    let stores = [Disk::default(), Disk::default()].map(|disk| open(&disk).unwrap());
    let names = stores.each_ref().map(|store| store.fingerprint(&[3; 32]));
    assert_ne!(names[0], names[1]);
    assert_eq!(names[0], stores[0].fingerprint(&[3; 32]));
    assert_ne!(names[0], stores[0].fingerprint(&[4; 32]));
}

#[test]
fn every_study_and_every_folder_has_a_secret_of_its_own() {
    let disks = [Disk::default(), Disk::default()];
    let mut stores = disks.each_ref().map(|disk| open(disk).unwrap());
    let mut secrets = Vec::new();
    for store in &mut stores {
        for number in 0..2 {
            assert_eq!(store.begin(begun).unwrap().number, number);
            secrets.push(store.secret(number).unwrap());
        }
    }
    for (k, secret) in secrets.iter().enumerate() {
        assert_ne!(*secret, [0; 32]);
        assert!(
            !secrets[..k].contains(secret),
            "secret {k} is another one's"
        );
    }
    // Whoever comes back finds his own.
    let again = open(&disks[0].after_kill()).unwrap();
    assert_eq!(again.secret(0).unwrap(), secrets[0]);
    assert_eq!(again.secret(1).unwrap(), secrets[1]);
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_what_the_noise_comes_from() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let parent = tempfile::tempdir().unwrap();
    // A folder of its own is shut.
    let own = parent.path().join("own");
    drop(Store::open(&own).unwrap());
    assert_eq!(mode(&own), 0o700);
    assert_eq!(mode(&own.join(FILE)), 0o600);
    // One that was there is somebody's: it stays as it is, and the file is shut.
    let theirs = parent.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o755)).unwrap();
    drop(Store::open(&theirs).unwrap());
    assert_eq!(mode(&theirs), 0o755);
    assert_eq!(mode(&theirs.join(FILE)), 0o600);
    // A copy that came back with other rights loses them.
    fs::set_permissions(theirs.join(FILE), fs::Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(&theirs).unwrap());
    assert_eq!(mode(&theirs.join(FILE)), 0o600);
}

#[test]
fn no_study_takes_the_room_of_anothers_evidence_and_proof_always_has_some() {
    let mut store = open(&Disk::default()).unwrap();
    store.begin(begun).unwrap();
    store.begin(begun).unwrap();
    let words = |what: &str| Evidence {
        from: 1,
        what: what.to_owned(),
        frames: vec!["00".to_owned()],
    };
    for _ in 0..=MOST_EVIDENCE {
        store.keep_evidence(0, &words("noise")).unwrap();
    }
    assert_eq!(store.evidence(0).unwrap().len(), MOST_EVIDENCE);
    store.keep_proof(0, &words("two values")).unwrap();
    assert_eq!(
        store.evidence(0).unwrap().last(),
        Some(&words("two values"))
    );
    store.keep_evidence(1, &words("later")).unwrap();
    assert_eq!(store.evidence(1).unwrap(), [words("later")]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damage_anywhere_is_found(at in any::<usize>(), with in 1u8..) {
        let (disk, _) = three_steps();
        for length in [disk.used(), disk.bytes().len()] {
            let disk = disk.after_kill();
            disk.damage(at % length, with);
            let found = open(&disk);
            let corrupt = matches!(found, Err(StoreError::Corrupt { .. } | StoreError::Format { .. }));
            prop_assert!(corrupt);
        }
    }
}
