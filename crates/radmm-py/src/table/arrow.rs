//! Columns of Arrow record batches.

use std::cell::Cell;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrowPrimitiveType, BooleanArray, DictionaryArray, GenericStringArray, OffsetSizeTrait,
    PrimitiveArray, RecordBatch, StringViewArray,
};
use arrow_schema::DataType;
use radmm_data::{CellValue, MemoryColumn};

use crate::failure::Failure;

/// A column in the pieces in which it came.
struct ChunkedColumn<'a> {
    chunks: Vec<Box<dyn MemoryColumn + 'a>>,
    /// The first row of each piece, and the number of rows.
    starts: Vec<usize>,
    /// The piece of the row that was read last: rows are read in order.
    current: Cell<usize>,
}

impl MemoryColumn for ChunkedColumn<'_> {
    fn cell(&self, row: usize) -> CellValue<'_> {
        let mut chunk = self.current.get();
        if row < self.starts[chunk] || row >= self.starts[chunk + 1] {
            chunk = self.starts.partition_point(|start| *start <= row) - 1;
            self.current.set(chunk);
        }
        self.chunks[chunk].cell(row - self.starts[chunk])
    }
}

/// Checks what other programs may get wrong in columns that are read: text that is not UTF-8, which must never become a `str`, and
/// numbers of texts that are not there.
pub(super) fn check(batch: &RecordBatch) -> Result<(), Failure> {
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let has_text = matches!(column.data_type(), DataType::Dictionary(..))
            || kind(column.data_type()) == "text";
        if has_text && let Err(error) = column.to_data().validate_full() {
            let name = field.name();
            return Err(Failure::Value(format!(
                "column {name:?} is damaged: {error}"
            )));
        }
    }
    Ok(())
}

/// Returns a column of record batches, or its type if cells of it cannot be read.
pub(super) fn column<'a>(
    batches: &'a [RecordBatch],
    index: usize,
    kind: &DataType,
) -> Result<Box<dyn MemoryColumn + 'a>, String> {
    let mut starts = vec![0];
    let mut chunks = Vec::new();
    for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
        chunks.push(cells(batch.column(index)).ok_or_else(|| kind.to_string())?);
        starts.push(starts[starts.len() - 1] + batch.num_rows());
    }
    if chunks.is_empty() && self::kind(kind) == "other" {
        return Err(kind.to_string());
    }
    Ok(Box::new(ChunkedColumn {
        chunks,
        starts,
        current: Cell::new(0),
    }))
}

/// Returns what cells of a type are to a study: `number`, `boolean`, `text` or `other`.
pub(super) fn kind(data_type: &DataType) -> &'static str {
    match data_type {
        number if number.is_integer() || number.is_floating() => "number",
        DataType::Boolean => "boolean",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => "text",
        DataType::Dictionary(_, values) => kind(values),
        _ => "other",
    }
}

/// Returns the cells of an array; `None` if they cannot be read.
fn cells(array: &dyn Array) -> Option<Box<dyn MemoryColumn + '_>> {
    Some(match array.data_type() {
        DataType::Float64 => number::<Float64Type>(array, CellValue::Float),
        DataType::Float32 => number::<Float32Type>(array, float_of_f32),
        DataType::Float16 => number::<Float16Type>(array, |value| float_of_f32(value.to_f32())),
        DataType::Int8 => number::<Int8Type>(array, |value| CellValue::Integer(value.into())),
        DataType::Int16 => number::<Int16Type>(array, |value| CellValue::Integer(value.into())),
        DataType::Int32 => number::<Int32Type>(array, |value| CellValue::Integer(value.into())),
        DataType::Int64 => number::<Int64Type>(array, |value| CellValue::Integer(value.into())),
        DataType::UInt8 => number::<UInt8Type>(array, |value| CellValue::Integer(value.into())),
        DataType::UInt16 => number::<UInt16Type>(array, |value| CellValue::Integer(value.into())),
        DataType::UInt32 => number::<UInt32Type>(array, |value| CellValue::Integer(value.into())),
        DataType::UInt64 => number::<UInt64Type>(array, |value| CellValue::Integer(value.into())),
        DataType::Boolean => Box::new(Booleans(array.as_boolean())),
        DataType::Utf8 => Box::new(Texts(array.as_string::<i32>())),
        DataType::LargeUtf8 => Box::new(Texts(array.as_string::<i64>())),
        DataType::Utf8View => Box::new(ViewTexts(array.as_string_view())),
        DataType::Null => Box::new(Nothing),
        DataType::Dictionary(key, _) => match **key {
            DataType::Int8 => dictionary::<Int8Type>(array)?,
            DataType::Int16 => dictionary::<Int16Type>(array)?,
            DataType::Int32 => dictionary::<Int32Type>(array)?,
            DataType::Int64 => dictionary::<Int64Type>(array)?,
            DataType::UInt8 => dictionary::<UInt8Type>(array)?,
            DataType::UInt16 => dictionary::<UInt16Type>(array)?,
            DataType::UInt32 => dictionary::<UInt32Type>(array)?,
            DataType::UInt64 => dictionary::<UInt64Type>(array)?,
            _ => return None,
        },
        _ => return None,
    })
}

