//! Tables of text, for pages and terminals.

use std::fmt::Write;

use super::markup::inline;
use crate::plot::svg::escaped;

/// A table of words and numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct TextTable {
    /// What it shows.
    pub caption: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// A row may be shorter than the header.
    pub rows: Vec<Vec<String>>,
    /// Only its caption is seen until it is opened.
    pub folded: bool,
}

impl TextTable {
    /// Columns in which every value begins like a number are set to the right.
    pub(super) fn to_html(&self) -> String {
        let right: Vec<bool> = (0..self.header.len()).map(|k| self.numeric(k)).collect();
        let class = |k: usize| match right.get(k) {
            Some(true) => " class=\"number\"",
            _ => "",
        };
        let caption = escaped(&self.caption);
        let mut text = String::new();
        if self.folded {
            let _ = writeln!(text, "<details>\n<summary>{caption}</summary>");
        }
        text += "<div class=\"scroll\" tabindex=\"0\">\n<table>\n";
        if !self.folded && !caption.is_empty() {
            let _ = writeln!(text, "<caption>{caption}</caption>");
        }
        text += "<thead>\n<tr>";
        for (k, name) in self.header.iter().enumerate() {
            let _ = write!(text, "<th scope=\"col\"{}>{}</th>", class(k), inline(name));
        }
        text += "</tr>\n</thead>\n<tbody>\n";
        for row in &self.rows {
            text += "<tr>";
            for k in 0..self.header.len().max(row.len()) {
                let cell = row.get(k).map_or("", String::as_str);
                let _ = write!(text, "<td{}>{}</td>", class(k), inline(cell));
            }
            text += "</tr>\n";
        }
        text += "</tbody>\n</table>\n</div>\n";
        if self.folded {
            text += "</details>\n";
        }
        text
    }

    fn numeric(&self, column: usize) -> bool {
        let mut cells = self
            .rows
            .iter()
            .filter_map(|row| row.get(column))
            .peekable();
        let number = |cell: &String| {
            let mut letters = cell
                .trim_start_matches(['-', '−', '+', '<', '≤', '≈', ' '])
                .chars();
            letters
                .next()
                .is_none_or(|first| first.is_ascii_digit() || "∞–".contains(first))
        };
        cells.peek().is_some() && cells.all(number)
    }
}
