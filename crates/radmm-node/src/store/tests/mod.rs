//! Stores on disks that are killed, lose power, or are tampered with.

mod copies;
mod damage;
#[cfg(target_os = "linux")]
mod memory;
mod ratchet;
mod truncation;

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use radmm::privacy::{IdealRelease, NoiseDistribution, PrivacyEvent};
use radmm::protocol::message::Message;
use radmm::protocol::release::Release;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::faulty_storage::FaultyDisk;
use super::*;
use crate::key::SecretKey;

fn recorded(iteration: u32) -> ChargedAnswer {
    ChargedAnswer {
        iteration,
        event: PrivacyEvent::on_grid(IdealRelease::Additive {
            sensitivity: 0.1,
            law: NoiseDistribution::Gaussian { sigma: 2.0 },
        }),
        answer: Release::from_units(vec![i64::from(iteration), -7, 1 << 60]),
    }
}

fn signed(from: u32, iteration: u32, key: &SecretKey) -> SignedMessage {
    let release = Release::from_units(vec![3, i64::from(iteration), i64::from(from)]).unwrap();
    let from = NodeId(from);
    let message = Message {
        from,
        iteration,
        release,
    };
    SignedMessage::new(message, &[7; 32], key)
}

fn open(disk: &FaultyDisk) -> Result<Store, StoreError> {
    Store::on(disk)
}

fn study_record(number: u32) -> StudyRecord {
    StudyRecord {
        number,
        name: "trial".to_owned(),
        sha256: "00".repeat(32),
        party: 0,
        fingerprint: "11".repeat(32),
        rows: 10,
        seeded: false,
        read_off: false,
        plan: Vec::new(),
        finished: false,
        ended: false,
        acked: BTreeSet::new(),
        ack_confirmed: BTreeSet::new(),
    }
}

/// The contents of a store's first study.
#[derive(Debug, PartialEq)]
struct Contents {
    studies: Vec<StudyRecord>,
    charges: Vec<Charge>,
    charged_answers: Vec<ChargedAnswer>,
    received: Vec<SignedMessage>,
    sent: Vec<SignedMessage>,
}

fn contents(store: &Store) -> Result<Contents, StoreError> {
    let (mut received, mut sent) = (Vec::new(), Vec::new());
    store.for_each_received(0, |signed| {
        received.push(signed);
        Ok(())
    })?;
    store.for_each_sent(0, |signed| {
        sent.push(signed);
        Ok(())
    })?;
    Ok(Contents {
        studies: store.studies(),
        charges: store.charges()?,
        charged_answers: store.charged_answers(0)?,
        received,
        sent,
    })
}

/// Returns a disk whose secrets are those of a study with so many answers.
fn secrets_after(answers: u32) -> FaultyDisk {
    let disk = FaultyDisk::default();
    let mut store = open(&disk).unwrap();
    let study = store.begin_study(study_record).unwrap();
    for t in 1..=answers {
        let step = PendingStep {
            charged: vec![recorded(t)],
            ..PendingStep::default()
        };
        store
            .append_step(&study, &RowFingerprint([5; 32]), &step)
            .unwrap();
    }
    disk
}

/// Returns a disk with three steps, and its contents.
fn three_steps() -> (FaultyDisk, Contents) {
    let disk = FaultyDisk::default();
    let mut store = open(&disk).unwrap();
    let study = store.begin_study(study_record).unwrap();
    let key = SecretKey::generate().unwrap();
    for t in 0..3 {
        let step = PendingStep {
            received: vec![signed(1, t, &key), signed(2, t, &key)],
            charged: vec![recorded(t + 1)],
            sent: vec![signed(0, t + 1, &key)],
            finished: t == 2,
            ended: false,
        };
        store
            .append_step(&study, &RowFingerprint([5; 32]), &step)
            .unwrap();
    }
    let all = contents(&store).unwrap();
    (disk, all)
}

/// Returns the bytes of a journal with the zeros after them that belong to it.
fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().max(journal::length_for(0) as usize), 0);
    bytes
}

/// Appends a record that leaves so little room that the next one makes the file longer.
fn fill_up(store: &mut Store) {
    let room = journal::length_for(0) - 512 - store.journal.end();
    let words = MisbehaviourRecord {
        party: "birch".to_owned(),
        from: 1,
        what: String::new(),
        frames: vec!["0".repeat(room as usize / 512 * 496 - 200)],
    };
    store.append_proof(0, &words).unwrap();
    assert_eq!(store.journal.end() + 512, journal::length_for(0));
}

#[test]
fn persisted_steps_survive_a_kill() {
    let (disk, all) = three_steps();
    let again = contents(&open(&disk.after_kill()).unwrap()).unwrap();
    assert_eq!(again, all);
    assert_eq!(all.charged_answers, [recorded(1), recorded(2), recorded(3)]);
    assert!(all.studies[0].finished);
    assert_eq!((all.received.len(), all.sent.len()), (6, 3));
}

