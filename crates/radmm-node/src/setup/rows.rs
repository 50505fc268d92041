//! The rows of a party, read from its own file or from the study's table.

use std::fs::{self, File};
use std::io::{self, Cursor, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use radmm::curator::{HeldRows, RowMemory, WorkerRows};
use radmm::graph::NodeId;
use radmm_data::{
    DataError, FileOptions, Format, MemoryTable, Partition, PartitionSpec, RowFiles, Split,
    TableFile, TableStream, read_partition, row_memory,
};
use radmm_study::number_format::count;
use radmm_study::rows::{StudyRows, StudyRowsError};
use radmm_study::{RowCommand, RowSource, SiteFile, SiteRows, Study};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::DataCheck;
use super::command::{CommandOutput, ReadingObserver, RowCommandError};
use crate::store::create_folder;

/// The number of bytes that are hashed at a time.
const HASH_BLOCK: usize = 1 << 16;

/// The first bytes of a Parquet file.
const PARQUET: &[u8] = b"PAR1";

/// The rows of a party.
pub(super) struct LocalRows {
    pub rows: HeldRows,
    /// The hash of the file, of what a command printed, or of the study's table and the party's share of it.
    pub hash: [u8; 32],
    /// Counts over the party's own file, for the people who may see it.
    pub data_check: Option<DataCheck>,
}

/// The reason why rows cannot be read.
#[derive(Debug, Error)]
pub enum RowsError {
    /// The rows cannot be opened.
    #[error("{}: {cause}; [data] path is relative to the site file", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The file for rows beyond the limit of memory cannot be created.
    #[error("{}: {cause}; the rows beyond [data] memory are stored in this folder, which {key} names", folder.display())]
    Scratch {
        /// The folder.
        folder: PathBuf,
        /// The key of the site file that names it.
        key: &'static str,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The rows come through a pipe, in a format whose index is at the end of the file.
    #[error("{}: a Parquet file is read from its end, and a pipe cannot be; give a file, or CSV", .0.display())]
    ParquetPipe(PathBuf),
    /// The command that prints the rows failed.
    #[error(transparent)]
    Command(#[from] RowCommandError),
    /// The rows are to come through stdin, and stdin is a terminal.
    #[error(
        "[data] path = \"-\": the rows come through stdin, which is a terminal; give them, as in radmm node … < rows.csv, or give the path of their file"
    )]
    Terminal,
    /// The rows changed while they were read.
    #[error("{}: the rows changed while they were read; start again when nothing writes to them", .0.display())]
    Changed(PathBuf),
    /// The file does not match the study.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The study's own table is missing or does not match the study.
    #[error(transparent)]
    Table(#[from] StudyRowsError),
    /// The file has another number of training rows than the study declares for the party.
    #[error(
        "{}: {}, and the study declares rows = {declared} for {party}; everybody's weights and noise depend on this number. If \
         the file is right, correct rows in the study's [[parties]] and have every party agree on the study again",
        path.display(),
        count(*found, "training row", "training rows")
    )]
    OtherCount {
        /// The file.
        path: PathBuf,
        /// The number of its training rows.
        found: usize,
        /// The number that the study declares.
        declared: usize,
        /// The party.
        party: String,
    },
    /// The party's workers hold rows of another study.
    #[error(
        "{name}: the workers encoded their rows in {found} columns, and the study has {expected}: load them by this study"
    )]
    OtherColumns {
        /// The name of the rows.
        name: String,
        /// The number of columns of the workers' rows.
        found: usize,
        /// The number of columns of the study.
        expected: usize,
    },
    /// The share is empty.
    #[error("{0} has no rows: its share of the study's table is empty")]
    Empty(String),
}

impl RowsError {
    /// Returns the conversion from the error of opening the rows of a site file.
    fn open(path: &Path) -> impl Fn(io::Error) -> Self {
        |cause| Self::Open {
            path: path.to_owned(),
            cause,
        }
    }
}

