//! The formats of tables: files, and tables in memory.
//!
//! A new file format is a module here, a variant of [`Format`], and an arm in [`read_partition`], [`read_test_set`],
//! [`score_each`](crate::score_each) and [`profile`](crate::profile()).

pub(crate) mod catch_panic;
pub(crate) mod csv;
pub(crate) mod libsvm;
pub(crate) mod memory;
pub(crate) mod named_columns;
pub(crate) mod parquet;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use serde::Serialize;

use self::csv::{partition_csv, test_set_csv};
use self::libsvm::{partition_libsvm, test_set_libsvm};
use self::memory::{MemoryTable, partition_memory, test_set_memory};
use self::parquet::{partition_parquet, test_set_parquet};
use crate::error::DataError;
use crate::ingest::holdout::TestSet;
use crate::ingest::partition::{Partition, PartitionSpec};
use crate::schema::Schema;

/// The format of a file of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Text with a header line and commas.
    Csv,
    /// Binary columns with names and types.
    Parquet,
    /// Text with a label and `index:value` pairs per line.
    Libsvm,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Csv, Self::Parquet, Self::Libsvm];

    /// Returns its name in study files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Libsvm => "libsvm",
        }
    }

    /// Returns the format that the extension of a file implies, upper case or lower: `.csv`, `.parquet`, and `.svm`,
    /// `.libsvm` or `.t` (the usual extension of the test rows of public LIBSVM files).
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            "svm" | "libsvm" | "t" => Some(Self::Libsvm),
            _ => None,
        }
    }
}

/// An open file of rows.
pub struct TableFile {
    pub(crate) file: File,
    /// The name of the file in errors.
    pub(crate) name: String,
    pub(crate) format: Format,
}

impl TableFile {
    /// Opens a file. Errors name it by its path.
    pub fn open(path: &Path, format: Format) -> io::Result<Self> {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        Ok(Self {
            file,
            name: path.display().to_string(),
            format,
        })
    }
}

/// The rows to read: those of a file, or of a table in memory.
pub enum TableSource<'a> {
    /// An open file.
    File(TableFile),
    /// A table in memory.
    Memory(&'a MemoryTable<'a>),
}

impl From<TableFile> for TableSource<'_> {
    fn from(file: TableFile) -> Self {
        Self::File(file)
    }
}

impl<'a> From<&'a MemoryTable<'a>> for TableSource<'a> {
    fn from(table: &'a MemoryTable<'a>) -> Self {
        Self::Memory(table)
    }
}

/// Reads a table in one pass: encodes its rows, holds some out and assigns the others to nodes.
///
/// For what each file format may hold see [`partition_csv`], [`partition_parquet`] and [`partition_libsvm`].
pub fn read_partition<'a>(
    table: impl Into<TableSource<'a>>,
    schema: &Schema,
    spec: PartitionSpec<'_>,
) -> Result<Partition, DataError> {
    let TableFile { file, name, format } = match table.into() {
        TableSource::File(table) => table,
        TableSource::Memory(table) => return partition_memory(table, schema, spec),
    };
    match format {
        Format::Csv => partition_csv(file, &name, schema, spec),
        Format::Parquet => partition_parquet(file, &name, schema, spec),
        Format::Libsvm => partition_libsvm(file, &name, schema, spec),
    }
}

/// Reads a table whose rows are all for testing. The column of a split may be missing.
pub fn read_test_set<'a>(
    table: impl Into<TableSource<'a>>,
    schema: &Schema,
) -> Result<TestSet, DataError> {
    let TableFile { file, name, format } = match table.into() {
        TableSource::File(table) => table,
        TableSource::Memory(table) => return test_set_memory(table, schema),
    };
    match format {
        Format::Csv => test_set_csv(file, &name, schema),
        Format::Parquet => test_set_parquet(file, &name, schema),
        Format::Libsvm => test_set_libsvm(file, &name, schema),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_told_by_the_extension() {
        let format = |name: &str| Format::of(Path::new(name));
        assert_eq!(format("a/rows.csv"), Some(Format::Csv));
        assert_eq!(format("ROWS.CSV"), Some(Format::Csv));
        assert_eq!(format("rows.v2.parquet"), Some(Format::Parquet));
        assert_eq!(format("rows.svm"), Some(Format::Libsvm));
        assert_eq!(format("rows.libsvm"), Some(Format::Libsvm));
        assert_eq!(format("a9a.t"), Some(Format::Libsvm));
        for unknown in ["a9a", "rows.txt", "csv", ".csv", ""] {
            assert_eq!(format(unknown), None, "{unknown}");
        }
    }
}
