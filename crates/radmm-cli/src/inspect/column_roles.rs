//! The role that each column of a file plays in a study: a number, a category, or nothing.

use radmm_data::{ColumnProfile, MAX_VALUES, TableProfile, days_of_date};
use radmm_study::number_format::percent;

/// The most characters of a name or category.
const LONGEST: usize = 200;

/// The share of equal values from which on a column tells little.
const NEARLY_CONSTANT: f64 = 0.99;

/// The number of rows below which no column counts as nearly constant.
const FEW_ROWS: usize = 100;

/// The fields that mean "not known" in any study.
pub(super) const USUAL_MARKERS: [&str; 2] = ["", "?"];

/// The role of a column in a study.
pub(super) enum ColumnRole<'a> {
    /// A number within this range.
    Numeric([f64; 2]),
    /// A date between these days, counted from 1970-01-01.
    Dates([f64; 2]),
    /// A category, with its values.
    Categorical(Vec<&'a str>),
    /// Not usable, for this reason.
    Unusable(String),
}

/// The roles of all columns of a file, and the fields that mean "not known" in it.
pub(super) struct ColumnRoles<'a> {
    roles: Vec<ColumnRole<'a>>,
    /// Whether rows may lack a value, by column.
    incomplete: Vec<bool>,
    markers: Vec<&'a str>,
}

impl<'a> ColumnRoles<'a> {
    /// Finds the roles of the columns of a file whose label is this one.
    pub(super) fn new(profile: &'a TableProfile, label: &'a ColumnProfile) -> Self {
        let columns = &profile.columns;
        let mut roles: Vec<ColumnRole<'a>> = columns.iter().map(role_alone).collect();
        let reasons: Vec<Option<String>> = (0..columns.len())
            .map(|k| {
                let column = &columns[k];
                match std::ptr::eq(column, label) {
                    true => None,
                    false => nearly_constant(column, profile.rows)
                        .or_else(|| clash(k, columns, &roles, label)),
                }
            })
            .collect();
        for (role, reason) in roles.iter_mut().zip(reasons) {
            if let (Some(reason), false) = (reason, matches!(role, ColumnRole::Unusable(_))) {
                *role = ColumnRole::Unusable(reason);
            }
        }
        let used = columns.iter().zip(&roles);
        let used = used.filter(|(column, role)| {
            std::ptr::eq(*column, label) || !matches!(role, ColumnRole::Unusable(_))
        });
        let found = used.flat_map(|(column, _)| {
            let markers = column.markers.iter().copied();
            markers.chain(not_numbers(column))
        });
        // New rows may lack what these do not.
        let mut markers: Vec<&str> = USUAL_MARKERS.into_iter().chain(found).collect();
        markers.sort_unstable();
        markers.dedup();
        let incomplete = columns
            .iter()
            .zip(&mut roles)
            .map(|(column, role)| {
                let is_marker = |value: &str| markers.contains(&value);
                let marked = match role {
                    ColumnRole::Categorical(values) => {
                        let count = values.len();
                        values.retain(|value| !is_marker(value));
                        values.len() < count
                    }
                    _ => not_numbers(column).next().is_some(),
                };
                column.missing > 0 || marked
            })
            .collect();
        Self {
            roles,
            incomplete,
            markers,
        }
    }

    /// Returns the role of the column at an index.
    pub(super) fn role(&self, index: usize) -> &ColumnRole<'a> {
        &self.roles[index]
    }

    /// Returns whether rows may lack the value of the column at an index.
    pub(super) fn may_be_missing(&self, index: usize) -> bool {
        self.incomplete[index]
    }

    /// Returns the fields that mean "not known" in the columns that are used, and the values that should be numbers and are not.
    pub(super) fn markers(&self) -> &[&'a str] {
        &self.markers
    }
}

