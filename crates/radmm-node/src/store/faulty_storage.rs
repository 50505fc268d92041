//! A disk in memory whose power fails, for tests.

use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};

use rand::{Rng, RngExt};

use super::storage::Storage;

/// The bytes of a disk: those that are durable, and the writes since, which may or may not survive a power failure.
#[derive(Debug, Default)]
struct Image {
    durable: Vec<u8>,
    since: Vec<Write>,
    /// The writes before a failed sync: the operating system takes them for written, and does not try again.
    lost: Vec<Write>,
    now: Vec<u8>,
    /// The number of syncs that succeeded.
    syncs: u32,
    /// The number of operations that still succeed; `None` for all.
    operations_left: Option<u32>,
    /// Whether there is no room.
    full: bool,
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

    /// Lets all operations succeed again.
    pub(crate) fn heal(&self) {
        self.image().operations_left = None;
    }

    /// Returns whether everything that was written is durable.
    pub(crate) fn is_synced(&self) -> bool {
        self.image().since.is_empty()
    }

    /// Returns the number of syncs that succeeded.
    pub(crate) fn syncs(&self) -> u32 {
        self.image().syncs
    }

    /// Returns the bytes as a reader sees them.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.image().now.clone()
    }

    /// Returns the end of the last sector that is not all zeros.
    pub(crate) fn used(&self) -> usize {
        let image = self.image();
        let last = image.now.iter().rposition(|byte| *byte != 0);
        last.map_or(0, |last| (last + 1).next_multiple_of(SECTOR))
    }

    /// Flips bits of one byte.
    pub(crate) fn damage(&self, at: usize, with: u8) {
        let mut image = self.image();
        image.now[at] ^= with;
        image.durable = image.now.clone();
        image.since.clear();
        image.lost.clear();
    }

    /// Returns the disk as it may be after a power failure: durable bytes, and any of the sectors that were written since.
    pub(crate) fn after_power_failure(&self, rng: &mut impl Rng) -> Self {
        let image = self.image();
        let mut bytes = image.durable.clone();
        let luck = rng.random_range(0.0..=1.0);
        for write in image.lost.iter().chain(&image.since) {
            for sector in write.sectors() {
                if rng.random_bool(luck) {
                    sector.apply(&mut bytes);
                }
            }
        }
        Self::holding(bytes)
    }

    /// Returns the disk as another process finds it after this one was killed: everything that was written, durable only as far as
    /// it was synced.
    pub(crate) fn after_kill(&self) -> Self {
        let image = self.image();
        Self(Arc::new(Mutex::new(Image {
            durable: image.durable.clone(),
            since: image.since.clone(),
            lost: image.lost.clone(),
            now: image.now.clone(),
            ..Image::default()
        })))
    }

    pub(crate) fn holding(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Image {
            durable: bytes.clone(),
            now: bytes,
            ..Image::default()
        })))
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
        Ok(())
    }
}

impl Storage for FaultyDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.image().now.len() as u64)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let image = self.image();
        let at = at as usize;
        let found = image.now.get(at..at + into.len());
        into.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut image = self.image();
        image.operate()?;
        let write = Write {
            at: at as usize,
            data: bytes.to_vec(),
        };
        write.apply(&mut image.now);
        image.since.push(write);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut image = self.image();
        let operated = image.operate();
        let since = mem::take(&mut image.since);
        match operated {
            Ok(()) => {
                image.syncs += 1;
                for write in &since {
                    write.apply(&mut image.durable);
                }
            }
            Err(_) => image.lost.extend(since),
        }
        operated
    }
}
