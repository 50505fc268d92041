//! Why a table cannot be taken.
//!
//! Privacy: these errors quote names and fields of the file. They are for the eyes of the party that owns it and must
//! not be sent to another.

use std::fmt;
use std::io;

use radmm::private::RowError;
use thiserror::Error;

use crate::holdout::HoldoutProblem;
use crate::problem::{ColumnProblem, FormatProblem, LineProblem};

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of text as an editor counts it, from 1.
    Line(u64),
    /// A row of a file that has no lines, from 1.
    Row(u64),
    /// Among the names of the columns of a file that has no lines.
    Columns,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, ":{line}"),
            Self::Row(row) => write!(f, ": row {row}"),
            Self::Columns => Ok(()),
        }
    }
}

/// Why a table cannot be taken: the file, the line as an editor counts it, the cause and the cure.
#[derive(Debug, Error)]
pub enum DataError {
    /// The source failed, or is not text.
    #[error("cannot read {file}: {cause}")]
    Read {
        /// As given by the caller.
        file: String,
        /// What the source said.
        cause: io::Error,
    },
    /// Not even a header.
    #[error("{file} is empty: its first line must name the columns")]
    Empty {
        /// As given by the caller.
        file: String,
    },
    /// A table without names.
    #[error(
        "{file} begins with numbers and not with names; put a line above that names the columns"
    )]
    NoHeader {
        /// As given by the caller.
        file: String,
    },
    /// A header of one name that looks like several.
    #[error(
        "{file}{place}: the fields seem to be separated by {separator}; save the file with commas"
    )]
    Separator {
        /// As given by the caller.
        file: String,
        /// Where the header stands.
        place: Place,
        /// Semicolons or tabs.
        separator: &'static str,
    },
    /// A header and nothing below it.
    #[error("{file} has a header and no rows")]
    NoRows {
        /// As given by the caller.
        file: String,
    },
    /// A name in the header cannot be read.
    #[error("{file}:{line}: the name of column {number} is not UTF-8; save the file as UTF-8")]
    HeaderNotUtf8 {
        /// As given by the caller.
        file: String,
        /// Where the header stands.
        line: u64,
        /// Of the column, from 1.
        number: usize,
    },
    /// A used column that the header names more than once.
    #[error(
        "{file}{place}: the header names column {column:?} more than once; rename or remove all but one"
    )]
    DuplicateColumn {
        /// As given by the caller.
        file: String,
        /// Where the header stands.
        place: Place,
        /// The name.
        column: String,
    },
    /// A column that the study names and the header does not.
    #[error(
        "{file}{place}: there is no column {column:?}{}; the header has {}{}",
        did_you_mean(nearest),
        list(header),
        other_separator(header)
    )]
    NoSuchColumn {
        /// As given by the caller.
        file: String,
        /// Where the header stands.
        place: Place,
        /// The name in the study.
        column: String,
        /// The column that was probably meant.
        nearest: Option<String>,
        /// The first few names of the header.
        header: Vec<String>,
    },
    /// A row with more or fewer fields than the header.
    #[error(
        "{file}:{line}: expected {expected} fields as in the header, got {got}; look for a stray comma or quote"
    )]
    WrongWidth {
        /// As given by the caller.
        file: String,
        /// Where the row begins.
        line: u64,
        /// Names in the header.
        expected: usize,
        /// Fields in the row.
        got: usize,
    },
    /// Taken as it is, the rest of the file would be one field.
    #[error("{file}:{line}: a quote is opened in this row and never closed")]
    OpenQuote {
        /// As given by the caller.
        file: String,
        /// Where the row begins.
        line: u64,
    },
    /// A field that does not fit its column.
    #[error("{file}{place}: column {column:?}: {problem}")]
    Field {
        /// As given by the caller.
        file: String,
        /// Where the row begins.
        place: Place,
        /// The column's name.
        column: String,
        /// What is wrong with it.
        problem: FieldProblem,
    },
    /// A line of a LIBSVM file that is not a label and pairs.
    #[error("{file}:{line}: {problem}")]
    Line {
        /// As given by the caller.
        file: String,
        /// Which one.
        line: u64,
        /// What is wrong with it.
        problem: LineProblem,
    },
    /// A LIBSVM file without a line that says something.
    #[error(
        "{file} has no rows: a row is a line such as +1 3:0.5 17:1, its label and index:value pairs"
    )]
    NoLines {
        /// As given by the caller.
        file: String,
    },
    /// A Parquet file that is none, or a damaged one.
    #[error("cannot read {file} as Parquet: {cause}; is it complete, and a Parquet file?")]
    Parquet {
        /// As given by the caller.
        file: String,
        /// What the decoder said.
        cause: String,
    },
    /// A column of a Parquet file of which nothing can be made.
    #[error("{file}: column {column:?} {problem}")]
    Column {
        /// As given by the caller.
        file: String,
        /// The column's name.
        column: String,
        /// Why not.
        problem: ColumnProblem,
    },
    /// A schema of named columns for a file of numbered ones, or the other way round.
    #[error("{file}: {problem}")]
    Format {
        /// As given by the caller.
        file: String,
        /// What does not go together.
        problem: FormatProblem,
    },
    /// No row is left.
    #[error(
        "{file}: all {read} rows were dropped: each has a missing value in a column that the study uses"
    )]
    AllDropped {
        /// As given by the caller.
        file: String,
        /// How many there were.
        read: usize,
    },
    /// The positive class does not occur.
    #[error(
        "{file}: column {column:?}: no row is positive, that is {positive:?}: the values are {}; correct positive in the study",
        list(seen)
    )]
    OnlyNegative {
        /// As given by the caller.
        file: String,
        /// The label's column.
        column: String,
        /// The value that never occurs.
        positive: String,
        /// The first few that do.
        seen: Vec<String>,
    },
    /// The negative class does not occur.
    #[error(
        "{file}: column {column:?}: every row is positive, that is {positive:?}; rows of both classes are needed"
    )]
    OnlyPositive {
        /// As given by the caller.
        file: String,
        /// The label's column.
        column: String,
        /// The only value that occurs.
        positive: String,
    },
    /// The rows do not go round.
    #[error("{file}: {problem}")]
    Split {
        /// As given by the caller.
        file: String,
        /// Why not.
        problem: SplitProblem,
    },
    /// Held-out rows leave nothing to train on, or nothing is held out.
    #[error("{file}: {problem}")]
    Holdout {
        /// As given by the caller.
        file: String,
        /// Why not.
        problem: HoldoutProblem,
    },
    /// The schema's bounds are not those of numbers.
    #[error("{file}: a row cannot be taken: {cause}; are the bounds in the study finite?")]
    Row {
        /// As given by the caller.
        file: String,
        /// What the shard said.
        cause: RowError,
    },
}

