//! The secrets of the noise: what could draw the noise of an answer again is gone once the answer may leave.

use radmm_data::{CellValue, MemoryColumn, MemoryTable, NamedColumn};
use radmm_study::{Limit, NoiseOrigin};

use super::*;
use crate::machine::{Party, PartyError};
use crate::setup::{GivenRows, OnePartyConfig, PartySetup, SetupError};

/// A column computed from the number of the row.
struct Computed(fn(usize) -> f64);

impl MemoryColumn for Computed {
    fn cell(&self, row: usize) -> CellValue<'_> {
        CellValue::Float((self.0)(row))
    }
}

const STUDY_TEXT: &str = "[data]\nlabel = \"ill\"\npositive = \"1\"\nintercept = true\n\
    [data.numeric]\nage = [0, 100]\n[algorithm]\nname = \"consensus\"\nsteps = 4\n\
    [privacy]\nepsilon = 1\ndelta = 1e-5\n";

/// Opens a party alone, whose state is on a disk.
fn party(disk: &FaultyDisk, key: &str) -> Party {
    fit(open(disk).unwrap(), key, 3.0).unwrap()
}

/// Opens a party alone under a limit, with its state in a store.
pub(super) fn fit(store: Store, key: &str, limit: f64) -> Result<Party, SetupError> {
    let column = |name: &str, cells: fn(usize) -> f64| NamedColumn {
        name: name.to_owned(),
        cells: Ok(Box::new(Computed(cells))),
    };
    let columns = vec![
        column("age", |row| (row % 100) as f64),
        column("ill", |row| f64::from(u8::from(row % 100 > 60))),
    ];
    let config = OnePartyConfig {
        study: &|number| format!("name = \"fit {number}\"\n{STUDY_TEXT}"),
        study_name: "fit",
        rows: GivenRows::Memory(&MemoryTable::new("rows", 100, columns)),
        key: SecretKey::from_pem(key).unwrap(),
        noise: NoiseOrigin::Secret,
        limits: vec![Limit::for_gradients(limit, 1e-5).unwrap()],
        site_name: "ledger",
        read_off: false,
        is_delivered: &|_| false,
    };
    let setup = PartySetup::alone(config, &store).unwrap();
    Ok(setup.open(store)?.0)
}

/// Returns everything that a party alone has answered and would have sent.
fn said(party: &Party) -> (Vec<ChargedAnswer>, Vec<SignedMessage>) {
    let (store, study) = party.store();
    let mut sent = Vec::new();
    let each = |signed| {
        sent.push(signed);
        Ok(())
    };
    store.for_each_sent(study.number, each).unwrap();
    (store.charged_answers(study.number).unwrap(), sent)
}

/// Returns the secrets of a study's first data steps, given the first.
fn secrets(first: [u8; 32], count: usize) -> Vec<[u8; 32]> {
    let next = |secret: &[u8; 32]| {
        let mut next = NoiseSecret::copy_of(secret);
        next.advance();
        Some(*next.bytes())
    };
    std::iter::successors(Some(first), next)
        .take(count)
        .collect()
}

/// Asserts that a disk holds none of these secrets.
fn assert_forgotten(disk: &FaultyDisk, secrets: &[[u8; 32]], when: &str) {
    for bytes in disk.everything() {
        for (step, secret) in secrets.iter().enumerate() {
            let found = bytes.windows(32).any(|window| window == secret);
            assert!(
                !found,
                "{when}: the secret of data step {step} is on the disk"
            );
        }
    }
}

/// A disk on which a study is begun, its first secret, and the party's key.
fn begun() -> (FaultyDisk, [u8; 32], String) {
    let key = SecretKey::generate().unwrap().to_pem().to_string();
    let disk = FaultyDisk::default();
    drop(party(&disk, &key));
    let first = *open(&disk).unwrap().noise_secret(0).unwrap().bytes();
    assert!(
        disk.everything()
            .iter()
            .any(|bytes| { bytes.windows(32).any(|window| window == first) })
    );
    (disk, first, key)
}

#[test]
fn what_drew_the_noise_of_an_answer_is_gone_before_the_answer_leaves() {
    let (disk, first, key) = begun();
    let secrets = secrets(first, 6);
    let mut party = party(&disk, &key);
    loop {
        let answered = party.store().0.charges().unwrap().len();
        assert_forgotten(&disk, &secrets[..answered], &format!("{answered} answers"));
        assert!(disk.is_synced());
        if !party.advance_alone().unwrap() {
            break;
        }
    }
    let answered = party.store().0.charges().unwrap().len();
    assert_eq!(answered, 5);
    // At the end there is none.
    assert!(party.is_finished());
    assert_forgotten(&disk, &secrets, "at the end");
    // Whoever starts it again finds no secret either, and cannot ask.
    drop(party);
    let mut store = open(&disk).unwrap();
    assert!(!secrets.contains(store.noise_secret(0).unwrap().bytes()));
}

