//! Arrows at the edge of a panel, with the values of points that are beyond its vertical axis.

use std::f64::consts::FRAC_PI_2;

use super::axes::Axes;
use super::figure::{Panel, Point, Style};
use super::legend::text_width;
use super::series_style::SeriesStyle;
use super::svg::{Svg, TextAnchor};
use super::ticks::scientific;

/// The font size of the values.
const SIZE: f64 = 13.0;

/// A point of a series beyond one end of the axis: its last, or else the farthest.
struct OffScale {
    x: f64,
    label: String,
    class: String,
}

/// Draws the arrows of all series, above and below.
pub(super) fn draw(svg: &mut Svg, panel: &Panel, axes: &Axes) {
    let (low, high) = axes.y.range;
    let (bottom, top) = axes.y.place;
    row(
        svg,
        axes,
        beyond(panel, axes, |y| y - high),
        top + 2.0,
        -FRAC_PI_2,
    );
    row(
        svg,
        axes,
        beyond(panel, axes, |y| low - y),
        bottom - 2.0,
        FRAC_PI_2,
    );
}

/// Returns the points at which series are beyond an end of the axis.
fn beyond(panel: &Panel, axes: &Axes, excess: impl Fn(f64) -> f64) -> Vec<OffScale> {
    let mut found: Vec<OffScale> = Vec::new();
    for series in &panel.series {
        // A rounding error is not seen.
        let off = |point: &&Point| excess(point.y) > 1e-9 * point.y.abs();
        let end = panel.visible(series).last().filter(off);
        let farthest = panel
            .visible(series)
            .filter(off)
            .max_by(|a, b| excess(a.y).total_cmp(&excess(b.y)));
        let Some(point) = end.or(farthest) else {
            continue;
        };
        let x = match series.style {
            Style::Horizontal => axes.x.place.1,
            _ => axes.x.at(point.x),
        };
        let label = short(point.y);
        // Series that leave the axis at the same point, as all do from a common start, share an arrow.
        let same = |other: &&mut OffScale| other.label == label && (other.x - x).abs() < 1.0;
        match found.iter_mut().find(same) {
            Some(other) => other.class = "shared".to_owned(),
            None => found.push(OffScale {
                x,
                label,
                class: SeriesStyle::of(series).fill(),
            }),
        }
    }
    found.sort_by(|a, b| a.x.total_cmp(&b.x));
    found
}

/// Draws arrows side by side along one edge.
fn row(svg: &mut Svg, axes: &Axes, all: Vec<OffScale>, edge: f64, angle: f64) {
    let width = |one: &OffScale| 20.0 + text_width(&one.label, SIZE);
    let (left, right) = axes.x.place;
    let mut needed: f64 = all.iter().map(width).sum();
    let mut free = left;
    for one in all {
        // As near to its point as the others leave room.
        let x = (one.x - 6.0).min(right - needed).max(free);
        let inward = -angle.signum();
        // Negative angles point upwards, where coordinates shrink.
        let tail = edge + 15.0 * inward;
        svg.line("axis", (x + 6.0, edge + 4.0 * inward), (x + 6.0, tail));
        svg.arrow_head(&one.class, (x + 6.0, edge), angle);
        let baseline = edge + 7.5 * inward + 4.5;
        svg.text("off", (x + 14.0, baseline), TextAnchor::Start, &one.label);
        free = x + width(&one);
        needed -= width(&one);
    }
}

/// Formats a value with about three digits.
fn short(value: f64) -> String {
    let size = value.abs();
    if !(1e-2..1e4).contains(&size) && size > 0.0 {
        let power = libm::floor(libm::log10(size)) as i32;
        return scientific(value / libm::pow(10.0, f64::from(power)), power);
    }
    let decimals = match size {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.decimals$}").replace('-', "−")
}
