//! The simulator: all parties of a study in one process, with messages handed over in memory.
//!
//! A simulation holds all rows, so it alone can measure models:
//! ```text
//! loss       L(t) = (1/N) Σ_i (1/B_i) Σ_n L(y f_i(t)ᵀx)
//! accuracy   (1/N) Σ_i (1/B_i) Σ_n [y f_i(t)ᵀx > 0]
//! objective  Σ_i O_i(f_i(t))
//! consensus  max_i ‖f_i(t) − f̄(t)‖,  f̄ the mean of the models
//! mean model (1/Σ_i B_i) Σ_i Σ_n L(y f̄ᵀx), and the share of all rows that f̄ classifies rightly
//! ```
//! Repetitions of a study differ in their noise alone, so [`Replicas`] runs several over the same rows; a [`Simulation`] is
//! one of them. Each party's work within an iteration is independent of the others', so a [`PartyExecutor`] may divide it among
//! threads. Sums over parties are taken in their order afterwards, so any executor gives the same bits.
//!
//! Two shortcuts that protect nobody are handed to curators here: solvers keep what they learnt between questions, and ledgers
//! that are charged alike share their states (`ledger_cache`).

mod ledger_cache;
mod party;
mod replicas;

use serde::Serialize;
use thiserror::Error;

use crate::algorithm::Algorithm;
use crate::convergence::local_rate::{self, LocalRate, NoLocalRate};
use crate::curator::{Curator, HeldOutScore, PassFailed, RowFit, Shard, Unsolved, evaluate};
use crate::exec::Sequential;
use crate::graph::{Graph, NodeId};
use crate::node::{InvalidStart, Node, NodeConfig, ProtocolError, StepKind, StopReason};
use crate::privacy::Guarantee;
use crate::problem::Loss;

pub use ledger_cache::share_states;
pub use party::PartyReplicas;
pub use replicas::{ReplicaStep, Replicas};

/// Runs the parties' work of one iteration, in any order, on any threads.
pub trait PartyExecutor {
    /// Calls `work` once on every party.
    fn each(&self, parties: &mut [PartyReplicas], work: &(dyn Fn(&mut PartyReplicas) + Sync));
}

impl PartyExecutor for Sequential {
    fn each(&self, parties: &mut [PartyReplicas], work: &(dyn Fn(&mut PartyReplicas) + Sync)) {
        parties.iter_mut().for_each(work);
    }
}

/// The error that ended a simulation before its last iteration.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SimError {
    /// A party cannot go on.
    #[error(transparent)]
    Stopped(#[from] StopReason),
    /// A party rejected a message.
    #[error(transparent)]
    Rejected(#[from] ProtocolError),
    /// The rows could not be read to measure a model.
    #[error(transparent)]
    PassFailed(#[from] PassFailed),
}

/// The reason why nodes do not form a simulation.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidSimulation {
    /// A party has secret noise. Its rows must not be simulated, since a simulation shows unprotected losses.
    #[error(
        "{0} has secret noise: its rows are protected, and a simulation would show what they are"
    )]
    SecretNoise(NodeId),
    /// A replica has other rows or another problem.
    #[error(
        "{0} has other rows, or another problem, in one replica than in the first: replicas differ in their noise alone"
    )]
    NotAReplica(NodeId),
    /// There is nothing to run, or replicas differ in their number of nodes.
    #[error(
        "a simulation needs at least one replica and one node, and as many nodes in every replica"
    )]
    Uneven,
}

/// Measurements of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// `t`.
    #[serde(rename = "t")]
    pub iteration: u32,
    /// The kind of step.
    pub kind: StepKind,
    /// `L(t)`.
    pub loss: f64,
    /// The share of its own rows that a party's model classifies correctly, averaged over the parties.
    pub accuracy: f64,
    /// `Σ_i O_i(f_i(t))`.
    pub objective: f64,
    /// `max_i ‖f_i(t) − f̄(t)‖`.
    pub consensus: f64,
    /// The fit of the mean model `f̄(t)` on all rows. If parties differ, their own models may fit their own rows the better the
    /// less they have learnt from others. `None` where it was not measured ([`MeanModels`]).
    pub mean_model: Option<GlobalFit>,
    /// `P(t)`: the total over everything released so far, the largest of the parties'.
    #[serde(flatten)]
    pub spent: Guarantee,
}

