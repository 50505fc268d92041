//! Tables in Parquet files.
//!
//! A value is converted to the text that a CSV file would hold for it, so that both formats mean the same: an integer
//! as `-7`, a boolean as `true` or `false`, a float as the shortest decimal that parses to it. Row groups are read
//! one after the other, in batches of rows of the needed columns. Columns are found by their names and hold integers,
//! floats, booleans or text. A NULL is a missing value.

mod footer;

use std::fmt::Write;
use std::fs::File;
use std::ops::Range;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::error::{DataError, FilePosition};
use crate::error_kinds::{ColumnError, FieldError};
use crate::formats::catch_panic::catch_panic;
use crate::formats::named_columns::{Column, Header, NamedTable, Record, Records};

/// The number of rows decoded at a time.
const BATCH: usize = 1024;

/// An open Parquet file, of which a range of row groups is read.
pub(crate) struct ParquetTable<'a> {
    file: &'a str,
    reader: SerializedFileReader<File>,
    groups: Range<usize>,
}

impl<'a> ParquetTable<'a> {
    pub(crate) fn open(source: File, file: &'a str) -> Result<Self, DataError> {
        let length = source.metadata().map(|metadata| metadata.len());
        let length = length.map_err(DataError::read(file))?;
        let reader = decode(file, || SerializedFileReader::new(source))?;
        match footer::chunks_are_inside(reader.metadata(), length) {
            true => Ok(Self {
                file,
                groups: 0..reader.metadata().num_row_groups(),
                reader,
            }),
            false => {
                let cause = "its footer points outside of the file";
                Err(damaged(file, &ParquetError::General(cause.into())))
            }
        }
    }

    /// Returns the number of row groups.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Returns the same table with one row group alone, or with all if there is no number.
    pub(crate) fn only_group(self, number: Option<usize>) -> Result<Self, DataError> {
        let groups = match number {
            None => self.groups,
            Some(number) if self.groups.contains(&number) => number..number + 1,
            Some(_) => {
                let file = self.file.to_owned();
                return Err(DataError::Changed { file });
            }
        };
        Ok(Self { groups, ..self })
    }
}

impl<'f> NamedTable<'f> for ParquetTable<'f> {
    type Records = ParquetRows<'f>;

    fn header(&self) -> Header<'f> {
        let schema = self.reader.metadata().file_metadata().schema();
        let fields = schema.get_fields().iter();
        Header {
            file: self.file,
            position: FilePosition::Columns,
            names: fields.map(|field| field.name().to_owned()).collect(),
            separator: None,
        }
    }

    fn unreadable(&self, index: usize) -> Option<ColumnError> {
        footer::leaf(self.reader.metadata(), index).err()
    }

    fn records(self, used: &[Column<'_>]) -> Result<ParquetRows<'f>, DataError> {
        let mut slots = Vec::new();
        let mut chunks: Vec<ColumnChunk> = Vec::new();
        for column in used {
            // A column may occur twice: as a feature and as the column of the split.
            if slots.len() <= column.index {
                slots.resize(column.index + 1, None);
            }
            if slots[column.index].is_none() {
                let (leaf, unsigned) =
                    footer::leaf(self.reader.metadata(), column.index).map_err(|cause| {
                        DataError::Column {
                            file: self.file.to_owned(),
                            column: column.name.to_owned(),
                            cause,
                        }
                    })?;
                slots[column.index] = Some(chunks.len());
                chunks.push(ColumnChunk {
                    leaf,
                    unsigned,
                    reader: None,
                    cells: Cells::default(),
                });
            }
        }
        let metadata = self.reader.metadata();
        let before = (0..self.groups.start).map(|number| metadata.row_group(number).num_rows());
        let row = before.fold(0, |row: u64, rows| row.saturating_add_signed(rows));
        Ok(ParquetRows {
            file: self.file,
            reader: self.reader,
            slots,
            chunks,
            groups: self.groups,
            left: 0,
            batch: 0,
            at: 0,
            row,
        })
    }
}

/// The rows of a Parquet file, decoded in batches.
pub(crate) struct ParquetRows<'a> {
    file: &'a str,
    reader: SerializedFileReader<File>,
    /// The index into `chunks` by the index of a column.
    slots: Vec<Option<usize>>,
    chunks: Vec<ColumnChunk>,
    /// The row groups that were not opened yet.
    groups: Range<usize>,
    /// The number of rows of this group after the batch.
    left: usize,
    /// The number of rows of the batch.
    batch: usize,
    /// The index in the batch of the next row.
    at: usize,
    /// The number of the row read last, from 1.
    row: u64,
}

