//! The convergence of a study's algorithm: the paper's theorem, the rate near the optimum, and an observed run.
//!
//! All three leave noise out. Noise determines where a run comes to rest, not whether it does.

use radmm::algorithm::schedule::Schedule;
use radmm::convergence::local_rate::{LocalRate, NoLocalRate};
use radmm::convergence::theorem::{Certificate, Condition, Uncertifiable};
use radmm::curator::Unsolved;
use radmm::graph::Topology;
use radmm::privacy::{Bound, Mechanism};
use radmm::sim::Simulation;
use radmm_study::Method;
use radmm_study::algorithm::constant;
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use crate::executor::RayonExecutor;
use crate::experiment::Experiment;
use crate::instantiate::{RunError, RunSettings};

/// The relative distance below which a run is at the solver's accuracy, and says nothing about rates.
const SOLVER_ACCURACY: f64 = 1e-9;

/// The reason why a rate is undetermined.
const UNDETERMINED: &str = "a penalty, damping or dual step is so far from the curvature of the losses that rounding hides what a data step changes, or numbers overflow";

/// The reason why a study's convergence cannot be examined.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum CertifyError {
    /// The study cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The optimum, from which distances are measured, was not found.
    #[error("the centralised optimum was not found: {0}")]
    Optimum(#[from] Unsolved),
    /// There is no local rate.
    #[error(transparent)]
    NoLocalRate(#[from] NoLocalRate),
}

/// The convergence of a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Certification {
    /// The study's name.
    pub name: String,
    /// The study's algorithm.
    pub algorithm: Method,
    /// The size and shape of the network.
    pub network: NetworkSummary,
    /// The greatest `M_i = C_i·c₁ + ρ/N`.
    pub lipschitz: f64,
    /// The least `M_i`.
    pub least_lipschitz: f64,
    /// The verdict of Theorem III.1.
    pub theorem: TheoremVerdict,
    /// The local rates: the study's algorithm first, if it has one, then others for comparison.
    pub rates: Vec<AlgorithmRate>,
    /// The reason why the study's algorithm has no rate, if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_rate: Option<String>,
    /// A run of the study without noise.
    pub observed: ObservedConvergence,
    /// The reason why none of this may be published.
    pub caveat: &'static str,
}

/// The size and shape of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkSummary {
    /// `N`.
    pub nodes: usize,
    /// The number of pairs of neighbours.
    pub edges: usize,
    /// Whether the nodes have two sides with no edge within either.
    pub bipartite: bool,
}

/// The verdict of Theorem III.1 on a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum TheoremVerdict {
    /// The theorem is about another algorithm.
    NotCovered {
        /// The difference.
        reason: String,
    },
    /// Whether the condition holds cannot be determined in double precision.
    #[serde(rename = "untold")]
    Undetermined {
        /// The reason.
        reason: String,
    },
    /// The condition holds for no damping.
    Impossible {
        /// The reason.
        reason: String,
    },
    /// The condition holds.
    Met {
        /// The certificate of the study's damping.
        certificate: Certificate,
        /// The certificate of the least damping for which it holds.
        least: Certificate,
    },
    /// The condition does not hold for any `L` and `μ`.
    NotMet {
        /// The certificate of the least damping for which it would hold.
        least: Certificate,
    },
}

impl Certification {
    /// Returns the certification as JSON text with a final newline.
    pub fn to_json(&self) -> String {
        // Cannot fail: every map has string keys, and floats that are not finite become null.
        serde_json::to_string_pretty(self).expect("a certification is valid JSON") + "\n"
    }
}

impl TheoremVerdict {
    /// Returns the certificate of the least damping for which the condition holds, where there is one.
    pub fn least(&self) -> Option<&Certificate> {
        match self {
            Self::Met { least, .. } | Self::NotMet { least } => Some(least),
            Self::NotCovered { .. } | Self::Undetermined { .. } | Self::Impossible { .. } => None,
        }
    }
}

/// The local rate of an algorithm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AlgorithmRate {
    /// The algorithm.
    pub algorithm: Method,
    /// Its rate; numbers are null in JSON where they are undetermined.
    #[serde(flatten)]
    pub rate: LocalRate,
    /// The reason why the rate is undetermined, if it is.
    #[serde(rename = "untold", skip_serializing_if = "Option::is_none")]
    pub undetermined: Option<&'static str>,
}

/// The convergence of a run without noise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObservedConvergence {
    /// The farthest party's distance from the centralised optimum, by iteration.
    pub distance: Vec<f64>,
    /// The mean factor by which an iteration reduces the distance, over the whole run.
    pub per_iteration: Option<f64>,
    /// The same factor over the second half of the run, nearer to the optimum.
    pub per_iteration_late: Option<f64>,
    /// The reason for ending before the last iteration, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

