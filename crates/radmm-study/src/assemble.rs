//! From what a study means to what a node is made of.

use radmm::private::Problem;
use radmm::public::admm::{Admm, Penalty};
use radmm::public::baseline::{Average, Local};
use radmm::public::gradient::{Dgd, Dlm};
use radmm::public::graph::{Graph, NodeId};
use radmm::public::recycled::Recycled;
use radmm::public::release::Algorithm;
use radmm::public::schedule::Schedule;
use radmm::public::start;

use crate::{Method, Start, Study};

/// Where a node begins, `f_i(0)`.
pub fn start(study: &Study, id: NodeId, columns: usize) -> Vec<f64> {
    match study.algorithm.start {
        Start::Zeros => vec![0.0; columns],
        Start::Normal(deviation) => start::normal(study.run.seed, id, deviation, columns),
    }
}

/// What a study minimises, in the words of the library.
pub fn problem(study: &Study) -> Problem {
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
pub fn algorithm(
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
