//! The rows of a party, read from its own file or from the study's table.

use std::fs::File;
use std::io::{self, Cursor, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use radmm::curator::HeldRows;
use radmm::graph::NodeId;
use radmm_data::{
    DataError, FileOptions, Format, MemoryTable, Partition, PartitionSpec, Split, TableFile,
    TableStream, read_partition,
};
use radmm_study::number_format::count;
use radmm_study::rows::{StudyRows, StudyRowsError};
use radmm_study::{RowCommand, RowSource, SiteRows, Study};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::DataCheck;
use super::command::{CommandOutput, ReadingObserver, RowCommandError};

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
    /// The file cannot be opened.
    #[error("{}: {cause}; [data] path is relative to the site file", path.display())]
    Open {
        /// The file.
        path: PathBuf,
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
    /// The share is empty.
    #[error("{0} has no rows: its share of the study's table is empty")]
    Empty(String),
}

impl LocalRows {
    /// Reads the rows that a site file names.
    pub(super) fn read(
        study: &Study,
        site: &SiteRows,
        folders: Folders<'_>,
        me: NodeId,
        observer: &dyn ReadingObserver,
    ) -> Result<Self, RowsError> {
        match site {
            SiteRows::File { path, options } => {
                let path = folders.site.join(path);
                let open = |cause| RowsError::Open {
                    path: path.clone(),
                    cause,
                };
                let opened = File::open(&path).map_err(open)?;
                let kind = opened.metadata().map_err(open)?.file_type();
                if !kind.is_file() && !kind.is_dir() {
                    return Self::read_once(study, me, opened, &path, *options);
                }
                let hash = hash_of(&path).map_err(open)?;
                let file = TableFile::open(&path, *options).map_err(open)?;
                let spec = PartitionSpec::new(&Split::RoundRobin, 1);
                let partition = read_partition(file, &study.data.schema, spec)?;
                if hash_of(&path).map_err(open)? != hash {
                    return Err(RowsError::Changed(path));
                }
                let rows = Self::new(study, partition, hash)?;
                rows.check_declared(study, me, path)?;
                Ok(rows)
            }
            SiteRows::Command { command, options } => {
                let mut output = CommandOutput::start(command, folders.site, observer)?;
                let name = format!("the output of {}", output.program());
                let rows = Self::read_once(study, me, &mut output, Path::new(&name), *options);
                // Rows that end where the command failed are not what is wrong.
                match output.take_failure() {
                    Some(failure) => Err(failure.into()),
                    None => rows,
                }
            }
            SiteRows::Stdin { .. } if io::stdin().is_terminal() => Err(RowsError::Terminal),
            SiteRows::Stdin { options } => {
                let (stdin, name) = (io::stdin().lock(), Path::new("stdin"));
                Self::read_once(study, me, stdin, name, *options)
            }
            SiteRows::Share => Self::share(study, folders, me),
        }
    }

    /// Reads the rows from a source that yields its bytes once; `path` is its name in messages.
    fn read_once(
        study: &Study,
        me: NodeId,
        mut source: impl Read,
        path: &Path,
        options: FileOptions,
    ) -> Result<Self, RowsError> {
        let failed = |cause| RowsError::Open {
            path: path.to_owned(),
            cause,
        };
        let mut start = Vec::new();
        let first = source.by_ref().take(PARQUET.len() as u64);
        { first }.read_to_end(&mut start).map_err(failed)?;
        if start == PARQUET || options.format == Some(Format::Parquet) {
            return Err(RowsError::ParquetPipe(path.to_owned()));
        }
        let mut source = HashingReader {
            source: Cursor::new(start).chain(source),
            hash: Sha256::new(),
        };
        let stream = TableStream::new(&mut source, path.display().to_string(), options);
        let spec = PartitionSpec::new(&Split::RoundRobin, 1);
        let partition = read_partition(stream, &study.data.schema, spec)?;
        io::copy(&mut source, &mut io::sink()).map_err(failed)?;
        let rows = Self::new(study, partition, source.hash.finalize().into())?;
        rows.check_declared(study, me, path.to_owned())?;
        Ok(rows)
    }

    /// Reads the rows of a table in memory.
    pub(super) fn from_memory(study: &Study, table: &MemoryTable<'_>) -> Result<Self, RowsError> {
        let hash = hash_of_memory(table);
        let spec = PartitionSpec::new(&Split::RoundRobin, 1);
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

    /// Reads the party's share of the study's own table.
    fn share(study: &Study, folders: Folders<'_>, me: NodeId) -> Result<Self, RowsError> {
        let mut hash = Sha256::new();
        hash.update(b"radmm share v1\0");
        hash.update(me.0.to_le_bytes());
        let data = serde_json::to_string(&(&study.data, study.network.nodes));
        hash.update(data.unwrap_or_default());
        if let RowSource::File(name) = &study.data.source {
            let path = folders.study.join(name);
            let bytes = hash_of(&path).map_err(|cause| {
                RowsError::Table(StudyRowsError::Open {
                    path,
                    key: "[data] path",
                    cause,
                })
            })?;
            hash.update(bytes);
        }
        let table = StudyRows::read(study, folders.study)?;
        let rows = table.parties.into_iter().nth(me.0 as usize);
        let shard = rows.and_then(|rows| Arc::into_inner(rows.shard));
        Ok(Self {
            rows: shard
                .ok_or_else(|| RowsError::Empty(me.to_string()))?
                .into(),
            hash: hash.finalize().into(),
            data_check: None,
        })
    }
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
        (Err(cause), None) => Err(RowsError::Open {
            path: PathBuf::from(&command.program),
            cause,
        }),
        (Ok(_), None) => Ok(output.hash.finalize().into()),
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

fn hash_of(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; HASH_BLOCK];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash.finalize().into()),
            count => hash.update(&buffer[..count]),
        }
    }
}
