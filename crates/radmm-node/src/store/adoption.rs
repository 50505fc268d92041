//! Adoption: an operator vouches for a state folder that is refused as a copy, or as an old one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::check::read_secrets;
use super::folder::{create_folder, sync_names};
use super::journal::JournalError;
use super::noise_secrets::NoiseSecrets;
use super::storage::StateFile;
use super::{JOURNAL_FILE, SECRETS_FILE, Store, StoreError, fault};

/// A state folder that is to be adopted, and what speaks against it.
pub struct Adoption {
    folder: PathBuf,
    /// The witness that the site names.
    witness: Option<PathBuf>,
    is_home: bool,
    incomplete: Option<String>,
}

impl Adoption {
    /// Examines a state folder that no other process uses, and the witness that its site names. Nothing is changed.
    pub fn examine(folder: &Path, witness: Option<&Path>) -> Result<Self, StoreError> {
        let store = Store::read_locked(folder)?;
        let incomplete = store.find_incomplete(witness)?;
        Ok(Self {
            folder: folder.to_owned(),
            witness: witness.map(Path::to_owned),
            is_home: !matches!(store.check_home(), Err(StoreError::Elsewhere(_))),
            incomplete: incomplete.map(|error| error.to_string()),
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

    /// Adopts the folder: from now on it lives here. Where answers may be missing, its unfinished studies end, and count as if they had
    /// asked all that they planned.
    // Privacy: their next answers may have been given already, to other queries. They are charged before their secrets are erased: if
    // this process is killed in between, they are over all the same.
    pub fn complete(self) -> Result<(), StoreError> {
        let mut store = Store::open_journal(&self.folder)?;
        let incomplete = store.find_incomplete(self.witness.as_deref())?;
        if let (Some(error), None) = (&incomplete, &self.incomplete) {
            return Err(store.corrupt(error));
        }
        let path = self.folder.join(SECRETS_FILE);
        let failed = |cause| StoreError::Folder {
            path: path.clone(),
            cause,
        };
        let secrets = match StateFile::open(&path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => StateFile::create(&path),
            opened => opened,
        };
        let mut secrets = NoiseSecrets::new(Box::new(secrets.map_err(failed)?));
        if incomplete.is_some() {
            store.end_unfinished_studies()?;
            let erased = secrets.erase_all(&store.progress());
            erased.map_err(|error| store.secret_fault(error))?;
        }
        store.secrets = Some(secrets);
        store.append_location()?;
        sync_names(&self.folder).map_err(failed)
    }
}

impl Store {
    /// Returns what shows that answers are missing here: a neighbour's proof, a witness that has not seen this state as the last one, or
    /// noise secrets that do not go with the journal.
    fn find_incomplete(&self, witness: Option<&Path>) -> Result<Option<StoreError>, StoreError> {
        use StoreError::{WitnessAhead, WitnessMissing, WitnessUnnamed};
        if let Some(error) = self.proof_of_old_copy() {
            return Ok(Some(error));
        }
        // Privacy: whoever has lost the witness cannot know that this state is the last one.
        match self.check_named_witness(witness) {
            Err(error @ (WitnessAhead { .. } | WitnessMissing(_) | WitnessUnnamed(_))) => {
                return Ok(Some(error));
            }
            checked => checked?,
        }
        let secrets = read_secrets(&self.folder)?;
        Ok(self.check_secrets(secrets.as_ref()).err())
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
