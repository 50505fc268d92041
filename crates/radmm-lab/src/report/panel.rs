//! One pair of axes, drawn.

use super::chart::{Chart, Ruler};
use super::figure::{Axis, Panel, Point, Scale, Series, Style};
use super::legend;
use super::look::{self, Look};
use super::svg::{Anchor, Area, Spot, Svg, through};
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
pub(super) fn draw(svg: &mut Svg, panel: &Panel, area: Area, margins: Margins, id: &str) {
    let left = area.left + margins.left;
    if !panel.title.is_empty() {
        svg.text(
            "strong",
            (area.left + 4.0, area.top + 20.0),
            Anchor::Start,
            &panel.title,
        );
    }
    if margins.legend > 0.0 {
        let corner = (area.left + 4.0, area.top + margins.top - 6.0);
        legend::draw(svg, &panel.series, corner, area.width - 8.0);
    }
    let place = Area {
        left,
        top: area.top + margins.top + margins.legend,
        width: area.width - margins.left - margins.right,
        height: area.height - margins.top - margins.bottom - margins.legend,
    };
    let chart = chart(
        panel,
        place,
        area.height - margins.legend,
        margins.left - 16.0,
    );
    chart.frame(svg);
    let mut drawn = panel.series.iter().flat_map(|series| panel.shown(series));
    if drawn.next().is_none() {
        let middle = (
            place.left + place.width / 2.0,
            place.top + place.height / 2.0,
        );
        svg.text("quiet", middle, Anchor::Middle, "no finite values");
        return;
    }
    // Markers at the ends reach over them.
    let window = Area {
        left: place.left - 6.0,
        top: place.top - 6.0,
        width: place.width + 12.0,
        height: place.height + 12.0,
    };
    svg.window(&format!("{id}window"), window);
    let (levels, others): (Vec<&Series>, Vec<&Series>) = panel
        .series
        .iter()
        .partition(|series| series.style == Style::Level);
    for series in levels {
        level(svg, panel, &chart, series);
    }
    let brushes = brushes(panel, &chart, &others);
    // No bar hides a mean.
    brushes.iter().for_each(|brush| brush.bars(svg));
    for brush in &brushes {
        brush.line(svg);
        brush.marks(svg);
    }
    svg.end();
}

fn chart(panel: &Panel, place: Area, height: f64, gap: f64) -> Chart {
    let (range, ticks) = up(panel, height);
    let y = Ruler {
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
    let x = Ruler {
        title: panel.x.label.clone(),
        place: (place.left, place.left + place.width),
        range,
        scale: panel.x.scale,
        ticks: ticks.labelled,
        minor: ticks.minor,
    };
    Chart { x, y, gap }
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
        .filter(|series| series.style != Style::Level);
    lines
        .flat_map(|series| panel.shown(series))
        .map(|point| point.x)
}

/// What is at the ends of an axis.
fn ends(
    axis: &Axis,
    values: impl Iterator<Item = f64>,
    outward: impl Fn(Scale, f64, f64) -> (f64, f64),
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
    } else if axis.scale == Scale::Log {
        (0.1, 1.0)
    } else {
        (0.0, 1.0)
    }
}

fn level(svg: &mut Svg, panel: &Panel, chart: &Chart, series: &Series) {
    if let Some(point) = panel.shown(series).next() {
        let y = chart.y.at(point.y);
        let (left, right) = chart.x.place;
        svg.line(&Look::of(series).line(), (left, y), (right, y));
    }
}

/// One series over its chart.
struct Brush<'a> {
    panel: &'a Panel,
    chart: &'a Chart,
    series: &'a Series,
    look: Look,
    /// Its place among the series, and how many there are.
    rank: usize,
    among: usize,
    /// A little to the side, so that bars do not hide each other.
    aside: f64,
    /// Every how many points there is a bar.
    stride: usize,
    /// Whether a line alone would leave the colour to tell it from others.
    told_apart: bool,
    /// Between neighbouring points.
    spacing: f64,
}

fn brushes<'a>(panel: &'a Panel, chart: &'a Chart, all: &[&'a Series]) -> Vec<Brush<'a>> {
    let ranged = |series: &Series| series.points.iter().any(|point| point.range.is_some());
    let bars = all.iter().filter(|series| ranged(series)).count();
    let width = chart.x.place.1 - chart.x.place.0;
    let mut bar = 0;
    let mut brushes = Vec::new();
    for (rank, &series) in all.iter().enumerate() {
        let spacing = width / (series.points.len().max(2) - 1) as f64;
        let mut aside = 0.0;
        if ranged(series) {
            let apart = (0.6 * spacing / bars as f64).min(4.0);
            aside = apart * (f64::from(bar) - (bars as f64 - 1.0) / 2.0);
            bar += 1;
        }
        brushes.push(Brush {
            panel,
            chart,
            series,
            look: Look::of(series),
            rank,
            among: all.len(),
            aside,
            // Odd, so that steps of two kinds that take turns both have theirs.
            stride: (BAR * bars as f64 / spacing).ceil().max(1.0) as usize | 1,
            told_apart: look::told_apart(&panel.series),
            spacing,
        });
    }
    brushes
}

impl Brush<'_> {
    fn at(&self, point: &Point) -> Spot {
        let (x, y) = self.chart.at(point.x, point.y);
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
                let bottom = self.chart.y.at(low);
                path += &through(&[(x - cap, bottom), (x + cap, bottom)]);
                bottom
            } else {
                // Zero is infinitely far down a logarithmic axis.
                self.chart.y.place.0
            };
            path += &through(&[(x, bottom), (x, top)]);
            path += &through(&[(x - cap, top), (x + cap, top)]);
            svg.path(&self.look.bar(), &path);
        }
    }

    /// Through the points, broken where one is missing.
    fn line(&self, svg: &mut Svg) {
        if self.series.style == Style::Dots {
            return;
        }
        let mut path = String::new();
        for piece in self.series.points.split(|point| !self.panel.shows(point)) {
            let mut corners: Vec<Spot> = Vec::new();
            for point in piece {
                let at = self.at(point);
                if self.series.style == Style::Stairs
                    && let Some(before) = corners.last()
                {
                    corners.push((at.0, before.1));
                }
                corners.push(at);
            }
            path += &through(&corners);
        }
        if !path.is_empty() {
            svg.path(&self.look.line(), &path);
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
            Style::Marked | Style::Dots => {
                let r = (0.36 * self.spacing).clamp(1.8, 3.6);
                for point in shown {
                    self.look.mark(svg, self.at(point), r);
                }
            }
            _ if self.told_apart => {
                let few = shown.len().min(5);
                for k in 0..few {
                    let share =
                        (k as f64 + (self.rank as f64 + 0.5) / self.among as f64) / few as f64;
                    let point = shown[(share * shown.len() as f64) as usize];
                    self.look.mark(svg, self.at(point), 3.6);
                }
            }
            // The only line may still be a single point, which has no length.
            _ if shown.len() == 1 => self.look.mark(svg, self.at(shown[0]), 3.6),
            _ => {}
        }
    }
}
