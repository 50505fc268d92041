//! The penalty, damping and iterations of ADMM's relatives that a study leaves to the program, from public facts.
//!
//! ```text
//! V̄   mean number of neighbours        C   weight of the loss        c₁   largest curvature of the loss
//! minimisers   2ηV̄ = 0.1·C   γ = 0.01·C       K = 40 data steps
//! gradients    2ηV̄ = 0.1·C   γ = 0.13·c₁·C    K = 100 data steps
//! pure totals  the same                        K = 8 data steps
//! ```
//! A penalty of this size lets noise of a total of about one move models little, and information cross the network within `K`
//! data steps. Linearised steps need a damping of the order of the curvature, or they overshoot. A pure total pays for every data
//! step in full. No row is read.

use super::registry::Asks;
use crate::{NetworkSection, ProblemSection};

/// `2ηV̄/C`.
const PULL: f64 = 0.1;

/// The public rule for algorithms with a penalty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AdmmRule {
    weight: f64,
    curvature: f64,
    mean_degree: f64,
    asks: Asks,
    is_pure: bool,
}

impl AdmmRule {
    pub(crate) fn new(
        problem: &ProblemSection,
        network: &NetworkSection,
        asks: Asks,
        is_pure: bool,
    ) -> Self {
        let nodes = network.nodes as usize;
        // A graph that cannot be built is reported when it is needed.
        let edges = network.graph().map_or(nodes, |graph| graph.edge_count());
        Self {
            weight: problem.weight,
            curvature: problem.loss.curvature(),
            mean_degree: 2.0 * edges as f64 / nodes as f64,
            asks,
            is_pure,
        }
    }

    /// Returns `η`.
    pub(crate) fn penalty(&self) -> f64 {
        PULL * self.weight / (2.0 * self.mean_degree)
    }

    /// Returns `γ`.
    pub(crate) fn damping(&self) -> f64 {
        match self.asks {
            Asks::Minimisers => 0.01 * self.weight,
            Asks::Gradients => 0.13 * self.curvature * self.weight,
        }
    }

    /// Returns `K`, the number of data steps.
    pub(crate) fn data_steps(&self) -> u32 {
        match self.asks {
            _ if self.is_pure => 8,
            Asks::Minimisers => 40,
            Asks::Gradients => 100,
        }
    }

    pub(super) fn penalty_reason(&self) -> String {
        "0.05 times weight over the mean number of neighbours".to_owned()
    }

    pub(super) fn damping_reason(&self) -> String {
        match self.asks {
            Asks::Minimisers => "0.01 times weight: a tenth of the pull of the neighbours",
            Asks::Gradients => "0.13 times weight and the largest curvature of the loss",
        }
        .to_owned()
    }

    pub(crate) fn iterations_reason(&self) -> String {
        format!("{} data steps with their recycled steps", self.data_steps())
    }
}
