//! Where bytes stay.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Something like a file, that one process has.
pub(crate) trait Medium: Send {
    /// How many bytes there are.
    fn len(&self) -> io::Result<u64>;

    /// Reads as many as there is room for.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes all, beyond the end too.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// When this returns, everything that was written is there after a power failure.
    fn sync(&self) -> io::Result<()>;
}

/// A file that is locked as long as this lives.
pub(super) struct Locked(File);

impl Locked {
    /// `None` if another process has it.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        Self::hold(File::options().read(true).write(true).open(path)?)
    }

    /// The same with a new one.
    pub(super) fn create(path: &Path) -> io::Result<Option<Self>> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        // It is going to hold the secret of noise.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Self::hold(options.open(path)?)
    }

    fn hold(file: File) -> io::Result<Option<Self>> {
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            // Two processes with one state would answer twice: a file system without locks is no place for it.
            Err(TryLockError::Error(error)) => Err(io::Error::new(
                error.kind(),
                format!("it cannot be locked ({error}); put the state onto a local disk"),
            )),
        }
    }
}

impl Medium for Locked {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let mut file = &self.0;
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(into)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = &self.0;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
