//! Stores after damage, and after sequences of power failures, kills and failed writes.

use radmm::protocol::query::gram_width;
use rand::{Rng, RngExt};

use super::*;

/// Returns a charge whose answer has so many columns, all of them zero but the first.
fn charge(iteration: u32, columns: usize, first: i64) -> PendingStep {
    let mut units = vec![0; columns];
    units[0] = first;
    let event = PrivacyEvent::on_grid(IdealRelease::Additive {
        sensitivity: 0.1,
        law: NoiseDistribution::Gaussian { sigma: 2.0 },
    });
    PendingStep {
        charged: vec![ChargedAnswer {
            iteration,
            event,
            answer: Release::from_units(units),
        }],
        ..PendingStep::default()
    }
}

fn charges(store: &Store) -> Vec<u32> {
    let charges = store.charges().unwrap();
    charges.iter().map(|charge| charge.iteration).collect()
}

#[test]
fn a_flipped_byte_in_a_last_record_with_a_zero_sector_is_detected() {
    let disk = FaultyDisk::default();
    let mut store = open(&disk).unwrap();
    let study = store.begin_study(study_record).unwrap();
    store
        .append_step(&study, &RowFingerprint([5; 32]), &charge(1, 300, 7))
        .unwrap();
    drop(store);
    let last = {
        let store = open(&disk.after_kill()).unwrap();
        let mut last = 0;
        store
            .journal
            .for_each(|record| {
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
fn a_write_that_fails_within_a_sector_leaves_no_damage() {
    let rows = RowFingerprint([5; 32]);
    for room in (0..2560).step_by(97) {
        let disk = FaultyDisk::default();
        let mut store = open(&disk).unwrap();
        let study = store.begin_study(study_record).unwrap();
        store.append_step(&study, &rows, &charge(1, 3, 7)).unwrap();
        disk.limit(disk.used() + room);
        // Five sectors.
        let refused = store.append_step(&study, &rows, &charge(2, 250, 7));
        assert!(matches!(refused, Err(StoreError::Full(_))), "{room}");
        disk.heal();
        let mut store = open(&disk.after_kill()).unwrap();
        assert_eq!(charges(&store), [1], "{room}");
        store.append_step(&study, &rows, &charge(2, 3, 7)).unwrap();
    }
}

#[test]
fn everything_that_an_opened_store_shows_survives_a_power_failure() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let disk = FaultyDisk::default();
    let mut store = open(&disk).unwrap();
    let study = store.begin_study(study_record).unwrap();
    // The record is written, and the process ends before the sync.
    disk.fail_after(1);
    store
        .append_step(&study, &RowFingerprint([5; 32]), &charge(1, 3, 7))
        .unwrap_err();
    drop(store);
    disk.heal();
    // The next process finds the record in the memory of the operating system, and uses it.
    let shown = charges(&open(&disk).unwrap());
    for _ in 0..50 {
        let after = charges(&open(&disk.after_power_failure(&mut rng)).unwrap());
        assert_eq!(after, shown);
    }
}

#[cfg(unix)]
#[test]
fn a_dangling_link_to_an_account_is_not_replaced_by_an_empty_account() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join(JOURNAL_FILE);
    std::os::unix::fs::symlink(folder.path().join("volume/state.journal"), &link).unwrap();
    let opened = Store::open(folder.path());
    assert!(opened.is_err(), "a new account was created");
}

#[test]
fn a_rejected_record_is_not_written() {
    let words = MisbehaviourRecord {
        party: "birch".to_owned(),
        from: 1,
        what: "noise".to_owned(),
        frames: Vec::new(),
    };
    type Invalid<'a> = Box<dyn Fn(&mut Store) -> Result<(), StoreError> + 'a>;
    let invalid: [(&str, Invalid<'_>); 3] = [
        (
            "begin_study",
            Box::new(|s| s.begin_study(|_| study_record(9)).map(|_| ())),
        ),
        ("append_acks", Box::new(|s| s.append_acks(&study_record(9)))),
        ("append_proof", Box::new(|s| s.append_proof(9, &words))),
    ];
    let mut unreadable = Vec::new();
    for (name, append) in invalid {
        let disk = FaultyDisk::default();
        let mut store = open(&disk).unwrap();
        store.begin_study(study_record).unwrap();
        append(&mut store).unwrap_err();
        if open(&disk.after_kill()).is_err() {
            unreadable.push(name);
        }
    }
    assert!(unreadable.is_empty(), "{unreadable:?}");
}

#[test]
fn acks_change_nothing_else_of_a_study() {
    let disk = FaultyDisk::default();
    let mut store = open(&disk).unwrap();
    let first = store.begin_study(study_record).unwrap();
    let last = PendingStep {
        finished: true,
        ..PendingStep::default()
    };
    store
        .append_step(&first, &RowFingerprint([5; 32]), &last)
        .unwrap();
    // An old copy of the record, from before the end.
    let _ = store.append_acks(&StudyRecord {
        seeded: true,
        fingerprint: "22".repeat(32),
        ..first
    });
    let acked = |parties: &[u32]| StudyRecord {
        acked: parties.iter().copied().collect(),
        ..study_record(0)
    };
    store.append_acks(&acked(&[1, 4])).unwrap();
    store.append_acks(&acked(&[2])).unwrap();
    assert_eq!(store.studies()[0].acked, BTreeSet::from([1, 2, 4]));
    let found = store.studies().remove(0);
    assert!(found.finished, "the study is no longer finished");
    assert!(!found.seeded && found.fingerprint == "11".repeat(32));
}

/// Sequences of power failures, kills and full disks, in the middle of repairs too.
#[test]
fn interrupted_repairs_never_lose_or_invent_a_charge() {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let (mut torn, mut refused) = (0, 0);
    for _ in 0..150 {
        let mut disk = FaultyDisk::default();
        let mut kept = 0;
        let mut next = 1;
        {
            let mut store = open(&disk).unwrap();
            store.begin_study(study_record).unwrap();
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
                // Now and then a Gram matrix of 137 columns.
                let columns = match rng.random_range(0..20) {
                    0 => gram_width(137),
                    _ => rng.random_range(1..600),
                };
                let mut step = charge(next, columns, 9);
                // Some sectors hold only zeros, and some do not.
                let units = (0..columns).map(|k| i64::from(k / 64 % 3 != 1) * 77);
                step.charged[0].answer = Release::from_units(units.collect());
                match store.append_step(&study, &RowFingerprint([5; 32]), &step) {
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

#[test]
fn a_step_longer_than_what_is_written_ahead_is_whole_or_absent() {
    // The Gram matrix of 1,000 columns: four megabytes an answer and a message.
    let width = gram_width(1000);
    let key = SecretKey::generate().unwrap();
    let units: Vec<i64> = (0..width as i64).map(|k| k * k - 77).collect();
    let wide = Release::from_units(units).unwrap();
    let message = Message {
        from: NodeId(0),
        iteration: 1,
        release: wide.clone(),
    };
    let mut step = charge(1, 1, 7);
    step.charged[0].answer = Some(wide.clone());
    step.sent = vec![SignedMessage::new(message, &[7; 32], &key)];
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let mut found = [0; 2];
    for operations in 0..5 {
        let disk = FaultyDisk::default();
        let mut store = open(&disk).unwrap();
        let study = store.begin_study(study_record).unwrap();
        disk.fail_after(operations);
        let appended = store.append_step(&study, &RowFingerprint([5; 32]), &step);
        drop(store);
        let store = open(&disk.after_power_failure(&mut rng)).unwrap();
        let answers = store.charged_answers(0).unwrap();
        found[answers.len()] += 1;
        assert!(appended.is_err() || answers.len() == 1);
        if let [answer] = &answers[..] {
            assert_eq!(answer.answer.as_ref(), Some(&wide));
            assert_eq!(store.sent(0, 1).unwrap().unwrap().message.release, wide);
        }
    }
    assert!(found[0] > 0 && found[1] > 0, "{found:?}");
}

fn fresh(disk: &FaultyDisk, rng: &mut impl Rng) -> FaultyDisk {
    match rng.random_bool(0.3) {
        true => disk.after_kill(),
        false => disk.after_power_failure(rng),
    }
}

#[test]
fn opening_arbitrary_bytes_never_panics() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let disk = FaultyDisk::default();
    let mut store = open(&disk).unwrap();
    let study = store.begin_study(study_record).unwrap();
    for t in 1..4 {
        store
            .append_step(&study, &RowFingerprint([5; 32]), &charge(t, 200, 7))
            .unwrap();
    }
    let used = disk.used();
    let bytes = disk.bytes();
    // Sectors in any order.
    for _ in 0..3000 {
        let mut bytes = bytes.clone();
        for _ in 0..rng.random_range(1..4) {
            let sectors = used / 512 + 2;
            let (a, b) = (rng.random_range(0..sectors), rng.random_range(0..sectors));
            let from = bytes[b * 512..][..512].to_vec();
            bytes[a * 512..][..512].copy_from_slice(&from);
        }
        let _ = open(&disk.with_journal(bytes)).map(|store| charges(&store));
    }
}

#[test]
fn opening_a_store_makes_the_length_of_its_file_durable() {
    let disk = FaultyDisk::default();
    let mut store = open(&disk).unwrap();
    store.begin_study(study_record).unwrap();
    fill_up(&mut store);
    drop(store);
    // Killed after zeros were written ahead and before the sync; restarted, and the power fails in the middle of a record. If the
    // length were not durable, the torn record would look damaged.
    let mut step = charge(1, 600, 7);
    step.charged[0].answer = Release::from_units(vec![77; 600]);
    let mut synced = Vec::new();
    for _ in 0..2 {
        let mut store = open(&disk).unwrap();
        synced.push(disk.is_synced());
        let study = store.studies().remove(0);
        disk.fail_after(1);
        store
            .append_step(&study, &RowFingerprint([5; 32]), &step)
            .unwrap_err();
        disk.heal();
    }
    assert!(synced[1]);
}

/// Returns a disk with three charges, and the positions of their records.
fn three_charges() -> (FaultyDisk, Vec<usize>) {
    let disk = FaultyDisk::default();
    let mut store = open(&disk).unwrap();
    let study = store.begin_study(study_record).unwrap();
    for t in 1..4 {
        let mut step = charge(t, 200, 7);
        step.charged[0].answer = Release::from_units(vec![77; 200]);
        store
            .append_step(&study, &RowFingerprint([5; 32]), &step)
            .unwrap();
    }
    let mut positions = Vec::new();
    store
        .journal
        .for_each(|record| {
            positions.push(record.at as usize);
            Ok(())
        })
        .unwrap();
    (disk, positions.split_off(2))
}

#[test]
fn lost_sectors_before_the_last_record_are_detected() {
    let (disk, positions) = three_charges();
    // One page of the disk, in which two records begin and the last one does not end.
    let mut bytes = disk.bytes();
    bytes[positions[1]..positions[2] + 512].fill(0);
    let found = open(&disk.with_journal(bytes)).map(|store| charges(&store));
    assert!(
        matches!(found, Err(StoreError::Corrupt { .. })),
        "charges 2 and 3 were durable; found {found:?}"
    );
}

#[test]
fn damage_right_after_the_last_record_is_detected() {
    let (disk, _) = three_charges();
    for after in [0, 3, 511, 512, 700] {
        let disk = disk.after_kill();
        disk.damage(disk.used() + after, 1);
        assert!(matches!(open(&disk), Err(StoreError::Corrupt { .. })));
    }
}

#[test]
fn a_record_of_a_fork_of_the_same_journal_is_detected() {
    let (disk, positions) = three_charges();
    // A fork from the second charge on.
    let bytes = padded(disk.bytes()[..positions[1]].to_vec());
    let fork = disk.with_secrets_of(&secrets_after(1)).with_journal(bytes);
    let mut store = open(&fork).unwrap();
    let study = store.studies().remove(0);
    for t in 2..4 {
        let mut step = charge(t, 200, 7);
        step.charged[0].answer = Release::from_units(vec![78; 200]);
        store
            .append_step(&study, &RowFingerprint([5; 32]), &step)
            .unwrap();
    }
    let mut mixed = disk.bytes();
    mixed[positions[1]..positions[2]].copy_from_slice(&fork.bytes()[positions[1]..positions[2]]);
    let error = open(&disk.with_journal(mixed)).err().unwrap();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[test]
fn damage_while_a_store_is_open_is_detected() {
    let disk = FaultyDisk::default();
    let mut store = open(&disk).unwrap();
    let study = store.begin_study(study_record).unwrap();
    let key = SecretKey::generate().unwrap();
    let step = PendingStep {
        sent: vec![signed(0, 1, &key)],
        ..PendingStep::default()
    };
    store
        .append_step(&study, &RowFingerprint([5; 32]), &step)
        .unwrap();
    // The last byte of the signature: the step could still be decoded.
    let last = disk.bytes().iter().rposition(|byte| *byte != 0).unwrap();
    disk.damage(last, 0x40);
    let read = store.sent(0, 1);
    assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
}

#[test]
fn inconsistent_records_are_corrupt() {
    let key = SecretKey::generate().unwrap();
    let data = RowFingerprint([5; 32]);
    let received = PendingStep {
        received: vec![signed(1, 0, &key)],
        ..PendingStep::default()
    };
    let step = |study: u32, step: &PendingStep| (STEP, step.to_bytes(study, data));
    let study = |number: u32| {
        let json = serde_json::to_vec(&study_record(number)).unwrap();
        (STUDY, json)
    };
    let order = |order: f64| (ORDER, order.to_bits().to_le_bytes().to_vec());
    let created = || (CREATED, [&FORMAT.to_le_bytes()[..], &[7; 32]].concat());
    let mut other = step(1, &charge(1, 3, 7)).1;
    // The step is of study 0, and its charge of study 1.
    other[..4].fill(0);
    let inconsistent = [
        vec![step(0, &received), step(0, &received)],
        vec![step(0, &charge(1, 3, 7)), step(0, &charge(1, 3, 7))],
        vec![step(9, &received)],
        vec![study(0)],
        vec![study(5)],
        vec![order(2.0), order(3.0)],
        vec![order(f64::INFINITY)],
        vec![order(f64::NAN)],
        vec![created()],
        vec![(99, vec![])],
        vec![(STEP, vec![1, 2, 3])],
        vec![(STEP, other)],
    ];
    for (case, records) in inconsistent.into_iter().enumerate() {
        let disk = FaultyDisk::default();
        let mut store = open(&disk).unwrap();
        store.begin_study(study_record).unwrap();
        for (kind, body) in records {
            store.journal.append(kind, &body).unwrap();
        }
        let error = open(&disk).err().map(|error| error.to_string());
        assert!(error.is_some_and(|e| e.contains("corrupt")), "{case}");
    }
    // The first record must be the creation of a journal.
    let disk = FaultyDisk::default();
    let (kind, body) = study(0);
    Journal::create(Box::new(disk.clone()), kind, &body).unwrap();
    assert!(matches!(open(&disk), Err(StoreError::Corrupt { .. })));
}

#[test]
fn the_rule_by_which_a_limit_is_kept_is_set_once() {
    let renyi = |order| SiteAccounting::Renyi { order };
    for (first, second) in [
        (renyi(5.0), renyi(6.0)),
        (renyi(5.0), SiteAccounting::Gaussian),
        (SiteAccounting::Gaussian, renyi(5.0)),
    ] {
        let disk = FaultyDisk::default();
        let mut store = open(&disk).unwrap();
        assert_eq!(store.accounting(), None);
        store.set_accounting(first).unwrap();
        store.set_accounting(second).unwrap();
        assert_eq!(open(&disk.after_kill()).unwrap().accounting(), Some(first));
    }
}
