//! Hexadecimal digits: the text form of keys and hashes.

use thiserror::Error;

/// The reason why a text is not the hexadecimal form of so many bytes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum HexError {
    /// A character that is not a digit in lower case.
    #[error("{0:?} is not one of the digits 0 to 9 and a to f")]
    Digit(char),
    /// Too many or too few digits.
    #[error("must have {needed} hexadecimal digits, not {found}")]
    Length {
        /// The number of digits that there must be.
        needed: usize,
        /// The number of digits that there are.
        found: usize,
    },
}

/// Returns two lower-case digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes of `2·N` lower-case digits. Upper case is rejected: there is one text for each key, so that it is
/// found by searching for it.
///
/// ```
/// use radmm_study::hex;
///
/// assert_eq!(hex::decode("009fff"), Ok([0, 0x9f, 255]));
/// assert_eq!(hex::encode(&[0, 0x9f, 255]), "009fff");
/// ```
pub fn decode<const N: usize>(text: &str) -> Result<[u8; N], HexError> {
    let length = |found| HexError::Length {
        needed: 2 * N,
        found,
    };
    let digits = text.chars().count();
    let bytes = decode_any(text).map_err(|error| match error {
        HexError::Length { .. } => length(digits),
        other => other,
    })?;
    bytes.try_into().map_err(|_| length(digits))
}

/// Returns the bytes of any even number of lower-case digits.
pub fn decode_any(text: &str) -> Result<Vec<u8>, HexError> {
    let value = |c: char| match c {
        '0'..='9' | 'a'..='f' => c.to_digit(16).map(|digit| digit as u8),
        _ => None,
    };
    let digits: Vec<u8> = text
        .chars()
        .map(|c| value(c).ok_or(HexError::Digit(c)))
        .collect::<Result<_, _>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    match rest {
        [] => Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect()),
        _ => Err(HexError::Length {
            needed: digits.len() + 1,
            found: digits.len(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_encoded_is_decoded() {
        assert_eq!(decode(&encode(&[0, 0x9f, 255])), Ok([0, 0x9f, 255]));
        for length in ["", "0", "00", "00000", "0000000"] {
            let (needed, found) = (6, length.len());
            let expected = Err(HexError::Length { needed, found });
            assert_eq!(decode::<3>(length), expected, "{length}");
        }
        for (text, digit) in [
            ("00000G", 'G'),
            ("00000A", 'A'),
            ("00ü00", 'ü'),
            ("+00000", '+'),
        ] {
            assert_eq!(decode::<3>(text), Err(HexError::Digit(digit)), "{text}");
        }
    }
}
