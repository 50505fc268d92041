//! docs/scale.md and docs/images/scale.svg: exponents, times, and the curves drawn.

use std::fs;
use std::path::Path;

use radmm_bench::power_law::{Timing, exponent, steepest};
use radmm_bench::report::{self, Detail, duration, thousands};
use radmm_report::{Axis, Figure, Panel, Point, Series, Style};

use super::sweep::{Curve, ExponentRange, Sweep};
use crate::machine;

/// Writes the picture, and the part of the page that has numbers.
pub fn write(measured: &[(Sweep, Vec<Curve>)]) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    fs::write(docs.join("images/scale.svg"), figure(measured).to_svg()).unwrap();
    let mut text = format!("{}\n\n", machine::words(&[]));
    text += &exponents(measured).to_markdown();
    for (sweep, curves) in measured {
        text += &format!("\n### Time against {}\n\n", sweep.title);
        text += &times(sweep, curves).to_markdown();
    }
    report::rewrite(&docs.join("scale.md"), &text).unwrap();
}

fn exponents(measured: &[(Sweep, Vec<Curve>)]) -> Detail {
    let mut lines = Vec::new();
    for (sweep, curves) in measured {
        for range in &sweep.exponents {
            let line = |curve| exponent_line(sweep, curve, *range);
            lines.extend(curves.iter().filter_map(line));
        }
    }
    Detail {
        title: String::new(),
        head: vec![
            "time against",
            "algorithm",
            "sizes",
            "exponent",
            "largest between neighbouring sizes",
            "target",
            "met",
        ],
        lines,
        notes: Vec::new(),
    }
}

fn exponent_line(sweep: &Sweep, curve: &Curve, range: ExponentRange) -> Option<Vec<String>> {
    let timings = curve.up_to(range.largest);
    let fitted = exponent(timings)?;
    let (local, from, to) = steepest(timings)?;
    let complete = curve
        .ended_before
        .is_none_or(|size| size > range.largest as f64);
    let met = match range.most {
        Some(most) if fitted > most => "**no**",
        Some(_) if complete => "yes",
        Some(_) => "as far as measured",
        None => "",
    };
    let target = range.most.map(|most| format!("≤ {most:.2}"));
    Some(vec![
        sweep.title.to_owned(),
        curve.algorithm.name().to_owned(),
        sizes(timings[0].0, timings[timings.len() - 1].0),
        format!("{fitted:.2}"),
        format!("{local:.2} ({})", sizes(from, to)),
        target.unwrap_or_default(),
        met.to_owned(),
    ])
}

fn sizes(from: f64, to: f64) -> String {
    format!("{} to {}", thousands(from as usize), thousands(to as usize))
}

/// Returns the times of all algorithms at each size that any of them has.
fn times(sweep: &Sweep, curves: &[Curve]) -> Detail {
    let timings = curves.iter().flat_map(|curve| &curve.timings);
    let mut sizes: Vec<usize> = timings.map(|timing: &Timing| timing.0 as usize).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let line = |&size: &usize| {
        let cell = |curve: &Curve| curve.at(size).map_or(String::new(), duration);
        let mut line = vec![thousands(size)];
        line.extend(curves.iter().map(cell));
        line
    };
    let mut head = vec![sweep.axis];
    head.extend(curves.iter().map(|curve| curve.algorithm.name()));
    Detail {
        title: String::new(),
        head,
        lines: sizes.iter().map(line).collect(),
        notes: Vec::new(),
    }
}

fn figure(measured: &[(Sweep, Vec<Curve>)]) -> Figure {
    Figure {
        id: "scale".to_owned(),
        title: "The time of a study against its sizes".to_owned(),
        caption: "All axes are logarithmic. The grey line is proportional to the size: a curve that is no steeper grows at most in \
                  proportion."
            .to_owned(),
        columns: 2,
        panels: measured.iter().map(|(sweep, curves)| panel(sweep, curves)).collect(),
    }
}

fn panel(sweep: &Sweep, curves: &[Curve]) -> Panel {
    let mut series: Vec<Series> = curves.iter().enumerate().map(curve_series).collect();
    series.push(Series {
        name: "proportional".to_owned(),
        colour: PROPORTIONAL,
        style: Style::Dashed,
        points: proportional(curves),
    });
    Panel {
        title: String::new(),
        x: Axis::logarithmic(sweep.axis),
        y: Axis::logarithmic("seconds"),
        series,
    }
}

/// The index of a grey in the palette.
const PROPORTIONAL: usize = 6;

fn curve_series((colour, curve): (usize, &Curve)) -> Series {
    let points = curve.timings.iter();
    Series {
        name: curve.algorithm.name().to_owned(),
        colour,
        style: Style::Marked,
        points: points
            .map(|&(size, seconds)| Point::new(size, seconds))
            .collect(),
    }
}

/// Returns a line of slope one that ends where the first curve does, and begins no lower than the lowest time.
fn proportional(curves: &[Curve]) -> Vec<Point> {
    let seconds = curves
        .iter()
        .flat_map(|curve| &curve.timings)
        .map(|timing| timing.1);
    let least = seconds.fold(f64::INFINITY, f64::min);
    let first = &curves[0].timings;
    let (size, end) = first[first.len() - 1];
    let begin = first[0].0.max(size * least / end);
    vec![Point::new(begin, end * begin / size), Point::new(size, end)]
}
