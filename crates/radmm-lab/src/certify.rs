//! Will a study's algorithm converge, and how fast? What the paper's theorem says, what is true near the optimum, and what
//! is seen. Noise is left out of all three: it decides where a run comes to rest, not whether.

use radmm::account::Bound;
use radmm::private::{Mechanism, NotCertified};
use radmm::public::certificate::{Certificate, Condition, Uncertifiable};
use radmm::public::graph::Topology;
use radmm::public::schedule::Schedule;
use radmm::rate::{LocalRate, TooLarge};
use radmm::sim::Simulation;
use radmm_study::Method;
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use crate::assemble::{self, RunError, Variant};
use crate::crew::Pool;
use crate::experiment::Experiment;

/// A run this much nearer to the optimum than it began is at the solver's accuracy, and says nothing of rates.
const FLOOR: f64 = 1e-9;

const UNTOLD: &str = "a penalty, damping or dual step is so far from the curvature of the losses that rounding hides what a data step changes, or numbers overflow";

/// Why nothing can be said.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum CertifyError {
    /// The study cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The optimum, from which distances are taken, was not found.
    #[error("the centralised optimum was not found: {0}")]
    Optimum(#[from] NotCertified),
    /// The linearised problem does not fit in memory.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

/// Everything that can be said of a study's convergence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Certification {
    /// The study's.
    pub name: String,
    /// What is run.
    pub algorithm: Method,
    /// Who talks to whom.
    pub network: Network,
    /// `M = C·c₁ + ρ/N`.
    pub lipschitz: f64,
    /// What Theorem III.1 says.
    pub theorem: Verdict,
    /// The true rates: the study's algorithm first, if it has one, then others beside it.
    pub rates: Vec<Rated>,
    /// Why the study's algorithm has no rate, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_rate: Option<String>,
    /// What the study does without noise.
    pub observed: Observed,
    /// What all of this is not.
    pub caveat: &'static str,
}

/// Who talks to whom, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Network {
    /// `N`.
    pub nodes: usize,
    /// Pairs that talk.
    pub edges: usize,
    /// Whether no edge is within one of two sides.
    pub bipartite: bool,
}

/// What Theorem III.1 says of a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// It is about another algorithm.
    NotCovered {
        /// What differs.
        reason: String,
    },
    /// Double precision does not tell whether its condition holds.
    Untold {
        /// Why.
        reason: String,
    },
    /// Its condition holds for no damping.
    Impossible {
        /// Why.
        reason: String,
    },
    /// Its condition holds.
    Met {
        /// Of the study's damping.
        certificate: Certificate,
        /// Of the least damping for which it holds.
        least: Certificate,
    },
    /// Its condition does not hold, for no `L` and `μ`.
    NotMet {
        /// Of the least damping for which it would hold.
        least: Certificate,
    },
}

impl Certification {
    /// As text, with a line end.
    pub fn to_json(&self) -> String {
        // Every map has string keys and floats that are not finite become null, so that nothing is left to fail.
        serde_json::to_string_pretty(self).expect("a certification is valid JSON") + "\n"
    }
}

impl Verdict {
    /// The least damping for which the condition holds, where there is one.
    pub fn least(&self) -> Option<&Certificate> {
        match self {
            Self::Met { least, .. } | Self::NotMet { least } => Some(least),
            Self::NotCovered { .. } | Self::Untold { .. } | Self::Impossible { .. } => None,
        }
    }
}

/// An algorithm and its true rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rated {
    /// Which.
    pub algorithm: Method,
    /// How fast; its numbers are null in JSON where they cannot be told.
    #[serde(flatten)]
    pub rate: LocalRate,
    /// Why the rate cannot be told, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untold: Option<&'static str>,
}

/// A run without noise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Observed {
    /// By iteration: the farthest party's distance from the centralised optimum.
    pub distance: Vec<f64>,
    /// The mean factor of an iteration, over the whole run.
    pub per_iteration: Option<f64>,
    /// The same over the second half of the run, nearer to the optimum.
    pub per_iteration_late: Option<f64>,
    /// Why it ended before its last iteration, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

