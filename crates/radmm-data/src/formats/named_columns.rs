//! Formats whose columns have names: from records to encoded rows, whatever the format.

use crate::encode::Encoder;
use crate::error::{DataError, FilePosition, first_few, nearest};
use crate::error_kinds::{FieldError, FormatError};
use crate::ingest::Ingest;
use crate::ingest::holdout::{TestFile, TestSet};
use crate::ingest::partition::{Partition, PartitionSpec};
use crate::ingest::row::{Row, SplitValue};
use crate::schema::{Schema, Split};
use crate::scoring::ScoringRow;

/// A column of the file: its name, and its index among all columns.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    pub(crate) name: &'a str,
    pub(crate) index: usize,
}

/// One row of the file as text.
pub(crate) trait Record {
    /// Returns a field without surrounding white space, or `None` if the file has no value there.
    fn value(&self, column: Column<'_>) -> Result<Option<&str>, DataError>;

    /// Returns the position of the record.
    fn position(&self) -> FilePosition;

    /// Returns the name of the file in errors.
    fn file(&self) -> &str;

    /// Returns a field of a row without missing values.
    fn field(&self, column: Column<'_>) -> Result<&str, DataError> {
        Ok(self.value(column)?.unwrap_or_default())
    }

    /// Returns a field that the source holds as a number; `None` if it is text, which may be that of a number.
    fn number(&self, _column: Column<'_>) -> Option<f64> {
        None
    }

    /// Returns whether a field has no value, or is one of these markers of a missing one.
    fn is_missing(&self, column: Column<'_>, markers: &[String]) -> Result<bool, DataError> {
        Ok(match self.value(column)? {
            Some(field) => markers.iter().any(|value| value == field),
            None => true,
        })
    }

    /// Returns the error of a field of this record.
    fn field_error(&self, column: Column<'_>, cause: FieldError) -> DataError {
        DataError::Field {
            file: self.file().to_owned(),
            position: self.position(),
            column: column.name.to_owned(),
            cause,
        }
    }
}

/// The rows of a file, read one at a time into the same memory.
pub(crate) trait Records {
    type Record<'r>: Record
    where
        Self: 'r;

    fn next(&mut self) -> Result<Option<Self::Record<'_>>, DataError>;
}

/// The names of a file's columns.
pub(crate) struct Header<'a> {
    pub(crate) file: &'a str,
    pub(crate) position: FilePosition,
    pub(crate) names: Vec<String>,
}

impl Header<'_> {
    /// Finds the one column with a name.
    pub(crate) fn find<'n>(&self, name: &'n str) -> Result<Column<'n>, DataError> {
        let (file, position) = (self.file.to_owned(), self.position);
        let column = name.to_owned();
        let mut found = (0..self.names.len()).filter(|k| self.names[*k] == name);
        match (found.next(), found.next()) {
            (Some(index), None) => Ok(Column { name, index }),
            (Some(_), Some(_)) => Err(DataError::DuplicateColumn {
                file,
                position,
                column,
            }),
            (None, _) => Err(DataError::NoSuchColumn {
                file,
                position,
                column,
                nearest: nearest(name, self.names.iter().map(String::as_str)),
                header: first_few(self.names.iter().map(String::as_str)),
            }),
        }
    }

    /// Returns the names of all columns but the used ones.
    fn without(&self, used: &[Column<'_>]) -> Vec<String> {
        let mut ignored = vec![true; self.names.len()];
        for column in used {
            ignored[column.index] = false;
        }
        let names = self.names.iter().zip(ignored);
        names
            .filter(|(_, ignored)| *ignored)
            .map(|(name, _)| name.clone())
            .collect()
    }
}

