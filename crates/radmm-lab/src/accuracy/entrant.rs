//! Who takes part, and with which parameters everyone is tried.
//!
//! Scales are shares of `C`, the weight of the loss: what an answer does depends on the ratio of convexity to `C` alone. With
//! `a = 2ηV̄`, what the penalty adds to the convexity of a question (`V̄`: the mean number of neighbours), the common ridge
//! a party `ρ/N`, and `K` data steps:
//! ```text
//! alone, averaged once, centralised   extra ridge ∈ {1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1}·C
//! ADMM                                a ∈ {3e-3, 1e-2, 3e-2, 1e-1, 3e-1}·C, ρ/N ∈ {1e-4, 1e-3}·C, K ∈ {2, 6, 20}
//! R-ADMM                              the same, with γ ∈ {0.05, 0.5}·a
//! linearised R-ADMM                   the same, with γ ∈ {1e-2, 3e-2, 1e-1}·C
//! ```

use radmm::public::graph::Graph;
use radmm::public::schedule::Schedule;
use radmm_study::{Method, Study};
use serde::Serialize;

use crate::baseline;

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entrant {
    /// Every party trains alone.
    Alone,
    /// Every party trains alone, then the models are averaged.
    Averaged,
    /// Conventional ADMM.
    Admm,
    /// R-ADMM, one recycled step a data step.
    Recycled,
    /// Linearised R-ADMM, one recycled step a data step.
    Linearised,
    /// One party with all rows, which answers once.
    Centralised,
}

/// Parameters to be tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// Which step, with its parameters.
    #[serde(flatten)]
    pub method: Method,
    /// `T`, recycled ones included.
    pub iterations: u32,
    /// `ρ`.
    pub ridge: f64,
}

/// Extra ridges of those who answer once, as shares of `C`.
const EXTRA_RIDGES: [f64; 8] = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1];

/// The common ridge of those who iterate, a party, as shares of `C`.
const RIDGES: [f64; 2] = [1e-4, 1e-3];

/// Penalties `2ηV̄` as shares of `C`.
const PENALTIES: [f64; 5] = [3e-3, 1e-2, 3e-2, 1e-1, 3e-1];

/// Dampings of R-ADMM as shares of `2ηV̄`.
const DAMPINGS: [f64; 2] = [0.05, 0.5];

/// Dampings of the linearised steps as shares of `C`.
const LINEARISED_DAMPINGS: [f64; 3] = [1e-2, 3e-2, 1e-1];

/// How often rows are asked by those who iterate.
const DATA_STEPS: [u32; 3] = [2, 6, 20];

impl Entrant {
    /// In the order of the table.
    pub const ALL: [Self; 6] = [
        Self::Alone,
        Self::Averaged,
        Self::Admm,
        Self::Recycled,
        Self::Linearised,
        Self::Centralised,
    ];

    /// In tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Alone => "each party alone",
            Self::Averaged => "averaged once",
            Self::Admm => "ADMM",
            Self::Recycled => "R-ADMM",
            Self::Linearised => "linearised R-ADMM",
            Self::Centralised => "centralised, private",
        }
    }

    /// With which parameters it is tried on a study's problem and graph.
    pub fn candidates(self, study: &Study, graph: &Graph) -> Vec<Candidate> {
        let weight = study.problem.weight;
        let once = |iterations, method: fn(f64) -> Method| {
            let candidate = |share: f64| Candidate {
                method: method(share * weight),
                iterations,
                ridge: study.problem.ridge,
            };
            EXTRA_RIDGES.map(candidate).to_vec()
        };
        let neighbours = 2.0 * graph.edge_count() as f64 / graph.len() as f64;
        let iterating = Iterating {
            weight,
            nodes: graph.len() as f64,
            per_penalty: 2.0 * neighbours,
        };
        match self {
            Self::Alone | Self::Centralised => once(1, |extra_ridge| Method::Local { extra_ridge }),
            Self::Averaged => once(1 + baseline::gossip(graph), |extra_ridge| Method::Average {
                extra_ridge,
            }),
            Self::Admm => iterating.each(1, |penalty, _| vec![Method::Admm { penalty }]),
            Self::Recycled => iterating.each(2, |penalty, convexity| {
                let method = |share: f64| Method::RecycledAdmm {
                    penalty,
                    damping: Schedule::Constant(share * convexity),
                    recycle: 1,
                };
                DAMPINGS.map(method).to_vec()
            }),
            Self::Linearised => iterating.each(2, |penalty, _| {
                let method = |share: f64| Method::RecycledDlm {
                    penalty,
                    damping: Schedule::Constant(share * weight),
                    recycle: 1,
                };
                LINEARISED_DAMPINGS.map(method).to_vec()
            }),
        }
    }
}

/// What those who iterate have in common.
struct Iterating {
    weight: f64,
    nodes: f64,
    /// `2V̄`.
    per_penalty: f64,
}

impl Iterating {
    /// All data steps, ridges and penalties, with every method that `of` makes of a penalty `η` and of `2ηV̄`.
    fn each(&self, period: u32, of: impl Fn(Schedule, f64) -> Vec<Method>) -> Vec<Candidate> {
        let mut all = Vec::new();
        for steps in DATA_STEPS {
            for ridge in RIDGES {
                for penalty in PENALTIES {
                    let convexity = penalty * self.weight;
                    let methods = of(Schedule::Constant(convexity / self.per_penalty), convexity);
                    all.extend(methods.into_iter().map(|method| Candidate {
                        method,
                        iterations: period * steps,
                        ridge: ridge * self.weight * self.nodes,
                    }));
                }
            }
        }
        all
    }
}
