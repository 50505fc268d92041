//! Amounts of memory as people write them: `4 GB`, `512MiB`.

/// The units, by their names in lower case.
const UNITS: [(&str, u64); 8] = [
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// The form of an amount, for messages.
pub const FORM: &str = "an amount of memory, such as \"4 GB\" or \"512 MiB\"";

/// Returns the number of bytes; `None` unless the text is a number and a unit, or zero.
///
/// ```
/// use radmm_study::byte_size::parse;
/// assert_eq!(parse("4 GB"), Some(4_000_000_000));
/// assert_eq!(parse("1.5gib"), Some(3 << 29));
/// assert_eq!(parse("4"), None);
/// ```
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    if text == "0" {
        return Some(0);
    }
    let end = text.find(|c: char| c != '.' && !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let unit = unit.trim().to_ascii_lowercase();
    let (_, bytes) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let size = number * *bytes as f64;
    // Far above any memory, and far below the end of 64 bits.
    (size <= 1e18).then_some(size as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_a_number_and_a_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("0 GB", 0),
            ("1kB", 1000),
            (" 2.5 MB ", 2_500_000),
            ("3TiB", 3 << 40),
            ("64 kib", 65_536),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "GB",
            "4",
            "-1 GB",
            "4 G",
            "4 gigabytes",
            "1e3 MB",
            "..5 MB",
            "nan GB",
            "inf GB",
            "4 GB 2",
            "9999999999 TB",
            ".",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
