//! The records of a CSV file, and the lines on which they begin.
//!
//! Quotes follow RFC 4180. Blank lines and a byte order mark at the start are skipped. Lines end in LF, CRLF or CR.
//!
//! The `csv` crate reports the earliest line on which a record could have begun: before the blank lines that it skips,
//! and before the LF of the previous line's CRLF. An editor would count neither. Therefore every line is made to end in
//! one LF. A record then ends just before the reader's current line, and began as many lines earlier as it holds line
//! breaks.
//!
//! The crate also accepts the end of the file as a closing quote, so that one stray quote would silently turn the
//! rest of the file into a field. Therefore [`END`] is appended on a line of its own. It is read as a record unless a
//! quote is open.

use std::fmt;
use std::io::{self, Chain, Cursor, ErrorKind, Read};

use csv::{ByteRecord, Reader, ReaderBuilder};

use crate::error::{DataError, FilePosition};
use crate::error_kinds::FieldError;
use crate::formats::MAX_ROW_BYTES;
use crate::formats::named_columns::{Column, Record};
use crate::formats::options::{CsvDialect, DecimalMark};

/// The control character that once marked the end of a text file. A text file must not contain it.
const END: u8 = 0x1a;

/// The character of which text in UTF-16, and most data that is not text, has many.
const NUL: u8 = 0;

/// A line break, because the last line may lack its own, and the end mark on a line.
const TAIL: &[u8] = &[b'\n', END, b'\n'];

/// The number of bytes that are read at a time.
const BUFFER: usize = 1 << 16;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The records of a CSV file, read one at a time into the same memory.
pub(crate) struct CsvRecords<'a, R> {
    file: &'a str,
    decimal: DecimalMark,
    reader: Reader<Text<R>>,
    fields: ByteRecord,
}

/// The source without a byte order mark, with LF line ends and with [`TAIL`].
type Text<R> = Chain<LfLines<Chain<Cursor<Vec<u8>>, R>>, &'static [u8]>;

/// The record read last. Neither `Debug` nor `Clone`, because it is a row.
pub(crate) struct CsvRecord<'r> {
    file: &'r str,
    decimal: DecimalMark,
    fields: &'r ByteRecord,
    next_line: u64,
}

impl<'a, R: Read> CsvRecords<'a, R> {
    pub(crate) fn new(
        mut source: R,
        file: &'a str,
        dialect: CsvDialect,
    ) -> Result<Self, DataError> {
        let mut start = Vec::new();
        source
            .by_ref()
            .take(BYTE_ORDER_MARK.len() as u64)
            .read_to_end(&mut start)
            .map_err(DataError::read(file))?;
        if start == BYTE_ORDER_MARK {
            start.clear();
        }
        let lines = LfLines {
            source: Cursor::new(start).chain(source),
            after_return: false,
            line: 1,
            allowance: 0,
        };
        // Fields are trimmed later, after a record's line breaks have been counted.
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(dialect.separator.byte())
            .buffer_capacity(BUFFER)
            .from_reader(lines.chain(TAIL));
        Ok(Self {
            file,
            decimal: dialect.decimal,
            reader,
            fields: ByteRecord::new(),
        })
    }

    /// Returns the next record that is not blank, or `None` at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<CsvRecord<'_>>, DataError> {
        loop {
            let before = self.reader.position();
            let (line, start) = (before.line(), before.byte());
            self.reader.get_mut().get_mut().0.allowance = MAX_ROW_BYTES + 1;
            match self.reader.read_byte_record(&mut self.fields) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(cause) => return Err(self.failed(cause, line)),
            }
            if self.reader.position().byte() - start > MAX_ROW_BYTES as u64 {
                let file = self.file.to_owned();
                return Err(DataError::RowTooLong { file, line });
            }
            let only = (self.fields.len() == 1).then(|| &self.fields[0]);
            if only == Some(&[END]) {
                return Ok(None);
            }
            if self.fields.as_slice().ends_with(TAIL) {
                let line = self.reader.position().line() - line_breaks(&self.fields);
                let file = self.file.to_owned();
                return Err(DataError::OpenQuote { file, line });
            }
            if only.is_none_or(|field| !field.trim_ascii().is_empty()) {
                break;
            }
        }
        Ok(Some(CsvRecord {
            file: self.file,
            decimal: self.decimal,
            fields: &self.fields,
            next_line: self.reader.position().line(),
        }))
    }
}

