//! A witness: a file on another disk that knows how far a journal is, so that an older copy of the journal is refused.
//!
//! ```text
//! sector    mark 8 · sequence 8 · hash of the journal's record with this sequence 32 · check 32 · zeros
//! ```
//!
//! It is written over and synced after every record, before anything that depends on the record leaves. After a crash it may be a record
//! behind the journal, and never ahead of it.

use std::io;

use sha2::{Digest, Sha256};

use super::storage::Storage;
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
