//! Figures as SVG: all panels in one file, or each panel as one image within a page.

use std::fmt::Write;

use super::figure::{Figure, Panel};
use super::legend;
use super::panel::{self, Margins};
use super::svg::{Rect, Svg, SvgHeader, TextAnchor};

/// The style sheet of every figure.
pub(crate) const STYLE: &str = include_str!("figure.css");

const WIDTH: f64 = 960.0;
const EDGE: f64 = 16.0;
const GUTTER: f64 = 24.0;

impl Figure {
    /// Returns the figure as a file of its own, in light and dark.
    pub fn to_svg(&self) -> String {
        let columns = self.column_count();
        let (width, height) = panel_size(columns);
        let shared = legend::shared(self);
        let margins = Margins::of(&self.panels, width, height, shared.is_none());
        let height = height + margins.legend;
        let inner = WIDTH - 2.0 * EDGE;
        let title = wrapped(&self.title, inner, 20.0);
        let caption = wrapped(&self.caption, inner, 15.0);
        let legend_height = shared.map_or(0.0, |series| legend::height(series, inner) + 8.0);
        let rows = self.panels.len().div_ceil(columns) as f64;
        let top = 18.0 + 26.0 * title.len() as f64 + 8.0;
        let bottom = top + legend_height + rows * (height + 14.0);
        let mut svg = Svg::new(&SvgHeader {
            prefix: &format!("{}-", slug(&self.id)),
            class: "fig",
            width: WIDTH,
            height: (bottom + 21.0 * caption.len() as f64 + 12.0).ceil(),
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
                top: top + legend_height + row as f64 * (height + 14.0),
                width,
                height,
            };
            let id = format!("{}-{k}-", slug(&self.id));
            panel::draw(&mut svg, one, area, margins, &id);
        }
        for (k, line) in caption.iter().enumerate() {
            let at = (EDGE + 4.0, bottom + 14.0 + 21.0 * k as f64);
            svg.text("quiet", at, TextAnchor::Start, line);
        }
        svg.finish()
    }

    /// Returns each panel as an image, for a page that has the style already. The ids in it begin with `prefix`, which no other
    /// figure may have. A panel in a row of its own is there twice, wide and narrow: the page shows the one that fits.
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
                let (width, height) = panel_size(columns);
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

    /// Returns the number of columns that are used.
    pub(crate) fn column_count(&self) -> usize {
        self.columns.min(self.panels.len()).clamp(1, 3)
    }

    /// Returns what the image shows, for screen readers.
    fn description(&self, panels: &[Panel]) -> String {
        let mut text = self.caption.clone();
        for panel in panels {
            let names = legend::distinct(&panel.series);
            let names: Vec<&str> = names.iter().map(|one| one.name.as_str()).collect();
            let space = if text.is_empty() { "" } else { " " };
            let title = if panel.title.is_empty() {
                "Shown"
            } else {
                &panel.title
            };
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "{space}{title}: {} over {}, of {}.",
                panel.y.label,
                panel.x.label,
                names.join("; ")
            );
        }
        text
    }
}

/// One image within a page.
pub(crate) struct SvgPanel {
    /// When it is shown: `wide` or `narrow` screens, or always.
    pub class: &'static str,
    /// The image.
    pub svg: String,
}

/// Returns width and height of a panel, by the number of columns.
pub(super) fn panel_size(columns: usize) -> (f64, f64) {
    let width = (WIDTH - 2.0 * EDGE - GUTTER * (columns as f64 - 1.0)) / columns as f64;
    let height = match columns {
        1 => 400.0,
        2 => 330.0,
        _ => 270.0,
    };
    (width.floor(), height)
}

/// Returns a text as lines that fit a width, in a font of this size.
fn wrapped(words: &str, width: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line)
                if legend::text_width(line, size) + legend::text_width(word, size) + size / 2.0
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

/// Returns a text as an id: letters, digits and hyphens.
pub(crate) fn slug(text: &str) -> String {
    let mut id = String::new();
    for letter in text.chars().flat_map(char::to_lowercase) {
        if letter.is_alphanumeric() {
            id.push(letter);
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
    }
    let id = id.trim_end_matches('-');
    if id.is_empty() { "part" } else { id }.to_owned()
}
