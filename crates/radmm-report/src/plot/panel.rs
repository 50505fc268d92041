//! One pair of axes, drawn.

use super::axes::{Axes, AxisLayout};
use super::figure::{Axis, AxisScale, Panel, Point, Series, Style};
use super::legend;
use super::series_style::{SeriesStyle, needs_markers};
use super::svg::{Position, Rect, Svg, TextAnchor, polyline};
use super::ticks::{self, Ticks};

/// A tick of the upward axis has about this much room, and one of the other.
const UP: f64 = 40.0;
const RIGHT: f64 = 66.0;
/// Bars need about this much room each; where there is less, not every point has one.
const BAR: f64 = 2.7;

/// Where the parts of a panel are; the same for all panels of a figure, so that they line up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Margins {
    pub left: f64,
    pub top: f64,
    pub bottom: f64,
    pub right: f64,
    /// For a legend of its own.
    pub legend: f64,
}

impl Margins {
    /// Room for the widest ticks and the tallest legend of these panels.
    pub(super) fn of(panels: &[Panel], width: f64, height: f64, legends: bool) -> Self {
        let widest = panels
            .iter()
            .flat_map(|panel| up(panel, height).1.labelled)
            .map(|(_, words)| legend::across(&words, 14.0))
            .fold(20.0, f64::max);
        let tallest = panels
            .iter()
            .filter(|_| legends)
            .filter(|panel| legend::wanted(panel));
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

/// Draws a panel into an area; `id` is of this panel alone.
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
    let mut drawn = panel.series.iter().flat_map(|series| panel.shown(series));
    if drawn.next().is_none() {
        let middle = (
            place.left + place.width / 2.0,
            place.top + place.height / 2.0,
        );
        svg.text("quiet", middle, TextAnchor::Middle, "no finite values");
        return;
    }
    // Markers at the ends reach over them.
    let window = Rect {
        left: place.left - 6.0,
        top: place.top - 6.0,
        width: place.width + 12.0,
        height: place.height + 12.0,
    };
    svg.begin_clip(&format!("{id}window"), window);
    let (levels, others): (Vec<&Series>, Vec<&Series>) = panel
        .series
        .iter()
        .partition(|series| series.style == Style::Horizontal);
    for series in levels {
        level(svg, panel, &axes, series);
    }
    let plotters = plotters(panel, &axes, &others);
    // No bar hides a mean.
    plotters.iter().for_each(|plotter| plotter.bars(svg));
    for plotter in &plotters {
        plotter.line(svg);
        plotter.marks(svg);
    }
    svg.end_clip();
}

fn layout(panel: &Panel, place: Rect, height: f64, gap: f64) -> Axes {
    let (range, ticks) = up(panel, height);
    let y = AxisLayout {
        title: panel.y.label.clone(),
        place: (place.top + place.height, place.top),
        range,
        scale: panel.y.scale,
        ticks: ticks.labelled,
        minor: ticks.minor,
    };
    let values = || across(panel);
    let count = ((place.width / RIGHT) as usize).clamp(2, 12);
    let range = ends(&panel.x, values(), ticks::beyond);
    let whole = values().all(|x| x.fract() == 0.0);
    let ticks = ticks::within(panel.x.scale, range, count, whole);
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

/// The upward axis of a panel of this height.
fn up(panel: &Panel, height: f64) -> ((f64, f64), Ticks) {
    let points = panel.series.iter().flat_map(|series| panel.shown(series));
    let values = points.flat_map(|point| {
        let range = point.range.into_iter().flat_map(|(low, high)| [low, high]);
        range.chain([point.y])
    });
    let count = (((height - 90.0) / UP) as usize).clamp(2, 9);
    let range = ends(&panel.y, values, |scale, low, high| {
        ticks::around(scale, low, high, count)
    });
    (range, ticks::within(panel.y.scale, range, count, false))
}

/// The values along x, but for those of level lines, which have no place there.
fn across(panel: &Panel) -> impl Iterator<Item = f64> {
    let lines = panel
        .series
        .iter()
        .filter(|series| series.style != Style::Horizontal);
    lines
        .flat_map(|series| panel.shown(series))
        .map(|point| point.x)
}

/// What is at the ends of an axis.
fn ends(
    axis: &Axis,
    values: impl Iterator<Item = f64>,
    outward: impl Fn(AxisScale, f64, f64) -> (f64, f64),
) -> (f64, f64) {
    let usable = |(low, high): &(f64, f64)| axis.holds(*low) && axis.holds(*high) && low < high;
    if let Some(limits) = axis.limits.filter(usable) {
        return limits;
    }
    let (low, high) = values
        .filter(|&value| axis.holds(value))
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

fn level(svg: &mut Svg, panel: &Panel, axes: &Axes, series: &Series) {
    if let Some(point) = panel.shown(series).next() {
        let y = axes.y.at(point.y);
        let (left, right) = axes.x.place;
        svg.line(&SeriesStyle::of(series).line(), (left, y), (right, y));
    }
}

/// One series over its axes.
struct SeriesPlotter<'a> {
    panel: &'a Panel,
    axes: &'a Axes,
    series: &'a Series,
    style: SeriesStyle,
    /// Its place among the series, and how many there are.
    rank: usize,
    among: usize,
    /// A little to the side, so that bars do not hide each other.
    aside: f64,
    /// Every how many points there is a bar.
    stride: usize,
    /// Whether a line alone would leave the colour to tell it from others.
    markers: bool,
    /// Between neighbouring points.
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
        let mut aside = 0.0;
        if ranged(series) {
            let apart = (0.6 * spacing / bars as f64).min(4.0);
            aside = apart * (f64::from(bar) - (bars as f64 - 1.0) / 2.0);
            bar += 1;
        }
        plotters.push(SeriesPlotter {
            panel,
            axes,
            series,
            style: SeriesStyle::of(series),
            rank,
            among: all.len(),
            aside,
            // Odd, so that steps of two kinds that take turns both have theirs.
            stride: (BAR * bars as f64 / spacing).ceil().max(1.0) as usize | 1,
            markers: needs_markers(&panel.series),
            spacing,
        });
    }
    plotters
}

impl SeriesPlotter<'_> {
    fn at(&self, point: &Point) -> Position {
        let (x, y) = self.axes.at(point.x, point.y);
        (x + self.aside, y)
    }

