//! Any number of studies at equal total privacy on the same rows.

use radmm::account::{Bound, Guarantee};
use radmm::private::{Law, Mechanism};
use radmm::public::graph::GraphError;
use radmm::sim::{Optimum, Snapshot};
use radmm_study::words::Program;
use radmm_study::{Noise, Study};
use serde::Serialize;
use thiserror::Error;

use crate::assemble::RunError;
use crate::baseline::{Baseline, Criterion};
use crate::contender::{Contender, HeldOut, Measured};
use crate::experiment::Experiment;
use crate::rival::Rival;
use crate::spread::Spread;

/// Studies ready to be compared.
pub struct Comparison {
    contenders: Vec<Contender>,
    total: Guarantee,
}

/// What came out.
#[derive(Serialize)]
pub struct Compared {
    /// What made it.
    pub program: Program,
    /// What everyone may spend: ε is infinite if nobody has noise.
    #[serde(flatten)]
    pub total: Guarantee,
    /// Everyone who could be had at this total, in the order given; the baselines are last.
    pub contenders: Vec<Measured>,
    /// Who could not: no noise brings their cost down to the total.
    pub too_dear: Vec<String>,
    /// One party with all rows and no noise.
    pub pooled: Option<Pooled>,
}

/// One party with all rows and no noise.
#[derive(Clone, Debug, Serialize)]
pub struct Pooled {
    /// The mean loss on the training rows.
    pub loss: f64,
    /// The share of them classified rightly.
    pub accuracy: f64,
    /// On rows that nobody trained on, if there are any.
    pub held_out: Option<HeldOut>,
}

/// Why studies cannot be compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// Differences in the rows would be taken for differences between algorithms.
    #[error(
        "{study}: {section} differs from {first}’s; studies are compared on the same rows, dealt out in the same way"
    )]
    OtherRows {
        /// The study that differs.
        study: String,
        /// Where.
        section: &'static str,
        /// What it differs from.
        first: String,
    },
    /// A study's network is none.
    #[error("{study}: [network] {cause}")]
    Graph {
        /// Which study.
        study: String,
        /// Why.
        cause: GraphError,
    },
    /// A rival is made from a study that lacks what it needs.
    #[error(
        "{rival} cannot be made from {study}: it takes over the penalty and the noise’s law, and {study} lacks one of them; \
         give it as a study of its own"
    )]
    NoRival {
        /// As typed.
        rival: &'static str,
        /// The first study.
        study: String,
    },
    /// There is nothing to be equal to.
    #[error(
        "{study} has no finite total to be equal to at this δ: give one with --epsilon (Gaussian noise needs δ > 0; the paper’s bound does not cover every question)"
    )]
    NoTotal {
        /// The first study that has noise.
        study: String,
    },
}

/// What to compare.
pub struct Wanted<'a> {
    /// By name, on the rows of the first.
    pub others: Vec<Study>,
    /// Made from the first study.
    pub rivals: &'a [Rival],
    /// The total ε; without, what the first study that has noise spends.
    pub epsilon: Option<f64>,
    /// δ; without, the largest of the studies'.
    pub delta: Option<f64>,
    /// How often everyone is run; without, as the first study says.
    pub repetitions: Option<u32>,
}

