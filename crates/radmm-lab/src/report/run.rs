//! The report of one study, run.

use radmm::privacy::Guarantee;
use radmm_study::{PrivacySection, Study};
use serde_json::Value;

use super::iteration_plots;
use super::tables::{self, mean};
use crate::baseline::Baseline;
use crate::experiment::Experiment;
use crate::outcome::{FinalState, Outcome, Repetition};
use crate::result_file::caveat;
use crate::stats::SampleStats;
use radmm_report::{Block, Page, Section};
use radmm_study::number_format::{count, epsilon, percent, thousands};

/// More parties than this are counted, not named.
const NAMED: usize = 6;

/// What came out of a study, in words, pictures and tables.
pub fn run_page(experiment: &Experiment, outcome: &Outcome) -> Page {
    let study = experiment.study();
    let section = |heading: &str, blocks: Vec<Block>| Section {
        heading: heading.to_owned(),
        blocks,
    };
    Page {
        title: format!(
            "{}: {} with {}",
            study.name,
            study.algorithm.method.name(),
            count(study.network.nodes as usize, "party", "parties")
        ),
        lead: lead(experiment, outcome),
        headlines: Vec::new(),
        sections: vec![
            section("What came out", comparison(experiment, outcome)),
            section(
                "Over the iterations",
                iteration_plots::figures(outcome)
                    .into_iter()
                    .map(Block::Figure)
                    .collect(),
            ),
            section("Parties", parties(experiment, outcome)),
            section(
                "Steps and messages",
                vec![Block::Table(tables::work(experiment, outcome))],
            ),
            section("Run it again", again(experiment)),
        ],
        footer: format!(
            "Written by radmm {}. Everything here, and every model, is in `result.json` beside this page.",
            env!("CARGO_PKG_VERSION")
        ),
    }
}

/// Who did what, what it cost, what came out, and what a simulation is not.
fn lead(experiment: &Experiment, outcome: &Outcome) -> String {
    let privacy = &experiment.study().privacy;
    let mut paragraphs = vec![format!(
        "{} {} {}",
        setting(experiment, outcome),
        spent(outcome.total(), privacy),
        quality(outcome)
    )];
    if let Some((k, reason)) = stopped(outcome) {
        let which = match outcome.repetitions.len() {
            1 => String::new(),
            _ => format!(" (repetition {})", k + 1),
        };
        paragraphs.push(format!("**The run stopped early**{which}: {reason}. What is shown is what there was until then."));
    }
    paragraphs.push(format!("**This is {}.**", caveat(privacy)));
    paragraphs.join("\n\n")
}

fn stopped(outcome: &Outcome) -> Option<(usize, &str)> {
    let mut runs = outcome.repetitions.iter().enumerate();
    runs.find_map(|(k, run)| run.stopped.as_deref().map(|reason| (k, reason)))
}

fn setting(experiment: &Experiment, outcome: &Outcome) -> String {
    let (study, table) = (experiment.study(), experiment.table());
    let names: Vec<&str> = table
        .parties
        .iter()
        .map(|party| party.name.as_str())
        .collect();
    let numbered = |name: &&str| name.starts_with("node ");
    let named = match names.len() {
        0..=NAMED if !names.iter().all(numbered) => format!(" ({})", names.join(", ")),
        _ => String::new(),
    };
    let iterations = study.algorithm.iterations as usize;
    let planned = count(iterations, "iteration", "iterations");
    // Iteration 0 is the start.
    let made = iteration_plots::longest(&outcome.repetitions)
        .iterations
        .len()
        - 1;
    format!(
        "{}{named} with {} in all trained a linear classifier by `{}`, talking to their neighbours over {}: {}{}.",
        count(table.parties.len(), "party", "parties"),
        count(table.rows(), "row", "rows"),
        study.algorithm.method.name(),
        count(experiment.graph().edge_count(), "edge", "edges"),
        match stopped(outcome) {
            Some(_) => format!("{} of {planned}", thousands(made)),
            None => planned,
        },
        match study.run.repetitions {
            1 => String::new(),
            many => format!(", {} repetitions", thousands(many as usize)),
        },
    )
}

fn spent(total: Guarantee, privacy: &PrivacySection) -> String {
    if total.epsilon.is_finite() {
        format!("They spent **{}**.", statement(total))
    } else {
        format!(
            "Answers were released {}, so that there is **no guarantee**.",
            privacy.unprotected().unwrap_or_default()
        )
    }
}

/// No ε without what it means.
fn statement(total: Guarantee) -> String {
    format!(
        "a total of ε = {} at δ = {}, over every message of the run, the largest of the parties’, for {}",
        epsilon(total.epsilon),
        total.delta,
        Guarantee::RELATION
    )
}

