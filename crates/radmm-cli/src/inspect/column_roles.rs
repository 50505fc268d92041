//! The role that each column of a file plays in a study: a number, a category, or nothing.

use radmm_data::{ColumnProfile, MAX_VALUES, TableProfile, days_of_date};
use radmm_study::number_format::percent;

/// The most characters of a name or category.
const LONGEST: usize = 200;

/// The share of equal values from which on a column tells little.
const NEARLY_CONSTANT: f64 = 0.99;

/// The number of rows below which no column counts as nearly constant.
const FEW_ROWS: usize = 100;

/// The number of rows below which a category can point to single people.
pub(super) const RARE_ROWS: usize = 10;

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
    /// Whether there are values that count as missing because the draft cannot name them, by column.
    has_others: Vec<bool>,
    markers: Vec<&'a str>,
}

impl<'a> ColumnRoles<'a> {
    /// Finds the roles of the columns of a file whose label is this one.
    pub(super) fn new(profile: &'a TableProfile, label: &'a ColumnProfile) -> Self {
        let columns = &profile.columns;
        let mut roles: Vec<ColumnRole<'a>> = columns.iter().map(role_alone).collect();
        for (role, column) in roles.iter_mut().zip(columns) {
            let reason = nearly_constant(column, profile.rows);
            let reason = reason.filter(|_| !std::ptr::eq(column, label));
            if let (Some(reason), false) = (reason, matches!(role, ColumnRole::Unusable(_))) {
                *role = ColumnRole::Unusable(reason);
            }
        }
        let used = columns.iter().zip(&roles);
        let used = used.filter(|(column, role)| {
            std::ptr::eq(*column, label) || !matches!(role, ColumnRole::Unusable(_))
        });
        let found = used.flat_map(|(column, _)| column.markers.iter().copied());
        // New rows may lack what these do not.
        let mut markers: Vec<&str> = USUAL_MARKERS.into_iter().chain(found).collect();
        markers.sort_unstable();
        markers.dedup();
        let is_marker = |value: &str| markers.contains(&value);
        let mut incomplete = Vec::new();
        let mut has_others = Vec::new();
        for (column, role) in columns.iter().zip(&mut roles) {
            let (mut is_marked, mut others) = (false, false);
            match role {
                ColumnRole::Categorical(values) => {
                    let count = values.len();
                    values.retain(|value| !is_marker(value));
                    is_marked = values.len() < count;
                    others = leave_out_rare(values, column);
                }
                ColumnRole::Numeric(_) => others = column.non_numbers.is_some(),
                ColumnRole::Dates(_) | ColumnRole::Unusable(_) => {}
            }
            incomplete.push(column.missing > 0 || is_marked || others);
            has_others.push(others);
        }
        Self {
            roles,
            incomplete,
            has_others,
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

    /// Returns whether there are values that count as missing, because they are no numbers, or categories of few rows.
    pub(super) fn has_others(&self, index: usize) -> bool {
        self.has_others[index]
    }

    /// Returns the fields that usually mean "not known", as far as they occur in the columns that are used.
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

/// Leaves out the categories of few rows, if at least two are left; returns whether there are any.
// Privacy: such a value can point to a person, and a draft is for others, too.
fn leave_out_rare(values: &mut Vec<&str>, column: &ColumnProfile) -> bool {
    let counts = column.values.iter().flatten();
    let frequent =
        counts.filter(|(value, rows)| *rows >= RARE_ROWS && values.contains(&value.as_str()));
    let frequent: Vec<&str> = frequent.map(|(value, _)| value.as_str()).collect();
    if frequent.len() < 2 || frequent.len() == values.len() {
        return false;
    }
    values.retain(|value| frequent.contains(value));
    true
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
