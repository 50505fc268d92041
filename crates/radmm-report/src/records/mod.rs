//! Tables for other programs: named columns of one type each, written as CSV or Parquet.

mod parquet;

use std::io;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::csv::quoted;

/// A table for other programs. All columns have as many values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordTable {
    /// The columns, in order.
    pub columns: Vec<RecordColumn>,
}

/// A column of a table for other programs.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordColumn {
    /// The name, unique within the table.
    pub name: String,
    /// The meaning of its values, in one line.
    pub meaning: String,
    /// The values, by row.
    pub values: RecordValues,
}

/// The values of a column. Where a row has none, it is `None`.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordValues {
    /// Texts.
    Text(Vec<Option<String>>),
    /// Integers.
    Integer(Vec<Option<i64>>),
    /// Numbers, which may be infinite.
    Number(Vec<Option<f64>>),
    /// Truth values.
    Boolean(Vec<Option<bool>>),
}

impl RecordValues {
    fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Integer(values) => values.len(),
            Self::Number(values) => values.len(),
            Self::Boolean(values) => values.len(),
        }
    }

    /// Returns a value as a field of CSV: numbers so that reading them gives the same bits, nothing where there is none.
    fn field(&self, row: usize) -> String {
        match self {
            Self::Text(values) => values[row].as_deref().map_or_else(String::new, text_field),
            Self::Integer(values) => shown(values[row]),
            Self::Number(values) => shown(values[row]),
            Self::Boolean(values) => shown(values[row]),
        }
    }
}

/// Returns a text as a field. An empty one is in quotes: nothing is no value.
fn text_field(text: &str) -> String {
    match text {
        "" => "\"\"".to_owned(),
        text => quoted(text),
    }
}

fn shown(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

impl RecordTable {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// Writes CSV with a header. Numbers are written so that reading them gives the same bits, infinite ones as `inf`.
    pub fn write_csv(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let names: Vec<String> = self
            .columns
            .iter()
            .map(|column| quoted(&column.name))
            .collect();
        writeln!(to, "{}", names.join(","))?;
        for row in 0..self.rows() {
            let fields = self.columns.iter().map(|column| column.values.field(row));
            writeln!(to, "{}", fields.collect::<Vec<_>>().join(","))?;
        }
        Ok(())
    }
}

/// Rows as maps from names to values, for JSON.
impl Serialize for RecordTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.rows()))?;
        for row in 0..self.rows() {
            rows.serialize_element(&Record { table: self, row })?;
        }
        rows.end()
    }
}

struct Record<'a> {
    table: &'a RecordTable,
    row: usize,
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = &self.table.columns;
        let mut map = serializer.serialize_map(Some(columns.len()))?;
        for RecordColumn { name, values, .. } in columns {
            match values {
                RecordValues::Text(values) => map.serialize_entry(name, &values[self.row])?,
                RecordValues::Integer(values) => map.serialize_entry(name, &values[self.row])?,
                RecordValues::Number(values) => map.serialize_entry(name, &values[self.row])?,
                RecordValues::Boolean(values) => map.serialize_entry(name, &values[self.row])?,
            }
        }
        map.end()
    }
}
