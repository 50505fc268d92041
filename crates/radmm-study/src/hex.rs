//! Thirty-two bytes as hexadecimal digits: keys and hashes.

use thiserror::Error;

/// Why a text is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum HexError {
    #[error("{0:?} is not one of the digits 0 to 9 and a to f")]
    Digit(char),
    #[error("must have 64 hexadecimal digits, not {0}")]
    Length(usize),
}

/// Two lower-case digits a byte.
pub(crate) fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What 64 lower-case digits stand for.
pub(crate) fn bytes(text: &str) -> Result<[u8; 32], HexError> {
    let value = |c: char| match c {
        // One way to write a key, so that it is found by searching for it.
        'A'..='F' => None,
        _ => c.to_digit(16).map(|digit| digit as u8),
    };
    let values: Result<Vec<u8>, HexError> = text
        .chars()
        .map(|c| value(c).ok_or(HexError::Digit(c)))
        .collect();
    let values = values?;
    if values.len() != 64 {
        return Err(HexError::Length(values.len()));
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(values.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Ok(bytes)
}
