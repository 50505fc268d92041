//! The plots of a run over its iterations: accuracy, privacy and loss.

use radmm::node::StepKind;
use radmm::privacy::Guarantee;
use radmm::sim::{Optimum, Snapshot};
use radmm_report::{Axis, Figure, Panel, Point, Series, Style};
use radmm_study::number_format::{count, delta, thousands};

use crate::baseline::Baseline;
use crate::centralised::optimum_title;
use crate::outcome::{FinalState, Outcome, Repetition};

/// The most points of a line; more cannot be seen.
const POINTS: usize = 400;
/// The most iterations with a marker each; more would overlap.
const MARKED: usize = 100;

// Indices into the palette.
const OWN: usize = 0;
const RECYCLED: usize = 5;
const ALONE: usize = 3;
const AVERAGED: usize = 2;
const OPTIMUM: usize = 6;

/// Returns accuracy, beside privacy if there is any; then loss.
pub(super) fn figures(outcome: &Outcome) -> Vec<Figure> {
    let run = longest(&outcome.repetitions);
    let total = run.total();
    let private = total.epsilon.is_finite();
    let bars = match outcome.repetitions.len() {
        1 => String::new(),
        many => format!("Bars: the range over {} repetitions.", thousands(many)),
    };
    let levels = match outcome.baselines.is_empty() {
        true => String::new(),
        false => format!(
            "Horizontal lines: where the baselines end{}.",
            if private { " at equal privacy" } else { "" }
        ),
    };
    let start = "Iteration 0, before anything is learned, is left out.".to_owned();
    let accuracy = Measure::ACCURACY.panel(outcome);
    let first = if private {
        let paid = format!(
            "Privacy: the total ε of every message so far, the largest of the parties’, at δ = {}, for {}; it rises where \
             rows are read.",
            delta(total.delta),
            Guarantee::RELATION
        );
        Figure {
            id: "accuracy".to_owned(),
            title: "Accuracy, and the privacy it cost".to_owned(),
            caption: joined(&[paid, bars.clone(), levels.clone(), start.clone()]),
            columns: 2,
            panels: vec![accuracy, spending(run, total)],
        }
    } else {
        Figure {
            id: "accuracy".to_owned(),
            title: "Accuracy of the mean model on everybody’s rows".to_owned(),
            caption: joined(&[bars.clone(), levels.clone(), start.clone()]),
            columns: 1,
            panels: vec![accuracy],
        }
    };
    let steps = format!(
        "Of {}, {} read rows and {} recycled earlier answers.",
        count(run.iterations.len() - 1, "iteration", "iterations"),
        thousands(run.count(StepKind::Data)),
        thousands(run.count(StepKind::Recycled))
    );
    let loss = Figure {
        id: "loss".to_owned(),
        title: "Loss on the training rows".to_owned(),
        caption: joined(&[steps, bars, levels, start]),
        columns: 2,
        panels: vec![Measure::LOSS.panel(outcome), Measure::JOINT.panel(outcome)],
    };
    vec![first, loss]
}

/// Joins the sentences that are not empty.
fn joined(notes: &[String]) -> String {
    let said: Vec<&str> = notes
        .iter()
        .map(String::as_str)
        .filter(|note| !note.is_empty())
        .collect();
    said.join(" ")
}

/// Returns the repetition with the most iterations; they differ if one was stopped.
pub(super) fn longest(runs: &[Repetition]) -> &Repetition {
    let mut best = &runs[0];
    for run in runs {
        if run.iterations.len() > best.iterations.len() {
            best = run;
        }
    }
    best
}

/// A measure of models.
struct Measure {
    title: &'static str,
    label: &'static str,
    /// Its value at an iteration.
    of: fn(&Snapshot) -> Option<f64>,
    /// Its value at the end of a baseline, of the models that parties really have.
    end: fn(&FinalState) -> f64,
    /// Its value for the optimum without noise.
    optimum: fn(&Optimum) -> f64,
}

impl Measure {
    const LOSS: Self = Self {
        title: "Each model on its own party’s rows",
        label: "mean loss",
        of: |made| Some(made.loss),
        end: |end| end.last.loss,
        optimum: |optimum| optimum.loss,
    };
    const JOINT: Self = Self {
        title: "The mean model on everybody’s rows",
        label: "mean loss",
        of: |made| Some(made.mean_model?.loss),
        end: |end| end.everywhere.loss,
        optimum: |optimum| optimum.global_fit.loss,
    };
    const ACCURACY: Self = Self {
        title: "The mean model on everybody’s rows",
        label: "accuracy, %",
        of: |made| Some(100.0 * made.mean_model?.accuracy),
        end: |end| 100.0 * end.everywhere.accuracy,
        optimum: |optimum| 100.0 * optimum.global_fit.accuracy,
    };

    /// Returns the panel of all iterations but 0, whose model of zeros would squash the rest.
    fn panel(&self, outcome: &Outcome) -> Panel {
        let all = over_repetitions(&outcome.repetitions, self.of);
        let all = &all[1.min(all.len())..];
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
        series.extend(self.levels(outcome));
        let panel = Panel {
            title: self.title.to_owned(),
            x: Axis::linear("iteration"),
            y: Axis::linear(self.label),
            series,
        };
        panel.with_robust_y_axis()
    }

    /// Returns the ends of the baselines, and the optimum, as horizontal lines.
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
            let title = optimum_title(outcome.count);
            levels.push(level(title, OPTIMUM, (self.optimum)(optimum)));
        }
        levels
    }
}

/// Returns markers at the steps of one kind, if there are any.
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

fn spending(run: &Repetition, total: Guarantee) -> Panel {
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
        title: format!("Privacy, at δ = {}", delta(total.delta)),
        x: Axis::linear("iteration"),
        y: Axis::linear("total ε so far"),
        series: vec![Series {
            name: "total ε so far".to_owned(),
            colour: OWN,
            style: Style::Steps,
            points: thinned(&points),
        }],
    }
}

/// Returns the mean of each iteration over the repetitions that reached it, and their range if there are several.
fn over_repetitions(runs: &[Repetition], of: fn(&Snapshot) -> Option<f64>) -> Vec<Point> {
    let at = |t: usize| {
        let values: Vec<f64> = runs
            .iter()
            .filter_map(|run| run.iterations.get(t).and_then(of))
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

/// Returns at most [`POINTS`] of the points, evenly spread, with both ends.
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
