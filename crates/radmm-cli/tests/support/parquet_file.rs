//! Small Parquet files.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// The values of a column.
pub enum Values<'a> {
    Bools(&'a [bool]),
    Ints(&'a [i32]),
    Doubles(&'a [f64]),
    Texts(&'a [&'a str]),
    /// So many rows without a number.
    Nulls(usize),
    /// Lists of one number each.
    Listed(&'a [f64]),
}

/// Writes a file of one row group.
pub fn write_parquet(path: &Path, message: &str, codec: Compression, columns: &[Values<'_>]) {
    let schema = Arc::new(parse_message_type(message).unwrap());
    let properties = WriterProperties::builder().set_compression(codec).build();
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for values in columns {
        let mut column = group.next_column().unwrap().unwrap();
        match values {
            Values::Bools(v) => column.typed::<BoolType>().write_batch(v, None, None),
            Values::Ints(v) => column.typed::<Int32Type>().write_batch(v, None, None),
            Values::Doubles(v) => column.typed::<DoubleType>().write_batch(v, None, None),
            Values::Texts(v) => {
                let v: Vec<ByteArray> = v.iter().map(|text| ByteArray::from(*text)).collect();
                column.typed::<ByteArrayType>().write_batch(&v, None, None)
            }
            Values::Nulls(rows) => {
                let typed = column.typed::<DoubleType>();
                typed.write_batch(&[], Some(&vec![0; *rows]), None)
            }
            Values::Listed(v) => {
                let (within, first) = (vec![1; v.len()], vec![0; v.len()]);
                let typed = column.typed::<DoubleType>();
                typed.write_batch(v, Some(&within), Some(&first))
            }
        }
        .unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}
