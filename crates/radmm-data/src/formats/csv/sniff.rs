//! The dialect of a CSV file, guessed from its beginning, for the draft of a study.

use csv::{ByteRecord, ReaderBuilder};

use crate::formats::options::{CsvDialect, DecimalMark, FileOptions, Separator};

/// Guesses what `given` leaves open: the separator that cuts the first line into most fields, and decimal commas where
/// numbers have commas, none has a point, and fields are separated otherwise.
pub(crate) fn sniff(start: &[u8], given: FileOptions, implied: CsvDialect) -> CsvDialect {
    let separator = given.separator.unwrap_or_else(|| {
        // The last of several maxima is taken, so that what the extension implies and then the comma come last.
        let others = Separator::ALL.into_iter().rev();
        let candidates = others.chain([implied.separator]);
        let width =
            |separator: &Separator| records(start, *separator).next().map_or(0, |r| r.len());
        candidates.max_by_key(width).unwrap_or_default()
    });
    let decimal = given.decimal.unwrap_or_else(|| match separator {
        Separator::Comma => DecimalMark::Point,
        _ => decimal_mark(start, separator),
    });
    CsvDialect { separator, decimal }
}

fn decimal_mark(start: &[u8], separator: Separator) -> DecimalMark {
    // The last line may be cut short.
    let end = start.iter().rposition(|byte| *byte == b'\n');
    let whole = &start[..end.unwrap_or(start.len())];
    let (mut commas, mut points) = (0, 0);
    for record in records(whole, separator).skip(1) {
        for field in &record {
            match std::str::from_utf8(field).map(fraction_mark) {
                Ok(Some(b',')) => commas += 1,
                Ok(Some(b'.')) => points += 1,
                _ => {}
            }
        }
    }
    match commas > 0 && points == 0 {
        true => DecimalMark::Comma,
        false => DecimalMark::Point,
    }
}

/// Returns the only character of a number beside its digits and sign, if there is one.
fn fraction_mark(field: &str) -> Option<u8> {
    let digits = field.trim().trim_start_matches(['+', '-']);
    let mut others = digits.bytes().filter(|byte| !byte.is_ascii_digit());
    match (others.next(), others.next()) {
        (Some(mark), None) if digits.len() > 1 => Some(mark),
        _ => None,
    }
}

fn records(text: &[u8], separator: Separator) -> impl Iterator<Item = ByteRecord> {
    let reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator.byte())
        .from_reader(text);
    reader.into_byte_records().map_while(Result::ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect(text: &str) -> (Separator, DecimalMark) {
        let found = sniff(
            text.as_bytes(),
            FileOptions::default(),
            CsvDialect::default(),
        );
        (found.separator, found.decimal)
    }

    #[test]
    fn the_separator_cuts_the_first_line_into_most_fields() {
        use DecimalMark::Point;
        assert_eq!(dialect("a,b\n1,2\n"), (Separator::Comma, Point));
        assert_eq!(dialect("a;b\n1;2\n"), (Separator::Semicolon, Point));
        assert_eq!(dialect("a\tb;c\td\n"), (Separator::Tab, Point));
        assert_eq!(dialect("a|b"), (Separator::Pipe, Point));
        assert_eq!(dialect("\"a;b;c\",d\n"), (Separator::Comma, Point));
        assert_eq!(dialect("a,b;c\n"), (Separator::Comma, Point));
        assert_eq!(dialect("alone\n"), (Separator::Comma, Point));
        assert_eq!(dialect(""), (Separator::Comma, Point));
    }

    #[test]
    fn decimal_commas_are_told_by_numbers_with_commas_and_none_with_points() {
        let semicolons = |mark| (Separator::Semicolon, mark);
        assert_eq!(dialect("a;b\n1,5;x\n"), semicolons(DecimalMark::Comma));
        assert_eq!(dialect("a;b\n-1,5;2\n3;2"), semicolons(DecimalMark::Comma));
        assert_eq!(dialect("a;b\n1,5;2.5\n"), semicolons(DecimalMark::Point));
        assert_eq!(
            dialect("a;b\n1,500,000;2\n"),
            semicolons(DecimalMark::Point)
        );
        assert_eq!(dialect("a;b\nx,y;,\n"), semicolons(DecimalMark::Point));
        // The last line may be cut before its point or its comma.
        assert_eq!(dialect("a;b\n1;2\n1,5;2"), semicolons(DecimalMark::Point));
        assert_eq!(
            dialect("a,b\n\"1,5\",2\n"),
            (Separator::Comma, DecimalMark::Point)
        );
    }
}
