//! Tables in memory: the columns of another program's data frame or matrix, read where they are.
//!
//! A cell means what its text in a CSV file would mean: an integer `-7`, a boolean `true` or `false`, a float the shortest
//! decimal that parses to it. A cell without a value, and a float that is not a number, are missing values.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::encode::Lacking;
use crate::error::{DataError, FilePosition};
use crate::error_kinds::{ColumnError, FormatError, LineError};
use crate::formats::libsvm::{PositiveLabel, check_nonzeros};
use crate::formats::named_columns::{Column, Header, NamedTable, Record, Records};
use crate::ingest::row::{Row, SplitValue, TableRow};
use crate::schema::Schema;
use crate::scoring::ScoringRow;

/// The number of rows between two checks for an interruption.
const CHECK_EVERY: usize = 4096;

/// The value of one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CellValue<'a> {
    /// No value.
    Missing,
    /// A truth value.
    Boolean(bool),
    /// An integer.
    Integer(i128),
    /// A float. One that is not a number is a missing value.
    Float(f64),
    /// Text. Surrounding white space has no meaning.
    Text(&'a str),
}

impl CellValue<'_> {
    /// Returns its number, if it is one.
    fn number(self) -> Option<f64> {
        match self {
            Self::Integer(integer) => Some(integer as f64),
            Self::Float(float) => Some(float),
            Self::Missing | Self::Boolean(_) | Self::Text(_) => None,
        }
    }
}

/// The cells of one column, by row from 0.
pub trait MemoryColumn {
    /// Returns the cell of a row.
    fn cell(&self, row: usize) -> CellValue<'_>;
}

/// The rows of a sparse matrix.
pub trait SparseRows {
    /// Returns the number of columns.
    fn columns(&self) -> u32;

    /// Replaces `entries` by the values of a row, with their columns from 0.
    fn row(&self, row: usize, entries: &mut Vec<(u32, f64)>);
}

/// A named column of a table in memory.
pub struct NamedColumn<'a> {
    /// The name.
    pub name: String,
    /// The cells, or the type of cells that cannot be read.
    pub cells: Result<Box<dyn MemoryColumn + 'a>, String>,
}

/// A sparse matrix with the label of every row.
pub struct LabelledMatrix<'a> {
    /// The features.
    pub features: Box<dyn SparseRows + 'a>,
    /// The labels, if they are known.
    pub labels: Option<Box<dyn MemoryColumn + 'a>>,
    /// The values by which rows are split, if they are.
    pub split_by: Option<Box<dyn MemoryColumn + 'a>>,
}

/// A table in memory.
pub struct MemoryTable<'a> {
    name: &'a str,
    rows: usize,
    content: MemoryContent<'a>,
    is_interrupted: Option<&'a dyn Fn() -> bool>,
}