/// The replicas whose mean model is measured after each iteration. That takes as long as measuring all models on their own rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MeanModels {
    /// The mean models of all replicas.
    #[default]
    All,
    /// The mean model of the first replica.
    First,
    /// No mean model.
    Unmeasured,
}

impl MeanModels {
    /// Returns whether the mean model of a replica is measured.
    pub(crate) fn include(self, replica: usize) -> bool {
        match self {
            Self::All => true,
            Self::First => replica == 0,
            Self::Unmeasured => false,
        }
    }
}

/// The fit of models on all rows, with equal weight for each row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GlobalFit {
    /// The mean loss of a row; of several models, the mean over them.
    pub loss: f64,
    /// The share of rows that are classified correctly; of several models, the mean over them.
    pub accuracy: f64,
}

/// The centralised optimum.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Optimum {
    /// `f*`.
    pub model: Vec<f64>,
    /// The loss as in [`Snapshot::loss`], with `f*` as every party's model.
    pub loss: f64,
    /// The accuracy as in [`Snapshot::accuracy`].
    pub accuracy: f64,
    /// The fit on all rows.
    #[serde(rename = "everywhere")]
    pub global_fit: GlobalFit,
    /// `Σ_i O_i(f*)`.
    pub objective: f64,
}

/// One run of all parties of a study. Its memory use is described at [`Replicas`].
pub struct Simulation {
    only: Replicas,
}

impl Simulation {
    /// Creates a simulation from nodes in the order of their numbers, `0..N`. Their noise must repeat.
    pub fn new(nodes: Vec<Node>, iterations: u32) -> Result<Self, InvalidSimulation> {
        let only = Replicas::new(vec![nodes], iterations)?;
        Ok(Self { only })
    }

    /// Creates a simulation on a graph. `party` returns the algorithm and the curator of each node.
    pub fn on_graph<E>(
        graph: &Graph,
        iterations: u32,
        mut party: impl FnMut(NodeId) -> Result<(Box<dyn Algorithm>, Curator), E>,
    ) -> Result<Self, E>
    where
        E: From<InvalidStart> + From<InvalidSimulation>,
    {
        let mut nodes = Vec::with_capacity(graph.len());
        for id in graph.nodes() {
            let (algorithm, curator) = party(id)?;
            let config = NodeConfig::new(graph, id, algorithm, curator);
            nodes.push(Node::new(config.with_iterations(iterations))?);
        }
        Ok(Self::new(nodes, iterations)?)
    }

    /// Iterates over the iterations `0..=T`. It ends early with the error of the first party that stopped.
    pub fn run<'a>(
        &'a mut self,
        executor: &'a dyn PartyExecutor,
    ) -> impl Iterator<Item = Result<Snapshot, SimError>> + 'a {
        self.only.run(executor).flatten().map(|step| step.result)
    }

    /// Returns the nodes, in order.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Node> {
        self.only.nodes(0)
    }

    /// Computes the minimiser of `Σ_i O_i`, which one party with all rows would find without noise, and its fit.
    pub fn centralised(&self) -> Result<Optimum, Unsolved> {
        let model = Curator::centralised(self.nodes().map(Node::curator))?;
        let fits: Vec<RowFit> = self
            .nodes()
            .map(|node| node.curator().row_fit(&model))
            .collect::<Result<_, _>>()?;
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
            global_fit: GlobalFit {
                loss: over_rows(|fit| fit.loss),
                accuracy: over_rows(|fit| fit.accuracy),
            },
            objective: sum(|fit| fit.objective),
            model,
        })
    }

    /// Evaluates a model, such as the centralised optimum, on held-out rows.
    pub fn evaluate_held_out(
        &self,
        model: &[f64],
        rows: &Shard,
        loss: Loss,
    ) -> Result<HeldOutScore, PassFailed> {
        evaluate(rows, loss, model)
    }

    /// Computes how fast an algorithm converges near a point, usually the optimum, without noise: see [`local_rate`].
    ///
    /// `make` builds a node's algorithm with a given dual. All nodes must ask their rows at the first of every `period`
    /// iterations, with the same coefficients each time.
    pub fn local_rate(
        &self,
        at: &[f64],
        period: u32,
        make: &dyn Fn(NodeId, Vec<f64>) -> Box<dyn Algorithm>,
    ) -> Result<LocalRate, NoLocalRate> {
        local_rate::local(self.nodes(), at, period, make)
    }

    /// Returns the largest distance of a party's model from a point.
    pub fn distance_from(&self, point: &[f64]) -> f64 {
        self.only.distance_from(0, point)
    }
}
