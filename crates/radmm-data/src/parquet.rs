//! Tables in Parquet files.
//!
//! A value is taken as the text that a CSV file would hold for it, so that both mean the same: an integer as `-7`, a
//! boolean as `true` or `false`, a float as the shortest decimal that means it. Row groups are read one after the other,
//! a few rows of each needed column at a time.

mod footer;

use std::fmt::Write;
use std::fs::File;
use std::ops::Range;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::decoding::decode;
use crate::error::{DataError, FieldProblem, Place};
use crate::holdout::Held;
use crate::named::{self, Column, Header, Record, Records};
use crate::partition::{Deal, Partition};
use crate::problem::ColumnProblem;
use crate::schema::Schema;

/// Rows that are decoded at a time.
const BATCH: usize = 1024;

/// Reads a table, encodes its rows, holds some out and deals the others out to nodes, in one pass over the columns that
/// are needed.
///
/// Columns are found by their names and hold integers, floats, booleans or text. A NULL is a missing value. `file` is
/// how errors call the source.
pub fn deal_parquet(
    source: File,
    file: &str,
    schema: &Schema,
    deal: Deal<'_>,
) -> Result<Partition, DataError> {
    let table = ParquetTable::open(source, file)?;
    named::deal(table.header(), |used| table.rows(used), schema, deal)
}

/// Reads a table of rows to test on. The split has no say in it: its column may be missing.
pub fn read_test_parquet(source: File, file: &str, schema: &Schema) -> Result<Held, DataError> {
    let table = ParquetTable::open(source, file)?;
    named::test(&table.header(), |used| table.rows(used), schema)
}

/// An open file.
pub(crate) struct ParquetTable<'a> {
    file: &'a str,
    reader: SerializedFileReader<File>,
}

impl<'a> ParquetTable<'a> {
    pub(crate) fn open(source: File, file: &'a str) -> Result<Self, DataError> {
        let length = source.metadata().map(|metadata| metadata.len());
        let length = length.map_err(|cause| DataError::Read {
            file: file.to_owned(),
            cause,
        })?;
        let reader = guarded(file, || SerializedFileReader::new(source))?;
        match footer::is_sound(reader.metadata(), length) {
            true => Ok(Self { file, reader }),
            false => {
                let cause = "its footer points outside of the file";
                Err(damaged(file, &ParquetError::General(cause.into())))
            }
        }
    }

    pub(crate) fn header(&self) -> Header<'a> {
        let schema = self.reader.metadata().file_metadata().schema();
        let fields = schema.get_fields().iter();
        Header {
            file: self.file,
            place: Place::Columns,
            names: fields.map(|field| field.name().to_owned()).collect(),
        }
    }

    /// The rows, of which these columns are read.
    pub(crate) fn rows(&self, used: &[Column<'_>]) -> Result<ParquetRows<'_>, DataError> {
        let mut slots = Vec::new();
        let mut chunks: Vec<Chunk> = Vec::new();
        for column in used {
            // A column may be a feature and tell the nodes apart.
            if slots.len() <= column.position {
                slots.resize(column.position + 1, None);
            }
            if slots[column.position].is_none() {
                let (leaf, unsigned) = footer::leaf(self.reader.metadata(), column.position)
                    .map_err(|problem| DataError::Column {
                        file: self.file.to_owned(),
                        column: column.name.to_owned(),
                        problem,
                    })?;
                slots[column.position] = Some(chunks.len());
                chunks.push(Chunk {
                    leaf,
                    unsigned,
                    reader: None,
                    cells: Cells::default(),
                });
            }
        }
        Ok(ParquetRows {
            file: self.file,
            reader: &self.reader,
            slots,
            chunks,
            next_group: 0,
            left: 0,
            batch: 0,
            at: 0,
            row: 0,
        })
    }

    /// Why a column cannot be read, if so.
    pub(crate) fn obstacle(&self, position: usize) -> Option<ColumnProblem> {
        footer::leaf(self.reader.metadata(), position).err()
    }
}

/// Reads a batch of records at a time.
pub(crate) struct ParquetRows<'a> {
    file: &'a str,
    reader: &'a SerializedFileReader<File>,
    /// From a column's position to its chunk.
    slots: Vec<Option<usize>>,
    chunks: Vec<Chunk>,
    next_group: usize,
    /// Rows of this group beyond the batch.
    left: usize,
    /// Rows of the batch.
    batch: usize,
    /// The row after this record's, in the batch.
    at: usize,
    /// And in the file.
    row: u64,
}

/// A column of the current row group.
struct Chunk {
    leaf: usize,
    unsigned: bool,
    reader: Option<ColumnReader>,
    cells: Cells,
}

/// The values of a column in a batch, as text.
#[derive(Default)]
struct Cells {
    text: String,
    cells: Vec<Cell>,
}

enum Cell {
    Null,
    NotUtf8,
    Text(Range<usize>),
}

/// The record read last. Neither `Debug` nor `Clone`: it is a row.
pub(crate) struct ParquetRecord<'r> {
    file: &'r str,
    slots: &'r [Option<usize>],
    chunks: &'r [Chunk],
    at: usize,
    row: u64,
}

impl Records for ParquetRows<'_> {
    type Record<'r>
        = ParquetRecord<'r>
    where
        Self: 'r;

    fn next(&mut self) -> Result<Option<ParquetRecord<'_>>, DataError> {
        while self.at == self.batch {
            if self.left == 0 && !self.open_group()? {
                return Ok(None);
            }
            self.fill()?;
        }
        self.at += 1;
        self.row += 1;
        Ok(Some(ParquetRecord {
            file: self.file,
            slots: &self.slots,
            chunks: &self.chunks,
            at: self.at - 1,
            row: self.row,
        }))
    }
}