    /// Low to high with small caps, at every point or evenly spread and not where the other series have theirs.
    fn bars(&self, svg: &mut Svg) {
        let stride = self.stride;
        let first = self.rank * stride / self.among.max(1);
        let cap = (self.spacing * stride as f64 / 5.0).clamp(1.0, 3.0);
        for point in self.series.points.iter().skip(first).step_by(stride) {
            let Some((low, high)) = point.range.filter(|_| self.panel.shows(point)) else {
                continue;
            };
            if !(self.panel.y.holds(high) && low.is_finite() && low <= high) {
                continue;
            }
            let (x, top) = self.at(&Point { y: high, ..*point });
            let mut path = String::new();
            let bottom = if self.panel.y.holds(low) {
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

    /// Through the points, broken where one is missing.
    fn line(&self, svg: &mut Svg) {
        if self.series.style == Style::Markers {
            return;
        }
        let mut path = String::new();
        for piece in self.series.points.split(|point| !self.panel.shows(point)) {
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

    /// At every point, or at a few to tell lines apart without colours.
    fn marks(&self, svg: &mut Svg) {
        let shown: Vec<&Point> = self
            .series
            .points
            .iter()
            .filter(|p| self.panel.shows(p))
            .collect();
        match self.series.style {
            Style::Marked | Style::Markers => {
                let r = (0.36 * self.spacing).clamp(1.8, 3.6);
                for point in shown {
                    self.style.mark(svg, self.at(point), r);
                }
            }
            _ if self.markers => {
                let few = shown.len().min(5);
                for k in 0..few {
                    let share =
                        (k as f64 + (self.rank as f64 + 0.5) / self.among as f64) / few as f64;
                    let point = shown[(share * shown.len() as f64) as usize];
                    self.style.mark(svg, self.at(point), 3.6);
                }
            }
            // The only line may still be a single point, which has no length.
            _ if shown.len() == 1 => self.style.mark(svg, self.at(shown[0]), 3.6),
            _ => {}
        }
    }
}
