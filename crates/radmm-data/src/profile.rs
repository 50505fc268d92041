//! The profile of a file: facts from which the party that owns it drafts a schema.
//!
//! Privacy: a profile is a set of facts about the rows, outside every guarantee. Only the party that owns the file may
//! see it. Bounds and vocabularies that others see, or that a guarantee depends on, must come from elsewhere.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use serde::Serialize;

use crate::date::{self, date_of_days};
use crate::error::{DataError, FilePosition, excerpt};
use crate::error_kinds::{ColumnError, FormatError};
use crate::formats::libsvm::LibsvmRows;
use crate::formats::memory::{LabelledMatrix, MemoryTable};
use crate::formats::named_columns::{Column, Header, NamedTable, Record, Records};
use crate::formats::options::CsvDialect;
use crate::formats::source::TableVisitor;
use crate::formats::{DecimalMark, FileOptions, Format, Separator, TableSource, csv};
use crate::number::parse;

/// Fields that usually mean "not known".
pub const MISSING_MARKERS: [&str; 8] = ["?", "", "NA", "N/A", "NaN", "nan", "null", "NULL"];

/// The largest number of different values of a column that are counted. A column with more has no list of values.
pub const MAX_VALUES: usize = 100;

/// The share of numbers from which on a column is numeric.
const MIN_NUMERIC_SHARE: f64 = 0.95;

/// The number of different integers up to which a column may well be a measurement.
const MAX_MEASURED: usize = 50;

/// The number of integers that are remembered to recognise a repeated one.
const MAX_REMEMBERED: usize = 10_000;

/// The largest number of sets of columns that are remembered.
const MAX_PATTERNS: usize = 4096;

/// The profile of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableProfile {
    /// The format of the file. A table in memory has columns with names and types, as a Parquet file.
    pub format: Format,
    /// The separator of a CSV file, if it is not what its extension implies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<Separator>,
    /// The decimal mark of a CSV file, if it is not a point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decimal: Option<DecimalMark>,
    /// The number of rows.
    pub rows: usize,
    /// The named columns, in order; of a LIBSVM file, only the label.
    pub columns: Vec<ColumnProfile>,
    /// The largest index of a LIBSVM file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbered: Option<u32>,
    /// The rows that lack values, by the columns that lack them.
    #[serde(skip)]
    pub missing_patterns: MissingPatterns,
}

/// The number of rows for each set of columns that lack a value in the same row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MissingPatterns {
    /// The sets as indices of columns, ascending, as long as they are few.
    rows: HashMap<Vec<u32>, usize>,
    /// The rows with other sets.
    others: usize,
}

impl MissingPatterns {
    fn add(&mut self, columns: &[u32]) {
        if let Some(rows) = self.rows.get_mut(columns) {
            *rows += 1;
        } else if self.rows.len() < MAX_PATTERNS {
            self.rows.insert(columns.to_vec(), 1);
        } else {
            self.others += 1;
        }
    }

    /// Returns the number of rows that lack a value in one of these columns; at most a few too many in a file with very many sets.
    pub fn incomplete(&self, columns: &[usize]) -> usize {
        let lacks = |set: &Vec<u32>| {
            set.iter()
                .any(|column| columns.contains(&(*column as usize)))
        };
        let rows = self.rows.iter().filter(|(set, _)| lacks(set));
        rows.map(|(_, rows)| rows).sum::<usize>() + self.others
    }
}

