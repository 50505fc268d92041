//! A witness: a file on another disk that knows how far a journal is, so that an older copy of the journal is refused.
//!
//! ```text
//! sector    mark 8 · sequence 8 · hash of the journal's record with this sequence 32 · check 32 · zeros
//! ```
//!
//! It is written over and synced after every record, before anything that depends on the record leaves. After a crash it may be a record
//! behind the journal, and never ahead of it.

use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::folder::sync_names;
use super::index::{Entry, WITNESSED};
use super::storage::{StateFile, Storage};
use super::{Store, StoreError, fault};
use crate::machine::ByteReader;

const SECTOR: usize = 512;

const MARK: [u8; 8] = *b"radmm w1";

/// The length of what the check covers.
const CHECKED: usize = 48;

/// The last record of a journal: its sequence and its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastRecord {
    pub(super) sequence: u64,
    pub(super) hash: [u8; 32],
}

/// A witness of a journal.
pub(super) struct Witness(Box<dyn Storage>);

impl Witness {
    pub(super) fn new(storage: Box<dyn Storage>) -> Self {
        Self(storage)
    }

    /// Returns whether the file is still what the next process will find.
    pub(super) fn is_in_place(&self) -> io::Result<bool> {
        self.0.is_in_place()
    }

    /// Returns the record that it has seen; `None` if the file is damaged, and so of no use.
    pub(super) fn seen(&self) -> io::Result<Option<LastRecord>> {
        if self.0.len()? < SECTOR as u64 {
            return Ok(None);
        }
        let mut bytes = [0; SECTOR];
        self.0.read(0, &mut bytes)?;
        let decode = || {
            let mut rest = ByteReader(&bytes);
            let mark: [u8; 8] = rest.array()?;
            let sequence = u64::from_le_bytes(rest.array()?);
            let (hash, check): ([u8; 32], [u8; 32]) = (rest.array()?, rest.array()?);
            let is_right =
                mark == MARK && check == <[u8; 32]>::from(Sha256::digest(&bytes[..CHECKED]));
            is_right.then_some(LastRecord { sequence, hash })
        };
        Ok(decode())
    }

    /// Makes durable that a record was written.
    pub(super) fn see(&self, last: LastRecord) -> io::Result<()> {
        let mut bytes = [0; SECTOR];
        bytes[..8].copy_from_slice(&MARK);
        bytes[8..16].copy_from_slice(&last.sequence.to_le_bytes());
        bytes[16..CHECKED].copy_from_slice(&last.hash);
        let check = Sha256::digest(&bytes[..CHECKED]);
        bytes[CHECKED..CHECKED + 32].copy_from_slice(&check);
        self.0.write(0, &bytes)?;
        self.0.sync()
    }
}

impl Store {
    /// Lets a witness see every record from now on: a small file on another disk, by which an older copy of the journal is noticed. It is
    /// created the first time.
    pub fn with_witness(mut self, path: &Path) -> Result<Self, StoreError> {
        let failed = |cause| StoreError::Folder {
            path: path.to_owned(),
            cause,
        };
        let witness = match self.check_witness(path, StateFile::open)? {
            Some(witness) => witness,
            None => Witness::new(Box::new(StateFile::create(path).map_err(failed)?)),
        };
        witness.see(self.journal.last()).map_err(failed)?;
        if let Some(folder) = path.parent() {
            sync_names(folder).map_err(failed)?;
        }
        self.witness = Some((path.to_owned(), witness));
        if !self.index.is_witnessed {
            self.append(WITNESSED, &[], Entry::Witnessed)?;
        }
        Ok(self)
    }

    /// Checks the witness that a site names, if it names one, without a change to anything.
    pub(crate) fn check_named_witness(&self, path: Option<&Path>) -> Result<(), StoreError> {
        match path {
            Some(path) => self
                .check_witness(path, StateFile::open_read_only)
                .map(|_| ()),
            None if self.index.is_witnessed => Err(StoreError::WitnessUnnamed(self.folder.clone())),
            None => Ok(()),
        }
    }

    /// Returns the witness at a path if it has seen this journal and nothing newer, or `None` if there was none yet.
    fn check_witness(
        &self,
        path: &Path,
        open: impl Fn(&Path) -> io::Result<StateFile>,
    ) -> Result<Option<Witness>, StoreError> {
        let failed = |cause| StoreError::Folder {
            path: path.to_owned(),
            cause,
        };
        let file = match open(path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                return match self.index.is_witnessed {
                    true => Err(StoreError::WitnessMissing(path.to_owned())),
                    false => Ok(None),
                };
            }
            opened => opened.map_err(failed)?,
        };
        let witness = Witness::new(Box::new(file));
        let seen = witness.seen().map_err(failed)?;
        let has = seen.map(|seen| self.journal.has(seen)).transpose();
        match has.map_err(|e| fault(&self.folder, e))? {
            Some(true) => Ok(Some(witness)),
            // It was being created when the process was killed.
            None if !self.index.is_witnessed => Ok(Some(witness)),
            None => Err(StoreError::WitnessMissing(path.to_owned())),
            Some(false) => Err(StoreError::WitnessAhead {
                path: self.folder.clone(),
                witness: path.to_owned(),
            }),
        }
    }
}
