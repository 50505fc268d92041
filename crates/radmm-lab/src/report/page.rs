//! A page of words, pictures and tables: one HTML file that needs nothing else.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::Serialize;

use super::figure::Figure;
use super::plate::{STYLE, anchor};
use super::svg::escaped;
use super::{numbers, picture};

/// A page.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// At the top, and in the reader's tab.
    pub title: String,
    /// What came out, in a sentence or two; may have the markup of [`Block::Words`].
    pub lead: String,
    /// With more than two, the page begins with their headings.
    pub sections: Vec<Section>,
    /// Small, at the end; may have the markup of [`Block::Words`].
    pub footer: String,
}

/// A part of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Also its anchor.
    pub heading: String,
    /// One under the other.
    pub blocks: Vec<Block>,
}

/// What a section is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Paragraphs, with an empty line between them; `**bold**` and `` `code` `` are the only markup.
    Words(String),
    /// A picture, and under it its numbers.
    Figure(Figure),
    /// A table.
    Table(Grid),
    /// What was expected, and whether it came about.
    Claims(Vec<Claim>),
    /// Lines as they are.
    Code(String),
}

/// A table of words and numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// What it shows.
    pub caption: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// A row may be shorter than the header.
    pub rows: Vec<Vec<String>>,
    /// Only its caption is seen until it is opened.
    pub folded: bool,
}

/// A statement, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// What was to be seen.
    pub expected: String,
    /// What was seen.
    pub observed: String,
    /// Whether they agree; `None` if that cannot be said.
    pub holds: Option<bool>,
}

/// Ids that are taken.
#[derive(Default)]
pub(super) struct Ids(BTreeSet<String>);

impl Ids {
    /// An id for these words that no other part of the page has.
    pub(super) fn take(&mut self, words: &str) -> String {
        let wanted = anchor(words);
        let mut id = wanted.clone();
        let mut number = 1;
        while !self.0.insert(id.clone()) {
            number += 1;
            id = format!("{wanted}-{number}");
        }
        id
    }
}

impl Page {
    /// One file with everything in it: no script, nothing that is fetched.
    pub fn to_html(&self) -> String {
        let mut ids = Ids::default();
        // Before those of figures, so that a heading keeps its name.
        let headings: Vec<String> = self
            .sections
            .iter()
            .map(|section| ids.take(&section.heading))
            .collect();
        let mut text = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>{}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n",
            escaped(&self.title),
            include_str!("style.css"),
            escaped(&self.title),
        );
        if !self.lead.is_empty() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "<div class=\"lead\">\n{}</div>", words(&self.lead));
        }
        if self.sections.len() > 2 {
            text += "<nav aria-label=\"Contents\">\n<ul>\n";
            for (section, id) in self.sections.iter().zip(&headings) {
                let heading = escaped(&section.heading);
                let _ = writeln!(text, "<li><a href=\"#{id}\">{heading}</a></li>");
            }
            text += "</ul>\n</nav>\n";
        }
        for (section, id) in self.sections.iter().zip(&headings) {
            let heading = escaped(&section.heading);
            let _ = writeln!(
                text,
                "<section>\n<h2 id=\"{id}\"><a href=\"#{id}\">{heading}</a></h2>"
            );
            for block in &section.blocks {
                text += &block.to_html(&mut ids);
            }
            text += "</section>\n";
        }
        text += "</main>\n";
        if !self.footer.is_empty() {
            let _ = writeln!(text, "<footer>\n{}</footer>", words(&self.footer));
        }
        text + "</body>\n</html>\n"
    }
}

impl Block {
    fn to_html(&self, ids: &mut Ids) -> String {
        match self {
            Self::Words(text) => words(text),
            Self::Figure(figure) => {
                let tables = numbers::of(figure);
                picture::html(figure, &tables, ids)
            }
            Self::Table(grid) => grid.to_html(),
            Self::Claims(claims) => claimed(claims),
            Self::Code(text) => format!("<pre><code>{}</code></pre>\n", escaped(text)),
        }
    }
}

impl Grid {
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

/// Not by colour alone: a sign, and the word for those who hear it.
fn claimed(claims: &[Claim]) -> String {
    let mut text = "<ul class=\"claims\">\n".to_owned();
    for claim in claims {
        let (class, sign, word) = match claim.holds {
            Some(true) => ("holds", "✓", "holds"),
            Some(false) => ("fails", "✗", "does not hold"),
            None => ("open", "–", "cannot be said"),
        };
        let _ = writeln!(
            text,
            "<li class=\"{class}\"><span class=\"sign\" role=\"img\" aria-label=\"{word}\">{sign}</span>\
             <div><span class=\"of\">Expected</span> {}</div><div><span class=\"of\">Observed</span> {}</div></li>",
            inline(&claim.expected),
            inline(&claim.observed)
        );
    }
    text + "</ul>\n"
}

/// Paragraphs.
pub(super) fn words(text: &str) -> String {
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
