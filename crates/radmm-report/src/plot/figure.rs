//! The content of a figure: named numbers, in panels.

/// Panels side by side, under one title that says what is seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// File name and anchor: `fig2-tight`.
    pub id: String,
    /// The finding, in words.
    pub title: String,
    /// The explanation for readers; may have the markup of [`Block::Text`](crate::Block::Text).
    pub caption: String,
    /// The number of panels side by side.
    pub columns: usize,
    /// From left to right, then down.
    pub panels: Vec<Panel>,
}

/// One pair of axes with its series.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The title that sets it apart from the other panels; may be empty.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Later series are drawn over earlier ones.
    pub series: Vec<Series>,
}

/// The label, the scale and the range of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The quantity, with its unit.
    pub label: String,
    /// Linear or logarithmic.
    pub scale: AxisScale,
    /// The values at the ends. `None` takes those of the data: rounded outward on the vertical axis, with a little room on the
    /// horizontal one. Points beyond the limits of the vertical axis are marked by an arrow with their value.
    pub limits: Option<(f64, f64)>,
}

/// Whether equal distances are equal differences or equal ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisScale {
    /// Equal differences.
    Linear,
    /// Equal ratios; values that are not positive are left out.
    Log,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// An index into the palette: the same index has the same colour, marker and dashes everywhere.
    pub colour: usize,
    /// The style of the points.
    pub style: Style,
    /// In the order in which a line connects them.
    pub points: Vec<Point>,
}

/// The style of the points of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line.
    Line,
    /// A dashed line, for a reference.
    Dashed,
    /// A line with a marker at every point.
    Marked,
    /// A step function: constant until it jumps.
    Steps,
    /// One horizontal line across the panel, at the height of its only point.
    Horizontal,
    /// Markers alone.
    Markers,
}

/// A value, and the range over which it varied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The place on the horizontal axis.
    pub x: f64,
    /// The place on the vertical axis; a value that is not finite is left out and breaks a line.
    pub y: f64,
    /// The ends of an error bar.
    pub range: Option<(f64, f64)>,
}

impl Point {
    /// Returns a value without an error bar.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, range: None }
    }
}

impl Axis {
    /// Returns a logarithmic axis that takes its range from the data.
    pub fn logarithmic(label: &str) -> Self {
        Self {
            scale: AxisScale::Log,
            ..Self::linear(label)
        }
    }

    /// Returns a linear axis that takes its range from the data.
    pub fn linear(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            scale: AxisScale::Linear,
            limits: None,
        }
    }

    /// Returns whether the axis can show a value.
    pub(super) fn can_show(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == AxisScale::Linear || value > 0.0)
    }
}

impl Panel {
    /// Returns whether a point can be drawn.
    pub(super) fn can_show(&self, point: &Point) -> bool {
        self.x.can_show(point.x) && self.y.can_show(point.y)
    }

    /// Returns the points of a series that can be drawn. Only the height of a horizontal line matters.
    pub(super) fn visible<'a>(&'a self, series: &'a Series) -> impl Iterator<Item = &'a Point> {
        let horizontal = series.style == Style::Horizontal;
        series
            .points
            .iter()
            .filter(move |point| self.can_show(point) || horizontal && self.y.can_show(point.y))
    }
}
