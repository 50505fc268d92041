//! The baselines of a study at equal privacy: every party trains alone, or models are averaged once.
//!
//! One noisy answer needs more ridge than the common objective has; how much depends on the noise and on the rows. So several
//! ridges are tried, and the best one is taken: by the measure that is shown, in the mean over all repetitions. A party that
//! trains alone cannot choose with that hindsight: the comparison is in the baselines' favour.
//!
//! Too much ridge hides the rows and too little lets the noise through, so the measure first improves and then worsens as the
//! ridge shrinks. Ridges are tried from the largest to none, until two in a row are worse than the best one before them: at a
//! flat top one may be so by chance. What is left out are the smallest ridges, where the noise is farthest from the rows and
//! minimisers take longest to find.
//!
//! Both baselines ask the same question under the same noise, and averaging goes on where training alone ends. So a run of
//! averaging is measured after its first iteration too, and serves both.

use std::sync::atomic::{AtomicU64, Ordering};

use radmm::graph::NodeId;
use radmm::privacy::{Bound, Guarantee, Mechanism};
use radmm::sim::Snapshot;
use radmm_study::instantiate::Instance;
use radmm_study::pricing::calibrate;
use radmm_study::{Method, Noise, Study};

use crate::candidate::Candidate;
use crate::experiment::{Experiment, repeat_progress_steps};
use crate::instantiate::RunError;
use crate::outcome::{BaselineRun, FinalState};
use crate::stats::SampleStats;

/// The ridges to try, as shares of `C`, the weight of the loss, in this order.
const RIDGES: [f64; 8] = [1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 0.0];

