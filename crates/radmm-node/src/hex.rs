//! Bytes as hexadecimal digits.

/// Returns two lower-case digits for each byte.
pub(crate) fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads `2 N` lower-case digits; `None` if there are more or fewer, or other characters.
pub(crate) fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let bytes: Option<Vec<u8>> = pairs
        .iter()
        .map(|&[high, low]| Some(value(high)? << 4 | value(low)?))
        .collect();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_case_digits_are_read_back_and_nothing_else_is() {
        assert_eq!(bytes(&digits(&[0, 0x9f, 255])), Some([0, 0x9f, 255]));
        for wrong in [
            "", "0", "00", "00000", "0000000", "00000G", "00000A", "00ü00",
        ] {
            assert_eq!(bytes::<3>(wrong), None, "{wrong}");
        }
    }
}
