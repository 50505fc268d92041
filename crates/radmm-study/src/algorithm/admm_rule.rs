//! The penalty, damping and iterations of ADMM's relatives that a study leaves to the program, from public facts.
//!
//! ```text
//! V̄   mean number of neighbours        C   weight of the loss        c₁   largest curvature of the loss
//! minimisers   2ηV̄ = 0.03·C   γ = 0.003·C         K = 20 data steps
//! gradients    2ηV̄ = 0.03·C   γ = c₁·C/4          K = 60 data steps
//! ```
//! A penalty of this size lets noise of a total of about one move models little, and information cross the network within `K`
//! data steps. Linearised steps need a damping of the order of the curvature, or they overshoot. No row is read.

use radmm::graph::Graph;

use super::registry::Asks;
use crate::{NetworkSection, ProblemSection};

/// `2ηV̄/C`.
const PULL: f64 = 0.03;

/// The public rule for algorithms with a penalty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AdmmRule {
    weight: f64,
    curvature: f64,
    mean_degree: f64,
    asks: Asks,
}

impl AdmmRule {
    pub(crate) fn new(problem: &ProblemSection, network: &NetworkSection, asks: Asks) -> Self {
        let nodes = network.nodes as usize;
        // A graph that cannot be built is reported when it is needed.
        let edges = Graph::new(&network.topology, nodes).map_or(nodes, |graph| graph.edge_count());
        Self {
            weight: problem.weight,
            curvature: problem.loss.curvature(),
            mean_degree: 2.0 * edges as f64 / nodes as f64,
            asks,
        }
    }

    /// Returns `η`.
    pub(crate) fn penalty(&self) -> f64 {
        PULL * self.weight / (2.0 * self.mean_degree)
    }

    /// Returns `γ`.
    pub(crate) fn damping(&self) -> f64 {
        match self.asks {
            Asks::Minimisers => 0.1 * PULL * self.weight,
            Asks::Gradients => 0.25 * self.curvature * self.weight,
        }
    }

    /// Returns `K`, the number of data steps.
    pub(crate) fn data_steps(&self) -> u32 {
        match self.asks {
            Asks::Minimisers => 20,
            Asks::Gradients => 60,
        }
    }

    pub(super) fn penalty_reason(&self) -> String {
        "0.015 times weight over the mean number of neighbours".to_owned()
    }

    pub(super) fn damping_reason(&self) -> String {
        match self.asks {
            Asks::Minimisers => "0.003 times weight: a tenth of the pull of the neighbours",
            Asks::Gradients => "a quarter of weight times the largest curvature of the loss",
        }
        .to_owned()
    }

    pub(crate) fn iterations_reason(&self) -> String {
        format!("{} data steps with their recycled steps", self.data_steps())
    }
}