impl LocalRows {
    /// Reads the rows that a site file names, and stores those that exceed its limit of memory.
    pub(super) fn read(
        study: &Study,
        site: &SiteFile,
        folders: Folders<'_>,
        me: NodeId,
        observer: &dyn ReadingObserver,
    ) -> Result<Self, RowsError> {
        let memory = memory(site, folders)?;
        let reading = Reading {
            study,
            me,
            memory: memory.as_ref(),
        };
        match &site.data.rows {
            SiteRows::File { path, options } => {
                let path = folders.site.join(path);
                let kind = fs::metadata(&path).map(|found| found.file_type());
                if kind.is_ok_and(|kind| !kind.is_file() && !kind.is_dir()) {
                    let opened = File::open(&path).map_err(RowsError::open(&path))?;
                    return reading.read_once(opened, &path, *options);
                }
                let (partition, hash) = read_unchanged(&path, *options, |table| {
                    read_partition(table, &study.data.schema, reading.spec())
                })?;
                let rows = Self::new(study, partition, hash)?;
                rows.check_declared(study, me, path)?;
                Ok(rows)
            }
            SiteRows::Command { command, options } => {
                let mut output = CommandOutput::start(command, folders.site, observer)?;
                let name = format!("the output of {}", output.program());
                let rows = reading.read_once(&mut output, Path::new(&name), *options);
                // Rows that end where the command failed are not what is wrong, unless it prints no text.
                match (rows, output.take_failure()) {
                    (foreign @ Err(RowsError::Data(DataError::Foreign { .. })), _) => foreign,
                    (_, Some(failure)) => Err(failure.into()),
                    (rows, None) => rows,
                }
            }
            SiteRows::Stdin { .. } if io::stdin().is_terminal() => Err(RowsError::Terminal),
            SiteRows::Stdin { options } => {
                let (stdin, name) = (io::stdin().lock(), Path::new("stdin"));
                reading.read_once(stdin, name, *options)
            }
            SiteRows::Share => reading.share(folders),
        }
    }

    /// Takes rows that a program hands over.
    pub(super) fn given(
        study: &Study,
        rows: GivenRows<'_>,
        memory: Option<&RowMemory>,
    ) -> Result<Self, RowsError> {
        let (name, rows, hash) = match rows {
            GivenRows::Memory(table) => return Self::from_memory(study, table, memory),
            GivenRows::Workers { name, rows, hash } => (name, rows, hash),
        };
        let expected = study.data.schema.width();
        match rows.columns() {
            found if found == expected => Ok(Self {
                rows: rows.into(),
                hash,
                data_check: None,
            }),
            found => Err(RowsError::OtherColumns {
                name,
                found,
                expected,
            }),
        }
    }

    /// Reads the rows of a table in memory.
    fn from_memory(
        study: &Study,
        table: &MemoryTable<'_>,
        memory: Option<&RowMemory>,
    ) -> Result<Self, RowsError> {
        let hash = hash_of_memory(table);
        let spec = PartitionSpec {
            memory,
            ..PartitionSpec::new(&Split::RoundRobin, 1)
        };
        let partition = read_partition(table, &study.data.schema, spec)?;
        // Another thread of the program may write to its own tables.
        if hash_of_memory(table) != hash {
            return Err(RowsError::Changed(table.name().into()));
        }
        Self::new(study, partition, hash)
    }

    /// Takes the only part of a partition.
    fn new(study: &Study, partition: Partition, hash: [u8; 32]) -> Result<Self, RowsError> {
        let data_check = DataCheck::new(&partition, &study.data.schema);
        let mut parts = partition.parts.into_iter();
        let part = parts
            .next()
            .ok_or_else(|| RowsError::Empty(study.name.clone()))?;
        Ok(Self {
            rows: part.shard.into(),
            hash,
            data_check: Some(data_check),
        })
    }

    /// Checks that there are as many rows as the study declares for the party; `path` is where they are.
    pub(super) fn check_declared(
        &self,
        study: &Study,
        me: NodeId,
        path: PathBuf,
    ) -> Result<(), RowsError> {
        let party = &study.parties[me.0 as usize];
        let found = self.rows.rows();
        match party.rows.filter(|rows| *rows != found) {
            None => Ok(()),
            Some(declared) => Err(RowsError::OtherCount {
                path,
                found,
                declared,
                party: party.name.clone(),
            }),
        }
    }
}

/// A reading of the rows of one party for a study.
#[derive(Clone, Copy)]
struct Reading<'a> {
    study: &'a Study,
    me: NodeId,
    memory: Option<&'a RowMemory>,
}

