//! Tables for other programs hold the same values in every format.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::File;
use std::io::Write;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use radmm_report::{RecordColumn, RecordTable, RecordValues};

fn column(name: &str, values: RecordValues) -> RecordColumn {
    RecordColumn {
        name: name.to_owned(),
        meaning: format!("meaning of {name}"),
        values,
    }
}

fn table() -> RecordTable {
    let texts = ["plain", "a, \"b\"", ""].map(|text| Some(text.to_owned()));
    RecordTable {
        columns: vec![
            column(
                "run",
                RecordValues::Text(texts.into_iter().chain([None]).collect()),
            ),
            column(
                "run.seed",
                RecordValues::Integer(vec![Some(i64::MAX), Some(-1), None, Some(0)]),
            ),
            column(
                "total ε",
                RecordValues::Number(vec![Some(0.1), Some(f64::INFINITY), None, Some(1e-5)]),
            ),
            column(
                "intercept",
                RecordValues::Boolean(vec![Some(true), None, Some(false), None]),
            ),
        ],
    }
}

fn reader(bytes: &[u8]) -> SerializedFileReader<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    SerializedFileReader::new(file).unwrap()
}

#[test]
fn csv_has_the_same_bits_and_tells_an_empty_text_from_none() {
    let mut bytes = Vec::new();
    table().write_csv(&mut bytes).unwrap();
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        "run,run.seed,total ε,intercept\n\
         plain,9223372036854775807,0.1,true\n\
         \"a, \"\"b\"\"\",-1,inf,\n\
         \"\",,,false\n\
         ,0,0.00001,\n"
    );
}

#[test]
fn parquet_has_the_same_values_and_the_meaning_of_every_column() {
    let mut bytes = Vec::new();
    table().write_parquet(&mut bytes).unwrap();
    let mut again = Vec::new();
    table().write_parquet(&mut again).unwrap();
    assert_eq!(bytes, again);

    let reader = reader(&bytes);
    let metadata = reader.metadata().file_metadata();
    let notes = metadata.key_value_metadata().unwrap();
    let noted: Vec<(&str, &str)> = notes
        .iter()
        .map(|note| (note.key.as_str(), note.value.as_deref().unwrap()))
        .collect();
    assert_eq!(noted[2], ("total ε", "meaning of total ε"));
    let rows: Vec<Vec<Field>> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            row.unwrap()
                .into_columns()
                .into_iter()
                .map(|(_, field)| field)
                .collect()
        })
        .collect();
    assert_eq!(
        rows,
        [
            vec![
                Field::Str("plain".into()),
                Field::Long(i64::MAX),
                Field::Double(0.1),
                Field::Bool(true)
            ],
            vec![
                Field::Str("a, \"b\"".into()),
                Field::Long(-1),
                Field::Double(f64::INFINITY),
                Field::Null
            ],
            vec![
                Field::Str(String::new()),
                Field::Null,
                Field::Null,
                Field::Bool(false)
            ],
            vec![
                Field::Null,
                Field::Long(0),
                Field::Double(1e-5),
                Field::Null
            ],
        ]
    );
    let names: Vec<&str> = metadata
        .schema_descr()
        .columns()
        .iter()
        .map(|column| column.name())
        .collect();
    assert_eq!(names, ["run", "run.seed", "total ε", "intercept"]);
}

#[test]
fn a_table_without_rows_is_written_too() {
    let empty = RecordTable {
        columns: vec![column("run", RecordValues::Text(Vec::new()))],
    };
    assert_eq!(empty.rows(), 0);
    let mut bytes = Vec::new();
    empty.write_parquet(&mut bytes).unwrap();
    let reader = reader(&bytes);
    assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
}
