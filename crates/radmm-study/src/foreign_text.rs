//! Texts of other parties, made safe for logs, terminals and pages.
//!
//! A neighbour chooses the reasons that it gives and the names in its files. A control character in them could forge a line of a
//! log or move the cursor of a terminal, and an invisible one could show another text than the one that was sent.

/// The most characters that are shown of a text that another party wrote.
pub const MAX_FOREIGN_TEXT: usize = 300;

/// Returns a text in visible characters, cut to `max` of them if it is longer. Applied twice, it changes nothing more.
///
/// Everything that is not visible is escaped: control characters, escape sequences of terminals, separators of lines, characters
/// without width, and those that change the direction of writing.
pub fn visible(text: &str, max: usize) -> String {
    let escaped = |c: char| -> String {
        match c {
            '"' | '\'' | '\\' => c.to_string(),
            _ => c.escape_debug().collect(),
        }
    };
    // One more than fits, since escaping only makes a text longer.
    let text: String = text.chars().take(max + 1).map(escaped).collect();
    if text.chars().count() <= max {
        return text;
    }
    text.chars().take(max - 1).chain(['…']).collect()
}

/// Returns a text of another party in quotation marks and visible characters, so that its end can be told from our own words.
pub fn quoted(text: &str) -> String {
    let text: String = text.chars().take(MAX_FOREIGN_TEXT + 1).collect();
    let text = text.replace('\\', r"\\").replace('"', "\\\"");
    format!("\"{}\"", visible(&text, MAX_FOREIGN_TEXT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_visible_is_escaped() {
        for (hostile, shown) in [
            ("two\nlines\r", r"two\nlines\r"),
            ("\u{1b}[2J\u{7}\u{9b}1m", r"\u{1b}[2J\u{7}\u{9b}1m"),
            (
                "\u{202a}\u{202e}\u{2066}\u{2069}",
                r"\u{202a}\u{202e}\u{2066}\u{2069}",
            ),
            ("\u{2028}\u{2029}", r"\u{2028}\u{2029}"),
            (
                "\u{200b}\u{200d}\u{feff}\u{ad}",
                r"\u{200b}\u{200d}\u{feff}\u{ad}",
            ),
            // A mark that joins the character before it, and a space that looks like another.
            ("\u{301}\u{a0}", r"\u{301}\u{a0}"),
            ("Zürich, 3 × 5 €", "Zürich, 3 × 5 €"),
        ] {
            let once = visible(hostile, MAX_FOREIGN_TEXT);
            assert_eq!(once, shown);
            assert_eq!(visible(&once, MAX_FOREIGN_TEXT), once);
        }
    }

    #[test]
    fn a_long_text_is_cut() {
        let long = visible(&"\n".repeat(10_000), 60);
        assert_eq!(long.chars().count(), 60);
        assert!(long.ends_with('…'));
        assert_eq!(visible(&long, 60), long);
        assert_eq!(
            quoted(&"é".repeat(10_000)).chars().count(),
            MAX_FOREIGN_TEXT + 2
        );
    }

    #[test]
    fn a_quoted_text_ends_where_it_ends() {
        assert_eq!(quoted("gone"), "\"gone\"");
        assert_eq!(quoted(r#"gone" and \"#), r#""gone\" and \\""#);
        assert_eq!(quoted("\u{202e}x\n"), r#""\u{202e}x\n""#);
    }
}
