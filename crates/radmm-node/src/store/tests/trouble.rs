//! What a store shows after damage, and after power failures, kills and failed writes one after the other.

use rand::{Rng, RngExt};

use super::*;

/// A charge whose answer has so many columns, all of them zero but the first.
fn charge(iteration: u32, columns: usize, first: i64) -> Step {
    let mut units = vec![0; columns];
    units[0] = first;
    let event = Event::on_grid(Ideal::Additive {
        sensitivity: 0.1,
        law: Law::Gaussian { sigma: 2.0 },
    });
    Step {
        charged: vec![Recorded {
            iteration,
            event,
            answer: Release::on_grid(units),
        }],
        ..Step::default()
    }
}

fn charges(store: &Store) -> Vec<u32> {
    let charges = store.charges().unwrap();
    charges.iter().map(|charge| charge.iteration).collect()
}

#[test]
fn a_flipped_byte_in_a_last_record_with_a_sector_of_zeros_shows() {
    let disk = Disk::default();
    let mut store = open(&disk).unwrap();
    let begun = store.begin(begun).unwrap();
    store
        .keep(&begun, &Fingerprint([5; 32]), &charge(1, 300, 7))
        .unwrap();
    drop(store);
    let last = {
        let store = open(&disk.after_kill()).unwrap();
        let mut last = 0;
        store
            .journal
            .each(|record| {
                last = record.at as usize;
                Ok(())
            })
            .unwrap();
        last
    };
    let mut lost = Vec::new();
    for at in last..disk.used() {
        let disk = disk.after_kill();
        disk.damage(at, 1);
        if let Ok(store) = open(&disk) {
            lost.push((at - last, charges(&store)));
        }
    }
    let first = lost.first();
    assert!(lost.is_empty(), "{} bytes; first {first:?}", lost.len());
}

#[test]
fn what_an_opened_store_shows_is_there_after_a_power_failure() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let disk = Disk::default();
    let mut store = open(&disk).unwrap();
    let begun = store.begin(begun).unwrap();
    // The record is written, and the process ends before it is on the disk.
    disk.fail_after(1);
    store
        .keep(&begun, &Fingerprint([5; 32]), &charge(1, 3, 7))
        .unwrap_err();
    drop(store);
    disk.heal();
    // The next process finds it where the operating system has it, and goes by it.
    let shown = charges(&open(&disk).unwrap());
    for _ in 0..50 {
        let after = charges(&open(&disk.after_power_failure(&mut rng)).unwrap());
        assert_eq!(after, shown);
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_an_account_that_is_not_mounted_is_not_replaced_by_an_empty_account() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join(FILE);
    std::os::unix::fs::symlink(folder.path().join("volume/state.journal"), &link).unwrap();
    let opened = Store::open(folder.path());
    assert!(opened.is_err(), "a new account was begun");
}

