//! The parts of a node, made from a study.

use radmm::algorithm::{Algorithm, init};
use radmm::graph::{Graph, NodeId};
use radmm::problem::Problem;

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
    Problem {
        loss: study.problem.loss,
        weight: study.problem.weight,
        ridge: study.problem.ridge,
        nodes: study.network.nodes,
        tolerance: study.algorithm.tolerance,
        shape: Some(study.data.schema.shape()),
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
