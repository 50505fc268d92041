//! Rows from Python, read where they are.

mod arrow;
mod dense;
mod sparse;

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3_arrow::PyTable;
use radmm_data::{CellValue, LabelledMatrix, MemoryColumn, MemoryTable, NamedColumn};

use self::dense::DenseColumn;
use self::sparse::CsrRows;
use crate::failure::{Failure, guarded};

/// How long to wait between two looks at signals.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Rows in memory: columns of an Arrow stream, of an array, or a sparse matrix; and columns that were added to them.
#[pyclass(frozen, module = "radmm._radmm")]
pub(crate) struct Table {
    name: String,
    rows: usize,
    content: Content,
    added: Vec<(String, AddedColumn)>,
}

enum Content {
    Arrow(Vec<RecordBatch>, SchemaRef),
    Dense(Py<PyArray2<f64>>, Vec<String>),
    Sparse {
        starts: Py<PyArray1<i64>>,
        columns: Py<PyArray1<i32>>,
        values: Py<PyArray1<f64>>,
        width: u32,
    },
}

/// A column of a few texts: labels, parties.
#[derive(Clone)]
struct AddedColumn {
    codes: Vec<u32>,
    texts: Vec<String>,
}

impl MemoryColumn for &AddedColumn {
    fn cell(&self, row: usize) -> CellValue<'_> {
        CellValue::Text(&self.texts[self.codes[row] as usize])
    }
}

#[pymethods]
impl Table {
    /// Takes the columns of anything with `__arrow_c_stream__`. Nothing is copied.
    #[staticmethod]
    fn from_arrow(py: Python<'_>, rows: PyTable, name: String) -> Result<Self, Failure> {
        let (batches, schema) = rows.into_inner();
        guarded(py, || {
            batches.iter().try_for_each(arrow::check)?;
            Ok(Self {
                name,
                rows: batches.iter().map(RecordBatch::num_rows).sum(),
                content: Content::Arrow(batches, schema),
                added: Vec::new(),
            })
        })
    }

    /// Takes an array of rows, with the names of its columns. Nothing is copied.
    #[staticmethod]
    fn from_dense(
        rows: Bound<'_, PyArray2<f64>>,
        columns: Vec<String>,
        name: String,
    ) -> PyResult<Self> {
        let [count, width] = [rows.shape()[0], rows.shape()[1]];
        if columns.len() != width {
            return Err(PyValueError::new_err(
                "there must be a name for each column",
            ));
        }
        Ok(Self {
            name,
            rows: count,
            content: Content::Dense(rows.unbind(), columns),
            added: Vec::new(),
        })
    }

    /// Takes a sparse matrix by its rows (CSR) of so many columns. Nothing is copied.
    #[staticmethod]
    fn from_sparse(
        starts: Bound<'_, PyArray1<i64>>,
        columns: Bound<'_, PyArray1<i32>>,
        values: Bound<'_, PyArray1<f64>>,
        width: u32,
        name: String,
    ) -> PyResult<Self> {
        sparse::check(&starts, &columns, &values)?;
        Ok(Self {
            name,
            rows: starts.len() - 1,
            content: Content::Sparse {
                starts: starts.unbind(),
                columns: columns.unbind(),
                values: values.unbind(),
                width,
            },
            added: Vec::new(),
        })
    }

    /// Returns the same table with one more column of texts, which are given by their numbers. In a sparse matrix the first added
    /// column is the label, and the second tells whose a row is.
    fn with_column(
        &self,
        py: Python<'_>,
        column: String,
        codes: PyReadonlyArray1<'_, u32>,
        texts: Vec<String>,
    ) -> PyResult<Self> {
        let codes = codes.as_array().to_vec();
        if codes.len() != self.rows {
            return Err(PyValueError::new_err(format!(
                "{column}: {} values for {} rows",
                codes.len(),
                self.rows
            )));
        }
        if codes.iter().any(|code| *code as usize >= texts.len()) {
            return Err(PyValueError::new_err("a number of a text is out of range"));
        }
        let mut added = self.added.clone();
        added.push((column, AddedColumn { codes, texts }));
        Ok(Self {
            name: self.name.clone(),
            rows: self.rows,
            content: self.content.clone_ref(py),
            added,
        })
    }

    /// The number of rows.
    #[getter]
    fn rows(&self) -> usize {
        self.rows
    }

