//! Formats whose columns have names: from records to encoded rows, whatever the format.

use std::sync::Arc;

use crate::encode::{Encoder, Lacking};
use crate::error::{DataError, FilePosition, first_few, nearest};
use crate::error_kinds::{ColumnError, FieldError, FormatError};
use crate::formats::MAX_FIELD_BYTES;
use crate::formats::options::{DecimalMark, Separator};
use crate::ingest::row::{Row, SplitValue, TableRow};
use crate::schema::Schema;
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
        let field = self.value(column)?.unwrap_or_default();
        match field.len() {
            0..=MAX_FIELD_BYTES => Ok(field),
            bytes => Err(self.field_error(column, FieldError::TooLong { bytes })),
        }
    }

    /// Returns a field that the source holds as a number; `None` if it is text, which may be that of a number.
    fn number(&self, _column: Column<'_>) -> Option<f64> {
        None
    }

    /// Returns the mark before the fraction of a number, where the user can choose it.
    fn decimal(&self) -> Option<DecimalMark> {
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
    /// The separator of the fields of a text.
    pub(crate) separator: Option<Separator>,
}

impl Header<'_> {
    /// Returns another separator by which the only name can be cut.
    pub(crate) fn other_separator(&self) -> Option<Separator> {
        let ([only], Some(used)) = (&self.names[..], self.separator) else {
            return None;
        };
        let others = Separator::ALL.into_iter().filter(|other| *other != used);
        // A name with commas is less likely than one with another separator.
        others.rev().find(|other| only.contains(other.text()))
    }

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
            (None, _) if let Some(separator) = self.other_separator() => {
                Err(DataError::Separator {
                    file,
                    position,
                    separator,
                })
            }
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

/// An open table whose columns have names. `'f` is the lifetime of its name in errors.
pub(crate) trait NamedTable<'f> {
    type Records: Records;

    fn header(&self) -> Header<'f>;

    /// Returns the reason why a column cannot be read, if it cannot.
    fn unreadable(&self, _index: usize) -> Option<ColumnError> {
        None
    }

    /// Returns the rows, of which these columns are read.
    fn records(self, used: &[Column<'_>]) -> Result<Self::Records, DataError>;
}

/// Passes every row to `take`, and returns the names of the unused columns.
pub(crate) fn each_row<'f>(
    table: impl NamedTable<'f>,
    schema: &Schema,
    split_by: Option<&str>,
    mut take: impl FnMut(TableRow<'_>) -> Result<(), DataError>,
) -> Result<Vec<String>, DataError> {
    let header = table.header();
    if schema.numbered > 0 {
        return Err(DataError::format(header.file, FormatError::Numbered));
    }
    let encoder = Encoder::new(schema, |name| header.find(name))?;
    let label = header.find(&schema.label)?;
    let split_by = split_by.map(|name| header.find(name)).transpose()?;
    let used = encoder.columns().chain([label]).chain(split_by);
    let used: Vec<Column<'_>> = used.collect();
    let required: Vec<Column<'_>> = [label].into_iter().chain(split_by).collect();
    let mut records = table.records(&used)?;
    let features = (schema.numeric.len() + schema.categorical.len()) as u32;
    let (mut row, mut lacking) = (Row::default(), Lacking::default());
    let file: Arc<str> = header.file.into();
    while let Some(record) = records.next()? {
        encoder.find_lacking(&record, &mut lacking)?;
        for (k, column) in (features..).zip(&required) {
            lacking.add(k, record.is_missing(*column, &schema.missing))?;
        }
        if !lacking.is_empty() {
            take(TableRow::Incomplete(&lacking))?;
            continue;
        }
        encoder.encode(&record, &mut row.entries, &mut row.noted)?;
        row.label.clear();
        row.label.push_str(record.field(label)?);
        row.positive = row.label == schema.positive;
        row.split_value = match split_by {
            Some(column) => Some(SplitValue {
                value: record.field(column)?.to_owned(),
                file: Arc::clone(&file),
                position: record.position(),
            }),
            None => None,
        };
        take(TableRow::Complete(&mut row))?;
    }
    Ok(header.without(&used))
}

/// Passes every row to be scored to `take`. The label may be missing, in a row or in the whole file.
pub(crate) fn score<'f, E: From<DataError>>(
    table: impl NamedTable<'f>,
    schema: &Schema,
    mut take: impl FnMut(ScoringRow<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let header = table.header();
    let encoder = Encoder::new(schema, |name| header.find(name))?;
    let label = match header.names.contains(&schema.label) {
        true => Some(header.find(&schema.label)?),
        false => None,
    };
    let used: Vec<Column<'_>> = encoder.columns().chain(label).collect();
    let mut records = table.records(&used)?;
    let (mut entries, mut noted) = (Vec::new(), Vec::new());
    let mut lacking = Lacking::default();
    while let Some(record) = records.next()? {
        encoder.find_lacking(&record, &mut lacking)?;
        if !lacking.is_empty() {
            take(ScoringRow::Incomplete)?;
            continue;
        }
        encoder.encode(&record, &mut entries, &mut noted)?;
        let known = match label {
            Some(label) if !record.is_missing(label, &schema.missing)? => Some(label),
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
