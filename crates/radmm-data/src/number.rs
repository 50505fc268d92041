//! Numbers in fields of text.

use crate::date;
use crate::error::excerpt;
use crate::error_kinds::FieldError;
use crate::formats::DecimalMark;

/// The largest number of bytes of a number with a decimal comma. Programs that write all digits of a float stay below it.
const LONGEST: usize = 128;

/// Parses a finite number. `decimal` is the mark before its fraction, where the user can choose it.
pub(crate) fn parse(field: &str, decimal: Option<DecimalMark>) -> Result<f64, FieldError> {
    let value = || excerpt(field);
    let parsed = match decimal {
        Some(DecimalMark::Comma) => with_comma(field),
        Some(DecimalMark::Point) | None => field.parse::<f64>().ok(),
    };
    match (parsed, decimal) {
        (Some(number), _) => check_finite(number, value),
        (None, Some(DecimalMark::Point)) if has_one(field, ',') => {
            Err(FieldError::CommaInNumber { value: value() })
        }
        (None, Some(DecimalMark::Comma)) if has_one(field, '.') => {
            Err(FieldError::PointInNumber { value: value() })
        }
        (None, _) if date::parse(field).is_ok() => Err(FieldError::DateInNumber { value: value() }),
        (None, _) => Err(FieldError::NotANumber { value: value() }),
    }
}

/// Checks that a number is finite; `value` is its text.
pub(crate) fn check_finite(number: f64, value: impl FnOnce() -> String) -> Result<f64, FieldError> {
    match number.is_finite() {
        true => Ok(number),
        false => Err(FieldError::NotFinite { value: value() }),
    }
}

/// Parses a number with a decimal comma.
fn with_comma(field: &str) -> Option<f64> {
    let mut text = [0; LONGEST];
    let text = text.get_mut(..field.len())?;
    text.copy_from_slice(field.as_bytes());
    // A point has no meaning there, and a second comma becomes a second point, which is not a number.
    if text.contains(&b'.') {
        return None;
    }
    for byte in text.iter_mut().filter(|byte| **byte == b',') {
        *byte = b'.';
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Returns whether a field consists of digits and one such mark, behind a sign or not.
fn has_one(field: &str, mark: char) -> bool {
    let digits = field.trim_start_matches(['+', '-']);
    let is_digit = |c: char| c.is_ascii_digit() || c == mark;
    digits.len() > 1 && digits.chars().all(is_digit) && digits.matches(mark).count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINT: Option<DecimalMark> = Some(DecimalMark::Point);
    const COMMA: Option<DecimalMark> = Some(DecimalMark::Comma);

    #[test]
    fn numbers_are_decimal_and_finite() {
        for (field, number) in [("4", 4.0), ("-0.5", -0.5), ("+1e3", 1000.0), (".25", 0.25)] {
            assert_eq!(parse(field, POINT), Ok(number));
            assert_eq!(parse(&field.replace('.', ","), COMMA), Ok(number));
        }
        for field in ["", "4x", "1 000", "0x10", "1,000,000"] {
            let value = field.to_owned();
            assert_eq!(parse(field, POINT), Err(FieldError::NotANumber { value }));
        }
        for field in ["NaN", "inf", "-Infinity", "1e999"] {
            let value = field.to_owned();
            assert_eq!(parse(field, POINT), Err(FieldError::NotFinite { value }));
        }
    }

    #[test]
    fn the_other_decimal_mark_is_an_error_of_its_own() {
        for field in ["1,5", "-1,500", "+,5"] {
            let value = field.to_owned();
            assert_eq!(
                parse(field, POINT),
                Err(FieldError::CommaInNumber { value })
            );
        }
        for field in ["1.5", "-1.500"] {
            let value = field.to_owned();
            assert_eq!(
                parse(field, COMMA),
                Err(FieldError::PointInNumber { value })
            );
        }
        for field in ["1.500,5", "1,2,3", ",", "1,5x", &"1".repeat(LONGEST + 1)] {
            let value = excerpt(field);
            assert_eq!(parse(field, COMMA), Err(FieldError::NotANumber { value }));
        }
        let value = "2020-12-31".to_owned();
        assert_eq!(
            parse("2020-12-31", POINT),
            Err(FieldError::DateInNumber { value })
        );
        // Where nobody can set the mark, no other is proposed.
        let value = "1,5".to_owned();
        assert_eq!(parse("1,5", None), Err(FieldError::NotANumber { value }));
    }
}
