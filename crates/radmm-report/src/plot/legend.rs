//! The legend: a sample of each series beside its name.

use super::figure::{Figure, Panel, Series};
use super::series_style::{SeriesStyle, needs_markers};
use super::svg::{Svg, TextAnchor};

/// The width of a sample beside a name.
pub(crate) const SAMPLE_WIDTH: f64 = 34.0;
/// The height of a line of names.
const LINE: f64 = 24.0;
/// The space between a name and the next sample.
const SPACE: f64 = 24.0;

/// Returns the series of the panel that has all series of the others, for one legend. Without such a panel, every panel has a
/// legend of its own.
pub(crate) fn shared(figure: &Figure) -> Option<&[Series]> {
    let all = figure
        .panels
        .iter()
        .max_by_key(|panel| panel.series.len())?;
    let known = |one: &Series| {
        all.series
            .iter()
            .any(|other| other.name == one.name && other.colour == one.colour)
    };
    let every = figure
        .panels
        .iter()
        .all(|panel| panel.series.iter().all(known));
    every.then_some(&all.series)
}

/// Returns the height of a legend of this width.
pub(crate) fn height(series: &[Series], width: f64) -> f64 {
    lines(series, width).len() as f64 * LINE
}

/// Draws a legend whose upper left corner is given.
pub(crate) fn draw(svg: &mut Svg, series: &[Series], (left, top): (f64, f64), width: f64) {
    let markers = needs_markers(series);
    for (row, line) in lines(series, width).into_iter().enumerate() {
        let y = top + LINE * (row as f64 + 0.5);
        let mut x = left;
        for one in line {
            SeriesStyle::of(one).sample(svg, (x, y), SAMPLE_WIDTH, markers);
            svg.text(
                "",
                (x + SAMPLE_WIDTH + 8.0, y + 5.0),
                TextAnchor::Start,
                &one.name,
            );
            x += entry_width(one);
        }
    }
}

/// Returns the first series of each name.
pub(crate) fn distinct(series: &[Series]) -> Vec<&Series> {
    let mut seen: Vec<&Series> = Vec::new();
    for one in series {
        if !one.name.is_empty() && !seen.iter().any(|other| other.name == one.name) {
            seen.push(one);
        }
    }
    seen
}

/// Returns the names, as many in a line as fit.
fn lines(series: &[Series], width: f64) -> Vec<Vec<&Series>> {
    let mut lines: Vec<Vec<&Series>> = Vec::new();
    let mut left = 0.0;
    for one in distinct(series) {
        let needed = entry_width(one) - SPACE;
        match lines.last_mut() {
            Some(line) if left + needed <= width => line.push(one),
            _ => {
                lines.push(vec![one]);
                left = 0.0;
            }
        }
        left += entry_width(one);
    }
    lines
}

fn entry_width(one: &Series) -> f64 {
    SAMPLE_WIDTH + 8.0 + text_width(&one.name, 15.0) + SPACE
}

/// Returns a generous estimate of the width of a text in a font of this size: the reader's font is not known here.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let share = |letter: char| match letter {
        ' ' | '.' | ',' | ':' | ';' | '\'' | 'i' | 'j' | 'l' | 'I' | '(' | ')' | '|' => 0.36,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.94,
        'A'..='Z' => 0.72,
        _ => 0.6,
    };
    text.chars().map(share).sum::<f64>() * size
}

/// Returns whether a panel has series with names.
pub(crate) fn has_names(panel: &Panel) -> bool {
    !distinct(&panel.series).is_empty()
}
