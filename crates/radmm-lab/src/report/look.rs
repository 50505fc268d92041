//! How a series looks: colour, dashes and marker by its place in the palette, so that none is told by colour alone.

use super::figure::{Series, Style};
use super::svg::{Area, Spot, Svg, through};

/// Colours of the palette; beyond, they come again.
const COLOURS: usize = 8;

/// The classes of figure.css, and the marker, that belong to a series.
pub(super) struct Look {
    /// In the palette.
    index: usize,
    style: Style,
}

/// Whether lines need a few markers: there are several.
pub(super) fn told_apart(series: &[Series]) -> bool {
    let bare = |one: &&Series| matches!(one.style, Style::Line | Style::Dashed | Style::Stairs);
    series.iter().filter(bare).count() > 1
}

impl Look {
    pub(super) fn of(series: &Series) -> Self {
        Self {
            index: series.colour % COLOURS,
            style: series.style,
        }
    }

    /// Of a line.
    pub(super) fn line(&self) -> String {
        let k = self.index;
        match self.style {
            Style::Dashed => format!("line c{k} e{k}"),
            Style::Level => format!("line level c{k} e{k}"),
            _ => format!("line c{k} d{k}"),
        }
    }

    /// Of the bar between low and high.
    pub(super) fn bar(&self) -> String {
        format!("bar c{}", self.index)
    }

    /// A sample beside a name, its left end here.
    pub(super) fn sample(&self, svg: &mut Svg, (x, y): Spot, width: f64, told_apart: bool) {
        if self.style != Style::Dots {
            svg.line(&self.line(), (x, y), (x + width, y));
        }
        let marked = match self.style {
            Style::Marked | Style::Dots => true,
            Style::Line | Style::Dashed | Style::Stairs => told_apart,
            Style::Level => false,
        };
        if marked {
            self.mark(svg, (x + width / 2.0, y), 3.6);
        }
    }

    /// A marker round a place.
    pub(super) fn mark(&self, svg: &mut Svg, (x, y): Spot, r: f64) {
        let class = format!("mark f{}", self.index);
        let hollow = format!("mark hollow c{}", self.index);
        let polygon = |corners: &[Spot]| {
            let at: Vec<Spot> = corners
                .iter()
                .map(|(dx, dy)| (x + r * dx, y + r * dy))
                .collect();
            through(&at) + "Z"
        };
        match self.index {
            0 => svg.circle(&class, (x, y), r),
            1 => svg.area(&class, square((x, y), 0.9 * r), 0.0),
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
            6 => svg.area(&hollow, square((x, y), 0.9 * r), 0.0),
            _ => svg.path(
                &hollow,
                &polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            ),
        }
    }
}

fn square((x, y): Spot, half: f64) -> Area {
    Area {
        left: x - half,
        top: y - half,
        width: 2.0 * half,
        height: 2.0 * half,
    }
}