/// The number of ridges in a row that are worse than the best one, after which no further ones are tried.
const MAX_WORSE: usize = 2;

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

    /// Returns an upper bound on the number of calls of `progress` for these baselines of a study.
    pub fn progress_steps(all: &[Self], base: &Experiment) -> u64 {
        let studies: Vec<Study> = all.iter().map(|baseline| baseline.study(base)).collect();
        // The chosen ones run again where every iteration is wanted.
        let again: u64 = studies.iter().map(repeat_progress_steps).sum();
        RidgeSearch::progress_steps(&studies, base) + again
    }

    /// Returns these baselines, each with the ridge that is best in the mean over all repetitions, where each party spends its
    /// total.
    pub fn candidates(
        all: &[Self],
        base: &Experiment,
        totals: &[Guarantee],
        criterion: Criterion,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Vec<Candidate>, RunError> {
        let found = match ridges(base).as_slice() {
            [only] => vec![*only; all.len()],
            _ => {
                let found = RidgeSearch::run(all, base, totals, criterion, progress)?;
                found.iter().map(|search| search.best_ridge).collect()
            }
        };
        let candidate = |(baseline, ridge): (&Self, f64)| {
            let study = baseline.with_ridge(baseline.study(base), ridge);
            let experiment = base.on_same_network(study);
            Candidate {
                name: baseline.title().to_owned(),
                noise: experiment.noise_for(totals),
                experiment,
            }
        };
        Ok(all.iter().zip(found).map(candidate).collect())
    }

    /// Runs these baselines, each with the ridge that is most accurate in the mean over all repetitions.
    pub(crate) fn run(
        all: &[Self],
        base: &Experiment,
        totals: &[Guarantee],
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Vec<BaselineRun>, RunError> {
        let found = RidgeSearch::run(all, base, totals, Criterion::Accuracy, progress)?;
        let run = |search: RidgeSearch| BaselineRun {
            name: search.baseline.method(search.best_ridge).name(),
            extra_ridge: search.best_ridge,
            final_states: search.final_states,
        };
        Ok(found.into_iter().map(run).collect())
    }

    /// Returns the study of this baseline without extra ridge, priced by our bound: the paper's may not cover a query without a
    /// penalty.
    fn study(self, base: &Experiment) -> Study {
        let mut study = base.study().clone();
        study.name = self.title().to_owned();
        study.algorithm.method = self.method(0.0);
        study.algorithm.iterations = match self {
            Self::Alone => 1,
            Self::Averaged => 1 + gossip_rounds(&base.instance()),
        };
        let one_answer = calibrate::for_one_answer(&study.privacy.noise.template());
        study.privacy.noise = Noise::Given(one_answer);
        study.privacy.bound = Bound::Tight;
        study
    }

    /// Returns the study of this baseline with some extra ridge.
    fn with_ridge(self, mut study: Study, extra_ridge: f64) -> Study {
        study.algorithm.method = self.method(extra_ridge);
        study
    }
}

/// The search for the ridge at which a baseline is best.
struct RidgeSearch {
    baseline: Baseline,
    best_ridge: f64,
    /// The final states of all repetitions with that ridge; empty if no noise reaches the totals.
    final_states: Vec<FinalState>,
    least_badness: f64,
    /// The number of ridges that were worse since.
    worse: usize,
}

impl RidgeSearch {
    fn new(baseline: Baseline) -> Self {
        Self {
            baseline,
            best_ridge: 0.0,
            final_states: Vec::new(),
            least_badness: f64::INFINITY,
            worse: 0,
        }
    }

    /// Returns whether further ridges are unlikely to be better.
    fn is_over(&self) -> bool {
        self.worse >= MAX_WORSE
    }

    /// Returns the number of calls of `progress` by [`run`](Self::run): all baselines share the runs of the longest one.
    fn progress_steps(studies: &[Study], base: &Experiment) -> u64 {
        let shared = studies.iter().map(repeat_progress_steps).max();
        ridges(base).len() as u64 * shared.unwrap_or(0)
    }

    /// Searches for the best ridges of baselines that share their runs. A search that ends early calls `progress` for what it
    /// leaves out too, unless nothing was run.
    fn run(
        all: &[Baseline],
        base: &Experiment,
        totals: &[Guarantee],
        criterion: Criterion,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Vec<Self>, RunError> {
        let mut searches: Vec<Self> = all.iter().copied().map(Self::new).collect();
        let studies: Vec<Study> = all.iter().map(|baseline| baseline.study(base)).collect();
        let made = AtomicU64::new(0);
        let counted = |snapshot: &Snapshot| {
            made.fetch_add(1, Ordering::Relaxed);
            progress(snapshot);
        };
        for ridge in ridges(base) {
            let mut going: Vec<(&mut Self, &Study)> = searches
                .iter_mut()
                .zip(&studies)
                .filter(|(search, _)| !search.is_over())
                .collect();
            // Averaging comes last, and its runs begin with those of parties alone.
            let Some((last, study)) = going.last() else {
                break;
            };
            let tried = base.on_same_network(last.baseline.with_ridge((*study).clone(), ridge));
            // A smaller ridge makes an answer more expensive.
            let Some(noise) = tried.noise_for(totals) else {
                break;
            };
            match &mut going[..] {
                [(alone, _), (averaged, _)] => {
                    let states = tried.states_after_answer_and_at_end(&noise, &counted)?;
                    let (after_answer, at_end) = states.into_iter().unzip();
                    alone.add(ridge, after_answer, criterion);
                    averaged.add(ridge, at_end, criterion);
                }
                one => {
                    let states = tried.final_states(&noise, &counted)?;
                    one.iter_mut()
                        .for_each(|(search, _)| search.add(ridge, states.clone(), criterion));
                }
            }
        }
        let mut last = searches
            .iter()
            .filter_map(|found| found.final_states.last());
        if let Some(state) = last.next() {
            let left_out = made.into_inner()..Self::progress_steps(&studies, base);
            left_out.for_each(|_| progress(&state.last));
        }
        Ok(searches)
    }

    /// Takes a ridge over if it is no worse than the best one, which is larger.
    fn add(&mut self, ridge: f64, final_states: Vec<FinalState>, criterion: Criterion) {
        let badness = criterion.badness(&final_states);
        if badness <= self.least_badness {
            (self.best_ridge, self.least_badness, self.worse) = (ridge, badness, 0);
            self.final_states = final_states;
        } else {
            self.worse += 1;
        }
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
    use radmm::node::StepKind;
    use radmm::sim::GlobalFit;

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

    #[test]
    fn a_search_ends_after_two_ridges_in_a_row_that_are_worse() {
        // From the largest ridge on: a dip, a tie of two, and a better one that is not tried any more.
        let accuracies = [0.70, 0.69, 0.75, 0.74, 0.75, 0.74, 0.73, 0.80];
        let mut search = RidgeSearch::new(Baseline::Alone);
        let mut tried = 0;
        for (ridge, accuracy) in RIDGES.into_iter().zip(accuracies) {
            if search.is_over() {
                break;
            }
            search.add(ridge, vec![final_state(accuracy)], Criterion::Accuracy);
            tried += 1;
        }
        assert_eq!((tried, search.best_ridge), (7, RIDGES[4]));
        assert_eq!(search.final_states, [final_state(0.75)]);
    }

    fn final_state(accuracy: f64) -> FinalState {
        let fit = GlobalFit {
            loss: 0.5,
            accuracy,
        };
        FinalState {
            last: Snapshot {
                iteration: 1,
                kind: StepKind::Data,
                loss: 0.5,
                accuracy,
                objective: 1.0,
                consensus: 0.0,
                mean_model: Some(fit),
                spent: Guarantee::network([]),
            },
            total: Guarantee::network([]),
            everywhere: fit,
            held_out: None,
        }
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
