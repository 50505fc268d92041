//! What a picture shows: numbers with names, in panels.

/// A picture: panels side by side under one title that says what is seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// File name and anchor: `fig2-tight`.
    pub id: String,
    /// What is seen.
    pub title: String,
    /// What one must know to read it.
    pub caption: String,
    /// How many panels are side by side.
    pub columns: usize,
    /// From left to right, then down.
    pub panels: Vec<Panel>,
}

/// One pair of axes and what is drawn between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What sets it apart from the other panels; may be empty.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// Later ones are drawn over earlier ones.
    pub series: Vec<Series>,
}

/// A direction in which values grow.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What the values are, with their unit.
    pub label: String,
    /// How they are laid out.
    pub scale: AxisScale,
    /// The values at the ends; without, the data's: upwards rounded outward, to the right with a little room.
    pub limits: Option<(f64, f64)>,
}

/// Equal steps are equal differences, or equal ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisScale {
    /// Differences.
    Linear,
    /// Ratios; values that are not positive are left out.
    Log,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// Of the palette: the same number is the same colour, marker and dashes everywhere.
    pub colour: usize,
    /// How it is drawn.
    pub style: Style,
    /// In the order in which a line goes through them.
    pub points: Vec<Point>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line.
    Line,
    /// A line in dashes, for what is compared with.
    Dashed,
    /// A line with a marker at every point.
    Marked,
    /// Level until it jumps, like a total that is paid for.
    Steps,
    /// One level line across the panel, at the height of its only point.
    Horizontal,
    /// Markers alone.
    Markers,
}

/// A value, and between which values it varied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Upwards; what is not finite is left out and breaks a line.
    pub y: f64,
    /// Low and high: a vertical bar.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// Whether the axis has a place for a value.
    pub(super) fn holds(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == AxisScale::Linear || value > 0.0)
    }
}

impl Panel {
    /// Whether a point can be drawn.
    pub(super) fn shows(&self, point: &Point) -> bool {
        self.x.holds(point.x) && self.y.holds(point.y)
    }

    /// The points of a series that can be drawn; of a level line only its height matters.
    pub(super) fn shown<'a>(&'a self, series: &'a Series) -> impl Iterator<Item = &'a Point> {
        let level = series.style == Style::Horizontal;
        series
            .points
            .iter()
            .filter(move |point| self.shows(point) || level && self.y.holds(point.y))
    }
}