impl<'a> Reading<'a> {
    /// Returns the partition of a table whose rows are all this party's.
    fn spec(self) -> PartitionSpec<'a> {
        PartitionSpec {
            memory: self.memory,
            ..PartitionSpec::new(&Split::RoundRobin, 1)
        }
    }

    /// Reads the rows from a source that yields its bytes once; `path` is its name in messages.
    fn read_once(
        self,
        mut source: impl Read,
        path: &Path,
        options: FileOptions,
    ) -> Result<LocalRows, RowsError> {
        let study = self.study;
        let failed = RowsError::open(path);
        let mut start = Vec::new();
        let first = source.by_ref().take(PARQUET.len() as u64);
        { first }.read_to_end(&mut start).map_err(&failed)?;
        if start == PARQUET || options.format == Some(Format::Parquet) {
            return Err(RowsError::ParquetPipe(path.to_owned()));
        }
        let mut source = HashingReader {
            source: Cursor::new(start).chain(source),
            hash: Sha256::new(),
        };
        let stream = TableStream::new(&mut source, path.display().to_string(), options);
        let partition = read_partition(stream, &study.data.schema, self.spec())?;
        io::copy(&mut source, &mut io::sink()).map_err(failed)?;
        let rows = LocalRows::new(study, partition, source.hash.finalize().into())?;
        rows.check_declared(study, self.me, path.to_owned())?;
        Ok(rows)
    }

    /// Reads the party's share of the study's own table.
    fn share(self, folders: Folders<'_>) -> Result<LocalRows, RowsError> {
        let (study, me) = (self.study, self.me);
        let mut hash = Sha256::new();
        hash.update(b"radmm share v1\0");
        hash.update(me.0.to_le_bytes());
        let data = serde_json::to_string(&(&study.data, study.network.nodes));
        hash.update(data.unwrap_or_default());
        if let RowSource::File(name) = &study.data.source {
            let path = folders.study.join(name);
            let hashed = RowFiles::find(&path).and_then(|files| hash_of(&files));
            let bytes = hashed.map_err(|cause| {
                RowsError::Table(StudyRowsError::Open {
                    path,
                    key: "[data] path",
                    cause,
                })
            })?;
            hash.update(bytes);
        }
        let table = StudyRows::read_within(study, folders.study, self.memory)?;
        let rows = table.parties.into_iter().nth(me.0 as usize);
        let shard = rows.and_then(|rows| Arc::into_inner(rows.shard));
        Ok(LocalRows {
            rows: shard
                .ok_or_else(|| RowsError::Empty(me.to_string()))?
                .into(),
            hash: hash.finalize().into(),
            data_check: None,
        })
    }
}

/// Returns the memory for a party's rows, if its site file limits it.
pub(super) fn memory(
    site: &SiteFile,
    folders: Folders<'_>,
) -> Result<Option<RowMemory>, RowsError> {
    let Some(limit) = &site.data.memory else {
        return Ok(None);
    };
    let (folder, key) = match &limit.scratch {
        Some(scratch) => (folders.site.join(scratch), "[data] scratch"),
        None => (folders.site.join(&site.state), "state"),
    };
    let created = match limit.scratch {
        Some(_) => Ok(()),
        None => create_folder(&folder),
    };
    let memory = created.and_then(|()| row_memory(limit.bytes, &folder));
    memory
        .map(Some)
        .map_err(|cause| RowsError::Scratch { folder, key, cause })
}

/// Runs a command once more, and returns the hash of what it prints.
pub(super) fn hash_of_command(
    command: &RowCommand,
    folder: &Path,
    observer: &dyn ReadingObserver,
) -> Result<[u8; 32], RowsError> {
    let mut output = HashingReader {
        source: CommandOutput::start(command, folder, observer)?,
        hash: Sha256::new(),
    };
    match (
        io::copy(&mut output, &mut io::sink()),
        output.source.take_failure(),
    ) {
        (_, Some(failure)) => Err(failure.into()),
        (Err(cause), None) => Err(RowsError::open(Path::new(&command.program))(cause)),
        (Ok(_), None) => Ok(output.hash.finalize().into()),
    }
}

/// Reads files with `read`, and returns their hash. Nobody may write, add or remove any of them meanwhile.
fn read_unchanged<T>(
    path: &Path,
    options: FileOptions,
    read: impl FnOnce(TableFile) -> Result<T, DataError>,
) -> Result<(T, [u8; 32]), RowsError> {
    let found = || RowFiles::find(path).map_err(RowsError::open(path));
    let files = found()?;
    let hash = hash_of(&files).map_err(RowsError::open(path))?;
    let table = TableFile::of(files.clone(), options).map_err(RowsError::open(path))?;
    let rows = read(table)?;
    match found()? == files && hash_of(&files).map_err(RowsError::open(path))? == hash {
        true => Ok((rows, hash)),
        false => Err(RowsError::Changed(path.to_owned())),
    }
}

