//! Why something was not kept or could not be read.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::index::FORMAT;
use super::journal::Fault;

/// Why something was not kept or could not be read. Then nothing may be said.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another process has it.
    #[error(
        "{}: the state folder is in use by another process; a party runs once: stop the other one, or give this one a state folder of its own", .0.display()
    )]
    InUse(PathBuf),
    /// It is not there.
    #[error("{}: there is no state here; give the folder that a site's \"state\" names", .0.display())]
    Missing(PathBuf),
    /// The folder cannot be made or read.
    #[error("{}: {cause}", path.display())]
    Folder {
        /// The state folder.
        path: PathBuf,
        /// What the operating system says.
        cause: io::Error,
    },
    /// The disk does not take any more.
    #[error(
        "{}: the disk is full: nothing was released that is not on record; make room and start again", .0.display()
    )]
    Full(PathBuf),
    /// The disk fails.
    #[error(
        "{}: the disk fails ({cause}): nothing was released that is not on record", path.display()
    )]
    Disk {
        /// The state folder.
        path: PathBuf,
        /// What was said about it.
        cause: String,
    },
    /// What is there cannot be right.
    #[error(
        "{}: the state is corrupt ({what}): restore the folder from a backup; do not delete it, since it is the account of what was spent on these rows", path.display()
    )]
    Corrupt {
        /// The state folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Written by another version.
    #[error("{}: the state has format {found}, and this program knows {FORMAT}; use the version of radmm that wrote it", path.display())]
    Format {
        /// The state folder.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// There is no randomness.
    #[error("the operating system gives no random bytes; nothing can be protected without them")]
    NoEntropy,
}

pub(super) fn corrupt(folder: &Path, what: String) -> StoreError {
    StoreError::Corrupt {
        path: folder.to_owned(),
        what,
    }
}

pub(super) fn fault(folder: &Path, error: Fault) -> StoreError {
    let path = folder.to_owned();
    match error {
        Fault::Damaged(what) => StoreError::Corrupt { path, what },
        Fault::Disk(cause) if is_full(&cause) => StoreError::Full(path),
        Fault::Disk(cause) => StoreError::Disk {
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
