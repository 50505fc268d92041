//! The results of a study's runs.

use std::sync::Arc;
use std::time::Duration;

use radmm::curator::HeldOutScore;
use radmm::node::{Node, StepKind};
use radmm::privacy::{Guarantee, Mechanism, NoiseDistribution, PrivacyProfile};
use radmm::problem::RowCount;
use radmm::sim::{GlobalFit, Optimum, Snapshot};
use radmm_study::rows::PartyRows;
use serde::Serialize;

use crate::forecast::BelowMajority;

/// The results of a study: its repetitions, its baselines and the centralised optimum.
pub struct Outcome {
    /// The repetitions, at least one.
    pub repetitions: Vec<Repetition>,
    /// The baselines at equal privacy, unless the study itself is one of them.
    pub baselines: Vec<BaselineRun>,
    /// Whether rows or parties count alike in the common objective.
    pub count: RowCount,
    /// The optimum of the common objective without noise; `None` if its minimiser could not be certified.
    pub centralised: Option<Optimum>,
    /// The quality of the centralised model on held-out rows, if there are any.
    pub centralised_held_out: Option<HeldOutScore>,
    /// The finding that the models are no better than the majority class, if so and the run did not stop early.
    pub below_majority: Option<BelowMajority>,
}

impl Outcome {
    /// Returns the largest total of the repetitions, which differ if one stopped early.
    pub fn total(&self) -> Guarantee {
        Guarantee::network(self.repetitions.iter().map(Repetition::total))
    }
}

/// All repetitions of one study, with their wall times.
pub struct RepeatedRuns {
    /// The repetitions in order, at least one.
    pub repetitions: Vec<Repetition>,
    /// The wall time of each repetition. Repetitions of a group run together and share the group's wall time equally; it
    /// includes whatever ran at the same time.
    pub wall_times: Vec<Duration>,
}

/// One run of a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repetition {
    /// The parties, by number.
    pub nodes: Vec<NodeResult>,
    /// The iterations, from 0 on.
    pub iterations: Vec<Snapshot>,
    /// The quality of the last models on everybody's rows.
    pub everywhere: GlobalFit,
    /// Their quality on held-out rows, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOutScore>,
    /// The reason for ending before the last iteration, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The largest gradient norm at which a minimiser was released.
    pub largest_residual: f64,
    /// The median number of passes over a party's rows that an answer took; zero without any answers.
    pub median_passes: u8,
}

/// One party at the end of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeResult {
    /// `node 3`, or the value of the column by which rows were split.
    pub name: String,
    /// `B_i`.
    pub rows: usize,
    /// The number of its rows of the positive class. A simulation holds all rows and may show it.
    pub positive: usize,
    /// `V_i`.
    pub degree: usize,
    /// The number of queries to its rows.
    pub data_steps: u32,
    /// The noise in its answers, if there is any. At a common total, parties with fewer rows have more.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub law: Option<NoiseDistribution>,
    /// The total by the study's bound.
    #[serde(flatten)]
    pub spent: Guarantee,
    /// The total by the study's bound at several `δ`, unless it is pure or infinite.
    #[serde(skip)]
    pub profile: Option<Arc<PrivacyProfile>>,
    /// The total by our bound.
    pub epsilon_tight: f64,
    /// The total by the paper's bound, where its theorem covers everything that was released.
    pub epsilon_paper: Option<f64>,
    /// `f_i`.
    pub model: Vec<f64>,
    /// `λ_i`, where the algorithm has duals.
    pub dual: Option<Vec<f64>>,
}

/// All repetitions of a baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BaselineRun {
    /// `local` or `average`.
    pub name: &'static str,
    /// The ridge of its query beyond the common one: the best of several in hindsight.
    pub extra_ridge: f64,
    /// The end of each repetition; empty if no noise reaches this privacy.
    #[serde(rename = "ends")]
    pub final_states: Vec<FinalState>,
}

/// The state at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FinalState {
    /// The last iteration.
    #[serde(flatten)]
    pub last: Snapshot,
    /// The total. It exceeds that of the last iteration if a run stopped in the middle of the next.
    #[serde(skip)]
    pub total: Guarantee,
    /// The quality of the models on everybody's rows.
    pub everywhere: GlobalFit,
    /// Their quality on held-out rows, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOutScore>,
}

impl Repetition {
    /// Returns the state at the end.
    pub fn final_state(&self) -> FinalState {
        FinalState {
            // Iteration 0 asks nothing, so that there is always one.
            last: self.iterations[self.iterations.len() - 1],
            total: self.total(),
            everywhere: self.everywhere,
            held_out: self.held_out,
        }
    }

    /// Returns the total of all charges, including those of an iteration in which the run stopped.
    pub fn total(&self) -> Guarantee {
        Guarantee::network(self.nodes.iter().map(|node| node.spent))
    }

    /// Returns the number of iterations of a kind.
    pub fn count(&self, kind: StepKind) -> usize {
        self.iterations
            .iter()
            .filter(|made| made.kind == kind)
            .count()
    }
}

impl NodeResult {
    /// Returns the present state of a node.
    pub(crate) fn new(node: &Node, party: &PartyRows, noise: &Mechanism) -> Self {
        let curator = node.curator();
        let ledger = curator.ledger();
        Self {
            name: party.name.clone(),
            rows: curator.rows(),
            positive: party.positive,
            degree: node.neighbours().len(),
            data_steps: ledger.charges(),
            law: noise.noise(),
            spent: ledger.spent(),
            profile: ledger.profile(),
            epsilon_tight: ledger.spent_tight().epsilon,
            epsilon_paper: ledger.spent_paper().map(|total| total.epsilon),
            model: node.model().values().to_vec(),
            dual: node.dual().map(<[f64]>::to_vec),
        }
    }
}
