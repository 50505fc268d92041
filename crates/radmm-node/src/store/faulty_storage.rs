//! A disk in memory whose power fails, for tests. It holds a journal and the noise secrets beside it.

use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};

use rand::{Rng, RngExt};

use super::storage::Storage;

/// A disk: its two files, and its faults.
#[derive(Debug, Default)]
struct Image {
    journal: FileImage,
    secrets: FileImage,
    /// The number of syncs that succeeded.
    syncs: u32,
    /// The number of operations that succeeded.
    operations: u32,
    /// The number of operations that still succeed; `None` for all.
    operations_left: Option<u32>,
    /// Whether there is no room.
    full: bool,
    /// The position in a file beyond which nothing can be written, if there is one.
    limit: Option<usize>,
    /// Whether the files were deleted or moved under the process that has them open.
    is_taken_away: bool,
}

/// The bytes of a file: those that are durable, and the writes since, which may or may not survive a power failure.
#[derive(Clone, Debug, Default)]
struct FileImage {
    durable: Vec<u8>,
    since: Vec<Write>,
    /// The writes before a failed sync: the operating system takes them for written, and does not try again.
    lost: Vec<Write>,
    now: Vec<u8>,
}

/// A write.
#[derive(Clone, Debug)]
struct Write {
    at: usize,
    data: Vec<u8>,
}

/// The number of bytes that a disk writes in one go.
const SECTOR: usize = 512;

impl Write {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let end = self.at + self.data.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[self.at..end].copy_from_slice(&self.data);
    }

    /// Returns the sectors that are written, each as a write of its own.
    fn sectors(&self) -> Vec<Self> {
        let mut at = self.at;
        let mut rest = &self.data[..];
        let mut sectors = Vec::new();
        while !rest.is_empty() {
            let length = (SECTOR - at % SECTOR).min(rest.len());
            let (data, after) = rest.split_at(length);
            let data = data.to_vec();
            sectors.push(Self { at, data });
            at += length;
            rest = after;
        }
        sectors
    }
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultyDisk(Arc<Mutex<Image>>);

impl FaultyDisk {
    fn image(&self) -> MutexGuard<'_, Image> {
        self.0.lock().unwrap()
    }

    /// Lets so many operations succeed, and none after them.
    pub(crate) fn fail_after(&self, operations: u32) {
        self.image().operations_left = Some(operations);
    }

    /// Fails all operations from now on because the disk is full.
    pub(crate) fn fill(&self) {
        self.image().full = true;
    }

    /// Ends all writes at a position of their file, which may be within a sector.
    pub(crate) fn limit(&self, position: usize) {
        self.image().limit = Some(position);
    }

    /// Deletes or moves the files under the process that has them open.
    pub(crate) fn take_away(&self) {
        self.image().is_taken_away = true;
    }

    /// Lets all operations succeed again.
    pub(crate) fn heal(&self) {
        let mut image = self.image();
        image.operations_left = None;
        image.limit = None;
    }

    /// Returns whether everything that was written is durable.
    pub(crate) fn is_synced(&self) -> bool {
        let image = self.image();
        image.journal.since.is_empty() && image.secrets.since.is_empty()
    }

    /// Returns the number of syncs that succeeded.
    pub(crate) fn syncs(&self) -> u32 {
        self.image().syncs
    }

    /// Returns the number of operations that succeeded.
    pub(crate) fn operations(&self) -> u32 {
        self.image().operations
    }

    /// Returns the bytes of the journal as a reader sees them.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.image().journal.now.clone()
    }

    /// Returns the bytes of both files, durable or not, and of every write that may be on the disk.
    pub(crate) fn everything(&self) -> Vec<Vec<u8>> {
        let image = self.image();
        let files = [&image.journal, &image.secrets];
        let bytes = files.iter().flat_map(|file| {
            let writes = file.since.iter().chain(&file.lost);
            let writes = writes.map(|write| write.data.clone());
            writes.chain([file.now.clone(), file.durable.clone()])
        });
        bytes.collect()
    }

    /// Returns the end of the journal's last sector that is not all zeros.
    pub(crate) fn used(&self) -> usize {
        let image = self.image();
        let last = image.journal.now.iter().rposition(|byte| *byte != 0);
        last.map_or(0, |last| (last + 1).next_multiple_of(SECTOR))
    }

    /// Flips bits of one byte of the journal.
    pub(crate) fn damage(&self, at: usize, with: u8) {
        self.image().journal.damage(at, with);
    }

    /// Flips bits of one byte of the secrets.
    pub(crate) fn damage_secrets(&self, at: usize, with: u8) {
        self.image().secrets.damage(at, with);
    }

    /// Returns the secrets, as a file of their own.
    pub(crate) fn secrets(&self) -> FaultySecrets {
        FaultySecrets(self.clone())
    }

    /// Returns the disk as it may be after a power failure: durable bytes, and any of the sectors that were written since.
    pub(crate) fn after_power_failure(&self, rng: &mut impl Rng) -> Self {
        let image = self.image();
        let luck = rng.random_range(0.0..=1.0);
        Self::of(
            image.journal.after_power_failure(luck, rng),
            image.secrets.after_power_failure(luck, rng),
        )
    }

    /// Returns the disk as another process finds it after this one was killed: everything that was written, durable only as far as
    /// it was synced.
    pub(crate) fn after_kill(&self) -> Self {
        let image = self.image();
        Self::of(image.journal.clone(), image.secrets.clone())
    }

    /// Returns this disk with other bytes in its journal.
    pub(crate) fn with_journal(&self, bytes: Vec<u8>) -> Self {
        Self::of(FileImage::holding(bytes), self.image().secrets.clone())
    }

    /// Returns this disk with another one's secrets.
    pub(crate) fn with_secrets_of(&self, other: &Self) -> Self {
        Self::of(self.image().journal.clone(), other.image().secrets.clone())
    }

    fn of(journal: FileImage, secrets: FileImage) -> Self {
        Self(Arc::new(Mutex::new(Image {
            journal,
            secrets,
            ..Image::default()
        })))
    }
}

