//! Scoring: rows for a trained model, encoded one at a time as its training rows were.
//!
//! They need no label. A row is forgotten when the next one is read, so that a file may be of any length.

use std::io::Read;

use crate::error::DataError;
use crate::error_kinds::{FieldError, FormatError, LineError};
use crate::formats::libsvm::LibsvmRows;
use crate::formats::memory::{LabelledMatrix, MemoryTable};
use crate::formats::named_columns::{self, NamedTable};
use crate::formats::source::TableVisitor;
use crate::formats::{Format, TableSource};
use crate::schema::Schema;

/// A row as a model sees it. Neither `Debug`, `Clone` nor `Serialize`: only its score should leave it.
pub struct EncodedRow<'a> {
    entries: &'a [(u32, f64)],
    positive: Option<bool>,
}

impl EncodedRow<'_> {
    /// Returns `fᵀx`, which is positive if the model predicts the positive class. Weights beyond the model's are zero.
    pub fn score(&self, model: &[f64]) -> f64 {
        let weight = |column: u32| model.get(column as usize).copied().unwrap_or(0.0);
        let terms = self.entries.iter().map(|(k, x)| weight(*k) * x);
        terms.fold(0.0, |sum, term| sum + term)
    }

    /// Returns the non-zero values with their columns, ascending. The norm policy of the schema has been applied.
    pub fn entries(&self) -> &[(u32, f64)] {
        self.entries
    }

    /// Returns whether its label is the positive one, or `None` if it has no label.
    pub fn positive(&self) -> Option<bool> {
        self.positive
    }
}

/// Counts of the rows of a scored file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScoreCounts {
    /// The number of rows in the file.
    pub rows: usize,
    /// The number of rows that were not encoded because a feature is missing.
    pub incomplete: usize,
    /// The number of encoded rows with a label.
    pub labelled: usize,
}

/// A row as its format yields it.
pub(crate) enum ScoringRow<'a> {
    Incomplete,
    Complete {
        /// The entries, before the norm policy is applied.
        entries: &'a [(u32, f64)],
        positive: Option<bool>,
    },
}

/// Passes every row of a table to `take` in the order of the file, or `None` for a row with a missing feature.
///
/// Rows are encoded as [`read_partition`](crate::read_partition) encodes them. The column of the label may be
/// missing, and so may the label of a row, which is encoded all the same. A LIBSVM file may omit labels. A table
/// without rows is not an error, unless it is a LIBSVM file.
pub fn score_each<'a, E: From<DataError>>(
    table: impl Into<TableSource<'a>>,
    schema: &Schema,
    mut take: impl FnMut(Option<EncodedRow<'_>>) -> Result<(), E>,
) -> Result<ScoreCounts, E> {
    let table = table.into();
    let (name, is_libsvm) = (table.name().to_owned(), table.format() == Format::Libsvm);
    let is_file = !matches!(table, TableSource::Memory(_));
    let mismatch = match (is_libsvm, schema.numbered) {
        (true, 0) => Some(FormatError::ModelNamed),
        (false, 1..) => Some(FormatError::ModelNumbered),
        _ => None,
    };
    if let Some(cause) = mismatch {
        return Err(DataError::format(&name, cause).into());
    }
    let width = schema.width();
    let mut counts = ScoreCounts::default();
    let mut scaled = Vec::new();
    let take = |row: ScoringRow<'_>| -> Result<(), Stopped<E>> {
        counts.rows += 1;
        let ScoringRow::Complete { entries, positive } = row else {
            counts.incomplete += 1;
            return take(None).map_err(Stopped::ByCaller);
        };
        let applied = schema.rows.apply(entries, width, &mut scaled);
        applied.map_err(DataError::row(&name))?;
        counts.labelled += usize::from(positive.is_some());
        let entries = &scaled;
        take(Some(EncodedRow { entries, positive })).map_err(Stopped::ByCaller)
    };
    match table.visit(&mut Scoring { schema, take }) {
        Ok(()) if counts.rows == 0 && is_libsvm && is_file => {
            Err(DataError::NoLines { file: name }.into())
        }
        Ok(()) => Ok(counts),
        Err(Stopped::ByReader(error)) => Err(for_model(error).into()),
        Err(Stopped::ByCaller(error)) => Err(error),
    }
}

/// Rows on their way to be scored.
struct Scoring<'a, F> {
    schema: &'a Schema,
    take: F,
}

impl<E, F> TableVisitor for Scoring<'_, F>
where
    F: FnMut(ScoringRow<'_>) -> Result<(), Stopped<E>>,
{
    type Error = Stopped<E>;

    fn named<'f>(&mut self, table: impl NamedTable<'f>) -> Result<(), Stopped<E>> {
        named_columns::score(table, self.schema, &mut self.take)
    }

    fn libsvm(&mut self, rows: LibsvmRows<'_, impl Read>) -> Result<(), Stopped<E>> {
        rows.score(self.schema, &mut self.take)
    }

    fn matrix(
        &mut self,
        table: &MemoryTable<'_>,
        matrix: &LabelledMatrix<'_>,
    ) -> Result<(), Stopped<E>> {
        matrix.score(table, self.schema, &mut self.take)
    }
}

/// The reason why scoring stopped.
enum Stopped<E> {
    ByReader(DataError),
    ByCaller(E),
}

impl<E> From<DataError> for Stopped<E> {
    fn from(error: DataError) -> Self {
        Self::ByReader(error)
    }
}

/// Rewords an error for a model, which cannot be given another vocabulary or more columns as a study can.
fn for_model(mut error: DataError) -> DataError {
    match &mut error {
        DataError::Field { cause, .. } => {
            if let FieldError::UnknownCategory { value, known } = cause {
                let (value, known) = (std::mem::take(value), std::mem::take(known));
                *cause = FieldError::UnknownToModel { value, known };
            }
        }
        DataError::Line { cause, .. } => {
            if let LineError::IndexBeyondStudy { index, columns } = *cause {
                *cause = LineError::IndexBeyondModel { index, columns };
            }
        }
        _ => {}
    }
    error
}
