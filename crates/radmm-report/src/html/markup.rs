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