    /// The names of the columns and what they hold; none of a sparse matrix, which may have very many.
    #[getter]
    fn column_types(&self) -> Vec<(String, String)> {
        let named = |name: &str, kind: &str| (name.to_owned(), kind.to_owned());
        match &self.content {
            Content::Arrow(_, schema) => schema
                .fields()
                .iter()
                .map(|field| named(field.name(), arrow::kind(field.data_type())))
                .collect(),
            Content::Dense(_, names) => names.iter().map(|name| named(name, "number")).collect(),
            Content::Sparse { .. } => Vec::new(),
        }
    }
}

impl Content {
    fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Arrow(batches, schema) => Self::Arrow(batches.clone(), schema.clone()),
            Self::Dense(rows, names) => Self::Dense(rows.clone_ref(py), names.clone()),
            Self::Sparse {
                starts,
                columns,
                values,
                width,
            } => Self::Sparse {
                starts: starts.clone_ref(py),
                columns: columns.clone_ref(py),
                values: values.clone_ref(py),
                width: *width,
            },
        }
    }
}

impl Table {
    /// Hands the table to `read`, without the interpreter lock. Ctrl-C interrupts the reading.
    pub(crate) fn read<T: Send, E: Into<Failure>>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&MemoryTable<'_>) -> Result<T, E> + Send,
    ) -> Result<T, Failure> {
        match &self.content {
            Content::Arrow(batches, schema) => guarded(py, || {
                let fields = schema.fields().iter().enumerate();
                let columns = fields.map(|(index, field)| NamedColumn {
                    name: field.name().clone(),
                    cells: arrow::column(batches, index, field.data_type()),
                });
                self.with_signals(columns.collect(), read)
            }),
            Content::Dense(rows, names) => {
                let rows = rows.bind(py).readonly();
                let rows = rows.as_array();
                guarded(py, || {
                    let columns = names.iter().enumerate().map(|(index, name)| NamedColumn {
                        name: name.clone(),
                        cells: Ok(Box::new(DenseColumn(rows.column(index)))),
                    });
                    self.with_signals(columns.collect(), read)
                })
            }
            Content::Sparse {
                starts,
                columns,
                values,
                width,
            } => {
                let starts = starts.bind(py).readonly();
                let columns = columns.bind(py).readonly();
                let values = values.bind(py).readonly();
                let rows = CsrRows {
                    starts: starts.as_array(),
                    columns: columns.as_array(),
                    values: values.as_array(),
                    width: *width,
                };
                guarded(py, || {
                    let mut added = self.added.iter();
                    let mut next = || -> Option<Box<dyn MemoryColumn + '_>> {
                        let (_, column) = added.next()?;
                        Some(Box::new(column))
                    };
                    let matrix = LabelledMatrix {
                        features: Box::new(rows),
                        labels: next(),
                        split_by: next(),
                    };
                    interruptible(MemoryTable::sparse(&self.name, self.rows, matrix), read)
                })
            }
        }
    }

    /// Reads the named columns, and those that were added.
    fn with_signals<'t, T, E: Into<Failure>>(
        &'t self,
        mut columns: Vec<NamedColumn<'t>>,
        read: impl FnOnce(&MemoryTable<'_>) -> Result<T, E>,
    ) -> Result<T, Failure> {
        columns.extend(self.added.iter().map(|(name, column)| NamedColumn {
            name: name.clone(),
            cells: Ok(Box::new(column)),
        }));
        interruptible(MemoryTable::new(&self.name, self.rows, columns), read)
    }
}

/// Reads a table, and looks at signals now and then.
fn interruptible<T, E: Into<Failure>>(
    table: MemoryTable<'_>,
    read: impl FnOnce(&MemoryTable<'_>) -> Result<T, E>,
) -> Result<T, Failure> {
    let (looked, signal) = (Cell::new(Instant::now()), RefCell::new(None));
    let is_interrupted = || {
        if looked.get().elapsed() < LOOK_EVERY {
            return false;
        }
        looked.set(Instant::now());
        let checked = Python::attach(|py| py.check_signals());
        *signal.borrow_mut() = checked.err();
        signal.borrow().is_some()
    };
    let done = read(&table.interrupted_by(&is_interrupted)).map_err(Into::into);
    match signal.take() {
        Some(error) => Err(error.into()),
        None => done,
    }
}
