//! What the footer of a Parquet file says of its columns.

use parquet::basic::{Compression, ConvertedType, LogicalType, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::schema::types::ColumnDescriptor;

use crate::problem::ColumnProblem;

/// Whether all chunks that the footer tells of are inside the file. The decoder takes that for granted.
pub(super) fn is_sound(metadata: &ParquetMetaData, length: u64) -> bool {
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

/// The place of a column among those that hold values, and whether it holds unsigned integers.
pub(super) fn leaf(
    metadata: &ParquetMetaData,
    position: usize,
) -> Result<(usize, bool), ColumnProblem> {
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
