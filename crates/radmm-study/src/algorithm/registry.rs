//! The entries of the registry: one for each algorithm.

use std::sync::OnceLock;

use radmm::algorithm::Algorithm;
use radmm::algorithm::admm::{Admm, Penalty};
use radmm::algorithm::baseline::{Average, Local};
use radmm::algorithm::consensus::Consensus;
use radmm::algorithm::dgd::Dgd;
use radmm::algorithm::dlm::Dlm;
use radmm::algorithm::recycled::Recycled;
use radmm::algorithm::schedule::Schedule;
use radmm::graph::{Graph, NodeId, SpanningTree};
use radmm::privacy::NoiseDistribution;
use radmm::problem::{Loss, RowCount};

use super::parameter::{Parameter, ParameterInfo, ParameterValue};
use super::public_rule::{AutoNumber, ConsensusSettings, MetricKind, PublicFacts};
use crate::choice::Choice;
use crate::error::StudyError;
use crate::parse::algorithm::Parameters;

/// The facts about an algorithm that do not depend on its parameters.
#[derive(Clone, Copy, Debug)]
pub struct AlgorithmInfo {
    /// The name in study files: `r-admm`.
    pub name: &'static str,
    /// The name in prose: R-ADMM.
    pub title: &'static str,
    /// One iteration, as docs/study.md has it.
    pub iteration: &'static str,
    /// The kind of query that its data steps ask.
    pub asks: Asks,
    /// Whether its parties need to exchange messages.
    pub communicates: bool,
    /// Whether the number of iterations follows from its parameters and the network.
    pub counts_iterations: bool,
    /// The reason why it has no rate of convergence at the optimum, whatever its parameters; `None` if it has one.
    pub no_rate: Option<&'static str>,
    /// The parameters that it has beyond those of every algorithm.
    pub parameters: &'static [ParameterInfo],
    pub(crate) parse: fn(&Parameters<'_>) -> Result<Method, StudyError>,
}

/// The kind of query that the data steps of an algorithm ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// The minimiser of the local objective and a quadratic.
    Minimisers,
    /// The gradient of the local objective.
    Gradients,
}

/// A node that is given its part of an algorithm.
pub struct NodePosition<'a> {
    /// The graph of all nodes.
    pub graph: &'a Graph,
    /// The node.
    pub id: NodeId,
    /// The dual `λ_i` that it continues from, if its algorithm has one.
    pub dual: Vec<f64>,
    /// The weights of the parties' rows.
    pub count: RowCount,
    /// `B_i` by node; empty if parties count alike and did not declare their rows.
    pub rows: &'a [usize],
    /// `Σ_i B_i`; zero if `rows` is empty.
    pub total_rows: usize,
    /// The loss.
    pub loss: Loss,
    /// The noise of its answers, as far as it is known; `None` without noise.
    pub noise: Option<NoiseDistribution>,
    /// The spanning tree of the graph, once somebody needs it.
    pub tree: &'a OnceLock<SpanningTree>,
}

impl NodePosition<'_> {
    fn index(&self) -> usize {
        self.id.0 as usize
    }

    fn admm(&self, penalty: Penalty) -> Admm {
        Admm::with_dual(penalty, self.dual.clone())
    }

    fn dlm(&self, penalty: &Schedule, damping: &Schedule) -> Dlm {
        Dlm::with_dual(Penalty::common(*penalty), *damping, self.dual.clone())
    }

    fn average(&self, extra_ridge: f64) -> Average {
        let shares = self.graph.neighbours(self.id).iter();
        Average::new(extra_ridge, self.graph.metropolis(self.id)).with_shares(
            self.share(self.id),
            shares.map(|id| self.share(*id)).collect(),
        )
    }

    /// Returns what a node counts for: `N·B_i/Σ_j B_j` where rows count alike, else one.
    pub fn share(&self, id: NodeId) -> f64 {
        // Unknown only where nothing depends on it.
        let rows = self.rows.get(id.0 as usize).copied().unwrap_or(0);
        let parties = self.graph.len() as u32;
        self.count.weight(1.0, parties, rows, self.total_rows)
    }

    fn consensus(&self, settings: &ConsensusSettings) -> Consensus {
        let tree = self.tree.get_or_init(|| SpanningTree::of(self.graph));
        let position = tree.position(self.graph, self.id);
        Consensus::new(settings.resolve(&self.facts()), position, self.dual.len())
    }

    fn facts(&self) -> PublicFacts {
        PublicFacts {
            parties: self.graph.len(),
            total_rows: self.total_rows,
            columns: self.dual.len(),
            loss: self.loss,
            noise: self.noise,
        }
    }

    /// The penalty of this node alone, with a dual step that all nodes share.
    fn own_penalty(&self, penalties: &[Schedule], dual_step: f64) -> Penalty {
        Penalty {
            primal: penalties[self.index()],
            dual: Schedule::Constant(dual_step),
        }
    }
}

