//! Rows that a model is used on: encoded as those that it was trained on, one at a time.
//!
//! They need no label. Nothing of a row is kept when the next one is read, so that a file may be of any length.

use crate::csv;
use crate::error::{DataError, FieldProblem};
use crate::file::{Format, TableFile};
use crate::libsvm;
use crate::named;
use crate::parquet::ParquetTable;
use crate::problem::{FormatProblem, LineProblem};
use crate::schema::Schema;

/// A row as a model sees it. Neither `Debug`, `Clone` nor `Serialize`: what is wanted of it is its score.
pub struct Features<'a> {
    entries: &'a [(u32, f64)],
    positive: Option<bool>,
}

impl Features<'_> {
    /// `fᵀx`: positive where the model expects the positive class. Columns beyond the model's count as zero.
    pub fn score(&self, model: &[f64]) -> f64 {
        let weight = |column: u32| model.get(column as usize).copied().unwrap_or(0.0);
        let terms = self.entries.iter().map(|(k, x)| weight(*k) * x);
        terms.fold(0.0, |sum, term| sum + term)
    }

    /// Its values that are not zero with their columns, ascending; its norm is as the schema says.
    pub fn entries(&self) -> &[(u32, f64)] {
        self.entries
    }

    /// Whether its label is the positive one; none if it has no label.
    pub fn positive(&self) -> Option<bool> {
        self.positive
    }
}

/// What became of the rows of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scored {
    /// In the file.
    pub rows: usize,
    /// Of these, without features because a field is missing.
    pub incomplete: usize,
    /// Of the others, with a label.
    pub labelled: usize,
}

/// A row as its format yields it.
pub(crate) enum Unscored<'a> {
    Incomplete,
    Complete {
        /// Before its norm is seen to.
        entries: &'a [(u32, f64)],
        positive: Option<bool>,
    },
}

/// Hands out every row of a table in the order of the file, or none for one of which a feature is missing.
///
/// Rows are encoded as [`read`](crate::read) encodes them. The label's column may be missing, and so may the label of a row:
/// that one has features all the same. A LIBSVM file may leave out labels altogether. Its columns, or the first row that is
/// at fault, may be refused; a table without rows is not.
pub fn score_each<E: From<DataError>>(
    table: TableFile,
    schema: &Schema,
    mut take: impl FnMut(Option<Features<'_>>) -> Result<(), E>,
) -> Result<Scored, E> {
    let TableFile { file, name, format } = table;
    let mismatch = match (format, schema.numbered) {
        (Format::Libsvm, 0) => Some(FormatProblem::ModelNamed),
        (Format::Csv | Format::Parquet, 1..) => Some(FormatProblem::ModelNumbered),
        _ => None,
    };
    if let Some(problem) = mismatch {
        return Err(DataError::Format {
            file: name,
            problem,
        }
        .into());
    }
    let width = schema.width();
    let mut counts = Scored::default();
    let mut row = Vec::new();
    let take = |unscored: Unscored<'_>| -> Result<(), Fault<E>> {
        counts.rows += 1;
        let Unscored::Complete { entries, positive } = unscored else {
            counts.incomplete += 1;
            return take(None).map_err(Fault::Taking);
        };
        let scaled = schema.rows.apply(entries, width, &mut row);
        scaled.map_err(|cause| DataError::Row {
            file: name.clone(),
            cause,
        })?;
        counts.labelled += usize::from(positive.is_some());
        let entries = &row;
        take(Some(Features { entries, positive })).map_err(Fault::Taking)
    };
    let scored = match format {
        Format::Csv => csv::open(file, &name)
            .map_err(Fault::Reading)
            .and_then(|(header, rows)| named::score(&header, |_| Ok(rows), schema, take)),
        Format::Parquet => ParquetTable::open(file, &name)
            .map_err(Fault::Reading)
            .and_then(|table| named::score(&table.header(), |used| table.rows(used), schema, take)),
        Format::Libsvm => libsvm::score(file, &name, schema, take),
    };
    match scored {
        Ok(()) if counts.rows == 0 && format == Format::Libsvm => {
            Err(DataError::NoLines { file: name }.into())
        }
        Ok(()) => Ok(counts),
        Err(Fault::Reading(error)) => Err(of_model(error).into()),
        Err(Fault::Taking(error)) => Err(error),
    }
}

/// Who stopped.
enum Fault<E> {
    Reading(DataError),
    Taking(E),
}

impl<E> From<DataError> for Fault<E> {
    fn from(error: DataError) -> Self {
        Self::Reading(error)
    }
}

/// A model cannot be given another vocabulary or more columns, as a study can.
fn of_model(mut error: DataError) -> DataError {
    match &mut error {
        DataError::Field { problem, .. } => {
            if let FieldProblem::UnknownCategory { value, known } = problem {
                let (value, known) = (std::mem::take(value), std::mem::take(known));
                *problem = FieldProblem::NotLearnt { value, known };
            }
        }
        DataError::Line { problem, .. } => {
            if let LineProblem::Beyond { index, columns } = *problem {
                *problem = LineProblem::BeyondModel { index, columns };
            }
        }
        _ => {}
    }
    error
}
