//! The tables of a run, the same on the terminal and on its page.

use std::fmt::Write;

use radmm::curator::HeldOutScore;
use radmm::node::StepKind;
use radmm::privacy::{Bound, Guarantee, Mechanism};
use radmm::problem::RowCount;
use radmm_report::TextTable;
use radmm_study::Choice;
use radmm_study::number_format::{brief, epsilon, number, percent, thousands};

use crate::baseline::Baseline;
use crate::centralised::optimum_title;
use crate::experiment::Experiment;
use crate::majority::{MAJORITY, MajorityClass};
use crate::outcome::{FinalState, NodeResult, Outcome, Repetition};
use crate::stats::SampleStats;

/// The most parties that a table lists; result.json has all of them.
const PARTIES: usize = 20;

/// Returns the study's algorithm beside training alone, averaging once, the optimum without noise and the majority class,
/// accuracy first. Where rows
/// are held out, accuracy on them takes the place of accuracy on each party's own rows.
pub fn comparison(experiment: &Experiment, outcome: &Outcome) -> TextTable {
    let several = outcome.repetitions.len() > 1;
    let loss = if several { "loss (range)" } else { "loss" };
    let header = match experiment.table().test {
        None => ["", "all rows", "own rows", loss, "consensus", "total ε"],
        Some(_) => ["", "held out", "AUC", "all rows", loss, "total ε"],
    };
    let ends: Vec<FinalState> = outcome
        .repetitions
        .iter()
        .map(Repetition::final_state)
        .collect();
    let mut rows = vec![ends_row(experiment.study().algorithm.method.name(), &ends)];
    for other in &outcome.baselines {
        let name = Baseline::from_method_name(other.name).title();
        rows.push(match other.final_states.as_slice() {
            [] => cells(&[name, "unattainable", "", "", "", ""]),
            ends => ends_row(name, ends),
        });
    }
    if let Some(optimum) = &outcome.centralised {
        let everywhere = percent(optimum.global_fit.accuracy);
        let mut row = vec![optimum_title(experiment.study().problem.count).to_owned()];
        row.extend(match outcome.centralised_held_out {
            None => [
                everywhere,
                percent(optimum.accuracy),
                number(optimum.loss),
                "0".to_owned(),
            ],
            Some(score) => [
                percent(score.accuracy),
                number(score.auc),
                everywhere,
                number(optimum.loss),
            ],
        });
        row.push("∞".to_owned());
        rows.push(row);
    }
    rows.push(majority_row(&MajorityClass::of(experiment.table())));
    TextTable {
        caption: "After the last iteration".to_owned(),
        header: cells(&header),
        rows,
        folded: false,
    }
}

/// Returns one row per party, for the first twenty.
pub fn parties(run: &Repetition, bound: Bound) -> TextTable {
    // The study's own bound beside the other one, where that applies.
    let (other, of_other): (&str, fn(&NodeResult) -> Option<f64>) = match bound {
        Bound::Tight => ("by the paper's bound", |node| node.epsilon_paper),
        Bound::Paper => ("by the tight bound", |node| Some(node.epsilon_tight)),
    };
    let compared = run.nodes.iter().any(|node| of_other(node).is_some());
    let mut header = cells(&["party", "rows", "positive", "neighbours", "data steps"]);
    // The noise, where parties differ in it by more than rounding.
    let amount = |node: &NodeResult| node.law.map(|law| brief(law.amount()));
    let first = amount(&run.nodes[0]);
    let differs = run.nodes.iter().any(|node| amount(node) != first);
    if differs {
        let symbol = run.nodes[0].law.map_or("σ", |law| law.family().symbol());
        header.push(symbol.to_owned());
    }
    header.push("total ε".to_owned());
    if compared {
        header.push(other.to_owned());
    }
    let row = |node: &NodeResult| {
        let mut row = vec![
            node.name.clone(),
            thousands(node.rows),
            percent(node.positive as f64 / node.rows as f64),
            node.degree.to_string(),
            node.data_steps.to_string(),
        ];
        if differs {
            row.push(amount(node).unwrap_or("–".to_owned()));
        }
        row.push(epsilon(node.spent.epsilon));
        if compared {
            row.push(of_other(node).map_or("–".to_owned(), epsilon));
        }
        row
    };
    TextTable {
        caption: "Parties".to_owned(),
        header,
        rows: run.nodes.iter().take(PARTIES).map(row).collect(),
        folded: false,
    }
}

/// Returns the numbers of steps and messages.
pub(super) fn work(experiment: &Experiment, outcome: &Outcome) -> TextTable {
    let run = &outcome.repetitions[0];
    let residuals = outcome.repetitions.iter().map(|run| run.largest_residual);
    let messages = run.iterations.len() * 2 * experiment.graph().edge_count();
    let row = |what: &str, count: String| vec![what.to_owned(), count];
    TextTable {
        caption: "Of one repetition".to_owned(),
        header: cells(&["", "count"]),
        rows: vec![
            row(
                "data steps, which cost privacy",
                thousands(run.count(StepKind::Data)),
            ),
            row(
                "recycled steps, which are free",
                thousands(run.count(StepKind::Recycled)),
            ),
            row("messages between neighbours", thousands(messages)),
            row(
                "largest residual of a minimiser",
                format!("{:.1e}", residuals.fold(0.0, f64::max)),
            ),
        ],
        folded: false,
    }
}

