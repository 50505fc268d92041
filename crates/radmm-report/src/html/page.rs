//! A page of words, pictures and tables: one HTML file that needs nothing else.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::Serialize;

use super::markup::{inline, paragraphs};
use super::text_table::TextTable;
use super::{data_table, html_figure};
use crate::plot::svg::escaped;
use crate::plot::{Figure, STYLE, anchor};

/// A page.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// At the top, and in the reader's tab.
    pub title: String,
    /// What came out, in a sentence or two; may have the markup of [`Block::Text`].
    pub lead: String,
    /// The results to be seen first, as large figures above the lead.
    pub headlines: Vec<Headline>,
    /// With more than two, the page begins with their headings.
    pub sections: Vec<Section>,
    /// Small, at the end; may have the markup of [`Block::Text`].
    pub footer: String,
}

/// One result, seen at a glance.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// What it is: `held-out accuracy`.
    pub label: String,
    /// The figure itself: `81.9 %`.
    pub value: String,
    /// What one must know to read it; may have the markup of [`Block::Text`].
    pub note: String,
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
    Text(String),
    /// A picture, and under it its numbers.
    Figure(Figure),
    /// A table.
    Table(TextTable),
    /// What was expected, and whether it came about.
    Claims(Vec<Claim>),
    /// Lines as they are.
    Code(String),
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
            include_str!("page.css"),
            escaped(&self.title),
        );
        text += &headlines(&self.headlines);
        if !self.lead.is_empty() {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "<div class=\"lead\">\n{}</div>",
                paragraphs(&self.lead)
            );
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
            let _ = writeln!(text, "<footer>\n{}</footer>", paragraphs(&self.footer));
        }
        text + "</body>\n</html>\n"
    }
}

impl Block {
    fn to_html(&self, ids: &mut Ids) -> String {
        match self {
            Self::Text(text) => paragraphs(text),
            Self::Figure(figure) => {
                let tables = data_table::of(figure);
                html_figure::html(figure, &tables, ids)
            }
            Self::Table(grid) => grid.to_html(),
            Self::Claims(claims) => claimed(claims),
            Self::Code(text) => format!("<pre><code>{}</code></pre>\n", escaped(text)),
        }
    }
}

/// The headline figures as a list of terms; empty without any.
fn headlines(headlines: &[Headline]) -> String {
    if headlines.is_empty() {
        return String::new();
    }
    let mut text = "<dl class=\"headlines\">\n".to_owned();
    for one in headlines {
        let _ = writeln!(
            text,
            "<div><dt>{}</dt><dd class=\"value\">{}</dd><dd>{}</dd></div>",
            escaped(&one.label),
            escaped(&one.value),
            inline(&one.note)
        );
    }
    text + "</dl>\n"
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
