//! Text as TOML writes it.

use std::fmt::Write;

/// A string in quotes, on one line.
pub(crate) fn string(text: &str) -> String {
    let mut written = String::from('"');
    for c in text.chars() {
        match c {
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            c if c.is_control() => {
                // Writing into a string does not fail.
                let _ = write!(written, "\\u{:04X}", u32::from(c));
            }
            c => written.push(c),
        }
    }
    written + "\""
}

/// A key: in quotes unless it is a plain word.
pub(crate) fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        string(name)
    }
}

/// Strings in brackets.
pub(crate) fn strings<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(string).collect();
    format!("[{}]", texts.join(", "))
}

/// A finite number, whole ones without a point.
pub(crate) fn number(value: f64) -> String {
    let written = format!("{value:?}");
    match written.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_backslashes_and_control_characters_are_escaped() {
        assert_eq!(string("a \"b\" \\ c"), r#""a \"b\" \\ c""#);
        assert_eq!(
            string("\n\r\t\u{0}\u{1b}\u{7f}\u{85}"),
            r#""\n\r\t\u0000\u001B\u007F\u0085""#
        );
        assert_eq!(string("é #"), "\"é #\"");
    }

    #[test]
    fn keys_are_bare_where_they_may_be() {
        assert_eq!(key("age_2-b"), "age_2-b");
        for name in ["", "hours per week", "a.b", "é", "a\"b", "a=b", "[x]", "#"] {
            assert_eq!(key(name), string(name));
        }
    }

    #[test]
    fn numbers_are_short_and_return() {
        for (value, written) in [
            (100.0, "100"),
            (-0.5, "-0.5"),
            (1e-7, "1e-7"),
            (1e300, "1e300"),
        ] {
            assert_eq!(number(value), written);
        }
    }
}
