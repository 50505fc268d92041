//! A `[data]` section drafted from what stands in a file.

use std::fmt::Write;
use std::path::Path;

use comfy_table::CellAlignment;
use radmm_data::{ColumnProfile, Format, MAX_VALUES, NonNumbers, TableProfile};
use radmm_report::TextTable;
use radmm_study::number_format::{percent, thousands};
use serde::Serialize;

use crate::args::InspectArgs;
use crate::bounds;
use crate::label;
use crate::render::plain;
use crate::toml;

/// Said to whoever sees what was read off the rows.
pub(crate) const WARNING: &str = "bounds and vocabularies read off private rows are not public.
A study that uses them tells facts about the rows outside of its privacy guarantee.
Replace every one by what is known without these rows: documentation, physiology, law, a code book.";

/// Values that are shown of a long list.
const SHOWN: usize = 6;

/// Characters of the longest name or category; what is longer is no word.
pub(crate) const LONGEST: usize = 200;

/// Columns of the table that names, and what is said of them, share: 80 less the others and the space between.
const SHARED: usize = 51;

/// Those that names have at most.
const NAMES: usize = 26;

/// What a study could say of a file.
pub(crate) struct Proposal<'a> {
    path: String,
    /// Whether a study would have to say it.
    write_format: bool,
    profile: &'a TableProfile,
    label: &'a ColumnProfile,
    /// Other columns that could be the label, if it was guessed.
    other_labels: Option<Vec<&'a str>>,
    positive: String,
    positive_guessed: bool,
    /// Rows of the positive class.
    positives: usize,
}

/// What a study could do with a column.
enum Use<'a> {
    Numeric([f64; 2]),
    Categorical(&'a [(String, usize)]),
    /// Nothing, and why.
    None(String),
}

impl<'a> Proposal<'a> {
    pub(crate) fn new(
        path: &Path,
        profile: &'a TableProfile,
        typed: &InspectArgs,
    ) -> Result<Self, String> {
        let file = path.display();
        let (label, other_labels) =
            label::choose(profile, typed).map_err(|e| format!("{file}: {e}"))?;
        let class = label::choose_class(profile.format, label, typed.positive.as_deref());
        let (positive, positives) = class.map_err(|e| format!("{file}: {e}"))?;
        Ok(Self {
            path: file.to_string(),
            write_format: Format::of(path) != Some(profile.format),
            profile,
            label,
            other_labels,
            positive,
            positive_guessed: typed.positive.is_none(),
            positives,
        })
    }

    /// Why there is nothing to learn from, if so.
    pub(crate) fn no_features(&self) -> Option<String> {
        if self.profile.numbered.is_some() {
            return None;
        }
        let mut reasons = Vec::new();
        for column in self.features_of_profile() {
            match use_of(column) {
                Use::None(reason) => reasons.push(format!("{}: {reason}", short_key(column))),
                Use::Numeric(_) | Use::Categorical(_) => return None,
            }
        }
        let label = toml::excerpt(&self.label.name);
        Some(match reasons.is_empty() {
            true => format!(
                "{}: there is no column beside the label, {label}",
                self.path
            ),
            false => format!(
                "{}: no column beside the label, {label}, can be learnt from ({})",
                self.path,
                few(&reasons)
            ),
        })
    }

