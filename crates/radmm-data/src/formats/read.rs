//! Reading a whole table: into the parts of nodes, or into a test set.

use std::io::Read;

use super::Format;
use super::libsvm::LibsvmRows;
use super::memory::{LabelledMatrix, MemoryTable};
use super::named_columns::{NamedTable, each_row};
use super::source::{TableSource, TableStream, TableVisitor};
use crate::error::DataError;
use crate::error_kinds::FormatError;
use crate::ingest::Ingest;
use crate::ingest::holdout::{TestFile, TestSet};
use crate::ingest::partition::{Partition, PartitionSpec};
use crate::schema::{Schema, Split};

/// Reads a table in one pass: encodes its rows, holds some out and assigns the others to nodes.
///
/// Columns that neither the schema nor the split names are ignored. A row with a missing value in one of the others is dropped,
/// unless the schema has a category for it.
pub fn read_partition<'a>(
    table: impl Into<TableSource<'a>>,
    schema: &Schema,
    spec: PartitionSpec<'_>,
) -> Result<Partition, DataError> {
    let table = table.into();
    let name = table.name().to_owned();
    let mut reading = PartitionReading {
        schema,
        split: spec.split,
        ingest: Ingest::new(&name, schema, spec)?,
        ignored: Vec::new(),
    };
    table.visit(&mut reading)?;
    match reading.ingest.read() {
        0 => Err(no_rows(name, schema)),
        _ => reading.ingest.finish(reading.ignored),
    }
}

/// Reads a table of comma-separated text: see [`read_partition`]. `file` names the source in errors.
pub fn partition_csv<'a>(
    source: impl Read + 'a,
    file: &str,
    schema: &Schema,
    spec: PartitionSpec<'_>,
) -> Result<Partition, DataError> {
    read_partition(TableStream::new(source, file, Format::Csv), schema, spec)
}

/// Reads a table in LIBSVM's format: see [`read_partition`]. `file` names the source in errors.
pub fn partition_libsvm<'a>(
    source: impl Read + 'a,
    file: &str,
    schema: &Schema,
    spec: PartitionSpec<'_>,
) -> Result<Partition, DataError> {
    read_partition(TableStream::new(source, file, Format::Libsvm), schema, spec)
}

/// Reads a table whose rows are all for testing. The column of a split may be missing.
pub fn read_test_set<'a>(
    table: impl Into<TableSource<'a>>,
    schema: &Schema,
) -> Result<TestSet, DataError> {
    let table = table.into();
    let name = table.name().to_owned();
    let mut reading = TestReading {
        schema,
        rows: TestFile::new(&name, schema),
    };
    table.visit(&mut reading)?;
    reading.rows.finish()?.ok_or_else(|| no_rows(name, schema))
}

pub(super) fn no_rows(file: String, schema: &Schema) -> DataError {
    match schema.numbered {
        0 => DataError::NoRows { file },
        _ => DataError::NoLines { file },
    }
}

/// Rows on their way to the nodes.
struct PartitionReading<'a> {
    schema: &'a Schema,
    split: &'a Split,
    ingest: Ingest<'a>,
    ignored: Vec<String>,
}

impl TableVisitor for PartitionReading<'_> {
    type Error = DataError;

    fn named<'f>(&mut self, table: impl NamedTable<'f>) -> Result<(), DataError> {
        let split_by = match self.split {
            Split::Column { column, .. } => Some(column.as_str()),
            _ => None,
        };
        let unused = each_row(table, self.schema, split_by, |row| self.ingest.add(row))?;
        // The files of a folder may have different columns beside those that are used.
        let new = unused.into_iter();
        let new: Vec<String> = new.filter(|name| !self.ignored.contains(name)).collect();
        self.ignored.extend(new);
        Ok(())
    }

    fn libsvm(&mut self, rows: LibsvmRows<'_, impl Read>) -> Result<(), DataError> {
        if matches!(self.split, Split::Column { .. }) {
            return Err(DataError::format(rows.file(), FormatError::SplitByColumn));
        }
        rows.each_row(self.schema, |row| self.ingest.add(row))
    }

    fn matrix(
        &mut self,
        table: &MemoryTable<'_>,
        matrix: &LabelledMatrix<'_>,
    ) -> Result<(), DataError> {
        if matches!(self.split, Split::Column { .. }) && matrix.split_by.is_none() {
            return Err(DataError::format(table.name(), FormatError::SplitByColumn));
        }
        matrix.each_row(table, self.schema, |row| self.ingest.add(row))
    }
}

/// Rows on their way to a test set.
struct TestReading<'a> {
    schema: &'a Schema,
    rows: TestFile<'a>,
}

impl TableVisitor for TestReading<'_> {
    type Error = DataError;

    fn named<'f>(&mut self, table: impl NamedTable<'f>) -> Result<(), DataError> {
        each_row(table, self.schema, None, |row| {
            self.rows.add(row.as_deref())
        })?;
        Ok(())
    }

    fn libsvm(&mut self, rows: LibsvmRows<'_, impl Read>) -> Result<(), DataError> {
        rows.each_row(self.schema, |row| self.rows.add(row.as_deref()))
    }

    fn matrix(
        &mut self,
        table: &MemoryTable<'_>,
        matrix: &LabelledMatrix<'_>,
    ) -> Result<(), DataError> {
        matrix.each_row(table, self.schema, |row| self.rows.add(row.as_deref()))
    }
}
