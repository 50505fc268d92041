//! All parties of a study in one process: the same nodes, with messages handed over in memory.
//!
//! A simulation holds everybody's rows, so it alone can say how good the models are:
//! ```text
//! loss       L(t) = (1/N) Σ_i (1/B_i) Σ_n L(y f_i(t)ᵀx)
//! accuracy   (1/N) Σ_i (1/B_i) Σ_n [y f_i(t)ᵀx > 0]
//! objective  Σ_i O_i(f_i(t))
//! consensus  max_i ‖f_i(t) − f̄(t)‖,  f̄ the mean of the models
//! mean model (1/Σ_i B_i) Σ_i Σ_n L(y f̄ᵀx), and the share of all rows that f̄ classifies rightly
//! ```
//! Repetitions of a study differ in their noise alone, so [`Replicas`] runs several over the same rows; a [`Simulation`] is
//! one of them. Each party's work within an iteration is independent of the others', so a [`PartyExecutor`] may share it out over
//! threads. Sums over parties are taken in their order afterwards: any crew gives the same bits.

mod ledger_cache;
mod party;
mod replicas;

use serde::Serialize;
use thiserror::Error;

use crate::algorithm::Algorithm;
use crate::convergence::local_rate::{self, HessiansTooLarge, LocalRate};
use crate::curator::{Curator, HeldOutScore, NotCertified, RowFit, Shard, evaluate};
use crate::exec::Sequential;
use crate::graph::NodeId;
use crate::node::{Node, ProtocolError, StepKind, StopReason};
use crate::privacy::Guarantee;
use crate::problem::Loss;

pub use party::PartyReplicas;
pub use replicas::{ReplicaStep, Replicas};

/// Does the parties' work of one iteration, in any order, on any threads.
pub trait PartyExecutor {
    /// Calls `work` once on every party.
    fn each(&self, parties: &mut [PartyReplicas], work: &(dyn Fn(&mut PartyReplicas) + Sync));
}

impl PartyExecutor for Sequential {
    fn each(&self, parties: &mut [PartyReplicas], work: &(dyn Fn(&mut PartyReplicas) + Sync)) {
        parties.iter_mut().for_each(work);
    }
}

/// Why a simulation ended before its last iteration.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SimError {
    /// A party cannot go on, and so neither can the others.
    #[error(transparent)]
    Stopped(#[from] StopReason),
    /// A party rejected what another one said.
    #[error(transparent)]
    Rejected(#[from] ProtocolError),
}

/// Why nodes do not make a simulation.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum InvalidSimulation {
    /// A party whose noise is secret does not belong into a simulation, which shows unprotected losses.
    #[error(
        "{0} has secret noise: its rows are protected, and a simulation would show what they are"
    )]
    SecretNoise(NodeId),
    /// Replicas that are none.
    #[error(
        "{0} has other rows, or another problem, in one replica than in the first: replicas differ in their noise alone"
    )]
    NotAReplica(NodeId),
    /// Nothing to run, or replicas of different networks.
    #[error(
        "a simulation needs at least one replica and one node, and as many nodes in every replica"
    )]
    Uneven,
}

/// What can be said of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// `t`.
    #[serde(rename = "t")]
    pub iteration: u32,
    /// Whether rows were asked.
    pub kind: StepKind,
    /// `L(t)`.
    pub loss: f64,
    /// The share of its own rows that a party's model classifies rightly, averaged over the parties.
    pub accuracy: f64,
    /// `Σ_i O_i(f_i(t))`.
    pub objective: f64,
    /// `max_i ‖f_i(t) − f̄(t)‖`.
    pub consensus: f64,
    /// How good the mean model `f̄(t)` is on everybody's rows: where parties differ, their own models may fit their own rows
    /// the better the less they have learned from others.
    pub mean_model: GlobalFit,
    /// `P(t)`: everything released up to here, the largest of the parties'.
    #[serde(flatten)]
    pub spent: Guarantee,
}

