//! The parts of a node, made from a study.

use radmm::algorithm::Algorithm;
use radmm::algorithm::init;
use radmm::graph::{Graph, NodeId};
use radmm::problem::{Loss, Problem};

use crate::algorithm::NodePosition;
use crate::{Method, Start, Study};

/// Returns the model that a node starts from, `f_i(0)`.
pub fn start(study: &Study, id: NodeId, columns: usize) -> Vec<f64> {
    match study.algorithm.start {
        Start::Zeros => vec![0.0; columns],
        Start::Normal(deviation) => init::normal(study.run.seed, id, deviation, columns),
    }
}

/// Returns the objective of a study.
pub fn problem(study: &Study) -> Problem {
    let constants = Constants {
        loss: study.problem.loss,
        weight: study.problem.weight,
        ridge: study.problem.ridge,
        nodes: study.network.nodes,
        tolerance: study.algorithm.tolerance,
    };
    constants.problem()
}

/// The constants of an objective.
pub(crate) struct Constants {
    pub loss: Loss,
    pub weight: f64,
    pub ridge: f64,
    pub nodes: u32,
    pub tolerance: f64,
}

impl Constants {
    pub(crate) fn problem(&self) -> Problem {
        Problem {
            loss: self.loss,
            weight: self.weight,
            ridge: self.ridge,
            nodes: self.nodes,
            tolerance: self.tolerance,
        }
    }
}

/// Returns a node's part of an algorithm, which continues from the dual `lambda` where it has one.
pub fn algorithm(
    method: &Method,
    graph: &Graph,
    id: NodeId,
    lambda: Vec<f64>,
) -> Box<dyn Algorithm> {
    method.build(&NodePosition {
        graph,
        id,
        dual: lambda,
    })
}
