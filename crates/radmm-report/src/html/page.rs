//! A page of text, figures and tables: one HTML file that needs nothing else.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::Serialize;

use super::html_figure;
use super::markup::{inline, paragraphs};
use super::text_table::TextTable;
use crate::plot::svg::escaped;
use crate::plot::{DotPlot, Figure, STYLE, slug};

/// A page.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The heading, also the title of the browser's tab.
    pub title: String,
    /// The outcome in a sentence or two; may have the markup of [`Block::Text`].
    pub lead: String,
    /// The results to be seen first: three or four figures above the lead.
    pub headlines: Vec<Headline>,
    /// With more than two sections, the page lists their headings.
    pub sections: Vec<Section>,
    /// Small print at the end; may have the markup of [`Block::Text`].
    pub footer: String,
}

/// One result, to be seen at a glance.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// The quantity: `held-out accuracy`.
    pub label: String,
    /// Its value: `81.9 ± 0.3 %`.
    pub value: String,
    /// The explanation for readers; may have the markup of [`Block::Text`].
    pub note: String,
}

impl Headline {
    /// Returns a headline of a label, a value and a note.
    pub fn new(label: &str, value: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            label: label.to_owned(),
            value: value.into(),
            note: note.into(),
        }
    }
}

/// A part of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The heading, also the section's anchor.
    pub heading: String,
    /// The content, downwards.
    pub blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Paragraphs with an empty line between them; `**bold**` and `` `code` `` are the only markup.
    Text(String),
    /// A figure, with its numbers folded under it.
    Figure(Figure),
    /// A dot plot.
    DotPlot(DotPlot),
    /// A table.
    Table(TextTable),
    /// Expectations, and whether they were met.
    Claims(Vec<Claim>),
    /// Preformatted lines.
    Code(String),
    /// Preformatted lines that are hidden until the reader opens them.
    FoldedCode {
        /// The line that is always shown.
        summary: String,
        /// The lines.
        code: String,
    },
}

/// An expectation, and whether it was met.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The expectation.
    pub expected: String,
    /// The observation.
    pub observed: String,
    /// Whether they agree; `None` if that cannot be decided.
    pub holds: Option<bool>,
}

/// The ids that the elements of a page have.
#[derive(Default)]
pub(super) struct Ids(BTreeSet<String>);

impl Ids {
    /// Returns an id made from a text that no other element has.
    pub(super) fn unique(&mut self, text: &str) -> String {
        let wanted = slug(text);
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
    /// Returns the page as one self-contained file: it runs no script and fetches nothing.
    pub fn to_html(&self) -> String {
        let mut ids = Ids::default();
        // Before those of figures, so that a heading keeps its name.
        let headings: Vec<String> = self
            .sections
            .iter()
            .map(|section| ids.unique(&section.heading))
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
            Self::Figure(figure) => html_figure::figure(figure, ids),
            Self::DotPlot(plot) => html_figure::dot_plot(plot, ids),
            Self::Table(table) => table.to_html(),
            Self::Claims(claims) => claim_list(claims),
            Self::Code(code) => preformatted(code),
            Self::FoldedCode { summary, code } => format!(
                "<details>\n<summary>{}</summary>\n{}</details>\n",
                inline(summary),
                preformatted(code)
            ),
        }
    }
}

fn preformatted(code: &str) -> String {
    format!("<pre tabindex=\"0\"><code>{}</code></pre>\n", escaped(code))
}

/// Returns the headline figures as a description list.
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

/// Returns claims as a list. A sign, and a word for screen readers, tell what a colour alone would not.
fn claim_list(claims: &[Claim]) -> String {
    let mut text = "<ul class=\"claims\">\n".to_owned();
    for claim in claims {
        let (class, sign, word) = match claim.holds {
            Some(true) => ("holds", "✓", "holds"),
            Some(false) => ("fails", "✗", "does not hold"),
            None => ("open", "–", "undecided"),
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