/// Returns the row of the majority class. It has no total, since no party releases it.
fn majority_row(majority: &MajorityClass) -> Vec<String> {
    let everywhere = percent(majority.accuracy);
    let none = || "–".to_owned();
    let mut row = vec![MAJORITY.to_owned()];
    row.extend(match majority.held_out {
        None => [everywhere, percent(majority.own_accuracy), none(), none()],
        Some(held_out) => [
            percent(held_out),
            number(MajorityClass::AUC),
            everywhere,
            none(),
        ],
    });
    row.push(none());
    row
}

fn ends_row(name: &str, ends: &[FinalState]) -> Vec<String> {
    let mean = |of: fn(&FinalState) -> f64| mean(ends, of);
    let losses = || ends.iter().map(|end| end.last.loss);
    let mut loss = number(mean(|end| end.last.loss));
    if ends.len() > 1 {
        let range = losses().fold(f64::MIN, f64::max) - losses().fold(f64::MAX, f64::min);
        // Writing to a string does not fail.
        let _ = write!(loss, " ({})", number(range));
    }
    let everywhere = percent(mean(|end| end.everywhere.accuracy));
    let scores: Option<Vec<HeldOutScore>> = ends.iter().map(|end| end.held_out).collect();
    let mut row = vec![name.to_owned()];
    row.extend(match scores {
        None => [
            everywhere,
            percent(mean(|end| end.last.accuracy)),
            loss,
            number(mean(|end| end.last.consensus)),
        ],
        Some(scores) => {
            let of =
                |number: fn(&HeldOutScore) -> f64| SampleStats::of(scores.iter().map(number)).mean;
            [
                percent(of(|score| score.accuracy)),
                number(of(|score| score.auc)),
                everywhere,
                loss,
            ]
        }
    });
    let total = Guarantee::network(ends.iter().map(|end| end.total));
    row.push(epsilon(total.epsilon));
    row
}

/// Returns the meaning of the columns of [`comparison`].
pub fn legend(experiment: &Experiment, outcome: &Outcome) -> Vec<String> {
    let mut legend = match &experiment.table().test {
        None => vec![
            "all rows, own rows: correctly classified, of everybody's rows and of a party's own"
                .to_owned(),
        ],
        Some(rows) => vec![
            format!(
                "held out: correctly classified of {} rows that nobody trained on",
                thousands(rows.rows())
            ),
            "AUC: area under the ROC curve on them; all rows: of the training rows".to_owned(),
        ],
    };
    let range = match outcome.repetitions.len() {
        1 => "",
        _ => "; range: over the repetitions",
    };
    legend.push(format!(
        "loss: of each model on its own training rows{range}"
    ));
    if experiment.table().test.is_none() {
        legend.push("consensus: the largest distance from the mean model".to_owned());
    }
    if experiment.study().problem.count == RowCount::Parties {
        legend.push("optimum: of the losses of all parties, each counting the same".to_owned());
    }
    legend.push(
        "majority class: the more frequent one of the training rows, for every row".to_owned(),
    );
    if experiment.study().privacy.bound == Bound::Paper && !outcome.baselines.is_empty() {
        legend.push(
            "total ε: by the paper's bound; for alone and averaged by the tight bound".to_owned(),
        );
    }
    let ridge = |name: &str| {
        let of_name = outcome.baselines.iter().find(|other| other.name == name);
        of_name.map_or("–".to_owned(), |other| brief(other.extra_ridge))
    };
    let noisy = !matches!(experiment.study().privacy.noise.template(), Mechanism::None);
    if noisy && !outcome.baselines.is_empty() {
        legend.push(format!(
            "alone, averaged: best of eight ridges in hindsight (added: {} and {})",
            ridge("local"),
            ridge("average")
        ));
    }
    legend
}

/// Returns the mean over the repetitions.
fn mean(ends: &[FinalState], of: fn(&FinalState) -> f64) -> f64 {
    ends.iter().map(of).sum::<f64>() / ends.len() as f64
}

/// Returns cells of fixed text.
fn cells(all: &[&str]) -> Vec<String> {
    all.iter().map(|&one| one.to_owned()).collect()
}

/// Returns the table of what the study leaves to public rules; `None` if it gives everything itself.
pub fn choices(experiment: &Experiment) -> Option<TextTable> {
    let choices = experiment.instance().choices();
    let row = |choice: &Choice| {
        let key = format!("{} = {}", choice.full_key(), choice.short_value());
        vec![key, choice.reason.clone()]
    };
    (!choices.is_empty()).then(|| TextTable {
        caption: "Chosen by public rules, which read no row".to_owned(),
        header: vec!["chosen".to_owned(), "because".to_owned()],
        rows: choices.iter().map(row).collect(),
        folded: false,
    })
}