#[test]
fn a_power_failure_leaves_a_whole_step_or_none() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let key = SecretKey::generate().unwrap();
    let step = PendingStep {
        received: vec![signed(1, 3, &key)],
        charged: vec![recorded(4)],
        sent: vec![signed(0, 4, &key)],
        ..PendingStep::default()
    };
    let (mut before, mut after) = (0, 0);
    // A step takes a write and a sync, and as much again before it where no zeros were written ahead.
    for (case, operations) in (0..5).cycle().take(100).enumerate() {
        let (disk, all) = three_steps();
        let mut store = open(&disk).unwrap();
        if case % 2 == 0 {
            fill_up(&mut store);
        }
        disk.fail_after(operations);
        let appended = store.append_step(&all.studies[0], &RowFingerprint([5; 32]), &step);
        drop(store);
        for _ in 0..5 {
            let found = contents(&open(&disk.after_power_failure(&mut rng)).unwrap()).unwrap();
            let whole = found.charges.len() == 4;
            assert_eq!(found.sent.len(), if whole { 4 } else { 3 });
            assert_eq!(found.received.len(), if whole { 7 } else { 6 });
            assert_eq!(found.charged_answers.len(), found.charges.len());
            // A step that was reported as durable is durable.
            assert!(whole || appended.is_err());
            *(if whole { &mut after } else { &mut before }) += 1;
        }
    }
    assert!(before > 100 && after > 100, "{before} {after}");
}

#[test]
fn every_write_takes_one_sync_and_is_durable_when_its_writer_goes_on() {
    let disk = FaultyDisk::default();
    let mut store = open(&disk).unwrap();
    // Zeros written ahead, and the first record.
    assert_eq!((disk.syncs(), disk.is_synced()), (2, true));
    // The secret, and the study.
    let study = store.begin_study(study_record).unwrap();
    assert_eq!((disk.syncs(), disk.is_synced()), (4, true));
    for t in 1..5 {
        let step = PendingStep {
            charged: vec![recorded(t)],
            ..PendingStep::default()
        };
        store
            .append_step(&study, &RowFingerprint([5; 32]), &step)
            .unwrap();
        // The step, and the secret of the next one.
        assert_eq!((disk.syncs(), disk.is_synced()), (4 + 2 * t, true));
    }
    let key = SecretKey::generate().unwrap();
    let recycled = PendingStep {
        sent: vec![signed(0, 9, &key)],
        ..PendingStep::default()
    };
    store
        .append_step(&study, &RowFingerprint([5; 32]), &recycled)
        .unwrap();
    assert_eq!((disk.syncs(), disk.is_synced()), (13, true));
    store
        .set_accounting(SiteAccounting::Renyi { order: 7.5 })
        .unwrap();
    store.append_acks(&study).unwrap();
    assert_eq!((disk.syncs(), disk.is_synced()), (15, true));
    drop(store);
    // What was last written is synced again before it is used.
    open(&disk).unwrap();
    assert_eq!((disk.syncs(), disk.is_synced()), (17, true));
}

/// The system refuses to sync a pipe, so an error shows that the system was asked.
#[cfg(unix)]
#[test]
fn a_sync_of_the_journal_is_a_sync_of_its_file() {
    let (_reader, writer) = io::pipe().unwrap();
    let pipe = fs::File::from(std::os::fd::OwnedFd::from(writer));
    let refused = StateFile::unlocked(pipe).sync();
    assert!(refused.is_err(), "nothing was synced");
    let folder = tempfile::tempdir().unwrap();
    let file = StateFile::create_locked(&folder.path().join("file")).unwrap();
    let file = file.expect("nobody else has it");
    file.write(5, b"record").unwrap();
    file.sync().unwrap();
}

#[test]
fn no_iteration_is_answered_or_sent_twice() {
    let (disk, all) = three_steps();
    let mut store = open(&disk.after_kill()).unwrap();
    let key = SecretKey::generate().unwrap();
    let again = PendingStep {
        charged: vec![recorded(2)],
        ..PendingStep::default()
    };
    let sent = PendingStep {
        sent: vec![signed(0, 2, &key)],
        ..PendingStep::default()
    };
    for step in [again, sent] {
        let refused = store.append_step(&all.studies[0], &RowFingerprint([5; 32]), &step);
        assert!(matches!(refused, Err(StoreError::Corrupt { .. })));
    }
    assert_eq!(contents(&store).unwrap(), all);
}

/// Returns the positions of all records, and the end of the last.
fn positions(disk: &FaultyDisk) -> Vec<usize> {
    let mut positions = Vec::new();
    let store = open(&disk.after_kill()).unwrap();
    let read = store.journal.for_each(|record| {
        positions.push(record.at as usize);
        Ok(())
    });
    read.unwrap();
    positions.push(disk.used());
    positions
}