impl Experiment {
    /// How often `progress` will be called by [`certify`](Self::certify), at most.
    pub fn certify_steps(&self) -> u64 {
        u64::from(self.study().algorithm.iterations) + 5
    }

    /// What can be said of the study's convergence. `progress` is called now and then with what has been done. Results are
    /// the same bits for any number of threads.
    pub fn certify(&self, progress: &(dyn Fn(&str) + Sync)) -> Result<Certification, CertifyError> {
        let study = self.study();
        let method = &study.algorithm.method;
        let lipschitz = assemble::problem(study).lipschitz();
        let (observed, optimum) = self.observe(progress)?;
        let theorem = self.verdict(lipschitz);
        progress("theorem");
        let no_rate = unrated(method).map(str::to_owned);
        let mut rated = Vec::new();
        if no_rate.is_none() {
            rated.push(method.clone());
            rated.extend(conventional(method));
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
                Ok(Rated {
                    algorithm,
                    rate,
                    untold: (!rate.is_told()).then_some(UNTOLD),
                })
            })
            .collect::<Result<Vec<_>, CertifyError>>()?;
        Ok(Certification {
            name: study.name.clone(),
            algorithm: method.clone(),
            network: Network {
                nodes: self.graph().len(),
                edges: self.graph().edge_count(),
                bipartite: self.graph().is_bipartite(),
            },
            lipschitz,
            theorem,
            rates,
            no_rate,
            observed,
            caveat: "a simulation without noise: it holds all rows and shows what depends on them",
        })
    }

    fn verdict(&self, lipschitz: f64) -> Verdict {
        let (eta, gamma) = match theorem_covers(&self.study().algorithm.method) {
            Ok(constants) => constants,
            Err(reason) => return Verdict::NotCovered { reason },
        };
        let graph = self.graph();
        if graph.is_bipartite() {
            return Verdict::Impossible {
                reason: format!(
                    "{} is bipartite, so that D+A is singular: no damping meets the condition",
                    shape(&self.study().network.topology, graph.len())
                ),
            };
        }
        let decided = Condition::new(graph, eta, lipschitz).and_then(|condition| {
            let least = condition.least()?;
            Ok(match condition.certify(gamma) {
                Some(certificate) => Verdict::Met { certificate, least },
                None if gamma < least.damping => Verdict::NotMet { least },
                None => Verdict::Untold {
                    reason: "a smaller damping meets it, and at this one its numbers overflow or rounding exceeds its margins".to_owned(),
                },
            })
        });
        decided.unwrap_or_else(|refused| {
            let reason = refused.to_string();
            match refused {
                Uncertifiable::Bipartite | Uncertifiable::TooManyNodes { .. } => {
                    Verdict::Impossible { reason }
                }
                Uncertifiable::IllConditioned | Uncertifiable::Overflow { .. } => {
                    Verdict::Untold { reason }
                }
            }
        })
    }

    fn rate(&self, method: &Method, optimum: &[f64]) -> Result<LocalRate, CertifyError> {
        let simulation = self.quiet(method)?;
        let make = |id, lambda| assemble::algorithm(method, self.graph(), id, lambda);
        Ok(simulation.local_rate(optimum, period(method), &make)?)
    }

    /// A simulation without noise.
    fn quiet(&self, method: &Method) -> Result<Simulation, RunError> {
        let mut study = self.study().clone();
        study.algorithm.method = method.clone();
        let noise = vec![Mechanism::None; self.graph().len()];
        study.privacy.bound = Bound::Tight;
        self.with(study).simulation(&Variant::first(&noise))
    }

    /// Runs the study without noise, and finds the optimum that it should come to.
    fn observe(
        &self,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<(Observed, Vec<f64>), CertifyError> {
        let method = &self.study().algorithm.method;
        let mut simulation = self.quiet(method)?;
        let optimum = simulation.centralised()?.model;
        let (mut distance, mut stopped) = (Vec::new(), None);
        loop {
            let made = simulation.run(&Pool).next();
            match made {
                None => break,
                Some(Err(halt)) => stopped = Some(halt.to_string()),
                Some(Ok(_)) => distance.push(simulation.distance_from(&optimum)),
            }
            progress("run without noise");
        }
        let last = last_compared(&distance, period(method) as usize);
        let observed = Observed {
            per_iteration: mean_factor(&distance, 0, last),
            per_iteration_late: mean_factor(&distance, last / 2, last),
            distance,
            stopped,
        };
        Ok((observed, optimum))
    }
}

