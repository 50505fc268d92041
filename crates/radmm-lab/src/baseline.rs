//! What a user would otherwise do, at its best: training alone and averaging once, at equal privacy.
//!
//! One noisy answer needs more ridge than the common objective has, how much depends on the noise and on the rows. So both are
//! tried with several ridges, and the best in the measure that is shown is taken. Whoever really trains alone cannot choose with that
//! hindsight: the comparison is in the baselines' favour.

use radmm::account::{Bound, Guarantee};
use radmm::private::Mechanism;
use radmm::public::graph::Graph;
use radmm::sim::Snapshot;
use radmm_study::equal;
use radmm_study::{Method, Noise, Study};

use crate::assemble::RunError;
use crate::contender::Contender;
use crate::experiment::Experiment;
use crate::outcome::Beside;

/// Ridges that are tried, as shares of `C`, the weight of the loss.
const RIDGES: [f64; 8] = [0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1];

/// More rounds of gossip than this are not worth the wait.
const ROUNDS: u32 = 500;

/// By what the best ridge is told: by what is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Criterion {
    /// The share of everybody's rows that is classified rightly.
    Accuracy,
    /// The paper's `L(T)`.
    Loss,
}

/// What a user would otherwise do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Baseline {
    /// Training alone.
    Alone,
    /// Averaging once.
    Averaged,
}

impl Baseline {
    /// Both, unless the study itself is one of them, or has noise and no total: then there is nothing to be equal in.
    pub(crate) fn all(experiment: &Experiment) -> Vec<Self> {
        let Study {
            algorithm, privacy, ..
        } = experiment.study();
        let noisy = !matches!(privacy.noise.like(), Mechanism::None);
        if noisy && privacy.unprotected().is_some() {
            return Vec::new();
        }
        let mut all = vec![Self::Alone, Self::Averaged];
        all.retain(|baseline| baseline.method(0.0).name() != algorithm.method.name());
        all
    }

