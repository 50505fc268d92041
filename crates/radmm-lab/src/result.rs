//! `result.json`: everything that came out of a study, for machines. docs/study.md describes it.

use std::io;

use radmm::account::Guarantee;
use radmm::node::Kind;
use radmm::private::{Mechanism, Score};
use radmm::sim::{Everywhere, Optimum, Snapshot};
use radmm_study::table::Counts;
use radmm_study::words::Program;
use radmm_study::{Privacy, Study};
use serde::Serialize;

use crate::experiment::Experiment;
use crate::outcome::{Beside, NodeResult, Outcome, Repetition};

/// What is written.
#[derive(Serialize)]
pub struct ResultFile<'a> {
    program: Program,
    study: &'a Study,
    data: &'a Counts,
    columns: &'a [String],
    edges: Vec<[u32; 2]>,
    privacy: Statement<'a>,
    steps: Steps,
    solver: Solver,
    nodes: &'a [NodeResult],
    iterations: &'a [Snapshot],
    everywhere: Everywhere,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out: Option<Score>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: &'a Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    repetitions: &'a [Repetition],
    beside: &'a [Beside],
    centralised: Option<Centralised<'a>>,
}

#[derive(Serialize)]
struct Centralised<'a> {
    #[serde(flatten)]
    optimum: &'a Optimum,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out: Option<Score>,
}

/// No ε without what it means.
#[derive(Serialize)]
struct Statement<'a> {
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

/// What every total is of.
pub(crate) const SCOPE: &str = "total over every message of the run, the largest of the parties'";

/// Why a simulation's ε is a statement about the algorithm and not about these rows.
pub fn caveat(privacy: &Privacy) -> &'static str {
    match privacy.noise.like() {
        Mechanism::None => "a simulation: it holds all rows and shows unprotected losses",
        _ => {
            "a simulation: it holds all rows and shows unprotected losses, and its noise repeats from a seed"
        }
    }
}

impl<'a> ResultFile<'a> {
    /// The file of an outcome. With several repetitions, `nodes` and `iterations` are those of the first.
    pub fn new(experiment: &'a Experiment, outcome: &'a Outcome) -> Self {
        let first = &outcome.repetitions[0];
        let graph = experiment.graph();
        let residuals = outcome.repetitions.iter().map(|run| run.largest_residual);
        let rounds = first.iterations.len();
        Self {
            program: Program::THIS,
            study: experiment.study(),
            data: &experiment.table().counts,
            columns: &experiment.table().columns,
            edges: graph.edges().map(|(i, j)| [i.0, j.0]).collect(),
            privacy: statement(outcome, &experiment.study().privacy),
            steps: Steps {
                data: first.count(Kind::Data),
                recycled: first.count(Kind::Recycled),
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
            beside: &outcome.beside,
            centralised: outcome.centralised.as_ref().map(|optimum| Centralised {
                optimum,
                held_out: outcome.centralised_held_out,
            }),
        }
    }

    /// Writes what [`to_json`](Self::to_json) says, as it goes: a hundred thousand models would make a text of a gigabyte.
    pub fn write_json(&self, mut to: impl io::Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut to, self)?;
        to.write_all(b"\n")
    }

    /// As text, with a line end.
    pub fn to_json(&self) -> String {
        // Every map has string keys and floats that are not finite become null, so that nothing is left to fail.
        serde_json::to_string_pretty(self).expect("a result is valid JSON") + "\n"
    }
}

/// The network's loss is the largest of its parties': a row belongs to one of them.
fn statement<'a>(outcome: &Outcome, privacy: &Privacy) -> Statement<'a> {
    let nodes = || outcome.repetitions.iter().flat_map(|run| &run.nodes);
    let largest = |of: fn(&NodeResult) -> f64| nodes().map(of).fold(0.0, f64::max);
    let paper: Option<Vec<f64>> = nodes().map(|node| node.epsilon_paper).collect();
    Statement {
        total: outcome.total(),
        epsilon_tight: largest(|node| node.epsilon_tight),
        epsilon_paper: paper.map(|all| all.into_iter().fold(0.0, f64::max)),
        scope: SCOPE,
        protects: false,
        caveat: caveat(privacy),
    }
}
