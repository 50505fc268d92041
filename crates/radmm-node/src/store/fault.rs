//! A disk whose power fails.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use rand::{Rng, RngExt};
use redb::StorageBackend;

/// What is on a disk: what was synchronised, and what was written since and may or may not be there after a power failure.
#[derive(Debug, Default)]
struct Image {
    durable: Vec<u8>,
    since: Vec<Change>,
    now: Vec<u8>,
    /// How many more operations succeed; `None` for all.
    left: Option<u32>,
    /// What the next operations fail with.
    full: bool,
}

#[derive(Clone, Debug)]
enum Change {
    Length(usize),
    Write(usize, Vec<u8>),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Length(length) => bytes.resize(*length, 0),
            Self::Write(at, data) => {
                let end = at + data.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*at..end].copy_from_slice(data);
            }
        }
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

    /// One byte is another one.
    pub(crate) fn damage(&self, at: usize, with: u8) {
        let mut image = self.image();
        let length = image.durable.len();
        image.durable[at % length] ^= with;
        image.now = image.durable.clone();
        image.since.clear();
    }

    /// The disk as it may be found after the power failed: what was synchronised is there; of what came after, any part may be,
    /// in any order, and the last of a write may be missing.
    pub(crate) fn after_power_failure(&self, rng: &mut impl Rng) -> Self {
        let image = self.image();
        let mut bytes = image.durable.clone();
        for change in &image.since {
            match (rng.random_range(0..3), change) {
                (0, _) => {}
                (1, Change::Write(at, data)) => {
                    let kept = rng.random_range(0..=data.len());
                    Change::Write(*at, data[..kept].to_vec()).apply(&mut bytes);
                }
                _ => change.apply(&mut bytes),
            }
        }
        Self::holding(bytes)
    }

    /// The disk as another process finds it after this one was killed: everything that was written is there.
    pub(crate) fn after_kill(&self) -> Self {
        Self::holding(self.image().now.clone())
    }

    fn holding(bytes: Vec<u8>) -> Self {
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

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.image().now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let image = self.image();
        let at = offset as usize;
        let found = image.now.get(at..at + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut image = self.image();
        image.operate()?;
        let change = Change::Length(len as usize);
        change.apply(&mut image.now);
        image.since.push(change);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut image = self.image();
        image.operate()?;
        image.durable = image.now.clone();
        image.since.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut image = self.image();
        image.operate()?;
        let change = Change::Write(offset as usize, data.to_vec());
        change.apply(&mut image.now);
        image.since.push(change);
        Ok(())
    }
}
