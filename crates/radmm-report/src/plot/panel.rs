//! Drawing a panel: axes, error bars, lines and markers.

use super::axes::{Axes, AxisLayout};
use super::figure::{Axis, AxisScale, Panel, Point, Series, Style};
use super::legend;
use super::off_scale;
use super::series_style::{SeriesStyle, needs_markers};
use super::svg::{Position, Rect, Svg, TextAnchor, polyline};
use super::ticks::{self, Ticks};

/// The room for a tick of the vertical axis.
const Y_TICK_ROOM: f64 = 40.0;
/// The room for a tick of the horizontal axis.
const X_TICK_ROOM: f64 = 66.0;
/// The room for an error bar; where there is less, not every point has one.
const BAR_ROOM: f64 = 2.7;

/// The room around the axes; the same for all panels of a figure, so that they line up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Margins {
    pub left: f64,
    pub top: f64,
    pub bottom: f64,
    pub right: f64,
    /// The room for a legend of the panel's own.
    pub legend: f64,
}

impl Margins {
    /// Returns room for the widest ticks and the tallest legend of these panels.
    pub(super) fn of(panels: &[Panel], width: f64, height: f64, legends: bool) -> Self {
        let widest = panels
            .iter()
            .flat_map(|panel| y_axis(panel, height).1.labelled)
            .map(|(_, label)| legend::text_width(&label, 14.0))
            .fold(20.0, f64::max);
        let tallest = panels
            .iter()
            .filter(|_| legends)
            .filter(|panel| legend::has_names(panel));
        let titled = panels.iter().any(|panel| !panel.title.is_empty());
        Self {
            left: 9.0 + widest + 32.0,
            top: if titled { 36.0 } else { 12.0 },
            bottom: 56.0,
            right: 14.0,
            legend: tallest
                .map(|panel| legend::height(&panel.series, width - 8.0) + 8.0)
                .fold(0.0, f64::max),
        }
    }
}

/// Draws a panel into an area. No other panel of the page may have the same `id`.
pub(super) fn draw(svg: &mut Svg, panel: &Panel, area: Rect, margins: Margins, id: &str) {
    let left = area.left + margins.left;
    if !panel.title.is_empty() {
        svg.text(
            "strong",
            (area.left + 4.0, area.top + 20.0),
            TextAnchor::Start,
            &panel.title,
        );
    }
    if margins.legend > 0.0 {
        let corner = (area.left + 4.0, area.top + margins.top - 6.0);
        legend::draw(svg, &panel.series, corner, area.width - 8.0);
    }
    let place = Rect {
        left,
        top: area.top + margins.top + margins.legend,
        width: area.width - margins.left - margins.right,
        height: area.height - margins.top - margins.bottom - margins.legend,
    };
    let axes = layout(
        panel,
        place,
        area.height - margins.legend,
        margins.left - 16.0,
    );
    axes.frame(svg);
    let mut drawn = panel.series.iter().flat_map(|series| panel.visible(series));
    if drawn.next().is_none() {
        let middle = (
            place.left + place.width / 2.0,
            place.top + place.height / 2.0,
        );
        svg.text("quiet", middle, TextAnchor::Middle, "no finite values");
        return;
    }
    // Markers at the ends reach beyond the axes.
    let window = Rect {
        left: place.left - 6.0,
        top: place.top - 6.0,
        width: place.width + 12.0,
        height: place.height + 12.0,
    };
    svg.begin_clip(&format!("{id}window"), window);
    let (horizontal, others): (Vec<&Series>, Vec<&Series>) = panel
        .series
        .iter()
        .partition(|series| series.style == Style::Horizontal);
    for series in horizontal {
        horizontal_line(svg, panel, &axes, series);
    }
    let plotters = plotters(panel, &axes, &others);
    // All bars first, so that no bar hides a mean.
    plotters.iter().for_each(|plotter| plotter.bars(svg));
    for plotter in &plotters {
        plotter.line(svg);
        plotter.markers(svg);
    }
    svg.end_clip();
    off_scale::draw(svg, panel, &axes);
}

