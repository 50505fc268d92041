//! Rows that the workers of a party hold: what a worker does, and how the party asks its workers.
//!
//! The engine that runs workers is Python's. It carries bytes: it is handed requests with the numbers of workers, and brings replies.
//!
//! Privacy: pieces, chunks and replies are rows or unprotected sums of rows. They stay inside the party.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use radmm::curator::{ChunkHolder, ChunkWorkers, PassFailed, WorkerRequest, WorkerRows};
use radmm_data::{
    FileOptions, Format, PieceCounts, RowFiles, Schema, TableFile, TablePiece, read_pieces,
};
use radmm_node::runtime::forbid_core_dumps;
use radmm_node::setup::{GivenRows, RayonExecutor, hash_of_files};
use radmm_study::Study;
use rayon::ThreadPool;

use crate::background;
use crate::failure::{Failure, guarded};
use crate::one_party::study_of_one_party;
use crate::table::Table;

/// How many seconds to wait for replies between two looks at signals.
const LOOK_EVERY: f64 = 0.1;

/// A piece of files as Python has it: the path, the format, and the number of the row group if there are any.
type Piece = (PathBuf, String, Option<usize>);

/// Counts as Python has them: rows, complete rows, complete rows of the positive class, and the first few labels.
type Counts = (usize, usize, usize, Vec<String>);

/// Returns the absolute path of a file, a folder or a pattern, and the pieces of its files.
#[pyfunction]
pub(crate) fn row_pieces(
    py: Python<'_>,
    path: PathBuf,
    format: Option<String>,
) -> Result<(PathBuf, Vec<Piece>), Failure> {
    guarded(py, || {
        let options = options(format.as_deref())?;
        let failed = |cause| Failure::Data(format!("{}: {cause}", path.display()));
        let path = RowFiles::resolve(&path).map_err(failed)?;
        let pieces = TableFile::open(&path, options).map_err(failed)?.pieces()?;
        let pieces = pieces.into_iter();
        let pieces = pieces.map(|piece| (piece.path, piece.format.name().to_owned(), piece.group));
        Ok((path, pieces.collect()))
    })
}

/// Returns the hash by which an account knows the rows of files.
#[pyfunction]
pub(crate) fn hash_rows<'py>(
    py: Python<'py>,
    path: PathBuf,
) -> Result<Bound<'py, PyBytes>, Failure> {
    let hash = guarded(py, || {
        hash_of_files(&path).map_err(|cause| Failure::Data(format!("{}: {cause}", path.display())))
    })?;
    Ok(PyBytes::new(py, &hash))
}

/// Counts the rows of pieces by the schema of a study; a study of a party `alone` names neither itself nor parties.
#[pyfunction]
pub(crate) fn count_pieces(
    py: Python<'_>,
    study: &str,
    alone: bool,
    pieces: Vec<Piece>,
) -> Result<Vec<Counts>, Failure> {
    guarded(py, || {
        let schema = schema_of(study, alone)?;
        let count = |piece| {
            let counts = piece_of(piece)?.count(&schema, FileOptions::default())?;
            let PieceCounts {
                read,
                complete,
                positive,
                labels,
            } = counts;
            Ok((read, complete, positive, labels))
        };
        pieces.into_iter().map(count).collect()
    })
}

/// Adds up the counts of all pieces; `name` is that of the rows in errors. Unless any labels will do, both classes must be there.
#[pyfunction]
pub(crate) fn total_counts(
    py: Python<'_>,
    study: &str,
    alone: bool,
    counts: Vec<Counts>,
    name: &str,
    any_labels: bool,
) -> Result<Counts, Failure> {
    guarded(py, || {
        let schema = schema_of(study, alone)?;
        let counts = counts.into_iter();
        let counts = counts.map(|(read, complete, positive, labels)| PieceCounts {
            read,
            complete,
            positive,
            labels,
        });
        let total = PieceCounts::total(&counts.collect::<Vec<_>>(), name, &schema)?;
        if !any_labels {
            total.check_classes(name, &schema)?;
        }
        Ok((total.read, total.complete, total.positive, total.labels))
    })
}

/// The chunks that a worker holds.
#[pyclass(frozen, module = "radmm._radmm")]
pub(crate) struct HeldChunks {
    holder: ChunkHolder,
    threads: ThreadPool,
}

#[pymethods]
impl HeldChunks {
    /// The number of rows of every chunk but a party's last one.
    #[classattr]
    const CHUNK_ROWS: usize = ChunkHolder::CHUNK_ROWS;

    /// Reads complete rows `first_row..end_row` of pieces, each of which comes with the number of its complete rows. The first one is
    /// that of chunk `first_chunk` of the party.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        study: &str,
        alone: bool,
        pieces: Vec<(Piece, usize)>,
        first_row: usize,
        end_row: usize,
        first_chunk: usize,
        threads: usize,
    ) -> Result<Self, Failure> {
        // Privacy: before a row is read.
        forbid_core_dumps();
        guarded(py, || {
            let schema = schema_of(study, alone)?;
            let pieces = pieces.into_iter();
            let pieces: Vec<(TablePiece, usize)> = pieces
                .map(|(piece, complete)| Ok((piece_of(piece)?, complete)))
                .collect::<Result<_, Failure>>()?;
            let options = FileOptions::default();
            let shard = read_pieces(&pieces, first_row..end_row, &schema, options)?;
            Ok(Self {
                holder: ChunkHolder::new(shard, first_chunk).map_err(failed)?,
                threads: background::threads(Some(threads))?,
            })
        })
    }

    /// Returns the description of the chunks.
    fn describe<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.holder.describe())
    }

    /// Replies to a request.
    fn reply<'py>(&self, py: Python<'py>, request: &[u8]) -> Result<Bound<'py, PyBytes>, Failure> {
        let reply = guarded(py, || {
            let reply = || self.holder.reply(request, &RayonExecutor);
            self.threads.install(reply).map_err(failed)
        })?;
        Ok(PyBytes::new(py, &reply))
    }
}

