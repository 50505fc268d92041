//! Tables in LIBSVM files: a line is a label and the non-zeros of a row, `+1 3:0.5 17:1`.
//!
//! Columns are numbered from 1 and ascend along a line. A comment begins with `#`. Blank lines are skipped. Lines end
//! in LF or CRLF. Values are taken as they are; only the norm policy bounds a row.
//!
//! Labels are compared as numbers if both are numbers, so that `+1`, `1` and `1.0` are one class, and otherwise as
//! text. A row whose label is one of the schema's missing values is dropped.

use std::io::{BufRead, BufReader, Read};

use crate::encode::Lacking;
use crate::error::{DataError, FilePosition, excerpt};
use crate::error_kinds::{FormatError, LineError};
use crate::formats::MAX_ROW_BYTES;
use crate::ingest::row::{Row, TableRow};
use crate::schema::Schema;
use crate::scoring::ScoringRow;

/// The label of the positive class.
pub(crate) struct PositiveLabel<'a> {
    text: &'a str,
    number: Option<f64>,
}

impl<'a> PositiveLabel<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let number = text.trim().parse().ok();
        Self { text, number }
    }

    pub(crate) fn matches(&self, label: &str) -> bool {
        // Two texts that are not numbers are both `None`.
        self.text == label || (self.number.is_some() && self.number == label.parse().ok())
    }
}

/// The rows of a LIBSVM file, read one line at a time into the same memory.
pub(crate) struct LibsvmRows<'a, R> {
    file: &'a str,
    source: BufReader<R>,
    number: u64,
    first: FirstToken,
    /// The largest number of non-zeros of a line.
    nonzeros: Option<u32>,
    line: Vec<u8>,
    entries: Vec<(u32, f64)>,
}

/// The expected first token of a line.
#[derive(Clone, Copy)]
enum FirstToken {
    Label,
    /// A label, or a pair of a row without a label.
    LabelOrPair,
}

/// A row: its label, which is empty if it has none, and its entries with columns from 0.
pub(crate) struct LibsvmRow<'r> {
    pub(crate) label: &'r str,
    pub(crate) entries: &'r mut Vec<(u32, f64)>,
}

