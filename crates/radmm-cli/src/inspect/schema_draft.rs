//! The draft of a `[data]` section, from the profile of a file.

use std::fmt::Write;
use std::path::Path;

use comfy_table::CellAlignment;
use radmm_data::{ColumnProfile, Format, MAX_VALUES, NonNumbers, TableProfile};
use radmm_study::number_format::{percent, thousands};
use serde::Serialize;

use crate::args::InspectArgs;
use crate::inspect::{label_guess, round_bounds, toml_writer as toml};
use crate::output::tables;

/// The warning printed with everything that was read off the rows.
pub(super) const WARNING: &str = "bounds and vocabularies read off private rows are not public.
A study that uses them reveals facts about the rows outside its privacy guarantee.
Replace each by a value known without these rows: documentation, physiology, law, a code book.";

/// The number of items shown of a long list.
const MOST_ITEMS: usize = 6;

/// The most characters of a name or category.
const LONGEST: usize = 200;

/// The terminal columns for names and values together: 80 minus the other columns and the gaps.
const NAME_AND_VALUE_COLUMNS: usize = 51;

/// The most terminal columns for names.
const MOST_NAME_COLUMNS: usize = 26;

/// The draft of a `[data]` section.
pub(super) struct SchemaDraft<'a> {
    path: String,
    /// Whether the section must name the format, because the extension does not.
    write_format: bool,
    profile: &'a TableProfile,
    label: &'a ColumnProfile,
    /// The other candidates for the label, if it was guessed.
    other_labels: Option<Vec<&'a str>>,
    positive: String,
    positive_guessed: bool,
    /// The number of rows of the positive class.
    positives: usize,
}

/// The role of a column in a study.
enum ColumnRole<'a> {
    Numeric([f64; 2]),
    Categorical(&'a [(String, usize)]),
    /// Not usable, for this reason.
    Unusable(String),
}

impl<'a> SchemaDraft<'a> {
    pub(super) fn new(
        path: &Path,
        profile: &'a TableProfile,
        args: &InspectArgs,
    ) -> Result<Self, String> {
        let file = path.display();
        let (label, other_labels) =
            label_guess::guess_label(profile, args).map_err(|e| format!("{file}: {e}"))?;
        let positive = label_guess::guess_positive(profile.format, label, args.positive.as_deref());
        let (positive, positives) = positive.map_err(|e| format!("{file}: {e}"))?;
        Ok(Self {
            path: file.to_string(),
            write_format: Format::of(path) != Some(profile.format),
            profile,
            label,
            other_labels,
            positive,
            positive_guessed: args.positive.is_none(),
            positives,
        })
    }

    /// Returns the reason why no column can be learnt from, if there is none.
    pub(super) fn no_features(&self) -> Option<String> {
        if self.profile.numbered.is_some() {
            return None;
        }
        let mut reasons = Vec::new();
        for column in self.feature_columns() {
            match role_of(column) {
                ColumnRole::Unusable(reason) => {
                    reasons.push(format!("{}: {reason}", short_name(column)))
                }
                ColumnRole::Numeric(_) | ColumnRole::Categorical(_) => return None,
            }
        }
        let label = toml::excerpt(&self.label.name);
        Some(match reasons.is_empty() {
            true => format!(
                "{}: there is no column except the label, {label}",
                self.path
            ),
            false => format!(
                "{}: no column except the label, {label}, can be learnt from ({})",
                self.path,
                first_few(&reasons)
            ),
        })
    }