/// A reader that hashes what is read.
struct HashingReader<R> {
    source: R,
    hash: Sha256,
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

/// Rows that a program hands to a party, in place of those that a site file names.
pub enum GivenRows<'a> {
    /// A table in memory.
    Memory(&'a MemoryTable<'a>),
    /// Rows that the party's workers hold, encoded by the party's study.
    Workers {
        /// Their name in messages.
        name: String,
        /// The rows.
        rows: WorkerRows,
        /// The hash of the files that they were read from: see [`hash_of_files`].
        hash: [u8; 32],
    },
}

impl GivenRows<'_> {
    /// Returns their name in messages.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Memory(table) => table.name(),
            Self::Workers { name, .. } => name,
        }
    }

    /// Returns the number of rows, those with a missing value among them where that is known.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Memory(table) => table.rows(),
            Self::Workers { rows, .. } => rows.rows(),
        }
    }
}

/// Returns the hash by which a party's account knows the rows of files: that of a file's bytes, or of those of several files with
/// their names. It is the same whether the party reads the files itself or hands them to workers, however many there are.
pub fn hash_of_files(path: &Path) -> io::Result<[u8; 32]> {
    hash_of(&RowFiles::find(path)?)
}

/// The folders that paths are relative to.
#[derive(Clone, Copy, Debug)]
pub struct Folders<'a> {
    /// The folder of the study file.
    pub study: &'a Path,
    /// The folder of the site file.
    pub site: &'a Path,
}

fn hash_of_memory(table: &MemoryTable<'_>) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"radmm rows in memory v1\0");
    let mut buffer = Vec::with_capacity(HASH_BLOCK);
    table.each_piece(&mut |piece| {
        buffer.extend_from_slice(piece);
        if buffer.len() >= HASH_BLOCK {
            hash.update(&buffer);
            buffer.clear();
        }
    });
    hash.update(&buffer);
    hash.finalize().into()
}

/// Returns the hash of a file's bytes, or of those of several files with their names.
fn hash_of(files: &RowFiles) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    files.each_piece(&mut |piece| hash.update(piece))?;
    Ok(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use radmm_data::profile;

    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        fs::write(folder.join(name), text).unwrap();
    }

    /// Reads a folder of two files, during which `change` is done to it.
    fn read(change: impl FnOnce(&Path)) -> Result<[u8; 32], RowsError> {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a.csv", "x,y\n1,2\n");
        write(folder.path(), "b.csv", "x,y\n3,4\n");
        let read = read_unchanged(folder.path(), FileOptions::default(), |table| {
            change(folder.path());
            profile(table)
        });
        read.map(|(_, hash)| hash)
    }

    #[test]
    fn a_file_that_is_added_removed_or_written_while_rows_are_read_is_noticed() {
        let unchanged = read(|_| ()).unwrap();
        assert_eq!(
            read(|folder| write(folder, "_notes", "")).unwrap(),
            unchanged
        );
        let changes: [fn(&Path); 4] = [
            |folder| write(folder, "c.csv", "x,y\n5,6\n"),
            |folder| write(folder, "b.csv", "x,y\n3,5\n"),
            |folder| fs::rename(folder.join("a.csv"), folder.join("A.csv")).unwrap(),
            |folder| {
                write(folder, "b.csv", "x,y\n3,4\n");
                fs::create_dir(folder.join("d")).unwrap();
                write(folder, "d/e.csv", "x,y\n");
            },
        ];
        for (k, change) in changes.into_iter().enumerate() {
            let read = read(change);
            let is_noticed = matches!(read, Err(RowsError::Changed(_) | RowsError::Data(_)));
            assert!(is_noticed, "change {k}");
        }
        let removed = read(|folder| fs::remove_file(folder.join("b.csv")).unwrap());
        assert!(matches!(removed, Err(RowsError::Data(_))));
    }

    #[test]
    fn the_hash_of_one_file_is_that_of_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "rows.csv", "x,y\n1,2\n");
        let files = RowFiles::find(&folder.path().join("rows.csv")).unwrap();
        let expected: [u8; 32] = Sha256::digest(b"x,y\n1,2\n").into();
        assert_eq!(hash_of(&files).unwrap(), expected);
        // In a folder it has a name.
        let files = RowFiles::find(folder.path()).unwrap();
        assert_ne!(hash_of(&files).unwrap(), expected);
    }
}
