//! A study, run: all repetitions, and beside them what a user would otherwise do.

use std::path::Path;

use radmm::account::{Bound, Guarantee};
use radmm::node::{Kind, Node};
use radmm::private::Mechanism;
use radmm::public::graph::{Graph, GraphError};
use radmm::sim::{Everywhere, Optimum, Simulation, Snapshot};
use radmm_study::{Method, Study};
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use crate::assemble::{self, RunError, Variant};
use crate::crew::Pool;
use crate::equal;
use crate::table::{Table, TableError};

/// A study with its graph and its rows.
pub struct Experiment {
    study: Study,
    graph: Graph,
    table: Table,
}

/// Why a study cannot be run.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The network is none.
    #[error("[network] {0}")]
    Graph(#[from] GraphError),
    /// There are no rows.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Everything that came out of a study.
pub struct Outcome {
    /// At least one.
    pub repetitions: Vec<Repetition>,
    /// Training alone and averaging once, at equal privacy, unless the study itself is one of them.
    pub beside: Vec<Beside>,
    /// One party with all rows and no noise; `None` if its minimiser could not be certified.
    pub centralised: Option<Optimum>,
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
    /// Why it ended before its last iteration, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The largest gradient norm at which a minimiser was released.
    pub largest_residual: f64,
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
    /// By repetition; empty if it cannot be had at this privacy.
    pub ends: Vec<End>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct End {
    /// The last iteration.
    #[serde(flatten)]
    pub last: Snapshot,
    /// How good its models are on everybody's rows.
    pub everywhere: Everywhere,
}

impl Experiment {
    /// Makes the graph and reads the rows; `folder` is where the study file is.
    pub fn prepare(study: Study, folder: &Path) -> Result<Self, PrepareError> {
        // The graph first: its mistakes show at once, a table may take minutes.
        let graph = Graph::new(&study.network.topology, study.network.nodes as usize)?;
        let table = Table::read(&study, folder)?;
        Ok(Self {
            study,
            graph,
            table,
        })
    }

    /// What is run.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// Who talks to whom.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The rows.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// How often `progress` will be called, at most.
    pub fn steps(&self) -> u64 {
        let own = self.study.algorithm.iterations;
        let beside = self.others().map(|(_, iterations)| iterations);
        let iterations: u64 = beside.chain([own]).map(|t| u64::from(t) + 1).sum();
        u64::from(self.study.run.repetitions) * iterations
    }

    /// What a user would otherwise do, and for how many iterations.
    fn others(&self) -> impl Iterator<Item = (Method, u32)> {
        let own = self.study.algorithm.method.name();
        [
            (Method::Local, 1),
            (Method::Average, self.study.algorithm.iterations),
        ]
        .into_iter()
        .filter(move |(method, _)| method.name() != own)
    }

    /// Runs all repetitions, on all threads of the current pool; `limit` is every party's own. `progress` is called after
    /// every iteration. Results are the same bits for any number of threads.
    pub fn run(
        &self,
        limit: Option<f64>,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Outcome, RunError> {
        let mechanisms = vec![self.study.privacy.mechanism; self.graph.len()];
        let variant = |repetition| Variant {
            method: &self.study.algorithm.method,
            iterations: self.study.algorithm.iterations,
            mechanisms: &mechanisms,
            bound: self.study.privacy.bound,
            repetition,
            limit,
        };
        let repetitions = (0..self.study.run.repetitions)
            .into_par_iter()
            .map(|repetition| self.repetition(&variant(repetition), progress))
            .collect::<Result<Vec<_>, _>>()?;
        let stopped = repetitions.iter().any(|run| run.stopped.is_some());
        let beside = if stopped {
            Vec::new()
        } else {
            self.beside(&repetitions[0].nodes, progress)?
        };
        Ok(Outcome {
            repetitions,
            beside,
            centralised: self.simulation(&variant(0))?.centralised().ok(),
        })
    }

    pub(crate) fn simulation(&self, variant: &Variant<'_>) -> Result<Simulation, RunError> {
        let nodes = assemble::nodes(&self.study, &self.graph, &self.table, variant)?;
        Ok(Simulation::new(nodes, variant.iterations)?)
    }

    fn repetition(
        &self,
        variant: &Variant<'_>,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Repetition, RunError> {
        let mut simulation = self.simulation(variant)?;
        let mut iterations = Vec::new();
        let mut stopped = None;
        for made in simulation.run(&Pool) {
            match made {
                Ok(snapshot) => {
                    progress(&snapshot);
                    iterations.push(snapshot);
                }
                Err(error) => stopped = Some(error.to_string()),
            }
        }
        let everywhere = simulation.everywhere(&Pool);
        let largest_residual = simulation.largest_residual();
        let names = self.table.parties.iter().map(|party| party.name.clone());
        let nodes = simulation.nodes().zip(names);
        Ok(Repetition {
            nodes: nodes.map(|(node, name)| result(node, name)).collect(),
            iterations,
            stopped,
            everywhere,
            largest_residual,
        })
    }

    /// Training alone and averaging once, each party spending on its one answer what it spent on the whole run.
    fn beside(
        &self,
        nodes: &[NodeResult],
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Vec<Beside>, RunError> {
        let problem = assemble::problem(&self.study);
        let mechanisms: Option<Vec<Mechanism>> = nodes
            .iter()
            .map(|node| {
                let total = Guarantee {
                    epsilon: node.epsilon_tight,
                    delta: self.study.privacy.delta,
                };
                equal::one_question(&self.study.privacy.mechanism, total, &problem, node.rows)
            })
            .collect();
        self.others()
            .map(|(method, iterations)| {
                let ends = match &mechanisms {
                    None => Vec::new(),
                    Some(mechanisms) => self.ends(&method, iterations, mechanisms, progress)?,
                };
                Ok(Beside {
                    name: method.name(),
                    ends,
                })
            })
            .collect()
    }

    fn ends(
        &self,
        method: &Method,
        iterations: u32,
        mechanisms: &[Mechanism],
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Vec<End>, RunError> {
        let runs = (0..self.study.run.repetitions)
            .into_par_iter()
            .map(|repetition| {
                let variant = Variant {
                    method,
                    iterations,
                    mechanisms,
                    // The paper's may not cover a question without a penalty.
                    bound: Bound::Tight,
                    repetition,
                    limit: None,
                };
                Ok(self.repetition(&variant, progress)?.end())
            });
        runs.collect()
    }
}

impl Repetition {
    /// How it ended.
    pub fn end(&self) -> End {
        End {
            // Iteration 0 asks nothing, so that there is always one.
            last: self.iterations[self.iterations.len() - 1],
            everywhere: self.everywhere,
        }
    }

    /// How many iterations were of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.iterations
            .iter()
            .filter(|made| made.kind == kind)
            .count()
    }
}

fn result(node: &Node, name: String) -> NodeResult {
    let curator = node.curator();
    let ledger = curator.ledger();
    NodeResult {
        name,
        rows: curator.rows(),
        degree: node.neighbours().len(),
        data_steps: ledger.charges(),
        spent: ledger.spent(),
        epsilon_tight: ledger.spent_tight().epsilon,
        epsilon_paper: ledger.spent_paper().map(|total| total.epsilon),
        model: node.model().values().to_vec(),
        dual: node.dual().map(<[f64]>::to_vec),
    }
}
