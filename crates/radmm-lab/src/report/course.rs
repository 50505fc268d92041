//! What happened over the iterations of a run, as figures.

use radmm::account::Guarantee;
use radmm::node::Kind;
use radmm::sim::Snapshot;

use super::figure::{Axis, Figure, Panel, Point, Scale, Series, Style};
use super::tables::{beside_name, mean};
use crate::experiment::{End, Outcome, Repetition};
use crate::shown::{count, thousands};

/// More points than this a line cannot show.
const POINTS: usize = 400;
/// With more iterations than this, markers of single ones would run into each other.
const MARKED: usize = 100;

/// Places in the palette.
const OWN: usize = 0;
const RECYCLED: usize = 5;
const ALONE: usize = 3;
const AVERAGED: usize = 2;
const POOLED: usize = 6;

/// Loss; then privacy, if there is any, and accuracy.
pub(super) fn figures(outcome: &Outcome) -> Vec<Figure> {
    let run = &outcome.repetitions[0];
    let over = match outcome.repetitions.len() {
        1 => String::new(),
        many => format!(" Bars: the range over {} repetitions.", thousands(many)),
    };
    let asked = format!(
        "Of {}, {} asked the rows and {} recycled earlier answers.",
        count(run.iterations.len() - 1, "iteration", "iterations"),
        thousands(run.count(Kind::Data)),
        thousands(run.count(Kind::Recycled))
    );
    let loss = Figure {
        id: "loss".to_owned(),
        title: "Mean loss of the parties’ models on their own rows".to_owned(),
        caption: format!(
            "{asked}{over} Dashed: where others end at equal privacy, and one party with all rows and no noise."
        ),
        columns: 1,
        panels: vec![panel("mean loss", outcome, |made| made.loss, Levels::LOSS)],
    };
    let total = run.end().last.spent;
    let accuracy = Panel {
        title: "Accuracy".to_owned(),
        ..panel(
            "share of own rows classified rightly",
            outcome,
            |made| made.accuracy,
            Levels::ACCURACY,
        )
    };
    let rest = if total.epsilon.is_finite() {
        Figure {
            id: "privacy".to_owned(),
            title: "What was paid, and what it bought".to_owned(),
            caption: format!(
                "Left: the total ε of every message so far, the largest of the parties’, at δ = {}, for {}; it rises where \
                 rows are asked.{over}",
                total.delta,
                Guarantee::RELATION
            ),
            columns: 2,
            panels: vec![stairs(run, total), accuracy],
        }
    } else {
        Figure {
            id: "accuracy".to_owned(),
            title: "Share of their own rows that the parties’ models classify rightly".to_owned(),
            caption: over.trim().to_owned(),
            columns: 1,
            panels: vec![Panel {
                title: String::new(),
                ..accuracy
            }],
        }
    };
    vec![loss, rest]
}

/// What the others and the optimum end at.
struct Levels {
    end: fn(&End) -> f64,
    optimum: fn(&radmm::sim::Optimum) -> f64,
}

impl Levels {
    const LOSS: Self = Self {
        end: |end| end.last.loss,
        optimum: |optimum| optimum.loss,
    };
    const ACCURACY: Self = Self {
        end: |end| end.last.accuracy,
        optimum: |optimum| optimum.accuracy,
    };
}

fn panel(label: &str, outcome: &Outcome, of: fn(&Snapshot) -> f64, levels: Levels) -> Panel {
    let all = over_repetitions(&outcome.repetitions, of);
    let name = match outcome.repetitions.len() {
        1 => "this run".to_owned(),
        many => format!("mean of {} repetitions", thousands(many)),
    };
    let mut series: Vec<Series> = Vec::new();
    for other in outcome.beside.iter().filter(|other| !other.ends.is_empty()) {
        let colour = if other.name == "local" {
            ALONE
        } else {
            AVERAGED
        };
        series.push(level(
            beside_name(other.name),
            colour,
            mean(&other.ends, levels.end),
        ));
    }
    if let Some(optimum) = &outcome.centralised {
        series.push(level("pooled, no noise", POOLED, (levels.optimum)(optimum)));
    }
    series.push(Series {
        name,
        colour: OWN,
        style: Style::Line,
        points: thinned(&all),
    });
    let kinds = &outcome.repetitions[0].iterations;
    if kinds.len() <= MARKED + 1 {
        for (name, kind, colour) in [
            ("data step", Kind::Data, OWN),
            ("recycled step", Kind::Recycled, RECYCLED),
        ] {
            let points: Vec<Point> = kinds
                .iter()
                .zip(&all)
                .filter(|(made, _)| made.kind == kind)
                .map(|(_, point)| Point {
                    range: None,
                    ..*point
                })
                .collect();
            if !points.is_empty() {
                series.push(Series {
                    name: name.to_owned(),
                    colour,
                    style: Style::Dots,
                    points,
                });
            }
        }
    }
    Panel {
        title: String::new(),
        x: axis("iteration"),
        y: axis(label),
        series,
    }
}

fn stairs(run: &Repetition, total: Guarantee) -> Panel {
    let points: Vec<Point> = run
        .iterations
        .iter()
        .map(|made| Point {
            x: f64::from(made.iteration),
            y: made.spent.epsilon,
            range: None,
        })
        .collect();
    Panel {
        title: "Privacy".to_owned(),
        x: axis("iteration"),
        y: axis(&format!("total ε so far, at δ = {}", total.delta)),
        series: vec![Series {
            name: "total ε so far".to_owned(),
            colour: 1,
            style: Style::Stairs,
            points: thinned(&points),
        }],
    }
}

/// By iteration, the mean over those repetitions that came so far, and their range if there are several.
fn over_repetitions(runs: &[Repetition], of: fn(&Snapshot) -> f64) -> Vec<Point> {
    let longest = runs
        .iter()
        .map(|run| run.iterations.len())
        .max()
        .unwrap_or(0);
    let at = |t: usize| {
        let values: Vec<f64> = runs
            .iter()
            .filter_map(|run| run.iterations.get(t).map(of))
            .collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Point {
            x: t as f64,
            y: values.iter().sum::<f64>() / values.len() as f64,
            range: (runs.len() > 1).then_some((low, high)),
        }
    };
    (0..longest).map(at).collect()
}

/// So many that a line looks the same, with both ends.
fn thinned(points: &[Point]) -> Vec<Point> {
    if points.len() <= POINTS {
        return points.to_vec();
    }
    let last = points.len() - 1;
    (0..POINTS)
        .map(|k| points[k * last / (POINTS - 1)])
        .collect()
}

fn level(name: &str, colour: usize, y: f64) -> Series {
    let point = Point {
        x: 0.0,
        y,
        range: None,
    };
    Series {
        name: name.to_owned(),
        colour,
        style: Style::Level,
        points: vec![point],
    }
}

fn axis(label: &str) -> Axis {
    Axis {
        label: label.to_owned(),
        scale: Scale::Linear,
        limits: None,
    }
}
