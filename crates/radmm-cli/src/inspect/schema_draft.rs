//! The draft of a `[data]` section, from the profile of a file.

use std::fmt::Write;
use std::io::{self, BufRead};
use std::path::Path;

use comfy_table::CellAlignment;
use radmm_data::{ColumnProfile, Format, MAX_VALUES, NonNumbers, TableProfile, date_of_days};
use radmm_study::number_format::{self, percent, thousands};
use serde::Serialize;

use crate::args::LabelledTable;
use crate::inspect::ask::{self, Answer, Answers};
use crate::inspect::binning::{NumericDraft, NumericEncoding};
use crate::inspect::column_roles::{ColumnRole, ColumnRoles, RARE_ROWS, USUAL_MARKERS, is_long};
use crate::inspect::{label_guess, toml_writer as toml};
use crate::output::tables;

/// The warning printed with everything that was read off the rows.
pub(super) const WARNING: &str = "bounds and vocabularies read off private rows are not public.
A study that uses them reveals facts about the rows outside its privacy guarantee.
Replace each by a value known without these rows: documentation, physiology, law, a code book.";

/// The number of items shown of a long list.
const MOST_ITEMS: usize = 6;

/// The terminal columns for names and values together: 80 minus the other columns and the gaps.
const NAME_AND_VALUE_COLUMNS: usize = 51;

/// The least number of rows of a party.
pub(super) const LEAST_PARTY_ROWS: usize = 10;

/// The most bins or splines of a column.
const MOST_BINS: u32 = 8;

/// The least bins or splines of a column.
const LEAST_BINS: u32 = 4;

/// The most encoded columns for which every numeric column gets the most bins.
const MOST_COLUMNS: usize = 400;

/// The share of the rarer class below which accuracy says little.
const RARE: f64 = 0.05;

/// The most terminal columns for names.
const MOST_NAME_COLUMNS: usize = 26;

/// The draft of a `[data]` section.
pub(crate) struct SchemaDraft<'a> {
    path: String,
    /// Whether the section must name the format, because the extension does not.
    write_format: bool,
    profile: &'a TableProfile,
    label: &'a ColumnProfile,
    roles: ColumnRoles<'a>,
    /// The other candidates for the label, if it was guessed.
    other_labels: Option<Vec<&'a str>>,
    positive: String,
    positive_guessed: bool,
    /// The number of rows of the positive class.
    positives: usize,
    /// The way in which numbers become columns.
    encoding: NumericEncoding,
    /// The column that tells whose a row is, which is not learnt from.
    split_by: Option<&'a ColumnProfile>,
    /// The public bounds and vocabularies that somebody gave.
    answers: Answers,
}