/// Returns the reason why a column tells next to nothing, if it does.
fn nearly_constant(column: &ColumnProfile, rows: usize) -> Option<String> {
    let most = column.values.iter().flatten().map(|(_, rows)| *rows).max();
    let most = most.unwrap_or(0) as f64 / rows as f64;
    (most >= NEARLY_CONSTANT && rows >= FEW_ROWS)
        .then(|| format!("{} of the rows have the same value", percent(most)))
}

/// Returns the reason why the non-numbers of a numeric column cannot be listed under `missing`, if one of them means something in
/// another column.
fn clash(
    index: usize,
    columns: &[ColumnProfile],
    roles: &[ColumnRole<'_>],
    label: &ColumnProfile,
) -> Option<String> {
    let is_label = |value: &str| {
        let mut labels = label.values.iter().flatten();
        labels.any(|(label, _)| label == value)
    };
    let is_category = |value: &str| {
        roles.iter().any(|role| match role {
            ColumnRole::Categorical(values) => values.contains(&value),
            _ => false,
        })
    };
    let mut values = not_numbers(&columns[index]);
    values.find(|v| is_label(v) || (is_category(v) && !means_missing(v)))?;
    Some("it has numbers and also a word that is a value of another column: correct it".to_owned())
}

/// Returns whether a word usually means "not known".
fn means_missing(word: &str) -> bool {
    const WORDS: [&str; 10] = [
        "unknown",
        "missing",
        "n/a",
        "#n/a",
        "na",
        "not known",
        "not available",
        "-",
        "--",
        ".",
    ];
    WORDS.contains(&word.to_lowercase().as_str())
}

/// Returns the values of a numeric column that are not numbers, if they are few; a column of text has none.
fn not_numbers(column: &ColumnProfile) -> impl Iterator<Item = &str> {
    let distinct = column.non_numbers.as_ref();
    let distinct = distinct.and_then(|slips| slips.distinct.as_ref());
    distinct.into_iter().flatten().map(String::as_str)
}

/// Returns the role of a column, whatever the others are.
fn role_alone(column: &ColumnProfile) -> ColumnRole<'_> {
    if let Some(obstacle) = &column.obstacle {
        return ColumnRole::Unusable(obstacle.clone());
    }
    if is_long(&column.name) {
        return ColumnRole::Unusable(format!("its name is longer than {LONGEST} characters"));
    }
    if column.looks_like_row_id {
        let reason = "whole numbers that seem never to repeat, probably an identifier";
        return ColumnRole::Unusable(reason.into());
    }
    let days = column.dates.as_ref().map(|dates| dates.each_ref());
    let days = days.map(|dates| dates.map(|date| days_of_date(date).unwrap_or_default()));
    if let Some([first, last]) = days.filter(|[first, last]| first < last) {
        return ColumnRole::Dates([first, last]);
    }
    match (&column.values, column.range) {
        (Some(values), _) if values.is_empty() => {
            ColumnRole::Unusable("every value is missing".into())
        }
        (Some(values), _) if values.len() == 1 => {
            ColumnRole::Unusable("every value is the same".into())
        }
        // The same number, written in several forms.
        (_, Some([low, high])) if low == high => {
            ColumnRole::Unusable("every value is the same".into())
        }
        (_, Some(range)) => ColumnRole::Numeric(range),
        (Some(values), None) if values.iter().any(|(value, _)| is_long(value)) => {
            let reason = format!("text of more than {LONGEST} characters, too long for a category");
            ColumnRole::Unusable(reason)
        }
        (Some(values), None) => {
            ColumnRole::Categorical(values.iter().map(|(value, _)| value.as_str()).collect())
        }
        (None, None) => {
            let reason = format!(
                "text with more than {MAX_VALUES} different values, probably an identifier"
            );
            ColumnRole::Unusable(reason)
        }
    }
}

/// Returns whether a name or value is too long for a study.
pub(super) fn is_long(text: &str) -> bool {
    text.chars().nth(LONGEST).is_some()
}