impl FileImage {
    fn holding(bytes: Vec<u8>) -> Self {
        Self {
            durable: bytes.clone(),
            now: bytes,
            ..Self::default()
        }
    }

    fn damage(&mut self, at: usize, with: u8) {
        self.now[at] ^= with;
        *self = Self::holding(mem::take(&mut self.now));
    }

    fn after_power_failure(&self, luck: f64, rng: &mut impl Rng) -> Self {
        let mut bytes = self.durable.clone();
        for write in self.lost.iter().chain(&self.since) {
            for sector in write.sectors() {
                if rng.random_bool(luck) {
                    sector.apply(&mut bytes);
                }
            }
        }
        Self::holding(bytes)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let at = at as usize;
        let found = self.now.get(at..at + into.len());
        into.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let write = Write {
            at: at as usize,
            data: bytes.to_vec(),
        };
        write.apply(&mut self.now);
        self.since.push(write);
    }

    fn sync(&mut self, succeeds: bool) {
        let since = mem::take(&mut self.since);
        match succeeds {
            true => since
                .iter()
                .for_each(|write| write.apply(&mut self.durable)),
            false => self.lost.extend(since),
        }
    }
}

impl Image {
    fn operate(&mut self) -> io::Result<()> {
        if self.full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        match &mut self.operations_left {
            Some(0) => return Err(io::Error::other("the power failed")),
            Some(left) => *left -= 1,
            None => {}
        }
        self.operations += 1;
        Ok(())
    }
}

/// The noise secrets on a disk.
pub(crate) struct FaultySecrets(FaultyDisk);

/// Implements storage on one file of a disk.
macro_rules! storage {
    ($type:ty, $disk:ident => $image:expr, $file:ident) => {
        impl Storage for $type {
            fn len(&self) -> io::Result<u64> {
                let $disk = self;
                Ok($image.$file.now.len() as u64)
            }

            fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
                let $disk = self;
                $image.$file.read(at, into)
            }

            fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
                let $disk = self;
                let mut image = $image;
                image.operate()?;
                let room = image
                    .limit
                    .unwrap_or(usize::MAX)
                    .saturating_sub(at as usize);
                image.$file.write(at, &bytes[..bytes.len().min(room)]);
                match bytes.len() <= room {
                    true => Ok(()),
                    false => Err(io::ErrorKind::FileTooLarge.into()),
                }
            }

            fn sync(&self) -> io::Result<()> {
                let $disk = self;
                let mut image = $image;
                let operated = image.operate();
                image.$file.sync(operated.is_ok());
                image.syncs += u32::from(operated.is_ok());
                operated
            }

            fn is_in_place(&self) -> io::Result<bool> {
                let $disk = self;
                Ok(!$image.is_taken_away)
            }
        }
    };
}

storage!(FaultyDisk, disk => disk.image(), journal);
storage!(FaultySecrets, secrets => secrets.0.image(), secrets);
