//! What stands in a file: the draft of a schema, for the party that owns it.
//!
//! Privacy: a profile is a set of facts about the rows, outside every guarantee. It is for the eyes of the party that
//! owns the file. Bounds and vocabularies that others see, or that a guarantee is to hold with, come from elsewhere.

use std::collections::HashMap;

use serde::Serialize;

use crate::csv;
use crate::error::DataError;
use crate::file::{Format, TableFile};
use crate::libsvm::Lines;
use crate::named::{Column, Header, Record, Records};
use crate::parquet::ParquetTable;

/// Fields that usually mean "not known".
pub const MARKERS: [&str; 8] = ["?", "", "NA", "N/A", "NaN", "nan", "null", "NULL"];

/// Different values of a column that are counted; of a column with more, none is kept.
pub const MOST_VALUES: usize = 100;

/// What stands in a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// How it is written.
    pub format: Format,
    /// How many there are.
    pub rows: usize,
    /// The columns with names, in order; of a LIBSVM file, the label alone.
    pub columns: Vec<ColumnProfile>,
    /// Of a LIBSVM file, the largest index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbered: Option<u32>,
}

/// What stands in a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnProfile {
    /// Its name.
    pub name: String,
    /// Why a study cannot use it, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// Rows without a value: NULL, or one of [`MARKERS`].
    pub missing: usize,
    /// Which of these.
    pub markers: Vec<&'static str>,
    /// The least and the greatest value, if all are numbers.
    pub range: Option<[f64; 2]>,
    /// Every value and how many rows have it, the most frequent first; none if they are more than [`MOST_VALUES`].
    pub values: Option<Vec<(String, usize)>>,
}

/// Reads a file in one pass, in memory that does not grow with the rows, and tells what stands in it.
pub fn inspect(table: TableFile) -> Result<Profile, DataError> {
    let TableFile { file, name, format } = table;
    match format {
        Format::Csv => {
            let (header, records) = csv::open(file, &name)?;
            if header.names.iter().all(|name| name.parse::<f64>().is_ok()) {
                return Err(DataError::NoHeader { file: name });
            }
            let seen = seen(&header, |_| None);
            profile(&header, records, seen, format)
        }
        Format::Parquet => {
            let table = ParquetTable::open(file, &name)?;
            let header = table.header();
            let obstacle = |position| table.obstacle(position).map(|found| found.to_string());
            let seen = seen(&header, obstacle);
            let used: Vec<_> = usable(&header, &seen).map(|(column, _)| column).collect();
            let records = table.rows(&used)?;
            profile(&header, records, seen, format)
        }
        Format::Libsvm => {
            let mut lines = Lines::new(file, &name);
            let mut labels = Seen::new("label", None);
            let (mut rows, mut last) = (0, 0);
            while let Some(row) = lines.next(u32::MAX)? {
                rows += 1;
                labels.add(Some(row.text));
                last = row
                    .entries
                    .last()
                    .map_or(last, |entry| last.max(entry.0 + 1));
            }
            if rows == 0 {
                return Err(DataError::NoLines { file: name });
            }
            Ok(Profile {
                format,
                rows,
                columns: vec![labels.finish()],
                // A study has at least one column.
                numbered: Some(last.max(1)),
            })
        }
    }
}

fn seen(header: &Header<'_>, obstacle: impl Fn(usize) -> Option<String>) -> Vec<Seen> {
    let names = header.names.iter().enumerate();
    names
        .map(|(position, name)| {
            let found = if name.trim().is_empty() {
                Some("has no name".to_owned())
            } else if header.find(name).is_err() {
                Some("is there more than once".to_owned())
            } else {
                obstacle(position)
            };
            Seen::new(name, found)
        })
        .collect()
}

/// The columns that can be read, and their places.
fn usable<'h>(header: &'h Header<'_>, seen: &[Seen]) -> impl Iterator<Item = (Column<'h>, usize)> {
    let usable = |position: &usize| seen[*position].obstacle.is_none();
    let positions = (0..seen.len()).filter(usable);
    positions.map(|position| {
        let name = header.names[position].as_str();
        (Column { name, position }, position)
    })
}

