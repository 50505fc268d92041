//! `result.json`: all results of a study, for machines. docs/study.md describes it.

use std::io;

use radmm::curator::HeldOutScore;
use radmm::node::StepKind;
use radmm::privacy::{Guarantee, Mechanism};
use radmm::sim::{GlobalFit, Optimum, Snapshot};
use radmm_study::rows::RowCounts;
use radmm_study::statement_text::Program;
use radmm_study::{Choice, PrivacySection, Study};
use serde::Serialize;

use crate::experiment::Experiment;
use crate::forecast::BelowMajority;
use crate::majority::MajorityClass;
use crate::outcome::{BaselineRun, NodeResult, Outcome, Repetition};

/// The content of `result.json`.
#[derive(Serialize)]
pub struct ResultFile<'a> {
    program: Program,
    study: &'a Study,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    choices: Vec<Choice>,
    data: &'a RowCounts,
    columns: &'a [String],
    edges: Vec<[u32; 2]>,
    privacy: PrivacySummary<'a>,
    steps: Steps,
    solver: Solver,
    nodes: &'a [NodeResult],
    iterations: &'a [Snapshot],
    everywhere: GlobalFit,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out: Option<HeldOutScore>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: &'a Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    repetitions: &'a [Repetition],
    #[serde(rename = "beside")]
    baselines: &'a [BaselineRun],
    centralised: Option<CentralisedSection<'a>>,
    majority: MajorityClass,
    #[serde(skip_serializing_if = "Option::is_none")]
    below_majority: &'a Option<BelowMajority>,
}

#[derive(Serialize)]
struct CentralisedSection<'a> {
    #[serde(flatten)]
    optimum: &'a Optimum,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out: Option<HeldOutScore>,
}

/// The total with everything needed to read it.
#[derive(Serialize)]
struct PrivacySummary<'a> {
    #[serde(flatten)]
    total: Guarantee,
    epsilon_tight: f64,
    epsilon_paper: Option<f64>,
    scope: &'static str,
    protects: bool,
    caveat: &'a str,
}

#[derive(Serialize)]
struct Steps {
    data: usize,
    recycled: usize,
    messages: usize,
}

#[derive(Serialize)]
struct Solver {
    tolerance: f64,
    largest_residual: f64,
}

/// The scope of every total.
pub(crate) const SCOPE: &str = "total over every message of the run, the largest of the parties'";

/// Returns the reason why a simulation's ε is a statement about the algorithm and not about these rows.
pub fn caveat(privacy: &PrivacySection) -> &'static str {
    match privacy.noise.template() {
        Mechanism::None => "a simulation: it holds all rows and shows unprotected losses",
        _ => {
            "a simulation: it holds all rows and shows unprotected losses, and its noise repeats from a seed"
        }
    }
}

impl<'a> ResultFile<'a> {
    /// Returns the file of an outcome. With several repetitions, `nodes` and `iterations` are those of the first.
    pub fn new(experiment: &'a Experiment, outcome: &'a Outcome) -> Self {
        let first = &outcome.repetitions[0];
        let graph = experiment.graph();
        let residuals = outcome.repetitions.iter().map(|run| run.largest_residual);
        let rounds = first.iterations.len();
        Self {
            program: Program::THIS,
            study: experiment.study(),
            choices: experiment.instance().choices(),
            data: &experiment.table().counts,
            columns: &experiment.table().columns,
            edges: graph.edges().map(|(i, j)| [i.0, j.0]).collect(),
            privacy: privacy_summary(outcome, &experiment.study().privacy),
            steps: Steps {
                data: first.count(StepKind::Data),
                recycled: first.count(StepKind::Recycled),
                messages: rounds * 2 * graph.edge_count(),
            },
            solver: Solver {
                tolerance: experiment.study().algorithm.tolerance,
                largest_residual: residuals.fold(0.0, f64::max),
            },
            nodes: &first.nodes,
            iterations: &first.iterations,
            everywhere: first.everywhere,
            held_out: first.held_out,
            stopped: &first.stopped,
            repetitions: match outcome.repetitions.len() {
                1 => &[],
                _ => &outcome.repetitions,
            },
            baselines: &outcome.baselines,
            centralised: outcome
                .centralised
                .as_ref()
                .map(|optimum| CentralisedSection {
                    optimum,
                    held_out: outcome.centralised_held_out,
                }),
            majority: MajorityClass::of(experiment.table()),
            below_majority: &outcome.below_majority,
        }
    }

    /// Writes the JSON of [`to_json`](Self::to_json) piece by piece: with a hundred thousand models the text has a gigabyte.
    pub fn write_json(&self, mut to: impl io::Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut to, self)?;
        to.write_all(b"\n")
    }

    /// Returns the file as JSON text with a final newline.
    pub fn to_json(&self) -> String {
        // Cannot fail: every map has string keys, and floats that are not finite become null.
        serde_json::to_string_pretty(self).expect("a result is valid JSON") + "\n"
    }
}

/// Returns the privacy of an outcome. The network's loss is the largest of its parties': a row belongs to one of them.
fn privacy_summary<'a>(outcome: &Outcome, privacy: &PrivacySection) -> PrivacySummary<'a> {
    let nodes = || outcome.repetitions.iter().flat_map(|run| &run.nodes);
    let largest = |of: fn(&NodeResult) -> f64| nodes().map(of).fold(0.0, f64::max);
    let paper: Option<Vec<f64>> = nodes().map(|node| node.epsilon_paper).collect();
    PrivacySummary {
        total: outcome.total(),
        epsilon_tight: largest(|node| node.epsilon_tight),
        epsilon_paper: paper.map(|all| all.into_iter().fold(0.0, f64::max)),
        scope: SCOPE,
        protects: false,
        caveat: caveat(privacy),
    }
}
