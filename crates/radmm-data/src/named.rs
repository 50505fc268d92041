//! Tables whose columns have names: from records, whatever the file's format, to every node's part.

use crate::encode::Encoder;
use crate::error::{DataError, FieldProblem, Place, first_few, nearest};
use crate::holdout::{Held, TestRows};
use crate::intake::Intake;
use crate::partition::{Deal, Partition};
use crate::problem::FormatProblem;
use crate::row::{Party, Row};
use crate::schema::{Schema, Split};
use crate::score::Unscored;

/// A column of the file by its name and its place among the columns, from 0.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    pub(crate) name: &'a str,
    pub(crate) position: usize,
}

/// One row of the file as text.
pub(crate) trait Record {
    /// A field without the white space around it; none if the file says that there is no value.
    fn value(&self, column: Column<'_>) -> Result<Option<&str>, DataError>;

    /// Where it stands.
    fn place(&self) -> Place;

    /// What the file is called in errors.
    fn file(&self) -> &str;

    /// A field of a row of which nothing is missing.
    fn field(&self, column: Column<'_>) -> Result<&str, DataError> {
        Ok(self.value(column)?.unwrap_or_default())
    }

    fn refuse(&self, column: Column<'_>, problem: FieldProblem) -> DataError {
        DataError::Field {
            file: self.file().to_owned(),
            place: self.place(),
            column: column.name.to_owned(),
            problem,
        }
    }
}

/// The rows of a file, one at a time in the same memory.
pub(crate) trait Records {
    type Record<'r>: Record
    where
        Self: 'r;

    fn next(&mut self) -> Result<Option<Self::Record<'_>>, DataError>;
}

/// The names of a file's columns.
pub(crate) struct Header<'a> {
    pub(crate) file: &'a str,
    pub(crate) place: Place,
    pub(crate) names: Vec<String>,
}

impl Header<'_> {
    pub(crate) fn find<'n>(&self, name: &'n str) -> Result<Column<'n>, DataError> {
        let (file, place) = (self.file.to_owned(), self.place);
        let column = name.to_owned();
        let mut found = (0..self.names.len()).filter(|k| self.names[*k] == name);
        match (found.next(), found.next()) {
            (Some(position), None) => Ok(Column { name, position }),
            (Some(_), Some(_)) => Err(DataError::DuplicateColumn {
                file,
                place,
                column,
            }),
            (None, _) => Err(DataError::NoSuchColumn {
                file,
                place,
                column,
                nearest: nearest(name, self.names.iter().map(String::as_str)),
                header: first_few(self.names.iter().map(String::as_str)),
            }),
        }
    }

    fn without(&self, used: &[Column<'_>]) -> Vec<String> {
        let mut ignored = vec![true; self.names.len()];
        for column in used {
            ignored[column.position] = false;
        }
        let names = self.names.iter().zip(ignored);
        names
            .filter(|(_, ignored)| *ignored)
            .map(|(name, _)| name.clone())
            .collect()
    }
}