/// The content of a table in memory.
enum MemoryContent<'a> {
    Named(Vec<NamedColumn<'a>>),
    Numbered(LabelledMatrix<'a>),
}

impl<'a> MemoryTable<'a> {
    /// Creates a table of named columns with so many rows. `name` is that of the table in errors.
    pub fn new(name: &'a str, rows: usize, columns: Vec<NamedColumn<'a>>) -> Self {
        Self {
            name,
            rows,
            content: MemoryContent::Named(columns),
            is_interrupted: None,
        }
    }

    /// Creates a table of numbered columns, whose values are taken as they are.
    pub fn sparse(name: &'a str, rows: usize, matrix: LabelledMatrix<'a>) -> Self {
        Self {
            name,
            rows,
            content: MemoryContent::Numbered(matrix),
            is_interrupted: None,
        }
    }

    /// Returns the same table, the reading of which ends in [`DataError::Interrupted`] soon after this function returns true.
    pub fn interrupted_by(self, is_interrupted: &'a dyn Fn() -> bool) -> Self {
        Self {
            is_interrupted: Some(is_interrupted),
            ..self
        }
    }

    /// Returns its name in errors.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the matrix, if columns have numbers and no names.
    pub(crate) fn matrix(&self) -> Option<&LabelledMatrix<'a>> {
        match &self.content {
            MemoryContent::Numbered(matrix) => Some(matrix),
            MemoryContent::Named(_) => None,
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Passes an encoding of everything that rows are made of to `take`, piece by piece. Tables with the same pieces have the
    /// same columns and the same cells.
    pub fn each_piece(&self, take: &mut dyn FnMut(&[u8])) {
        // The counts tell where one column ends and the next one begins, whatever their names are.
        take(&(self.rows as u64).to_le_bytes());
        match &self.content {
            MemoryContent::Named(columns) => {
                take(b"n");
                take(&(columns.len() as u64).to_le_bytes());
                for column in columns {
                    take_text(&column.name, take);
                    // A column that cannot be read is in no row.
                    let Ok(cells) = &column.cells else {
                        take(b"x");
                        continue;
                    };
                    take(b"c");
                    (0..self.rows).for_each(|row| take_cell(cells.cell(row), take));
                }
            }
            MemoryContent::Numbered(matrix) => {
                take(b"s");
                take(&matrix.features.columns().to_le_bytes());
                take(&[u8::from(matrix.split_by.is_some())]);
                let mut entries = Vec::new();
                for row in 0..self.rows {
                    matrix.features.row(row, &mut entries);
                    take(&(entries.len() as u64).to_le_bytes());
                    for (column, value) in &entries {
                        take(&column.to_le_bytes());
                        take(&value.to_le_bytes());
                    }
                    let labels = matrix.labels.as_ref();
                    let label = labels.map_or(CellValue::Missing, |labels| labels.cell(row));
                    take_cell(label, take);
                    if let Some(values) = &matrix.split_by {
                        take_cell(values.cell(row), take);
                    }
                }
            }
        }
    }

    fn named(&self) -> &[NamedColumn<'a>] {
        match &self.content {
            MemoryContent::Named(columns) => columns,
            MemoryContent::Numbered(_) => &[],
        }
    }

    /// Checks for an interruption, now and then.
    fn check_interruption(&self, row: usize) -> Result<(), DataError> {
        match self.is_interrupted {
            Some(is_interrupted) if row.is_multiple_of(CHECK_EVERY) && is_interrupted() => {
                Err(DataError::Interrupted {
                    file: self.name.to_owned(),
                })
            }
            _ => Ok(()),
        }
    }
}

impl LabelledMatrix<'_> {
    /// Passes every row to `take`. A row may lack its label.
    pub(crate) fn each_row(
        &self,
        table: &MemoryTable<'_>,
        schema: &Schema,
        mut take: impl FnMut(TableRow<'_>) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        if schema.numbered == 0 {
            return Err(DataError::format(table.name, FormatError::Named));
        }
        let positive = PositiveLabel::new(&schema.positive);
        let (mut row, mut no_label) = (Row::default(), Lacking::default());
        // Without features that have names the label comes first.
        no_label.add(0, Ok(true))?;
        let file: Arc<str> = table.name.into();
        for at in 0..table.rows {
            table.check_interruption(at)?;
            let label = self.labels.as_ref().map(|labels| labels.cell(at));
            row.label.clear();
            push_text(label.unwrap_or(CellValue::Missing), &mut row.label);
            let unknown = matches!(label, None | Some(CellValue::Missing));
            if unknown || schema.missing.contains(&row.label) {
                take(TableRow::Incomplete(&no_label))?;
                continue;
            }
            self.encode(table, schema, at, &mut row.entries)?;
            row.positive = positive.matches(&row.label);
            row.split_value = self.split_by.as_ref().map(|values| SplitValue {
                value: text_of(values.cell(at)),
                file: Arc::clone(&file),
                position: FilePosition::Row(at as u64 + 1),
            });
            take(TableRow::Complete(&mut row))?;
        }
        Ok(())
    }

    /// Passes every row to be scored to `take`.
    pub(crate) fn score<E: From<DataError>>(
        &self,
        table: &MemoryTable<'_>,
        schema: &Schema,
        mut take: impl FnMut(ScoringRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let positive = PositiveLabel::new(&schema.positive);
        let (mut entries, mut label) = (Vec::new(), String::new());
        for at in 0..table.rows {
            table.check_interruption(at)?;
            self.encode(table, schema, at, &mut entries)?;
            label.clear();
            let cell = self.labels.as_ref().map(|labels| labels.cell(at));
            push_text(cell.unwrap_or(CellValue::Missing), &mut label);
            let known = !label.is_empty() && !schema.missing.contains(&label);
            take(ScoringRow::Complete {
                entries: &entries,
                positive: known.then(|| positive.matches(&label)),
            })?;
        }
        Ok(())
    }

    /// Replaces `entries` by those of a row.
    fn encode(
        &self,
        table: &MemoryTable<'_>,
        schema: &Schema,
        at: usize,
        entries: &mut Vec<(u32, f64)>,
    ) -> Result<(), DataError> {
        let line_error = |cause| DataError::Line {
            file: table.name.to_owned(),
            position: FilePosition::Row(at as u64 + 1),
            cause,
        };
        self.features.row(at, entries);
        let mut last = 0;
        for &(column, value) in entries.iter() {
            let (index, columns) = (column.saturating_add(1), schema.numbered);
            if index > columns {
                return Err(line_error(LineError::IndexBeyondStudy { index, columns }));
            }
            if index <= last {
                return Err(line_error(LineError::NotAscending { index, last }));
            }
            last = index;
            if !value.is_finite() {
                let value = value.to_string();
                return Err(line_error(LineError::Value { index, value }));
            }
        }
        check_nonzeros(entries, schema.nonzeros).map_err(line_error)?;
        if schema.intercept {
            entries.push((schema.numbered, 1.0));
        }
        Ok(())
    }
}

impl<'t> NamedTable<'t> for &'t MemoryTable<'t> {
    type Records = MemoryRecords<'t>;

    fn header(&self) -> Header<'t> {
        let names = self.named().iter().map(|column| column.name.clone());
        Header {
            file: self.name,
            position: FilePosition::Columns,
            names: names.collect(),
            separator: None,
        }
    }

    fn unreadable(&self, index: usize) -> Option<ColumnError> {
        let kind = self.named().get(index)?.cells.as_ref().err()?;
        Some(ColumnError::Type { kind: kind.clone() })
    }

    fn records(self, used: &[Column<'_>]) -> Result<MemoryRecords<'t>, DataError> {
        if let Some((column, cause)) = used
            .iter()
            .find_map(|column| Some((column, self.unreadable(column.index)?)))
        {
            return Err(DataError::Column {
                file: self.name.to_owned(),
                column: column.name.to_owned(),
                cause,
            });
        }
        let mut columns: Vec<Option<&dyn MemoryColumn>> = Vec::new();
        for column in self.named() {
            columns.push(column.cells.as_ref().ok().map(|cells| &**cells));
        }
        Ok(MemoryRecords {
            table: self,
            texts: vec![OnceCell::new(); columns.len()],
            columns,
            row: 0,
        })
    }
}

/// The rows of a table in memory, one at a time.
pub(crate) struct MemoryRecords<'t> {
    table: &'t MemoryTable<'t>,
    columns: Vec<Option<&'t dyn MemoryColumn>>,
    /// The texts of numbers that were asked for as text, by column.
    texts: Vec<OnceCell<String>>,
    /// The number of rows that were read.
    row: usize,
}

/// The record read last. Neither `Debug` nor `Clone`, because it is a row.
pub(crate) struct MemoryRecord<'r> {
    file: &'r str,
    columns: &'r [Option<&'r dyn MemoryColumn>],
    texts: &'r [OnceCell<String>],
    /// The row, from 0.
    at: usize,
}