#[test]
fn removed_emptied_and_reordered_records_are_detected() {
    let (disk, _) = three_steps();
    let positions = positions(&disk);
    // Creation, study, and three steps of two sectors at least.
    assert_eq!(positions.len(), 6);
    let bytes = disk.bytes();
    let record = |k: usize| bytes[positions[k]..positions[k + 1]].to_vec();
    let all = |order: &[usize]| order.iter().flat_map(|k| record(*k)).collect::<Vec<u8>>();
    let empty = |k: usize| {
        let mut bytes = bytes.clone();
        bytes[positions[k]..positions[k + 1]].fill(0);
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
        let error = open(&disk.with_journal(padded(bytes))).err().unwrap();
        assert!(
            matches!(error, StoreError::Corrupt { .. }),
            "{case}: {error}"
        );
    }
    // A journal that ends earlier is valid, and the secrets beside it are ahead of it.
    for shorter in [&[0, 1, 2, 3][..], &[0, 1], &[0]] {
        let error = open(&disk.with_journal(padded(all(shorter))))
            .err()
            .unwrap();
        assert!(
            matches!(error, StoreError::RolledBack { answered: 3, .. }),
            "{error}"
        );
    }
}

#[test]
fn a_record_of_another_journal_is_detected() {
    let (one, _) = three_steps();
    let (other, _) = three_steps();
    let (positions, bytes) = (positions(&one), other.bytes());
    let step = positions[3]..positions[4];
    let mut mixed = one.bytes();
    mixed[step.clone()].copy_from_slice(&bytes[step]);
    let error = open(&one.with_journal(mixed)).err().unwrap();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[test]
fn a_torn_record_is_removed_whichever_sectors_were_written() {
    const SECTOR: usize = 512;
    let (disk, all) = three_steps();
    let positions = positions(&disk);
    let (last, end) = (positions[4], positions[5]);
    let bytes = disk.bytes();
    let sectors = (end - last) / SECTOR;
    assert!(sectors > 1);
    let key = SecretKey::generate().unwrap();
    // The secrets are as they are before the record is durable.
    let before = disk.with_secrets_of(&secrets_after(2));
    for subset in 0..1 << sectors {
        let mut bytes = bytes.clone();
        for missing in (0..sectors).filter(|k| subset & (1 << k) == 0) {
            bytes[last + missing * SECTOR..][..SECTOR].fill(0);
        }
        let disk = before.with_journal(bytes);
        let mut store = open(&disk).unwrap();
        let whole = subset == (1 << sectors) - 1;
        let charges = if whole { 3 } else { 2 };
        assert_eq!(store.charges().unwrap().len(), charges, "{subset:b}");
        // The next record is not disturbed by leftovers.
        let next = PendingStep {
            sent: vec![signed(0, 9, &key)],
            ..PendingStep::default()
        };
        store
            .append_step(&all.studies[0], &RowFingerprint([5; 32]), &next)
            .unwrap();
        let again = open(&disk.after_kill()).unwrap();
        assert_eq!(again.charges().unwrap().len(), charges);
        assert_eq!(again.sent(0, 9).unwrap(), Some(signed(0, 9, &key)));
    }
}

#[test]
fn nothing_is_appended_after_a_failed_write() {
    let (disk, all) = three_steps();
    let disk = disk.after_kill();
    let mut store = open(&disk).unwrap();
    disk.fail_after(1);
    let key = SecretKey::generate().unwrap();
    for (t, healthy) in [(4, false), (5, true)] {
        if healthy {
            disk.heal();
        }
        let step = PendingStep {
            sent: vec![signed(0, t, &key)],
            ..PendingStep::default()
        };
        let appended = store.append_step(&all.studies[0], &RowFingerprint([5; 32]), &step);
        assert!(matches!(appended, Err(StoreError::Disk { .. })));
    }
    drop(store);
    // Reopened, it shows what was durable.
    let found = contents(&open(&disk.after_kill()).unwrap()).unwrap();
    assert_eq!(found.charges, all.charges);
}

#[test]
fn a_store_is_opened_by_one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let first = Store::open(&state).unwrap();
    let error = Store::open(&state).err().unwrap();
    assert!(matches!(error, StoreError::InUse(_)), "{error}");
    assert!(error.to_string().contains("in use by another process"));
    drop(first);
    Store::open(&state).unwrap();
    let missing = Store::open_read_only(&folder.path().join("elsewhere"));
    assert!(matches!(missing, Err(StoreError::Missing(_))));
}

#[test]
fn a_file_that_is_not_a_journal_is_corrupt() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join(JOURNAL_FILE),
        "rows, rows, rows\n".repeat(1000),
    )
    .unwrap();
    let error = Store::open(folder.path()).err().unwrap();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}

