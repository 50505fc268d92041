//! The pieces of a table's files, which can be read apart from each other: row groups of Parquet files, and whole files of other
//! formats.
//!
//! Workers that share a table first count the complete rows of its pieces. Then each of them reads a range of complete rows, by
//! their numbers in the whole table, from the pieces that hold it.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;

use radmm::curator::{Shard, ShardBuilder};

use super::Format;
use super::libsvm::LibsvmRows;
use super::memory::{LabelledMatrix, MemoryTable};
use super::named_columns::{NamedTable, each_row};
use super::options::FileOptions;
use super::parquet::ParquetTable;
use super::read::no_rows;
use super::source::{TableFile, TableVisitor, visit_text};
use crate::error::DataError;
use crate::ingest::counts::{RowCounts, add_label, check_complete};
use crate::ingest::row::Row;
use crate::schema::Schema;

/// A part of a table's files that can be read by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePiece {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// The number of the row group in a Parquet file; `None` for a whole file.
    pub group: Option<usize>,
}

/// Counts of the rows of a piece, or of all pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieceCounts {
    /// The number of rows.
    pub read: usize,
    /// The number of rows that lack no value.
    pub complete: usize,
    /// The number of complete rows of the positive class.
    pub positive: usize,
    /// The first few different labels of complete rows, in order of appearance.
    pub labels: Vec<String>,
}

impl TableFile {
    /// Returns the pieces of the files, in the order of their rows.
    pub fn pieces(&self) -> Result<Vec<TablePiece>, DataError> {
        let format = self.format();
        self.check_formats(format)?;
        let mut pieces = Vec::new();
        for path in self.paths() {
            let piece = |group| TablePiece {
                path: path.clone(),
                format,
                group,
            };
            match format {
                Format::Parquet => {
                    let name = path.display().to_string();
                    let file = File::open(path).map_err(DataError::read(&name))?;
                    let groups = ParquetTable::open(file, &name)?.groups();
                    pieces.extend((0..groups).map(|group| piece(Some(group))));
                }
                _ => pieces.push(piece(None)),
            }
        }
        Ok(pieces)
    }
}

impl TablePiece {
    /// Counts the rows, each of which is encoded and forgotten.
    pub fn count(&self, schema: &Schema, options: FileOptions) -> Result<PieceCounts, DataError> {
        let mut counts = RowCounts::new(schema);
        self.each_row(schema, options, |row| {
            counts.read += 1;
            match row {
                Some(row) => counts.count(row),
                None => counts.dropped += 1,
            }
            Ok(())
        })?;
        Ok(PieceCounts {
            read: counts.read,
            complete: counts.trained,
            positive: counts.positive,
            labels: counts.labels,
        })
    }

    fn each_row(
        &self,
        schema: &Schema,
        options: FileOptions,
        take: impl FnMut(Option<&mut Row>) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let name = self.path.display().to_string();
        let file = File::open(&self.path).map_err(DataError::read(&name))?;
        let mut visitor = EachRow { schema, take };
        match self.format {
            Format::Parquet => {
                let table = ParquetTable::open(file, &name)?;
                visitor.named(table.only_group(self.group)?)
            }
            format => visit_text(file, &name, &self.path, format, options, &mut visitor),
        }
    }
}

impl PieceCounts {
    /// Adds up the counts of all pieces of a table, and checks that a complete row is left. `file` is the table's name in errors.
    pub fn total(pieces: &[Self], file: &str, schema: &Schema) -> Result<Self, DataError> {
        let mut counts = RowCounts::new(schema);
        for piece in pieces {
            counts.read += piece.read;
            counts.trained += piece.complete;
            counts.positive += piece.positive;
            for label in &piece.labels {
                add_label(&mut counts.labels, label);
            }
        }
        if counts.read == 0 {
            return Err(no_rows(file.to_owned(), schema));
        }
        check_complete(file, counts.read, counts.read - counts.trained)?;
        Ok(Self {
            read: counts.read,
            complete: counts.trained,
            positive: counts.positive,
            labels: counts.labels,
        })
    }

    /// Checks that both classes occur.
    pub fn check_classes(&self, file: &str, schema: &Schema) -> Result<(), DataError> {
        let mut counts = RowCounts::new(schema);
        counts.trained = self.complete;
        counts.positive = self.positive;
        counts.labels.clone_from(&self.labels);
        counts.check_classes(file, schema)
    }
}

/// Reads a range of the complete rows of some pieces, which are numbered from the first of these pieces on. With each piece goes
/// the number of its complete rows: if it has others now, its file was changed, which is an error.
pub fn read_pieces(
    pieces: &[(TablePiece, usize)],
    rows: Range<usize>,
    schema: &Schema,
    options: FileOptions,
) -> Result<Shard, DataError> {
    let mut builder = ShardBuilder::new(schema.width(), schema.rows);
    let mut next = 0;
    for (piece, complete) in pieces {
        let file = || piece.path.display().to_string();
        let first = next;
        piece.each_row(schema, options, |row| {
            let Some(row) = row else {
                return Ok(());
            };
            let number = next;
            next += 1;
            match rows.contains(&number) {
                true => builder
                    .push(&row.entries, row.positive)
                    .map_err(DataError::row(&file())),
                false => Ok(()),
            }
        })?;
        if next - first != *complete {
            return Err(DataError::Changed { file: file() });
        }
    }
    let names = pieces.iter().map(|(piece, _)| &piece.path);
    let file = names.map(|path| path.display().to_string()).next();
    let file = file.unwrap_or_default();
    match next < rows.end {
        true => Err(DataError::Changed { file }),
        false => builder.finish().map_err(|_| no_rows(file, schema)),
    }
}

/// Passes every row to a function, or `None` for a row with a missing value.
struct EachRow<'a, F> {
    schema: &'a Schema,
    take: F,
}

impl<F: FnMut(Option<&mut Row>) -> Result<(), DataError>> TableVisitor for EachRow<'_, F> {
    type Error = DataError;

    fn named<'f>(&mut self, table: impl NamedTable<'f>) -> Result<(), DataError> {
        each_row(table, self.schema, None, &mut self.take).map(drop)
    }

    fn libsvm(&mut self, rows: LibsvmRows<'_, impl Read>) -> Result<(), DataError> {
        rows.each_row(self.schema, &mut self.take)
    }

    fn matrix(
        &mut self,
        table: &MemoryTable<'_>,
        matrix: &LabelledMatrix<'_>,
    ) -> Result<(), DataError> {
        matrix.each_row(table, self.schema, &mut self.take)
    }
}
