//! Encoding: one record of text becomes one row of numbers.
//!
//! A numeric field `v` with public bounds `[a, b]` becomes `min(max(v, a), b) / max(|a|, |b|)`, or, if it is centred,
//! `(min(max(v, a), b) − (a + b)/2) / ((b − a)/2)`; both are within [−1, 1]. With public bins it is encoded one-hot, as a
//! one in the column of its bin. A date is the number of days since 1970-01-01, and encoded as one. A categorical field is encoded
//! one-hot, as a one in the column of its value. A missing value
//! is a one in the last column of its feature, where the schema has a category for it. A value that cannot be encoded counts as
//! missing where the schema says so, and is an error elsewhere. The intercept is a one. The norm policy is applied later, by the shard.

use std::collections::HashMap;

use crate::date;
use crate::error::{DataError, excerpt, first_few};
use crate::error_kinds::FieldError;
use crate::formats::named_columns::{Column, Record};
use crate::number::{check_finite, parse};
use crate::schema::{Categorical, Numeric, NumericScale, Schema, Spacing};

/// The features of a schema, mapped to the columns of one file.
pub(crate) struct Encoder<'a> {
    numeric: Vec<(Column<'a>, NumericFeature<'a>)>,
    categorical: Vec<(Column<'a>, OneHot<'a>)>,
    intercept: Option<u32>,
    missing: &'a [String],
}

struct NumericFeature<'a> {
    schema: &'a Numeric,
    /// The first of its encoded columns.
    first: u32,
}

struct OneHot<'a> {
    schema: &'a Categorical,
    /// The last of its encoded columns.
    last: u32,
    /// The encoded column of each value, in each of its spellings.
    codes: HashMap<&'a str, u32>,
}

impl<'a> Encoder<'a> {
    /// Maps the features to a file; `find` returns the column of the file with a given name.
    pub(crate) fn new(
        schema: &'a Schema,
        mut find: impl FnMut(&'a str) -> Result<Column<'a>, DataError>,
    ) -> Result<Self, DataError> {
        let mut next = 0;
        let mut numeric = Vec::new();
        for column in &schema.numeric {
            let (schema, first) = (column, next);
            next += column.width();
            numeric.push((find(&column.name)?, NumericFeature { schema, first }));
        }
        let mut categorical = Vec::new();
        for column in &schema.categorical {
            let codes = (next..).zip(&column.values);
            let spelt = codes.flat_map(|(code, value)| {
                let others = spellings(column.is_boolean, value).iter().copied();
                others.chain([value.as_str()]).map(move |text| (text, code))
            });
            let one_hot = OneHot {
                schema: column,
                last: next + column.width() - 1,
                codes: spelt.collect(),
            };
            next += column.width();
            categorical.push((find(&column.name)?, one_hot));
        }
        Ok(Self {
            numeric,
            categorical,
            intercept: schema.intercept.then_some(next),
            missing: &schema.missing,
        })
    }

    /// Returns the columns of the file that features are made of.
    pub(crate) fn columns(&self) -> impl Iterator<Item = Column<'a>> {
        let numeric = self.numeric.iter().map(|(column, _)| *column);
        let categorical = self.categorical.iter().map(|(column, _)| *column);
        numeric.chain(categorical)
    }

    /// Finds the features whose values a record lacks, if it is dropped without them. Its other fields may be invalid.
    pub(crate) fn find_lacking(
        &self,
        record: &impl Record,
        lacking: &mut Lacking,
    ) -> Result<(), DataError> {
        lacking.0.clear();
        for (k, (column, NumericFeature { schema, .. })) in (0..).zip(&self.numeric) {
            if schema.missing_category {
                continue;
            }
            let is_missing = match record.is_missing(*column, self.missing) {
                Ok(false) if schema.other_is_missing => {
                    number(record, *column, schema).map(|number| number.is_err())
                }
                known => known,
            };
            lacking.add(k, is_missing)?;
        }
        for (k, (column, one_hot)) in (self.numeric.len() as u32..).zip(&self.categorical) {
            if one_hot.schema.missing_category {
                continue;
            }
            let is_missing = match record.is_missing(*column, self.missing) {
                Ok(false) if one_hot.schema.other_is_missing => {
                    let value = record.field(*column);
                    value.map(|value| !one_hot.codes.contains_key(value))
                }
                known => known,
            };
            lacking.add(k, is_missing)?;
        }
        Ok(())
    }

