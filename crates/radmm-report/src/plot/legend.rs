//! Which line is which.

use super::figure::{Figure, Panel, Series};
use super::series_style::{SeriesStyle, needs_markers};
use super::svg::{Svg, TextAnchor};

/// Of a sample beside a name.
pub(crate) const SAMPLE_WIDTH: f64 = 34.0;
/// Of a line of names.
const LINE: f64 = 24.0;
/// Between a name and the next sample.
const SPACE: f64 = 24.0;

/// The series that stand for all: those of the panel that has everything the others have. Without one, every panel has
/// a legend of its own.
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

/// How much room it takes across this width.
pub(crate) fn height(series: &[Series], width: f64) -> f64 {
    lines(series, width).len() as f64 * LINE
}

/// Draws it, from this corner on.
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
            x += room(one);
        }
    }
}

/// A name is there once, though two series may share it.
pub(crate) fn distinct(series: &[Series]) -> Vec<&Series> {
    let mut seen: Vec<&Series> = Vec::new();
    for one in series {
        if !one.name.is_empty() && !seen.iter().any(|other| other.name == one.name) {
            seen.push(one);
        }
    }
    seen
}

/// The names that fit beside each other.
fn lines(series: &[Series], width: f64) -> Vec<Vec<&Series>> {
    let mut lines: Vec<Vec<&Series>> = Vec::new();
    let mut left = 0.0;
    for one in distinct(series) {
        let needed = room(one) - SPACE;
        match lines.last_mut() {
            Some(line) if left + needed <= width => line.push(one),
            _ => {
                lines.push(vec![one]);
                left = 0.0;
            }
        }
        left += room(one);
    }
    lines
}

fn room(one: &Series) -> f64 {
    SAMPLE_WIDTH + 8.0 + across(&one.name, 15.0) + SPACE
}

/// About how wide words are in letters of this size: the reader's font is not known here, so it is a generous guess.
pub(crate) fn across(words: &str, size: f64) -> f64 {
    let share = |letter: char| match letter {
        ' ' | '.' | ',' | ':' | ';' | '\'' | 'i' | 'j' | 'l' | 'I' | '(' | ')' | '|' => 0.36,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.94,
        'A'..='Z' => 0.72,
        _ => 0.6,
    };
    words.chars().map(share).sum::<f64>() * size
}

/// Whether a panel needs a legend.
pub(crate) fn wanted(panel: &Panel) -> bool {
    !distinct(&panel.series).is_empty()
}
