//! Comparison of any number of studies at equal total privacy on the same rows.

use radmm::graph::GraphError;
use radmm::privacy::{Bound, Guarantee, Mechanism, NoiseDistribution};
use radmm::sim::Snapshot;
use radmm_study::statement_text::Program;
use radmm_study::{Noise, Study};
use serde::Serialize;
use thiserror::Error;

use crate::baseline::{Baseline, Criterion};
use crate::candidate::{Candidate, CandidateResult};
use crate::centralised::CentralisedResult;
use crate::experiment::Experiment;
use crate::instantiate::RunError;
use crate::majority::MajorityClass;
use crate::prior_methods::PriorMethod;

/// Studies ready to be compared.
pub struct Comparison {
    candidates: Vec<Candidate>,
    total: Guarantee,
}

/// The result of a comparison.
#[derive(Serialize)]
pub struct ComparisonResult {
    /// The program that made it.
    pub program: Program,
    /// The common total; ε is infinite if no candidate has noise.
    #[serde(flatten)]
    pub total: Guarantee,
    /// The candidates that reach the total, in the order given; the baselines are last.
    #[serde(rename = "contenders")]
    pub candidates: Vec<CandidateResult>,
    /// The names of the candidates that no noise brings down to the total.
    #[serde(rename = "too_dear")]
    pub unattainable: Vec<String>,
    /// The optimum of the first study without noise.
    pub centralised: Option<CentralisedResult>,
    /// The majority class of the training rows.
    pub majority: MajorityClass,
}

/// The reason why studies cannot be compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// Studies differ in their rows. Such differences would be taken for differences between algorithms.
    #[error(
        "{study}: {section} differs from {first}’s; studies are compared on the same rows, split in the same way"
    )]
    DifferentData {
        /// The study that differs.
        study: String,
        /// The section in which it differs.
        section: &'static str,
        /// The study that it differs from.
        first: String,
    },
    /// A study's topology is invalid.
    #[error("{study}: [network] {cause}")]
    Graph {
        /// The study.
        study: String,
        /// The cause.
        cause: GraphError,
    },
    /// A prior method cannot be made from a study.
    #[error(
        "{prior_method} cannot be made from {study}: it takes over the penalty and the distribution of the noise, and {study} \
         lacks one of them; give it as a study of its own"
    )]
    NoPriorMethod {
        /// The method's name on the command line.
        prior_method: &'static str,
        /// The first study.
        study: String,
    },
    /// The first study with noise has no finite total.
    #[error(
        "{study} has no finite total to be equal to at this δ: give one with --epsilon (Gaussian noise needs δ > 0; the paper’s bound does not cover every query)"
    )]
    NoFiniteTotal {
        /// The first study that has noise.
        study: String,
    },
}

/// The candidates other than the first study, and the common settings.
pub struct ComparisonOptions<'a> {
    /// Other studies, on the rows of the first.
    pub others: Vec<Study>,
    /// Prior methods, made from the first study.
    pub prior_methods: &'a [PriorMethod],
    /// The total ε; by default that of the first study that has noise.
    pub epsilon: Option<f64>,
    /// δ; by default the largest of the studies'.
    pub delta: Option<f64>,
    /// The number of runs of each candidate; by default that of the first study.
    pub repetitions: Option<u32>,
}

impl Comparison {
    /// Calibrates the noise of all candidates. A study's own noise gives its kind; its scale is chosen so that every party
    /// of every candidate spends the same total. A study without noise stays without.
    pub fn new(first: Experiment, options: ComparisonOptions<'_>) -> Result<Self, CompareError> {
        let base = first.study().clone();
        let mut studies = vec![base.clone()];
        for study in options.others {
            same_rows(&base, &study)?;
            studies.push(study);
        }
        let mut prior_methods = options.prior_methods.to_vec();
        prior_methods.dedup();
        for prior in &prior_methods {
            let study = prior.study_from(&base);
            studies.push(study.ok_or_else(|| CompareError::NoPriorMethod {
                prior_method: prior.name(),
                study: base.name.clone(),
            })?);
        }
        let largest = studies
            .iter()
            .map(|study| study.privacy.delta)
            .fold(0.0, f64::max);
        let delta = options.delta.unwrap_or(largest);
        let mut experiments = Vec::new();
        for mut study in studies {
            study.privacy.delta = delta;
            // One bound for all, where it applies: the paper's is for gamma noise in the objective.
            study.privacy.bound = match study.privacy.noise.template() {
                Mechanism::Objective {
                    law: NoiseDistribution::Gamma { .. },
                    ..
                } => base.privacy.bound,
                _ => Bound::Tight,
            };
            study.run.repetitions = options.repetitions.unwrap_or(base.run.repetitions);
            let name = study.name.clone();
            let on_rows = first.on_same_rows(study);
            experiments.push(on_rows.map_err(|cause| CompareError::Graph { study: name, cause })?);
        }
        let total = Guarantee {
            epsilon: common_epsilon(&experiments, options.epsilon)?,
            delta,
        };
        let names = unique(experiments.iter().map(|other| other.study().name.clone()));
        let candidates = names
            .into_iter()
            .zip(experiments)
            .map(
                |(name, experiment)| match experiment.study().privacy.noise.template() {
                    Mechanism::None => Candidate::with_own_noise(&name, experiment),
                    _ => Candidate::at_total(&name, experiment, total),
                },
            )
            .collect();
        Ok(Self { candidates, total })
    }