impl<'t> Records for MemoryRecords<'t> {
    type Record<'r>
        = MemoryRecord<'r>
    where
        Self: 'r;

    fn next(&mut self) -> Result<Option<MemoryRecord<'_>>, DataError> {
        if self.row == self.table.rows {
            return Ok(None);
        }
        self.table.check_interruption(self.row)?;
        self.row += 1;
        for text in &mut self.texts {
            text.take();
        }
        Ok(Some(MemoryRecord {
            file: self.table.name,
            columns: &self.columns,
            texts: &self.texts,
            at: self.row - 1,
        }))
    }
}

impl MemoryRecord<'_> {
    fn cell(&self, column: Column<'_>) -> CellValue<'_> {
        match self.columns.get(column.index) {
            Some(Some(cells)) => cells.cell(self.at),
            _ => CellValue::Missing,
        }
    }
}

impl Record for MemoryRecord<'_> {
    fn value(&self, column: Column<'_>) -> Result<Option<&str>, DataError> {
        Ok(match self.cell(column) {
            CellValue::Missing => None,
            CellValue::Float(float) if float.is_nan() => None,
            CellValue::Text(text) => Some(text.trim()),
            CellValue::Boolean(true) => Some("true"),
            CellValue::Boolean(false) => Some("false"),
            number => {
                let text = &self.texts[column.index];
                Some(text.get_or_init(|| text_of(number)))
            }
        })
    }

    fn number(&self, column: Column<'_>) -> Option<f64> {
        self.cell(column).number()
    }

    fn is_missing(&self, column: Column<'_>, markers: &[String]) -> Result<bool, DataError> {
        // A number is compared with numbers, so that it need not be written.
        match self.cell(column).number() {
            Some(number) => Ok(number.is_nan() || markers.iter().any(|text| means(text, number))),
            None => match self.value(column)? {
                Some(field) => Ok(markers.iter().any(|value| value == field)),
                None => Ok(true),
            },
        }
    }

    fn position(&self) -> FilePosition {
        FilePosition::Row(self.at as u64 + 1)
    }

    fn file(&self) -> &str {
        self.file
    }
}