fn layout(panel: &Panel, place: Rect, height: f64, gap: f64) -> Axes {
    let (range, ticks) = y_axis(panel, height);
    let y = AxisLayout {
        title: panel.y.label.clone(),
        place: (place.top + place.height, place.top),
        range,
        scale: panel.y.scale,
        ticks: ticks.labelled,
        minor: ticks.minor,
    };
    let values = || x_values(panel);
    let count = ((place.width / X_TICK_ROOM) as usize).clamp(2, 12);
    let range = axis_range(&panel.x, values(), ticks::padded);
    let whole = values().all(|x| x.fract() == 0.0);
    let ticks = ticks::ticks(panel.x.scale, range, count, whole);
    let x = AxisLayout {
        title: panel.x.label.clone(),
        place: (place.left, place.left + place.width),
        range,
        scale: panel.x.scale,
        ticks: ticks.labelled,
        minor: ticks.minor,
    };
    Axes { x, y, gap }
}

/// Returns the range and the ticks of the vertical axis of a panel of this height.
fn y_axis(panel: &Panel, height: f64) -> ((f64, f64), Ticks) {
    let points = panel.series.iter().flat_map(|series| panel.visible(series));
    let values = points.flat_map(|point| {
        let range = point.range.into_iter().flat_map(|(low, high)| [low, high]);
        range.chain([point.y])
    });
    let count = (((height - 90.0) / Y_TICK_ROOM) as usize).clamp(2, 9);
    let range = axis_range(&panel.y, values, |scale, low, high| {
        ticks::rounded(scale, low, high, count)
    });
    (range, ticks::ticks(panel.y.scale, range, count, false))
}

/// Returns the values along x, without those of horizontal lines, which have no meaning there.
fn x_values(panel: &Panel) -> impl Iterator<Item = f64> {
    let lines = panel
        .series
        .iter()
        .filter(|series| series.style != Style::Horizontal);
    lines
        .flat_map(|series| panel.visible(series))
        .map(|point| point.x)
}

/// Returns the values at the ends of an axis.
fn axis_range(
    axis: &Axis,
    values: impl Iterator<Item = f64>,
    outward: impl Fn(AxisScale, f64, f64) -> (f64, f64),
) -> (f64, f64) {
    let usable =
        |(low, high): &(f64, f64)| axis.can_show(*low) && axis.can_show(*high) && low < high;
    if let Some(limits) = axis.limits.filter(usable) {
        return limits;
    }
    let (low, high) = values
        .filter(|&value| axis.can_show(value))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
    if low <= high {
        outward(axis.scale, low, high)
    } else if axis.scale == AxisScale::Log {
        (0.1, 1.0)
    } else {
        (0.0, 1.0)
    }
}

fn horizontal_line(svg: &mut Svg, panel: &Panel, axes: &Axes, series: &Series) {
    if let Some(point) = panel.visible(series).next() {
        let y = axes.y.at(point.y);
        let (left, right) = axes.x.place;
        svg.line(&SeriesStyle::of(series).line(), (left, y), (right, y));
    }
}

/// Draws one series.
struct SeriesPlotter<'a> {
    panel: &'a Panel,
    axes: &'a Axes,
    series: &'a Series,
    style: SeriesStyle,
    /// The index of the series.
    rank: usize,
    /// The number of series.
    count: usize,
    /// A shift to the side, so that bars do not hide each other.
    shift: f64,
    /// One point in so many has a bar.
    stride: usize,
    /// Whether lines have a few markers, so that they differ by more than colour.
    markers: bool,
    /// The distance between neighbouring points.
    spacing: f64,
}