impl<'a> SchemaDraft<'a> {
    pub(super) fn new(
        path: &Path,
        profile: &'a TableProfile,
        args: &LabelledTable,
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
            roles: ColumnRoles::new(profile, label),
            other_labels,
            positive,
            positive_guessed: args.positive.is_none(),
            positives,
            encoding: args.numeric.unwrap_or(NumericEncoding::Splines),
            split_by: None,
            answers: Answers::new(),
        })
    }

    /// Returns the draft for a pure total, which pays for every non-zero of a row: bins, unless something else was asked for.
    pub(crate) fn for_pure_total(self, args: &LabelledTable) -> Self {
        Self {
            encoding: args.numeric.unwrap_or(NumericEncoding::Bins),
            ..self
        }
    }

    /// Returns the draft in which a column tells whose a row is.
    pub(crate) fn split_by(self, name: &str) -> Result<Self, String> {
        let found = self
            .profile
            .columns
            .iter()
            .find(|column| column.name == name);
        let file = &self.path;
        let column = found.ok_or_else(|| {
            let names: Vec<String> = self.profile.columns.iter().map(short_name).collect();
            format!(
                "{file}: there is no column {}; the columns are {}",
                toml::string(name),
                first_few(&names)
            )
        })?;
        if std::ptr::eq(column, self.label) {
            return Err(format!(
                "{file}: {} is the label, and cannot tell whose a row is",
                toml::string(name)
            ));
        }
        let smallest = column.values.iter().flatten().min_by_key(|(_, rows)| *rows);
        if let Some((value, rows)) = smallest.filter(|(_, rows)| *rows < LEAST_PARTY_ROWS) {
            return Err(format!(
                "{file}: a party needs at least {LEAST_PARTY_ROWS} rows, and {rows} have {} in column {}; choose another column",
                toml::excerpt(value),
                toml::string(name)
            ));
        }
        match column.values.as_ref().map(Vec::len) {
            Some(0 | 1) => Err(format!(
                "{file}: all rows have the same value in column {}: it tells nothing about parties",
                toml::string(name)
            )),
            Some(_) => Ok(Self {
                split_by: Some(column),
                ..self
            }),
            None => Err(format!(
                "{file}: column {} has more than {MAX_VALUES} values, too many for parties",
                toml::string(name)
            )),
        }
    }

    /// Returns the values of the column that tells whose a row is.
    pub(crate) fn split_values(&self) -> Vec<String> {
        let values = self.split_by.and_then(|column| column.values.as_ref());
        let values = values.into_iter().flatten();
        values.map(|(value, _)| value.clone()).collect()
    }

    /// Asks what is public about the columns.
    pub(crate) fn ask(&mut self, input: impl BufRead, output: impl io::Write) -> io::Result<()> {
        self.answers = ask::ask(self, input, output)?;
        Ok(())
    }

    /// Returns the warning and the table of columns.
    pub(crate) fn findings(&self) -> String {
        let asked = self
            .features()
            .all(|(column, _)| self.answers.contains_key(&column.name));
        match asked {
            true => self.table(),
            false => format!("warning: {WARNING}\n\n{}", self.table()),
        }
    }

    /// Returns the reason why no column can be learnt from, if there is none.
    pub(super) fn no_features(&self) -> Option<String> {
        if self.profile.numbered.is_some() {
            return None;
        }
        let mut reasons = Vec::new();
        for (index, column) in self.feature_columns() {
            match self.roles.role(index) {
                ColumnRole::Unusable(reason) => {
                    reasons.push(format!("{}: {reason}", short_name(column)))
                }
                ColumnRole::Numeric(_) | ColumnRole::Dates(_) | ColumnRole::Categorical(_) => {
                    return None;
                }
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

    /// Formats the comment at the top of a study file.
    pub(super) fn header(&self) -> String {
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
            "#\n# {} rows, {share} of them positive",
            thousands(rows)
        );
        text
    }

    /// Formats the section for a study file, in which the rows have this path.
    pub(super) fn section(&self, path: &Path) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "[data]\npath = {} # relative to the study file",
            toml::string(&path.display().to_string())
        );
        if self.write_format {
            let _ = writeln!(
                text,
                "format = {}",
                toml::string(self.profile.format.name())
            );
        }
        if let Some(separator) = self.profile.separator {
            let _ = writeln!(text, "separator = {}", toml::string(separator.text()));
        }
        if let Some(decimal) = self.profile.decimal {
            let _ = writeln!(text, "decimal = {}", toml::string(decimal.text()));
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
        let markers = self.roles.markers();
        let source = match markers.iter().all(|marker| USUAL_MARKERS.contains(marker)) {
            true => "",
            false => " # all but \"\" and \"?\" from the rows",
        };
        let _ = writeln!(
            text,
            "missing = {}{source}",
            toml::strings(markers.iter().copied())
        );
        let _ = writeln!(text, "rows = \"unit\"\nintercept = {}", self.intercept());
        if self.profile.numbered.is_none() {
            self.write_features(&mut text);
        }
        text
    }

    fn write_features(&self, text: &mut String) {
        let (mut numeric, mut categorical, mut unused) =
            (String::new(), String::new(), String::new());
        let bins = self.bin_count();
        for (index, column) in self.feature_columns() {
            let key = toml::key(&column.name);
            let missing = self.share_missing(column) + &self.slips(column);
            let answer = self.answers.get(&column.name);
            let source = match answer {
                Some(Answer::Bounds(_) | Answer::Values(_)) => "public",
                _ => "from the rows",
            };
            let rare = match answer {
                Some(Answer::Values(_)) => String::new(),
                _ => self.rare_values(column, index),
            };
            if answer == Some(&Answer::LeaveOut) {
                let _ = writeln!(&mut unused, "# {}: left out", short_name(column));
                continue;
            }
            let others = match answer {
                Some(Answer::Values(public)) => self.has_values_beyond(column, public),
                _ => self.roles.has_others(index),
            };
            let keys = match (others, self.roles.may_be_missing(index)) {
                (true, _) => ", missing = \"category\", other = \"missing\"",
                (false, true) => ", missing = \"category\"",
                (false, false) => "",
            };
            let _ = match self.roles.role(index) {
                ColumnRole::Numeric(range) => {
                    let mut draft = NumericDraft::new(column, *range, self.encoding);
                    if let Some(Answer::Bounds(bounds)) = answer {
                        draft = draft.within(*bounds);
                    }
                    let draft = draft.toml(self.encoding, bins, keys);
                    writeln!(&mut numeric, "{key} = {draft} # {source}{missing}")
                }
                ColumnRole::Dates(found) => {
                    let (days, are_public) = match answer {
                        Some(Answer::Bounds(bounds)) => (*bounds, true),
                        _ => (*found, false),
                    };
                    let draft = NumericDraft::dates(days, are_public, self.encoding, bins, keys);
                    writeln!(&mut numeric, "{key} = {draft} # {source}{missing}")
                }
                ColumnRole::Categorical(values) => {
                    let values = match answer {
                        Some(Answer::Values(values)) => {
                            toml::strings(values.iter().map(String::as_str))
                        }
                        _ => toml::strings(values.iter().copied()),
                    };
                    let values = match keys {
                        "" => values,
                        keys => format!("{{ values = {values}{keys} }}"),
                    };
                    writeln!(
                        &mut categorical,
                        "{key} = {values} # {source}{rare}{missing}"
                    )
                }
                ColumnRole::Unusable(reason) => {
                    writeln!(&mut unused, "# {}: {reason}", short_name(column))
                }
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
        let row = |(index, column): (usize, &ColumnProfile)| {
            let is_label = std::ptr::eq(column, self.label);
            let (kind, values) = match self.roles.role(index) {
                _ if is_label => ("label", frequent_values(column)),
                ColumnRole::Numeric([low, high]) => {
                    let range = [*low, *high].map(toml::number);
                    ("numeric", format!("{} to {}", range[0], range[1]))
                }
                ColumnRole::Dates(days) => {
                    let range = days.map(date_of_days);
                    ("dates", format!("{} to {}", range[0], range[1]))
                }
                ColumnRole::Categorical(_) => ("categorical", frequent_values(column)),
                ColumnRole::Unusable(reason) => ("unused", reason.clone()),
            };
            let missing = percent(column.missing as f64 / self.profile.rows as f64);
            let name = toml::cut(&short_name(column), width);
            let values = toml::cut(&values, NAME_AND_VALUE_COLUMNS - width);
            vec![name, kind.to_owned(), values, missing]
        };
        let header = ["column", "use", "range or values", "missing"];
        let mut table = tables::grid(&header, columns.iter().enumerate().map(row));
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

    /// Returns the columns that may be learnt from, with their indices.
    fn feature_columns(&self) -> impl Iterator<Item = (usize, &'a ColumnProfile)> {
        let (label, split_by) = (self.label, self.split_by);
        let columns = self.profile.columns.iter().enumerate();
        columns.filter(move |(_, column)| {
            !std::ptr::eq(*column, label)
                && split_by.is_none_or(|split_by| !std::ptr::eq(*column, split_by))
        })
    }

    /// Returns the columns that are learnt from, with their indices and roles.
    fn used_columns(&self) -> impl Iterator<Item = (usize, &'a ColumnProfile, &ColumnRole<'a>)> {
        let columns = self.feature_columns();
        let columns = columns.map(|(index, column)| (index, column, self.roles.role(index)));
        columns.filter(|(_, _, role)| !matches!(role, ColumnRole::Unusable(_)))
    }

    /// Returns the columns that are learnt from.
    pub(super) fn features(&self) -> impl Iterator<Item = (&'a ColumnProfile, &ColumnRole<'a>)> {
        self.used_columns().map(|(_, column, role)| (column, role))
    }

    /// Returns whether a constant column is needed: one-hot columns add up to one.
    fn intercept(&self) -> bool {
        let one_hot = |role: &ColumnRole<'_>| match role {
            ColumnRole::Numeric(_) | ColumnRole::Dates(_) => {
                self.encoding != NumericEncoding::Centred
            }
            ColumnRole::Categorical(_) => true,
            ColumnRole::Unusable(_) => false,
        };
        !self.features().any(|(_, role)| one_hot(role))
    }

    /// Returns the number of encoded columns with so many bins.
    fn width(&self, bins: u32) -> usize {
        let width = |(index, column, role): (usize, &ColumnProfile, &ColumnRole<'_>)| {
            let values = match role {
                ColumnRole::Numeric(range) => {
                    NumericDraft::new(column, *range, self.encoding).width(bins)
                }
                ColumnRole::Dates(_) if self.encoding == NumericEncoding::Centred => 1,
                ColumnRole::Dates(_) => bins as usize,
                ColumnRole::Categorical(values) => values.len(),
                ColumnRole::Unusable(_) => 0,
            };
            values + usize::from(self.roles.may_be_missing(index))
        };
        self.used_columns().map(width).sum::<usize>() + usize::from(self.intercept())
    }

    /// Returns the number of bins or splines of a column: eight, or fewer where columns are many, since noise grows with them.
    fn bin_count(&self) -> u32 {
        let fits = |bins: &u32| self.width(*bins) <= MOST_COLUMNS;
        (LEAST_BINS..=MOST_BINS)
            .rev()
            .find(fits)
            .unwrap_or(LEAST_BINS)
    }

    /// Returns remarks on what the rows are like, one sentence each.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let rows = self.profile.rows;
        let share = |count: usize| percent(count as f64 / rows as f64);
        let mut remarks = Vec::new();
        if self.profile.numbered.is_some() {
            return remarks;
        }
        let used: Vec<usize> = self.used_columns().map(|(index, _, _)| index).collect();
        let incomplete = self.profile.missing_patterns.incomplete(&used);
        if incomplete > 0 {
            remarks.push(format!(
                "{} of {} rows are complete; the others are kept, and a missing value is a category of its own",
                thousands(rows - incomplete),
                thousands(rows)
            ));
        }
        if self.label.missing > 0 {
            remarks.push(format!(
                "{} rows have no label and are dropped",
                thousands(self.label.missing)
            ));
        }
        for (index, column) in self.feature_columns() {
            let name = short_name(column);
            match self.roles.role(index) {
                ColumnRole::Unusable(reason) => {
                    remarks.push(format!("{name} is left out: {reason}"));
                    continue;
                }
                _ if 2 * column.missing >= rows => remarks.push(format!(
                    "{name}: {} of the values are missing; leave it out if whether it is missing is not known beforehand",
                    share(column.missing)
                )),
                _ => {}
            }
            if let Some(NonNumbers {
                count,
                first,
                file,
                at,
                ..
            }) = &column.non_numbers
            {
                let file = file.as_ref().map(|file| format!(" of {file}"));
                remarks.push(format!(
                    "{name}: {}, the first {} {} {at}{}; such values count as missing",
                    number_format::count(*count, "value is not a number", "values are not numbers"),
                    toml::string(first),
                    self.place(),
                    file.unwrap_or_default()
                ));
            }
        }
        let others = self
            .label
            .values
            .iter()
            .flatten()
            .filter(|(value, _)| *value != self.positive);
        let others: Vec<String> = others.map(|(value, _)| toml::excerpt(value)).collect();
        if others.len() > 1 {
            remarks.push(format!(
                "every label but {} counts as negative: {}",
                toml::excerpt(&self.positive),
                first_few(&others)
            ));
        }
        let labelled = rows - self.label.missing;
        let rarer = self.positives.min(labelled - self.positives);
        if (rarer as f64) < RARE * labelled as f64 {
            remarks.push(format!(
                "only {} of the rows are of the rarer class: accuracy will say little, look at the AUC",
                percent(rarer as f64 / labelled as f64)
            ));
        }
        remarks
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
        // Privacy: the draft is for others, too; the values themselves and their rows are told on the terminal alone.
        let Some(NonNumbers { count, .. }) = &column.non_numbers else {
            return String::new();
        };
        let found = number_format::count(*count, "value is not a number", "values are not numbers");
        format!("; {found}; counted as missing: correct it in the rows if that is wrong")
    }

    /// Returns whether a column has values that mean something and are not in a vocabulary.
    fn has_values_beyond(&self, column: &ColumnProfile, vocabulary: &[String]) -> bool {
        let mut values = column.values.iter().flatten().map(|(value, _)| value);
        values.any(|value| {
            !vocabulary.contains(value) && !self.roles.markers().contains(&value.as_str())
        })
    }

    /// Returns a note on the categories that only few rows have, as the end of a comment.
    fn rare_values(&self, column: &ColumnProfile, index: usize) -> String {
        let ColumnRole::Categorical(written) = self.roles.role(index) else {
            return String::new();
        };
        let counts = column.values.iter().flatten();
        let rare = counts.filter(|(value, rows)| {
            *rows < RARE_ROWS && !self.roles.markers().contains(&value.as_str())
        });
        let is_written = |value: &str| written.contains(&value);
        let (kept, left_out): (Vec<_>, Vec<_>) = rare.partition(|(value, _)| is_written(value));
        match (kept.len(), left_out.len()) {
            (0, 0) => String::new(),
            (0, 1) => format!(", without one value from fewer than {RARE_ROWS} of them"),
            (0, many) => {
                format!(", without {many} values from fewer than {RARE_ROWS} of them each")
            }
            (1, _) => format!(", one value from fewer than {RARE_ROWS} of them: is it public?"),
            (many, _) => {
                format!(
                    ", {many} values from fewer than {RARE_ROWS} of them each: are they public?"
                )
            }
        }
    }

    fn place(&self) -> &'static str {
        match self.profile.format {
            Format::Parquet => "in row",
            Format::Csv | Format::Libsvm => "on line",
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