impl<R> CsvRecords<'_, R> {
    /// Returns the error of a source that failed in the record that begins on this line.
    fn failed(&self, cause: csv::Error, line: u64) -> DataError {
        let file = self.file.to_owned();
        let cause = match cause.into_kind() {
            csv::ErrorKind::Io(cause) => cause,
            // Unreachable: records of bytes of any width have no other errors.
            other => io::Error::other(format!("{other:?}")),
        };
        match cause.get_ref().and_then(|cause| cause.downcast_ref()) {
            Some(InvalidText::Control { byte, line }) => DataError::ControlCharacter {
                file,
                line: *line,
                byte: *byte,
            },
            Some(InvalidText::TooLong) => DataError::RowTooLong { file, line },
            None => DataError::Read { file, cause },
        }
    }
}

impl CsvRecord<'_> {
    /// Returns the line on which the record begins, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.next_line - 1 - line_breaks(self.fields)
    }

    pub(crate) fn width(&self) -> usize {
        self.fields.len()
    }

    /// Returns every field as text, or the index of the first that is not UTF-8.
    pub(crate) fn texts(&self) -> Result<Vec<&str>, usize> {
        (0..self.width()).map(|k| self.text(k).ok_or(k)).collect()
    }

    pub(crate) fn wrong_width(&self, expected: usize) -> DataError {
        DataError::WrongWidth {
            file: self.file.to_owned(),
            line: self.line(),
            expected,
            got: self.width(),
        }
    }

    fn text(&self, index: usize) -> Option<&str> {
        std::str::from_utf8(&self.fields[index]).ok().map(str::trim)
    }
}

impl Record for CsvRecord<'_> {
    fn value(&self, column: Column<'_>) -> Result<Option<&str>, DataError> {
        match self.text(column.index) {
            Some(text) => Ok(Some(text)),
            None => Err(self.field_error(column, FieldError::NotUtf8)),
        }
    }

    fn decimal(&self) -> Option<DecimalMark> {
        Some(self.decimal)
    }

    fn position(&self) -> FilePosition {
        FilePosition::Line(self.line())
    }

    fn file(&self) -> &str {
        self.file
    }
}

fn line_breaks(fields: &ByteRecord) -> u64 {
    let bytes = fields.as_slice().iter();
    bytes.filter(|byte| **byte == b'\n').count() as u64
}

/// A source with CRLF and CR turned into LF. Reading [`END`] or [`NUL`] is an error.
struct LfLines<R> {
    source: R,
    after_return: bool,
    /// The number of the line that is read next.
    line: u64,
    /// The number of bytes that may be read before the next record begins.
    allowance: usize,
}

/// The defect of a text that cannot be read.
#[derive(Debug)]
enum InvalidText {
    Control { byte: u8, line: u64 },
    TooLong,
}

impl fmt::Display for InvalidText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control { byte, line } => {
                write!(f, "control character {byte:#04x} on line {line}")
            }
            Self::TooLong => f.write_str("the row is too long"),
        }
    }
}

impl std::error::Error for InvalidText {}

fn invalid(cause: InvalidText) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, cause)
}

