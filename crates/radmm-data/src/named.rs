//! Tables whose columns have names: from records, whatever the file's format, to every node's part.

use crate::encode::Encoder;
use crate::error::{DataError, FieldProblem, Place, excerpt, first_few, nearest};
use crate::partition::{Dealer, Partition};
use crate::problem::FormatProblem;
use crate::schema::{Schema, Split};
use crate::tally::Tally;

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

    fn without(self, used: &[Column<'_>]) -> Vec<String> {
        let mut ignored = vec![true; self.names.len()];
        for column in used {
            ignored[column.position] = false;
        }
        let names = self.names.into_iter().zip(ignored);
        names
            .filter_map(|(name, ignored)| ignored.then_some(name))
            .collect()
    }
}

/// Encodes all rows and deals them out. `open` gives the records, of which the columns that it is told are read.
pub(crate) fn deal<R: Records>(
    header: Header<'_>,
    open: impl FnOnce(&[Column<'_>]) -> Result<R, DataError>,
    schema: &Schema,
    split: &Split,
    nodes: usize,
) -> Result<Partition, DataError> {
    let file = header.file;
    if schema.numbered > 0 {
        return Err(DataError::Format {
            file: file.to_owned(),
            problem: FormatProblem::Numbered,
        });
    }
    let mut dealer = Dealer::new(file, schema, split, nodes)?;
    let encoder = Encoder::new(schema, |name| header.find(name))?;
    let split_by = match split {
        Split::Column { column, .. } => Some(header.find(column)?),
        Split::RoundRobin | Split::Shuffled { .. } | Split::Dirichlet { .. } => None,
    };
    let used: Vec<Column<'_>> = encoder.columns().chain(split_by).collect();

    let mut tally = Tally::new(schema.numeric.len());
    let mut records = open(&used)?;
    let mut entries = Vec::new();
    while let Some(record) = records.next()? {
        tally.read += 1;
        if is_missing(&record, &used, &schema.missing)? {
            tally.dropped += 1;
            continue;
        }
        let positive = encoder.encode(&record, &mut entries, &mut tally.clipped)?;
        tally.count(positive, record.field(encoder.label())?);
        let node = match split_by {
            Some(column) => {
                let value = record.field(column)?;
                let node = dealer.named(value);
                let unknown = || record.refuse(column, no_node_for(value, dealer.values()));
                Some(node.ok_or_else(unknown)?)
            }
            None => dealer.turn(),
        };
        dealer.push(node, &entries, positive)?;
    }
    if tally.read == 0 {
        let file = file.to_owned();
        return Err(DataError::NoRows { file });
    }
    tally.check(file, schema)?;
    let parts = dealer.finish()?;
    Ok(tally.partition(parts, schema, header.without(&used)))
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

fn no_node_for(value: &str, values: &[String]) -> FieldProblem {
    FieldProblem::UnknownNode {
        value: excerpt(value),
        known: first_few(values.iter().map(String::as_str)),
    }
}
