//! Files of rows and their formats.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use serde::Serialize;

use crate::csv::read_csv;
use crate::error::DataError;
use crate::libsvm::read_libsvm;
use crate::parquet::read_parquet;
use crate::partition::Partition;
use crate::schema::{Schema, Split};

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

/// Reads a table, encodes its rows and deals them out to `nodes` nodes, in one pass.
///
/// For what is read of which format see [`read_csv`], [`read_parquet`] and [`read_libsvm`].
pub fn read(
    table: TableFile,
    schema: &Schema,
    split: &Split,
    nodes: usize,
) -> Result<Partition, DataError> {
    let TableFile { file, name, format } = table;
    match format {
        Format::Csv => read_csv(file, &name, schema, split, nodes),
        Format::Parquet => read_parquet(file, &name, schema, split, nodes),
        Format::Libsvm => read_libsvm(file, &name, schema, split, nodes),
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
