//! The parts of a node, made from a study and the sizes of its parties.

use radmm::algorithm::{Algorithm, init};
use radmm::graph::{Graph, NodeId};
use radmm::problem::Problem;

use crate::algorithm::NodePosition;
use crate::{Start, Study};

/// A study on its graph, with the number of rows of every party. All parties know all of it.
#[derive(Clone, Debug)]
pub struct Instance<'a> {
    /// The study.
    pub study: &'a Study,
    /// The graph of the parties.
    pub graph: &'a Graph,
    /// `B_i` by node; empty if parties count alike and did not declare their rows: nothing depends on them then.
    rows: Vec<usize>,
    /// `Σ_i B_i`.
    total_rows: usize,
}

impl<'a> Instance<'a> {
    /// Creates an instance whose parties have these numbers of rows, by node.
    pub fn new(study: &'a Study, graph: &'a Graph, rows: Vec<usize>) -> Self {
        Self {
            study,
            graph,
            total_rows: rows.iter().sum(),
            rows,
        }
    }

    /// Creates the instance of a study between real parties, which declare the numbers of their rows.
    pub fn declared(study: &'a Study, graph: &'a Graph) -> Self {
        let rows: Option<Vec<usize>> = study.parties.iter().map(|party| party.rows).collect();
        Self::new(study, graph, rows.unwrap_or_default())
    }

    /// Returns `Σ_i B_i`.
    pub fn total_rows(&self) -> usize {
        self.total_rows
    }

    /// Returns a node's objective.
    pub fn problem(&self, id: NodeId) -> Problem {
        // Unknown only where nothing depends on it.
        let rows = self.rows.get(id.0 as usize).copied().unwrap_or(0);
        problem(self.study, rows, self.total_rows)
    }

    /// Returns a node's part of the algorithm, which continues from the dual `lambda` where it has one.
    pub fn algorithm(&self, id: NodeId, lambda: Vec<f64>) -> Box<dyn Algorithm> {
        self.study
            .algorithm
            .method
            .build(&self.position(id, lambda))
    }

    /// Returns what a node counts for: `N·B_i/Σ_j B_j` where rows count alike, else one.
    pub fn share(&self, id: NodeId) -> f64 {
        self.position(id, Vec::new()).share(id)
    }

    fn position(&self, id: NodeId, dual: Vec<f64>) -> NodePosition<'_> {
        NodePosition {
            graph: self.graph,
            id,
            dual,
            count: self.study.problem.count,
            rows: &self.rows,
            total_rows: self.total_rows,
        }
    }
}

/// Returns the objective of a party with `rows` of the study's `total` rows.
pub fn problem(study: &Study, rows: usize, total: usize) -> Problem {
    let section = &study.problem;
    let nodes = study.network.nodes;
    Problem {
        loss: section.loss,
        weight: section.count.weight(section.weight, nodes, rows, total),
        ridge: section.ridge,
        nodes,
        tolerance: study.algorithm.tolerance,
    }
}

/// Returns the model that a node starts from, `f_i(0)`.
pub fn start(study: &Study, id: NodeId, columns: usize) -> Vec<f64> {
    match study.algorithm.start {
        Start::Zeros => vec![0.0; columns],
        Start::Normal(deviation) => init::normal(study.run.seed, id, deviation, columns),
    }
}