fn profile(
    header: &Header<'_>,
    mut records: impl Records,
    mut seen: Vec<Seen>,
    format: Format,
) -> Result<Profile, DataError> {
    let used: Vec<_> = usable(header, &seen).collect();
    let mut rows = 0;
    while let Some(record) = records.next()? {
        rows += 1;
        for (column, position) in &used {
            seen[*position].add(record.value(*column)?);
        }
    }
    if rows == 0 {
        let file = header.file.to_owned();
        return Err(DataError::NoRows { file });
    }
    Ok(Profile {
        format,
        rows,
        columns: seen.into_iter().map(Seen::finish).collect(),
        numbered: None,
    })
}

/// What was seen of a column so far.
struct Seen {
    name: String,
    obstacle: Option<String>,
    missing: usize,
    markers: [bool; MARKERS.len()],
    /// While all values are numbers.
    range: Option<[f64; 2]>,
    /// While they are few.
    counts: Option<HashMap<String, usize>>,
}

impl Seen {
    fn new(name: &str, obstacle: Option<String>) -> Self {
        Self {
            name: name.to_owned(),
            obstacle,
            missing: 0,
            markers: [false; MARKERS.len()],
            range: Some([f64::INFINITY, f64::NEG_INFINITY]),
            counts: Some(HashMap::new()),
        }
    }

    fn add(&mut self, value: Option<&str>) {
        let Some(text) = value else {
            self.missing += 1;
            return;
        };
        if let Some(marker) = MARKERS.iter().position(|marker| *marker == text) {
            self.missing += 1;
            self.markers[marker] = true;
            return;
        }
        self.range = self.range.and_then(|[low, high]| {
            let number = text
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())?;
            Some([low.min(number), high.max(number)])
        });
        if let Some(counts) = &mut self.counts {
            if let Some(count) = counts.get_mut(text) {
                *count += 1;
            } else if counts.len() < MOST_VALUES {
                counts.insert(text.to_owned(), 1);
            } else {
                self.counts = None;
            }
        }
    }

    fn finish(self) -> ColumnProfile {
        let values = self.counts.map(|counts| {
            let mut values: Vec<(String, usize)> = counts.into_iter().collect();
            values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            values
        });
        let found = MARKERS.into_iter().zip(self.markers);
        ColumnProfile {
            name: self.name,
            obstacle: self.obstacle,
            missing: self.missing,
            markers: found
                .filter_map(|(text, seen)| seen.then_some(text))
                .collect(),
            range: self.range.filter(|[low, high]| low <= high),
            values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[Option<&str>]) -> ColumnProfile {
        let mut seen = Seen::new("x", None);
        values.iter().for_each(|value| seen.add(*value));
        seen.finish()
    }

    #[test]
    fn a_column_of_numbers_has_a_range_and_what_is_missing_is_no_value() {
        let found = column(&[
            Some("3"),
            None,
            Some("?"),
            Some("-1.5"),
            Some(""),
            Some("3"),
        ]);
        assert_eq!((found.missing, found.range), (3, Some([-1.5, 3.0])));
        assert_eq!(found.markers, ["?", ""]);
        let values = [("3".to_owned(), 2), ("-1.5".to_owned(), 1)];
        assert_eq!(found.values.as_deref(), Some(&values[..]));
    }

    #[test]
    fn one_word_makes_a_column_of_text() {
        assert_eq!(column(&[Some("3"), Some("three")]).range, None);
        assert_eq!(column(&[Some("3"), Some("inf")]).range, None);
    }

    #[test]
    fn a_column_of_nothing_has_neither_range_nor_values() {
        let found = column(&[None, Some("NA")]);
        assert_eq!((found.range, found.values), (None, Some(vec![])));
    }

    #[test]
    fn values_are_counted_up_to_a_hundred() {
        let texts: Vec<String> = (0..101).map(|n| format!("v{n}")).collect();
        let values: Vec<_> = texts.iter().map(|text| Some(text.as_str())).collect();
        assert_eq!(column(&values[..100]).values.map(|v| v.len()), Some(100));
        assert_eq!(column(&values).values, None);
    }
}
