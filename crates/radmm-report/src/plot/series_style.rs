//! How a series looks: colour, dashes and marker by its place in the palette, so that none is told by colour alone.

use super::figure::{Series, Style};
use super::svg::{Position, Rect, Svg, polyline};

/// Colours of the palette; beyond, they come again.
const COLOURS: usize = 8;

/// The classes of figure.css, and the marker, that belong to a series.
pub(crate) struct SeriesStyle {
    /// In the palette.
    index: usize,
    style: Style,
}

/// Whether lines need a few markers: there are several.
pub(crate) fn needs_markers(series: &[Series]) -> bool {
    let bare = |one: &&Series| matches!(one.style, Style::Line | Style::Dashed | Style::Steps);
    series.iter().filter(bare).count() > 1
}

impl SeriesStyle {
    pub(crate) fn of(series: &Series) -> Self {
        Self {
            index: series.colour % COLOURS,
            style: series.style,
        }
    }

    /// Of a line.
    pub(crate) fn line(&self) -> String {
        let k = self.index;
        match self.style {
            Style::Dashed => format!("line c{k} e{k}"),
            Style::Horizontal => format!("line level c{k} e{k}"),
            _ => format!("line c{k} d{k}"),
        }
    }

    /// Of the bar between low and high.
    pub(crate) fn bar(&self) -> String {
        format!("bar c{}", self.index)
    }

    /// A sample beside a name, its left end here.
    pub(crate) fn sample(&self, svg: &mut Svg, (x, y): Position, width: f64, needs_markers: bool) {
        if self.style != Style::Markers {
            svg.line(&self.line(), (x, y), (x + width, y));
        }
        let marked = match self.style {
            Style::Marked | Style::Markers => true,
            Style::Line | Style::Dashed | Style::Steps => needs_markers,
            Style::Horizontal => false,
        };
        if marked {
            self.mark(svg, (x + width / 2.0, y), 3.6);
        }
    }

    /// A marker round a place.
    pub(crate) fn mark(&self, svg: &mut Svg, (x, y): Position, r: f64) {
        let class = format!("mark f{}", self.index);
        let hollow = format!("mark hollow c{}", self.index);
        let polygon = |corners: &[Position]| {
            let at: Vec<Position> = corners
                .iter()
                .map(|(dx, dy)| (x + r * dx, y + r * dy))
                .collect();
            polyline(&at) + "Z"
        };
        match self.index {
            0 => svg.circle(&class, (x, y), r),
            1 => svg.rect(&class, square((x, y), 0.9 * r), 0.0),
            2 => svg.path(
                &class,
                &polygon(&[(0.0, -1.25), (1.15, 0.85), (-1.15, 0.85)]),
            ),
            3 => svg.path(
                &class,
                &polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            ),
            4 => svg.path(
                &class,
                &polygon(&[(0.0, 1.25), (1.15, -0.85), (-1.15, -0.85)]),
            ),
            5 => svg.circle(&hollow, (x, y), r),
            6 => svg.rect(&hollow, square((x, y), 0.9 * r), 0.0),
            _ => svg.path(
                &hollow,
                &polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            ),
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