    /// Replaces `entries` by those of a record that is not incomplete, in ascending order of their columns: one for each used column
    /// of the file, zero or not, and the intercept. Replaces `noted` by what is to be counted: the numeric columns with values beyond
    /// their bounds, as indices into the schema, and the features whose value counts as missing because it cannot be encoded, as
    /// indices that follow on those.
    pub(crate) fn encode(
        &self,
        record: &impl Record,
        entries: &mut Vec<(u32, f64)>,
        noted: &mut Vec<u32>,
    ) -> Result<(), DataError> {
        entries.clear();
        noted.clear();
        let others = self.numeric.len() as u32;
        for (k, (column, numeric)) in (0..).zip(&self.numeric) {
            let NumericFeature { schema, first } = numeric;
            let missing = (first + schema.width() - 1, 1.0);
            if schema.missing_category && record.is_missing(*column, self.missing)? {
                entries.push(missing);
                continue;
            }
            let number = match number(record, *column, schema)? {
                Ok(number) => number,
                Err(_) if schema.missing_category && schema.other_is_missing => {
                    entries.push(missing);
                    noted.push(others + k);
                    continue;
                }
                Err(cause) => return Err(record.field_error(*column, cause)),
            };
            let [low, high] = match schema.scale {
                NumericScale::Bins { ref edges } => {
                    entries.push((first + bin(number, edges), 1.0));
                    continue;
                }
                NumericScale::Bounds { low, high } => {
                    entries.push((*first, scaled(number, low, high)));
                    [low, high]
                }
                NumericScale::Splines {
                    bounds,
                    count,
                    spacing,
                } => {
                    push_splines(entries, *first, number, bounds, count, spacing);
                    bounds
                }
                NumericScale::Centred { bounds } => {
                    entries.push((*first, centred(number, bounds)));
                    bounds
                }
            };
            // Below geometric bounds is a column of its own, where nothing is clipped.
            let has_bin_below = schema.has_bin_below();
            if (number < low && !has_bin_below) || number > high {
                noted.push(k);
            }
        }
        for (k, (column, one_hot)) in (2 * others..).zip(&self.categorical) {
            let schema = one_hot.schema;
            if schema.missing_category && record.is_missing(*column, self.missing)? {
                entries.push((one_hot.last, 1.0));
                continue;
            }
            let value = record.field(*column)?;
            match one_hot.codes.get(value) {
                Some(code) => entries.push((*code, 1.0)),
                None if schema.missing_category && schema.other_is_missing => {
                    entries.push((one_hot.last, 1.0));
                    noted.push(k);
                }
                None => return Err(record.field_error(*column, one_hot.unknown(value))),
            }
        }
        entries.extend(self.intercept.map(|at| (at, 1.0)));
        Ok(())
    }
}

/// The used columns whose values a record lacks: features as indices into the schema, numeric ones first, then the label, and then
/// the column of the split.
#[derive(Default)]
pub(crate) struct Lacking(Vec<u32>);

impl Lacking {
    /// Adds a column if its value is missing. What is wrong with a later field of a record that lacks one has no meaning.
    pub(crate) fn add(
        &mut self,
        column: u32,
        is_missing: Result<bool, DataError>,
    ) -> Result<(), DataError> {
        match is_missing {
            Ok(true) => self.0.push(column),
            Err(error) if self.0.is_empty() => return Err(error),
            Ok(false) | Err(_) => {}
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn columns(&self) -> &[u32] {
        &self.0
    }
}

impl OneHot<'_> {
    fn unknown(&self, value: &str) -> FieldError {
        if self.schema.is_boolean {
            let value = excerpt(value);
            return FieldError::NotABoolean { value };
        }
        FieldError::UnknownCategory {
            value: excerpt(value),
            known: first_few(self.schema.values.iter().map(String::as_str)),
        }
    }
}

/// Returns how a field may spell a truth value beside its own word.
fn spellings(is_boolean: bool, value: &str) -> &'static [&'static str] {
    match (is_boolean, value) {
        (true, "true") => &["True", "TRUE", "t", "T", "1"],
        (true, "false") => &["False", "FALSE", "f", "F", "0"],
        _ => &[],
    }
}

