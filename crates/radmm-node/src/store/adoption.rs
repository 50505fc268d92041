//! Adoption: an operator vouches for a state folder that is refused as a copy, or as an old one.

use std::fs;
use std::io;
use std::path::Path;

use super::folder::{create_folder, sync_names};
use super::index::StudyIndex;
use super::noise_secrets::{NoiseSecretError, NoiseSecrets};
use super::storage::StateFile;
use super::{JOURNAL_FILE, SECRETS_FILE, Store, StoreError, fault};
use crate::store::journal::JournalError;

/// A state folder that is to be adopted, and what speaks against it.
pub struct Adoption {
    store: Store,
    /// Whether it lives here already.
    is_home: bool,
    /// Why answers may be missing in it.
    incomplete: Option<String>,
}

impl Adoption {
    /// Opens a state folder, whatever it is refused for except damage.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let store = Store::open_journal(folder)?;
        let is_home = !matches!(store.check_home(), Err(StoreError::Elsewhere(_)));
        let incomplete = match store.check_home() {
            Err(error @ StoreError::Forgotten { .. }) => Some(error),
            _ => store.find_incomplete_secrets()?,
        };
        let incomplete = incomplete.map(|error| error.to_string());
        Ok(Self {
            store,
            is_home,
            incomplete,
        })
    }

    /// Returns whether the folder lives on this machine, in this place, already.
    pub fn is_home(&self) -> bool {
        self.is_home
    }

    /// Returns why answers that were given may be missing in the folder, if anything shows that.
    pub fn incomplete(&self) -> Option<&str> {
        self.incomplete.as_deref()
    }

    /// Adopts the folder: from now on it lives here. Where answers may be missing, its unfinished studies end.
    // Privacy: their next answers may have been given already, to other queries.
    pub fn complete(mut self) -> Result<(), StoreError> {
        let folder = self.store.folder.clone();
        let path = folder.join(SECRETS_FILE);
        let failed = |cause| StoreError::Folder {
            path: path.clone(),
            cause,
        };
        let secrets = match StateFile::open(&path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => StateFile::create(&path),
            opened => opened,
        };
        let mut secrets = NoiseSecrets::new(Box::new(secrets.map_err(failed)?));
        if self.incomplete.is_some() {
            let studies = self.store.index.studies.iter();
            let erased = secrets.erase_all(studies.map(|study| study.answered));
            erased.map_err(|error| self.store.secret_fault(error))?;
        }
        self.store.secrets = Some(secrets);
        self.store.append_location()?;
        sync_names(&folder).map_err(failed)
    }
}

impl Store {
    /// Returns why the noise secrets cannot go with this journal, if they cannot.
    fn find_incomplete_secrets(&self) -> Result<Option<StoreError>, StoreError> {
        let path = self.folder.join(SECRETS_FILE);
        let file = match StateFile::open(&path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                let is_needed = !self.index.studies.is_empty();
                return Ok(is_needed.then_some(StoreError::SecretsMissing(path)));
            }
            opened => opened.map_err(|cause| StoreError::Folder { path, cause })?,
        };
        let of = |study: &StudyIndex| (study.answered, study.record.finished);
        let studies = self.index.studies.iter().map(of);
        match NoiseSecrets::new(Box::new(file)).advance_all(studies) {
            Ok(()) => Ok(None),
            Err(error @ NoiseSecretError::Disk(_)) => Err(self.secret_fault(error)),
            Err(error) => Ok(Some(self.secret_fault(error))),
        }
    }

    /// Copies the journal into another folder, without the secrets: a record of what was spent, and not a state to go on from.
    pub fn back_up(&self, to: &Path) -> Result<(), StoreError> {
        let path = to.join(JOURNAL_FILE);
        let failed = |cause| StoreError::Folder {
            path: path.clone(),
            cause,
        };
        create_folder(to).map_err(failed)?;
        let copy = StateFile::create(&path).map_err(failed)?;
        let copied = self.journal.copy_to(&copy);
        copied.map_err(|error| match error {
            JournalError::Disk(cause) => {
                // A part of a copy is worth nothing.
                let _ = fs::remove_file(&path);
                failed(cause)
            }
            error => fault(&self.folder, error),
        })?;
        sync_names(to).map_err(failed)
    }
}
