//! Files that were cut, deleted or replaced, and stores that are opened for reading alone.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::thread;
use std::time::SystemTime;

use super::*;

/// Returns a step with one charge, whose answer has so many columns.
fn charge(iteration: u32, columns: usize) -> PendingStep {
    let mut charged = recorded(iteration);
    charged.answer = Release::from_units(vec![77; columns]);
    PendingStep {
        charged: vec![charged],
        ..PendingStep::default()
    }
}

const ROWS: RowFingerprint = RowFingerprint([5; 32]);

/// Returns a folder with a store of so many charges, the fifth of which is a long record.
fn charged(charges: u32, long: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let study = store.begin_study(study_record).unwrap();
    for t in 1..=charges {
        let columns = if t == 5 { long } else { 20 };
        store
            .append_step(&study, &ROWS, &charge(t, columns))
            .unwrap();
    }
    folder
}

fn journal_of(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join(JOURNAL_FILE)
}

#[test]
fn a_file_that_was_cut_anywhere_is_refused() {
    // With a record that is longer than what is written ahead, too.
    for long in [20, 400_000] {
        let folder = charged(10, long);
        let path = journal_of(&folder);
        let file = File::options().write(true).open(&path).unwrap();
        let whole = file.metadata().unwrap().len();
        let mut lengths: Vec<u64> = (1..whole).step_by(whole as usize / 1000).collect();
        // Around the ends of sectors, where records begin.
        lengths.extend((0..40).flat_map(|k| [512 * k, 512 * k + 1, 512 * k + 511]));
        lengths.extend([whole - 1, whole - 512]);
        lengths.sort_unstable();
        for length in lengths.into_iter().rev() {
            // What is cut off once is zeros at most in shorter files.
            file.set_len(length).unwrap();
            let opened = match length % 401 {
                // A reader looks again for a while.
                0 => Store::open_read_only(folder.path()),
                _ => Store::open(folder.path()),
            };
            match opened {
                Err(StoreError::Truncated { path: named, .. }) => assert_eq!(named, path),
                Err(error) => panic!("{length} of {whole}: {error}"),
                Ok(store) => panic!("{length} of {whole}: {:?}", store.charges()),
            }
        }
    }
}

#[test]
fn the_error_of_a_cut_file_names_it_and_what_to_do() {
    let folder = charged(2, 20);
    let path = journal_of(&folder);
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(5000)
        .unwrap();
    let error = Store::open(folder.path()).err().unwrap().to_string();
    let names = format!(
        "{}: the file was cut: it has 5000 bytes, and had at least 1048576",
        path.display()
    );
    assert!(error.starts_with(&names), "{error}");
    assert!(
        error.contains("Put back the file as it was last"),
        "{error}"
    );
}

/// Returns the bytes and the time of a file.
fn version(path: &Path) -> (Vec<u8>, SystemTime) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    (fs::read(path).unwrap(), modified)
}

#[test]
fn reading_changes_nothing_and_leaves_out_what_is_not_finished() {
    let folder = charged(2, 20);
    let path = journal_of(&folder);
    let words = MisbehaviourRecord {
        party: "birch".to_owned(),
        from: 1,
        what: "noise".to_owned(),
        frames: vec!["00".repeat(1000)],
    };
    let mut store = Store::open(folder.path()).unwrap();
    store.append_proof(0, &words).unwrap();
    drop(store);
    // The last record is torn: its last sector is missing.
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap() / 512 * 512;
    bytes[last..][..512].fill(0);
    fs::write(&path, &bytes).unwrap();
    let before = version(&path);
    let store = Store::open_read_only(folder.path()).unwrap();
    assert_eq!(store.charges().unwrap().len(), 2);
    assert!(store.misbehaviours(0).unwrap().is_empty());
    drop(store);
    assert!(version(&path) == before, "reading changed the file");
    drop(Store::open(folder.path()).unwrap());
    assert!(version(&path).0 != before.0, "opening removes the leftover");
}

