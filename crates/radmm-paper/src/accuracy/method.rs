//! The methods of the table, and the parameters with which each is tried.
//!
//! Scales are shares of `C`, the weight of the loss: the effect of an answer depends on the ratio of convexity to `C` alone. With
//! `a = 2ηV̄`, the convexity that the penalty adds to a query (`V̄`: the mean number of neighbours), the common ridge per
//! party `ρ/N`, and `K` data steps:
//! ```text
//! alone, averaged once, centralised   extra ridge ∈ {1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1}·C
//! ADMM                                a ∈ {3e-3, 1e-2, 3e-2, 1e-1, 3e-1}·C, ρ/N ∈ {1e-4, 1e-3}·C, K ∈ {2, 6, 20}
//! R-ADMM                              the same, with γ ∈ {0.05, 0.5}·a
//! linearised R-ADMM                   the same, with γ ∈ {1e-2, 3e-2, 1e-1}·C
//! R-ADMM by the rule, consensus       nothing: the public rules
//! ```

use radmm::algorithm::schedule::Schedule;
use radmm_lab::{Experiment, gossip_rounds};
use radmm_study::{Method, NoiseFamily};
use serde::Serialize;

/// A method of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccuracyMethod {
    /// Every party trains alone.
    Alone,
    /// Every party trains alone, then the models are averaged.
    Averaged,
    /// Conventional ADMM.
    Admm,
    /// R-ADMM, one recycled step a data step.
    Recycled,
    /// R-ADMM, one recycled step a data step, by the public rule.
    RecycledByRule,
    /// Linearised R-ADMM, one recycled step a data step.
    Linearised,
    /// Recycling to consensus, by the public rule.
    Consensus,
    /// One party with all rows, which answers a single query.
    Centralised,
}

/// Parameters to be tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParameterSet {
    /// The algorithm with its parameters.
    #[serde(flatten)]
    pub method: Method,
    /// `T`, including recycled iterations.
    pub iterations: u32,
    /// `ρ`.
    pub ridge: f64,
}

/// The extra ridges of methods with a single query, as shares of `C`.
const EXTRA_RIDGES: [f64; 8] = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1];

/// The common ridge per party of iterating methods, as shares of `C`.
const RIDGES: [f64; 2] = [1e-4, 1e-3];

/// The penalties `2ηV̄`, as shares of `C`.
const PENALTIES: [f64; 5] = [3e-3, 1e-2, 3e-2, 1e-1, 3e-1];

/// The dampings of R-ADMM, as shares of `2ηV̄`.
const DAMPINGS: [f64; 2] = [0.05, 0.5];

/// The dampings of the linearised steps, as shares of `C`.
const LINEARISED_DAMPINGS: [f64; 3] = [1e-2, 3e-2, 1e-1];

/// The numbers of data steps of iterating methods.
const DATA_STEPS: [u32; 3] = [2, 6, 20];

impl AccuracyMethod {
    /// All methods, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::Alone,
        Self::Averaged,
        Self::Admm,
        Self::Recycled,
        Self::Linearised,
        Self::RecycledByRule,
        Self::Consensus,
        Self::Centralised,
    ];

    /// Returns the name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Alone => "each party alone",
            Self::Averaged => "averaged once",
            Self::Admm => "ADMM",
            Self::Recycled => "R-ADMM",
            Self::Linearised => "linearised R-ADMM",
            Self::RecycledByRule => "R-ADMM, by the rule",
            Self::Consensus => "consensus, by the rule",
            Self::Centralised => "centralised, private",
        }
    }

    /// Returns the parameters with which the method is tried on a study's problem, graph and parties.
    pub fn parameter_sets(self, experiment: &Experiment, noise: NoiseFamily) -> Vec<ParameterSet> {
        let (study, graph) = (experiment.study(), experiment.graph());
        let weight = study.problem.weight;
        let single_query = |iterations, method: fn(f64) -> Method| {
            let parameters = |share: f64| ParameterSet {
                method: method(share * weight),
                iterations,
                ridge: study.problem.ridge,
            };
            EXTRA_RIDGES.map(parameters).to_vec()
        };
        let neighbours = 2.0 * graph.edge_count() as f64 / graph.len() as f64;
        let iterating = Iterating {
            weight,
            nodes: graph.len() as f64,
            per_penalty: 2.0 * neighbours,
        };
        match self {
            Self::Alone | Self::Centralised => {
                single_query(1, |extra_ridge| Method::Local { extra_ridge })
            }
            Self::Averaged => {
                let rounds = gossip_rounds(&experiment.instance());
                single_query(1 + rounds, |extra_ridge| Method::Average { extra_ridge })
            }
            Self::Admm => iterating.each(1, |penalty, _| vec![Method::Admm { penalty }]),
            Self::Recycled => iterating.each(2, |penalty, convexity| {
                let method = |share: f64| Method::RecycledAdmm {
                    penalty,
                    damping: Schedule::Constant(share * convexity),
                    recycle: 1,
                };
                DAMPINGS.map(method).to_vec()
            }),
            Self::RecycledByRule => {
                let (method, iterations) = Method::recycled(&study.problem, &study.network, noise);
                vec![ParameterSet {
                    method,
                    iterations,
                    ridge: study.problem.ridge,
                }]
            }
            Self::Consensus => {
                let method = Method::consensus(noise, experiment.table().columns.len());
                vec![ParameterSet {
                    iterations: method.iterations_on(graph).unwrap_or(1),
                    method,
                    ridge: study.problem.ridge,
                }]
            }
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

/// The common quantities of iterating methods.
struct Iterating {
    weight: f64,
    nodes: f64,
    /// `2V̄`.
    per_penalty: f64,
}

impl Iterating {
    /// Returns all data steps, ridges and penalties, with every method that `methods` makes of a penalty `η` and of `2ηV̄`.
    fn each(
        &self,
        period: u32,
        methods: impl Fn(Schedule, f64) -> Vec<Method>,
    ) -> Vec<ParameterSet> {
        let mut all = Vec::new();
        for steps in DATA_STEPS {
            for ridge in RIDGES {
                for penalty in PENALTIES {
                    let convexity = penalty * self.weight;
                    let methods =
                        methods(Schedule::Constant(convexity / self.per_penalty), convexity);
                    all.extend(methods.into_iter().map(|method| ParameterSet {
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
