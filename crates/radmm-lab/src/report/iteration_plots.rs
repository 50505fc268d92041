//! What happened over the iterations of a run, as figures.

use radmm::node::StepKind;
use radmm::privacy::Guarantee;
use radmm::sim::{Optimum, Snapshot};
use radmm_study::number_format::{count, number, thousands};

use crate::baseline::Baseline;
use crate::outcome::{FinalState, Outcome, Repetition};
use radmm_report::{Axis, AxisScale, Figure, Panel, Point, Series, Style};

/// More points than this a line cannot show.
const POINTS: usize = 400;
/// With more iterations than this, markers of single ones would run into each other.
const MARKED: usize = 100;

/// A level that would leave the run a smaller part of the panel than one in so many is not drawn.
const FAR: f64 = 6.0;

/// Places in the palette.
const OWN: usize = 0;
const RECYCLED: usize = 5;
const ALONE: usize = 3;
const AVERAGED: usize = 2;
const POOLED: usize = 6;

/// Loss; then privacy, if there is any, and accuracy.
pub(super) fn figures(outcome: &Outcome) -> Vec<Figure> {
    let run = longest(&outcome.repetitions);
    let total = run.total();
    let private = total.epsilon.is_finite();
    let mut notes = vec![format!(
        "Of {}, {} asked the rows and {} recycled earlier answers.",
        count(run.iterations.len() - 1, "iteration", "iterations"),
        thousands(run.count(StepKind::Data)),
        thousands(run.count(StepKind::Recycled))
    )];
    let bars = match outcome.repetitions.len() {
        1 => String::new(),
        many => format!("Bars: the range over {} repetitions.", thousands(many)),
    };
    notes.push(bars.clone());
    if !outcome.baselines.is_empty() {
        let equal = if private { " at equal privacy" } else { "" };
        notes.push(format!("Level lines: where others end{equal}."));
    }
    let (own, far) = Measure::LOSS.panel(outcome);
    notes.extend(far);
    let (joint, far) = Measure::JOINT.panel(outcome);
    notes.extend(far);
    notes.push("Iteration 0, before anything is learned, is left out.".to_owned());
    notes.dedup();
    let loss = Figure {
        id: "loss".to_owned(),
        title: "Loss on the training rows".to_owned(),
        caption: joined(&notes),
        columns: 2,
        panels: vec![own, joint],
    };
    let (accuracy, far) = Measure::ACCURACY.panel(outcome);
    let without =
        "Iteration 0, before anything is learned, is left out of the accuracy.".to_owned();
    let rest = if private {
        let paid = format!(
            "Privacy: the total ε of every message so far, the largest of the parties’, at δ = {}, for {}; it rises where \
             rows are asked.",
            total.delta,
            Guarantee::RELATION
        );
        Figure {
            id: "privacy".to_owned(),
            title: "What was paid, and what it bought".to_owned(),
            caption: joined(&[&[paid, bars, without][..], &far].concat()),
            columns: 2,
            panels: vec![stairs(run, total), accuracy],
        }
    } else {
        Figure {
            id: "accuracy".to_owned(),
            title: "How many of everybody’s rows the mean model classifies rightly".to_owned(),
            caption: joined(&[&[bars, without][..], &far].concat()),
            columns: 1,
            panels: vec![accuracy],
        }
    };
    vec![loss, rest]
}

/// Sentences.
fn joined(notes: &[String]) -> String {
    let said: Vec<&str> = notes
        .iter()
        .map(String::as_str)
        .filter(|note| !note.is_empty())
        .collect();
    said.join(" ")
}

/// The repetition that came farthest; they differ if one was stopped.
pub(super) fn longest(runs: &[Repetition]) -> &Repetition {
    let mut best = &runs[0];
    for run in runs {
        if run.iterations.len() > best.iterations.len() {
            best = run;
        }
    }
    best
}

/// Something that models are measured by.
struct Measure {
    title: &'static str,
    label: &'static str,
    /// The first iteration that is worth looking at.
    first: usize,
    of: fn(&Snapshot) -> f64,
    /// Of a baseline: of the models that parties really have.
    end: fn(&FinalState) -> f64,
    optimum: fn(&Optimum) -> f64,
}

impl Measure {
    const LOSS: Self = Self {
        title: "Each model on its own party’s rows",
        label: "mean loss",
        first: 1,
        of: |made| made.loss,
        end: |end| end.last.loss,
        optimum: |optimum| optimum.loss,
    };
    const JOINT: Self = Self {
        title: "The mean model on everybody’s rows",
        label: "mean loss",
        // Before anything is learned it is as far off as can be, and would flatten the rest.
        first: 1,
        of: |made| made.mean_model.loss,
        end: |end| end.everywhere.loss,
        optimum: |optimum| optimum.global_fit.loss,
    };
    const ACCURACY: Self = Self {
        title: "The mean model on everybody’s rows",
        label: "classified rightly, %",
        // A model of zeros tells nothing apart, and would flatten the rest.
        first: 1,
        of: |made| 100.0 * made.mean_model.accuracy,
        end: |end| 100.0 * end.everywhere.accuracy,
        optimum: |optimum| 100.0 * optimum.global_fit.accuracy,
    };

