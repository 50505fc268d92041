//! The file of encoded rows that do not fit in memory.
//!
//! It has no name: nobody else can open it, and the operating system frees it when the process ends, however it ends. It is read
//! at positions and not mapped into memory, because the bytes of a map can change while they are used, which only unsafe code can
//! promise to live with. Pages that were read stay in the operating system's cache as long as it has memory to spare.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use radmm::curator::{ChunkStorage, PassFailed, RowMemory};

/// Returns memory for so many bytes of encoded rows. Rows beyond it are stored in a file without a name in this folder.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// use radmm_data::{PartitionSpec, Split, row_memory};
///
/// let memory = row_memory(4_000_000_000, &std::env::temp_dir())?;
/// let spec = PartitionSpec::new(&Split::RoundRobin, 1).within(&memory);
/// # Ok(())
/// # }
/// ```
// Privacy: the file holds rows as they are. It is as sensitive as the table that they came from, and readable by its owner alone.
pub fn row_memory(bytes: u64, folder: &Path) -> io::Result<RowMemory> {
    let file = tempfile::tempfile_in(folder)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    let file = OverflowFile {
        file,
        folder: folder.to_owned(),
        end: Mutex::new(0),
    };
    Ok(RowMemory::new(bytes, Box::new(file)))
}

struct OverflowFile {
    file: File,
    folder: PathBuf,
    /// The number of bytes so far.
    end: Mutex<u64>,
}

impl OverflowFile {
    fn failed(&self, what: &str, cause: &io::Error, advice: &str) -> PassFailed {
        let folder = self.folder.display();
        PassFailed::new(format!("cannot {what} {folder}: {cause}; {advice}"))
    }
}

impl ChunkStorage for OverflowFile {
    fn append(&self, bytes: &[u8]) -> Result<u64, PassFailed> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        write_at(&self.file, bytes, *end).map_err(|cause| {
            self.failed(
                "store the rows beyond the memory limit in",
                &cause,
                "make room there, name another folder, or allow more memory",
            )
        })?;
        let position = *end;
        *end += bytes.len() as u64;
        Ok(position)
    }

    fn read(&self, position: u64, buffer: &mut [u8]) -> Result<(), PassFailed> {
        read_at(&self.file, buffer, position).map_err(|cause| {
            let advice = "check the disk, and start again";
            self.failed("read the rows stored in", &cause, advice)
        })
    }
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], position: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, position)
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, position)
}

/// Keeps threads from moving the file's cursor while another one uses it.
#[cfg(not(unix))]
static CURSOR: Mutex<()> = Mutex::new(());

#[cfg(not(unix))]
fn write_at(mut file: &File, bytes: &[u8], position: u64) -> io::Result<()> {
    use io::{Seek, SeekFrom, Write};
    let _held = CURSOR.lock().unwrap_or_else(PoisonError::into_inner);
    file.seek(SeekFrom::Start(position))?;
    file.write_all(bytes)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, buffer: &mut [u8], position: u64) -> io::Result<()> {
    use io::{Read, Seek, SeekFrom};
    let _held = CURSOR.lock().unwrap_or_else(PoisonError::into_inner);
    file.seek(SeekFrom::Start(position))?;
    file.read_exact(buffer)
}