impl Experiment {
    /// Returns an upper bound on the number of calls of `progress` by [`certify`](Self::certify).
    pub fn certify_progress_steps(&self) -> u64 {
        u64::from(self.study().algorithm.iterations) + 5
    }

    /// Examines the study's convergence. `progress` is called now and then with the work just done. Results have the same bits
    /// for any number of threads.
    pub fn certify(&self, progress: &(dyn Fn(&str) + Sync)) -> Result<Certification, CertifyError> {
        let study = self.study();
        let method = &study.algorithm.method;
        let instance = self.instance();
        let nodes = self.graph().nodes();
        let lipschitz: Vec<f64> = nodes.map(|id| instance.problem(id).lipschitz()).collect();
        let (observed, optimum) = self.observe(progress)?;
        let theorem = self.verdict(&lipschitz);
        progress("theorem");
        let no_rate = method.no_rate().map(str::to_owned);
        let mut rated = Vec::new();
        if no_rate.is_none() {
            rated.push(method.clone());
            rated.extend(method.exact());
            rated.extend(
                theorem
                    .least()
                    .and_then(|least| damped(method, least.damping)),
            );
        }
        let rates = rated
            .into_par_iter()
            .map(|algorithm| {
                let rate = self.rate(&algorithm, &optimum)?;
                progress("rates");
                Ok(AlgorithmRate {
                    algorithm,
                    rate,
                    undetermined: (!rate.is_known()).then_some(UNDETERMINED),
                })
            })
            .collect::<Result<Vec<_>, CertifyError>>()?;
        Ok(Certification {
            name: study.name.clone(),
            algorithm: method.clone(),
            network: NetworkSummary {
                nodes: self.graph().len(),
                edges: self.graph().edge_count(),
                bipartite: self.graph().is_bipartite(),
            },
            lipschitz: lipschitz.iter().copied().fold(0.0, f64::max),
            least_lipschitz: lipschitz.iter().copied().fold(f64::INFINITY, f64::min),
            theorem,
            rates,
            no_rate,
            observed,
            caveat: "a simulation without noise: it holds all rows and shows what depends on them",
        })
    }

    fn verdict(&self, lipschitz: &[f64]) -> TheoremVerdict {
        let (eta, gamma) = match theorem_covers(&self.study().algorithm.method) {
            Ok(constants) => constants,
            Err(reason) => return TheoremVerdict::NotCovered { reason },
        };
        let graph = self.graph();
        if graph.is_bipartite() {
            return TheoremVerdict::Impossible {
                reason: format!(
                    "{} is bipartite, so that D+A is singular: no damping meets the condition",
                    topology_text(&self.study().network.topology, graph.len())
                ),
            };
        }
        let decided = Condition::new(graph, eta, lipschitz).and_then(|condition| {
            let least = condition.least()?;
            Ok(match condition.certify(gamma) {
                Some(certificate) => TheoremVerdict::Met { certificate, least },
                None if gamma < least.damping => TheoremVerdict::NotMet { least },
                None => TheoremVerdict::Undetermined {
                    reason: "a smaller damping meets it, and at this one its numbers overflow or rounding exceeds its margins".to_owned(),
                },
            })
        });
        decided.unwrap_or_else(|refused| {
            let reason = refused.to_string();
            match refused {
                Uncertifiable::Bipartite | Uncertifiable::TooManyNodes { .. } => {
                    TheoremVerdict::Impossible { reason }
                }
                _ => TheoremVerdict::Undetermined { reason },
            }
        })
    }

    fn rate(&self, method: &Method, optimum: &[f64]) -> Result<LocalRate, CertifyError> {
        let (experiment, simulation) = self.without_noise(method)?;
        let instance = experiment.instance();
        let make = |id, lambda| instance.algorithm(id, lambda);
        Ok(simulation.local_rate(optimum, method.period(), &make)?)
    }

    /// Returns the study with another method and without noise, and its simulation.
    fn without_noise(&self, method: &Method) -> Result<(Self, Simulation), RunError> {
        let mut study = self.study().clone();
        study.algorithm.method = method.clone();
        let noise = vec![Mechanism::None; self.graph().len()];
        study.privacy.bound = Bound::Tight;
        let experiment = self.on_same_network(study);
        let simulation = experiment.simulation(&RunSettings::first(&noise))?;
        Ok((experiment, simulation))
    }

