//! The baselines of a study at equal privacy: every party trains alone, or models are averaged once.
//!
//! One noisy answer needs more ridge than the common objective has; how much depends on the noise and on the rows. So several
//! ridges are tried, and the best one is taken: by the measure that is shown, in the mean over all repetitions. A party that
//! trains alone cannot choose with that hindsight: the comparison is in the baselines' favour.

use radmm::graph::NodeId;
use radmm::privacy::{Bound, Guarantee, Mechanism};
use radmm::sim::Snapshot;
use radmm_study::instantiate::Instance;
use radmm_study::pricing::calibrate;
use radmm_study::{Method, Noise, Study};

use crate::candidate::Candidate;
use crate::experiment::Experiment;
use crate::instantiate::RunError;
use crate::outcome::{BaselineRun, FinalState};
use crate::stats::SampleStats;

/// The ridges that are tried, as shares of `C`, the weight of the loss.
const RIDGES: [f64; 8] = [0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1];

/// The largest number of gossip rounds. More are not worth the wait.
const MAX_GOSSIP_ROUNDS: u32 = 500;

/// The measure by which the best ridge is chosen: the one that is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Criterion {
    /// The share of everybody's rows classified correctly.
    Accuracy,
    /// The paper's `L(T)`.
    Loss,
}

impl Criterion {
    /// Returns the mean over the repetitions, the less the better.
    fn badness(self, ends: &[FinalState]) -> f64 {
        let mean = |of: fn(&FinalState) -> f64| SampleStats::of(ends.iter().map(of)).mean;
        match self {
            Self::Accuracy => -mean(|end| end.everywhere.accuracy),
            Self::Loss => mean(|end| end.last.loss),
        }
    }
}

/// An alternative to iterating together, in which every party answers one query.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// Every party trains alone.
    Alone,
    /// Every party trains alone, then the models are averaged.
    Averaged,
}

impl Baseline {
    /// Returns the baselines of a study: both, unless the study itself is one of them. A study with noise and without a finite
    /// total has none, because there is no total for baselines to match.
    pub fn all(experiment: &Experiment) -> Vec<Self> {
        let Study {
            algorithm, privacy, ..
        } = experiment.study();
        let noisy = !matches!(privacy.noise.template(), Mechanism::None);
        if noisy && privacy.unprotected().is_some() {
            return Vec::new();
        }
        let mut all = vec![Self::Alone, Self::Averaged];
        all.retain(|baseline| baseline.method(0.0).name() != algorithm.method.name());
        all
    }

