//! The markup of text: paragraphs, `**bold**` and `` `code` ``.

use std::fmt::Write;

use crate::plot::svg::escaped;

/// Returns a text as HTML paragraphs, which an empty line separates.
pub(super) fn paragraphs(text: &str) -> String {
    let mut html = String::new();
    for paragraph in text
        .split("\n\n")
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        // Writing to a string does not fail.
        let _ = writeln!(html, "<p>{}</p>", inline(paragraph));
    }
    html
}

/// Returns a line as HTML, with `**bold**` and `` `code` ``. A sign without its partner stays as it is.
pub(super) fn inline(text: &str) -> String {
    let mut html = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(['*', '`']) {
        let (before, from) = rest.split_at(start);
        html += &escaped(before);
        let (sign, element) = match from.strip_prefix("**") {
            Some(_) => ("**", "strong"),
            None => (&from[..1], "code"),
        };
        let inner = &from[sign.len()..];
        match inner.find(sign).filter(|&end| end > 0 && sign != "*") {
            Some(end) => {
                let _ = write!(html, "<{element}>{}</{element}>", escaped(&inner[..end]));
                rest = &inner[end + sign.len()..];
            }
            None => {
                html += sign;
                rest = inner;
            }
        }
    }
    html + &escaped(rest)
}

/// Joins lines into sentences with capitals and full stops.
pub fn sentences(lines: &[String]) -> String {
    let sentence = |line: &String| {
        let mut letters = line.chars();
        // Symbols like ε keep their case.
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first
            .into_iter()
            .chain(letters)
            .chain(['.'])
            .collect::<String>()
    };
    lines.iter().map(sentence).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_sentences() {
        let lines = ["loss: of each model", "ε is a total"].map(str::to_owned);
        assert_eq!(sentences(&lines), "Loss: of each model. ε is a total.");
    }
}
