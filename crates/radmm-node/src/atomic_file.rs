//! Files that readers see complete or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that appears under its name only when it is complete.
///
/// Contents are written to a temporary file beside it. [`commit`](Self::commit) renames it into place. Without a commit, the
/// temporary file is removed on drop and an earlier file stays.
pub struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    writer: BufWriter<File>,
    committed: bool,
}

impl AtomicFile {
    /// Creates the temporary file.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let temporary = path.with_file_name(name);
        Ok(Self {
            writer: BufWriter::new(File::create(&temporary)?),
            path: path.to_owned(),
            temporary,
            committed: false,
        })
    }

    /// Syncs the file to the disk and renames it into place.
    pub fn commit(mut self) -> io::Result<()> {
        self.writer.flush()?;
        self.writer.get_ref().sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        self.committed = true;
        // The rename must reach the disk too. Not every system opens folders.
        #[cfg(unix)]
        if let Some(folder) = self.path.parent().filter(|folder| folder.is_dir()) {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.committed {
            // There is an earlier error to report.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_when_it_is_committed_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        file.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
