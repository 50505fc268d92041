//! A figure as a picture: all panels in one file, or each in its own within a page.

use std::fmt::Write;

use super::figure::{Figure, Panel};
use super::legend;
use super::panel::{self, Margins};
use super::svg::{Rect, Svg, SvgHeader, TextAnchor};

/// Colours and letters of every figure.
pub(crate) const STYLE: &str = include_str!("figure.css");

const WIDTH: f64 = 960.0;
const EDGE: f64 = 16.0;
const GUTTER: f64 = 24.0;

impl Figure {
    /// A file of its own, in light and dark.
    pub fn to_svg(&self) -> String {
        let columns = self.column_count();
        let (width, height) = size(columns);
        let shared = legend::shared(self);
        let margins = Margins::of(&self.panels, width, height, shared.is_none());
        let height = height + margins.legend;
        let inner = WIDTH - 2.0 * EDGE;
        let title = wrapped(&self.title, inner, 20.0);
        let caption = wrapped(&self.caption, inner, 15.0);
        let key = shared.map_or(0.0, |series| legend::height(series, inner) + 8.0);
        let rows = self.panels.len().div_ceil(columns) as f64;
        let top = 18.0 + 26.0 * title.len() as f64 + 8.0;
        let under = top + key + rows * (height + 14.0);
        let mut svg = Svg::new(&SvgHeader {
            prefix: &format!("{}-", anchor(&self.id)),
            class: "fig",
            width: WIDTH,
            height: (under + 21.0 * caption.len() as f64 + 12.0).ceil(),
            title: &self.title,
            description: &self.description(&self.panels),
            style: Some(STYLE),
        });
        for (k, line) in title.iter().enumerate() {
            let at = (EDGE, 36.0 + 26.0 * k as f64);
            svg.text("heading", at, TextAnchor::Start, line);
        }
        if let Some(series) = shared {
            legend::draw(&mut svg, series, (EDGE + 4.0, top), inner - 8.0);
        }
        for (k, one) in self.panels.iter().enumerate() {
            let (row, column) = (k / columns, k % columns);
            let area = Rect {
                left: EDGE + column as f64 * (width + GUTTER),
                top: top + key + row as f64 * (height + 14.0),
                width,
                height,
            };
            let id = format!("{}-{k}-", anchor(&self.id));
            panel::draw(&mut svg, one, area, margins, &id);
        }
        for (k, line) in caption.iter().enumerate() {
            let at = (EDGE + 4.0, under + 14.0 + 21.0 * k as f64);
            svg.text("quiet", at, TextAnchor::Start, line);
        }
        svg.finish()
    }

    /// Its panels, a picture each, for a page that has the style already; `prefix` is of this figure alone. A panel that
    /// has a row to itself is there twice, wide and narrow, and the page shows the one that fits.
    pub(crate) fn svg_panels(&self, prefix: &str) -> Vec<SvgPanel> {
        let columns = self.column_count();
        let legends = legend::shared(self).is_none();
        let sizes: &[(&'static str, usize)] = match columns {
            1 => &[("wide", 1), ("narrow", 2)],
            _ => &[("", columns)],
        };
        let mut svg_panels = Vec::new();
        for (k, one) in self.panels.iter().enumerate() {
            for &(class, columns) in sizes {
                let (width, height) = size(columns);
                let margins = Margins::of(&self.panels, width, height, legends);
                let area = Rect {
                    left: 0.0,
                    top: 0.0,
                    width,
                    height: height + margins.legend,
                };
                let id = format!("{prefix}-{k}{class}-");
                let title = match one.title.as_str() {
                    "" => &self.title,
                    title => title,
                };
                let mut svg = Svg::new(&SvgHeader {
                    prefix: &id,
                    class: "fig",
                    width,
                    height: area.height,
                    title,
                    description: &self.description(std::slice::from_ref(one)),
                    style: None,
                });
                panel::draw(&mut svg, one, area, margins, &id);
                svg_panels.push(SvgPanel {
                    class,
                    svg: svg.finish(),
                });
            }
        }
        svg_panels
    }

    /// Columns that are used.
    pub(crate) fn column_count(&self) -> usize {
        self.columns.min(self.panels.len()).clamp(1, 3)
    }

    /// What is there to be seen, for those who do not see it.
    fn description(&self, panels: &[Panel]) -> String {
        let mut words = self.caption.clone();
        for panel in panels {
            let names = legend::distinct(&panel.series);
            let names: Vec<&str> = names.iter().map(|one| one.name.as_str()).collect();
            let space = if words.is_empty() { "" } else { " " };
            let title = if panel.title.is_empty() {
                "Shown"
            } else {
                &panel.title
            };
            // Writing to a string does not fail.
            let _ = write!(
                words,
                "{space}{title}: {} over {}, of {}.",
                panel.y.label,
                panel.x.label,
                names.join("; ")
            );
        }
        words
    }
}

/// One panel as a picture.
pub(crate) struct SvgPanel {
    /// When it is shown: always, or on wide or narrow screens.
    pub class: &'static str,
    /// The picture.
    pub svg: String,
}

/// Of a panel beside how many others.
fn size(columns: usize) -> (f64, f64) {
    let width = (WIDTH - 2.0 * EDGE - GUTTER * (columns as f64 - 1.0)) / columns as f64;
    let height = match columns {
        1 => 400.0,
        2 => 330.0,
        _ => 270.0,
    };
    (width.floor(), height)
}

/// Lines that fit a width in letters of this size.
fn wrapped(words: &str, width: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line)
                if legend::across(line, size) + legend::across(word, size) + size / 2.0
                    <= width =>
            {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Words as an id: letters, digits and hyphens.
pub(crate) fn anchor(words: &str) -> String {
    let mut id = String::new();
    for letter in words.chars().flat_map(char::to_lowercase) {
        if letter.is_alphanumeric() {
            id.push(letter);
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
    }
    let id = id.trim_end_matches('-');
    if id.is_empty() { "part" } else { id }.to_owned()
}
