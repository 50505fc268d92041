//! TOML strings, keys and numbers, and text cut to a width.

use std::fmt::Write;

/// The most columns of a value quoted in a comment or a message.
const EXCERPT_COLUMNS: usize = 40;

/// Quotes a string, on one line.
pub(crate) fn string(text: &str) -> String {
    let mut written = String::from('"');
    for c in text.chars() {
        match c {
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            c if c.is_control() || is_bidi_control(c) => {
                // Writing into a string does not fail.
                let _ = write!(written, "\\u{:04X}", u32::from(c));
            }
            c => written.push(c),
        }
    }
    written + "\""
}

/// Returns whether a character changes the direction of the text that follows, and can disguise it.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Quotes the beginning of a string.
pub(crate) fn excerpt(text: &str) -> String {
    string(&cut(text, EXCERPT_COLUMNS))
}

/// Cuts a text so that it is at most `most` columns wide.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let (mut end, mut used) = (0, 0);
    for (at, c) in text.char_indices() {
        if used < most {
            end = at;
        }
        used += columns(c);
        if used > most {
            return format!("{}…", &text[..end]);
        }
    }
    text.to_owned()
}

/// Returns an upper bound on the columns that a text takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Counts two columns for East Asian letters and everything beyond them.
fn columns(c: char) -> usize {
    if c < '\u{1100}' { 1 } else { 2 }
}

/// Formats a key: quoted unless it may be bare.
pub(crate) fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        string(name)
    }
}

/// Formats an array of strings.
pub(crate) fn strings<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(string).collect();
    format!("[{}]", texts.join(", "))
}

/// Formats a finite number; integers have no decimal point.
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
    fn bidi_control_characters_are_escaped() {
        assert_eq!(string("a\u{202e}b\u{2069}c"), r#""a\u202Eb\u2069c""#);
        assert_eq!(key("a\u{202a}"), r#""a\u202A""#);
    }

    #[test]
    fn long_text_is_cut_to_a_width() {
        assert_eq!(cut("abcde", 5), "abcde");
        assert_eq!(cut("abcdef", 5), "abcd…");
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語日", 6), "日本…");
        assert_eq!(excerpt(&"x".repeat(100_000)).chars().count(), 42);
    }

    #[test]
    fn keys_are_bare_where_toml_permits() {
        assert_eq!(key("age_2-b"), "age_2-b");
        for name in ["", "hours per week", "a.b", "é", "a\"b", "a=b", "[x]", "#"] {
            assert_eq!(key(name), string(name));
        }
    }

    #[test]
    fn numbers_are_written_in_their_shortest_form() {
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