#[test]
fn what_is_refused_is_not_written() {
    let words = Evidence {
        from: 1,
        what: "noise".to_owned(),
        frames: Vec::new(),
    };
    type Wrong<'a> = Box<dyn Fn(&mut Store) -> Result<(), StoreError> + 'a>;
    let wrongs: [(&str, Wrong<'_>); 3] = [
        ("begin", Box::new(|s| s.begin(|_| begun(9)).map(|_| ()))),
        ("keep_ended", Box::new(|s| s.keep_ended(&begun(9)))),
        ("keep_proof", Box::new(|s| s.keep_proof(9, &words))),
    ];
    let mut unreadable = Vec::new();
    for (name, wrong) in wrongs {
        let disk = Disk::default();
        let mut store = open(&disk).unwrap();
        store.begin(begun).unwrap();
        wrong(&mut store).unwrap_err();
        if open(&disk.after_kill()).is_err() {
            unreadable.push(name);
        }
    }
    assert!(unreadable.is_empty(), "{unreadable:?}");
}

#[test]
fn what_changes_a_study_changes_nothing_but_who_has_what() {
    let disk = Disk::default();
    let mut store = open(&disk).unwrap();
    let first = store.begin(begun).unwrap();
    let last = Step {
        finished: true,
        ..Step::default()
    };
    store.keep(&first, &Fingerprint([5; 32]), &last).unwrap();
    // An old copy, from before the end.
    let _ = store.keep_ended(&Begun {
        seeded: true,
        fingerprint: "22".repeat(32),
        ..first
    });
    let served = |parties: &[u32]| Begun {
        served: parties.iter().copied().collect(),
        ..begun(0)
    };
    store.keep_ended(&served(&[1, 4])).unwrap();
    store.keep_ended(&served(&[2])).unwrap();
    assert_eq!(store.studies()[0].served, BTreeSet::from([1, 2, 4]));
    let found = store.studies().remove(0);
    assert!(found.finished, "that it has finished is forgotten");
    assert!(!found.seeded && found.fingerprint == "11".repeat(32));
}

/// Power failures, kills and full disks one after the other, in the middle of repairs too.
#[test]
fn whatever_happens_to_a_repair_every_state_is_one_that_was() {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let (mut torn, mut refused) = (0, 0);
    for _ in 0..150 {
        let mut disk = Disk::default();
        let mut kept = 0;
        let mut next = 1;
        {
            let mut store = open(&disk).unwrap();
            store.begin(begun).unwrap();
        }
        for _ in 0..12 {
            disk = fresh(&disk, &mut rng);
            if rng.random_bool(0.3) {
                disk.fail_after(rng.random_range(0..2));
            }
            let mut store = match open(&disk) {
                Ok(store) => store,
                Err(StoreError::Disk { .. }) => {
                    torn += 1;
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let found = charges(&store);
            assert!(found.len() == kept || found.len() == kept + 1, "{found:?}");
            kept = found.len();
            next = found.last().map_or(next, |last| last + 1);
            let study = store.studies().remove(0);
            disk.heal();
            if rng.random_bool(0.8) {
                disk.fail_after(rng.random_range(0..4));
            }
            for _ in 0..3 {
                let columns = rng.random_range(1..600);
                let mut step = charge(next, columns, 9);
                // Some sectors are zeros in themselves, and some are not.
                let units = (0..columns).map(|k| i64::from(k / 64 % 3 != 1) * 77);
                step.charged[0].answer = Release::on_grid(units.collect());
                match store.keep(&study, &Fingerprint([5; 32]), &step) {
                    Ok(()) => {
                        kept += 1;
                        next += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(torn > 20 && refused > 100, "{torn} {refused}");
}

fn fresh(disk: &Disk, rng: &mut impl Rng) -> Disk {
    match rng.random_bool(0.3) {
        true => disk.after_kill(),
        false => disk.after_power_failure(rng),
    }
}

#[test]
fn whatever_a_file_holds_opening_it_is_an_answer_and_no_panic() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let disk = Disk::default();
    let mut store = open(&disk).unwrap();
    let begun = store.begin(begun).unwrap();
    for t in 1..4 {
        store
            .keep(&begun, &Fingerprint([5; 32]), &charge(t, 200, 7))
            .unwrap();
    }
    let used = disk.used();
    let bytes = disk.bytes();
    // Cut anywhere.
    for length in 0..used + 700 {
        let opened = open(&Disk::holding(bytes[..length].to_vec()));
        if let Ok(store) = opened {
            assert!(length == 0 || charges(&store).len() <= 3);
        }
    }
    // Sectors in any order, of any kind.
    for _ in 0..3000 {
        let mut bytes = bytes[..used + 1024].to_vec();
        for _ in 0..rng.random_range(1..4) {
            let sectors = bytes.len() / 512;
            let (a, b) = (rng.random_range(0..sectors), rng.random_range(0..sectors));
            let from = bytes[b * 512..][..512].to_vec();
            bytes[a * 512..][..512].copy_from_slice(&from);
        }
        let _ = open(&Disk::holding(bytes)).map(|store| charges(&store));
    }
}

#[test]
fn room_that_was_made_and_is_not_on_the_disk_yet_does_not_make_a_torn_record_look_damaged() {
    let disk = Disk::default();
    let mut store = open(&disk).unwrap();
    store.begin(begun).unwrap();
    drop(store);
    let mut bytes = disk.bytes();
    bytes.truncate(disk.used());
    let disk = Disk::holding(bytes);
    // Killed after room was made, before the disk has it; started again, and the power fails in the middle of a record.
    let mut step = charge(1, 600, 7);
    step.charged[0].answer = Release::on_grid(vec![77; 600]);
    let mut synced = Vec::new();
    for _ in 0..2 {
        let mut store = open(&disk).unwrap();
        synced.push(disk.is_synced());
        let study = store.studies().remove(0);
        disk.fail_after(1);
        store
            .keep(&study, &Fingerprint([5; 32]), &step)
            .unwrap_err();
        disk.heal();
    }
    // Whoever opens a store makes sure of the file's length.
    assert!(synced[1]);
}

/// A disk with three charges, and where their records begin.
fn three() -> (Disk, Vec<usize>) {
    let disk = Disk::default();
    let mut store = open(&disk).unwrap();
    let begun = store.begin(begun).unwrap();
    for t in 1..4 {
        let mut step = charge(t, 200, 7);
        step.charged[0].answer = Release::on_grid(vec![77; 200]);
        store.keep(&begun, &Fingerprint([5; 32]), &step).unwrap();
    }
    let mut places = Vec::new();
    store
        .journal
        .each(|record| {
            places.push(record.at as usize);
            Ok(())
        })
        .unwrap();
    (disk, places.split_off(2))
}

#[test]
fn records_before_the_last_that_lost_sectors_show() {
    let (disk, places) = three();
    // One page of the disk, in which two records begin and the last one does not end.
    let mut bytes = disk.bytes();
    bytes[places[1]..places[2] + 512].fill(0);
    let found = open(&Disk::holding(bytes)).map(|store| charges(&store));
    assert!(
        matches!(found, Err(StoreError::Corrupt { .. })),
        "charges 2 and 3 were on the disk; found {found:?}"
    );
}

#[test]
fn damage_right_after_the_last_record_shows() {
    let (disk, _) = three();
    for after in [0, 3, 511, 512, 700] {
        let disk = disk.after_kill();
        disk.damage(disk.used() + after, 1);
        assert!(matches!(open(&disk), Err(StoreError::Corrupt { .. })));
    }
}

#[test]
fn a_file_that_ends_in_the_middle_of_a_record_shows() {
    let (disk, places) = three();
    for length in [places[2] + 513, disk.used() - 512, disk.used() - 1] {
        let bytes = disk.bytes()[..length].to_vec();
        let error = open(&Disk::holding(bytes)).err().unwrap();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    }
}

#[test]
fn a_record_of_another_branch_of_the_same_journal_shows() {
    let (disk, places) = three();
    // From the second charge on, another story.
    let bytes = disk.bytes()[..places[1]].to_vec();
    let branch = Disk::holding(bytes);
    let mut store = open(&branch).unwrap();
    let study = store.studies().remove(0);
    for t in 2..4 {
        let mut step = charge(t, 200, 7);
        step.charged[0].answer = Release::on_grid(vec![78; 200]);
        store.keep(&study, &Fingerprint([5; 32]), &step).unwrap();
    }
    let mut mixed = disk.bytes();
    mixed[places[1]..places[2]].copy_from_slice(&branch.bytes()[places[1]..places[2]]);
    let error = open(&Disk::holding(mixed)).err().unwrap();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[test]
fn what_is_damaged_while_a_store_is_open_is_not_shown() {
    let disk = Disk::default();
    let mut store = open(&disk).unwrap();
    let begun = store.begin(begun).unwrap();
    let key = SecretKey::generate().unwrap();
    let step = Step {
        said: vec![signed(0, 1, &key)],
        ..Step::default()
    };
    store.keep(&begun, &Fingerprint([5; 32]), &step).unwrap();
    // The last byte of its signature: it could be read all the same.
    let last = disk.bytes().iter().rposition(|byte| *byte != 0).unwrap();
    disk.damage(last, 0x40);
    let read = store.said(0, 1);
    assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
}

/// Records that are whole and cannot be right.
#[test]
fn what_no_store_writes_is_not_taken_in() {
    let key = SecretKey::generate().unwrap();
    let data = Fingerprint([5; 32]);
    let heard = Step {
        heard: vec![signed(1, 0, &key)],
        ..Step::default()
    };
    let step = |study: u32, step: &Step| (STEP, step.to_bytes(study, data));
    let study = |number: u32| {
        let json = serde_json::to_vec(&begun(number)).unwrap();
        (BEGUN, [vec![1; 32], json].concat())
    };
    let order = |order: f64| (ORDER, order.to_bits().to_le_bytes().to_vec());
    let made = || (MADE, [&FORMAT.to_le_bytes()[..], &[7; 32]].concat());
    let mut other = step(1, &charge(1, 3, 7)).1;
    // The step is of study 0, and its charge of study 1.
    other[..4].fill(0);
    let wrong = [
        vec![step(0, &heard), step(0, &heard)],
        vec![step(0, &charge(1, 3, 7)), step(0, &charge(1, 3, 7))],
        vec![step(9, &heard)],
        vec![study(0)],
        vec![study(5)],
        vec![order(2.0), order(3.0)],
        vec![order(f64::INFINITY)],
        vec![order(f64::NAN)],
        vec![made()],
        vec![(99, vec![])],
        vec![(STEP, vec![1, 2, 3])],
        vec![(STEP, other)],
    ];
    for (case, records) in wrong.into_iter().enumerate() {
        let disk = Disk::default();
        let mut store = open(&disk).unwrap();
        store.begin(begun).unwrap();
        for (kind, body) in records {
            store.journal.add(kind, &body).unwrap();
        }
        let error = open(&disk).err().map(|error| error.to_string());
        assert!(error.is_some_and(|e| e.contains("corrupt")), "{case}");
    }
    // Nor does a journal begin with anything but what makes it one.
    let disk = Disk::default();
    let (kind, body) = study(0);
    Journal::create(Box::new(disk.clone()), kind, &body).unwrap();
    assert!(matches!(open(&disk), Err(StoreError::Corrupt { .. })));
}

#[test]
fn an_order_is_kept_once_and_is_a_number() {
    let disk = Disk::default();
    let mut store = open(&disk).unwrap();
    store.keep_order(f64::INFINITY).unwrap();
    assert_eq!(store.order(7.0), 7.0);
    store.keep_order(5.0).unwrap();
    store.keep_order(6.0).unwrap();
    assert_eq!(open(&disk.after_kill()).unwrap().order(7.0), 5.0);
}
