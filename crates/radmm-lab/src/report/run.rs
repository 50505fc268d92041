//! The page of `radmm run`.

use radmm::node::StepKind;
use radmm::privacy::Guarantee;
use radmm_report::{Block, Headline, Page, Section, sentences};
use radmm_study::number_format::{count, delta, epsilon, percent, thousands};

use super::headlines::{accuracy_references, capitalised, protection, total_epsilon};
use super::iteration_plots;
use super::tables;
use super::weights;
use crate::baseline::Baseline;
use crate::experiment::Experiment;
use crate::outcome::{FinalState, Outcome, Repetition};
use crate::stats::SampleStats;

/// The most parties that the lead names; more are counted.
const NAMED: usize = 6;

/// Returns the page of a run: headline figures, text, plots and tables.
pub fn run_page(experiment: &Experiment, outcome: &Outcome) -> Page {
    let study = experiment.study();
    let section = |heading: &str, blocks: Vec<Block>| Section {
        heading: heading.to_owned(),
        blocks,
    };
    let plots = iteration_plots::figures(outcome);
    let mut sections = vec![section("What came out", comparison(experiment, outcome))];
    match weights::blocks(experiment, outcome) {
        blocks if blocks.is_empty() => {}
        blocks => sections.push(section("What moves the score", blocks)),
    }
    sections.extend([
        section(
            "Over the iterations",
            plots.into_iter().map(Block::Figure).collect(),
        ),
        section("Parties", parties(experiment, outcome)),
        section(
            "Steps and messages",
            vec![Block::Table(tables::work(experiment, outcome))],
        ),
    ]);
    if let Some(choices) = tables::choices(experiment) {
        let blocks = vec![Block::Table(choices)];
        sections.push(section("What was chosen, and why", blocks));
    }
    sections.push(section("Run it again", again(experiment)));
    Page {
        title: format!(
            "{}: {} with {}",
            study.name,
            study.algorithm.method.name(),
            count(study.network.nodes as usize, "party", "parties")
        ),
        headlines: headlines(experiment, outcome),
        lead: lead(experiment, outcome),
        sections,
        footer: format!(
            "Written by radmm {}. Everything here, and every model, is in `result.json` beside this page.",
            env!("CARGO_PKG_VERSION")
        ),
    }
}

fn headlines(experiment: &Experiment, outcome: &Outcome) -> Vec<Headline> {
    let (study, table) = (experiment.study(), experiment.table());
    let run = iteration_plots::longest(&outcome.repetitions);
    let ends = ends(&outcome.repetitions);
    let (label, rows, accuracy, optimum) = match held_out(&ends) {
        Some(accuracy) => (
            "held-out accuracy",
            format!("on {} that nobody trained on", rows(table.counts.held_out)),
            accuracy,
            outcome.centralised_held_out.map(|score| score.accuracy),
        ),
        None => (
            "training accuracy",
            format!("on all {} that were trained on", rows(table.rows())),
            everywhere(&ends),
            outcome
                .centralised
                .as_ref()
                .map(|optimum| optimum.global_fit.accuracy),
        ),
    };
    let spread = match ends.len() {
        1 => String::new(),
        many => format!(", mean ± standard deviation of {} runs", thousands(many)),
    };
    let below = outcome.below_majority.as_ref();
    let below = below.map(|below| format!(" **{}**.", capitalised(&below.sentence)));
    vec![
        Headline::new(
            label,
            accuracy.format_with(percent),
            format!(
                "{rows}{spread}.{} For comparison: {}.",
                below.unwrap_or_default(),
                accuracy_references(experiment, optimum)
            ),
        ),
        total_epsilon(outcome.total(), &study.privacy),
        Headline::new(
            "parties × iterations",
            format!(
                "{} × {}",
                thousands(table.parties.len()),
                thousands(run.iterations.len() - 1)
            ),
            format!(
                "{}. {}, which cost privacy; {}, which are free",
                rows_in_all(table.rows()),
                count(run.count(StepKind::Data), "data step", "data steps"),
                count(
                    run.count(StepKind::Recycled),
                    "recycled step",
                    "recycled steps"
                ),
            ),
        ),
        protection(&study.privacy),
    ]
}

fn rows(number: usize) -> String {
    count(number, "row", "rows")
}

fn rows_in_all(number: usize) -> String {
    format!("{} in all", rows(number))
}

