//! From what a study means to nodes that run it.

use std::sync::Arc;

use radmm::account::{BadBudget, Budget, Ledger};
use radmm::node::{BadStart, Node, Setup};
use radmm::private::{BadTerms, Curator, Mechanism, NoiseKey, Problem, Terms};
use radmm::public::admm::{Admm, Penalty};
use radmm::public::baseline::{Average, Local};
use radmm::public::gradient::{Dgd, Dlm};
use radmm::public::graph::{Graph, NodeId};
use radmm::public::recycled::Recycled;
use radmm::public::release::Algorithm;
use radmm::public::schedule::Schedule;
use radmm::public::start;
use radmm::sim::NotSimulated;
use radmm_study::{Method, Start, Study};
use thiserror::Error;

use crate::crew::Pool;
use crate::plan::TooDear;
use crate::table::Table;

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
        start: match study.algorithm.start {
            Start::Zeros => vec![0.0; columns],
            Start::Normal(deviation) => start::normal(study.run.seed, id, deviation, columns),
        },
        algorithm: place.algorithm,
        curator: Curator::simulated(table.parties[i].shard.clone(), terms)?
            .with_hands(Arc::new(Pool)),
    })?)
}

pub(crate) fn problem(study: &Study) -> Problem {
    Problem {
        loss: study.problem.loss,
        weight: study.problem.weight,
        ridge: study.problem.ridge,
        nodes: study.network.nodes,
        tolerance: study.algorithm.tolerance,
        precision: study.privacy.precision,
    }
}

/// A node's part of an algorithm, going on from the dual `lambda` where it has one.
pub(crate) fn algorithm(
    method: &Method,
    graph: &Graph,
    id: NodeId,
    lambda: Vec<f64>,
) -> Box<dyn Algorithm> {
    let i = id.0 as usize;
    let admm = |penalty| Admm::with_dual(penalty, lambda.clone());
    let dlm = |eta: &Schedule, gamma: &Schedule| {
        Dlm::with_dual(Penalty::common(*eta), *gamma, lambda.clone())
    };
    let private = |penalties: &[Schedule], theta: &f64| Penalty {
        primal: penalties[i],
        dual: Schedule::Constant(*theta),
    };
    match method {
        Method::Admm { penalty } => Box::new(admm(Penalty::common(*penalty))),
        Method::RecycledAdmm {
            penalty,
            damping,
            recycle,
        } => Box::new(Recycled::new(
            admm(Penalty::common(*penalty)),
            *damping,
            *recycle,
        )),
        Method::MAdmm { penalty, dual_step } => Box::new(admm(private(penalty, dual_step))),
        Method::MRecycledAdmm {
            penalty,
            damping,
            recycle,
            dual_step,
        } => Box::new(Recycled::new(
            admm(private(penalty, dual_step)),
            damping[i],
            *recycle,
        )),
        Method::Dlm { penalty, damping } => Box::new(dlm(penalty, damping)),
        Method::RecycledDlm {
            penalty,
            damping,
            recycle,
        } => Box::new(Recycled::new(dlm(penalty, damping), *damping, *recycle)),
        Method::Dgd { step } => Box::new(Dgd::new(graph.metropolis(id), *step)),
        Method::Local { extra_ridge } => Box::new(Local::new(*extra_ridge)),
        Method::Average { extra_ridge } => {
            Box::new(Average::new(*extra_ridge, graph.metropolis(id)))
        }
    }
}
