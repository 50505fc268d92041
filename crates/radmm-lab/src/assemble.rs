//! From what a study means to nodes that run it.

use std::sync::Arc;

use radmm::account::{BadBudget, Budget, Ledger};
use radmm::node::{BadStart, Node, Setup};
use radmm::private::{BadTerms, Curator, Mechanism, NoiseKey, Terms};
use radmm::public::graph::{Graph, NodeId};
use radmm::public::release::Algorithm;
use radmm::sim::NotSimulated;
use radmm_study::Study;
pub(crate) use radmm_study::assemble::{algorithm, problem, start};
use radmm_study::plan::TooDear;
use radmm_study::table::Table;
use thiserror::Error;

use crate::crew::Pool;

/// Why a study cannot be run as it is.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum RunError {
    /// The parties' limit is none.
    #[error(transparent)]
    Limit(#[from] BadBudget),
    /// The problem or the noise is out of range.
    #[error(transparent)]
    Terms(#[from] BadTerms),
    /// A starting model is out of range.
    #[error(transparent)]
    Start(#[from] BadStart),
    /// The study's total cannot be kept.
    #[error(transparent)]
    TooDear(#[from] TooDear),
    /// A party does not belong into a simulation.
    #[error(transparent)]
    Simulation(#[from] NotSimulated),
}

/// What differs between the runs of one study.
pub(crate) struct Variant<'a> {
    /// By node: at equal privacy, parties with fewer rows need more noise.
    pub noise: &'a [Mechanism],
    pub repetition: u32,
    pub limit: Option<f64>,
}

impl<'a> Variant<'a> {
    /// The first repetition, without a limit.
    pub(crate) fn first(noise: &'a [Mechanism]) -> Self {
        Self {
            noise,
            repetition: 0,
            limit: None,
        }
    }
}

/// The nodes of one run, in order.
pub(crate) fn nodes(
    study: &Study,
    graph: &Graph,
    table: &Table,
    variant: &Variant<'_>,
) -> Result<Vec<Node>, RunError> {
    let ledger = ledger(study, variant)?;
    let make = |id: NodeId| {
        let place = Place {
            // Clones share what charges cost: most parties are charged the same.
            ledger: ledger.clone(),
            id,
            neighbours: graph.neighbours(id).to_vec(),
            algorithm: algorithm(
                &study.algorithm.method,
                graph,
                id,
                vec![0.0; table.columns.len()],
            ),
        };
        node(study, place, table, variant)
    };
    graph.nodes().map(make).collect()
}

/// Where a node stands, and what it is to do there.
pub(crate) struct Place {
    pub id: NodeId,
    pub neighbours: Vec<NodeId>,
    pub algorithm: Box<dyn Algorithm>,
    pub ledger: Ledger,
}

/// An empty ledger of a run.
pub(crate) fn ledger(study: &Study, variant: &Variant<'_>) -> Result<Ledger, RunError> {
    let delta = study.privacy.delta;
    let budget = match variant.limit {
        Some(epsilon) => Budget::limited(epsilon, delta)?,
        None => Budget::unlimited(delta)?,
    };
    Ok(Ledger::new(budget, study.privacy.bound))
}

/// One node of a run.
pub(crate) fn node(
    study: &Study,
    place: Place,
    table: &Table,
    variant: &Variant<'_>,
) -> Result<Node, RunError> {
    let columns = table.columns.len();
    let (id, i) = (place.id, place.id.0 as usize);
    let terms = Terms {
        problem: problem(study),
        mechanism: variant.noise[i],
        ledger: place.ledger,
        noise: NoiseKey::repeating(study.run.seed, variant.repetition, id.0),
    };
    Ok(Node::new(Setup {
        id,
        neighbours: place.neighbours,
        iterations: study.algorithm.iterations,
        start: start(study, id, columns),
        algorithm: place.algorithm,
        curator: Curator::simulated(table.parties[i].shard.clone(), terms)?
            .with_hands(Arc::new(Pool)),
    })?)
}