/// The last iteration that ends a period and is not at the solver's accuracy yet, as `2·k·period`: so that its half ends one
/// too, and steps of a kind are compared. In a run shorter than two periods, its last iteration.
fn last_compared(distance: &[f64], period: usize) -> usize {
    let Some(first) = distance.first() else {
        return 0;
    };
    let telling = |d: &&f64| d.is_finite() && **d > FLOOR * first;
    let last = distance
        .iter()
        .take_while(telling)
        .count()
        .saturating_sub(1);
    match last / (2 * period) {
        0 => last,
        pairs => pairs * 2 * period,
    }
}

fn mean_factor(distance: &[f64], from: usize, to: usize) -> Option<f64> {
    (to > from).then(|| (distance[to] / distance[from]).powf(1.0 / (to - from) as f64))
}

/// `η` and `γ`, if the theorem is about this algorithm.
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

/// Why an algorithm has no rate at the optimum, if so.
fn unrated(method: &Method) -> Option<&'static str> {
    const VARIES: &str = "its parameters vary, so that no two periods are the same map";
    let all = |schedules: &[Schedule]| schedules.iter().all(|s| constant(s).is_some());
    let steady = match method {
        Method::Admm { penalty } => all(&[*penalty]),
        Method::RecycledAdmm {
            penalty, damping, ..
        }
        | Method::Dlm { penalty, damping }
        | Method::RecycledDlm {
            penalty, damping, ..
        } => all(&[*penalty, *damping]),
        Method::MAdmm { penalty, .. } => all(penalty),
        Method::MRecycledAdmm {
            penalty, damping, ..
        } => all(penalty) && all(damping),
        Method::Dgd { .. } => {
            return Some("dgd comes to rest beside the optimum, or creeps up on it");
        }
        Method::Local { .. } | Method::Average { .. } => {
            return Some("it does not head for the optimum");
        }
    };
    (!steady).then_some(VARIES)
}

/// The same without recycled steps, and exactly minimised; nothing if the method is that already.
fn conventional(method: &Method) -> Option<Method> {
    match method {
        Method::RecycledAdmm { penalty, .. }
        | Method::Dlm { penalty, .. }
        | Method::RecycledDlm { penalty, .. } => Some(Method::Admm { penalty: *penalty }),
        Method::MRecycledAdmm {
            penalty, dual_step, ..
        } => Some(Method::MAdmm {
            penalty: penalty.clone(),
            dual_step: *dual_step,
        }),
        Method::Admm { .. }
        | Method::MAdmm { .. }
        | Method::Dgd { .. }
        | Method::Local { .. }
        | Method::Average { .. } => None,
    }
}

/// R-ADMM at another damping.
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

/// Iterations from one data step to the next.
fn period(method: &Method) -> u32 {
    match method {
        Method::RecycledAdmm { recycle, .. }
        | Method::MRecycledAdmm { recycle, .. }
        | Method::RecycledDlm { recycle, .. } => recycle + 1,
        Method::Admm { .. }
        | Method::MAdmm { .. }
        | Method::Dlm { .. }
        | Method::Dgd { .. }
        | Method::Local { .. }
        | Method::Average { .. } => 1,
    }
}

/// The value, if it is the same at all iterations.
fn constant(schedule: &Schedule) -> Option<f64> {
    match *schedule {
        Schedule::Constant(value) => Some(value),
        Schedule::Growth { start, growth } => (growth == 1.0).then_some(start),
        Schedule::Decay { start, power } => (power == 0.0).then_some(start),
    }
}

fn shape(topology: &Topology, nodes: usize) -> String {
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
    fn a_mean_factor_is_taken_over_whole_periods_above_the_solvers_accuracy() {
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
    fn a_schedule_that_never_changes_is_constant_however_it_is_written() {
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