/// How many rows are classified rightly: everybody's, and those that nobody trained on.
fn quality(outcome: &Outcome) -> String {
    let ends: Vec<FinalState> = outcome
        .repetitions
        .iter()
        .map(Repetition::final_state)
        .collect();
    let held_out = |ends: &[FinalState]| {
        let scores: Option<Vec<f64>> = ends
            .iter()
            .map(|end| end.held_out.map(|score| score.accuracy))
            .collect();
        scores.map(|scores| SampleStats::of(scores).mean)
    };
    let right = |ends: &[FinalState]| mean(ends, |end| end.everywhere.accuracy);
    let mut against: Vec<String> = Vec::new();
    for other in outcome
        .baselines
        .iter()
        .filter(|other| !other.final_states.is_empty())
    {
        let name = match Baseline::from_method_name(other.name) {
            Baseline::Averaged => "for models averaged once",
            Baseline::Alone => "for each party alone",
        };
        let shares = shares(
            right(&other.final_states),
            held_out(&other.final_states),
            "",
        );
        against.push(format!("{shares} {name}"));
    }
    let equal = if against.is_empty() || outcome.total().epsilon.is_infinite() {
        ""
    } else {
        " at equal privacy"
    };
    let mut words = against.join(", ") + equal;
    if let Some(optimum) = &outcome.centralised {
        let joint = if words.is_empty() { "" } else { ", and " };
        let score = outcome.centralised_held_out.map(|score| score.accuracy);
        words += &format!(
            "{joint}{} for one party with all rows and no noise",
            shares(optimum.global_fit.accuracy, score, "")
        );
    }
    let (own, score) = (right(&ends), held_out(&ends));
    let mut sentence = match score {
        None => format!(
            "Their models classify {} of everybody’s rows rightly",
            shares(own, None, "**")
        ),
        Some(_) => format!(
            "Their models classify {} of the rows rightly that they trained on together (and of those that nobody trained on)",
            shares(own, score, "**")
        ),
    };
    if !words.is_empty() {
        sentence += &format!(", against {words}");
    }
    sentence + "."
}

/// `79.8 % (81.9 %)`, between marks.
fn shares(right: f64, held_out: Option<f64>, mark: &str) -> String {
    let held_out = held_out.map_or(String::new(), |share| format!(" ({})", percent(share)));
    format!("{mark}{}{held_out}{mark}", percent(right))
}

fn comparison(experiment: &Experiment, outcome: &Outcome) -> Vec<Block> {
    let total = outcome.total();
    let meaning = if total.epsilon.is_finite() {
        format!(
            " Every ε is a total over every message of the run, the largest of the parties’, at δ = {}, for {}.",
            total.delta,
            Guarantee::RELATION
        )
    } else {
        String::new()
    };
    let mut blocks = vec![
        Block::Table(tables::comparison(experiment, outcome)),
        Block::Text(format!(
            "{}.{meaning}",
            sentences(&tables::legend(experiment, outcome))
        )),
    ];
    if outcome
        .baselines
        .iter()
        .any(|other| other.final_states.is_empty())
    {
        blocks.push(Block::Text(
            "Too dear: no amount of noise lets a party answer its one question at the privacy of this run.".to_owned(),
        ));
    }
    blocks
}

/// With capitals and full stops between them.
fn sentences(lines: &[String]) -> String {
    let capital = |line: &String| {
        let mut letters = line.chars();
        let first = letters.next().map(|letter| letter.to_uppercase());
        first
            .into_iter()
            .flatten()
            .chain(letters)
            .collect::<String>()
    };
    lines.iter().map(capital).collect::<Vec<_>>().join(". ")
}

fn parties(experiment: &Experiment, outcome: &Outcome) -> Vec<Block> {
    let run = &outcome.repetitions[0];
    let total = run.total();
    let mut grid = tables::parties(run, experiment.study().privacy.bound);
    if total.epsilon.is_finite() {
        grid.caption = format!(
            "Total ε of each party over every message of the run, at δ = {}, for {}",
            total.delta,
            Guarantee::RELATION
        );
    }
    let more = run.nodes.len() - grid.rows.len();
    let mut blocks = vec![Block::Table(grid)];
    if more > 0 {
        blocks.push(Block::Text(format!(
            "… and {} more, in `result.json`.",
            thousands(more)
        )));
    }
    blocks
}

fn again(experiment: &Experiment) -> Vec<Block> {
    let study = experiment.study();
    let code = study_in_lines(study);
    vec![
        Block::Text(format!(
            "The same study file and the same seed, {}, give the same numbers to the last bit, on any number of threads.",
            study.run.seed
        )),
        Block::Code("radmm run STUDY.toml --out DIR".to_owned()),
        Block::Text("The study as it was understood:".to_owned()),
        Block::Code(code),
    ]
}

/// A study as it was understood, one line a key.
pub(super) fn study_in_lines(study: &Study) -> String {
    // Every map has string keys, so that nothing is left to fail.
    let value = serde_json::to_value(study).expect("a study is valid JSON");
    written(&value, 1)
}

/// JSON with one line a key: lists stay on theirs.
fn written(value: &Value, depth: usize) -> String {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let indent = "  ".repeat(depth);
            let line = |(key, value): (&String, &Value)| {
                let key = Value::from(key.as_str());
                format!("{indent}{key}: {}", written(value, depth + 1))
            };
            let lines: Vec<String> = map.iter().map(line).collect();
            format!("{{\n{}\n{}}}", lines.join(",\n"), "  ".repeat(depth - 1))
        }
        other => other.to_string(),
    }
}
