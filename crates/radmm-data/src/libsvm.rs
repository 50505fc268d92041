//! Tables in LIBSVM files: a line is a label and the row's non-zeros, `+1 3:0.5 17:1`.
//!
//! Columns are numbered from 1 and ascend along a line. What follows a `#` is a comment; blank lines are skipped; lines
//! end in LF or CRLF.

use std::io::{BufRead, BufReader, Read};

use crate::error::{DataError, excerpt};
use crate::holdout::{Held, TestRows};
use crate::intake::Intake;
use crate::partition::{Deal, Partition};
use crate::problem::{FormatProblem, LineProblem};
use crate::row::Row;
use crate::schema::{Schema, Split};
use crate::score::Unscored;

/// Reads a table of numbered columns, takes its values as they are, holds some rows out and deals the others out to
/// nodes, in one pass. Nothing but the norm policy bounds a row.
///
/// Labels are compared as numbers where both are numbers, so that `+1`, `1` and `1.0` are one class, and else as text. A
/// row whose label is among the schema's missing ones is dropped. `file` is how errors call the source.
pub fn deal_libsvm(
    source: impl Read,
    file: &str,
    schema: &Schema,
    deal: Deal<'_>,
) -> Result<Partition, DataError> {
    if matches!(deal.split, Split::Column { .. }) {
        return Err(DataError::Format {
            file: file.to_owned(),
            problem: FormatProblem::SplitByColumn,
        });
    }
    let mut intake = Intake::new(file, schema, deal)?;
    each_row(source, file, schema, |row| intake.add(row))?;
    if intake.read() == 0 {
        return Err(no_lines(file));
    }
    intake.finish(Vec::new())
}

/// Reads a table of rows to test on.
pub fn read_test_libsvm(source: impl Read, file: &str, schema: &Schema) -> Result<Held, DataError> {
    let mut rows = TestRows::new(file, schema);
    each_row(source, file, schema, |row| rows.add(row.as_deref()))?;
    rows.finish()?.ok_or_else(|| no_lines(file))
}

fn no_lines(file: &str) -> DataError {
    let file = file.to_owned();
    DataError::NoLines { file }
}

/// Hands out every row, or none for one of which the label is missing.
fn each_row(
    source: impl Read,
    file: &str,
    schema: &Schema,
    mut take: impl FnMut(Option<&mut Row>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    if schema.numbered == 0 || !schema.numeric.is_empty() || !schema.categorical.is_empty() {
        return Err(DataError::Format {
            file: file.to_owned(),
            problem: FormatProblem::Named,
        });
    }
    let mut lines = Lines::new(source, file);
    let (class, intercept) = (Class::new(&schema.positive), schema.numbered);
    let mut row = Row::default();
    while let Some(line) = lines.next(schema.numbered)? {
        if schema.missing.iter().any(|value| value == line.text) {
            take(None)?;
            continue;
        }
        if schema.intercept {
            line.entries.push((intercept, 1.0));
        }
        row.positive = class.holds(line.text);
        row.label.clear();
        row.label.push_str(line.text);
        // The line's list is cleared before it is filled again.
        std::mem::swap(&mut row.entries, line.entries);
        take(Some(&mut row))?;
    }
    Ok(())
}

/// Hands out what is to be scored. A line may lack its label.
pub(crate) fn score<E: From<DataError>>(
    source: impl Read,
    file: &str,
    schema: &Schema,
    mut take: impl FnMut(Unscored<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut lines = Lines::perhaps_labelled(source, file);
    let class = Class::new(&schema.positive);
    while let Some(line) = lines.next(schema.numbered)? {
        if schema.intercept {
            line.entries.push((schema.numbered, 1.0));
        }
        let known = !line.text.is_empty() && schema.missing.iter().all(|value| value != line.text);
        take(Unscored::Complete {
            entries: line.entries,
            positive: known.then(|| class.holds(line.text)),
        })?;
    }
    Ok(())
}

/// The positive class.
struct Class<'a> {
    text: &'a str,
    number: Option<f64>,
}

impl<'a> Class<'a> {
    fn new(text: &'a str) -> Self {
        let number = text.trim().parse().ok();
        Self { text, number }
    }

    fn holds(&self, label: &str) -> bool {
        // Two texts that are no numbers are both `None`.
        self.text == label || (self.number.is_some() && self.number == label.parse().ok())
    }
}

/// Reads one line at a time into the same memory.
pub(crate) struct Lines<'a, R> {
    file: &'a str,
    source: BufReader<R>,
    number: u64,
    first: First,
    line: Vec<u8>,
    entries: Vec<(u32, f64)>,
}

/// What stands first in a line.
#[derive(Clone, Copy)]
enum First {
    Label,
    /// A label, or a pair if it is one.
    Either,
}

/// A row: its label, empty if it has none, and its entries by columns from 0.
pub(crate) struct Labelled<'r> {
    pub(crate) text: &'r str,
    pub(crate) entries: &'r mut Vec<(u32, f64)>,
}

impl<'a, R: Read> Lines<'a, R> {
    pub(crate) fn new(source: R, file: &'a str) -> Self {
        Self::with(source, file, First::Label)
    }