/// The profile of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnProfile {
    /// The name of the column.
    pub name: String,
    /// The reason why a study cannot use it, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// The number of rows without a value: NULL, or one of [`MISSING_MARKERS`].
    pub missing: usize,
    /// The markers that occur.
    pub markers: Vec<&'static str>,
    /// The least and the greatest number, if all or nearly all values are numbers.
    pub range: Option<[f64; 2]>,
    /// The first and the last date, if all values are dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dates: Option<[String; 2]>,
    /// Typical numbers, if it has a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantiles: Option<Quantiles>,
    /// The values that are not finite numbers in a column with a range.
    #[serde(rename = "slips", skip_serializing_if = "Option::is_none")]
    pub non_numbers: Option<NonNumbers>,
    /// Whether the values are more than fifty integers that seem never to repeat.
    #[serde(rename = "numbers_rows")]
    pub looks_like_row_id: bool,
    /// Every value and how many rows have it, the most frequent first; `None` if there are more than [`MAX_VALUES`].
    pub values: Option<Vec<(String, usize)>>,
}

/// Typical numbers of a column, from a few thousand of its values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// One number of a hundred is at most this.
    pub p01: f64,
    /// Three of four numbers are at most this.
    pub p75: f64,
    /// One number of a hundred is at least this.
    pub p99: f64,
    /// One positive number of twenty is at most this; zero without positive numbers.
    pub positive_p05: f64,
    /// One positive number of twenty is at least this; zero without positive numbers.
    pub positive_p95: f64,
    /// The share of zeros.
    pub zeros: f64,
}

impl Quantiles {
    /// Returns those of a sample that is not empty.
    fn of(mut sample: Vec<f64>) -> Self {
        sample.sort_by(f64::total_cmp);
        let at = |sorted: &[f64], share: f64| -> f64 {
            let last = sorted.len().saturating_sub(1) as f64;
            sorted
                .get((share * last).round() as usize)
                .copied()
                .unwrap_or(0.0)
        };
        let positive = &sample[sample.partition_point(|x| *x <= 0.0)..];
        let zeros = sample.iter().filter(|x| **x == 0.0).count();
        Self {
            p01: at(&sample, 0.01),
            p75: at(&sample, 0.75),
            p99: at(&sample, 0.99),
            positive_p05: at(positive, 0.05),
            positive_p95: at(positive, 0.95),
            zeros: zeros as f64 / sample.len() as f64,
        }
    }
}

/// A sample of a sequence whose length is not known: every element at first, then every second, every fourth, and so on.
struct StrideSample {
    values: Vec<f64>,
    stride: usize,
    /// The elements to pass over before the next is taken.
    skip: usize,
}

impl StrideSample {
    const MAX: usize = 4096;

    fn new() -> Self {
        Self {
            values: Vec::new(),
            stride: 1,
            skip: 0,
        }
    }

    fn add(&mut self, value: f64) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        if self.values.len() == Self::MAX {
            let mut index = 0;
            self.values.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
        }
        self.values.push(value);
        self.skip = self.stride - 1;
    }
}

/// The values of a numeric column that are not finite numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NonNumbers {
    /// The number of such values.
    pub count: usize,
    /// The first such value, cut if long.
    pub first: String,
    /// The file of the first one, if the table is a folder of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the first one, or its row in a file without lines.
    pub at: u64,
}

/// Profiles a table in one pass, in memory that does not grow with the rows. A sparse matrix has nothing to profile.
pub fn profile<'a>(table: impl Into<TableSource<'a>>) -> Result<TableProfile, DataError> {
    let table = table.into();
    let (file, format) = (table.name().to_owned(), table.format());
    let mut profiler = Profiler {
        table: file.clone(),
        ..Profiler::default()
    };
    table.visit(&mut profiler)?;
    match (profiler.rows, format) {
        (0, Format::Libsvm) => Err(DataError::NoLines { file }),
        (0, _) => Err(DataError::NoRows { file }),
        _ => Ok(profiler.finish(format)),
    }
}

/// The profile of a table as far as it is read.
#[derive(Default)]
struct Profiler {
    /// The name of the table in errors.
    table: String,
    options: FileOptions,
    /// The number of files so far.
    files: usize,
    rows: usize,
    columns: Vec<ColumnStats>,
    /// The largest index of a LIBSVM file.
    numbered: Option<u32>,
    missing_patterns: MissingPatterns,
}

