//! A disk whose power fails.

use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};

use rand::{Rng, RngExt};

use super::storage::Medium;

/// What is on a disk: what was synchronised, and what was written since and may or may not be there after a power failure.
#[derive(Debug, Default)]
struct Image {
    durable: Vec<u8>,
    since: Vec<Change>,
    /// What was written before an attempt to synchronise that failed: the operating system takes it for written, and does not try
    /// again.
    given_up: Vec<Change>,
    now: Vec<u8>,
    /// How many more operations succeed; `None` for all.
    left: Option<u32>,
    /// What the next operations fail with.
    full: bool,
}

/// A write.
#[derive(Clone, Debug)]
struct Change {
    at: usize,
    data: Vec<u8>,
}

/// What a disk writes in one go.
const SECTOR: usize = 512;

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let end = self.at + self.data.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[self.at..end].copy_from_slice(&self.data);
    }

    /// The sectors that it changes, each as a write of its own.
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

/// A disk in memory; clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<Mutex<Image>>);

impl Disk {
    fn image(&self) -> MutexGuard<'_, Image> {
        self.0.lock().unwrap()
    }

    /// From now on so many writes succeed, and none after them.
    pub(crate) fn fail_after(&self, operations: u32) {
        self.image().left = Some(operations);
    }

    /// From now on there is no room.
    pub(crate) fn fill(&self) {
        self.image().full = true;
    }

    /// Everything succeeds again.
    pub(crate) fn heal(&self) {
        self.image().left = None;
    }

    /// Whether everything that was written would be there after a power failure.
    pub(crate) fn is_synced(&self) -> bool {
        self.image().since.is_empty()
    }

    /// What is on it now.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.image().now.clone()
    }

    /// The end of the last sector that is not empty.
    pub(crate) fn used(&self) -> usize {
        let image = self.image();
        let last = image.now.iter().rposition(|byte| *byte != 0);
        last.map_or(0, |last| (last + 1).next_multiple_of(SECTOR))
    }

    /// One byte is another one.
    pub(crate) fn damage(&self, at: usize, with: u8) {
        let mut image = self.image();
        image.now[at] ^= with;
        image.durable = image.now.clone();
        image.since.clear();
        image.given_up.clear();
    }

    /// The disk as it may be found after the power failed: what was synchronised is there; of the sectors that were written after,
    /// any may be.
    pub(crate) fn after_power_failure(&self, rng: &mut impl Rng) -> Self {
        let image = self.image();
        let mut bytes = image.durable.clone();
        let luck = rng.random_range(0.0..=1.0);
        for change in image.given_up.iter().chain(&image.since) {
            for sector in change.sectors() {
                if rng.random_bool(luck) {
                    sector.apply(&mut bytes);
                }
            }
        }
        Self::holding(bytes)
    }

    /// The disk as another process finds it after this one was killed: everything that was written is there, but would not outlast
    /// a power failure if it was not synchronised.
    pub(crate) fn after_kill(&self) -> Self {
        let image = self.image();
        Self(Arc::new(Mutex::new(Image {
            durable: image.durable.clone(),
            since: image.since.clone(),
            given_up: image.given_up.clone(),
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
        match &mut self.left {
            Some(0) => return Err(io::Error::other("the power failed")),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }
}

impl Medium for Disk {
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
        let change = Change {
            at: at as usize,
            data: bytes.to_vec(),
        };
        change.apply(&mut image.now);
        image.since.push(change);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut image = self.image();
        let operated = image.operate();
        let since = mem::take(&mut image.since);
        match operated {
            Ok(()) => since
                .iter()
                .for_each(|change| change.apply(&mut image.durable)),
            Err(_) => image.given_up.extend(since),
        }
        operated
    }
}
