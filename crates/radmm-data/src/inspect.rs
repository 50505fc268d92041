//! What stands in a file: the draft of a schema, for the party that owns it.
//!
//! Privacy: a profile is a set of facts about the rows, outside every guarantee. It is for the eyes of the party that
//! owns the file. Bounds and vocabularies that others see, or that a guarantee is to hold with, come from elsewhere.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::csv;
use crate::error::{DataError, Place, excerpt, separator};
use crate::file::{Format, TableFile};
use crate::libsvm::Lines;
use crate::named::{Column, Header, Record, Records};
use crate::parquet::ParquetTable;
use crate::problem::ColumnProblem;

/// Fields that usually mean "not known".
pub const MARKERS: [&str; 8] = ["?", "", "NA", "N/A", "NaN", "nan", "null", "NULL"];

/// Different values of a column that are counted; of a column with more, none is kept.
pub const MOST_VALUES: usize = 100;

/// A column with at least this share of numbers is one of numbers, with slips.
const MOSTLY: f64 = 0.95;

/// Different whole numbers up to here may well be a measurement.
const MEASURED: usize = 50;

/// Whole numbers that are remembered, to know one that comes again.
const REMEMBERED: usize = 10_000;

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
    /// The least and the greatest number, if all values are numbers, or nearly all.
    pub range: Option<[f64; 2]>,
    /// In a column with a range, the values that are no finite numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slips: Option<Slips>,
    /// Whether the values are whole numbers, more than fifty, that seem never to repeat.
    pub numbers_rows: bool,
    /// Every value and how many rows have it, the most frequent first; none if they are more than [`MOST_VALUES`].
    pub values: Option<Vec<(String, usize)>>,
}

/// Values that are no finite numbers in a column that is otherwise one of numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slips {
    /// How many there are.
    pub count: usize,
    /// The first, cut if long.
    pub first: String,
    /// Its line, or its row in a file that has no lines.
    pub at: u64,
}