impl Profiler {
    fn finish(self, format: Format) -> TableProfile {
        let columns = self.columns.into_iter();
        TableProfile {
            format,
            separator: self.options.separator,
            decimal: self.options.decimal,
            rows: self.rows,
            columns: columns.map(ColumnStats::finish).collect(),
            numbered: self.numbered,
            missing_patterns: self.missing_patterns,
        }
    }
}

impl TableVisitor for Profiler {
    type Error = DataError;

    const LOOKS_AHEAD: bool = true;

    fn dialect(&mut self, start: &[u8], given: FileOptions, implied: CsvDialect) -> CsvDialect {
        let found = csv::sniff(start, given, implied);
        let usual = CsvDialect {
            decimal: DecimalMark::Point,
            ..implied
        };
        // What a study need not say is left out.
        self.options.separator = (found.separator != usual.separator || given.separator.is_some())
            .then_some(found.separator);
        self.options.decimal = (found.decimal != usual.decimal).then_some(found.decimal);
        found
    }

    fn named<'f>(&mut self, table: impl NamedTable<'f>) -> Result<(), DataError> {
        let header = table.header();
        check_header(&header)?;
        let obstacle = |index| table.unreadable(index).map(|error| error.to_string());
        self.files += 1;
        if self.files == 1 {
            self.columns = new_stats(&header, obstacle);
        } else {
            // The columns of a table are those that all its files have.
            for stats in &mut self.columns {
                let found = match header.find(&stats.name) {
                    Ok(column) => obstacle(column.index),
                    Err(DataError::DuplicateColumn { .. }) => {
                        Some(format!("appears more than once in {}", header.file))
                    }
                    Err(_) => Some(format!("is not in {}", header.file)),
                };
                stats.obstacle = stats.obstacle.take().or(found);
            }
        }
        let used: Vec<(usize, Column<'_>)> = usable(&header, &self.columns).collect();
        if used.is_empty()
            && let Some((column, cause)) = unsupported_codec(&table, &header)
        {
            return Err(DataError::Column {
                file: header.file.to_owned(),
                column,
                cause,
            });
        }
        let columns: Vec<Column<'_>> = used.iter().map(|(_, column)| *column).collect();
        let mut records = table.records(&columns)?;
        let mut lacking = Vec::new();
        let file = (header.file != self.table).then_some(header.file);
        while let Some(record) = records.next()? {
            self.rows += 1;
            lacking.clear();
            let at = match record.position() {
                FilePosition::Line(number) | FilePosition::Row(number) => number,
                // Unreachable: a record has a line or a row.
                FilePosition::Columns => 0,
            };
            for (index, column) in &used {
                let value = record.value(*column)?;
                if !self.columns[*index].add(value, record.decimal(), (file, at)) {
                    lacking.push(*index as u32);
                }
            }
            if !lacking.is_empty() {
                self.missing_patterns.add(&lacking);
            }
        }
        Ok(())
    }

    fn libsvm(&mut self, mut rows: LibsvmRows<'_, impl Read>) -> Result<(), DataError> {
        let labels = self.columns.pop();
        let mut labels = labels.unwrap_or_else(|| ColumnStats::new("label", None));
        // A study has at least one column.
        let mut largest = self.numbered.unwrap_or(1);
        while let Some(row) = rows.next(u32::MAX)? {
            self.rows += 1;
            labels.add(Some(row.label), None, (None, self.rows as u64));
            let last = row.entries.last().map_or(0, |entry| entry.0 + 1);
            largest = largest.max(last);
        }
        self.columns = vec![labels];
        self.numbered = Some(largest);
        Ok(())
    }

    fn matrix(&mut self, table: &MemoryTable<'_>, _: &LabelledMatrix<'_>) -> Result<(), DataError> {
        Err(DataError::format(table.name(), FormatError::Matrix))
    }
}