impl<R: Read> Read for LfLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.allowance);
        if length == 0 {
            return Err(invalid(InvalidText::TooLong));
        }
        let buffer = &mut buffer[..length];
        loop {
            let got = match self.source.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result?,
            };
            let mut kept = 0;
            for at in 0..got {
                let byte = buffer[at];
                let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
                if byte == b'\n' && after_return {
                    continue;
                }
                buffer[kept] = if byte == b'\r' { b'\n' } else { byte };
                kept += 1;
            }
            let text = &buffer[..kept];
            let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count() as u64;
            if text.contains(&END) || text.contains(&NUL) {
                let at = text.iter().position(|byte| [END, NUL].contains(byte));
                let at = at.unwrap_or(kept);
                let line = self.line + lines(&text[..at]);
                let byte = text[at];
                return Err(invalid(InvalidText::Control { byte, line }));
            }
            self.line += lines(text);
            // To return zero would mean the end of the file.
            if kept > 0 || got == 0 {
                self.allowance -= kept;
                return Ok(kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source of one byte at a time, interrupted before each.
    struct Trickle<'a>(&'a [u8], bool);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(ErrorKind::Interrupted.into());
            }
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    fn collect(source: impl Read) -> Vec<(u64, Vec<String>)> {
        let mut records = CsvRecords::new(source, "rows.csv", CsvDialect::default()).unwrap();
        let mut found = Vec::new();
        while let Some(record) = records.next().unwrap() {
            let texts = record.texts().unwrap();
            found.push((
                record.line(),
                texts.into_iter().map(str::to_owned).collect(),
            ));
        }
        found
    }

    fn lines(text: &str) -> Vec<u64> {
        let whole = collect(text.as_bytes());
        assert_eq!(whole, collect(Trickle(text.as_bytes(), false)));
        whole.into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn lines_are_counted_as_in_an_editor() {
        assert_eq!(lines("a,b\n1,2\n3,4"), [1, 2, 3]);
        assert_eq!(lines("a,b\r\n1,2\r\n3,4\r\n"), [1, 2, 3]);
        assert_eq!(lines("a,b\r1,2\r3,4\r"), [1, 2, 3]);
        assert_eq!(lines("\n\na,b\n\n\n1,2\n \n3,4"), [3, 6, 8]);
        assert_eq!(lines("\r\na,b\r\n\r\n1,2\r\n"), [2, 4]);
    }

    #[test]
    fn a_record_with_quoted_line_breaks_begins_on_its_first_line() {
        assert_eq!(lines("a,b\n\"x\ny\n\",1\n3,4"), [1, 2, 5]);
        assert_eq!(lines("a,b\r\n\r\n\"x\r\n\r\n\",1\r\n3,4\r\n"), [1, 3, 6]);
    }

    #[test]
    fn quotes_protect_commas_quotes_and_line_breaks() {
        let records = collect("\"a,b\",\"say \"\"hi\"\"\",\"two\r\nlines\"\n".as_bytes());
        assert_eq!(records[0].1, ["a,b", "say \"hi\"", "two\nlines"]);
    }

    #[test]
    fn white_space_and_a_byte_order_mark_are_not_part_of_fields() {
        for bytes in ["\u{feff}\"a\" , b\u{a0}\t\r\n".as_bytes(), "a,b".as_bytes()] {
            assert_eq!(collect(bytes)[0].1, ["a", "b"]);
            assert_eq!(collect(Trickle(bytes, false))[0].1, ["a", "b"]);
        }
    }

    #[test]
    fn a_blank_file_has_no_records() {
        for text in ["", "\n", "\r\n\r\n", "  \n\t", "\u{feff}"] {
            assert!(lines(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn an_open_quote_is_an_error_at_the_line_where_its_record_begins() {
        for text in [
            "a,b\n\n1,\"2\n3,4\n",
            "a,b\r\n\r\n1,\"2\r\n3,4",
            "a,b\n\n\"1",
        ] {
            let mut records =
                CsvRecords::new(text.as_bytes(), "rows.csv", CsvDialect::default()).unwrap();
            assert!(records.next().unwrap().is_some());
            let error = records.next().err().unwrap();
            assert_eq!(
                error.to_string(),
                "rows.csv:3: a quote is opened in this row and never closed; close it, or write a quote within a field twice"
            );
        }
    }
}
