//! The formats of tables: files, streams, and tables in memory.
//!
//! A new file format is a module here, a variant of [`Format`], and an arm in [`TableSource::visit`].

pub(crate) mod catch_panic;
mod compression;
pub(crate) mod csv;
pub(crate) mod libsvm;
pub(crate) mod memory;
pub(crate) mod named_columns;
pub(crate) mod options;
pub(crate) mod parquet;

use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read};
use std::path::Path;

use serde::Serialize;

use self::compression::Compression;
use self::csv::CsvTable;
use self::libsvm::LibsvmRows;
use self::memory::{LabelledMatrix, MemoryTable};
use self::named_columns::{NamedTable, each_row};
use self::options::CsvDialect;
pub use self::options::{DecimalMark, FileOptions, Separator};
use self::parquet::ParquetTable;
use crate::error::DataError;
use crate::error_kinds::FormatError;
use crate::ingest::Ingest;
use crate::ingest::holdout::{TestFile, TestSet};
use crate::ingest::partition::{Partition, PartitionSpec};
use crate::schema::{Schema, Split};

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

/// An open file of rows.
pub struct TableFile {
    file: File,
    /// The name of the file in errors.
    name: String,
    format: Format,
    dialect: CsvDialect,
    options: FileOptions,
}

impl TableFile {
    /// Opens a file. Errors name it by its path.
    pub fn open(path: &Path, options: impl Into<FileOptions>) -> io::Result<Self> {
        let options = options.into();
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        Ok(Self {
            file,
            name: path.display().to_string(),
            format: options
                .format
                .or_else(|| Format::of(path))
                .unwrap_or(Format::Csv),
            dialect: options.dialect(path),
            options,
        })
    }
}

/// Rows that come as a stream of bytes, which is read once.
pub struct TableStream<'a> {
    source: Box<dyn Read + 'a>,
    name: String,
    options: FileOptions,
}

impl<'a> TableStream<'a> {
    /// Takes a stream; `name` is its name in errors. A format that is not given is CSV.
    pub fn new(
        source: impl Read + 'a,
        name: impl Into<String>,
        options: impl Into<FileOptions>,
    ) -> Self {
        Self {
            source: Box::new(source),
            name: name.into(),
            options: options.into(),
        }
    }
}

/// The rows to read.
pub enum TableSource<'a> {
    /// An open file.
    File(TableFile),
    /// A stream of bytes.
    Stream(TableStream<'a>),
    /// A table in memory.
    Memory(&'a MemoryTable<'a>),
}

impl From<TableFile> for TableSource<'_> {
    fn from(file: TableFile) -> Self {
        Self::File(file)
    }
}

impl<'a> From<TableStream<'a>> for TableSource<'a> {
    fn from(stream: TableStream<'a>) -> Self {
        Self::Stream(stream)
    }
}

impl<'a> From<&'a MemoryTable<'a>> for TableSource<'a> {
    fn from(table: &'a MemoryTable<'a>) -> Self {
        Self::Memory(table)
    }
}

/// What is done with the rows of a table, whatever its format.
pub(crate) trait TableVisitor {
    type Error: From<DataError>;

    /// Returns how a CSV file is written that begins like this. `given` is what somebody said of it, and `implied` is what
    /// follows from that and its extension.
    fn dialect(&mut self, _start: &[u8], _given: FileOptions, implied: CsvDialect) -> CsvDialect {
        implied
    }

    /// Takes a table whose columns have names.
    fn named<'f>(&mut self, table: impl NamedTable<'f>) -> Result<(), Self::Error>;

    /// Takes the rows of a LIBSVM file.
    fn libsvm(&mut self, rows: LibsvmRows<'_, impl Read>) -> Result<(), Self::Error>;

    /// Takes a sparse matrix in memory.
    fn matrix(
        &mut self,
        table: &MemoryTable<'_>,
        matrix: &LabelledMatrix<'_>,
    ) -> Result<(), Self::Error>;
}

impl TableSource<'_> {
    /// Returns its name in errors.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::File(file) => &file.name,
            Self::Stream(stream) => &stream.name,
            Self::Memory(table) => table.name(),
        }
    }

    /// Returns its format. A table in memory has columns with names and types, as a Parquet file.
    pub(crate) fn format(&self) -> Format {
        match self {
            Self::File(file) => file.format,
            Self::Stream(stream) => stream.options.format.unwrap_or(Format::Csv),
            Self::Memory(table) if table.matrix().is_some() => Format::Libsvm,
            Self::Memory(_) => Format::Parquet,
        }
    }

    /// Opens the table and passes it to a visitor.
    pub(crate) fn visit<V: TableVisitor>(self, visitor: &mut V) -> Result<(), V::Error> {
        let format = self.format();
        match self {
            Self::File(file) => match format {
                Format::Parquet => visitor.named(ParquetTable::open(file.file, &file.name)?),
                _ => {
                    let (options, dialect) = (file.options, file.dialect);
                    visit_text(file.file, &file.name, format, options, dialect, visitor)
                }
            },
            Self::Stream(stream) => match format {
                Format::Parquet => {
                    Err(DataError::format(&stream.name, FormatError::ParquetStream).into())
                }
                _ => {
                    let options = stream.options;
                    let dialect = options.dialect(Path::new(""));
                    visit_text(
                        stream.source,
                        &stream.name,
                        format,
                        options,
                        dialect,
                        visitor,
                    )
                }
            },
            Self::Memory(table) => match table.matrix() {
                Some(matrix) => visitor.matrix(table, matrix),
                None => visitor.named(table),
            },
        }
    }
}

/// The number of bytes at the beginning of a text that tell how it is written.
const START: u64 = 1 << 16;

/// The number of bytes behind an invalid row that are searched for damage of compressed data.
const MOST_CHECKED: u64 = 1 << 30;

/// Passes a text to a visitor, decompressed if it is compressed.
fn visit_text<'a, V: TableVisitor>(
    source: impl Read + 'a,
    name: &str,
    format: Format,
    given: FileOptions,
    implied: CsvDialect,
    visitor: &mut V,
) -> Result<(), V::Error> {
    let mut source: Box<dyn Read> = Box::new(source);
    let mut start = take_start(&mut source, name)?;
    let compression = Compression::of(&start);
    if let Some(compression) = compression {
        let decoded = compression.decoded(Cursor::new(start).chain(source));
        source = decoded.map_err(DataError::read(name))?;
        start = take_start(&mut source, name)?;
    }
    let dialect = visitor.dialect(&start, given, implied);
    let text: Box<dyn Read> = Box::new(Cursor::new(start).chain(&mut source));
    let visited = match format {
        Format::Libsvm => visitor.libsvm(LibsvmRows::new(text, name)),
        _ => CsvTable::open(text, name, dialect)
            .map_err(V::Error::from)
            .and_then(|table| visitor.named(table)),
    };
    if visited.is_err() && compression.is_some() {
        // Damaged data can look like invalid rows before its checksum is read.
        let rest = io::copy(&mut source.take(MOST_CHECKED), &mut io::sink());
        rest.map_err(DataError::read(name))?;
    }
    visited
}

/// Takes the beginning off a source.
fn take_start(source: &mut dyn Read, name: &str) -> Result<Vec<u8>, DataError> {
    let mut start = Vec::new();
    let read = source.take(START).read_to_end(&mut start);
    read.map_err(DataError::read(name))?;
    Ok(start)
}

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

fn no_rows(file: String, schema: &Schema) -> DataError {
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
        self.ignored = each_row(table, self.schema, split_by, |row| self.ingest.add(row))?;
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