impl Comparison {
    /// Finds everyone's noise. The studies' own noise gives its kind; its scale is found, so that every party of every
    /// contender spends the same total. A study without noise stays without.
    pub fn new(first: Experiment, wanted: Wanted<'_>) -> Result<Self, CompareError> {
        let leader = first.study().clone();
        let mut studies = vec![leader.clone()];
        for study in wanted.others {
            same_rows(&leader, &study)?;
            studies.push(study);
        }
        let mut rivals = wanted.rivals.to_vec();
        rivals.dedup();
        for rival in &rivals {
            studies.push(rival.of(&leader).ok_or_else(|| CompareError::NoRival {
                rival: rival.name(),
                study: leader.name.clone(),
            })?);
        }
        let largest = studies
            .iter()
            .map(|study| study.privacy.delta)
            .fold(0.0, f64::max);
        let delta = wanted.delta.unwrap_or(largest);
        let mut experiments = Vec::new();
        for mut study in studies {
            study.privacy.delta = delta;
            // One bound for all, where it applies: the paper's is for gamma noise in the objective.
            study.privacy.bound = match study.privacy.noise.like() {
                Mechanism::Objective {
                    law: Law::Gamma { .. },
                    ..
                } => leader.privacy.bound,
                _ => Bound::Tight,
            };
            study.run.repetitions = wanted.repetitions.unwrap_or(leader.run.repetitions);
            let name = study.name.clone();
            let on_rows = first.on_same_rows(study);
            experiments.push(on_rows.map_err(|cause| CompareError::Graph { study: name, cause })?);
        }
        let total = Guarantee {
            epsilon: match (experiments.iter().find(noisy), wanted.epsilon) {
                // Nobody has noise: there is no privacy to be equal in.
                (None, _) => f64::INFINITY,
                (Some(_), Some(epsilon)) => epsilon,
                (Some(first), None) => {
                    let study = first.study();
                    let spent = || {
                        let course = first.course(&first.noise().ok()?, study.privacy.bound)?;
                        course.last().copied()
                    };
                    let total = match study.privacy.noise {
                        Noise::Total(total) => Some(total.epsilon),
                        Noise::Given(_) => spent(),
                    };
                    total
                        .filter(|epsilon| epsilon.is_finite() && *epsilon > 0.0)
                        .ok_or_else(|| CompareError::NoTotal {
                            study: study.name.clone(),
                        })?
                }
            },
            delta,
        };
        let names = unique(experiments.iter().map(|other| other.study().name.clone()));
        let contenders = names
            .into_iter()
            .zip(experiments)
            .map(
                |(name, experiment)| match experiment.study().privacy.noise.like() {
                    Mechanism::None => Contender::as_it_is(&name, experiment),
                    _ => Contender::at(&name, experiment, total),
                },
            )
            .collect();
        Ok(Self { contenders, total })
    }

    /// What everyone may spend.
    pub fn total(&self) -> Guarantee {
        self.total
    }

    /// Who is compared, but for the baselines.
    pub fn contenders(&self) -> &[Contender] {
        &self.contenders
    }

    /// Whose noise the baselines have: the first study's that has some.
    fn basis(&self) -> &Experiment {
        let mut all = self.contenders.iter().map(|one| &one.experiment);
        all.find(noisy).unwrap_or(&self.contenders[0].experiment)
    }

    /// How often `progress` will be called, at most.
    pub fn steps(&self) -> u64 {
        let first = self.basis();
        let baselines = Baseline::all(first).into_iter();
        let own: u64 = self.contenders.iter().map(Contender::steps).sum();
        own + baselines.map(|baseline| baseline.steps(first)).sum::<u64>()
    }

    /// Runs everyone, one after the other, each on all threads of the current pool.
    pub fn run(&self, progress: &(dyn Fn(&Snapshot) + Sync)) -> Result<Compared, RunError> {
        let mut compared = Compared {
            program: Program::THIS,
            total: self.total,
            contenders: Vec::new(),
            too_dear: Vec::new(),
            pooled: None,
        };
        let first = self.basis();
        let totals = vec![self.total; first.graph().len()];
        let mut add = |contender: &Contender| -> Result<(), RunError> {
            match contender.measure(progress)? {
                Some(measured) => compared.contenders.push(measured),
                None => compared.too_dear.push(contender.name.clone()),
            }
            Ok(())
        };
        self.contenders.iter().try_for_each(&mut add)?;
        for baseline in Baseline::all(first) {
            add(&baseline.contender(first, &totals, Criterion::Accuracy, progress)?)?;
        }
        compared.pooled = first.pooled()?.map(Pooled::of);
        Ok(compared)
    }
}

impl Pooled {
    /// Of the optimum, and of its score on rows held out.
    pub(crate) fn of((optimum, score): (Optimum, Option<radmm::private::Score>)) -> Self {
        Self {
            loss: optimum.loss,
            accuracy: optimum.accuracy,
            held_out: score.map(|score| HeldOut {
                loss: Spread::of([score.loss]),
                accuracy: Spread::of([score.accuracy]),
                auc: Spread::of([score.auc]),
            }),
        }
    }
}

fn noisy(one: &&Experiment) -> bool {
    one.study().privacy.noise != Noise::Given(Mechanism::None)
}

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
        Some((_, section)) => Err(CompareError::OtherRows {
            study: other.name.clone(),
            section,
            first: first.name.clone(),
        }),
    }
}

/// The same names, with a number where one comes again.
fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
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
    fn names_that_come_again_get_a_number() {
        let names = ["a", "b", "a", "a"].map(str::to_owned);
        assert_eq!(unique(names.into_iter()), ["a", "b", "a (2)", "a (3)"]);
    }
}
