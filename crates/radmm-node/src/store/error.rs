//! The errors of a store.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::JOURNAL_FILE;
use super::index::FORMAT;
use super::journal::JournalError;

/// An error of a store. After one, nothing may be sent.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another process has the store open.
    #[error(
        "{}: the state folder is in use by another process; a party runs once: stop the other one first. Another state folder for the same rows would be a second account, which counts only half of what they are asked", .0.display()
    )]
    InUse(PathBuf),
    /// The folder has no store.
    #[error("{}: there is no state here; give the folder that a site's \"state\" names", .0.display())]
    Missing(PathBuf),
    /// The folder or the file cannot be created or read.
    #[error("{}: {cause}", path.display())]
    Folder {
        /// The state folder.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The disk is full.
    #[error(
        "{}: the disk is full: nothing was sent that is not on record; make room and start again", .0.display()
    )]
    Full(PathBuf),
    /// The disk failed.
    #[error(
        "{}: the disk failed ({cause}): nothing was sent that is not on record; replace or repair the disk. An older copy of the folder does not replace it (docs/node.md, Backups)", path.display()
    )]
    Disk {
        /// The state folder.
        path: PathBuf,
        /// The error of the operating system.
        cause: String,
    },
    /// The journal is damaged or inconsistent.
    #[error(
        "{}: the state is corrupt ({what}): do not delete it, since it is the account of what was spent on these rows; put back the folder as it was last. An older copy does not replace it (docs/node.md, Backups)", path.display()
    )]
    Corrupt {
        /// The state folder.
        path: PathBuf,
        /// The damage.
        what: String,
    },
    /// The file was deleted, moved or replaced while it was in use.
    #[error(
        "{}: the state was deleted, moved or replaced while this party was running, so it stops, and sends nothing more. Put back the folder as it was; if it is gone, an empty or older one does not replace it (docs/node.md, Backups)", .0.display()
    )]
    Replaced(PathBuf),
    /// The folder was copied, restored or moved from elsewhere.
    #[error(
        "{path}: this state folder lives elsewhere, on another machine or in another file, and was copied or restored to here. Two copies of one state answer the same questions twice, and each counts its own answers alone. If the other copy is gone and this one is its last state: radmm state adopt --state {path}", path = .0.display()
    )]
    Elsewhere(PathBuf),
    /// A neighbour has proved that the folder is an old copy.
    #[error(
        "{path}: {peer} has shown that it received this party's values up to iteration {iteration} of a study, of which nothing is on record here: the state is an old copy, and its account lacks what was answered since. Use the state as it was last; if it is gone: radmm state adopt --state {path}", path = path.display()
    )]
    Forgotten {
        /// The state folder.
        path: PathBuf,
        /// The neighbour.
        peer: String,
        /// The last iteration that it has shown.
        iteration: u32,
    },
    /// The witness has seen a newer or another journal.
    #[error(
        "{}: the witness {} has seen a newer state than this one, or another one: this is an old copy. Use the state as it was last; if it is gone, see docs/node.md, Backups", path.display(), witness.display()
    )]
    WitnessAhead {
        /// The state folder.
        path: PathBuf,
        /// The witness.
        witness: PathBuf,
    },
    /// The witness is missing or damaged.
    #[error(
        "{}: the witness of this state is missing or damaged. Is its disk mounted? If it is gone for good: radmm state adopt ends the studies that are not finished, and lets a new witness begin", .0.display()
    )]
    WitnessMissing(PathBuf),
    /// The site names no witness, and the state has one.
    #[error(
        "{}: this state has a witness, and the site file names none: name it again (witness = \"path\")", .0.display()
    )]
    WitnessUnnamed(PathBuf),
    /// The journal is older than the secrets beside it.
    #[error(
        "{}: the journal has {recorded} answers of study {study}, and noise.secret beside it knows that {answered} were given: the journal was cut, or replaced by an older copy. Nothing may be asked on an account in which answers are missing. Put back the folder as it was last; if it is gone, an older copy does not replace it (docs/node.md, Backups)", path.display()
    )]
    RolledBack {
        /// The state folder.
        path: PathBuf,
        /// The study's number.
        study: u32,
        /// The number of its answers that were given.
        answered: u32,
        /// The number of those in the journal.
        recorded: u32,
    },
    /// The file of noise secrets is missing.
    #[error(
        "{}: the secret of the noise is missing, so this is not the whole state folder: a backup that leaves it out, or a folder of which a part was deleted. It is a record of what was spent, and not a state to go on from. Put back the folder as it was last; if it is gone, see radmm state adopt (docs/node.md, Backups)", .0.display()
    )]
    SecretsMissing(PathBuf),
    /// The secret of an unfinished study was erased.
    #[error(
        "{}: the secret of this study's noise is gone, so the study cannot go on here: agree on another one; nothing was sent", .0.display()
    )]
    SecretErased(PathBuf),
    /// The file is shorter than its records leave it.
    #[error(
        "{}: the file was cut: it has {length} bytes, and had at least {needed} when its last record was written. What is missing may be the account of answers that were given, so it is not used. Put back the file as it was last; if it is gone, an older copy does not replace it (docs/node.md, Backups)", path.display()
    )]
    Truncated {
        /// The journal.
        path: PathBuf,
        /// Its length in bytes.
        length: u64,
        /// The length that it had at least.
        needed: u64,
    },
    /// The journal was written by another version.
    #[error("{}: the state has format {found}, and this program reads {FORMAT}; use the version of radmm that wrote it", path.display())]
    Format {
        /// The state folder.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes; nothing can be protected without them")]
    NoEntropy,
}

pub(super) fn corrupt(folder: &Path, what: String) -> StoreError {
    StoreError::Corrupt {
        path: folder.to_owned(),
        what,
    }
}

pub(super) fn fault(folder: &Path, error: JournalError) -> StoreError {
    let path = folder.to_owned();
    match error {
        JournalError::Damaged(what) => StoreError::Corrupt { path, what },
        JournalError::Truncated { length, needed } => StoreError::Truncated {
            path: path.join(JOURNAL_FILE),
            length,
            needed,
        },
        JournalError::Disk(cause) if is_full(&cause) => StoreError::Full(path),
        JournalError::Disk(cause) => StoreError::Disk {
            path,
            cause: cause.to_string(),
        },
    }
}

fn is_full(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