/// Returns who did what, and what came out, in a paragraph; and whether the run stopped early.
fn lead(experiment: &Experiment, outcome: &Outcome) -> String {
    let mut text = format!("{} {}", setting(experiment, outcome), quality(outcome));
    if let Some(below) = &outcome.below_majority {
        text += &format!("\n\n**{}.**", capitalised(&below.sentence));
        if below.rows_needed.is_some() {
            text += " That many rows in all, at the same total ε and δ, would take the models half of the way from the majority \
                     class to no noise. A larger total or fewer columns would help too.";
        }
    }
    if let Some((k, reason)) = stopped(outcome) {
        let which = match outcome.repetitions.len() {
            1 => String::new(),
            _ => format!(" (repetition {})", k + 1),
        };
        text += &format!(
            "\n\n**The run stopped early**{which}: {reason}. This page shows the iterations until then."
        );
    }
    text
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
        "{}{named} with {} trained a linear classifier by `{}`, talking to their neighbours over {}: {}{}.",
        count(table.parties.len(), "party", "parties"),
        rows_in_all(table.rows()),
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

fn ends(runs: &[Repetition]) -> Vec<FinalState> {
    runs.iter().map(Repetition::final_state).collect()
}

fn everywhere(ends: &[FinalState]) -> SampleStats {
    SampleStats::of(ends.iter().map(|end| end.everywhere.accuracy))
}

fn held_out(ends: &[FinalState]) -> Option<SampleStats> {
    let scores: Option<Vec<f64>> = ends
        .iter()
        .map(|end| end.held_out.map(|score| score.accuracy))
        .collect();
    scores.map(SampleStats::of)
}

/// Returns the accuracy of the parties' models beside the baselines', in a sentence.
fn quality(outcome: &Outcome) -> String {
    let shares = |ends: &[FinalState]| match held_out(ends) {
        Some(score) => percent(score.mean),
        None => percent(everywhere(ends).mean),
    };
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
        against.push(format!("{} {name}", shares(&other.final_states)));
    }
    let own = ends(&outcome.repetitions);
    let rows = match held_out(&own) {
        Some(_) => "the rows that nobody trained on",
        None => "everybody’s training rows",
    };
    let mut text = format!(
        "Their models classify **{}** of {rows} correctly",
        shares(&own)
    );
    if !against.is_empty() {
        let equal = match outcome.total().epsilon.is_finite() {
            true => " at equal privacy",
            false => "",
        };
        text += &format!(", against {}{equal}", against.join(" and "));
    }
    text + "."
}

fn comparison(experiment: &Experiment, outcome: &Outcome) -> Vec<Block> {
    let total = outcome.total();
    let meaning = match total.epsilon.is_finite() {
        true => format!(
            " The parties spent **ε = {} at δ = {}, over every message of the run, the largest of the parties’, for {}**; \
             every ε here is such a total.",
            epsilon(total.epsilon),
            delta(total.delta),
            Guarantee::RELATION
        ),
        false => " Answers were released without protection: there is **no guarantee**.".to_owned(),
    };
    let mut blocks = vec![
        Block::Table(tables::comparison(experiment, outcome)),
        Block::Text(format!(
            "{}{meaning}",
            sentences(&tables::legend(experiment, outcome))
        )),
    ];
    if outcome
        .baselines
        .iter()
        .any(|other| other.final_states.is_empty())
    {
        blocks.push(Block::Text(
            "Unattainable: no amount of noise lets a party answer its one question at the total ε of this run."
                .to_owned(),
        ));
    }
    blocks
}

fn parties(experiment: &Experiment, outcome: &Outcome) -> Vec<Block> {
    let run = &outcome.repetitions[0];
    let total = run.total();
    let mut table = tables::parties(run, experiment.study().privacy.bound);
    if total.epsilon.is_finite() {
        table.caption = format!(
            "Total ε of each party over every message of the run, at δ = {}, for {}",
            delta(total.delta),
            Guarantee::RELATION
        );
    }
    let more = run.nodes.len() - table.rows.len();
    let mut blocks = vec![Block::Table(table)];
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
    vec![
        Block::Text(format!(
            "The same study file and the same seed, {}, give the same numbers to the last bit, on any number of threads:",
            study.run.seed
        )),
        Block::Code("radmm run study.toml --out DIR".to_owned()),
        Block::FoldedCode {
            summary: "The study, with its defaults filled in: save it as `study.toml`".to_owned(),
            code: study.to_toml_with(&experiment.instance().choices()),
        },
    ]
}
