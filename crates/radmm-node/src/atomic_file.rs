//! Files that are there or not, and never by half.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::store::StoreError;

/// Why a file of results was not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The disk or the folder.
    #[error("{}: {cause}; results can be written again as long as the state folder is there", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the operating system says.
        cause: io::Error,
    },
    /// What was to be written cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The charges on record have no total.
    #[error("what is on record has no total: {0}")]
    Total(#[from] crate::public_facts::NoTotal),
}

/// Writes a file beside its place, onto the disk, and then puts it there.
pub fn write_whole<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, WriteError>,
) -> Result<T, WriteError> {
    let failed = |cause| WriteError::File {
        path: path.to_owned(),
        cause,
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    let written = (|| {
        let mut to = BufWriter::new(File::create(&beside).map_err(failed)?);
        let told = write(&mut to)?;
        let file = to
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        fs::rename(&beside, path).map_err(failed)?;
        // The name too must reach the disk; not every system opens folders.
        #[cfg(unix)]
        if let Some(folder) = path.parent().filter(|folder| folder.is_dir()) {
            let synced = File::open(folder).and_then(|folder| folder.sync_all());
            synced.map_err(failed)?;
        }
        Ok(told)
    })();
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    written
}