/// Returns the double that the shortest decimal of a single means, as a CSV file would hold it.
fn float_of_f32(value: f32) -> CellValue<'static> {
    match value.is_finite() {
        true => CellValue::Float(value.to_string().parse().unwrap_or(f64::from(value))),
        false => CellValue::Float(f64::from(value)),
    }
}

struct Numbers<'a, T: ArrowPrimitiveType> {
    array: &'a PrimitiveArray<T>,
    convert: fn(T::Native) -> CellValue<'static>,
}

fn number<T: ArrowPrimitiveType>(
    array: &dyn Array,
    convert: fn(T::Native) -> CellValue<'static>,
) -> Box<dyn MemoryColumn + '_> {
    let array = array.as_primitive::<T>();
    Box::new(Numbers { array, convert })
}

impl<T: ArrowPrimitiveType> MemoryColumn for Numbers<'_, T> {
    fn cell(&self, row: usize) -> CellValue<'_> {
        match self.array.is_null(row) {
            true => CellValue::Missing,
            false => (self.convert)(self.array.value(row)),
        }
    }
}

struct Booleans<'a>(&'a BooleanArray);

impl MemoryColumn for Booleans<'_> {
    fn cell(&self, row: usize) -> CellValue<'_> {
        match self.0.is_null(row) {
            true => CellValue::Missing,
            false => CellValue::Boolean(self.0.value(row)),
        }
    }
}

struct Texts<'a, O: OffsetSizeTrait>(&'a GenericStringArray<O>);

impl<O: OffsetSizeTrait> MemoryColumn for Texts<'_, O> {
    fn cell(&self, row: usize) -> CellValue<'_> {
        match self.0.is_null(row) {
            true => CellValue::Missing,
            false => CellValue::Text(self.0.value(row)),
        }
    }
}

struct ViewTexts<'a>(&'a StringViewArray);

impl MemoryColumn for ViewTexts<'_> {
    fn cell(&self, row: usize) -> CellValue<'_> {
        match self.0.is_null(row) {
            true => CellValue::Missing,
            false => CellValue::Text(self.0.value(row)),
        }
    }
}

struct Nothing;

impl MemoryColumn for Nothing {
    fn cell(&self, _row: usize) -> CellValue<'_> {
        CellValue::Missing
    }
}

struct Encoded<'a, K: ArrowDictionaryKeyType> {
    array: &'a DictionaryArray<K>,
    values: Box<dyn MemoryColumn + 'a>,
}

fn dictionary<K: ArrowDictionaryKeyType>(array: &dyn Array) -> Option<Box<dyn MemoryColumn + '_>> {
    let array = array.as_dictionary::<K>();
    let values = cells(array.values())?;
    Some(Box::new(Encoded { array, values }))
}

impl<K: ArrowDictionaryKeyType> MemoryColumn for Encoded<'_, K> {
    fn cell(&self, row: usize) -> CellValue<'_> {
        match self.array.key(row) {
            Some(key) => self.values.cell(key),
            None => CellValue::Missing,
        }
    }
}