/// Why a field does not fit its column. Long fields are cut.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FieldProblem {
    /// Bytes that are not text.
    #[error("the field is not UTF-8; save the file as UTF-8")]
    NotUtf8,
    /// In a numeric column.
    #[error("{value:?} is not a number; correct it, or list it under missing to drop such rows")]
    NotANumber {
        /// The field.
        value: String,
    },
    /// NaN, an infinity, or a number beyond `f64`.
    #[error(
        "{value:?} is not a finite number; correct it, or list it under missing to drop such rows"
    )]
    NotFinite {
        /// The field.
        value: String,
    },
    /// Outside the vocabulary.
    #[error(
        "{value:?} is not among the known values {}; add it to them, or list it under missing to drop such rows",
        list(known)
    )]
    UnknownCategory {
        /// The field.
        value: String,
        /// The first few of the vocabulary.
        known: Vec<String>,
    },
    /// Outside the vocabulary of a model.
    #[error(
        "{value:?} is not among the values that the model knows, {}; correct it, or remove the row",
        list(known)
    )]
    NotLearnt {
        /// The field.
        value: String,
        /// The first few of the vocabulary.
        known: Vec<String>,
    },
    /// Outside the values of a column split.
    #[error(
        "{value:?} belongs to no node: the nodes are {}; add one for it, or list it under missing to drop such rows",
        list(known)
    )]
    UnknownNode {
        /// The field.
        value: String,
        /// The first few values that have a node.
        known: Vec<String>,
    },
}

/// Why rows do not go round the nodes.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SplitProblem {
    /// Rows must go somewhere.
    #[error("there are no nodes to give rows to")]
    NoNodes,
    /// Every node needs a row.
    #[error(
        "{rows} rows (without those dropped) are too few for {nodes} nodes; lower [network] nodes"
    )]
    TooFewRows {
        /// Rows kept.
        rows: usize,
        /// Nodes to give them to.
        nodes: usize,
    },
    /// A column split must name one value a node.
    #[error(
        "the split by column {column:?} has {values} values for {nodes} nodes; name one value a node"
    )]
    WrongValues {
        /// The column of the split.
        column: String,
        /// Values named.
        values: usize,
        /// Nodes to name.
        nodes: usize,
    },
    /// Two nodes after the same value.
    #[error("the split by column {column:?} names {value:?} twice; name each value once")]
    RepeatedValue {
        /// The column of the split.
        column: String,
        /// The value.
        value: String,
    },
    /// A value of a column split that no kept row has.
    #[error(
        "node {node} is left without rows: no row has {value:?} in column {column:?}; correct the value or remove the node"
    )]
    NoRowsWithValue {
        /// Its number, from 0.
        node: usize,
        /// The column of the split.
        column: String,
        /// The node's value.
        value: String,
    },
    /// An unlucky draw.
    #[error("node {node} is left without rows at alpha = {alpha}; raise alpha or change the seed")]
    NoRowsDrawn {
        /// Its number, from 0.
        node: usize,
        /// Of the Dirichlet distribution.
        alpha: f64,
    },
    /// A split by sizes must have one a node.
    #[error("there are {sizes} sizes for {nodes} nodes; give each node one")]
    WrongSizes {
        /// Sizes given.
        sizes: usize,
        /// Nodes to give them to.
        nodes: usize,
    },
    /// Not a proportion.
    #[error("the size {size} is not a positive finite number")]
    Size {
        /// As in the study.
        size: f64,
    },
    /// Too small a proportion.
    #[error(
        "node {node} is left without rows: its size, {size}, is a share of less than one of {rows} rows; raise it"
    )]
    NoRowsForSize {
        /// Its number, from 0.
        node: usize,
        /// As in the study.
        size: f64,
        /// Rows kept, of all nodes.
        rows: usize,
    },
    /// Not a parameter of a Dirichlet distribution.
    #[error("alpha = {alpha} is not a positive finite number")]
    Alpha {
        /// As in the study.
        alpha: f64,
    },
}

