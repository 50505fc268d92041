//! The formats of tables: files, streams, and tables in memory.
//!
//! A new file format is a module here, a variant of [`Format`], and an arm where `source` opens a file.

pub(crate) mod catch_panic;
mod compression;
pub(crate) mod csv;
pub(crate) mod libsvm;
pub(crate) mod memory;
pub(crate) mod named_columns;
pub(crate) mod options;
pub(crate) mod parquet;
mod pieces;
mod read;
mod row_files;
pub(crate) mod source;

use std::path::Path;

use serde::Serialize;

pub use self::options::{DecimalMark, FileOptions, Separator};
pub use self::pieces::{PieceCounts, TablePiece, read_pieces};
pub use self::read::{partition_csv, partition_libsvm, read_partition, read_test_set};
pub use self::row_files::RowFiles;
pub use self::source::{TableFile, TableSource, TableStream};

/// The format of a file of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Text with a header line and commas, or another separator.
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

    /// Returns its name in messages.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Csv => "CSV",
            Self::Parquet => "Parquet",
            Self::Libsvm => "LIBSVM",
        }
    }

    /// Returns the format that the extension of a file implies, upper case or lower: `.csv`, `.tsv` or `.tab`, `.parquet`, and
    /// `.svm`, `.libsvm` or `.t` (the usual extension of the test rows of public LIBSVM files). In front of `.gz`, `.zst` or
    /// `.zstd` it is the one before.
    pub fn of(path: &Path) -> Option<Self> {
        match extension(path)?.as_str() {
            "csv" | "tsv" | "tab" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            "svm" | "libsvm" | "t" => Some(Self::Libsvm),
            _ => None,
        }
    }
}

/// Returns the extension of a file in lower case, that of its content if the file is compressed.
fn extension(path: &Path) -> Option<String> {
    let lower = |path: &Path| Some(path.extension()?.to_str()?.to_ascii_lowercase());
    match lower(path)?.as_str() {
        "gz" | "zst" | "zstd" => lower(Path::new(path.file_stem()?)),
        other => Some(other.to_owned()),
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
        assert_eq!(format("rows.csv.gz"), Some(Format::Csv));
        assert_eq!(format("rows.tsv.ZST"), Some(Format::Csv));
        assert_eq!(format("a9a.svm.zstd"), Some(Format::Libsvm));
        assert_eq!(format("rows.TSV"), Some(Format::Csv));
        for unknown in ["rows.gz", "csv.gz", "a9a", "rows.txt", "csv", ".csv", ""] {
            assert_eq!(format(unknown), None, "{unknown}");
        }
    }
}