    /// Formats the section for a study file.
    pub(super) fn section(&self) -> String {
        let mut text = String::new();
        for line in format!("WARNING: {WARNING}").lines() {
            // Writing into a string does not fail, here and below.
            let _ = writeln!(text, "# {line}");
        }
        let rows = self.profile.rows;
        let labelled = rows - self.label.missing;
        let share = percent(self.positives as f64 / labelled as f64);
        let _ = writeln!(
            text,
            "#\n# {} rows, {share} of them positive\n",
            thousands(rows)
        );
        let _ = writeln!(
            text,
            "[data]\npath = {} # relative to the study file",
            toml::string(&self.path)
        );
        if self.write_format {
            let _ = writeln!(
                text,
                "format = {}",
                toml::string(self.profile.format.name())
            );
        }
        match self.profile.numbered {
            Some(columns) => {
                let _ = writeln!(
                    text,
                    "columns = {columns} # the largest index among the rows"
                );
            }
            None => {
                let name = toml::string(&self.label.name);
                let _ = writeln!(text, "label = {name}{}", self.label_comment());
            }
        }
        let positive = toml::string(&self.positive);
        let _ = writeln!(text, "positive = {positive}{}", self.positive_comment());
        let markers = self.markers();
        let found = if markers.is_empty() {
            "none found"
        } else {
            "found in the rows"
        };
        let _ = writeln!(text, "missing = {} # {found}", toml::strings(markers));
        let _ = writeln!(text, "rows = \"unit\"\nintercept = true");
        if self.profile.numbered.is_none() {
            self.write_features(&mut text);
        }
        text
    }

    fn write_features(&self, text: &mut String) {
        let (mut numeric, mut categorical, mut unused) =
            (String::new(), String::new(), String::new());
        for column in self.feature_columns() {
            let key = toml::key(&column.name);
            let missing = self.share_missing(column) + &self.slips(column);
            let _ = match role_of(column) {
                ColumnRole::Numeric(range) => {
                    let [low, high] = round_bounds::around(range).map(toml::number);
                    writeln!(
                        &mut numeric,
                        "{key} = [{low}, {high}] # from the rows{missing}"
                    )
                }
                ColumnRole::Categorical(values) => {
                    let values = toml::strings(values.iter().map(|(value, _)| value.as_str()));
                    writeln!(
                        &mut categorical,
                        "{key} = {values} # from the rows{missing}"
                    )
                }
                ColumnRole::Unusable(reason) => {
                    writeln!(&mut unused, "# {}: {reason}", short_name(column))
                }
            };
        }
        let none = |list: &String| if list.is_empty() { " # none" } else { "" };
        let bins = match numeric.is_empty() {
            true => "",
            false => "# Instead of bounds a column may have bins: { bins = [20, 40, 60] }\n",
        };
        let none_numeric = none(&numeric);
        let _ = writeln!(text, "\n[data.numeric]{none_numeric}\n{bins}{numeric}");
        let _ = writeln!(
            text,
            "[data.categorical]{}\n{categorical}",
            none(&categorical)
        );
        if !unused.is_empty() {
            let _ = writeln!(text, "# Not used:\n{unused}");
        }
    }

    /// Formats the table of columns.
    pub(super) fn table(&self) -> String {
        let columns = &self.profile.columns;
        let names = columns
            .iter()
            .map(|column| toml::width(&short_name(column)));
        let width = names.max().unwrap_or_default().min(MOST_NAME_COLUMNS);
        let row = |column: &ColumnProfile| {
            let is_label = std::ptr::eq(column, self.label);
            let (kind, values) = match role_of(column) {
                _ if is_label => ("label", frequent_values(column)),
                ColumnRole::Numeric([low, high]) => {
                    let range = [low, high].map(toml::number);
                    ("numeric", format!("{} to {}", range[0], range[1]))
                }
                ColumnRole::Categorical(_) => ("categorical", frequent_values(column)),
                ColumnRole::Unusable(reason) => ("unused", reason),
            };
            let missing = percent(column.missing as f64 / self.profile.rows as f64);
            let name = toml::cut(&short_name(column), width);
            let values = toml::cut(&values, NAME_AND_VALUE_COLUMNS - width);
            vec![name, kind.to_owned(), values, missing]
        };
        let header = ["column", "use", "range or values", "missing"];
        let mut table = tables::grid(&header, columns.iter().map(row));
        for column in table.column_iter_mut().skip(1).take(2) {
            column.set_cell_alignment(CellAlignment::Left);
        }
        let rows = thousands(self.profile.rows);
        match self.profile.numbered {
            Some(last) => format!(
                "{rows} rows, columns 1 to {}\n\n{table}\n",
                thousands(last as usize)
            ),
            None => format!("{rows} rows\n\n{table}\n"),
        }
    }