/// How many names are kept of a long list: one more than are shown, so that [`list`] knows that it is long.
pub(crate) const FEW: usize = 9;

/// How many characters are shown of a long field: an error must not carry half a file.
const WIDTH: usize = 40;

/// The beginning of a field.
pub(crate) fn excerpt(field: &str) -> String {
    match field.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &field[..end]),
        None => field.to_owned(),
    }
}

/// The first few names.
pub(crate) fn first_few<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    names.into_iter().take(FEW).map(excerpt).collect()
}

/// Adds a value of the label to the first few, and tells its place among them; `None` if it is not one of them.
pub(crate) fn add_label(labels: &mut Vec<String>, label: &str) -> Option<usize> {
    let place = labels.iter().position(|seen| seen == label);
    if place.is_none() && labels.len() < FEW {
        labels.push(excerpt(label));
        return Some(labels.len() - 1);
    }
    place
}

/// The header's name that `wanted` was probably meant to be: the least edits away, case aside, if that is no more than
/// a third of its letters.
pub(crate) fn nearest<'a>(wanted: &str, header: impl Iterator<Item = &'a str>) -> Option<String> {
    let folded = |name: &str| name.trim().to_lowercase().chars().collect::<Vec<_>>();
    let wanted = folded(wanted);
    header
        .filter(|name| name.chars().count() <= WIDTH)
        .map(|name| (edits(&wanted, &folded(name)), name))
        .filter(|(distance, _)| *distance <= wanted.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name.to_owned())
}

/// Levenshtein distance, one row of its table at a time.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// What else than commas seems to separate the names of a header. Spreadsheets of half the world write semicolons.
pub(crate) fn separator(header: &[String]) -> Option<&'static str> {
    match header {
        [only] if only.contains(';') => Some("semicolons"),
        [only] if only.contains('\t') => Some("tabs"),
        _ => None,
    }
}

fn other_separator(header: &[String]) -> String {
    match separator(header) {
        Some(by) => format!("; the fields seem to be separated by {by}, save the file with commas"),
        None => String::new(),
    }
}

fn did_you_mean(nearest: &Option<String>) -> String {
    match nearest {
        Some(name) => format!(" (did you mean {name:?}?)"),
        None => String::new(),
    }
}

fn list(names: &[String]) -> String {
    let shown = names.iter().take(FEW - 1).map(|name| format!("{name:?}"));
    let shown: Vec<_> = shown.collect();
    let more = if names.len() < FEW { "" } else { ", …" };
    shown.join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_insertions_deletions_and_replacements() {
        let distance = |a: &str, b: &str| {
            let letters = |s: &str| s.chars().collect::<Vec<_>>();
            edits(&letters(a), &letters(b))
        };
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("flaw", "lawn"), 2);
    }

    #[test]
    fn the_nearest_name_is_near_or_none() {
        let near = |wanted| nearest(wanted, ["age", "smoker", "systolic"].into_iter());
        assert_eq!(near("Age").as_deref(), Some("age"));
        assert_eq!(near("smokes").as_deref(), Some("smoker"));
        assert_eq!(near("systolic_bp"), Some("systolic".into()));
        assert_eq!(near("postcode"), None);
    }

    #[test]
    fn long_lists_and_fields_are_cut() {
        let names: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let few = first_few(names.iter().map(String::as_str));
        assert_eq!(list(&few), r#""0", "1", "2", "3", "4", "5", "6", "7", …"#);
        assert_eq!(list(&few[..2]), r#""0", "1""#);
        assert_eq!(excerpt(&"é".repeat(1000)), "é".repeat(40) + "…");
        assert_eq!(excerpt("short"), "short");
    }
}