    /// The section, ready to stand in a study file.
    pub(crate) fn section(&self) -> String {
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
                let _ = writeln!(text, "label = {name}{}", self.how_the_label_was_found());
            }
        }
        let positive = toml::string(&self.positive);
        let _ = writeln!(
            text,
            "positive = {positive}{}",
            self.how_the_class_was_found()
        );
        let markers = self.markers();
        let found = if markers.is_empty() {
            "none was found"
        } else {
            "found in the rows"
        };
        let _ = writeln!(text, "missing = {} # {found}", toml::strings(markers));
        let _ = writeln!(text, "rows = \"unit\"\nintercept = true");
        if self.profile.numbered.is_none() {
            self.features(&mut text);
        }
        text
    }

    fn features(&self, text: &mut String) {
        let (mut numeric, mut categorical, mut unused) =
            (String::new(), String::new(), String::new());
        for column in self.features_of_profile() {
            let key = toml::key(&column.name);
            let missing = self.share_missing(column) + &self.slips(column);
            let _ = match use_of(column) {
                Use::Numeric(range) => {
                    let [low, high] = bounds::around(range).map(toml::number);
                    writeln!(
                        &mut numeric,
                        "{key} = [{low}, {high}] # from the rows{missing}"
                    )
                }
                Use::Categorical(values) => {
                    let values = toml::strings(values.iter().map(|(value, _)| value.as_str()));
                    writeln!(
                        &mut categorical,
                        "{key} = {values} # from the rows{missing}"
                    )
                }
                Use::None(reason) => writeln!(&mut unused, "# {}: {reason}", short_key(column)),
            };
        }
        let none = |list: &String| if list.is_empty() { " # none" } else { "" };
        let bins = match numeric.is_empty() {
            true => "",
            false => "# In place of bounds a column may have bins: { bins = [20, 40, 60] }\n",
        };
        let none_numeric = none(&numeric);
        let _ = writeln!(text, "\n[data.numeric]{none_numeric}\n{bins}{numeric}");
        let _ = writeln!(
            text,
            "[data.categorical]{}\n{categorical}",
            none(&categorical)
        );
        if !unused.is_empty() {
            let _ = writeln!(text, "# Left out:\n{unused}");
        }
    }

    /// The columns, for people.
    pub(crate) fn table(&self) -> String {
        let columns = &self.profile.columns;
        let names = columns.iter().map(|column| toml::width(&short_key(column)));
        let width = names.max().unwrap_or_default().min(NAMES);
        let row = |column: &ColumnProfile| {
            let is_label = std::ptr::eq(column, self.label);
            let (kind, values) = match use_of(column) {
                _ if is_label => ("label", some_of(column)),
                Use::Numeric([low, high]) => {
                    let range = [low, high].map(toml::number);
                    ("numeric", format!("{} to {}", range[0], range[1]))
                }
                Use::Categorical(_) => ("categorical", some_of(column)),
                Use::None(reason) => ("left out", reason),
            };
            let missing = percent(column.missing as f64 / self.profile.rows as f64);
            let name = toml::cut(&short_key(column), width);
            let values = toml::cut(&values, SHARED - width);
            vec![name, kind.to_owned(), values, missing]
        };
        let mut table = plain(&TextTable {
            caption: String::new(),
            folded: false,
            header: ["column", "use", "range or values", "missing"]
                .map(str::to_owned)
                .into(),
            rows: columns.iter().map(row).collect(),
        });
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

    /// What was found, for programs.
    pub(crate) fn json(&self) -> String {
        #[derive(Serialize)]
        struct Found<'a> {
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
        let found = Found {
            warning: WARNING.replace('\n', " "),
            path: &self.path,
            label: self.profile.numbered.is_none().then_some(&self.label.name),
            label_guessed: self.other_labels.is_some(),
            positive: &self.positive,
            positive_guessed: self.positive_guessed,
            positives: self.positives,
            profile: self.profile,
        };
        // Nothing in it is a map with keys other than strings, and all numbers are finite.
        serde_json::to_string_pretty(&found).unwrap_or_default() + "\n"
    }

    fn features_of_profile(&self) -> impl Iterator<Item = &'a ColumnProfile> {
        let label = self.label;
        let columns = self.profile.columns.iter();
        columns.filter(move |column| !std::ptr::eq(*column, label))
    }

    /// Those of the columns that the section names.
    fn markers(&self) -> Vec<&'static str> {
        let used = self.profile.columns.iter().filter(|column| {
            std::ptr::eq(*column, self.label) || !matches!(use_of(column), Use::None(_))
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
                format!("; {first} {place} {at} is no number: correct it, or list it under missing")
            }
            many => format!(
                "; {} values are no numbers, the first {first} {place} {at}: correct them, or list them under missing",
                thousands(*many)
            ),
        }
    }

    fn how_the_label_was_found(&self) -> String {
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

    fn how_the_class_was_found(&self) -> String {
        if !self.positive_guessed {
            return String::new();
        }
        let values = self.label.values.iter().flatten();
        let others = values.filter(|(value, _)| *value != self.positive);
        let others: Vec<String> = others.map(|(value, _)| toml::excerpt(value)).collect();
        format!(" # guessed; the other value is {}", others.join(", "))
    }
}

fn use_of(column: &ColumnProfile) -> Use<'_> {
    if let Some(obstacle) = &column.obstacle {
        return Use::None(obstacle.clone());
    }
    if is_long(&column.name) {
        return Use::None(format!("its name is longer than {LONGEST} characters"));
    }
    if column.looks_like_row_id {
        let reason = "whole numbers that seem never to repeat, probably an identifier";
        return Use::None(reason.into());
    }
    match (&column.values, column.range) {
        (Some(values), _) if values.is_empty() => Use::None("every value is missing".into()),
        (Some(values), _) if values.len() == 1 => Use::None("every value is the same".into()),
        // The same number, written in several ways.
        (_, Some([low, high])) if low == high => Use::None("every value is the same".into()),
        (_, Some(range)) => Use::Numeric(range),
        (Some(values), None) if values.iter().any(|(value, _)| is_long(value)) => {
            let reason = format!("text of more than {LONGEST} characters, hardly a category");
            Use::None(reason)
        }
        (Some(values), None) => Use::Categorical(values),
        (None, None) => {
            let reason = format!(
                "text with more than {MAX_VALUES} different values, probably an identifier"
            );
            Use::None(reason)
        }
    }
}

pub(crate) fn is_long(text: &str) -> bool {
    text.chars().nth(LONGEST).is_some()
}

/// A column's name for people.
fn short_key(column: &ColumnProfile) -> String {
    match is_long(&column.name) {
        true => toml::excerpt(&column.name),
        false => toml::key(&column.name),
    }
}

/// The most frequent values.
fn some_of(column: &ColumnProfile) -> String {
    let values = column.values.iter().flatten();
    few(&values
        .map(|(value, _)| toml::excerpt(value))
        .collect::<Vec<_>>())
}

/// The first of many.
pub(crate) fn few(names: &[String]) -> String {
    match names.len() {
        0..=SHOWN => names.join(", "),
        count => format!("{}, … ({count})", names[..SHOWN].join(", ")),
    }
}