#[test]
fn a_kill_between_any_two_operations_changes_no_bit_and_answers_nothing_twice() {
    let (begun, first, key) = begun();
    let secrets = secrets(first, 6);
    let disk = begun.after_kill();
    let mut undisturbed = party(&disk, &key);
    let opened = disk.operations();
    while undisturbed.advance_alone().unwrap() {}
    let operations = disk.operations() - opened;
    assert!(operations > 20, "{operations}");
    let expected = said(&undisturbed);
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    for (case, operations) in (0..operations).flat_map(|k| [(0, k), (1, k), (2, k)]) {
        let disk = begun.after_kill();
        let mut killed = party(&disk, &key);
        disk.fail_after(operations);
        let error = loop {
            match killed.advance_alone() {
                Ok(advanced) => assert!(advanced, "it ended after {operations} operations"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, PartyError::Store(_)), "{error}");
        drop(killed);
        let left = match case {
            0 => disk.after_kill(),
            _ => disk.after_power_failure(&mut rng),
        };
        let mut resumed = party(&left, &key);
        while resumed.advance_alone().unwrap() {}
        assert!(said(&resumed) == expected, "killed after {operations}");
        if case > 0 {
            assert_forgotten(&left, &secrets, "after a power failure");
        }
    }
}

#[test]
fn a_start_that_is_killed_anywhere_begins_the_study_or_leaves_none() {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let mut begun = 0;
    for (operations, power) in (0..5).flat_map(|k| [(k, false), (k, true), (k, true)]) {
        let disk = FaultyDisk::default();
        let mut store = open(&disk).unwrap();
        disk.fail_after(operations);
        let done = store.begin_study(study_record);
        drop(store);
        let left = match power {
            true => disk.after_power_failure(&mut rng),
            false => disk.after_kill(),
        };
        let mut store = open(&left).unwrap();
        match store.studies().len() {
            0 => assert!(done.is_err()),
            _ => {
                begun += 1;
                assert!(store.noise_secret(0).is_ok());
            }
        }
        let next = store.begin_study(study_record).unwrap();
        assert!(store.noise_secret(next.number).is_ok());
    }
    assert!(begun >= 4, "{begun}");
}

#[test]
fn secrets_that_are_ahead_of_the_journal_are_refused() {
    let old = secrets_after(2);
    let study = open(&old.after_kill()).unwrap().studies().remove(0);
    let step = PendingStep {
        charged: vec![recorded(3)],
        ..PendingStep::default()
    };
    let new = old.after_kill();
    let mut newer = open(&new).unwrap();
    newer
        .append_step(&study, &RowFingerprint([5; 32]), &step)
        .unwrap();
    drop(newer);
    // The journal of a backup, beside the secrets as they are now.
    let error = open(&old.with_secrets_of(&new)).err().unwrap();
    let text = error.to_string();
    assert!(
        matches!(
            error,
            StoreError::RolledBack {
                study: 0,
                answered: 3,
                recorded: 2,
                ..
            }
        ),
        "{text}"
    );
    assert!(
        text.contains("was cut, or replaced by an older copy"),
        "{text}"
    );
    // Secrets of a backup beside the journal as it is now: they catch up, to the same secret.
    let mut caught_up = open(&new.with_secrets_of(&old)).unwrap();
    assert_eq!(
        caught_up.noise_secret(0).unwrap().bytes(),
        open(&new.after_kill())
            .unwrap()
            .noise_secret(0)
            .unwrap()
            .bytes()
    );
    // A journal from before a second study, beside the secrets of both.
    let mut both = open(&new).unwrap();
    let second = both.begin_study(study_record).unwrap();
    let step = PendingStep {
        charged: vec![recorded(1)],
        ..PendingStep::default()
    };
    both.append_step(&second, &RowFingerprint([5; 32]), &step)
        .unwrap();
    let one = new.after_kill().with_journal(old.bytes());
    assert!(matches!(open(&one), Err(StoreError::RolledBack { .. })));
}

#[test]
fn every_damaged_byte_of_a_secret_is_noticed() {
    let disk = secrets_after(1);
    for at in 0..512 {
        let disk = disk.after_kill();
        disk.damage_secrets(at, 0x20);
        let error = open(&disk).err().unwrap();
        assert!(
            matches!(error, StoreError::Corrupt { .. })
                && error.to_string().contains("noise.secret"),
            "{at}: {error}"
        );
    }
}

#[test]
fn a_folder_without_its_secrets_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.begin_study(study_record).unwrap();
    drop(store);
    let secrets = folder.path().join(SECRETS_FILE);
    fs::rename(&secrets, folder.path().join("aside")).unwrap();
    let error = Store::open(folder.path()).err().unwrap();
    assert!(matches!(error, StoreError::SecretsMissing(_)), "{error}");
    assert!(!secrets.exists());
    // It can be read.
    assert_eq!(
        Store::open_read_only(folder.path())
            .unwrap()
            .studies()
            .len(),
        1
    );
    fs::rename(folder.path().join("aside"), &secrets).unwrap();
    Store::open(folder.path()).unwrap();
}

#[test]
fn a_journal_that_was_cut_and_filled_up_with_zeros_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let study = store.begin_study(study_record).unwrap();
    let mut ends = Vec::new();
    for t in 1..6 {
        let step = PendingStep {
            charged: vec![recorded(t)],
            ..PendingStep::default()
        };
        ends.push(store.journal.end());
        store
            .append_step(&study, &RowFingerprint([5; 32]), &step)
            .unwrap();
    }
    drop(store);
    let path = folder.path().join(JOURNAL_FILE);
    let file = fs::File::options().write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    for (recorded, end) in ends.into_iter().enumerate().rev() {
        file.set_len(end).unwrap();
        file.set_len(length).unwrap();
        let error = Store::open(folder.path()).err().unwrap();
        let expected = recorded as u32;
        assert!(
            matches!(error, StoreError::RolledBack { recorded, answered: 5, .. } if recorded == expected),
            "{error}"
        );
    }
}

#[cfg(unix)]
#[test]
fn secrets_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(folder.path()).unwrap());
    let path = folder.path().join(SECRETS_FILE);
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(folder.path()).unwrap());
    assert_eq!(mode(), 0o600);
}
