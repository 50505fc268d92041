//! The nodes of a simulated run, made from a study.

use std::sync::Arc;

use radmm::curator::{Curator, CuratorConfig, InvalidCuratorConfig, NoiseKey, PassFailed};
use radmm::graph::NodeId;
use radmm::node::{InvalidStart, Node, NodeConfig};
use radmm::privacy::{Budget, InvalidBudget, Ledger, Mechanism};
use radmm::sim::InvalidSimulation;
use radmm_study::Study;
pub(crate) use radmm_study::instantiate::{Instance, problem, start};
use radmm_study::pricing::UnattainableBudget;
use radmm_study::rows::StudyRows;
use thiserror::Error;

use crate::executor::RayonExecutor;

/// The reason why a study cannot be run as it is.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum RunError {
    /// The parties' limit is invalid.
    #[error(transparent)]
    Limit(#[from] InvalidBudget),
    /// The problem or the noise is out of range.
    #[error(transparent)]
    CuratorConfig(#[from] InvalidCuratorConfig),
    /// A starting model is out of range.
    #[error(transparent)]
    Start(#[from] InvalidStart),
    /// The study's total cannot be kept.
    #[error(transparent)]
    Unattainable(#[from] UnattainableBudget),
    /// A party cannot be simulated.
    #[error(transparent)]
    Simulation(#[from] InvalidSimulation),
    /// The caller interrupted the run.
    #[error("the run was interrupted")]
    Interrupted,
    /// The rows could not be read.
    #[error(transparent)]
    PassFailed(#[from] PassFailed),
}

/// The settings in which runs of one study differ.
pub(crate) struct RunSettings<'a> {
    /// The noise of each node: at equal privacy, parties with fewer rows need more.
    pub noise: &'a [Mechanism],
    /// The number of the repetition, part of the noise's seed.
    pub repetition: u32,
    /// Every party's own limit on ε.
    pub limit: Option<f64>,
}

impl<'a> RunSettings<'a> {
    /// Returns the settings of the first repetition, without a limit.
    pub(crate) fn first(noise: &'a [Mechanism]) -> Self {
        Self {
            noise,
            repetition: 0,
            limit: None,
        }
    }
}

/// Returns the nodes of one run, in order.
pub(crate) fn nodes(
    instance: &Instance<'_>,
    table: &StudyRows,
    settings: &RunSettings<'_>,
) -> Result<Vec<Node>, RunError> {
    let Instance { study, graph, .. } = *instance;
    let (ledger, columns) = (ledger(study, settings)?, table.columns.len());
    let node = |id: NodeId| {
        Ok(Node::new(NodeConfig {
            id,
            neighbours: graph.neighbours(id).to_vec(),
            iterations: study.algorithm.iterations,
            start: start(study, id, columns),
            algorithm: instance.algorithm(id, vec![0.0; columns]),
            // Clones share what charges cost: most parties are charged the same.
            curator: curator(study, table, settings, id, ledger.clone())?,
        })?)
    };
    graph.nodes().map(node).collect()
}

/// Returns the empty ledger of a run.
pub(crate) fn ledger(study: &Study, settings: &RunSettings<'_>) -> Result<Ledger, RunError> {
    let delta = study.privacy.delta;
    let budget = match settings.limit {
        Some(epsilon) => Budget::limited(epsilon, delta)?,
        None => Budget::unlimited(delta)?,
    };
    Ok(Ledger::new(budget, study.privacy.bound))
}

/// Returns the curator of one node's rows, with noise that repeats from the study's seed.
pub(crate) fn curator(
    study: &Study,
    table: &StudyRows,
    settings: &RunSettings<'_>,
    id: NodeId,
    ledger: Ledger,
) -> Result<Curator, RunError> {
    let i = id.0 as usize;
    let shard = table.parties[i].shard.clone();
    let config = CuratorConfig {
        problem: problem(study, shard.rows(), table.rows()),
        mechanism: settings.noise[i],
        ledger,
        noise: NoiseKey::repeating(study.run.seed, settings.repetition, id.0),
    };
    let curator = Curator::simulated(shard, config)?;
    Ok(curator.with_executor(Arc::new(RayonExecutor)))
}