/// Checks that the first line of a text names the columns.
fn check_header(header: &Header<'_>) -> Result<(), DataError> {
    let position @ FilePosition::Line(_) = header.position else {
        return Ok(());
    };
    let file = header.file.to_owned();
    if let Some(separator) = header.other_separator() {
        return Err(DataError::Separator {
            file,
            position,
            separator,
        });
    }
    match header.names.iter().all(|name| parse(name, None).is_ok()) {
        true => Err(DataError::NoHeader { file }),
        false => Ok(()),
    }
}

/// Returns empty statistics for each column; `obstacle` tells why the column at an index cannot be read.
fn new_stats(header: &Header<'_>, obstacle: impl Fn(usize) -> Option<String>) -> Vec<ColumnStats> {
    let names = header.names.iter().enumerate();
    names
        .map(|(index, name)| {
            let obstacle = if name.trim().is_empty() {
                Some("has no name".to_owned())
            } else if header.find(name).is_err() {
                Some("appears more than once".to_owned())
            } else {
                obstacle(index)
            };
            ColumnStats::new(name, obstacle)
        })
        .collect()
}

/// Returns the columns that can be read, with the indices of their statistics.
fn usable<'h>(
    header: &'h Header<'_>,
    stats: &[ColumnStats],
) -> impl Iterator<Item = (usize, Column<'h>)> {
    let stats = stats.iter().enumerate();
    let usable = stats.filter(|(_, stats)| stats.obstacle.is_none());
    usable.filter_map(|(k, stats)| {
        let index = header.find(&stats.name).ok()?.index;
        let name = header.names[index].as_str();
        Some((k, Column { name, index }))
    })
}

/// Returns a column that could be read if the file were saved with another compression.
fn unsupported_codec<'f>(
    table: &impl NamedTable<'f>,
    header: &Header<'_>,
) -> Option<(String, ColumnError)> {
    let columns = header.names.iter().enumerate();
    let mut errors =
        columns.filter_map(|(index, name)| Some((name.clone(), table.unreadable(index)?)));
    errors.find(|(_, cause)| matches!(cause, ColumnError::Codec { .. }))
}

/// Statistics of a column as far as it is read.
struct ColumnStats {
    name: String,
    obstacle: Option<String>,
    decimal: Option<DecimalMark>,
    missing: usize,
    markers: [bool; MISSING_MARKERS.len()],
    /// The least and the greatest number.
    range: [f64; 2],
    numbers: usize,
    sample: StrideSample,
    /// The number of dates, with the first and the last day.
    dates: (usize, [f64; 2]),
    non_numbers: Option<NonNumbers>,
    /// The first integers, as long as all values are integers and none repeats.
    distinct_integers: Option<HashSet<i64>>,
    /// The number of rows with each value, as long as the values are few.
    counts: Option<HashMap<String, usize>>,
}

impl ColumnStats {
    fn new(name: &str, obstacle: Option<String>) -> Self {
        Self {
            name: name.to_owned(),
            obstacle,
            decimal: None,
            missing: 0,
            markers: [false; MISSING_MARKERS.len()],
            range: [f64::INFINITY, f64::NEG_INFINITY],
            numbers: 0,
            sample: StrideSample::new(),
            dates: (0, [f64::INFINITY, f64::NEG_INFINITY]),
            non_numbers: None,
            distinct_integers: Some(HashSet::new()),
            counts: Some(HashMap::new()),
        }
    }