/// Returns the number or the days of the date in a field, or the reason why it has none.
fn number(
    record: &impl Record,
    column: Column<'_>,
    schema: &Numeric,
) -> Result<Result<f64, FieldError>, DataError> {
    if schema.is_date {
        return Ok(date::parse(record.field(column)?));
    }
    Ok(match record.number(column) {
        Some(number) => check_finite(number, || number.to_string()),
        None => parse(record.field(column)?, record.decimal()),
    })
}

fn scaled(number: f64, low: f64, high: f64) -> f64 {
    // Not `clamp`, which panics on bounds in the wrong order.
    number.max(low).min(high) / low.abs().max(high.abs())
}

/// Returns the position of a number between bounds, from −1 to 1.
fn centred(number: f64, [low, high]: [f64; 2]) -> f64 {
    // Halves first: their sum and difference do not overflow.
    let (middle, half) = (0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low);
    ((number.max(low).min(high) - middle) / half).clamp(-1.0, 1.0)
}

/// Appends the weights of the four splines that a number fills.
fn push_splines(
    entries: &mut Vec<(u32, f64)>,
    first: u32,
    number: f64,
    [low, high]: [f64; 2],
    count: u32,
    spacing: Spacing,
) {
    let (share, first) = match spacing {
        Spacing::Equal => {
            // Halves first: their differences do not overflow.
            let clipped = number.max(low).min(high);
            (
                (0.5 * clipped - 0.5 * low) / (0.5 * high - 0.5 * low),
                first,
            )
        }
        Spacing::Geometric if number < low => {
            entries.push((first, 1.0));
            return;
        }
        Spacing::Geometric => {
            let ratio = libm::log(number.min(high) / low) / libm::log(high / low);
            (ratio, first + 1)
        }
    };
    let (interval, weights) = spline_weights(share, count);
    let columns = first + interval..;
    entries.extend(columns.zip(weights));
}

/// Returns the first of the four splines that a value fills, and their weights; `share` is its place between the bounds, from 0 to 1.
pub fn spline_weights(share: f64, count: u32) -> (u32, [f64; 4]) {
    // A study has at least four splines.
    let intervals = count.saturating_sub(3).max(1);
    let place = share.clamp(0.0, 1.0) * f64::from(intervals);
    let interval = (place as u32).min(intervals - 1);
    let t = place - f64::from(interval);
    let s = 1.0 - t;
    let weights = [
        s * s * s / 6.0,
        (4.0 + 3.0 * t * t * (t - 2.0)) / 6.0,
        (4.0 + 3.0 * s * s * (s - 2.0)) / 6.0,
        t * t * t / 6.0,
    ];
    (interval, weights)
}

