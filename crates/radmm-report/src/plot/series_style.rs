//! The look of a series: colour, dashes and marker by its index in the palette, so that no two differ by colour alone.

use super::figure::{Series, Style};
use super::svg::{Position, Rect, Svg, polyline};

/// The number of colours in the palette; indices beyond it start again.
const COLOURS: usize = 8;

/// The CSS classes of `figure.css` and the marker of a series.
pub(crate) struct SeriesStyle {
    /// The index in the palette.
    index: usize,
    style: Style,
}

/// Returns whether lines need a few markers to be told apart without colour: there are several.
pub(crate) fn needs_markers(series: &[Series]) -> bool {
    let bare = |one: &&Series| matches!(one.style, Style::Line | Style::Dashed | Style::Steps);
    series.iter().filter(bare).count() > 1
}

impl SeriesStyle {
    pub(crate) fn new(colour: usize, style: Style) -> Self {
        let index = colour % COLOURS;
        Self { index, style }
    }

    pub(crate) fn of(series: &Series) -> Self {
        Self::new(series.colour, series.style)
    }

    /// Returns the classes of a line.
    pub(crate) fn line(&self) -> String {
        let k = self.index;
        match self.style {
            Style::Dashed => format!("line c{k} e{k}"),
            Style::Horizontal => format!("line level c{k} e{k}"),
            _ => format!("line c{k} d{k}"),
        }
    }

    /// Returns the classes of an error bar.
    pub(crate) fn bar(&self) -> String {
        format!("bar c{}", self.index)
    }

    /// Returns the class of a filled shape.
    pub(crate) fn fill(&self) -> String {
        format!("f{}", self.index)
    }

    /// Draws a sample for a legend, whose left end is given.
    pub(crate) fn sample(&self, svg: &mut Svg, (x, y): Position, width: f64, markers: bool) {
        if self.style != Style::Markers {
            svg.line(&self.line(), (x, y), (x + width, y));
        }
        let marked = match self.style {
            Style::Marked | Style::Markers => true,
            Style::Line | Style::Dashed | Style::Steps => markers,
            Style::Horizontal => false,
        };
        if marked {
            self.marker(svg, (x + width / 2.0, y), 3.6);
        }
    }

    /// Draws a marker around a position.
    pub(crate) fn marker(&self, svg: &mut Svg, (x, y): Position, r: f64) {
        let class = format!("mark f{}", self.index);
        let hollow = format!("mark hollow c{}", self.index);
        let polygon = |corners: &[Position]| {
            let at: Vec<Position> = corners
                .iter()
                .map(|(dx, dy)| (x + r * dx, y + r * dy))
                .collect();
            polyline(&at) + "Z"
        };
        let triangle =
            |up: f64| polygon(&[(0.0, -1.25 * up), (1.15, 0.85 * up), (-1.15, 0.85 * up)]);
        let diamond = || polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]);
        match self.index {
            0 => svg.circle(&class, (x, y), r),
            1 => svg.rect(&class, square((x, y), 0.9 * r), 0.0),
            2 => svg.path(&class, &triangle(1.0)),
            3 => svg.path(&class, &diamond()),
            4 => svg.path(&class, &triangle(-1.0)),
            5 => svg.circle(&hollow, (x, y), r),
            6 => svg.rect(&hollow, square((x, y), 0.9 * r), 0.0),
            _ => svg.path(&hollow, &diamond()),
        }
    }
}

fn square((x, y): Position, half: f64) -> Rect {
    Rect {
        left: x - half,
        top: y - half,
        width: 2.0 * half,
        height: 2.0 * half,
    }
}
