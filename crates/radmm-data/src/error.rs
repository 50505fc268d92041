//! The error of reading a table.
//!
//! Privacy: these errors quote names and fields of the file. Only the party that owns the file may see them; they must
//! not be sent to another party.

use std::fmt;
use std::io;

use radmm::curator::RowError;
use thiserror::Error;

use crate::error_kinds::{
    ColumnError, FieldError, FormatError, HoldoutError, LineError, SplitError,
};
use crate::formats::{Format, Separator};

/// A position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePosition {
    /// A line of text, counted from 1 as editors do.
    Line(u64),
    /// A row of a file without lines, counted from 1.
    Row(u64),
    /// The column names of a file without lines.
    Columns,
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, ":{line}"),
            Self::Row(row) => write!(f, ": row {row}"),
            Self::Columns => Ok(()),
        }
    }
}

/// The error of reading a table: it names the file, the position, the cause and the remedy.
#[derive(Debug, Error)]
pub enum DataError {
    /// The source failed, or is not text.
    #[error("cannot read {file}: {cause}")]
    Read {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The error of the source.
        cause: io::Error,
    },
    /// The caller interrupted the reading.
    #[error("reading {file} was interrupted")]
    Interrupted {
        /// The name of the table, as the caller gave it.
        file: String,
    },
    /// A file was changed between two readings of it.
    #[error(
        "{file}: its rows changed while they were read; start again when nothing writes to them"
    )]
    Changed {
        /// The name of the file, as the caller gave it.
        file: String,
    },
    /// The files of a folder or of a pattern have several formats.
    #[error(
        "{file}: {} read files of one format with a pattern such as *.{}",
        other_format(*found, *expected, *is_given),
        expected.name()
    )]
    MixedFormats {
        /// The name of the file that differs.
        file: String,
        /// The format that its extension implies.
        found: Option<Format>,
        /// The format of the others.
        expected: Format,
        /// Whether that format was given.
        is_given: bool,
    },
    /// The file has no header.
    #[error("{file} is empty: its first line must name the columns")]
    Empty {
        /// The name of the file, as the caller gave it.
        file: String,
    },
    /// The first line holds numbers instead of column names.
    #[error(
        "{file} has no header: its first line holds numbers; add a line above it that names the columns"
    )]
    NoHeader {
        /// The name of the file, as the caller gave it.
        file: String,
    },
    /// The header is a single name that contains another separator.
    #[error(
        "{file}{position}: the fields seem to be separated by {}; set separator = {:?}",
        separator.in_words(),
        separator.text()
    )]
    Separator {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The position of the header.
        position: FilePosition,
        /// The separator that the file seems to have.
        separator: Separator,
    },
    /// The file has a header and no rows.
    #[error("{file} has a header and no rows")]
    NoRows {
        /// The name of the file, as the caller gave it.
        file: String,
    },
    /// A column name is not UTF-8.
    #[error("{file}:{line}: the name of column {number} is not UTF-8; save the file as UTF-8")]
    HeaderNotUtf8 {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The line of the header.
        line: u64,
        /// The number of the column, from 1.
        number: usize,
    },
    /// The header names a used column more than once.
    #[error(
        "{file}{position}: the header names column {column:?} more than once; rename or remove all but one"
    )]
    DuplicateColumn {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The position of the header.
        position: FilePosition,
        /// The name of the column.
        column: String,
    },
    /// The study names a column that the header lacks.
    #[error(
        "{file}{position}: there is no column {column:?}{}; the header has {}",
        did_you_mean(nearest),
        list(header)
    )]
    NoSuchColumn {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The position of the header.
        position: FilePosition,
        /// The name in the study.
        column: String,
        /// The most similar name of the header, if one is similar enough.
        nearest: Option<String>,
        /// The first few names of the header.
        header: Vec<String>,
    },
    /// A row has more or fewer fields than the header.
    #[error(
        "{file}:{line}: expected {expected} fields as in the header, got {got}; look for a stray comma or quote"
    )]
    WrongWidth {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The line on which the row begins.
        line: u64,
        /// The number of names in the header.
        expected: usize,
        /// The number of fields in the row.
        got: usize,
    },
    /// A quote is never closed, so that the rest of the file would be one field.
    #[error("{file}:{line}: a quote is opened in this row and never closed")]
    OpenQuote {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The line on which the row begins.
        line: u64,
    },
    /// A field does not fit its column.
    #[error("{file}{position}: column {column:?}: {cause}")]
    Field {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The position of the row.
        position: FilePosition,
        /// The name of the column.
        column: String,
        /// The cause.
        cause: FieldError,
    },
    /// A line of a LIBSVM file is not a label followed by pairs, or a row of a sparse matrix is invalid.
    #[error("{file}{position}: {cause}")]
    Line {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The line, or the row.
        position: FilePosition,
        /// The cause.
        cause: LineError,
    },
    /// A LIBSVM file has no rows.
    #[error(
        "{file} has no rows: a row is a line such as +1 3:0.5 17:1, its label and index:value pairs"
    )]
    NoLines {
        /// The name of the file, as the caller gave it.
        file: String,
    },
    /// The file is damaged, or not a Parquet file.
    #[error("cannot read {file} as Parquet: {cause}; is it complete, and a Parquet file?")]
    Parquet {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The message of the decoder.
        cause: String,
    },
    /// A column of a Parquet file cannot be read.
    #[error("{file}: column {column:?} {cause}")]
    Column {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The name of the column.
        column: String,
        /// The cause.
        cause: ColumnError,
    },
    /// The schema and the format of the file do not go together.
    #[error("{file}: {cause}")]
    Format {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The cause.
        cause: FormatError,
    },
    /// Every row has a missing value.
    #[error(
        "{file}: all {read} rows were dropped: each has a missing value in a column that the study uses"
    )]
    AllDropped {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The number of rows in the file.
        read: usize,
    },
    /// The positive class does not occur.
    #[error(
        "{file}: column {column:?}: no row has the positive label {positive:?}: the labels are {}; correct positive in the study",
        list(labels)
    )]
    OnlyNegative {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The column of the label.
        column: String,
        /// The positive label.
        positive: String,
        /// The first few labels that occur.
        labels: Vec<String>,
    },
    /// The negative class does not occur.
    #[error(
        "{file}: column {column:?}: every row has the positive label {positive:?}; rows of both classes are needed"
    )]
    OnlyPositive {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The column of the label.
        column: String,
        /// The positive label.
        positive: String,
    },
    /// The rows cannot be split over the nodes.
    #[error("{file}: {cause}")]
    Split {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The cause.
        cause: SplitError,
    },
    /// Rows cannot be held out.
    #[error("{file}: {cause}")]
    Holdout {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The cause.
        cause: HoldoutError,
    },
    /// An encoded row is invalid, because bounds of the schema are not finite or both zero.
    #[error("{file}: invalid row: {cause}; are the bounds in the study finite?")]
    Row {
        /// The name of the file, as the caller gave it.
        file: String,
        /// The error of the shard.
        cause: RowError,
    },
}