/// Reads a file in one pass, in memory that does not grow with the rows, and tells what stands in it.
pub fn inspect(table: TableFile) -> Result<Profile, DataError> {
    let TableFile { file, name, format } = table;
    match format {
        Format::Csv => {
            let (header, records) = csv::open(file, &name)?;
            if let Some(separator) = separator(&header.names) {
                let place = header.place;
                return Err(DataError::Separator {
                    file: name,
                    place,
                    separator,
                });
            }
            if header.names.iter().all(|name| finite(name).is_some()) {
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
            if used.is_empty()
                && let Some((column, problem)) = compressed(&table, &header)
            {
                return Err(DataError::Column {
                    file: name,
                    column,
                    problem,
                });
            }
            let records = table.rows(&used)?;
            profile(&header, records, seen, format)
        }
        Format::Libsvm => {
            let mut lines = Lines::new(file, &name);
            let mut labels = Seen::new("label", None);
            let (mut rows, mut last) = (0, 0);
            while let Some(row) = lines.next(u32::MAX)? {
                rows += 1;
                labels.add(Some(row.text), rows as u64);
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

/// A column that would be read if the file were saved in another way.
fn compressed(table: &ParquetTable<'_>, header: &Header<'_>) -> Option<(String, ColumnProblem)> {
    let columns = header.names.iter().enumerate();
    let mut problems =
        columns.filter_map(|(position, name)| Some((name.clone(), table.obstacle(position)?)));
    problems.find(|(_, problem)| matches!(problem, ColumnProblem::Codec { .. }))
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
        let at = match record.place() {
            Place::Line(number) | Place::Row(number) => number,
            // A record stands somewhere.
            Place::Columns => 0,
        };
        for (column, position) in &used {
            seen[*position].add(record.value(*column)?, at);
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
    /// Of the numbers.
    range: [f64; 2],
    numbers: usize,
    slips: Option<Slips>,
    /// While they do not repeat, the first of them.
    whole: Option<HashSet<i64>>,
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
            range: [f64::INFINITY, f64::NEG_INFINITY],
            numbers: 0,
            slips: None,
            whole: Some(HashSet::new()),
            counts: Some(HashMap::new()),
        }
    }

    /// Adds a value that stands on this line or row.
    fn add(&mut self, value: Option<&str>, at: u64) {
        let Some(text) = value else {
            self.missing += 1;
            return;
        };
        if let Some(marker) = MARKERS.iter().position(|marker| *marker == text) {
            self.missing += 1;
            self.markers[marker] = true;
            return;
        }
        match finite(text) {
            Some(number) => self.add_number(number),
            None => {
                let first = || Slips {
                    count: 0,
                    first: excerpt(text),
                    at,
                };
                self.slips.get_or_insert_with(first).count += 1;
            }
        }
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

    fn add_number(&mut self, number: f64) {
        let [low, high] = self.range;
        self.range = [low.min(number), high.max(number)];
        self.numbers += 1;
        if let Some(seen) = &mut self.whole {
            // Beyond 2⁵³ neighbours are the same number.
            let whole = number.fract() == 0.0 && number.abs() < (1_u64 << 53) as f64;
            let number = number as i64;
            let again = match seen.len() < REMEMBERED {
                true => !seen.insert(number),
                false => seen.contains(&number),
            };
            if !whole || again {
                self.whole = None;
            }
        }
    }

    fn finish(self) -> ColumnProfile {
        let slips = self.slips.as_ref().map_or(0, |slips| slips.count);
        let values = (self.numbers + slips) as f64;
        let is_numeric = self.numbers > 0 && self.numbers as f64 >= MOSTLY * values;
        let [low, high] = self.range;
        // One number and a word or two are words.
        let is_numeric = is_numeric && (slips == 0 || low < high);
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
            range: is_numeric.then_some(self.range),
            slips: self.slips.filter(|_| is_numeric),
            numbers_rows: is_numeric && self.numbers > MEASURED && self.whole.is_some(),
            values,
        }
    }
}

/// A number as a row may hold it: neither `inf` nor `nan`.
fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[Option<&str>]) -> ColumnProfile {
        let mut seen = Seen::new("x", None);
        for (value, at) in values.iter().zip(2..) {
            seen.add(*value, at);
        }
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
    fn a_few_slips_leave_a_column_of_numbers() {
        let mut texts: Vec<String> = (0..40).map(|n| (n % 7).to_string()).collect();
        texts[4] = "inf".into();
        let values: Vec<_> = texts.iter().map(|text| Some(text.as_str())).collect();
        let found = column(&values);
        assert_eq!(found.range, Some([0.0, 6.0]));
        let slips = Slips {
            count: 1,
            first: "inf".into(),
            at: 6,
        };
        assert_eq!(found.slips, Some(slips));
        // One of 19 is more than 5 %.
        let found = column(&values[..19]);
        assert_eq!((found.range, found.slips), (None, None));
    }

    #[test]
    fn one_number_and_a_word_are_words() {
        let mut values = vec![Some("0"); 99];
        values.push(Some("x"));
        assert_eq!(column(&values).range, None);
    }

    #[test]
    fn whole_numbers_that_never_repeat_number_the_rows() {
        let number = |texts: Vec<String>| {
            let values: Vec<_> = texts.iter().map(|text| Some(text.as_str())).collect();
            column(&values).numbers_rows
        };
        // 7 is prime to 20011, so that every number comes once.
        let shuffled = |n: u32| (n * 7 % 20_011).to_string();
        assert!(number((0..51).map(|n| n.to_string()).collect()));
        assert!(number((0..20_011).map(shuffled).collect()));
        assert!(!number((0..50).map(|n| n.to_string()).collect()));
        assert!(!number((0..20_012).map(shuffled).collect()));
        assert!(!number((0..60).map(|n| (n % 59).to_string()).collect()));
        assert!(!number((0..60).map(|n| format!("{n}.5")).collect()));
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
