//! The check of a state beside a process that may be advancing it.
//!
//! A record is in the journal before its witness sees it, and an answer before the secret that follows from it is written. So witness and
//! secrets are read first: the journal then has whatever they know of. What seems to be missing or damaged may just have been created, or
//! be written at this moment, so it is looked at again.

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::noise_secrets::NoiseSecrets;
use super::storage::StateFile;
use super::witness::read_testimony;
use super::{SECRETS_FILE, Store, StoreError};

/// The number of times that a state is looked at before it is refused, and the time between them.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(20);

impl Store {
    /// Opens the store of a folder for reading alone, and checks that nothing speaks against going on from it: it lives here, its secrets
    /// go with it, and the witness that its site names, if it names one, has not seen more.
    pub(crate) fn open_checked(folder: &Path, witness: Option<&Path>) -> Result<Self, StoreError> {
        Self::checked(folder, witness, || Self::open_read_only(folder))
    }

    pub(super) fn checked(
        folder: &Path,
        witness: Option<&Path>,
        mut open: impl FnMut() -> Result<Self, StoreError>,
    ) -> Result<Self, StoreError> {
        let mut looks = 0;
        loop {
            let testimony = witness.map(read_testimony).transpose()?;
            let secrets = read_secrets(folder)?;
            let store = open()?;
            let checked = store
                .check_home()
                .and_then(|()| store.check_named(witness.zip(testimony)))
                .and_then(|()| store.check_secrets(secrets.as_ref()));
            looks += 1;
            match checked {
                Err(_) if looks < LOOKS => thread::sleep(PAUSE),
                checked => return checked.map(|()| store),
            }
        }
    }

    /// Checks that no secrets are missing or damaged, or ahead of the journal.
    pub(super) fn check_secrets(&self, secrets: Option<&NoiseSecrets>) -> Result<(), StoreError> {
        match secrets {
            Some(secrets) => {
                let checked = secrets.check_all(&self.progress());
                checked.map_err(|error| self.secret_fault(error))
            }
            None if self.index.studies.is_empty() => Ok(()),
            None => Err(StoreError::SecretsMissing(self.folder.join(SECRETS_FILE))),
        }
    }
}

/// Reads the secrets in a folder as they are now, if there are any.
pub(super) fn read_secrets(folder: &Path) -> Result<Option<NoiseSecrets>, StoreError> {
    let path = folder.join(SECRETS_FILE);
    let read = StateFile::open_read_only(&path).and_then(|file| NoiseSecrets::copy_of(&file));
    match read {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read
            .map(Some)
            .map_err(|cause| StoreError::Folder { path, cause }),
    }
}