impl DataError {
    /// Returns the conversion from the error of a source.
    pub(crate) fn read(file: &str) -> impl FnOnce(io::Error) -> Self {
        let file = || file.to_owned();
        move |cause| Self::Read {
            file: file(),
            cause,
        }
    }

    /// Returns the conversion from the error of a shard.
    pub(crate) fn row(file: &str) -> impl FnOnce(RowError) -> Self {
        let file = || file.to_owned();
        move |cause| Self::Row {
            file: file(),
            cause,
        }
    }

    /// Returns the error of a schema that does not go with the format.
    pub(crate) fn format(file: &str, cause: FormatError) -> Self {
        let file = file.to_owned();
        Self::Format { file, cause }
    }
}

/// The number of names kept of a long list: one more than [`list`] shows, so that it can tell a list that was cut.
pub(crate) const MAX_LISTED: usize = 9;

/// The number of characters shown of a long field. An error must not carry half a file.
const MAX_WIDTH: usize = 40;

/// Returns the beginning of a field.
pub(crate) fn excerpt(field: &str) -> String {
    match field.char_indices().nth(MAX_WIDTH) {
        Some((end, _)) => format!("{}…", &field[..end]),
        None => field.to_owned(),
    }
}

/// Returns the first few names.
pub(crate) fn first_few<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    names.into_iter().take(MAX_LISTED).map(excerpt).collect()
}

/// Returns the name of the header that is most similar to `wanted`: the fewest edits away, case aside, if that is no
/// more than a third of the letters of `wanted`.
pub(crate) fn nearest<'a>(wanted: &str, header: impl Iterator<Item = &'a str>) -> Option<String> {
    let folded = |name: &str| name.trim().to_lowercase();
    let wanted = folded(wanted);
    let max_edits = wanted.chars().count() / 3;
    header
        .filter(|name| name.chars().count() <= MAX_WIDTH)
        .map(|name| (strsim::levenshtein(&wanted, &folded(name)), name))
        .filter(|(edits, _)| *edits <= max_edits)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name.to_owned())
}

/// Says how a file differs from others, and from what.
fn other_format(found: Option<Format>, expected: Format, is_given: bool) -> String {
    let is = match found {
        Some(found) => format!("this is a {} file by its name", found.title()),
        None => "the name tells no format".to_owned(),
    };
    match is_given {
        true => format!("{is}, and format is {:?}; correct it, or", expected.name()),
        false => format!("{is}, and others are {} files;", expected.title()),
    }
}

fn did_you_mean(nearest: &Option<String>) -> String {
    match nearest {
        Some(name) => format!(" (did you mean {name:?}?)"),
        None => String::new(),
    }
}

/// Formats a list of names, and marks one that was cut.
pub(crate) fn list(names: &[String]) -> String {
    let shown = names
        .iter()
        .take(MAX_LISTED - 1)
        .map(|name| format!("{name:?}"));
    let shown: Vec<_> = shown.collect();
    let more = if names.len() < MAX_LISTED {
        ""
    } else {
        ", …"
    };
    shown.join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_suggested_only_if_it_is_similar() {
        let near = |wanted| nearest(wanted, ["age", "smoker", "systolic"].into_iter());
        assert_eq!(near("Age").as_deref(), Some("age"));
        assert_eq!(near("smokes").as_deref(), Some("smoker"));
        assert_eq!(near("systolic_bp"), Some("systolic".into()));
        assert_eq!(near("postcode"), None);
        // Three edits of six letters, two of four, three of none and three of three.
        assert_eq!(nearest("kitten", ["sitting"].into_iter()), None);
        assert_eq!(nearest("flaw", ["lawn"].into_iter()), None);
        assert_eq!(nearest("", ["abc"].into_iter()), None);
        assert_eq!(nearest("abc", [""].into_iter()), None);
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