    /// Adds a value of a file, if there are several, and of a line or row. Returns whether it is known.
    fn add(
        &mut self,
        value: Option<&str>,
        decimal: Option<DecimalMark>,
        (file, at): (Option<&str>, u64),
    ) -> bool {
        let Some(text) = value else {
            self.missing += 1;
            return false;
        };
        if let Some(marker) = MISSING_MARKERS.iter().position(|marker| *marker == text) {
            self.missing += 1;
            self.markers[marker] = true;
            return false;
        }
        self.decimal = decimal;
        match parse(text, decimal) {
            Ok(number) => self.add_number(number),
            Err(_) => {
                let first = || NonNumbers {
                    count: 0,
                    first: excerpt(text),
                    file: file.map(str::to_owned),
                    at,
                };
                self.non_numbers.get_or_insert_with(first).count += 1;
                if text.starts_with(|c: char| c.is_ascii_digit())
                    && let Ok(day) = date::parse(text)
                {
                    let (count, [first, last]) = self.dates;
                    self.dates = (count + 1, [first.min(day), last.max(day)]);
                }
            }
        }
        if let Some(counts) = &mut self.counts {
            if let Some(count) = counts.get_mut(text) {
                *count += 1;
            } else if counts.len() < MAX_VALUES {
                counts.insert(text.to_owned(), 1);
            } else {
                self.counts = None;
            }
        }
        true
    }

    fn add_number(&mut self, number: f64) {
        let [low, high] = self.range;
        self.range = [low.min(number), high.max(number)];
        self.numbers += 1;
        self.sample.add(number);
        if let Some(integers) = &mut self.distinct_integers {
            // Beyond 2⁵³ neighbouring integers are the same `f64`.
            let is_integer = number.fract() == 0.0 && number.abs() < (1_u64 << 53) as f64;
            let number = number as i64;
            let repeats = match integers.len() < MAX_REMEMBERED {
                true => !integers.insert(number),
                false => integers.contains(&number),
            };
            if !is_integer || repeats {
                self.distinct_integers = None;
            }
        }
    }

