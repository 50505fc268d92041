//! Tables for other programs as Parquet files.

use std::io;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::{RecordColumn, RecordTable, RecordValues};

impl RecordTable {
    /// Writes a Parquet file with one row group. The meaning of each column is in the metadata of the file, under its name.
    pub fn write_parquet(&self, to: &mut dyn io::Write) -> io::Result<()> {
        to.write_all(&self.parquet().map_err(io::Error::other)?)
    }

    fn parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let fields = self.columns.iter().map(field);
        let schema = Type::group_type_builder("schema")
            .with_fields(fields.collect::<Result<_, _>>()?)
            .build()?;
        let meanings = self.columns.iter();
        let meanings =
            meanings.map(|column| KeyValue::new(column.name.clone(), column.meaning.clone()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("radmm version {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(meanings.collect()))
            .build();
        let mut file =
            SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        for column in &self.columns {
            // There are as many as fields.
            if let Some(writer) = group.next_column()? {
                write_column(writer, &column.values)?;
            }
        }
        group.close()?;
        file.into_inner()
    }
}

fn field(column: &RecordColumn) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.values {
        RecordValues::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        RecordValues::Integer(_) => (PhysicalType::INT64, None),
        RecordValues::Number(_) => (PhysicalType::DOUBLE, None),
        RecordValues::Boolean(_) => (PhysicalType::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

fn write_column(
    writer: SerializedColumnWriter<'_>,
    values: &RecordValues,
) -> Result<(), ParquetError> {
    match values {
        RecordValues::Text(values) => {
            let bytes = values
                .iter()
                .map(|text| text.as_deref().map(ByteArray::from));
            write_values::<ByteArrayType>(writer, bytes)
        }
        RecordValues::Integer(values) => write_values::<Int64Type>(writer, values.iter().copied()),
        RecordValues::Number(values) => write_values::<DoubleType>(writer, values.iter().copied()),
        RecordValues::Boolean(values) => write_values::<BoolType>(writer, values.iter().copied()),
    }
}

fn write_values<T: DataType>(
    mut writer: SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = values.collect();
    let present: Vec<i16> = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    writer
        .typed::<T>()
        .write_batch(&values, Some(&present), None)?;
    writer.close()
}