impl<'a, R: Read> LibsvmRows<'a, R> {
    pub(crate) fn new(source: R, file: &'a str) -> Self {
        Self {
            file,
            source: BufReader::new(source),
            number: 0,
            first: FirstToken::Label,
            nonzeros: None,
            line: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Returns the name of the file in errors.
    pub(crate) fn file(&self) -> &'a str {
        self.file
    }

    /// Passes every row to `take`. A row may lack its label.
    pub(crate) fn each_row(
        mut self,
        schema: &Schema,
        mut take: impl FnMut(TableRow<'_>) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        if schema.numbered == 0 || !schema.numeric.is_empty() || !schema.categorical.is_empty() {
            return Err(DataError::format(self.file, FormatError::Named));
        }
        self.nonzeros = schema.nonzeros;
        let (positive, intercept) = (PositiveLabel::new(&schema.positive), schema.numbered);
        let (mut row, mut no_label) = (Row::default(), Lacking::default());
        // Without features that have names the label comes first.
        no_label.add(0, Ok(true))?;
        while let Some(line) = self.next(schema.numbered)? {
            if schema.missing.iter().any(|value| value == line.label) {
                take(TableRow::Incomplete(&no_label))?;
                continue;
            }
            if schema.intercept {
                line.entries.push((intercept, 1.0));
            }
            row.positive = positive.matches(line.label);
            row.label.clear();
            row.label.push_str(line.label);
            // The parser clears its list before it fills it again.
            std::mem::swap(&mut row.entries, line.entries);
            take(TableRow::Complete(&mut row))?;
        }
        Ok(())
    }

    /// Passes every row to be scored to `take`. A line may lack its label.
    pub(crate) fn score<E: From<DataError>>(
        mut self,
        schema: &Schema,
        mut take: impl FnMut(ScoringRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.first = FirstToken::LabelOrPair;
        let positive = PositiveLabel::new(&schema.positive);
        while let Some(line) = self.next(schema.numbered)? {
            if schema.intercept {
                line.entries.push((schema.numbered, 1.0));
            }
            let known =
                !line.label.is_empty() && schema.missing.iter().all(|value| value != line.label);
            take(ScoringRow::Complete {
                entries: line.entries,
                positive: known.then(|| positive.matches(line.label)),
            })?;
        }
        Ok(())
    }

    /// Returns the next row, or `None` at the end of the file. An index beyond `columns` is an error.
    pub(crate) fn next(&mut self, columns: u32) -> Result<Option<LibsvmRow<'_>>, DataError> {
        while self.advance()? {
            let end = self.line.iter().position(|byte| *byte == b'#');
            self.line.truncate(end.unwrap_or(self.line.len()));
            if self.line.trim_ascii().is_empty() {
                continue;
            }
            let (file, position) = (self.file.to_owned(), FilePosition::Line(self.number));
            let parsed = parse(&self.line, self.first, columns, &mut self.entries);
            let within = |label| check_nonzeros(&self.entries, self.nonzeros).map(|()| label);
            return match parsed.and_then(within) {
                Ok(label) => Ok(Some(LibsvmRow {
                    label,
                    entries: &mut self.entries,
                })),
                Err(cause) => Err(DataError::Line {
                    file,
                    position,
                    cause,
                }),
            };
        }
        Ok(None)
    }

    fn advance(&mut self) -> Result<bool, DataError> {
        self.line.clear();
        let mut limited = self.source.by_ref().take(MAX_ROW_BYTES as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.line);
        let read = read.map_err(DataError::read(self.file))?;
        if self.number == 0 && self.line.starts_with(b"\xef\xbb\xbf") {
            self.line.drain(..3);
        }
        self.number += 1;
        if self.line.len() > MAX_ROW_BYTES {
            return Err(DataError::Line {
                file: self.file.to_owned(),
                position: FilePosition::Line(self.number),
                cause: LineError::TooLong,
            });
        }
        Ok(read > 0)
    }
}

/// Checks that not too many entries differ from zero.
pub(crate) fn check_nonzeros(entries: &[(u32, f64)], limit: Option<u32>) -> Result<(), LineError> {
    let Some(limit) = limit else { return Ok(()) };
    let found = entries.iter().filter(|entry| entry.1 != 0.0).count();
    match found <= limit as usize {
        true => Ok(()),
        false => Err(LineError::TooManyNonZeros { found, limit }),
    }
}

/// Parses a line that is not blank: replaces `entries` by its own and returns its label.
fn parse<'l>(
    line: &'l [u8],
    first: FirstToken,
    columns: u32,
    entries: &mut Vec<(u32, f64)>,
) -> Result<&'l str, LineError> {
    let line = str::from_utf8(line).map_err(|_| LineError::NotUtf8)?;
    let mut words = line.split_ascii_whitespace();
    let label = match (first, line.split_ascii_whitespace().next()) {
        (FirstToken::LabelOrPair, Some(pair)) if pair.contains(':') => "",
        _ => words.next().unwrap_or_default(),
    };
    entries.clear();
    let mut last = 0;
    if label.contains([',', ';']) && !line.contains(':') {
        return Err(LineError::LooksLikeCsv {
            line: excerpt(line.trim()),
        });
    }
    for pair in words {
        let (index, value) =
            pair.split_once(':')
                .ok_or_else(|| match line.trim_end().contains('\r') {
                    true => LineError::CarriageReturn,
                    false => LineError::NoColon {
                        pair: excerpt(pair),
                    },
                })?;
        let number = index.parse().ok().filter(|number| *number > 0);
        let index: u32 = number.ok_or_else(|| LineError::Index {
            index: excerpt(index),
        })?;
        if index > columns {
            return Err(LineError::IndexBeyondStudy { index, columns });
        }
        if index <= last {
            return Err(LineError::NotAscending { index, last });
        }
        last = index;
        let number = value.parse().ok().filter(|number: &f64| number.is_finite());
        let number = number.ok_or_else(|| LineError::Value {
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
    fn a_line_is_a_label_and_entries_with_columns_from_0() {
        let mut entries = Vec::new();
        let label = parse(
            b" -1 1:0.5\t3:-2e1  7:0\r\n",
            FirstToken::Label,
            7,
            &mut entries,
        );
        assert_eq!(label, Ok("-1"));
        assert_eq!(entries, [(0, 0.5), (2, -20.0), (6, 0.0)]);
        assert_eq!(parse(b"+1\n", FirstToken::Label, 7, &mut entries), Ok("+1"));
        assert!(entries.is_empty());
    }

    #[test]
    fn an_optionally_labelled_line_may_begin_with_a_pair() {
        let mut entries = Vec::new();
        assert_eq!(
            parse(b"1:0.5 3:1", FirstToken::LabelOrPair, 7, &mut entries),
            Ok("")
        );
        assert_eq!(entries, [(0, 0.5), (2, 1.0)]);
        assert_eq!(
            parse(b"-1 3:1", FirstToken::LabelOrPair, 7, &mut entries),
            Ok("-1")
        );
        assert_eq!(entries, [(2, 1.0)]);
    }

    #[test]
    fn comments_and_blank_lines_are_skipped_and_counted() {
        let text = "\u{feff}# title\n\n1 1:1 # one\r\n \t\n-1 2:1#two\n1 3:1";
        let mut lines = LibsvmRows::new(text.as_bytes(), "rows.svm");
        let mut found = Vec::new();
        while let Some(row) = lines.next(9).unwrap() {
            let (label, column) = (row.label.to_owned(), row.entries[0].0);
            found.push((lines.number, label, column));
        }
        let expected = [(3, "1", 0), (5, "-1", 1), (6, "1", 2)];
        assert_eq!(found, expected.map(|(n, l, c)| (n, l.to_owned(), c)));
    }

    #[test]
    fn labels_are_compared_as_numbers_if_both_are() {
        let one = PositiveLabel::new("+1");
        assert!(
            ["1", "+1", "1.0", "1e0"]
                .iter()
                .all(|label| one.matches(label))
        );
        assert!(
            ["-1", "0", "2", "one", "+"]
                .iter()
                .all(|label| !one.matches(label))
        );
        let text = PositiveLabel::new("spam");
        assert!(text.matches("spam") && !text.matches("ham") && !text.matches("1"));
    }
}
