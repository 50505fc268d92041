//! The sources of rows, and the one way to go through them.

use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::Format;
use super::compression::Compression;
use super::csv::CsvTable;
use super::foreign::ForeignFormat;
use super::libsvm::LibsvmRows;
use super::memory::{LabelledMatrix, MemoryTable};
use super::named_columns::NamedTable;
use super::options::{CsvDialect, FileOptions};
use super::parquet::ParquetTable;
use super::row_files::{RowFile, RowFiles};
use crate::error::DataError;
use crate::error_kinds::FormatError;

/// The number of bytes at the beginning of a text that tell how it is written.
const START: usize = 1 << 16;

/// The number of bytes at the beginning that are waited for, unless the source ends before.
const LEAST_START: usize = 8;

/// The number of bytes behind an invalid row that are searched for damage of compressed data.
const MOST_CHECKED: u64 = 1 << 30;

/// Files of rows: one, or those of a folder or of a pattern, one after the other.
pub struct TableFile {
    files: RowFiles,
    /// The file, if it is one.
    opened: Option<File>,
    options: FileOptions,
    /// Their name in errors.
    name: String,
}

impl TableFile {
    /// Finds the files at a path, and opens the file if it is one. Errors name it by its path.
    pub fn open(path: &Path, options: impl Into<FileOptions>) -> io::Result<Self> {
        Self::of(RowFiles::find(path)?, options)
    }

    /// Takes files that were found, and opens the file if it is one.
    pub fn of(files: RowFiles, options: impl Into<FileOptions>) -> io::Result<Self> {
        Ok(Self {
            opened: files.only().map(File::open).transpose()?,
            options: options.into(),
            name: files.path().display().to_string(),
            files,
        })
    }

    /// Returns the format of the files: the given one, or the one that the extensions of all of them imply.
    pub(super) fn format(&self) -> Format {
        let mut implied = self.paths().map(|path| Format::of(path));
        let given = self.options.format;
        given
            .or_else(|| implied.find_map(|format| format))
            .unwrap_or(Format::Csv)
    }

    /// Returns the paths of the files, in the order of their rows.
    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.files().iter().map(|file| &file.path)
    }

    /// Checks that all files have one format by their names. A single file has the given one, whatever it is called.
    pub(super) fn check_formats(&self, expected: Format) -> Result<(), DataError> {
        let files = || self.paths();
        let is_given = self.options.format.is_some();
        let any_implied = files().any(|path| Format::of(path).is_some());
        let is_odd = |path: &&PathBuf| match Format::of(path) {
            Some(found) => found != expected,
            None => !is_given && any_implied,
        };
        match files().find(is_odd).filter(|_| self.opened.is_none()) {
            None => Ok(()),
            Some(path) => Err(DataError::MixedFormats {
                file: path.display().to_string(),
                found: Format::of(path),
                expected,
                is_given,
            }),
        }
    }

    /// Opens the files one after the other, and passes them to a visitor.
    fn visit<V: TableVisitor>(self, visitor: &mut V) -> Result<(), V::Error> {
        let format = self.format();
        self.check_formats(format)?;
        let mut opened = self.opened;
        for RowFile { path, .. } in self.files.files() {
            let name = path.display().to_string();
            let file = match opened.take() {
                Some(file) => file,
                None => File::open(path).map_err(DataError::read(&name))?,
            };
            match format {
                Format::Parquet => visitor.named(ParquetTable::open(file, &name)?)?,
                _ => visit_text(file, &name, path, format, self.options, visitor)?,
            }
        }
        Ok(())
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
    /// Files.
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

/// The treatment of the rows of a table, whatever its format.
pub(crate) trait TableVisitor {
    type Error: From<DataError>;

    /// Whether it looks at the beginning of a text. Otherwise the first rows of a command that prints slowly are read at once.
    const LOOKS_AHEAD: bool = false;

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
            Self::File(file) => file.format(),
            Self::Stream(stream) => stream.options.format.unwrap_or(Format::Csv),
            Self::Memory(table) if table.matrix().is_some() => Format::Libsvm,
            Self::Memory(_) => Format::Parquet,
        }
    }

    /// Opens the table and passes it to a visitor, file by file.
    pub(crate) fn visit<V: TableVisitor>(self, visitor: &mut V) -> Result<(), V::Error> {
        let format = self.format();
        match self {
            Self::File(table) => table.visit(visitor),
            Self::Stream(stream) => match format {
                Format::Parquet => {
                    Err(DataError::format(&stream.name, FormatError::ParquetStream).into())
                }
                _ => {
                    let (name, options) = (&stream.name, stream.options);
                    visit_text(stream.source, name, Path::new(""), format, options, visitor)
                }
            },
            Self::Memory(table) => match table.matrix() {
                Some(matrix) => visitor.matrix(table, matrix),
                None => visitor.named(table),
            },
        }
    }
}

/// Passes a text to a visitor, decompressed if it is compressed.
pub(super) fn visit_text<'a, V: TableVisitor>(
    source: impl Read + 'a,
    name: &str,
    path: &Path,
    format: Format,
    options: FileOptions,
    visitor: &mut V,
) -> Result<(), V::Error> {
    let mut source: Box<dyn Read> = Box::new(source);
    let mut start = take_start(&mut source, name, V::LOOKS_AHEAD)?;
    let compression = Compression::of(&start);
    if let Some(compression) = compression {
        let decoded = compression.decoded(Cursor::new(start).chain(source));
        source = decoded.map_err(DataError::read(name))?;
        start = take_start(&mut source, name, V::LOOKS_AHEAD)?;
    }
    if let Some(foreign) = ForeignFormat::of(&start) {
        return Err(foreign.error(name).into());
    }
    let dialect = visitor.dialect(&start, options, options.dialect(path));
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

/// Takes the beginning off a source: what one reading gives, or more of it if `wait`.
fn take_start(source: &mut dyn Read, name: &str, wait: bool) -> Result<Vec<u8>, DataError> {
    let least = if wait { START } else { LEAST_START };
    let mut start = vec![0; START];
    let mut length = 0;
    while length < least {
        match source.read(&mut start[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(DataError::read(name)(error)),
        }
    }
    start.truncate(length);
    Ok(start)
}
