//! The report of `radmm compare`.

use radmm::privacy::{Bound, Guarantee};

use super::run::study_in_lines;
use crate::candidate::{CandidateResult, IterationStats};
use crate::compare::{Comparison, ComparisonResult};
use crate::result_file::caveat;
use crate::stats::SampleStats;
use radmm_report::{
    Axis, AxisScale, Block, Figure, Page, Panel, Point, Section, Series, Style, TextTable,
};
use radmm_study::number_format::{count, epsilon, number, percent, thousands};

impl ComparisonResult {
    /// What everyone may spend, in a sentence.
    pub fn statement(&self) -> String {
        match self.total.epsilon.is_finite() {
            true => format!(
                "every party may spend a total ε of {} at δ = {} over every message of the run, for {}",
                epsilon(self.total.epsilon),
                self.total.delta,
                Guarantee::RELATION
            ),
            false => {
                "no study has noise and releases on the grid: there is no guarantee".to_owned()
            }
        }
    }

    /// What is not as the statement says, a line each.
    pub fn exceptions(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for one in &self.candidates {
            if let Some(reason) = &one.stopped {
                lines.push(format!("{} stopped early: {reason}", one.name));
            } else if self.total.epsilon.is_finite() && one.total.epsilon.is_infinite() {
                lines.push(format!(
                    "{} has no guarantee: no noise, or releases in doubles",
                    one.name
                ));
            }
        }
        if !self.unattainable.is_empty() {
            lines.push(format!(
                "too dear: no noise brings the cost of {} down to this total; raise --epsilon, or --delta for Gaussian noise",
                self.unattainable.join(", ")
            ));
        }
        lines
    }

    /// Loss over iterations, and over the questions that were asked.
    pub fn figure(&self) -> Figure {
        let panel = |title: &str, label: &str, x: fn(usize, &[IterationStats]) -> f64| Panel {
            title: title.to_owned(),
            x: axis(label),
            y: axis("mean loss"),
            series: self.series(x),
        };
        Figure {
            id: "compare".to_owned(),
            title: "Loss of the mean model on everybody’s training rows at equal total privacy".to_owned(),
            caption: "Mean over the runs, with bars from the least to the greatest; from iteration 1 on. Left: by iteration. Right: by \
                      the questions that a party’s rows have answered, which is what costs privacy and computation."
                .to_owned(),
            columns: 2,
            panels: vec![
                panel("By iteration", "iteration t", |t, _| t as f64),
                panel("By questions asked", "data steps so far", |t, course| {
                    let asked = |at: &&IterationStats| at.kind == radmm::node::StepKind::Data;
                    course[..=t].iter().filter(asked).count() as f64
                }),
            ],
        }
    }

    /// Everything on one page.
    pub fn page(&self, comparison: &Comparison) -> Page {
        let experiment = &comparison.candidates()[0].experiment;
        let accuracy: fn(&CandidateResult) -> SampleStats = |one| match &one.held_out {
            Some(score) => score.accuracy,
            None => one.accuracy_everywhere,
        };
        let best = most_accurate(&self.candidates, accuracy);
        let lead = format!(
            "{} and {} on {} of {}, {}: {}.{best}{}",
            count(comparison.candidates().len(), "study", "studies"),
            count(
                self.candidates.len() + self.unattainable.len() - comparison.candidates().len(),
                "baseline",
                "baselines"
            ),
            count(experiment.table().rows(), "row", "rows"),
            count(experiment.graph().len(), "party", "parties"),
            count(experiment.study().run.repetitions as usize, "run", "runs"),
            self.statement(),
            self.exceptions()
                .iter()
                .map(|line| format!("\n\n**{line}**"))
                .collect::<String>(),
        );
        let studies: Vec<String> = comparison
            .candidates()
            .iter()
            .map(|contender| {
                let study = study_in_lines(contender.experiment.study());
                format!("{}\n{study}", contender.name)
            })
            .collect();
        Page {
            title: format!("{} and others at equal privacy", experiment.study().name),
            lead,
            headlines: Vec::new(),
            sections: vec![
                Section {
                    heading: "How good".to_owned(),
                    blocks: vec![Block::Figure(self.figure()), Block::Table(self.quality())],
                },
                Section {
                    heading: "At which cost".to_owned(),
                    blocks: vec![
                        Block::Table(self.cost()),
                        Block::Text(format!(
                            "Totals are by the first study’s bound where it applies: the paper’s covers neither Gaussian noise nor noise on answers \
                             nor questions without a penalty. The baselines gossip until they agree, and have the best of eight \
                             ridges in hindsight, by their accuracy on all training rows. Each contender is {}.",
                            caveat(&experiment.study().privacy)
                        )),
                    ],
                },
                Section {
                    heading: "The studies".to_owned(),
                    blocks: studies.into_iter().map(Block::Code).collect(),
                },
            ],
            footer: "The scale of the noise in a study is the one it came with; the table has the one that was found.".to_owned(),
        }
    }

