//! The markup of text: paragraphs, `**bold**` and `` `code` ``.

use std::fmt::Write;

use crate::plot::svg::escaped;

/// Paragraphs.
pub(super) fn paragraphs(text: &str) -> String {
    let mut html = String::new();
    for paragraph in text
        .split("\n\n")
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let _ = writeln!(html, "<p>{}</p>", inline(paragraph));
    }
    html
}

/// `**bold**` and `` `code` ``; a sign without its partner stands for itself.
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
