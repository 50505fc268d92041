//! The secrets of the noise of all studies, in a file of their own, which is written over.
//!
//! ```text
//! sector    mark 8 · study 4 · step 4 · secret 32 · check 32 · zeros
//! ```
//!
//! Every study has one sector of the disk, at its number. The noise of its next data step is derived from the secret; the step is the
//! number of data steps that were answered. Once an answer is durable in the journal, the secret is replaced by the one that follows
//! from it ([`NoiseSecret::advance`]), and at the end of the study by zeros: what could draw the noise of an answer again is then
//! nowhere. So the order of operations is
//!
//! 1. the first secret of a study is durable, before its record in the journal;
//! 2. an answer is durable in the journal, with the secret that drew its noise still here;
//! 3. the next secret is durable in its place;
//! 4. the answer leaves.
//!
//! A process that is killed between 2 and 3 leaves a sector that is behind the journal, and the next one catches up. A sector that is
//! *ahead* of the journal shows that the journal was cut or replaced by an older one.

use std::io;

use radmm::curator::NoiseSecret;
use sha2::{Digest, Sha256};
use zeroize::{Zeroizing, zeroize_stack};

use super::storage::{MemoryStorage, Storage};
use crate::machine::ByteReader;

/// The bytes that a disk writes in one go, and that a study takes.
const SECTOR: usize = 512;

/// The mark of a sector.
const MARK: [u8; 8] = *b"radmm k1";

/// The position of the secret in a sector.
const SECRET: std::ops::Range<usize> = 16..48;

/// The length of what the check covers.
const CHECKED: usize = 48;

/// The number of bytes of the stack that are written over after a sector is read or written, several times what that takes.
const WIPED_STACK: usize = 1 << 13;

/// A reason for which a secret cannot be used.
#[derive(Debug)]
pub(super) enum NoiseSecretError {
    /// The disk failed.
    Disk(io::Error),
    /// A study's sector is damaged or missing.
    Damaged(u32),
    /// A study has more answers than the journal knows of.
    Ahead {
        /// The study's number.
        study: u32,
        /// The number of answers.
        answered: u32,
    },
}

impl From<io::Error> for NoiseSecretError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// The progress of a study, by the journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// The number of data steps that were answered.
    pub(super) answered: u32,
    /// Whether the study asks nothing any more.
    pub(super) is_over: bool,
}

/// A study's sector.
struct Sector {
    /// The number of data steps that were answered.
    step: u32,
    /// The secret of the next data step; `None`, and zeros in the file, if there is none.
    secret: Option<NoiseSecret>,
}

/// The secrets of the noise of all studies in a state folder.
pub(super) struct NoiseSecrets {
    storage: Box<dyn Storage>,
    /// Whether a write has failed, so that the state of the disk is unknown.
    failed: bool,
}

impl NoiseSecrets {
    pub(super) fn new(storage: Box<dyn Storage>) -> Self {
        let failed = false;
        Self { storage, failed }
    }

    /// Returns the secrets in a file as they are now.
    pub(super) fn copy_of(file: &dyn Storage) -> io::Result<Self> {
        let mut bytes = Zeroizing::new(vec![0; file.len()? as usize]);
        file.read(0, &mut bytes)?;
        let copy = MemoryStorage::default();
        copy.write(0, &bytes)?;
        Ok(Self::new(Box::new(copy)))
    }

    /// Returns whether the file is still what the next process will find.
    pub(super) fn is_in_place(&self) -> io::Result<bool> {
        self.storage.is_in_place()
    }

    /// Persists the first secret of a study.
    pub(super) fn begin(
        &mut self,
        study: u32,
        secret: NoiseSecret,
    ) -> Result<(), NoiseSecretError> {
        let (step, secret) = (0, Some(secret));
        self.write(study, &Sector { step, secret })?;
        self.sync()
    }

    /// Erases all secrets, and whatever else the file holds.
    pub(super) fn erase_all(&mut self, studies: &[Progress]) -> Result<(), NoiseSecretError> {
        let zeros = vec![0; self.storage.len()? as usize];
        self.storage.write(0, &zeros)?;
        for (study, progress) in (0..).zip(studies) {
            let (step, secret) = (progress.answered, None);
            self.write(study, &Sector { step, secret })?;
        }
        self.sync()
    }

    /// Returns the secret of a study's next data step; `None` if it was erased.
    pub(super) fn secret(&self, study: u32) -> Result<Option<NoiseSecret>, NoiseSecretError> {
        Ok(self.sector(study)?.secret)
    }

    /// Catches up with the journal, and persists the result.
    // Privacy: the journal holds every answer that is skipped, so none of them is drawn again.
    pub(super) fn advance(
        &mut self,
        study: u32,
        progress: Progress,
    ) -> Result<(), NoiseSecretError> {
        self.catch_up(study, progress)?;
        self.sync()
    }

