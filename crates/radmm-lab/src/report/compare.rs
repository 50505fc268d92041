//! The page of `radmm compare`.

use radmm::privacy::{Bound, Guarantee};
use radmm::problem::RowCount;
use radmm_report::{
    Axis, Block, DotPlot, DotRow, Figure, Headline, Page, Panel, Point, Section, Series, Style,
    TextTable,
};
use radmm_study::number_format::{count, delta, epsilon, number, percent, thousands};

use super::headlines::{accuracy_references, protection, total_epsilon};
use crate::candidate::{CandidateResult, HeldOutStats, IterationStats};
use crate::centralised::{optimum_text, optimum_title};
use crate::compare::{Comparison, ComparisonResult};
use crate::majority::{MAJORITY, MajorityClass};
use crate::stats::SampleStats;

impl ComparisonResult {
    /// Returns what everyone may spend, in a sentence.
    pub fn statement(&self) -> String {
        match self.total.epsilon.is_finite() {
            true => format!(
                "every party may spend a total ε of {} at δ = {} over every message of the run, for {}",
                epsilon(self.total.epsilon),
                delta(self.total.delta),
                Guarantee::RELATION
            ),
            false => {
                "no study has noise and releases on the grid: there is no guarantee".to_owned()
            }
        }
    }

    /// Returns the exceptions to the statement, a line each.
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
                "unattainable: no noise brings the cost of {} down to this total; raise --epsilon, or --delta for Gaussian noise",
                self.unattainable.join(", ")
            ));
        }
        lines
    }

    /// Returns the loss over the iterations, and over the data steps.
    pub fn figure(&self) -> Figure {
        Figure {
            id: "compare".to_owned(),
            title: "Loss of the mean model on everybody’s training rows at equal total privacy"
                .to_owned(),
            caption: format!("{LOSS_CAPTION}{}", self.drawn_note()),
            columns: 2,
            panels: self.loss_panels("").into(),
        }
    }

    /// Returns a sentence on the candidates that the figure leaves out, if it does.
    pub(super) fn drawn_note(&self) -> &'static str {
        match self.candidates.len() > MOST_DRAWN {
            true => " Drawn are the eight most accurate.",
            false => "",
        }
    }

    /// Returns the panels of the figure; `at` ends their titles.
    pub(super) fn loss_panels(&self, at: &str) -> [Panel; 2] {
        let panel = |title: &str, label: &str, x: fn(usize, &[IterationStats]) -> f64| {
            let panel = Panel {
                title: format!("{title}{at}"),
                x: Axis::linear(label),
                y: Axis::linear("mean loss"),
                series: self.series(x),
            };
            panel.with_robust_y_axis()
        };
        [
            panel("By iteration", "iteration t", |t, _| t as f64),
            panel("By data steps", "data steps so far", |t, course| {
                let data = |at: &&IterationStats| at.kind == radmm::node::StepKind::Data;
                course[..=t].iter().filter(data).count() as f64
            }),
        ]
    }

    /// Returns the page: headline figures, accuracy, loss, cost and the studies.
    pub fn page(&self, comparison: &Comparison) -> Page {
        let experiment = &comparison.candidates()[0].experiment;
        let exceptions = self.exceptions();
        let exceptions = exceptions.iter().map(|line| format!("\n\n**{line}**"));
        let lead = format!(
            "At equal privacy {}.{}{}",
            self.statement(),
            self.most_accurate(),
            exceptions.collect::<String>()
        );
        Page {
            title: format!("{} and others at equal privacy", experiment.study().name),
            lead,
            headlines: self.headlines(comparison),
            sections: vec![
                section("Accuracy", self.accuracy_blocks("accuracy")),
                section("Loss", vec![Block::Figure(self.figure())]),
                section("Cost", self.cost_blocks()),
                section("The studies", studies(comparison)),
            ],
            footer: FOOTER.to_owned(),
        }
    }

    /// Returns the plot, with this id, and the table of accuracies.
    pub(super) fn accuracy_blocks(&self, id: &str) -> Vec<Block> {
        vec![
            Block::DotPlot(self.accuracy_plot(id)),
            Block::Table(self.quality()),
        ]
    }

    /// Returns what everyone spent, asked and sent, with its legend.
    pub(super) fn cost_blocks(&self) -> Vec<Block> {
        vec![Block::Table(self.cost()), Block::Text(COST.to_owned())]
    }

    fn headlines(&self, comparison: &Comparison) -> Vec<Headline> {
        let experiment = &comparison.candidates()[0].experiment;
        let studies = comparison.candidates().len();
        let all = self.candidates.len() + self.unattainable.len();
        let runs = experiment.study().run.repetitions as usize;
        let mut headlines = Vec::new();
        if let Some(best) = self.racing().first() {
            headlines.push(Headline::new(
                match self.on_held_out() {
                    true => "best held-out accuracy",
                    false => "best training accuracy",
                },
                best.accuracy_shown().format_with(percent),
                format!(
                    "**{}**. For comparison: {}.",
                    best.name,
                    accuracy_references(
                        experiment,
                        self.optimum_accuracy().map(|(_, share)| share)
                    )
                ),
            ));
        }
        let privacy = &experiment.study().privacy;
        headlines.extend([
            total_epsilon(self.total, privacy),
            Headline::new(
                "candidates × runs",
                format!("{} × {}", thousands(all), thousands(runs)),
                format!(
                    "{} and {} on {} of {}",
                    count(studies, "study", "studies"),
                    count(all - studies, "baseline", "baselines"),
                    count(experiment.table().rows(), "row", "rows"),
                    count(experiment.graph().len(), "party", "parties")
                ),
            ),
            protection(privacy),
        ]);
        headlines
    }

    /// Returns whether there are rows that nobody trained on.
    fn on_held_out(&self) -> bool {
        self.candidates.iter().any(|one| one.held_out.is_some())
    }

    /// Returns the accuracy of the optimum without noise, and what counts alike in it.
    pub(super) fn optimum_accuracy(&self) -> Option<(RowCount, f64)> {
        let optimum = self.centralised.as_ref()?;
        let accuracy = match &optimum.held_out {
            Some(score) => score.accuracy.mean,
            None => optimum.accuracy_everywhere,
        };
        Some((optimum.count, accuracy))
    }

    /// Returns all candidates with their indices, the most accurate first.
    fn ranked(&self) -> Vec<(usize, &CandidateResult)> {
        let mut ranked: Vec<(usize, &CandidateResult)> =
            self.candidates.iter().enumerate().collect();
        ranked.sort_by(|(_, a), (_, b)| {
            let accuracy = |one: &CandidateResult| one.accuracy_shown().mean;
            accuracy(b).total_cmp(&accuracy(a))
        });
        ranked
    }

    /// Returns the candidates that can be the best: those that ran to the end, with a guarantee if anyone has one.
    pub(crate) fn racing(&self) -> Vec<&CandidateResult> {
        let private = self
            .candidates
            .iter()
            .any(|one| one.total.epsilon.is_finite());
        let racing = |one: &&CandidateResult| {
            one.stopped.is_none() && one.total.epsilon.is_finite() == private
        };
        self.ranked()
            .into_iter()
            .map(|(_, one)| one)
            .filter(racing)
            .collect()
    }

    /// Returns who is the most accurate, in a sentence, if that can be told from the spread.
    pub(super) fn most_accurate(&self) -> String {
        let racing = self.racing();
        let [first, second, ..] = racing.as_slice() else {
            return String::new();
        };
        let rows = match self.on_held_out() {
            true => "rows that nobody trained on",
            false => "everybody’s training rows",
        };
        let square =
            |one: &CandidateResult| one.accuracy_shown().deviation.powi(2) / one.repetitions as f64;
        let apart = first.accuracy_shown().mean - second.accuracy_shown().mean;
        let clear = apart > 2.0 * (square(first) + square(second)).sqrt();
        let shown = |one: &CandidateResult| one.accuracy_shown().format_with(percent);
        match clear {
            true => format!(
                " On {rows} **{}** is the most accurate, {} against {} of {}.",
                first.name,
                shown(first),
                shown(second),
                second.name
            ),
            false => format!(
                " On {rows} {} and {} are the most accurate, {} and {}: a difference within two standard errors.",
                first.name,
                second.name,
                shown(first),
                shown(second)
            ),
        }
    }

    /// Returns the accuracy of everyone, the best first.
    fn accuracy_plot(&self, id: &str) -> DotPlot {
        let row = |(colour, one): (usize, &CandidateResult)| {
            let accuracy = one.accuracy_shown();
            let (mean, error) = (100.0 * accuracy.mean, 100.0 * accuracy.deviation);
            DotRow {
                name: match one.stopped {
                    Some(_) => format!("{} (stopped)", one.name),
                    None => one.name.clone(),
                },
                value: mean,
                range: (error > 0.0).then_some((mean - error, mean + error)),
                text: accuracy.format_with(percent),
                colour,
            }
        };
        let optimum = self.optimum_accuracy();
        let majority = self.majority.accuracy_shown();
        let mut references = vec![(MAJORITY.to_owned(), 100.0 * majority)];
        references.extend(optimum.map(|(count, share)| {
            let title = optimum_title(count).to_owned();
            (title, 100.0 * share)
        }));
        let majority = format!(
            "the majority class in answer to every row, {}",
            percent(majority)
        );
        let lines = match optimum {
            None => format!(" The dashed line is {majority}."),
            Some((count, share)) => format!(
                " The dashed lines are {majority}, and {}, {}.",
                optimum_text(count),
                percent(share)
            ),
        };
        let on = match self.on_held_out() {
            true => "the rows held out",
            false => "everybody’s training rows",
        };
        DotPlot {
            id: id.to_owned(),
            title: format!("Accuracy on {on} at equal total privacy"),
            caption: format!(
                "Mean and standard deviation over the runs, the best first. An arrow marks a value beyond the axis.{lines}"
            ),
            label: "accuracy, %".to_owned(),
            rows: self.ranked().into_iter().map(row).collect(),
            references,
        }
    }

    /// Returns the candidates that the figure draws, each with its colour: all, or the most accurate of many.
    fn drawn(&self) -> Vec<(usize, &CandidateResult)> {
        match self.candidates.len() {
            few if few <= MOST_DRAWN => self.candidates.iter().enumerate().collect(),
            _ => {
                let best = self.ranked().into_iter().take(MOST_DRAWN);
                best.map(|(_, one)| one).enumerate().collect()
            }
        }
    }

    fn series(&self, x: fn(usize, &[IterationStats]) -> f64) -> Vec<Series> {
        let point = |t: usize, course: &[IterationStats]| {
            // A comparison measures all mean models.
            let loss = course[t].mean_model_loss.unwrap_or(course[t].loss);
            Point {
                x: x(t, course),
                y: loss.mean,
                range: (loss.low < loss.high).then_some((loss.low, loss.high)),
            }
        };
        let finished = |(_, one): &(usize, &CandidateResult)| one.stopped.is_none();
        self.drawn()
            .into_iter()
            .filter(finished)
            .map(|(colour, one)| match one.by_iteration.as_slice() {
                // The answer to a single question is a horizontal line.
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

    /// Returns how good everyone is at the end, the best first.
    fn quality(&self) -> TextTable {
        let on_held_out = self.on_held_out();
        let mut header = vec![String::new()];
        if on_held_out {
            header
                .extend(["held-out accuracy", "held-out AUC", "held-out loss"].map(str::to_owned));
        }
        header.extend(["accuracy on all training rows", "train loss"].map(str::to_owned));
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (_, one) in self.ranked() {
            rows.push(quality_row(
                &one.name,
                on_held_out.then_some(one.held_out.as_ref()),
                one.accuracy_everywhere.format_with(percent),
                one.loss.format_with(number),
            ));
        }
        for name in &self.unattainable {
            rows.push(vec![name.clone(), "unattainable at this total".to_owned()]);
        }
        if let Some(optimum) = &self.centralised {
            rows.push(quality_row(
                optimum_title(optimum.count),
                on_held_out.then_some(optimum.held_out.as_ref()),
                percent(optimum.accuracy_everywhere),
                number(optimum.loss),
            ));
        }
        rows.push(self.majority_row());
        TextTable {
            caption: "At the end: mean ± standard deviation of a run. Train loss: of each model on its own party’s rows".to_owned(),
            header,
            rows,
            folded: false,
        }
    }

    fn majority_row(&self) -> Vec<String> {
        let none = || "–".to_owned();
        let mut row = vec![MAJORITY.to_owned()];
        if self.on_held_out() {
            let accuracy = self.majority.held_out.map_or_else(none, percent);
            row.extend([accuracy, number(MajorityClass::AUC), none()]);
        }
        row.extend([percent(self.majority.accuracy), none()]);
        row
    }

    /// Returns what everyone spent, asked and sent. Times are left out: the same study gives the same page.
    fn cost(&self) -> TextTable {
        let rows = self.ranked().into_iter().map(|(_, one)| {
            vec![
                one.name.clone(),
                one.algorithm.to_owned(),
                epsilon(one.total.epsilon),
                match (one.law, one.bound) {
                    (None, _) => "–",
                    (_, Bound::Tight) => "tight",
                    (_, Bound::Paper) => "paper’s",
                }
                .to_owned(),
                one.noise_text(),
                one.data_steps.to_string(),
                thousands(one.messages),
            ]
        });
        TextTable {
            caption: "Noise is the rate of gamma or Laplace noise (large: little noise) or σ of Gaussian noise (small: little noise)".to_owned(),
            header: ["", "algorithm", "total ε", "bound", "noise", "data steps", "messages"]
                .map(str::to_owned)
                .into(),
            rows: rows.collect(),
            folded: false,
        }
    }
}

/// The most candidates in a figure of the loss, which has as many colours.
const MOST_DRAWN: usize = 8;

pub(super) const LOSS_CAPTION: &str = "Mean over the runs, with bars from the least to the greatest; iteration 0 is left out. \
    Arrows mark values beyond the axis. Left: by iteration. Right: by data steps, which cost privacy and computation.";

pub(super) const FOOTER: &str = "A study is shown with the noise it came with; the table of costs has the noise that was found.";

const COST: &str = "Totals are by the first study’s bound where it applies: the paper’s covers neither Gaussian noise, nor noise on answers, \
    nor questions without a penalty. The baselines gossip until they agree. Each has the best of eight ridges in hindsight, by its \
    accuracy on all training rows.";

impl CandidateResult {
    /// Returns the accuracy to compare by: on the rows held out if there are any, else on all training rows.
    pub(crate) fn accuracy_shown(&self) -> SampleStats {
        match &self.held_out {
            Some(score) => score.accuracy,
            None => self.accuracy_everywhere,
        }
    }
}

pub(super) fn section(heading: &str, blocks: Vec<Block>) -> Section {
    Section {
        heading: heading.to_owned(),
        blocks,
    }
}

/// Returns the files of the studies.
pub(super) fn studies(comparison: &Comparison) -> Vec<Block> {
    let studies = comparison.candidates().iter();
    let code = studies.map(|candidate| Block::FoldedCode {
        summary: candidate.name.clone(),
        code: candidate.experiment.study().to_toml(),
    });
    code.collect()
}

/// Returns the end of a baseline: the models that parties really have, on everybody's rows.
fn level(one: &CandidateResult) -> Point {
    Point {
        x: 0.0,
        y: one.loss_everywhere.mean,
        range: None,
    }
}

/// Returns a row of the table of quality; `held_out` is `None` where no rows are held out at all.
fn quality_row(
    name: &str,
    held_out: Option<Option<&HeldOutStats>>,
    accuracy: String,
    loss: String,
) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    if let Some(score) = held_out {
        row.extend(match score {
            Some(score) => [
                score.accuracy.format_with(percent),
                score.auc.format_with(number),
                score.loss.format_with(number),
            ],
            None => ["–", "–", "–"].map(str::to_owned),
        });
    }
    row.extend([accuracy, loss]);
    row
}