    fn series(&self, x: fn(usize, &[IterationStats]) -> f64) -> Vec<Series> {
        let point = |t: usize, course: &[IterationStats]| {
            let loss = course[t].mean_model_loss;
            Point {
                x: x(t, course),
                y: loss.mean,
                range: (loss.low < loss.high).then_some((loss.low, loss.high)),
            }
        };
        let to_the_end = |(_, one): &(usize, &CandidateResult)| one.stopped.is_none();
        let drawn = self.candidates.iter().enumerate().filter(to_the_end);
        drawn
            .map(|(colour, one)| match one.by_iteration.as_slice() {
                // A single question: its answer is a level to be compared with.
                _ if one.data_steps <= 1 => Series {
                    name: one.name.clone(),
                    colour,
                    style: Style::Horizontal,
                    points: vec![level(one)],
                },
                course => Series {
                    name: one.name.clone(),
                    colour,
                    style: Style::Marked,
                    points: (1..course.len()).map(|t| point(t, course)).collect(),
                },
            })
            .collect()
    }

    fn quality(&self) -> TextTable {
        let mut rows: Vec<Vec<String>> = self.candidates.iter().map(quality_row).collect();
        rows.extend(
            self.unattainable
                .iter()
                .map(|name| vec![name.clone(), "cannot be had at this total".to_owned()]),
        );
        if let Some(pooled) = &self.centralised {
            let held_out = pooled.held_out.as_ref();
            rows.push(vec![
                "pooled, no noise".to_owned(),
                number(pooled.loss),
                percent(pooled.accuracy),
                held_out.map_or("–".to_owned(), |score| number(score.loss.mean)),
                held_out.map_or("–".to_owned(), |score| percent(score.accuracy.mean)),
                held_out.map_or("–".to_owned(), |score| number(score.auc.mean)),
            ]);
        }
        TextTable {
            caption: "At the end: mean ± standard deviation of a run. Train loss: of each model on its own party’s rows".to_owned(),
            header: [
                "",
                "train loss",
                "right on all training rows",
                "held-out loss",
                "held-out accuracy",
                "held-out AUC",
            ]
            .map(str::to_owned)
            .into(),
            rows,
            folded: false,
        }
    }

    /// What everyone spent, asked and sent.
    fn cost(&self) -> TextTable {
        let rows = self.candidates.iter().map(|one| {
            vec![
                one.name.clone(),
                one.algorithm.to_owned(),
                epsilon(one.total.epsilon),
                match (one.law, one.bound) {
                    (None, _) => "–",
                    (_, Bound::Tight) => "ours",
                    (_, Bound::Paper) => "paper’s",
                }
                .to_owned(),
                one.noise_text(),
                one.data_steps.to_string(),
                thousands(one.messages),
                format!("{:.2}", one.seconds.mean),
            ]
        });
        TextTable {
            caption: "Noise is the rate of gamma noise (large: little noise) or σ of Gaussian noise (small: little noise)".to_owned(),
            header: ["", "algorithm", "total ε", "bound", "noise", "data steps", "messages", "seconds a run"]
                .map(str::to_owned)
                .into(),
            rows: rows.collect(),
            folded: false,
        }
    }
}

/// Where a baseline ends: the models that parties really have, on everybody's rows.
fn level(one: &CandidateResult) -> Point {
    Point {
        x: 0.0,
        y: one.loss_everywhere.mean,
        range: None,
    }
}

/// Who it is, if that can be told from the spread.
fn most_accurate(
    candidates: &[CandidateResult],
    accuracy: fn(&CandidateResult) -> SampleStats,
) -> String {
    // Whoever has no noise where others have is not in the race.
    let private = candidates.iter().any(|one| one.total.epsilon.is_finite());
    let racing =
        |one: &&CandidateResult| one.stopped.is_none() && one.total.epsilon.is_finite() == private;
    let mut best: Vec<&CandidateResult> = candidates.iter().filter(racing).collect();
    best.sort_by(|a, b| accuracy(b).mean.total_cmp(&accuracy(a).mean));
    let [first, second, ..] = best.as_slice() else {
        return String::new();
    };
    let rows = match first.held_out {
        Some(_) => "rows that nobody trained on",
        None => "everybody’s training rows",
    };
    let square = |one: &CandidateResult| accuracy(one).deviation.powi(2) / one.repetitions as f64;
    let apart = accuracy(first).mean - accuracy(second).mean;
    let clear = apart > 2.0 * (square(first) + square(second)).sqrt();
    let words = |one: &CandidateResult| accuracy(one).format_with(percent);
    match clear {
        true => format!(
            " On {rows} **{}** is the most accurate, {} against {} of {}.",
            first.name,
            words(first),
            words(second),
            second.name
        ),
        false => format!(
            " On {rows} {} and {} are the most accurate, {} and {}: no more apart than chance would have them.",
            first.name,
            second.name,
            words(first),
            words(second)
        ),
    }
}

fn quality_row(one: &CandidateResult) -> Vec<String> {
    let held_out = |of: fn(&crate::candidate::HeldOutStats) -> SampleStats,
                    shown: fn(f64) -> String| {
        let score = one.held_out.as_ref().map(of);
        score.map_or("–".to_owned(), |score| score.format_with(shown))
    };
    vec![
        one.name.clone(),
        one.loss.format_with(number),
        one.accuracy_everywhere.format_with(percent),
        held_out(|score| score.loss, number),
        held_out(|score| score.accuracy, percent),
        held_out(|score| score.auc, number),
    ]
}

fn axis(label: &str) -> Axis {
    Axis {
        label: label.to_owned(),
        scale: AxisScale::Linear,
        limits: None,
    }
}