#[test]
fn a_store_whose_creation_was_killed_is_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let unfinished = folder.path().join(UNFINISHED);
    // The file has its length, and only zeros.
    fs::write(&unfinished, [0; 8192]).unwrap();
    let missing = Store::open_read_only(folder.path());
    assert!(matches!(missing, Err(StoreError::Missing(_))));
    let mut store = Store::open(folder.path()).unwrap();
    store.begin_study(study_record).unwrap();
    assert!(!unfinished.exists());
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.studies(), [study_record(0)]);
}

#[test]
fn an_emptied_account_is_not_started_again() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(folder.path()).unwrap());
    fs::write(folder.path().join(JOURNAL_FILE), []).unwrap();
    let refused = Store::open(folder.path()).err().unwrap().to_string();
    assert!(refused.contains("the file was cut"), "{refused}");
}

#[test]
fn row_fingerprints_differ_between_folders() {
    let stores = [FaultyDisk::default(), FaultyDisk::default()].map(|disk| open(&disk).unwrap());
    let fingerprints = stores
        .each_ref()
        .map(|store| store.row_fingerprint(&[3; 32]));
    assert_ne!(fingerprints[0], fingerprints[1]);
    assert_eq!(fingerprints[0], stores[0].row_fingerprint(&[3; 32]));
    assert_ne!(fingerprints[0], stores[0].row_fingerprint(&[4; 32]));
}

#[test]
fn noise_secrets_differ_between_studies_and_folders() {
    let disks = [FaultyDisk::default(), FaultyDisk::default()];
    let mut stores = disks.each_ref().map(|disk| open(disk).unwrap());
    let mut secrets = Vec::new();
    for store in &mut stores {
        for number in 0..2 {
            assert_eq!(store.begin_study(study_record).unwrap().number, number);
            secrets.push(store.noise_secret(number).unwrap());
        }
    }
    let bytes: Vec<&[u8; 32]> = secrets.iter().map(NoiseSecret::bytes).collect();
    for (k, secret) in bytes.iter().enumerate() {
        assert_ne!(**secret, [0; 32]);
        assert!(!bytes[..k].contains(secret), "secret {k} is not unique");
    }
    // A restart finds the same secrets.
    let mut again = open(&disks[0].after_kill()).unwrap();
    for (number, secret) in (0..2).zip(bytes) {
        assert_eq!(again.noise_secret(number).unwrap().bytes(), secret);
    }
}

#[cfg(unix)]
#[test]
fn the_journal_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let parent = tempfile::tempdir().unwrap();
    // A new folder is private.
    let own = parent.path().join("own");
    drop(Store::open(&own).unwrap());
    assert_eq!(mode(&own), 0o700);
    assert_eq!(mode(&own.join(JOURNAL_FILE)), 0o600);
    // An existing folder stays as it is, and the file is private.
    let theirs = parent.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o755)).unwrap();
    drop(Store::open(&theirs).unwrap());
    assert_eq!(mode(&theirs), 0o755);
    assert_eq!(mode(&theirs.join(JOURNAL_FILE)), 0o600);
    // A restored copy with wider permissions is made private.
    fs::set_permissions(theirs.join(JOURNAL_FILE), fs::Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(&theirs).unwrap());
    assert_eq!(mode(&theirs.join(JOURNAL_FILE)), 0o600);
}

#[test]
fn misbehaviour_records_are_bounded_by_study_and_leave_room_for_proofs() {
    let mut store = open(&FaultyDisk::default()).unwrap();
    store.begin_study(study_record).unwrap();
    store.begin_study(study_record).unwrap();
    let words = |what: &str| MisbehaviourRecord {
        party: "birch".to_owned(),
        from: 1,
        what: what.to_owned(),
        frames: vec!["00".to_owned()],
    };
    for _ in 0..=MAX_MISBEHAVIOURS {
        store.append_misbehaviour(0, &words("noise")).unwrap();
    }
    assert_eq!(store.misbehaviours(0).unwrap().len(), MAX_MISBEHAVIOURS);
    store.append_proof(0, &words("two values")).unwrap();
    assert_eq!(
        store.misbehaviours(0).unwrap().last(),
        Some(&words("two values"))
    );
    // The same proof after a restart is not kept again, and another one is.
    store.append_proof(0, &words("two values")).unwrap();
    store.append_proof(0, &words("two others")).unwrap();
    assert_eq!(store.misbehaviours(0).unwrap().len(), MAX_MISBEHAVIOURS + 2);
    store.append_misbehaviour(1, &words("later")).unwrap();
    assert_eq!(store.misbehaviours(1).unwrap(), [words("later")]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damage_anywhere_is_detected(at in any::<usize>(), with in 1u8..) {
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