/// A column of the current row group.
struct ColumnChunk {
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

/// The record read last. Neither `Debug` nor `Clone`, because it is a row.
pub(crate) struct ParquetRecord<'r> {
    file: &'r str,
    slots: &'r [Option<usize>],
    chunks: &'r [ColumnChunk],
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
    /// Opens the next row group, and returns whether there was one.
    fn open_group(&mut self) -> Result<bool, DataError> {
        let metadata = self.reader.metadata();
        let Some(number) = self.groups.next() else {
            return Ok(false);
        };
        let file = self.file;
        let group = decode(file, || self.reader.get_row_group(number))?;
        for chunk in &mut self.chunks {
            chunk.reader = Some(decode(file, || group.get_column_reader(chunk.leaf))?);
        }
        let rows = metadata.row_group(number).num_rows();
        self.left = usize::try_from(rows).map_err(|_| {
            let cause = format!("invalid row group of {rows} rows");
            damaged(file, &ParquetError::General(cause))
        })?;
        Ok(true)
    }

    fn fill(&mut self) -> Result<(), DataError> {
        let rows = self.left.min(BATCH);
        for chunk in &mut self.chunks {
            decode(self.file, || chunk.fill(rows))?;
        }
        self.left -= rows;
        (self.batch, self.at) = (rows, 0);
        Ok(())
    }
}

impl ColumnChunk {
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
        mut format: impl FnMut(&mut Self, &T::T) -> Cell,
    ) -> Result<(), ParquetError> {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let (read, _, _) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
        if read != rows {
            let found = format!("a column has {read} values where {rows} are announced");
            return Err(ParquetError::General(found));
        }
        let mut values = values.iter();
        for row in 0..rows {
            // A required column has no levels. In an optional one, level 0 means NULL.
            let present = levels.get(row).is_none_or(|level| *level > 0);
            let cell = match present.then(|| values.next()) {
                None => Cell::Null,
                Some(Some(value)) => format(self, value),
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
        let slot = self.slots.get(column.index).copied().flatten();
        let Some(cells) = slot.map(|slot| &self.chunks[slot].cells) else {
            return Ok(None);
        };
        match &cells.cells[self.at] {
            Cell::Null => Ok(None),
            Cell::NotUtf8 => Err(self.field_error(column, FieldError::NotUtf8)),
            Cell::Text(range) => Ok(Some(&cells.text[range.clone()])),
        }
    }

    fn position(&self) -> FilePosition {
        FilePosition::Row(self.row)
    }

    fn file(&self) -> &str {
        self.file
    }
}

/// Runs the decoder, which panics on some damaged files and fails on others.
fn decode<T>(
    file: &str,
    decoder: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, DataError> {
    let panicked = || {
        let cause = "the decoder failed on a page";
        Err(ParquetError::General(cause.into()))
    };
    let decoded = catch_panic(decoder).unwrap_or_else(panicked);
    decoded.map_err(|cause| damaged(file, &cause))
}

fn damaged(file: &str, cause: &ParquetError) -> DataError {
    DataError::Parquet {
        file: file.to_owned(),
        cause: cause.to_string(),
    }
}