/// Returns the number of edges at or below a number, which is the index of its bin.
fn bin(number: f64, edges: &[f64]) -> u32 {
    edges.partition_point(|edge| *edge <= number) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_clipped_then_divided_by_the_larger_bound() {
        let cases = [
            ((0.0, 50.0), [(25.0, 0.5), (80.0, 1.0), (-3.0, 0.0)]),
            ((-4.0, 2.0), [(1.0, 0.25), (9.0, 0.5), (-9.0, -1.0)]),
            ((-8.0, -2.0), [(-2.0, -0.25), (0.0, -0.25), (-8.0, -1.0)]),
        ];
        for ((low, high), pairs) in cases {
            for (number, expected) in pairs {
                assert_eq!(
                    scaled(number, low, high),
                    expected,
                    "{number} in {low}..{high}"
                );
            }
        }
    }

    #[test]
    fn centred_numbers_are_zero_in_the_middle_of_their_bounds() {
        let year = |year| centred(year, [1980.0, 2030.0]);
        let years = [1900.0, 1980.0, 2005.0, 2017.5, 2030.0, 2100.0].map(year);
        assert_eq!(years, [-1.0, -1.0, 0.0, 0.5, 1.0, 1.0]);
        // Beside it, a year divided by its larger bound is nearly constant.
        let divided = [1980.0, 2030.0].map(|year| scaled(year, 1980.0, 2030.0));
        assert!(divided[1] - divided[0] < 0.025);
        assert_eq!(centred(f64::MAX, [-f64::MAX, f64::MAX]), 1.0);
    }

    fn splines(number: f64, bounds: [f64; 2], count: u32, spacing: Spacing) -> Vec<(u32, f64)> {
        let mut entries = Vec::new();
        push_splines(&mut entries, 7, number, bounds, count, spacing);
        entries
    }

    #[test]
    fn splines_have_four_weights_that_add_up_to_one() {
        for n in -10..=110 {
            let number = f64::from(n);
            let entries = splines(number, [0.0, 100.0], 10, Spacing::Equal);
            let sum: f64 = entries.iter().map(|(_, weight)| weight).sum();
            assert!((sum - 1.0).abs() < 1e-15, "{number}: {sum}");
            assert!(
                entries
                    .iter()
                    .all(|(_, weight)| (0.0..=1.0).contains(weight))
            );
            let columns: Vec<u32> = entries.iter().map(|(column, _)| *column).collect();
            assert_eq!(columns.len(), 4);
            assert!(columns.windows(2).all(|pair| pair[1] == pair[0] + 1));
            assert!(columns[0] >= 7 && columns[3] < 17, "{columns:?}");
            // The mean of the centres, which lie a seventh apart from one before the bounds on, is the number itself.
            let centre = |column: u32| (f64::from(column - 7) - 1.0) * 100.0 / 7.0;
            let mean: f64 = entries.iter().map(|(k, weight)| weight * centre(*k)).sum();
            assert!(
                (mean - number.clamp(0.0, 100.0)).abs() < 1e-12,
                "{number}: {mean}"
            );
        }
    }

    #[test]
    fn splines_are_smooth_where_intervals_meet() {
        let knot = 100.0 / 7.0;
        let at = |number| splines(number, [0.0, 100.0], 10, Spacing::Equal);
        let weight = |entries: &[(u32, f64)], column: u32| {
            let found = entries.iter().find(|(k, _)| *k == column);
            found.map_or(0.0, |(_, weight)| *weight)
        };
        let (before, after) = (at(knot - 1e-9), at(knot + 1e-9));
        for column in 7..17 {
            assert!((weight(&before, column) - weight(&after, column)).abs() < 1e-9);
        }
    }

    #[test]
    fn geometric_splines_have_equal_ratios_and_a_column_for_zero() {
        let at = |number| splines(number, [1.0, 1e4], 7, Spacing::Geometric);
        assert_eq!(at(0.0), [(7, 1.0)]);
        assert_eq!(at(-3.0), [(7, 1.0)]);
        let (ten, hundred) = (at(10.0), at(100.0));
        assert_eq!((ten[0].0, hundred[0].0), (9, 10));
        for (a, b) in ten.iter().zip(&hundred) {
            assert!((a.1 - b.1).abs() < 1e-12);
        }
        assert_eq!(at(1e9), at(1e4));
    }

    #[test]
    fn a_bin_begins_at_its_edge() {
        let edges = [25.0, 35.0, 65.0];
        let bins = [-1e9, 24.999, 25.0, 34.0, 35.0, 64.0, 65.0, 1e9].map(|age| bin(age, &edges));
        assert_eq!(bins, [0, 0, 1, 1, 2, 2, 3, 3]);
    }
}