/// Encodes all rows and assigns them to nodes. `open` returns the records, of which the columns passed to it are read.
pub(crate) fn partition<R: Records>(
    header: Header<'_>,
    open: impl FnOnce(&[Column<'_>]) -> Result<R, DataError>,
    schema: &Schema,
    spec: PartitionSpec<'_>,
) -> Result<Partition, DataError> {
    let mut ingest = Ingest::new(header.file, schema, spec)?;
    let split_by = match spec.split {
        Split::Column { column, .. } => Some(column.as_str()),
        Split::RoundRobin
        | Split::Shuffled { .. }
        | Split::Sizes { .. }
        | Split::Dirichlet { .. } => None,
    };
    let ignored = each_row(&header, open, schema, split_by, |row| ingest.add(row))?;
    if ingest.read() == 0 {
        return Err(no_rows(&header));
    }
    ingest.finish(ignored)
}

/// Encodes all rows of a file for testing. The column of a split may be missing.
pub(crate) fn test_set<R: Records>(
    header: &Header<'_>,
    open: impl FnOnce(&[Column<'_>]) -> Result<R, DataError>,
    schema: &Schema,
) -> Result<TestSet, DataError> {
    let mut rows = TestFile::new(header.file, schema);
    each_row(header, open, schema, None, |row| rows.add(row.as_deref()))?;
    rows.finish()?.ok_or_else(|| no_rows(header))
}

fn no_rows(header: &Header<'_>) -> DataError {
    let file = header.file.to_owned();
    DataError::NoRows { file }
}

/// Passes every row to `take`, or `None` for a row with a missing value, and returns the names of the unused columns.
fn each_row<R: Records>(
    header: &Header<'_>,
    open: impl FnOnce(&[Column<'_>]) -> Result<R, DataError>,
    schema: &Schema,
    split_by: Option<&str>,
    mut take: impl FnMut(Option<&mut Row>) -> Result<(), DataError>,
) -> Result<Vec<String>, DataError> {
    if schema.numbered > 0 {
        return Err(DataError::format(header.file, FormatError::Numbered));
    }
    let encoder = Encoder::new(schema, |name| header.find(name))?;
    let label = header.find(&schema.label)?;
    let split_by = split_by.map(|name| header.find(name)).transpose()?;
    let used = encoder.columns().chain([label]).chain(split_by);
    let used: Vec<Column<'_>> = used.collect();
    let required: Vec<Column<'_>> = [label].into_iter().chain(split_by).collect();
    let mut records = open(&used)?;
    let mut row = Row::default();
    while let Some(record) = records.next()? {
        if encoder.is_incomplete(&record)? || is_missing(&record, &required, &schema.missing)? {
            take(None)?;
            continue;
        }
        encoder.encode(&record, &mut row.entries, &mut row.noted)?;
        row.label.clear();
        row.label.push_str(record.field(label)?);
        row.positive = row.label == schema.positive;
        row.split_value = match split_by {
            Some(column) => Some(SplitValue {
                value: record.field(column)?.to_owned(),
                position: record.position(),
            }),
            None => None,
        };
        take(Some(&mut row))?;
    }
    Ok(header.without(&used))
}

/// Passes every row to be scored to `take`. The label may be missing, in a row or in the whole file.
pub(crate) fn score<R: Records, E: From<DataError>>(
    header: &Header<'_>,
    open: impl FnOnce(&[Column<'_>]) -> Result<R, DataError>,
    schema: &Schema,
    mut take: impl FnMut(ScoringRow<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let encoder = Encoder::new(schema, |name| header.find(name))?;
    let label = match header.names.contains(&schema.label) {
        true => Some(header.find(&schema.label)?),
        false => None,
    };
    let used: Vec<Column<'_>> = encoder.columns().chain(label).collect();
    let mut records = open(&used)?;
    let (mut entries, mut noted) = (Vec::new(), Vec::new());
    while let Some(record) = records.next()? {
        if encoder.is_incomplete(&record)? {
            take(ScoringRow::Incomplete)?;
            continue;
        }
        encoder.encode(&record, &mut entries, &mut noted)?;
        let known = match label {
            Some(label) if !is_missing(&record, &[label], &schema.missing)? => Some(label),
            _ => None,
        };
        let positive = match known {
            Some(label) => Some(record.field(label)? == schema.positive),
            None => None,
        };
        let entries = &entries;
        take(ScoringRow::Complete { entries, positive })?;
    }
    Ok(())
}

/// Returns whether one of these fields is missing.
pub(crate) fn is_missing(
    record: &impl Record,
    used: &[Column<'_>],
    missing: &[String],
) -> Result<bool, DataError> {
    for column in used {
        if record.is_missing(*column, missing)? {
            return Ok(true);
        }
    }
    Ok(false)
}