    /// The panel, and what is to be said of levels that are too far off to be in it.
    fn panel(&self, outcome: &Outcome) -> (Panel, Vec<String>) {
        let all = over_repetitions(&outcome.repetitions, self.of);
        let all = &all[self.first.min(all.len())..];
        let mut series = vec![Series {
            name: match outcome.repetitions.len() {
                1 => "this run".to_owned(),
                many => format!("mean of {} repetitions", thousands(many)),
            },
            colour: OWN,
            style: Style::Line,
            points: thinned(all),
        }];
        if all.len() <= MARKED + 1 {
            let made = &longest(&outcome.repetitions).iterations;
            series.extend(steps("data step", OWN, StepKind::Data, made, all));
            series.extend(steps(
                "recycled step",
                RECYCLED,
                StepKind::Recycled,
                made,
                all,
            ));
        }
        let (near, far): (Vec<Series>, Vec<Series>) = self
            .levels(outcome)
            .into_iter()
            .partition(|level| near(all, level.points[0].y));
        series.extend(near);
        let words = |level: &Series| {
            let end = number(level.points[0].y);
            format!("Too far off to be seen here: {}, {end}.", level.name)
        };
        let panel = Panel {
            title: self.title.to_owned(),
            x: axis("iteration"),
            y: axis(self.label),
            series,
        };
        (panel, far.iter().map(words).collect())
    }

    /// Where the others end.
    fn levels(&self, outcome: &Outcome) -> Vec<Series> {
        let mut levels = Vec::new();
        for other in outcome
            .baselines
            .iter()
            .filter(|other| !other.final_states.is_empty())
        {
            let baseline = Baseline::from_method_name(other.name);
            let colour = match baseline {
                Baseline::Alone => ALONE,
                Baseline::Averaged => AVERAGED,
            };
            let ends: Vec<f64> = other.final_states.iter().map(self.end).collect();
            let mean = ends.iter().sum::<f64>() / ends.len() as f64;
            levels.push(level(baseline.title(), colour, mean));
        }
        if let Some(optimum) = &outcome.centralised {
            levels.push(level("pooled, no noise", POOLED, (self.optimum)(optimum)));
        }
        levels
    }
}

/// Whether a level is so near that drawing it leaves the run itself a fair share of the panel.
fn near(all: &[Point], level: f64) -> bool {
    let ends = all
        .iter()
        .map(|point| point.range.unwrap_or((point.y, point.y)));
    let (low, high) = ends.fold((level, level), |(low, high), end| {
        (low.min(end.0), high.max(end.1))
    });
    let own = || all.iter().map(|point| point.y);
    let span = own().fold(f64::MIN, f64::max) - own().fold(f64::MAX, f64::min);
    // A run that stands still has no span to compare with.
    let size = own().map(f64::abs).fold(0.0, f64::max);
    all.is_empty() || high - low <= (FAR * span).max(size)
}

/// The points of one kind of step, if there are any.
fn steps(
    name: &str,
    colour: usize,
    kind: StepKind,
    made: &[Snapshot],
    all: &[Point],
) -> Option<Series> {
    let points: Vec<Point> = all
        .iter()
        .filter(|point| made[point.x as usize].kind == kind)
        .map(|point| Point {
            range: None,
            ..*point
        })
        .collect();
    (!points.is_empty()).then(|| Series {
        name: name.to_owned(),
        colour,
        style: Style::Markers,
        points,
    })
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
        title: format!("Privacy, at δ = {}", total.delta),
        x: axis("iteration"),
        y: axis("total ε so far"),
        series: vec![Series {
            name: "total ε so far".to_owned(),
            colour: OWN,
            style: Style::Steps,
            points: thinned(&points),
        }],
    }
}

/// By iteration, the mean over those repetitions that came so far, and their range if there are several.
fn over_repetitions(runs: &[Repetition], of: fn(&Snapshot) -> f64) -> Vec<Point> {
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
    (0..longest(runs).iterations.len()).map(at).collect()
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
        style: Style::Horizontal,
        points: vec![point],
    }
}

fn axis(label: &str) -> Axis {
    Axis {
        label: label.to_owned(),
        scale: AxisScale::Linear,
        limits: None,
    }
}