    /// Catches up with the journal in all studies, and persists the result.
    ///
    /// What was written last is written again: a sync that failed may have left it in the memory of the operating system alone.
    pub(super) fn advance_all(&mut self, studies: &[Progress]) -> Result<(), NoiseSecretError> {
        self.check_all(studies)?;
        for (study, progress) in (0..).zip(studies) {
            self.catch_up(study, *progress)?;
        }
        self.sync()
    }

    /// Checks that nothing is missing or damaged, or ahead of the journal.
    pub(super) fn check_all(&self, studies: &[Progress]) -> Result<(), NoiseSecretError> {
        for (study, progress) in (0..).zip(studies) {
            self.sector_within(study, *progress)?;
        }
        // A study whose start was interrupted has its first secret, and no record in the journal.
        let count = studies.len() as u32;
        for study in count..(self.storage.len()? / SECTOR as u64) as u32 {
            match self.read(study)? {
                Some(sector) if sector.step > 0 || study > count => {
                    let answered = sector.step;
                    return Err(NoiseSecretError::Ahead { study, answered });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn catch_up(&mut self, study: u32, progress: Progress) -> Result<(), NoiseSecretError> {
        let mut sector = self.sector_within(study, progress)?;
        while sector.step < progress.answered {
            if let Some(secret) = &mut sector.secret {
                secret.advance();
            }
            sector.step += 1;
        }
        if progress.is_over {
            sector.secret = None;
        }
        self.write(study, &sector)
    }

    /// Reads a study's sector, which must not be ahead of the journal.
    fn sector_within(&self, study: u32, progress: Progress) -> Result<Sector, NoiseSecretError> {
        let sector = self.sector(study)?;
        let answered = sector.step;
        match answered > progress.answered {
            true => Err(NoiseSecretError::Ahead { study, answered }),
            false => Ok(sector),
        }
    }

    fn sector(&self, study: u32) -> Result<Sector, NoiseSecretError> {
        self.read(study)?.ok_or(NoiseSecretError::Damaged(study))
    }

    /// Reads a study's sector; `None` if nothing was ever written there.
    fn read(&self, study: u32) -> Result<Option<Sector>, NoiseSecretError> {
        let sector = self.decode(study);
        zeroize_stack::<WIPED_STACK>();
        sector
    }

    // A function of its own, so that what it leaves on the stack is below its caller's part, and can be wiped.
    #[inline(never)]
    fn decode(&self, study: u32) -> Result<Option<Sector>, NoiseSecretError> {
        let at = u64::from(study) * SECTOR as u64;
        if self.storage.len()? < at + SECTOR as u64 {
            return Ok(None);
        }
        let mut bytes = Zeroizing::new([0; SECTOR]);
        self.storage.read(at, &mut *bytes)?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let decode = || {
            let mut head = ByteReader(&bytes[..SECRET.start]);
            let (mark, number, step) = (head.array()?, head.u32()?, head.u32()?);
            // Not moved out of the sector, which is wiped.
            let (secret, rest) = bytes[SECRET.start..].split_first_chunk::<32>()?;
            let (check, rest) = rest.split_first_chunk::<32>()?;
            let is_right = mark == MARK
                && number == study
                && *check == <[u8; 32]>::from(Sha256::digest(&bytes[..CHECKED]))
                && rest.iter().all(|byte| *byte == 0);
            let secret = (*secret != [0; 32]).then(|| NoiseSecret::copy_of(secret));
            is_right.then_some(Sector { step, secret })
        };
        decode().map(Some).ok_or(NoiseSecretError::Damaged(study))
    }

    fn write(&mut self, study: u32, sector: &Sector) -> Result<(), NoiseSecretError> {
        let written = self.encode(study, sector);
        zeroize_stack::<WIPED_STACK>();
        written
    }

    // So is this one.
    #[inline(never)]
    fn encode(&mut self, study: u32, sector: &Sector) -> Result<(), NoiseSecretError> {
        if self.failed {
            return Err(NoiseSecretError::Disk(io::Error::other(
                "an earlier write failed",
            )));
        }
        let mut bytes = Zeroizing::new([0; SECTOR]);
        bytes[..8].copy_from_slice(&MARK);
        bytes[8..12].copy_from_slice(&study.to_le_bytes());
        bytes[12..16].copy_from_slice(&sector.step.to_le_bytes());
        if let Some(secret) = &sector.secret {
            bytes[SECRET].copy_from_slice(secret.bytes());
        }
        let check = Sha256::digest(&bytes[..CHECKED]);
        bytes[CHECKED..CHECKED + 32].copy_from_slice(&check);
        self.failed = true;
        self.storage
            .write(u64::from(study) * SECTOR as u64, &*bytes)?;
        self.failed = false;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), NoiseSecretError> {
        self.failed = true;
        self.storage.sync()?;
        self.failed = false;
        Ok(())
    }
}
