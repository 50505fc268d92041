//! The footer of a Parquet file: where columns are, and which of them can be read.

use parquet::basic::{Compression, ConvertedType, LogicalType, TimeUnit, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::schema::types::ColumnDescriptor;

use crate::error_kinds::ColumnError;

/// Returns whether all column chunks in the footer lie inside the file. The decoder does not check this.
pub(super) fn chunks_are_inside(metadata: &ParquetMetaData, length: u64) -> bool {
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

/// The meaning of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// The plain values of their type.
    Plain,
    /// Integers without a sign.
    Unsigned,
    /// Days since 1970-01-01.
    Days,
    /// Fractions of a second since the beginning of 1970-01-01, in a time zone or in UTC.
    Instants {
        /// Their number in a second.
        per_second: i64,
    },
}

/// Returns the leaf index of a column, and what its values mean.
pub(super) fn leaf(
    metadata: &ParquetMetaData,
    index: usize,
) -> Result<(usize, ValueKind), ColumnError> {
    let schema = metadata.file_metadata().schema_descr();
    let of_column = |leaf: &usize| schema.get_column_root_idx(*leaf) == index;
    let leaf = (0..schema.num_columns()).find(of_column);
    let leaf = leaf.ok_or(ColumnError::Nested)?;
    let descriptor = schema.column(leaf);
    if descriptor.path().parts().len() != 1 || descriptor.max_rep_level() > 0 {
        return Err(ColumnError::Nested);
    }
    let kind = value_kind(&descriptor)?;
    for group in metadata.row_groups() {
        let codec = group.column(leaf).compression();
        match codec {
            Compression::UNCOMPRESSED
            | Compression::SNAPPY
            | Compression::GZIP(_)
            | Compression::LZ4
            | Compression::LZ4_RAW
            | Compression::ZSTD(_) => {}
            Compression::LZO | Compression::BROTLI(_) => {
                // From `BROTLI(BrotliLevel(1))`: a reader does not need the level.
                let codec = format!("{codec:?}").to_lowercase();
                let name = codec.split('(').next().unwrap_or_default().to_owned();
                return Err(ColumnError::Codec { codec: name });
            }
        }
    }
    Ok((leaf, kind))
}

/// Returns what the values of a column mean, or why they cannot be read.
fn value_kind(column: &ColumnDescriptor) -> Result<ValueKind, ColumnError> {
    let (physical, converted) = (column.physical_type(), column.converted_type());
    let unsupported = |kind: String| Err(ColumnError::Type { kind });
    match column.logical_type_ref() {
        None | Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => {}
        Some(LogicalType::Integer(integer)) if integer.is_signed => return Ok(ValueKind::Plain),
        Some(LogicalType::Integer(_)) => return Ok(ValueKind::Unsigned),
        Some(LogicalType::Decimal(_)) => return unsupported("decimal".into()),
        Some(LogicalType::Date) => return Ok(ValueKind::Days),
        Some(LogicalType::Time(_)) => return unsupported("time".into()),
        Some(LogicalType::Timestamp(timestamp)) => {
            let per_second = match timestamp.unit {
                TimeUnit::MILLIS => 1_000,
                TimeUnit::MICROS => 1_000_000,
                TimeUnit::NANOS => 1_000_000_000,
            };
            return Ok(ValueKind::Instants { per_second });
        }
        // Every value of the column is NULL.
        Some(LogicalType::Unknown) => {}
        Some(other) => return unsupported(format!("{other:?}").to_lowercase()),
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
        | ConvertedType::UINT_64 => return Ok(ValueKind::Unsigned),
        ConvertedType::DATE => return Ok(ValueKind::Days),
        ConvertedType::TIMESTAMP_MILLIS => return Ok(ValueKind::Instants { per_second: 1_000 }),
        ConvertedType::TIMESTAMP_MICROS => {
            return Ok(ValueKind::Instants {
                per_second: 1_000_000,
            });
        }
        ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS => {
            return unsupported("time".into());
        }
        other => return unsupported(format!("{other:?}").to_lowercase().replace('_', " ")),
    }
    match physical {
        Type::FIXED_LEN_BYTE_ARRAY => unsupported("fixed-length bytes".into()),
        _ => Ok(ValueKind::Plain),
    }
}