fn plotters<'a>(panel: &'a Panel, axes: &'a Axes, all: &[&'a Series]) -> Vec<SeriesPlotter<'a>> {
    let ranged = |series: &Series| series.points.iter().any(|point| point.range.is_some());
    let bars = all.iter().filter(|series| ranged(series)).count();
    let width = axes.x.place.1 - axes.x.place.0;
    let mut bar = 0;
    let mut plotters = Vec::new();
    for (rank, &series) in all.iter().enumerate() {
        let spacing = width / (series.points.len().max(2) - 1) as f64;
        let mut shift = 0.0;
        if ranged(series) {
            let apart = (0.6 * spacing / bars as f64).min(4.0);
            shift = apart * (f64::from(bar) - (bars as f64 - 1.0) / 2.0);
            bar += 1;
        }
        plotters.push(SeriesPlotter {
            panel,
            axes,
            series,
            style: SeriesStyle::of(series),
            rank,
            count: all.len(),
            shift,
            // Odd, so that both kinds of alternating steps have bars.
            stride: (BAR_ROOM * bars as f64 / spacing).ceil().max(1.0) as usize | 1,
            markers: needs_markers(&panel.series),
            spacing,
        });
    }
    plotters
}

impl SeriesPlotter<'_> {
    fn at(&self, point: &Point) -> Position {
        let (x, y) = self.axes.at(point.x, point.y);
        (x + self.shift, y)
    }

    /// Draws error bars with small caps, at every point or evenly spread, between those of the other series.
    fn bars(&self, svg: &mut Svg) {
        let stride = self.stride;
        let first = self.rank * stride / self.count.max(1);
        let cap = (self.spacing * stride as f64 / 5.0).clamp(1.0, 3.0);
        for point in self.series.points.iter().skip(first).step_by(stride) {
            let Some((low, high)) = point.range.filter(|_| self.panel.can_show(point)) else {
                continue;
            };
            if !(self.panel.y.can_show(high) && low.is_finite() && low <= high) {
                continue;
            }
            let (x, top) = self.at(&Point { y: high, ..*point });
            let mut path = String::new();
            let bottom = if self.panel.y.can_show(low) {
                let bottom = self.axes.y.at(low);
                path += &polyline(&[(x - cap, bottom), (x + cap, bottom)]);
                bottom
            } else {
                // Zero is infinitely far down a logarithmic axis.
                self.axes.y.place.0
            };
            path += &polyline(&[(x, bottom), (x, top)]);
            path += &polyline(&[(x - cap, top), (x + cap, top)]);
            svg.path(&self.style.bar(), &path);
        }
    }

    /// Draws the line, broken where a point is missing.
    fn line(&self, svg: &mut Svg) {
        if self.series.style == Style::Markers {
            return;
        }
        let mut path = String::new();
        for piece in self
            .series
            .points
            .split(|point| !self.panel.can_show(point))
        {
            let mut corners: Vec<Position> = Vec::new();
            for point in piece {
                let at = self.at(point);
                if self.series.style == Style::Steps
                    && let Some(before) = corners.last()
                {
                    corners.push((at.0, before.1));
                }
                corners.push(at);
            }
            path += &polyline(&corners);
        }
        if !path.is_empty() {
            svg.path(&self.style.line(), &path);
        }
    }

    /// Draws markers at every point, or at a few to tell lines apart without colour.
    fn markers(&self, svg: &mut Svg) {
        let shown: Vec<&Point> = self
            .series
            .points
            .iter()
            .filter(|p| self.panel.can_show(p))
            .collect();
        match self.series.style {
            Style::Marked | Style::Markers => {
                let r = (0.36 * self.spacing).clamp(1.8, 3.6);
                for point in shown {
                    self.style.marker(svg, self.at(point), r);
                }
            }
            _ if self.markers => {
                let few = shown.len().min(5);
                for k in 0..few {
                    let share =
                        (k as f64 + (self.rank as f64 + 0.5) / self.count as f64) / few as f64;
                    let point = shown[(share * shown.len() as f64) as usize];
                    self.style.marker(svg, self.at(point), 3.6);
                }
            }
            // A single point has no line.
            _ if shown.len() == 1 => self.style.marker(svg, self.at(shown[0]), 3.6),
            _ => {}
        }
    }
}