/// How good models are on everybody's rows, each row counting the same.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GlobalFit {
    /// The mean loss of a row; of several models, the mean over them.
    pub loss: f64,
    /// The share of rows that are classified rightly; of several models, the mean over them.
    pub accuracy: f64,
}

/// The centralised optimum.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Optimum {
    /// `f*`.
    pub model: Vec<f64>,
    /// As [`Snapshot::loss`], with everyone's model `f*`.
    pub loss: f64,
    /// As [`Snapshot::accuracy`].
    pub accuracy: f64,
    /// On everybody's rows.
    pub everywhere: GlobalFit,
    /// `Σ_i O_i(f*)`.
    pub objective: f64,
}

/// All parties of a study, once. What it holds in memory stands at [`Replicas`].
pub struct Simulation {
    only: Replicas,
}

impl Simulation {
    /// Nodes in the order of their numbers, `0..N`, each knowing its neighbours among them. Their noise repeats.
    pub fn new(nodes: Vec<Node>, iterations: u32) -> Result<Self, InvalidSimulation> {
        let only = Replicas::new(vec![nodes], iterations)?;
        Ok(Self { only })
    }

    /// The iterations `0..=T`, as they are made. It ends early with the error of the first party that stopped.
    pub fn run<'a>(
        &'a mut self,
        crew: &'a dyn PartyExecutor,
    ) -> impl Iterator<Item = Result<Snapshot, SimError>> + 'a {
        self.only.run(crew).flatten().map(|made| made.result)
    }

    /// The nodes, in order.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Node> {
        self.only.nodes(0)
    }

    /// What one party with everybody's rows would find without noise: the minimiser of `Σ_i O_i`, and how good it is.
    pub fn centralised(&self) -> Result<Optimum, NotCertified> {
        let model = Curator::centralised(self.nodes().map(Node::curator))?;
        let fits: Vec<RowFit> = self
            .nodes()
            .map(|node| node.curator().observe(&model))
            .collect();
        let sum = |of: fn(&RowFit) -> f64| fits.iter().map(of).sum::<f64>();
        let count = fits.len() as f64;
        let rows: Vec<f64> = self
            .nodes()
            .map(|node| node.curator().rows() as f64)
            .collect();
        let over_rows = |of: fn(&RowFit) -> f64| {
            let weighted = fits.iter().zip(&rows).map(|(fit, rows)| rows * of(fit));
            weighted.sum::<f64>() / rows.iter().sum::<f64>()
        };
        Ok(Optimum {
            loss: sum(|fit| fit.loss) / count,
            accuracy: sum(|fit| fit.accuracy) / count,
            everywhere: GlobalFit {
                loss: over_rows(|fit| fit.loss),
                accuracy: over_rows(|fit| fit.accuracy),
            },
            objective: sum(|fit| fit.objective),
            model,
        })
    }

    /// How good one model that is nobody's, such as the centralised optimum, is on rows that nobody trained on.
    pub fn held_out_of(&self, model: &[f64], rows: &Shard, loss: Loss) -> HeldOutScore {
        evaluate(rows, loss, model)
    }

    /// How fast an algorithm converges near a point, the optimum as a rule: see [`local_rate`]. Noise has no part in
    /// it. `make` makes a node's algorithm with a given dual; all of them ask their rows at the first of every `period`
    /// iterations, with the same coefficients each time.
    pub fn local_rate(
        &self,
        at: &[f64],
        period: u32,
        make: &dyn Fn(NodeId, Vec<f64>) -> Box<dyn Algorithm>,
    ) -> Result<LocalRate, HessiansTooLarge> {
        local_rate::local(self.nodes(), at, period, make)
    }

    /// The largest distance of a party's model from a point.
    pub fn distance_from(&self, point: &[f64]) -> f64 {
        self.only.distance_from(0, point)
    }
}