/// Encodes all rows and deals them out. `open` gives the records, of which the columns that it is told are read.
pub(crate) fn deal<R: Records>(
    header: Header<'_>,
    open: impl FnOnce(&[Column<'_>]) -> Result<R, DataError>,
    schema: &Schema,
    deal: Deal<'_>,
) -> Result<Partition, DataError> {
    let mut intake = Intake::new(header.file, schema, deal)?;
    let split_by = match deal.split {
        Split::Column { column, .. } => Some(column.as_str()),
        Split::RoundRobin
        | Split::Shuffled { .. }
        | Split::Sizes { .. }
        | Split::Dirichlet { .. } => None,
    };
    let ignored = each_row(&header, open, schema, split_by, |row| intake.add(row))?;
    if intake.read() == 0 {
        return Err(no_rows(&header));
    }
    intake.finish(ignored)
}

/// Encodes all rows of a file of its own to test on. The split has no say in it: its column may be missing.
pub(crate) fn test<R: Records>(
    header: &Header<'_>,
    open: impl FnOnce(&[Column<'_>]) -> Result<R, DataError>,
    schema: &Schema,
) -> Result<Held, DataError> {
    let mut rows = TestRows::new(header.file, schema);
    each_row(header, open, schema, None, |row| rows.add(row.as_deref()))?;
    rows.finish()?.ok_or_else(|| no_rows(header))
}

fn no_rows(header: &Header<'_>) -> DataError {
    let file = header.file.to_owned();
    DataError::NoRows { file }
}

/// Hands out every row, or none for one of which a field is missing, and returns the columns that nobody named.
fn each_row<R: Records>(
    header: &Header<'_>,
    open: impl FnOnce(&[Column<'_>]) -> Result<R, DataError>,
    schema: &Schema,
    split_by: Option<&str>,
    mut take: impl FnMut(Option<&mut Row>) -> Result<(), DataError>,
) -> Result<Vec<String>, DataError> {
    if schema.numbered > 0 {
        return Err(DataError::Format {
            file: header.file.to_owned(),
            problem: FormatProblem::Numbered,
        });
    }
    let encoder = Encoder::new(schema, |name| header.find(name))?;
    let label = header.find(&schema.label)?;
    let split_by = split_by.map(|name| header.find(name)).transpose()?;
    let used = encoder.columns().chain([label]).chain(split_by);
    let used: Vec<Column<'_>> = used.collect();
    let mut records = open(&used)?;
    let mut row = Row::default();
    while let Some(record) = records.next()? {
        if is_missing(&record, &used, &schema.missing)? {
            take(None)?;
            continue;
        }
        encoder.encode(&record, &mut row.entries, &mut row.clipped)?;
        row.label.clear();
        row.label.push_str(record.field(label)?);
        row.positive = row.label == schema.positive;
        row.party = match split_by {
            Some(column) => Some(Party {
                name: record.field(column)?.to_owned(),
                place: record.place(),
            }),
            None => None,
        };
        take(Some(&mut row))?;
    }
    Ok(header.without(&used))
}

/// Hands out what is to be scored. The label may be missing, in a row or in the whole file.
pub(crate) fn score<R: Records, E: From<DataError>>(
    header: &Header<'_>,
    open: impl FnOnce(&[Column<'_>]) -> Result<R, DataError>,
    schema: &Schema,
    mut take: impl FnMut(Unscored<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let encoder = Encoder::new(schema, |name| header.find(name))?;
    let label = match header.names.contains(&schema.label) {
        true => Some(header.find(&schema.label)?),
        false => None,
    };
    let features: Vec<Column<'_>> = encoder.columns().collect();
    let used: Vec<Column<'_>> = encoder.columns().chain(label).collect();
    let mut records = open(&used)?;
    let (mut entries, mut clipped) = (Vec::new(), Vec::new());
    while let Some(record) = records.next()? {
        if is_missing(&record, &features, &schema.missing)? {
            take(Unscored::Incomplete)?;
            continue;
        }
        encoder.encode(&record, &mut entries, &mut clipped)?;
        let known = match label {
            Some(label) if !is_missing(&record, &[label], &schema.missing)? => Some(label),
            _ => None,
        };
        let positive = match known {
            Some(label) => Some(record.field(label)? == schema.positive),
            None => None,
        };
        let entries = &entries;
        take(Unscored::Complete { entries, positive })?;
    }
    Ok(())
}

/// Looked at before anything is parsed: what stands beside a missing value does not matter.
pub(crate) fn is_missing(
    record: &impl Record,
    used: &[Column<'_>],
    missing: &[String],
) -> Result<bool, DataError> {
    for column in used {
        match record.value(*column)? {
            Some(field) if missing.iter().all(|value| value != field) => {}
            _ => return Ok(true),
        }
    }
    Ok(false)
}