    fn finish(self) -> ColumnProfile {
        let non_numbers = self.non_numbers.as_ref().map_or(0, |found| found.count);
        let values = (self.numbers + non_numbers) as f64;
        let is_numeric = self.numbers > 0 && self.numbers as f64 >= MIN_NUMERIC_SHARE * values;
        let [low, high] = self.range;
        // A single number and a few words are words.
        let is_numeric = is_numeric && (non_numbers == 0 || low < high);
        let has_commas = is_numeric && self.decimal == Some(DecimalMark::Comma);
        let values = self.counts.map(|counts| {
            let values = counts.into_iter().map(|(value, rows)| match has_commas {
                // Numbers are written as in a study.
                true => (value.replace(',', "."), rows),
                false => (value, rows),
            });
            let mut values: Vec<(String, usize)> = values.collect();
            values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            values
        });
        let markers = MISSING_MARKERS.into_iter().zip(self.markers);
        let (dates, days) = self.dates;
        let are_dates = dates > 0 && dates == self.numbers + non_numbers;
        ColumnProfile {
            name: self.name,
            obstacle: self.obstacle,
            missing: self.missing,
            markers: markers
                .filter_map(|(text, occurs)| occurs.then_some(text))
                .collect(),
            range: is_numeric.then_some(self.range),
            dates: are_dates.then(|| days.map(date_of_days)),
            quantiles: is_numeric.then(|| Quantiles::of(self.sample.values)),
            non_numbers: self.non_numbers.filter(|_| is_numeric),
            looks_like_row_id: is_numeric
                && self.numbers > MAX_MEASURED
                && self.distinct_integers.is_some(),
            values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[Option<&str>]) -> ColumnProfile {
        let mut stats = ColumnStats::new("x", None);
        for (value, at) in values.iter().zip(2..) {
            stats.add(*value, None, (None, at));
        }
        stats.finish()
    }

    #[test]
    fn a_numeric_column_has_a_range_without_its_missing_values() {
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
    fn quantiles_are_those_of_a_sample_in_bounded_memory() {
        let texts: Vec<String> = (0..100_000).map(|n| (n % 1000).to_string()).collect();
        let values: Vec<_> = texts.iter().map(|text| Some(text.as_str())).collect();
        let found = column(&values).quantiles.unwrap();
        for (quantile, expected) in [(found.p01, 10.0), (found.p75, 750.0), (found.p99, 990.0)] {
            assert!((quantile - expected).abs() < 15.0, "{found:?}");
        }
        let mut sample = StrideSample::new();
        (0..1_000_000).for_each(|n| sample.add(f64::from(n)));
        assert!(sample.values.len() <= StrideSample::MAX);
        assert_eq!(sample.values[..2], [0.0, sample.stride as f64]);
        assert!(sample.values[sample.values.len() - 1] > 999_000.0);
    }

    #[test]
    fn zeros_and_positive_numbers_are_told_apart() {
        let found = column(&[Some("0"), Some("0"), Some("-2"), Some("8"), Some("800")]);
        let found = found.quantiles.unwrap();
        assert_eq!((found.positive_p05, found.positive_p95), (8.0, 800.0));
        assert_eq!(found.zeros, 0.4);
    }

    #[test]
    fn incomplete_rows_are_counted_for_any_choice_of_columns() {
        let mut patterns = MissingPatterns::default();
        patterns.add(&[0]);
        patterns.add(&[0, 2]);
        patterns.add(&[2]);
        patterns.add(&[2]);
        assert_eq!(patterns.incomplete(&[0]), 2);
        assert_eq!(patterns.incomplete(&[2]), 3);
        assert_eq!(patterns.incomplete(&[0, 2]), 4);
        assert_eq!(patterns.incomplete(&[1]), 0);
    }

    #[test]
    fn a_column_of_dates_has_a_first_and_a_last_one() {
        let found = column(&[Some("2020-03-01"), None, Some("2019-12-31T08:30:00Z")]);
        let dates = ["2019-12-31", "2020-03-01"].map(str::to_owned);
        assert_eq!((found.dates, found.range), (Some(dates), None));
        for other in ["1", "soon", "31.12.2020"] {
            assert_eq!(column(&[Some("2020-03-01"), Some(other)]).dates, None);
        }
    }

    #[test]
    fn a_word_among_few_numbers_makes_a_column_of_text() {
        assert_eq!(column(&[Some("3"), Some("three")]).range, None);
        assert_eq!(column(&[Some("3"), Some("inf")]).range, None);
    }

    #[test]
    fn a_few_non_numbers_leave_a_column_numeric() {
        let mut texts: Vec<String> = (0..40).map(|n| (n % 7).to_string()).collect();
        texts[4] = "inf".into();
        let values: Vec<_> = texts.iter().map(|text| Some(text.as_str())).collect();
        let found = column(&values);
        assert_eq!(found.range, Some([0.0, 6.0]));
        let non_numbers = NonNumbers {
            count: 1,
            first: "inf".into(),
            file: None,
            at: 6,
        };
        assert_eq!(found.non_numbers, Some(non_numbers));
        // One of 19 is more than 5 %.
        let found = column(&values[..19]);
        assert_eq!((found.range, found.non_numbers), (None, None));
    }

    #[test]
    fn a_single_number_and_a_word_make_a_column_of_text() {
        let mut values = vec![Some("0"); 99];
        values.push(Some("x"));
        assert_eq!(column(&values).range, None);
    }

    #[test]
    fn integers_that_never_repeat_look_like_row_ids() {
        let is_id = |texts: Vec<String>| {
            let values: Vec<_> = texts.iter().map(|text| Some(text.as_str())).collect();
            column(&values).looks_like_row_id
        };
        // 7 is prime to 20011, so that every number comes once.
        let shuffled = |n: u32| (n * 7 % 20_011).to_string();
        assert!(is_id((0..51).map(|n| n.to_string()).collect()));
        assert!(is_id((0..20_011).map(shuffled).collect()));
        assert!(!is_id((0..50).map(|n| n.to_string()).collect()));
        assert!(!is_id((0..20_012).map(shuffled).collect()));
        assert!(!is_id((0..60).map(|n| (n % 59).to_string()).collect()));
        assert!(!is_id((0..60).map(|n| format!("{n}.5")).collect()));
    }

    #[test]
    fn a_column_of_missing_values_has_neither_range_nor_values() {
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