    /// Of a file in which rows may begin with a pair: they have no label.
    fn perhaps_labelled(source: R, file: &'a str) -> Self {
        Self::with(source, file, First::Either)
    }

    fn with(source: R, file: &'a str, first: First) -> Self {
        Self {
            file,
            source: BufReader::new(source),
            number: 0,
            first,
            line: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// The next row, of which no index is beyond `columns`, or none at the end of the file.
    pub(crate) fn next(&mut self, columns: u32) -> Result<Option<Labelled<'_>>, DataError> {
        while self.advance()? {
            let end = self.line.iter().position(|byte| *byte == b'#');
            self.line.truncate(end.unwrap_or(self.line.len()));
            if self.line.trim_ascii().is_empty() {
                continue;
            }
            let (file, line) = (self.file.to_owned(), self.number);
            return match parse(&self.line, self.first, columns, &mut self.entries) {
                Ok(text) => Ok(Some(Labelled {
                    text,
                    entries: &mut self.entries,
                })),
                Err(problem) => Err(DataError::Line {
                    file,
                    line,
                    problem,
                }),
            };
        }
        Ok(None)
    }

    fn advance(&mut self) -> Result<bool, DataError> {
        self.line.clear();
        let read = self.source.read_until(b'\n', &mut self.line);
        let read = read.map_err(|cause| DataError::Read {
            file: self.file.to_owned(),
            cause,
        })?;
        if self.number == 0 && self.line.starts_with(b"\xef\xbb\xbf") {
            self.line.drain(..3);
        }
        self.number += 1;
        Ok(read > 0)
    }
}

/// Replaces `entries` by those of a line that is not blank, and returns its label.
fn parse<'l>(
    line: &'l [u8],
    first: First,
    columns: u32,
    entries: &mut Vec<(u32, f64)>,
) -> Result<&'l str, LineProblem> {
    let line = str::from_utf8(line).map_err(|_| LineProblem::NotUtf8)?;
    let mut words = line.split_ascii_whitespace();
    let label = match (first, line.split_ascii_whitespace().next()) {
        (First::Either, Some(pair)) if pair.contains(':') => "",
        _ => words.next().unwrap_or_default(),
    };
    entries.clear();
    let mut last = 0;
    for pair in words {
        let (index, value) = pair.split_once(':').ok_or_else(|| LineProblem::NoColon {
            pair: excerpt(pair),
        })?;
        let number = index.parse().ok().filter(|number| *number > 0);
        let index: u32 = number.ok_or_else(|| LineProblem::Index {
            index: excerpt(index),
        })?;
        if index > columns {
            return Err(LineProblem::Beyond { index, columns });
        }
        if index <= last {
            return Err(LineProblem::NotAscending { index, last });
        }
        last = index;
        let number = value.parse().ok().filter(|number: &f64| number.is_finite());
        let number = number.ok_or_else(|| LineProblem::Value {
            index,
            value: excerpt(value),
        })?;
        entries.push((index - 1, number));
    }
    Ok(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_label_and_entries_by_columns_from_0() {
        let mut entries = Vec::new();
        let label = parse(b" -1 1:0.5\t3:-2e1  7:0\r\n", First::Label, 7, &mut entries);
        assert_eq!(label, Ok("-1"));
        assert_eq!(entries, [(0, 0.5), (2, -20.0), (6, 0.0)]);
        assert_eq!(parse(b"+1\n", First::Label, 7, &mut entries), Ok("+1"));
        assert!(entries.is_empty());
    }

    #[test]
    fn where_a_label_may_be_missing_a_pair_at_the_start_is_a_pair() {
        let mut entries = Vec::new();
        assert_eq!(parse(b"1:0.5 3:1", First::Either, 7, &mut entries), Ok(""));
        assert_eq!(entries, [(0, 0.5), (2, 1.0)]);
        assert_eq!(parse(b"-1 3:1", First::Either, 7, &mut entries), Ok("-1"));
        assert_eq!(entries, [(2, 1.0)]);
    }

    #[test]
    fn comments_and_blank_lines_are_skipped_and_counted() {
        let text = "\u{feff}# title\n\n1 1:1 # one\r\n \t\n-1 2:1#two\n1 3:1";
        let mut lines = Lines::new(text.as_bytes(), "rows.svm");
        let mut seen = Vec::new();
        while let Some(row) = lines.next(9).unwrap() {
            let (label, column) = (row.text.to_owned(), row.entries[0].0);
            seen.push((lines.number, label, column));
        }
        let expected = [(3, "1", 0), (5, "-1", 1), (6, "1", 2)];
        assert_eq!(seen, expected.map(|(n, l, c)| (n, l.to_owned(), c)));
    }

    #[test]
    fn labels_are_compared_as_numbers_where_both_are() {
        let one = Class::new("+1");
        assert!(
            ["1", "+1", "1.0", "1e0"]
                .iter()
                .all(|label| one.holds(label))
        );
        assert!(
            ["-1", "0", "2", "one", "+"]
                .iter()
                .all(|label| !one.holds(label))
        );
        let text = Class::new("spam");
        assert!(text.holds("spam") && !text.holds("ham") && !text.holds("1"));
    }
}