    /// Returns the name in tables and legends.
    pub fn title(self) -> &'static str {
        match self {
            Self::Alone => "each party alone",
            Self::Averaged => "averaged once",
        }
    }

    /// Returns the baseline whose method has this name in study files.
    pub(crate) fn from_method_name(name: &str) -> Self {
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

    /// Returns an upper bound on the number of calls of `progress`.
    pub fn progress_steps(self, base: &Experiment) -> u64 {
        let one = base.on_same_network(self.study(base, 0.0));
        let tried = ridges(base).len() as u64;
        // The chosen one runs again where every iteration is wanted.
        (tried + 1) * one.repeat_progress_steps()
    }

    /// Returns the baseline with the ridge that is best in the mean over all repetitions, where each party spends its total.
    pub fn candidate(
        self,
        base: &Experiment,
        totals: &[Guarantee],
        criterion: Criterion,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Candidate, RunError> {
        let ridge = match ridges(base).as_slice() {
            [only] => *only,
            _ => self.best(base, totals, criterion, progress)?.0,
        };
        let experiment = base.on_same_network(self.study(base, ridge));
        Ok(Candidate {
            name: self.title().to_owned(),
            noise: experiment.noise_for(totals),
            experiment,
        })
    }

    /// Runs the baseline with the ridge that is most accurate in the mean over all repetitions.
    pub(crate) fn run(
        self,
        base: &Experiment,
        totals: &[Guarantee],
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<BaselineRun, RunError> {
        let (extra_ridge, final_states) = self.best(base, totals, Criterion::Accuracy, progress)?;
        Ok(BaselineRun {
            name: self.method(extra_ridge).name(),
            extra_ridge,
            final_states,
        })
    }

    /// Returns the best ridge and the final states of all repetitions with it; the states are empty if no noise reaches the
    /// totals.
    fn best(
        self,
        base: &Experiment,
        totals: &[Guarantee],
        criterion: Criterion,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<(f64, Vec<FinalState>), RunError> {
        let ridges = ridges(base);
        let mut best = (ridges[0], Vec::new());
        let mut least = f64::INFINITY;
        for ridge in ridges {
            let tried = base.on_same_network(self.study(base, ridge));
            let Some(noise) = tried.noise_for(totals) else {
                continue;
            };
            let ends = tried.final_states(&noise, progress)?;
            let badness = criterion.badness(&ends);
            if badness < least {
                least = badness;
                best = (ridge, ends);
            }
        }
        Ok(best)
    }

    /// Returns the study of this baseline, priced by our bound: the paper's may not cover a query without a penalty.
    fn study(self, base: &Experiment, extra_ridge: f64) -> Study {
        let mut study = base.study().clone();
        study.name = self.title().to_owned();
        study.algorithm.method = self.method(extra_ridge);
        study.algorithm.iterations = match self {
            Self::Alone => 1,
            Self::Averaged => 1 + gossip_rounds(&base.instance()),
        };
        let one_answer = calibrate::for_one_answer(&study.privacy.noise.template());
        study.privacy.noise = Noise::Given(one_answer);
        study.privacy.bound = Bound::Tight;
        study
    }
}

/// Returns the number of gossip rounds after which the models differ by a thousandth of what they did. Where rows count alike,
/// the first round multiplies them by the parties' shares, which gossip has to even out too.
///
/// A query costs privacy and gossip does not, so averaging is not cut short. On graphs where it would take more than 500
/// rounds, 500 are made.
pub fn gossip_rounds(instance: &Instance<'_>) -> u32 {
    let graph = instance.graph;
    let count = graph.len() as f64;
    let centred = |mut values: Vec<f64>| {
        let mean = values.iter().sum::<f64>() / count;
        values.iter_mut().for_each(|value| *value -= mean);
        values
    };
    // A slope and a wave: every slowly decaying mode of disagreement has a part in them.
    let model = |i: usize| i as f64 / count + libm::cos(1.7 * i as f64);
    let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
    let start = norm(&centred((0..graph.len()).map(model).collect()));
    // Models of norm one that differ as above, times the shares, less one.
    let weighed = |id: NodeId| {
        let share = instance.share(id);
        share * model(id.0 as usize) + (share - 1.0)
    };
    let mut values = centred(graph.nodes().map(weighed).collect());
    let weights: Vec<Vec<f64>> = graph.nodes().map(|id| graph.metropolis(id)).collect();
    for round in 0..MAX_GOSSIP_ROUNDS {
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
    MAX_GOSSIP_ROUNDS
}

/// Returns the ridges to be tried. Without noise there is nothing that more ridge could help against.
fn ridges(base: &Experiment) -> Vec<f64> {
    let study = base.study();
    match study.privacy.noise.template() {
        Mechanism::None => vec![0.0],
        _ => RIDGES.map(|share| share * study.problem.weight).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radmm::graph::{Graph, Topology};

    #[test]
    fn gossip_continues_until_models_agree() {
        // A ring of five contracts by 1/3 + 2/3·cos 72° = 0.539 a round: 0.539¹¹ = 0.0011.
        let ring = rounds(Topology::Ring, &[9; 5]);
        assert!((10..=13).contains(&ring), "{ring}");
        // A path of ten by 1/3 + 2/3·cos 18° = 0.967.
        let path = rounds(Topology::Path, &[9; 10]);
        assert!((150..=220).contains(&path), "{path}");
        let long = rounds(Topology::Path, &[9; 100]);
        assert_eq!(long, MAX_GOSSIP_ROUNDS);
        assert!(rounds(Topology::Complete, &[9; 4]) <= 2);
    }

    #[test]
    fn unequal_parties_gossip_longer_and_to_the_same_accuracy() {
        let equal = rounds(Topology::Ring, &[9; 5]);
        let unequal = rounds(Topology::Ring, &[5582, 7872, 5799, 1066, 9843]);
        assert!((equal..=equal + 3).contains(&unequal), "{unequal}");
    }

    fn rounds(topology: Topology, rows: &[usize]) -> u32 {
        let graph = Graph::new(&topology, rows.len()).unwrap();
        let (mut study, _) = Study::parse(STUDY, "study.toml").unwrap();
        study.network.nodes = rows.len() as u32;
        gossip_rounds(&Instance::new(&study, &graph, rows.to_vec()))
    }

    const STUDY: &str = r#"
        [data]
        builtin = "clinic"
        [network]
        nodes = 5
        topology = "ring"
        [problem]
        weight = 1
        ridge = 1
        [algorithm]
        name = "average"
        iterations = 1
    "#;
}
