//! Tables in Parquet files.
//!
//! A value is taken as the text that a CSV file would hold for it, so that both mean the same: an integer as `-7`, a
//! boolean as `true` or `false`, a float as the shortest decimal that means it. Row groups are read one after the other,
//! a few rows of each needed column at a time.

use std::fmt::Write;
use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::basic::{Compression, ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use crate::error::{ColumnProblem, DataError, FieldProblem, Place};
use crate::named::{self, Column, Header, Record, Records};
use crate::partition::Partition;
use crate::schema::{Schema, Split};

/// Rows that are decoded at a time.
const BATCH: usize = 1024;

/// Reads a table, encodes its rows and deals them out to `nodes` nodes, in one pass over the columns that are needed.
///
/// Columns are found by their names and hold integers, floats, booleans or text. A NULL is a missing value. `file` is
/// how errors call the source.
pub fn read_parquet(
    source: File,
    file: &str,
    schema: &Schema,
    split: &Split,
    nodes: usize,
) -> Result<Partition, DataError> {
    let table = ParquetTable::open(source, file)?;
    named::deal(
        table.header(),
        |used| table.rows(used),
        schema,
        split,
        nodes,
    )
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
        let reader = SerializedFileReader::new(source).map_err(|cause| damaged(file, &cause))?;
        match is_sound(&reader, length) {
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
                let (leaf, unsigned) =
                    self.leaf(column.position)
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

    /// The place of a column among those that hold values, and whether it holds unsigned integers.
    pub(crate) fn leaf(&self, position: usize) -> Result<(usize, bool), ColumnProblem> {
        let metadata = self.reader.metadata();
        let schema = metadata.file_metadata().schema_descr();
        let of_column = |leaf: &usize| schema.get_column_root_idx(*leaf) == position;
        let leaf = (0..schema.num_columns()).find(of_column);
        let leaf = leaf.ok_or(ColumnProblem::Nested)?;
        let descriptor = schema.column(leaf);
        if descriptor.path().parts().len() != 1 || descriptor.max_rep_level() > 0 {
            return Err(ColumnProblem::Nested);
        }
        let unsigned = is_unsigned(&descriptor)?;
        for group in metadata.row_groups() {
            let codec = group.column(leaf).compression();
            match codec {
                Compression::UNCOMPRESSED
                | Compression::SNAPPY
                | Compression::GZIP(_)
                | Compression::LZ4
                | Compression::LZ4_RAW => {}
                Compression::LZO | Compression::BROTLI(_) | Compression::ZSTD(_) => {
                    // `ZSTD(ZstdLevel(1))`: the level is no business of a reader.
                    let codec = format!("{codec:?}").to_lowercase();
                    let name = codec.split('(').next().unwrap_or_default().to_owned();
                    return Err(ColumnProblem::Codec { codec: name });
                }
            }
        }
        Ok((leaf, unsigned))
    }
}

/// Whether all chunks that the footer tells of are inside the file. The decoder takes that for granted.
fn is_sound(reader: &SerializedFileReader<File>, length: u64) -> bool {
    let metadata = reader.metadata();
    let columns = metadata.file_metadata().schema_descr().num_columns();
    metadata.row_groups().iter().all(|group| {
        let inside = |chunk: &ColumnChunkMetaData| {
            let page = chunk.data_page_offset();
            let start = chunk.dictionary_page_offset().unwrap_or(page);
            let size = chunk.compressed_size();
            let end = u64::try_from(start).ok().zip(u64::try_from(size).ok());
            let end = end.and_then(|(start, size)| start.checked_add(size));
            page >= 0 && chunk.num_values() >= 0 && end.is_some_and(|end| end <= length)
        };
        group.columns().len() == columns && group.columns().iter().all(inside)
    })
}

/// Whether a column of integers has no sign, or why a column cannot be read.
fn is_unsigned(column: &ColumnDescriptor) -> Result<bool, ColumnProblem> {
    let (physical, converted) = (column.physical_type(), column.converted_type());
    let refuse = |kind: String| Err(ColumnProblem::Type { kind });
    match column.logical_type_ref() {
        None | Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => {}
        Some(LogicalType::Integer(integer)) => return Ok(!integer.is_signed),
        Some(LogicalType::Decimal(_)) => return refuse("decimal".into()),
        Some(LogicalType::Date) => return refuse("date".into()),
        Some(LogicalType::Time(_)) => return refuse("time".into()),
        Some(LogicalType::Timestamp(_)) => return refuse("timestamp".into()),
        // A column of nothing but NULL.
        Some(LogicalType::Unknown) => {}
        Some(other) => return refuse(format!("{other:?}").to_lowercase()),
    }
    match converted {
        ConvertedType::NONE
        | ConvertedType::UTF8
        | ConvertedType::ENUM
        | ConvertedType::JSON
        | ConvertedType::INT_8
        | ConvertedType::INT_16
        | ConvertedType::INT_32
        | ConvertedType::INT_64 => {}
        ConvertedType::UINT_8
        | ConvertedType::UINT_16
        | ConvertedType::UINT_32
        | ConvertedType::UINT_64 => return Ok(true),
        ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS => return refuse("time".into()),
        other => return refuse(format!("{other:?}").to_lowercase().replace('_', " ")),
    }
    match physical {
        // How timestamps were written once.
        Type::INT96 => refuse("timestamp".into()),
        Type::FIXED_LEN_BYTE_ARRAY => refuse("fixed-length bytes".into()),
        _ => Ok(false),
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
        let damaged = |cause: ParquetError| damaged(self.file, &cause);
        let group = self
            .reader
            .get_row_group(self.next_group)
            .map_err(damaged)?;
        for chunk in &mut self.chunks {
            chunk.reader = Some(group.get_column_reader(chunk.leaf).map_err(damaged)?);
        }
        let rows = metadata.row_group(self.next_group).num_rows();
        self.left = usize::try_from(rows)
            .map_err(|_| damaged(ParquetError::General(format!("a group of {rows} rows"))))?;
        self.next_group += 1;
        Ok(true)
    }

    fn fill(&mut self) -> Result<(), DataError> {
        let rows = self.left.min(BATCH);
        for chunk in &mut self.chunks {
            // The decoder panics on some damaged pages. What it leaves behind is not looked at again.
            let filled = catch_unwind(AssertUnwindSafe(|| chunk.fill(rows)));
            let stopped = |_| {
                Err(ParquetError::General(
                    "the decoder gave up on a page".into(),
                ))
            };
            let filled = filled.unwrap_or_else(stopped);
            filled.map_err(|cause| damaged(self.file, &cause))?;
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

fn damaged(file: &str, cause: &ParquetError) -> DataError {
    DataError::Parquet {
        file: file.to_owned(),
        cause: cause.to_string(),
    }
}