    /// Runs the study without noise, and finds the optimum that it should converge to.
    fn observe(
        &self,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<(ObservedConvergence, Vec<f64>), CertifyError> {
        let method = &self.study().algorithm.method;
        let (_, mut simulation) = self.without_noise(method)?;
        let optimum = simulation.centralised()?.model;
        let (mut distance, mut stopped) = (Vec::new(), None);
        loop {
            let made = simulation.run(&RayonExecutor).next();
            match made {
                None => break,
                Some(Err(halt)) => stopped = Some(halt.to_string()),
                Some(Ok(_)) => distance.push(simulation.distance_from(&optimum)),
            }
            progress("run without noise");
        }
        let last = last_compared(&distance, method.period() as usize);
        let observed = ObservedConvergence {
            per_iteration: mean_factor(&distance, 0, last),
            per_iteration_late: mean_factor(&distance, last / 2, last),
            distance,
            stopped,
        };
        Ok((observed, optimum))
    }
}

/// Returns the last iteration `2·k·period` that is not yet at the solver's accuracy. Half of it is the end of a period too, so
/// that steps of the same kind are compared. In a run shorter than two periods, it is the last iteration.
fn last_compared(distance: &[f64], period: usize) -> usize {
    let Some(first) = distance.first() else {
        return 0;
    };
    let above_accuracy = |d: &&f64| d.is_finite() && **d > SOLVER_ACCURACY * first;
    let last = distance
        .iter()
        .take_while(above_accuracy)
        .count()
        .saturating_sub(1);
    match last / (2 * period) {
        0 => last,
        pairs => pairs * 2 * period,
    }
}

/// Returns the geometric mean of the factors from one iteration to another.
fn mean_factor(distance: &[f64], from: usize, to: usize) -> Option<f64> {
    (to > from).then(|| libm::pow(distance[to] / distance[from], 1.0 / (to - from) as f64))
}

/// Returns `η` and `γ` if the theorem is about this algorithm, or the reason why it is not.
fn theorem_covers(method: &Method) -> Result<(f64, f64), String> {
    match method {
        Method::RecycledAdmm {
            penalty,
            damping,
            recycle,
        } => {
            if *recycle != 1 {
                return Err(format!(
                    "it is about one recycled step a data step, and recycle is {recycle}"
                ));
            }
            let constant = constant(penalty).zip(constant(damping));
            constant.ok_or("it is about a constant penalty and damping, and these vary".to_owned())
        }
        other => Err(format!("it is about r-admm, and this is {}", other.name())),
    }
}

/// Returns R-ADMM at another damping.
fn damped(method: &Method, gamma: f64) -> Option<Method> {
    match method {
        Method::RecycledAdmm {
            penalty, recycle, ..
        } => Some(Method::RecycledAdmm {
            penalty: *penalty,
            damping: Schedule::Constant(gamma),
            recycle: *recycle,
        }),
        _ => None,
    }
}

/// Returns a topology in words.
fn topology_text(topology: &Topology, nodes: usize) -> String {
    match topology {
        Topology::Ring => format!("a ring of {nodes} parties"),
        Topology::Path => "a path".to_owned(),
        Topology::Star => "a star".to_owned(),
        Topology::Complete => format!("the complete graph of {nodes} parties"),
        Topology::Grid { .. } => "a grid".to_owned(),
        Topology::Random { .. } | Topology::Regular { .. } | Topology::SmallWorld { .. } => {
            "this random graph".to_owned()
        }
        Topology::Edges { .. } => "the graph of these edges".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_factor_covers_whole_periods_above_the_solvers_accuracy() {
        // Halved each iteration: below 10⁻⁹ from the thirtieth on.
        let distance: Vec<f64> = (0..50).map(|t| 0.5f64.powi(t)).collect();
        assert_eq!(last_compared(&distance, 1), 28);
        assert_eq!(last_compared(&distance, 2), 28);
        assert_eq!(last_compared(&distance, 4), 24);
        // Too short for two periods: all there is.
        assert_eq!(last_compared(&distance[..4], 2), 3);
        assert_eq!(last_compared(&distance[..1], 2), 0);
        assert_eq!(last_compared(&[1.0, 2.0, f64::INFINITY], 1), 1);
        assert_eq!(mean_factor(&distance, 14, 28), Some(0.5));
        assert_eq!(mean_factor(&distance, 0, 0), None);
    }

    #[test]
    fn a_schedule_that_never_changes_is_constant_in_any_form() {
        let growth = |growth| Schedule::Growth { start: 2.0, growth };
        assert_eq!(constant(&growth(1.0)), Some(2.0));
        assert_eq!(constant(&growth(1.01)), None);
        let still = Schedule::Decay {
            start: 3.0,
            power: 0.0,
        };
        assert_eq!(constant(&still), Some(3.0));
    }
}