#[test]
fn nothing_is_appended_to_a_store_that_is_read() {
    let folder = charged(1, 20);
    let before = version(&journal_of(&folder));
    let mut store = Store::open_read_only(folder.path()).unwrap();
    let study = store.studies().remove(0);
    let appended = store.append_step(&study, &ROWS, &charge(2, 20));
    assert!(matches!(appended, Err(StoreError::Disk { .. })));
    assert!(version(&journal_of(&folder)) == before);
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = charged(3, 20);
    let set = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set(&journal_of(&folder), 0o400);
    set(folder.path(), 0o500);
    let charges = Store::open_read_only(folder.path()).map(|store| store.charges().unwrap().len());
    let mode = fs::metadata(journal_of(&folder))
        .unwrap()
        .permissions()
        .mode();
    set(folder.path(), 0o700);
    assert_eq!((charges.unwrap(), mode & 0o777), (3, 0o400));
}

#[test]
fn a_store_is_read_while_another_process_appends_to_it() {
    let folder = charged(1, 20);
    let writer = Store::open(folder.path()).unwrap();
    let appending = thread::spawn(move || {
        let mut writer = writer;
        let study = writer.studies().remove(0);
        for t in 2..400 {
            // Long enough that the file grows meanwhile.
            writer.append_step(&study, &ROWS, &charge(t, 900)).unwrap();
        }
        writer.charges().unwrap().len()
    });
    let mut seen = 1;
    while !appending.is_finished() {
        let store = Store::open_read_only(folder.path()).unwrap();
        let charges = store.charges().unwrap().len();
        assert!(charges >= seen, "{charges} after {seen}");
        seen = charges;
    }
    let written = appending.join().unwrap();
    let store = Store::open_read_only(folder.path()).unwrap();
    assert_eq!(store.charges().unwrap().len(), written);
}

#[test]
fn damage_is_found_by_a_reader_too() {
    let folder = charged(3, 20);
    let path = journal_of(&folder);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let mut byte = [0];
    file.seek(SeekFrom::Start(1300)).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(1300)).unwrap();
    file.write_all(&[byte[0] ^ 1]).unwrap();
    let found = Store::open_read_only(folder.path());
    assert!(matches!(found, Err(StoreError::Corrupt { .. })));
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_deleted_moved_or_replaced_ends_the_use_of_its_store() {
    type Change = fn(&Path);
    let moved: Change = |state| fs::rename(state, state.with_extension("old")).unwrap();
    let deleted: Change = |state| fs::remove_dir_all(state).unwrap();
    let replaced: Change = |state| {
        fs::rename(state, state.with_extension("old")).unwrap();
        drop(Store::open(state).unwrap());
    };
    let copied: Change = |state| {
        let (file, copy) = (state.join(JOURNAL_FILE), state.join("copy"));
        fs::copy(&file, &copy).unwrap();
        fs::rename(&copy, &file).unwrap();
    };
    for (case, change) in [moved, deleted, replaced, copied].iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let mut store = Store::open(&state).unwrap();
        let study = store.begin_study(study_record).unwrap();
        store.append_step(&study, &ROWS, &charge(1, 20)).unwrap();
        store.check_place().unwrap();
        change(&state);
        let appended = store.append_step(&study, &ROWS, &charge(2, 20));
        for refused in [appended, store.check_place()] {
            assert!(matches!(refused, Err(StoreError::Replaced(_))), "{case}");
        }
        assert_eq!(store.charges().unwrap().len(), 1, "{case}");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_comes_back_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let (state, aside) = (folder.path().join("state"), folder.path().join("aside"));
    let mut store = Store::open(&state).unwrap();
    let study = store.begin_study(study_record).unwrap();
    fs::rename(&state, &aside).unwrap();
    assert!(store.append_step(&study, &ROWS, &charge(1, 20)).is_err());
    drop(store);
    fs::rename(&aside, &state).unwrap();
    let mut store = Store::open(&state).unwrap();
    store.append_step(&study, &ROWS, &charge(1, 20)).unwrap();
}
