//! A `[data]` section drafted from what stands in a file.

use std::fmt::Write;
use std::path::Path;

use comfy_table::CellAlignment;
use radmm_data::{ColumnProfile, Format, MOST_VALUES, Profile};
use serde::Serialize;

use crate::args::InspectArgs;
use crate::bounds;
use crate::render::{percent, plain, thousands};
use crate::toml;

/// Said to whoever sees what was read off the rows.
pub(crate) const WARNING: &str = "bounds and vocabularies read off private rows are not public.
A study that uses them tells facts about the rows outside of its privacy guarantee.
Replace every one by what is known without these rows: documentation, physiology, law, a code book.";

/// What the outcome is often called.
const OUTCOMES: [&str; 6] = ["label", "target", "outcome", "income", "class", "y"];

/// How the positive class is often written, in lower case.
const POSITIVES: [&str; 9] = ["1", "+1", "1.0", "yes", "y", "true", "t", "positive", "pos"];

/// Values that are shown of a long list.
const SHOWN: usize = 6;

/// What a study could say of a file.
pub(crate) struct Proposal<'a> {
    path: String,
    /// Whether a study would have to say it.
    write_format: bool,
    profile: &'a Profile,
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
        profile: &'a Profile,
        typed: &InspectArgs,
    ) -> Result<Self, String> {
        let file = path.display();
        let (label, other_labels) =
            choose_label(profile, typed).map_err(|e| format!("{file}: {e}"))?;
        let class = choose_class(profile.format, label, typed.positive.as_deref());
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
            let missing = self.share_missing(column);
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
                Use::None(reason) => writeln!(&mut unused, "# {key}: {reason}"),
            };
        }
        let none = |list: &String| if list.is_empty() { " # none" } else { "" };
        let _ = writeln!(text, "\n[data.numeric]{}\n{numeric}", none(&numeric));
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
        let mut table = plain(&["column", "use", "range or values", "missing"]);
        for column in table.column_iter_mut().skip(1).take(2) {
            column.set_cell_alignment(CellAlignment::Left);
        }
        for column in &self.profile.columns {
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
            table.add_row(vec![
                toml::key(&column.name),
                kind.to_owned(),
                values,
                missing,
            ]);
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
            profile: &'a Profile,
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

    fn how_the_label_was_found(&self) -> String {
        match &self.other_labels {
            None => String::new(),
            Some(others) if others.is_empty() => {
                " # guessed: the only column with two values".into()
            }
            Some(others) => {
                let others: Vec<String> = others.iter().map(|name| toml::string(name)).collect();
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
        let others: Vec<String> = others.map(|(value, _)| toml::string(value)).collect();
        format!(" # guessed; the other value is {}", others.join(", "))
    }
}

/// The label, and if it was guessed, the other columns that could be it.
fn choose_label<'a>(
    profile: &'a Profile,
    typed: &InspectArgs,
) -> Result<(&'a ColumnProfile, Option<Vec<&'a str>>), String> {
    if profile.numbered.is_some() {
        return match &typed.label {
            Some(_) => Err("a LIBSVM file does not name its label; remove --label".into()),
            None => Ok((&profile.columns[0], None)),
        };
    }
    if let Some(name) = &typed.label {
        let mut named = profile.columns.iter().filter(|column| column.name == *name);
        let Some(column) = named.next() else {
            let names: Vec<String> = profile
                .columns
                .iter()
                .map(|c| toml::string(&c.name))
                .collect();
            let name = toml::string(name);
            return Err(format!(
                "there is no column {name}; the columns are {}",
                few(&names)
            ));
        };
        return match &column.obstacle {
            Some(obstacle) => Err(format!("column {} {obstacle}", toml::string(name))),
            None => Ok((column, None)),
        };
    }
    let wanted = typed.positive.as_deref();
    let candidates: Vec<&ColumnProfile> = profile
        .columns
        .iter()
        .filter(|column| column.obstacle.is_none())
        .filter(|column| {
            column
                .values
                .as_ref()
                .is_some_and(|values| values.len() == 2)
        })
        .filter(|column| {
            let mut values = column.values.iter().flatten();
            wanted.is_none_or(|wanted| values.any(|(value, _)| value == wanted))
        })
        .collect();
    let usual = |column: &&&ColumnProfile| {
        let name = column.name.to_lowercase();
        OUTCOMES.contains(&name.as_str())
    };
    let chosen = candidates.iter().rfind(usual).or(candidates.last());
    let chosen = *chosen.ok_or_else(|| match wanted {
        Some(value) => format!("no column has two values, one of them {}; name the outcome with --label", toml::string(value)),
        None => "no column has two values; name the outcome with --label and its positive class with --positive".into(),
    })?;
    let others = candidates
        .iter()
        .filter(|column| !std::ptr::eq(**column, chosen));
    Ok((
        chosen,
        Some(others.map(|column| column.name.as_str()).collect()),
    ))
}

/// The positive class, and how many rows are in it.
fn choose_class(
    format: Format,
    label: &ColumnProfile,
    typed: Option<&str>,
) -> Result<(String, usize), String> {
    let (name, advice) = match format {
        Format::Libsvm => ("the label".to_owned(), ""),
        Format::Csv | Format::Parquet => {
            let name = format!("column {}", toml::string(&label.name));
            (name, "; name another with --label")
        }
    };
    let Some(values) = &label.values else {
        return Err(format!(
            "{name} has more than {MOST_VALUES} values: they are no classes{advice}"
        ));
    };
    let shown: Vec<String> = values
        .iter()
        .map(|(value, _)| toml::string(value))
        .collect();
    if values.len() < 2 {
        return Err(format!(
            "{name} has fewer than two values: there is nothing to learn{advice}"
        ));
    }
    if let Some(typed) = typed {
        let number = |text: &str| {
            text.parse::<f64>()
                .ok()
                .filter(|_| format == Format::Libsvm)
        };
        let same = |value: &str| {
            value == typed || (number(value).is_some() && number(value) == number(typed))
        };
        let rows = values
            .iter()
            .filter(|(value, _)| same(value))
            .map(|(_, rows)| rows)
            .sum();
        return match rows {
            0 => Err(format!(
                "no row has {} in {name}; its values are {}",
                toml::string(typed),
                few(&shown)
            )),
            rows if rows == values.iter().map(|(_, rows)| rows).sum::<usize>() => Err(format!(
                "every row has {} in {name}: there is nothing to learn",
                toml::string(typed)
            )),
            rows => Ok((typed.to_owned(), rows)),
        };
    }
    let [_, rarer] = &values[..] else {
        return Err(format!(
            "{name} has {} values: {}; say which is positive with --positive",
            values.len(),
            few(&shown)
        ));
    };
    let usual = |(value, _): &&(String, usize)| POSITIVES.contains(&value.to_lowercase().as_str());
    let chosen = values.iter().find(usual).unwrap_or(rarer);
    Ok(chosen.clone())
}

fn use_of(column: &ColumnProfile) -> Use<'_> {
    if let Some(obstacle) = &column.obstacle {
        return Use::None(obstacle.clone());
    }
    match (&column.values, column.range) {
        (Some(values), _) if values.is_empty() => Use::None("every value is missing".into()),
        (Some(values), _) if values.len() == 1 => Use::None("every value is the same".into()),
        // The same number, written in several ways.
        (_, Some([low, high])) if low == high => Use::None("every value is the same".into()),
        (_, Some(range)) => Use::Numeric(range),
        (Some(values), None) => Use::Categorical(values),
        (None, None) => {
            let reason = format!(
                "text with more than {MOST_VALUES} different values, probably an identifier"
            );
            Use::None(reason)
        }
    }
}

/// The most frequent values.
fn some_of(column: &ColumnProfile) -> String {
    let values = column.values.iter().flatten();
    few(&values
        .map(|(value, _)| toml::string(value))
        .collect::<Vec<_>>())
}

fn few(names: &[String]) -> String {
    match names.len() {
        0..=SHOWN => names.join(", "),
        count => format!("{}, … ({count})", names[..SHOWN].join(", ")),
    }
}