/// Returns whether a marker of missing values is this number.
fn means(marker: &str, number: f64) -> bool {
    let numeric = |byte: &u8| byte.is_ascii_digit() || b"+-.".contains(byte);
    marker.as_bytes().first().is_some_and(numeric) && marker.parse() == Ok(number)
}

fn text_of(cell: CellValue<'_>) -> String {
    let mut text = String::new();
    push_text(cell, &mut text);
    text
}

/// Appends the text that a CSV file would hold.
fn push_text(cell: CellValue<'_>, to: &mut String) {
    use std::fmt::Write;
    // Writing into a string does not fail.
    let _ = match cell {
        CellValue::Missing => Ok(()),
        CellValue::Boolean(value) => write!(to, "{value}"),
        CellValue::Integer(value) => write!(to, "{value}"),
        CellValue::Float(value) if value.is_nan() => Ok(()),
        CellValue::Float(value) => write!(to, "{value}"),
        CellValue::Text(value) => {
            to.push_str(value.trim());
            Ok(())
        }
    };
}

/// Passes on a text with its length, so that two texts are never taken for one.
fn take_text(text: &str, take: &mut dyn FnMut(&[u8])) {
    take(&(text.len() as u64).to_le_bytes());
    take(text.as_bytes());
}

/// Passes on a cell with its kind.
fn take_cell(cell: CellValue<'_>, take: &mut dyn FnMut(&[u8])) {
    match cell {
        CellValue::Missing => take(b"-"),
        CellValue::Boolean(value) => take(&[b'b', u8::from(value)]),
        CellValue::Integer(value) => {
            take(b"i");
            take(&value.to_le_bytes());
        }
        CellValue::Float(value) => {
            take(b"f");
            take(&value.to_le_bytes());
        }
        CellValue::Text(value) => {
            take(b"t");
            take_text(value, take);
        }
    }
}
