//! What comes out of a study.

use std::time::Duration;

use radmm::account::Guarantee;
use radmm::node::{Kind, Node};
use radmm::private::{Law, Mechanism, Score};
use radmm::sim::{Everywhere, Optimum, Snapshot};
use radmm_study::equal;
use serde::Serialize;

/// Everything that came out of a study.
pub struct Outcome {
    /// At least one.
    pub repetitions: Vec<Repetition>,
    /// Training alone and averaging once, at equal privacy, unless the study itself is one of them.
    pub beside: Vec<Beside>,
    /// One party with all rows and no noise; `None` if its minimiser could not be certified.
    pub centralised: Option<Optimum>,
    /// How good that is on the rows held out, if there are any.
    pub centralised_held_out: Option<Score>,
}

impl Outcome {
    /// The largest of the repetitions': they differ if one was stopped.
    pub fn total(&self) -> Guarantee {
        Guarantee::network(self.repetitions.iter().map(Repetition::total))
    }
}

/// All repetitions of one study.
pub struct Runs {
    /// In order, at least one.
    pub repetitions: Vec<Repetition>,
    /// The time that each took: repetitions run together, in groups, and share the time of their group equally. It is the
    /// group's wall time, with whatever ran beside it.
    pub took: Vec<Duration>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repetition {
    /// By number.
    pub nodes: Vec<NodeResult>,
    /// From 0 on.
    pub iterations: Vec<Snapshot>,
    /// How good the last models are on everybody's rows.
    pub everywhere: Everywhere,
    /// How good they are on the rows held out, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<Score>,
    /// Why it ended before its last iteration, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The largest gradient norm at which a minimiser was released.
    pub largest_residual: f64,
    /// Passes over a party's rows that an answer took: the median over all answers; zero without any.
    pub median_passes: u8,
}

/// One party at the end of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeResult {
    /// `node 3`, or the value by which rows were dealt out.
    pub name: String,
    /// `B_i`.
    pub rows: usize,
    /// `V_i`.
    pub degree: usize,
    /// How often its rows were asked.
    pub data_steps: u32,
    /// The noise in its answers, if there is any: at a common total, parties with fewer rows have more.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub law: Option<Law>,
    /// What that cost in total, by the study's bound.
    #[serde(flatten)]
    pub spent: Guarantee,
    /// The same by our bound.
    pub epsilon_tight: f64,
    /// The same by the paper's, where its theorem covers everything that was released.
    pub epsilon_paper: Option<f64>,
    /// `f_i`.
    pub model: Vec<f64>,
    /// `λ_i`, where the algorithm has duals.
    pub dual: Option<Vec<f64>>,
}

/// What a user would otherwise do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// `local` or `average`.
    pub name: &'static str,
    /// What its question had beyond the common ridge: the best of several in hindsight.
    pub extra_ridge: f64,
    /// By repetition; empty if it cannot be had at this privacy.
    pub ends: Vec<End>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct End {
    /// The last iteration.
    #[serde(flatten)]
    pub last: Snapshot,
    /// What was spent in all: more than at the end of that iteration, if a run was stopped in the middle of the next.
    #[serde(skip)]
    pub total: Guarantee,
    /// How good its models are on everybody's rows.
    pub everywhere: Everywhere,
    /// How good they are on the rows held out, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<Score>,
}

impl Repetition {
    /// How it ended.
    pub fn end(&self) -> End {
        End {
            // Iteration 0 asks nothing, so that there is always one.
            last: self.iterations[self.iterations.len() - 1],
            total: self.total(),
            everywhere: self.everywhere,
            held_out: self.held_out,
        }
    }

    /// What was spent, with every charge: by a run that was stopped in the middle of an iteration too.
    pub fn total(&self) -> Guarantee {
        Guarantee::network(self.nodes.iter().map(|node| node.spent))
    }

    /// How many iterations were of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.iterations
            .iter()
            .filter(|made| made.kind == kind)
            .count()
    }
}

impl NodeResult {
    /// What can be said of a node now.
    pub(crate) fn of(node: &Node, name: String, noise: &Mechanism) -> Self {
        let curator = node.curator();
        let ledger = curator.ledger();
        Self {
            name,
            rows: curator.rows(),
            degree: node.neighbours().len(),
            data_steps: ledger.charges(),
            law: equal::law(noise),
            spent: ledger.spent(),
            epsilon_tight: ledger.spent_tight().epsilon,
            epsilon_paper: ledger.spent_paper().map(|total| total.epsilon),
            model: node.model().values().to_vec(),
            dual: node.dual().map(<[f64]>::to_vec),
        }
    }
}
