//! The storage under a journal.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use zeroize::Zeroizing;

/// A file, or something like it, that one process has open.
pub(crate) trait Storage: Send {
    /// Returns the number of bytes.
    fn len(&self) -> io::Result<u64>;

    /// Fills a buffer with the bytes at a position.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes bytes at a position, which may be beyond the end.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything that was written durable: when this returns, it survives a power failure.
    fn sync(&self) -> io::Result<()>;

    /// Returns whether this is still what the next process will find: nobody has deleted or replaced it.
    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }

    /// Returns a number that no copy of this has on the same disk; `None` if it has no such number.
    fn inode(&self) -> io::Result<Option<u64>> {
        Ok(None)
    }
}

/// Storage that is forgotten with the process. It is wiped when it is dropped, since it may hold secrets.
#[derive(Default)]
pub(super) struct MemoryStorage(Mutex<Zeroizing<Vec<u8>>>);

impl MemoryStorage {
    fn bytes(&self) -> io::Result<MutexGuard<'_, Zeroizing<Vec<u8>>>> {
        let poisoned = |_| io::Error::other("a thread failed while it wrote");
        self.0.lock().map_err(poisoned)
    }
}

impl Storage for MemoryStorage {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes()?.len() as u64)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes()?;
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let found = bytes.get(start..).and_then(|tail| tail.get(..into.len()));
        into.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, at: u64, new: &[u8]) -> io::Result<()> {
        let mut bytes = self.bytes()?;
        let start = usize::try_from(at).map_err(io::Error::other)?;
        let end = start + new.len();
        if bytes.len() < end {
            let mut longer = Zeroizing::new(vec![0; end]);
            longer[..bytes.len()].copy_from_slice(&bytes);
            // The shorter one is wiped.
            *bytes = longer;
        }
        bytes[start..end].copy_from_slice(new);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The number of times that a lock is tried, and the time between them.
const LOCK_TRIES: u32 = 4;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A file in a state folder. A lock on it ends when this is dropped.
pub(super) struct StateFile {
    file: File,
    path: PathBuf,
}

impl StateFile {
    /// Opens a file for reading alone, whoever has locked it.
    pub(super) fn open_read_only(path: &Path) -> io::Result<Self> {
        Ok(Self::new(File::open(path)?, path))
    }

    /// Opens a file.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        Ok(Self::new(file, path))
    }

    /// Opens and locks a file; `None` if another process holds the lock.
    pub(super) fn open_locked(path: &Path) -> io::Result<Option<Self>> {
        Self::open(path)?.lock()
    }

    /// Creates a file, for its owner only.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self::new(options.open(path)?, path))
    }

    /// Creates and locks a file.
    pub(super) fn create_locked(path: &Path) -> io::Result<Option<Self>> {
        Self::create(path)?.lock()
    }

    /// Returns a file without its lock, for tests with files that cannot be locked.
    #[cfg(test)]
    pub(super) fn unlocked(file: File) -> Self {
        Self::new(file, Path::new("unnamed"))
    }

    fn new(file: File, path: &Path) -> Self {
        let path = path.to_owned();
        Self { file, path }
    }

    fn lock(self) -> io::Result<Option<Self>> {
        let mut tries = 1;
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(Some(self)),
                // Whoever asks whether it is locked holds it for a moment.
                Err(TryLockError::WouldBlock) if tries < LOCK_TRIES => {
                    tries += 1;
                    thread::sleep(LOCK_PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(no_locks(&error)),
            }
        }
    }

    /// Returns whether another process has locked the file.
    pub(super) fn is_locked(&self) -> io::Result<bool> {
        match self.file.try_lock_shared() {
            Ok(()) => self.file.unlock().map(|()| false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(no_locks(&error)),
        }
    }
}

/// Two processes with one state would answer twice, so the file system must have locks.
fn no_locks(error: &io::Error) -> io::Error {
    let what = format!("it cannot be locked ({error}); put the state onto a local disk");
    io::Error::new(error.kind(), what)
}

impl Storage for StateFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(into)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    #[cfg(unix)]
    fn inode(&self) -> io::Result<Option<u64>> {
        use std::os::unix::fs::MetadataExt;
        Ok(Some(self.file.metadata()?.ino()))
    }

    #[cfg(not(unix))]
    fn is_in_place(&self) -> io::Result<bool> {
        self.path.try_exists()
    }

    #[cfg(unix)]
    fn is_in_place(&self) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let held = self.file.metadata()?;
        match std::fs::metadata(&self.path) {
            Ok(named) => Ok((held.dev(), held.ino()) == (named.dev(), named.ino())),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(false),
                _ => Err(error),
            },
        }
    }
}
