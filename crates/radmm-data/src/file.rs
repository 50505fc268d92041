//! Files of rows and their formats.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use serde::Serialize;

use crate::csv::{deal_csv, read_test_csv};
use crate::error::DataError;
use crate::holdout::Held;
use crate::libsvm::{deal_libsvm, read_test_libsvm};
use crate::parquet::{deal_parquet, read_test_parquet};
use crate::partition::{Deal, Partition};
use crate::schema::Schema;

/// How rows are written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Text, a header line and commas.
    Csv,
    /// Columns of values with names and types.
    Parquet,
    /// Text, a label and `index:value` pairs a line.
    Libsvm,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Csv, Self::Parquet, Self::Libsvm];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Libsvm => "libsvm",
        }
    }

    /// What the extension of a file says, upper case or lower: `.csv`, `.parquet`, and `.svm`, `.libsvm` or `.t` (what the
    /// test rows of public LIBSVM files are called).
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

/// A file of rows, open.
pub struct TableFile {
    pub(crate) file: File,
    /// As errors call it.
    pub(crate) name: String,
    pub(crate) format: Format,
}

impl TableFile {
    /// Opens a file; errors call it by its path.
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

/// Reads a table, encodes its rows, holds some out and deals the others out to nodes, in one pass.
///
/// For what is read of which format see [`deal_csv`], [`deal_parquet`] and [`deal_libsvm`].
pub fn read(table: TableFile, schema: &Schema, deal: Deal<'_>) -> Result<Partition, DataError> {
    let TableFile { file, name, format } = table;
    match format {
        Format::Csv => deal_csv(file, &name, schema, deal),
        Format::Parquet => deal_parquet(file, &name, schema, deal),
        Format::Libsvm => deal_libsvm(file, &name, schema, deal),
    }
}

/// Reads a table of rows to test on, all of them. The split has no say in it: its column may be missing.
pub fn read_test(table: TableFile, schema: &Schema) -> Result<Held, DataError> {
    let TableFile { file, name, format } = table;
    match format {
        Format::Csv => read_test_csv(file, &name, schema),
        Format::Parquet => read_test_parquet(file, &name, schema),
        Format::Libsvm => read_test_libsvm(file, &name, schema),
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
