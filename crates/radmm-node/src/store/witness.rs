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
        let failed = failed(path);
        let witness = open(path, StateFile::open).map_err(failed)?;
        let testimony = Testimony::of(witness.as_ref()).map_err(failed)?;
        self.check_testimony(path, testimony)?;
        let witness = match witness {
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

    /// Checks the witness that a site names, if it names one, of a store that no other process advances. Nothing is changed.
    pub(crate) fn check_named_witness(&self, path: Option<&Path>) -> Result<(), StoreError> {
        let testimony = path.map(read_testimony).transpose()?;
        self.check_named(path.zip(testimony))
    }

    /// Checks what was read of the witness that a site names, if it names one.
    pub(super) fn check_named(
        &self,
        witness: Option<(&Path, Testimony)>,
    ) -> Result<(), StoreError> {
        match witness {
            Some((path, testimony)) => self.check_testimony(path, testimony),
            None if self.index.is_witnessed => Err(StoreError::WitnessUnnamed(self.folder.clone())),
            None => Ok(()),
        }
    }

    /// Checks that a witness has seen this journal and nothing newer, or that there was none yet.
    fn check_testimony(&self, path: &Path, testimony: Testimony) -> Result<(), StoreError> {
        match testimony {
            Testimony::Seen(last) => match self.journal.has(last) {
                Ok(true) => Ok(()),
                Ok(false) => Err(StoreError::WitnessAhead {
                    path: self.folder.clone(),
                    witness: path.to_owned(),
                }),
                Err(error) => Err(fault(&self.folder, error)),
            },
            // A damaged one was being created when the process was killed.
            _ if !self.index.is_witnessed => Ok(()),
            _ => Err(StoreError::WitnessMissing(path.to_owned())),
        }
    }
}

/// The testimony of a witness about a journal.
#[derive(Clone, Copy)]
pub(super) enum Testimony {
    /// There is no witness.
    Absent,
    /// The file is damaged, and so of no use.
    Damaged,
    /// It has seen this record as the last one.
    Seen(LastRecord),
}

impl Testimony {
    fn of(witness: Option<&Witness>) -> io::Result<Self> {
        let Some(witness) = witness else {
            return Ok(Self::Absent);
        };
        let seen = witness.seen()?;
        Ok(seen.map_or(Self::Damaged, Self::Seen))
    }
}

/// Reads the testimony of the witness at a path.
pub(super) fn read_testimony(path: &Path) -> Result<Testimony, StoreError> {
    let witness = open(path, StateFile::open_read_only);
    let testimony = witness.and_then(|witness| Testimony::of(witness.as_ref()));
    testimony.map_err(failed(path))
}

/// Opens a witness, if there is one.
fn open(path: &Path, open: impl Fn(&Path) -> io::Result<StateFile>) -> io::Result<Option<Witness>> {
    match open(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => Ok(Some(Witness::new(Box::new(opened?)))),
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> StoreError + Copy {
    move |cause| StoreError::Folder {
        path: path.to_owned(),
        cause,
    }
}