    /// In tables and legends.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Alone => "each party alone",
            Self::Averaged => "averaged once",
        }
    }

    /// The one that asks by this method, as in study files.
    pub(crate) fn of_method(name: &str) -> Self {
        match name {
            "local" => Self::Alone,
            _ => Self::Averaged,
        }
    }

    fn method(self, extra_ridge: f64) -> Method {
        match self {
            Self::Alone => Method::Local { extra_ridge },
            Self::Averaged => Method::Average { extra_ridge },
        }
    }

    /// How often `progress` will be called, at most.
    pub(crate) fn steps(self, beside: &Experiment) -> u64 {
        let chosen = beside.with(self.study(beside, 0.0));
        let tried = match ridges(beside).len() {
            1 => 0,
            many => many as u64,
        };
        let once = u64::from(chosen.study().algorithm.iterations) + 1;
        chosen.own_steps() + tried * once
    }

    /// With the ridge that is best in the first repetition, each party spending its total.
    pub(crate) fn contender(
        self,
        beside: &Experiment,
        totals: &[Guarantee],
        criterion: Criterion,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Contender, RunError> {
        let ridges = ridges(beside);
        let mut best = (f64::INFINITY, ridges[0]);
        if ridges.len() > 1 {
            for &ridge in &ridges {
                let mut study = self.study(beside, ridge);
                study.run.repetitions = 1;
                let tried = beside.with(study);
                let Some(noise) = tried.noise_for(totals) else {
                    continue;
                };
                let end = tried.ends(&noise, progress)?[0];
                let badness = match criterion {
                    Criterion::Accuracy => -end.everywhere.accuracy,
                    Criterion::Loss => end.last.loss,
                };
                if badness < best.0 {
                    best = (badness, ridge);
                }
            }
        }
        let experiment = beside.with(self.study(beside, best.1));
        Ok(Contender {
            name: self.title().to_owned(),
            noise: experiment.noise_for(totals),
            experiment,
        })
    }

    /// The same, run.
    pub(crate) fn beside(
        self,
        beside: &Experiment,
        totals: &[Guarantee],
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Beside, RunError> {
        let contender = self.contender(beside, totals, Criterion::Accuracy, progress)?;
        let method = &contender.experiment.study().algorithm.method;
        let ends = match &contender.noise {
            None => Vec::new(),
            Some(noise) => contender.experiment.ends(noise, progress)?,
        };
        Ok(Beside {
            name: method.name(),
            extra_ridge: extra_ridge(method).unwrap_or(0.0),
            ends,
        })
    }

    /// Priced by our bound: the paper's may not cover a question without a penalty.
    fn study(self, beside: &Experiment, extra_ridge: f64) -> Study {
        let mut study = beside.study().clone();
        study.name = self.title().to_owned();
        study.algorithm.method = self.method(extra_ridge);
        study.algorithm.iterations = match self {
            Self::Alone => 1,
            Self::Averaged => 1 + gossip(beside.graph()),
        };
        let one_answer = equal::for_one_answer(&study.privacy.noise.like());
        study.privacy.noise = Noise::Given(one_answer);
        study.privacy.bound = Bound::Tight;
        study
    }
}

/// Rounds of gossip after which the models differ by a thousandth of what they did: asking costs privacy, gossip does not, so
/// averaging is not cut short. On graphs where that takes more than [`ROUNDS`], so many.
pub(crate) fn gossip(graph: &Graph) -> u32 {
    let count = graph.len() as f64;
    // A slope and a wave: every way of differing that is slow to level out has its share in them.
    let mut values: Vec<f64> = (0..graph.len())
        .map(|i| i as f64 / count + (1.7 * i as f64).cos())
        .collect();
    let mean = values.iter().sum::<f64>() / count;
    values.iter_mut().for_each(|value| *value -= mean);
    let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
    let start = norm(&values);
    let weights: Vec<Vec<f64>> = graph.nodes().map(|id| graph.metropolis(id)).collect();
    for round in 0..ROUNDS {
        if norm(&values) <= 1e-3 * start {
            return round;
        }
        let mixed = graph.nodes().map(|id| {
            let i = id.0 as usize;
            let neighbours = graph.neighbours(id).iter().zip(&weights[i]);
            let change = neighbours.map(|(j, weight)| weight * (values[j.0 as usize] - values[i]));
            values[i] + change.sum::<f64>()
        });
        values = mixed.collect();
    }
    ROUNDS
}

/// Without noise there is nothing that more ridge could help against.
fn ridges(beside: &Experiment) -> Vec<f64> {
    let study = beside.study();
    match study.privacy.noise.like() {
        Mechanism::None => vec![0.0],
        _ => RIDGES.map(|share| share * study.problem.weight).into(),
    }
}

/// What a baseline adds to the common ridge.
pub(crate) fn extra_ridge(method: &Method) -> Option<f64> {
    match method {
        Method::Local { extra_ridge } | Method::Average { extra_ridge } => Some(*extra_ridge),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radmm::public::graph::Topology;

    #[test]
    fn gossip_goes_on_until_models_agree() {
        // A ring of five contracts by 1/3 + 2/3·cos 72° = 0.539 a round: 0.539¹¹ = 0.0011.
        let ring = Graph::new(&Topology::Ring, 5).unwrap();
        assert!((10..=13).contains(&gossip(&ring)), "{}", gossip(&ring));
        // A path of ten by 1/3 + 2/3·cos 18° = 0.967.
        let path = Graph::new(&Topology::Path, 10).unwrap();
        assert!((150..=220).contains(&gossip(&path)), "{}", gossip(&path));
        let long = Graph::new(&Topology::Path, 100).unwrap();
        assert_eq!(gossip(&long), ROUNDS);
        let all = Graph::new(&Topology::Complete, 4).unwrap();
        assert!(gossip(&all) <= 2);
    }
}