/// Generates [`Method`] and [`REGISTRY`] from the entries. The expressions after `build`, `unrecycled` and `exact` see
/// the parameters by reference under their names.
macro_rules! registry {
    (@optional) => { None };
    (@optional $value:expr) => { Some($value) };
    ($(
        $(#[$doc:meta])*
        $variant:ident { $( $(#[$field_doc:meta])* $field:ident : $type:ty, )* } {
            info { $( $fact:ident : $value:expr, )* },
            build |$node:ident| $build:expr,
            $( unrecycled $unrecycled:expr, )?
            $( exact $exact:expr, )?
        }
    )*) => {
        /// An algorithm and its parameters. Penalties `η` are positive and dampings `γ` non-negative over all iterations.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Method {
            $( $(#[$doc])* $variant { $( $(#[$field_doc])* $field: $type, )* }, )*
        }

        /// All algorithms, in the order of docs/study.md.
        pub static REGISTRY: &[AlgorithmInfo] = &[$( AlgorithmInfo {
            $( $fact: $value, )*
            parameters: &[$( ParameterInfo {
                key: stringify!($field),
                per_node: <$type as Parameter>::PER_NODE,
            }, )*],
            parse: |parameters| Ok(Method::$variant {
                $( $field: Parameter::parse(parameters, stringify!($field))?, )*
            }),
        }, )*];

        #[allow(unused_variables)]
        impl Method {
            /// Returns the facts that do not depend on its parameters.
            pub fn info(&self) -> &'static AlgorithmInfo {
                enum Index { $( $variant, )* }
                let index = match self { $( Self::$variant { .. } => Index::$variant, )* };
                &REGISTRY[index as usize]
            }

            /// Returns its parameters by their keys, in the order of the serialised study.
            pub fn parameters(&self) -> Vec<(&'static str, ParameterValue<'_>)> {
                match self { $(
                    Self::$variant { $( $field, )* } => {
                        vec![$( (stringify!($field), Parameter::value($field)), )*]
                    }
                )* }
            }

            /// Builds a node's part of the algorithm.
            pub fn build(&self, position: &NodePosition<'_>) -> Box<dyn Algorithm> {
                match self { $(
                    Self::$variant { $( $field, )* } => {
                        let $node = position;
                        Box::new($build)
                    }
                )* }
            }

            pub(super) fn without_recycling(&self) -> Option<Self> {
                match self { $( Self::$variant { $( $field, )* } => registry!(@optional $( $unrecycled )?), )* }
            }

            /// Returns the algorithm that minimises exactly in every iteration, with the same penalties; `None` if this is
            /// that algorithm, or has no such form.
            pub fn exact(&self) -> Option<Self> {
                match self { $( Self::$variant { $( $field, )* } => registry!(@optional $( $exact )?), )* }
            }
        }
    };
}

impl Method {
    /// Returns what the public rule chose for a node once the number of rows and the noise are known.
    pub(crate) fn row_dependent_choices(&self, position: &NodePosition<'_>) -> Vec<Choice> {
        match *self {
            Self::Consensus {
                metric,
                metric_share,
                metric_ridge,
                steps,
                step,
                momentum,
            } => {
                let settings = ConsensusSettings {
                    metric,
                    metric_share,
                    metric_ridge,
                    steps,
                    step,
                    momentum,
                };
                settings.choices(&position.facts())
            }
            _ => Vec::new(),
        }
    }
}

registry! {
    /// Conventional ADMM.
    Admm {
        /// `η`.
        penalty: Schedule,
    } {
        info {
            name: "admm",
            title: "ADMM",
            iteration: "conventional ADMM: `f_i ← Minimise(a, b)` with `a = 2ηV_i`, `b = 2λ_i − η Σ_j (f_i + f_j)`; then \
                        `λ_i ← λ_i + (η/2) Σ_j (f_i − f_j)` with the new models",
            asks: Asks::Minimisers,
            communicates: true,
            counts_iterations: false,
            no_rate: None,
        },
        build |node| node.admm(Penalty::common(*penalty)),
    }

    /// R-ADMM: after each data step, recycled steps that reuse its gradient.
    RecycledAdmm {
        /// `η`.
        penalty: Schedule,
        /// `γ`.
        damping: Schedule,
        /// Recycled steps a data step.
        recycle: u32,
    } {
        info {
            name: "r-admm",
            title: "R-ADMM",
            iteration: "data iterations as `admm`; recycled ones \
                        `f_i ← p − [g + 2λ_i + η(2V_i·p − Σ_j (f_i + f_j))] / (2ηV_i + γ)`, `λ_i` as it is",
            asks: Asks::Minimisers,
            communicates: true,
            counts_iterations: false,
            no_rate: None,
        },
        build |node| Recycled::new(node.admm(Penalty::common(*penalty)), *damping, *recycle),
        unrecycled Method::Admm { penalty: *penalty },
        exact Method::Admm { penalty: *penalty },
    }

    /// M-ADMM: every node has its own penalty, which does not decrease.
    MAdmm {
        /// `η_i`, one a node.
        penalty: Vec<Schedule>,
        /// `θ`, at most every penalty.
        dual_step: f64,
    } {
        info {
            name: "m-admm",
            title: "M-ADMM",
            iteration: "`admm` with a penalty `η_i` for each node, which does not decrease, and `θ` for `η` in the update of `λ_i`",
            asks: Asks::Minimisers,
            communicates: true,
            counts_iterations: false,
            no_rate: None,
        },
        build |node| node.admm(node.own_penalty(penalty, *dual_step)),
    }

    /// M-ADMM and R-ADMM together.
    MRecycledAdmm {
        /// `η_i`, one a node.
        penalty: Vec<Schedule>,
        /// `γ_i`, one a node.
        damping: Vec<Schedule>,
        /// Recycled steps a data step.
        recycle: u32,
        /// `θ`, at most every penalty.
        dual_step: f64,
    } {
        info {
            name: "mr-admm",
            title: "MR-ADMM",
            iteration: "`m-admm` in data iterations, `r-admm`'s recycled ones with `η_i` and `γ_i`",
            asks: Asks::Minimisers,
            communicates: true,
            counts_iterations: false,
            no_rate: None,
        },
        build |node| {
            let admm = node.admm(node.own_penalty(penalty, *dual_step));
            Recycled::new(admm, damping[node.index()], *recycle)
        },
        unrecycled Method::MAdmm { penalty: penalty.clone(), dual_step: *dual_step },
        exact Method::MAdmm { penalty: penalty.clone(), dual_step: *dual_step },
    }

    /// ADMM on the linearised objective.
    Dlm {
        /// `η`.
        penalty: Schedule,
        /// `γ`.
        damping: Schedule,
    } {
        info {
            name: "dlm",
            title: "DLM",
            iteration: "linearised ADMM: with `g = Gradient(f_i)` and `p = f_i`, the step of `r-admm`'s recycled iterations; then \
                        `λ_i` as in `admm`",
            asks: Asks::Gradients,
            communicates: true,
            counts_iterations: false,
            no_rate: None,
        },
        build |node| node.dlm(penalty, damping),
        exact Method::Admm { penalty: *penalty },
    }

    /// DLM with recycled steps.
    RecycledDlm {
        /// `η`.
        penalty: Schedule,
        /// `γ`.
        damping: Schedule,
        /// Recycled steps a data step.
        recycle: u32,
    } {
        info {
            name: "r-dlm",
            title: "R-DLM",
            iteration: "data iterations as `dlm`, recycled ones as in `r-admm`",
            asks: Asks::Gradients,
            communicates: true,
            counts_iterations: false,
            no_rate: None,
        },
        build |node| Recycled::new(node.dlm(penalty, damping), *damping, *recycle),
        unrecycled Method::Dlm { penalty: *penalty, damping: *damping },
        exact Method::Admm { penalty: *penalty },
    }

    /// Decentralised gradient descent.
    Dgd {
        /// `s`.
        step: Schedule,
    } {
        info {
            name: "dgd",
            title: "DGD",
            iteration: "gradient descent: `f_i ← Σ_j w_ij f_j − s·Gradient(f_i)`, with Metropolis weights `w`, the sum over i itself too",
            asks: Asks::Gradients,
            communicates: true,
            counts_iterations: false,
            no_rate: Some("dgd comes to rest beside the optimum, or creeps up on it"),
        },
        build |node| Dgd::new(node.graph.metropolis(node.id), *step),
    }

    /// Recycling to consensus: gradients at a common point, and exact sums along a tree.
    Consensus {
        /// The question that comes before the gradients.
        metric: MetricKind,
        /// `φ`, its share of the budget.
        metric_share: f64,
        /// `λ`, added to the eigenvalues of the Gram matrix.
        metric_ridge: AutoNumber,
        /// `K`, the number of gradients.
        steps: u32,
        /// `s`, in units of the mean loss.
        step: AutoNumber,
        /// `β`.
        momentum: AutoNumber,
    } {
        info {
            name: "consensus",
            title: "consensus",
            iteration: "data iterations release `g_i`, the sum of `L'(yᵀz)z` over the node's rows; recycled ones add up along a tree and \
                        bring the total back; then `f ← y − s·ḡ`, `y ← f + β(f − f_before)` with the mean `ḡ` over all rows",
            asks: Asks::Gradients,
            communicates: true,
            counts_iterations: true,
            no_rate: Some("it takes as many steps as its noise allows, and stops before the optimum"),
        },
        build |node| node.consensus(&ConsensusSettings {
            metric: *metric,
            metric_share: *metric_share,
            metric_ridge: *metric_ridge,
            steps: *steps,
            step: *step,
            momentum: *momentum,
        }),
    }

    /// Every node alone.
    Local {
        /// `a`, added to the ridge.
        extra_ridge: f64,
    } {
        info {
            name: "local",
            title: "every node alone",
            iteration: "every node alone: `f_i = Minimise(a, 0)` in the first iteration, and it stays",
            asks: Asks::Minimisers,
            communicates: false,
            counts_iterations: false,
            no_rate: Some("it does not head for the optimum"),
        },
        build |node| Local::new(*extra_ridge),
    }

    /// Every node alone, then the mean of all models, over rows or over parties.
    Average {
        /// `a`, added to the ridge.
        extra_ridge: f64,
    } {
        info {
            name: "average",
            title: "averaged once",
            iteration: "every node alone in the first iteration, `f_i = Minimise(a, 0)`; from then on gossip, `f_i ← Σ_j w_ij f_j`, the \
                        first time with the models `f_j·N·B_j/Σ_k B_k` in place of `f_j` where rows count alike; it tends to the mean \
                        over all rows, or over all parties",
            asks: Asks::Minimisers,
            communicates: true,
            counts_iterations: false,
            no_rate: Some("it does not head for the optimum"),
        },
        build |node| node.average(*extra_ridge),
    }
}