    /// Formats the findings as JSON.
    pub(super) fn json(&self) -> String {
        #[derive(Serialize)]
        struct Findings<'a> {
            warning: String,
            path: &'a str,
            label: Option<&'a str>,
            label_guessed: bool,
            positive: &'a str,
            positive_guessed: bool,
            positives: usize,
            #[serde(flatten)]
            profile: &'a TableProfile,
        }
        let findings = Findings {
            warning: WARNING.replace('\n', " "),
            path: &self.path,
            label: self.profile.numbered.is_none().then_some(&self.label.name),
            label_guessed: self.other_labels.is_some(),
            positive: &self.positive,
            positive_guessed: self.positive_guessed,
            positives: self.positives,
            profile: self.profile,
        };
        // Every map has string keys, and all numbers are finite: serialisation cannot fail.
        serde_json::to_string_pretty(&findings).unwrap_or_default() + "\n"
    }

    fn feature_columns(&self) -> impl Iterator<Item = &'a ColumnProfile> {
        let label = self.label;
        let columns = self.profile.columns.iter();
        columns.filter(move |column| !std::ptr::eq(*column, label))
    }

    /// Returns the markers of missing values in the columns that the section names.
    fn markers(&self) -> Vec<&'static str> {
        let used = self.profile.columns.iter().filter(|column| {
            std::ptr::eq(*column, self.label) || !matches!(role_of(column), ColumnRole::Unusable(_))
        });
        let mut markers: Vec<&str> = used.flat_map(|column| column.markers.clone()).collect();
        markers.sort_unstable();
        markers.dedup();
        markers
    }

    fn share_missing(&self, column: &ColumnProfile) -> String {
        match column.missing {
            0 => String::new(),
            missing => {
                let share = percent(missing as f64 / self.profile.rows as f64);
                format!("; {share} missing")
            }
        }
    }

    fn slips(&self, column: &ColumnProfile) -> String {
        let Some(NonNumbers { count, first, at }) = &column.non_numbers else {
            return String::new();
        };
        let place = match self.profile.format {
            Format::Parquet => "in row",
            Format::Csv | Format::Libsvm => "on line",
        };
        let first = toml::string(first);
        match count {
            1 => {
                format!(
                    "; {first} {place} {at} is not a number: correct it, or list it under missing"
                )
            }
            many => format!(
                "; {} values are not numbers, the first {first} {place} {at}: correct them, or list them under missing",
                thousands(*many)
            ),
        }
    }

    fn label_comment(&self) -> String {
        match &self.other_labels {
            None => String::new(),
            Some(others) if others.is_empty() => {
                " # guessed: the only column with two values".into()
            }
            Some(others) => {
                let others: Vec<String> = others.iter().map(|name| toml::excerpt(name)).collect();
                format!(
                    " # guessed; other columns with two values: {}",
                    others.join(", ")
                )
            }
        }
    }

    fn positive_comment(&self) -> String {
        if !self.positive_guessed {
            return String::new();
        }
        let values = self.label.values.iter().flatten();
        let others = values.filter(|(value, _)| *value != self.positive);
        let others: Vec<String> = others.map(|(value, _)| toml::excerpt(value)).collect();
        format!(" # guessed; the other value is {}", others.join(", "))
    }
}

fn role_of(column: &ColumnProfile) -> ColumnRole<'_> {
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
        (Some(values), None) => ColumnRole::Categorical(values),
        (None, None) => {
            let reason = format!(
                "text with more than {MAX_VALUES} different values, probably an identifier"
            );
            ColumnRole::Unusable(reason)
        }
    }
}

pub(super) fn is_long(text: &str) -> bool {
    text.chars().nth(LONGEST).is_some()
}

/// Returns a column's name, shortened if it is very long.
fn short_name(column: &ColumnProfile) -> String {
    match is_long(&column.name) {
        true => toml::excerpt(&column.name),
        false => toml::key(&column.name),
    }
}

/// Lists the most frequent values.
fn frequent_values(column: &ColumnProfile) -> String {
    let values = column.values.iter().flatten();
    first_few(
        &values
            .map(|(value, _)| toml::excerpt(value))
            .collect::<Vec<_>>(),
    )
}

/// Lists the first of many items, and their number.
pub(super) fn first_few(names: &[String]) -> String {
    match names.len() {
        0..=MOST_ITEMS => names.join(", "),
        count => format!("{}, … ({count})", names[..MOST_ITEMS].join(", ")),
    }
}