impl ParquetRows<'_> {
    /// Goes to the next row group, if there is one.
    fn open_group(&mut self) -> Result<bool, DataError> {
        let metadata = self.reader.metadata();
        if self.next_group == metadata.num_row_groups() {
            return Ok(false);
        }
        let (file, number) = (self.file, self.next_group);
        let group = guarded(file, || self.reader.get_row_group(number))?;
        for chunk in &mut self.chunks {
            chunk.reader = Some(guarded(file, || group.get_column_reader(chunk.leaf))?);
        }
        let rows = metadata.row_group(number).num_rows();
        self.left = usize::try_from(rows).map_err(|_| {
            let cause = format!("a group of {rows} rows");
            damaged(file, &ParquetError::General(cause))
        })?;
        self.next_group += 1;
        Ok(true)
    }

    fn fill(&mut self) -> Result<(), DataError> {
        let rows = self.left.min(BATCH);
        for chunk in &mut self.chunks {
            guarded(self.file, || chunk.fill(rows))?;
        }
        self.left -= rows;
        (self.batch, self.at) = (rows, 0);
        Ok(())
    }
}

impl Chunk {
    fn fill(&mut self, rows: usize) -> Result<(), ParquetError> {
        let (cells, unsigned) = (&mut self.cells, self.unsigned);
        cells.text.clear();
        cells.cells.clear();
        match &mut self.reader {
            None => {}
            Some(ColumnReader::BoolColumnReader(reader)) => {
                cells.read(reader, rows, |cells, value| cells.print(value))?;
            }
            Some(ColumnReader::Int32ColumnReader(reader)) if unsigned => {
                cells.read(reader, rows, |cells, value| cells.print(*value as u32))?;
            }
            Some(ColumnReader::Int32ColumnReader(reader)) => {
                cells.read(reader, rows, |cells, value| cells.print(value))?;
            }
            Some(ColumnReader::Int64ColumnReader(reader)) if unsigned => {
                cells.read(reader, rows, |cells, value| cells.print(*value as u64))?;
            }
            Some(ColumnReader::Int64ColumnReader(reader)) => {
                cells.read(reader, rows, |cells, value| cells.print(value))?;
            }
            Some(ColumnReader::FloatColumnReader(reader)) => {
                cells.read(reader, rows, |cells, value| cells.print(value))?;
            }
            Some(ColumnReader::DoubleColumnReader(reader)) => {
                cells.read(reader, rows, |cells, value| cells.print(value))?;
            }
            Some(ColumnReader::ByteArrayColumnReader(reader)) => {
                cells.read(reader, rows, Cells::copy)?;
            }
            Some(
                ColumnReader::Int96ColumnReader(_) | ColumnReader::FixedLenByteArrayColumnReader(_),
            ) => return Err(ParquetError::General("a column changed its type".into())),
        }
        Ok(())
    }
}

impl Cells {
    fn read<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        rows: usize,
        mut show: impl FnMut(&mut Self, &T::T) -> Cell,
    ) -> Result<(), ParquetError> {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let (read, _, _) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
        if read != rows {
            let found = format!("a column has {read} values where {rows} are announced");
            return Err(ParquetError::General(found));
        }
        let mut values = values.iter();
        for row in 0..rows {
            // A column that is not optional has no levels; of one that is, 0 means NULL.
            let present = levels.get(row).is_none_or(|level| *level > 0);
            let cell = match present.then(|| values.next()) {
                None => Cell::Null,
                Some(Some(value)) => show(self, value),
                Some(None) => {
                    let found = "a column has fewer values than it announces";
                    return Err(ParquetError::General(found.into()));
                }
            };
            self.cells.push(cell);
        }
        Ok(())
    }

    fn print(&mut self, value: impl std::fmt::Display) -> Cell {
        let start = self.text.len();
        // Writing into a string does not fail.
        let _ = write!(self.text, "{value}");
        Cell::Text(start..self.text.len())
    }

    fn copy(&mut self, value: &ByteArray) -> Cell {
        let Ok(text) = str::from_utf8(value.data()) else {
            return Cell::NotUtf8;
        };
        let start = self.text.len();
        self.text.push_str(text.trim());
        Cell::Text(start..self.text.len())
    }
}

impl Record for ParquetRecord<'_> {
    fn value(&self, column: Column<'_>) -> Result<Option<&str>, DataError> {
        let slot = self.slots.get(column.position).copied().flatten();
        let Some(cells) = slot.map(|slot| &self.chunks[slot].cells) else {
            return Ok(None);
        };
        match &cells.cells[self.at] {
            Cell::Null => Ok(None),
            Cell::NotUtf8 => Err(self.refuse(column, FieldProblem::NotUtf8)),
            Cell::Text(range) => Ok(Some(&cells.text[range.clone()])),
        }
    }

    fn place(&self) -> Place {
        Place::Row(self.row)
    }

    fn file(&self) -> &str {
        self.file
    }
}

/// The decoder panics on some damaged files, where others make it fail.
fn guarded<T>(
    file: &str,
    decoder: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, DataError> {
    let gave_up = || {
        let cause = "the decoder gave up on a page";
        Err(ParquetError::General(cause.into()))
    };
    let decoded = decode(decoder).unwrap_or_else(gave_up);
    decoded.map_err(|cause| damaged(file, &cause))
}

fn damaged(file: &str, cause: &ParquetError) -> DataError {
    DataError::Parquet {
        file: file.to_owned(),
        cause: cause.to_string(),
    }
}