    /// Returns the common total.
    pub fn total(&self) -> Guarantee {
        self.total
    }

    /// Returns the candidates without the baselines.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Returns the study whose noise the baselines have: the first one that has some.
    fn baseline_study(&self) -> &Experiment {
        let mut all = self.candidates.iter().map(|one| &one.experiment);
        all.find(noisy).unwrap_or(&self.candidates[0].experiment)
    }

    /// Returns an upper bound on the number of calls of `progress`.
    pub fn progress_steps(&self) -> u64 {
        let first = self.baseline_study();
        let own: u64 = self.candidates.iter().map(Candidate::progress_steps).sum();
        own + Baseline::progress_steps(&Baseline::all(first), first)
    }

    /// Runs the candidates and the baselines one after the other, each on all threads of the current pool.
    pub fn run(&self, progress: &(dyn Fn(&Snapshot) + Sync)) -> Result<ComparisonResult, RunError> {
        let first = self.baseline_study();
        let mut result = ComparisonResult {
            program: Program::THIS,
            total: self.total,
            candidates: Vec::new(),
            unattainable: Vec::new(),
            centralised: None,
            majority: MajorityClass::of(first.table()),
        };
        let totals = vec![self.total; first.graph().len()];
        let mut add = |candidate: &Candidate| -> Result<(), RunError> {
            match candidate.measure(progress)? {
                Some(measured) => result.candidates.push(measured),
                None => result.unattainable.push(candidate.name.clone()),
            }
            Ok(())
        };
        self.candidates.iter().try_for_each(&mut add)?;
        let baselines = Baseline::all(first);
        Baseline::candidates(&baselines, first, &totals, Criterion::Accuracy, progress)?
            .iter()
            .try_for_each(add)?;
        result.centralised = first.centralised()?;
        Ok(result)
    }
}

/// Returns the common total ε: as given, or that of the first study with noise.
fn common_epsilon(experiments: &[Experiment], given: Option<f64>) -> Result<f64, CompareError> {
    let Some(first) = experiments.iter().find(noisy) else {
        // Without any noise there is no privacy to be equal in.
        return Ok(f64::INFINITY);
    };
    let study = first.study();
    let own = || match study.privacy.noise {
        Noise::Total(total) => Some(total.epsilon),
        Noise::Given(_) => {
            let noise = first.noise().ok()?;
            let totals = first.cumulative_epsilon(&noise, study.privacy.bound)?;
            totals.last().copied()
        }
    };
    let finite = |epsilon: &f64| epsilon.is_finite() && *epsilon > 0.0;
    let no_total = || CompareError::NoFiniteTotal {
        study: study.name.clone(),
    };
    match given {
        Some(epsilon) => Ok(epsilon),
        None => own().filter(finite).ok_or_else(no_total),
    }
}

fn noisy(one: &&Experiment) -> bool {
    one.study().privacy.noise != Noise::Given(Mechanism::None)
}

/// Checks that two studies are about the same rows, split in the same way.
fn same_rows(first: &Study, other: &Study) -> Result<(), CompareError> {
    let (a, b) = (&first.data, &other.data);
    let sections = [
        (a.source == b.source, "where [data] finds its rows"),
        (a.schema == b.schema, "[data]"),
        (a.split == b.split, "[data.split]"),
        (a.test == b.test, "[data.test]"),
        (first.problem.loss == other.problem.loss, "[problem] loss"),
        (
            first.network.nodes == other.network.nodes,
            "[network] nodes",
        ),
    ];
    match sections.into_iter().find(|(same, _)| !same) {
        None => Ok(()),
        Some((_, section)) => Err(CompareError::DifferentData {
            study: other.name.clone(),
            section,
            first: first.name.clone(),
        }),
    }
}

/// Returns the same names, with a number where a name occurs again.
pub(crate) fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for name in names {
        let mut free = name.clone();
        let mut number = 1;
        while taken.contains(&free) {
            number += 1;
            free = format!("{name} ({number})");
        }
        taken.push(free);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_names_get_a_number() {
        let names = ["a", "b", "a", "a"].map(str::to_owned);
        assert_eq!(unique(names.into_iter()), ["a", "b", "a (2)", "a (3)"]);
    }
}