/// Rows that workers hold, for one party or fit.
#[pyclass(frozen, module = "radmm._radmm")]
pub(crate) struct WorkerTable {
    name: String,
    descriptions: Vec<Vec<u8>>,
    hash: [u8; 32],
    workers: Py<PyAny>,
}

#[pymethods]
impl WorkerTable {
    /// Takes the descriptions of the chunks of workers `0`, `1`, … and the hash of their files. `workers` has the methods
    /// `submit([(worker, request)])`, which returns what is `collect(submitted, seconds)`: the replies, or `None` if they are not all
    /// there after so many seconds.
    #[new]
    fn new(name: String, descriptions: Vec<Vec<u8>>, hash: [u8; 32], workers: Py<PyAny>) -> Self {
        Self {
            name,
            descriptions,
            hash,
            workers,
        }
    }
}

impl WorkerTable {
    /// Returns the rows. Passes over them fail as soon as they are `interrupted`.
    fn rows(&self, py: Python<'_>, interrupted: Arc<AtomicBool>) -> Result<WorkerRows, Failure> {
        let workers = AskedWorkers {
            workers: self.workers.clone_ref(py),
            interrupted,
        };
        WorkerRows::new(&self.descriptions, Box::new(workers)).map_err(failed)
    }
}

/// Rows as Python hands them over.
#[derive(FromPyObject)]
pub(crate) enum HandedRows<'py> {
    Table(Bound<'py, Table>),
    Workers(Bound<'py, WorkerTable>),
}

impl HandedRows<'_> {
    /// Hands the rows to `read`, without the interpreter lock. Passes over rows of workers fail as soon as they are `interrupted`.
    pub(crate) fn read<T: Send, E: Into<Failure>>(
        &self,
        py: Python<'_>,
        interrupted: Arc<AtomicBool>,
        read: impl FnOnce(GivenRows<'_>) -> Result<T, E> + Send,
    ) -> Result<T, Failure> {
        match self {
            Self::Table(table) => table.get().read(py, |rows| read(GivenRows::Memory(rows))),
            Self::Workers(table) => {
                let table = table.get();
                let rows = table.rows(py, interrupted)?;
                guarded(py, || {
                    let (name, hash) = (table.name.clone(), table.hash);
                    read(GivenRows::Workers { name, rows, hash }).map_err(Into::into)
                })
            }
        }
    }
}

/// The workers of a party, asked through Python.
struct AskedWorkers {
    workers: Py<PyAny>,
    interrupted: Arc<AtomicBool>,
}

impl ChunkWorkers for AskedWorkers {
    fn ask(&self, requests: &[WorkerRequest]) -> Result<Vec<Vec<u8>>, PassFailed> {
        let submitted = Python::attach(|py| {
            let requests = requests.iter();
            let requests = requests
                .map(|request| (request.worker, PyBytes::new(py, &request.bytes)))
                .collect::<Vec<_>>();
            self.workers.call_method1(py, "submit", (requests,))
        });
        let submitted = submitted.map_err(|error| said(&error))?;
        while !self.interrupted.load(Ordering::Relaxed) {
            let replies = Python::attach(|py| {
                let asked = (submitted.bind(py), LOOK_EVERY);
                let replies = self.workers.call_method1(py, "collect", asked)?;
                replies.extract::<Option<Vec<Vec<u8>>>>(py)
            });
            if let Some(replies) = replies.map_err(|error| said(&error))? {
                return Ok(replies);
            }
        }
        Err(PassFailed::new("the workers were interrupted"))
    }
}

/// Returns an exception of Python as the failure of a pass.
fn said(error: &PyErr) -> PassFailed {
    Python::attach(|py| PassFailed::new(error.value(py)))
}

fn failed(error: PassFailed) -> Failure {
    Failure::Data(error.to_string())
}

fn schema_of(study: &str, alone: bool) -> Result<Schema, Failure> {
    let study = match alone {
        true => study_of_one_party(study, 1)?,
        false => Study::parse(study, "study")?.0,
    };
    Ok(study.data.schema)
}

fn options(format: Option<&str>) -> Result<FileOptions, Failure> {
    Ok(FileOptions {
        format: format.map(format_of).transpose()?,
        ..FileOptions::default()
    })
}

fn format_of(name: &str) -> Result<Format, Failure> {
    let found = Format::ALL.into_iter().find(|format| format.name() == name);
    found.ok_or_else(|| {
        let names = Format::ALL.map(Format::name).join(", ");
        Failure::Value(format!("format={name:?}: it is one of {names}"))
    })
}

fn piece_of((path, format, group): Piece) -> Result<TablePiece, Failure> {
    Ok(TablePiece {
        path,
        format: format_of(&format)?,
        group,
    })
}
