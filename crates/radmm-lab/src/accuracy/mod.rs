//! How accurate everyone is at the same total: a table over splits of the rows, totals and algorithms.
//!
//! Every cell is made in two steps. First all parameters of [`Entrant::candidates`] are tried once each, and those that
//! classify most of *everybody's training rows* rightly are chosen. Then these are run several times from another seed, and
//! measured on the rows held out. So neither the rows that are reported on nor the noise that is reported has a part in the
//! choice; and the rule is the same for everybody.
//!
//! Privacy: the choice reads training rows, and its cost is not in the totals. Whoever runs a study chooses on public rows, or
//! pays for it.

mod entrant;
mod sole;
mod words;

use std::ops::Range;
use std::path::Path;

use radmm::account::{Bound, Guarantee};
use radmm::private::Scaling;
use radmm_study::table::TableError;
use radmm_study::words::Program;
use radmm_study::{Family, Kind, Method, Noise, Study, Total};
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use crate::assemble::{RunError, Variant};
use crate::compare::Pooled;
use crate::contender::HeldOut;
use crate::crew::Groups;
use crate::experiment::{Experiment, PrepareError};
use crate::outcome::Repetition;
use crate::spread::Spread;
pub use entrant::{Candidate, Entrant};
use sole::Sole;

/// A table to be made.
pub struct Contest {
    splits: Vec<Experiment>,
    sole: Sole,
    terms: Terms,
}

/// What everyone has in common.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What everyone may spend, one a column: with `δ = 0` noise is gamma noise, else Gaussian.
    pub totals: Vec<Guarantee>,
    /// How often the chosen parameters are run.
    pub repetitions: u32,
    /// Of the noise in these runs.
    pub seed: u64,
    /// Of the noise while parameters are chosen.
    pub choosing_seed: u64,
    /// The parameters to be tried; as a rule [`Entrant::candidates`].
    pub candidates: fn(Entrant, &Experiment) -> Vec<Candidate>,
}

/// Why there is no table.
#[derive(Debug, Error)]
pub enum ContestError {
    /// A study is not ready to run.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// There is nothing to measure on.
    #[error("{study}: [data.test] is missing: accuracy is measured on rows that nobody trains on")]
    NoTest {
        /// Which study.
        study: String,
    },
}

/// The table.
#[derive(Clone, Debug, Serialize)]
pub struct Contested {
    /// What made it.
    pub program: Program,
    /// How often everything was run.
    pub repetitions: u32,
    /// Of the noise in these runs.
    pub seed: u64,
    /// Of the noise while parameters were chosen.
    pub choosing_seed: u64,
    /// How many rows are tested on.
    pub held_out: usize,
    /// One a study, in the order given.
    pub splits: Vec<SplitTable>,
}

/// The part of a table for one way to deal the rows out.
#[derive(Clone, Debug, Serialize)]
pub struct SplitTable {
    /// The study's.
    pub name: String,
    /// Who has how many rows.
    pub parties: Vec<PartySize>,
    /// By total, and for each by entrant.
    pub cells: Vec<Cell>,
    /// The minimiser of the study's own problem, without noise; `None` if it could not be certified.
    pub pooled: Option<Pooled>,
}

/// How many rows a party has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartySize {
    /// `node 3`, or the value by which rows were dealt out.
    pub name: String,
    /// `B_i`.
    pub rows: usize,
    /// Of these, in the positive class.
    pub positive: usize,
}

/// One entrant at one total.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Who.
    pub entrant: Entrant,
    /// What it may spend.
    #[serde(flatten)]
    pub total: Guarantee,
    /// What was chosen, and what came of it; `None` if nothing that was tried can be had at this total.
    pub chosen: Option<Chosen>,
    /// Everything that was tried, in order.
    pub tried: Vec<Tried>,
}

/// Parameters, and how good they were in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// Which.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// The share of everybody's training rows classified rightly; `None` if no noise is enough for the total, or if
    /// the run ended early.
    pub right: Option<f64>,
}

/// The chosen parameters, run again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chosen {
    /// Which.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// How often rows were asked.
    pub data_steps: u32,
    /// What parties spent over a whole run: the least and the greatest of them, over all runs.
    pub spent: [f64; 2],
    /// The share of everybody's training rows classified rightly.
    pub training: Spread,
    /// On the rows held out.
    pub held_out: HeldOut,
    /// How many runs ended early; they count with the models that they had.
    pub stopped: usize,
}

impl Terms {
    /// Of the table in docs/accuracy.md.
    pub fn usual(repetitions: u32) -> Self {
        let total = |delta| [0.5, 1.0, 2.0].map(|epsilon| Guarantee { epsilon, delta });
        Self {
            totals: [total(0.0), total(1e-5)].concat(),
            repetitions,
            seed: 1,
            choosing_seed: 2,
            candidates: |entrant, experiment| {
                entrant.candidates(experiment.study(), experiment.graph())
            },
        }
    }
}

impl Contest {
    /// The table of docs/accuracy.md: the Adult data, dealt out in two ways.
    pub fn usual(repetitions: u32) -> Result<Self, ContestError> {
        let studies = [ALIKE, SKEWED].map(|(text, file)| {
            // A test parses each of them.
            let (study, _) =
                Study::parse(text, file).expect("a study of the program itself is valid");
            study
        });
        Self::new(studies.into(), "".as_ref(), Terms::usual(repetitions))
    }

    /// Reads the rows of at least one study; `folder` is where the study files are. All deal out the same rows, by splits
    /// of their own. Of their algorithms and noise only the problem, the start and the tolerance are used.
    pub fn new(studies: Vec<Study>, folder: &Path, terms: Terms) -> Result<Self, ContestError> {
        let prepared = |error: TableError| ContestError::Prepare(error.into());
        let sole = Sole::read(&studies[0], folder).map_err(prepared)?;
        let mut splits = Vec::new();
        for study in studies {
            if study.data.test.is_none() {
                return Err(ContestError::NoTest { study: study.name });
            }
            splits.push(Experiment::prepare(study, folder)?);
        }
        Ok(Self {
            splits,
            sole,
            terms,
        })
    }

    /// How often `progress` will be called.
    pub fn cells(&self) -> u64 {
        (self.splits.len() * self.terms.totals.len() * Entrant::ALL.len()) as u64
    }

    /// Makes the table, on all threads of the current pool; `progress` is called after each cell. Numbers are the same bits for
    /// any number of threads.
    pub fn run(&self, progress: &(dyn Fn(&Cell) + Sync)) -> Result<Contested, RunError> {
        let mut splits = Vec::new();
        for experiment in &self.splits {
            let mut cells = Vec::new();
            for &total in &self.terms.totals {
                for entrant in Entrant::ALL {
                    let cell = self.cell(experiment, entrant, total)?;
                    progress(&cell);
                    cells.push(cell);
                }
            }
            let parties = experiment.table().parties.iter();
            splits.push(SplitTable {
                name: experiment.study().name.clone(),
                parties: parties
                    .map(|party| PartySize {
                        name: party.name.clone(),
                        rows: party.shard.rows(),
                        positive: party.positive,
                    })
                    .collect(),
                cells,
                pooled: experiment.pooled()?.map(Pooled::of),
            });
        }
        Ok(Contested {
            program: Program::THIS,
            repetitions: self.terms.repetitions,
            seed: self.terms.seed,
            choosing_seed: self.terms.choosing_seed,
            held_out: self.splits[0].table().counts.held_out,
            splits,
        })
    }

    fn cell(
        &self,
        experiment: &Experiment,
        entrant: Entrant,
        total: Guarantee,
    ) -> Result<Cell, RunError> {
        let candidates = (self.terms.candidates)(entrant, experiment);
        let runs = |candidate: &Candidate, seed, repetitions| {
            let mut study = candidate.study(experiment.study(), total);
            study.run.seed = seed;
            study.run.repetitions = repetitions;
            match entrant {
                Entrant::Centralised => self.centralised(&study, total),
                _ => among_parties(experiment, study, total),
            }
        };
        let right = candidates.into_par_iter().map(|candidate| {
            let run = runs(&candidate, self.terms.choosing_seed, 1)?;
            // The rows held out are not looked at here.
            let to_the_end = |run: &Repetition| run.stopped.is_none();
            let right = run.and_then(|runs| runs.into_iter().find(to_the_end));
            Ok(Tried {
                candidate,
                right: right.map(|run| run.everywhere.accuracy),
            })
        });
        let tried = right.collect::<Result<Vec<Tried>, RunError>>()?;
        let chosen = match best(&tried) {
            None => None,
            Some(candidate) => runs(candidate, self.terms.seed, self.terms.repetitions)?
                .and_then(|runs| Chosen::of(candidate, &runs)),
        };
        Ok(Cell {
            entrant,
            total,
            chosen,
            tried,
        })
    }

    fn centralised(
        &self,
        study: &Study,
        total: Guarantee,
    ) -> Result<Option<Vec<Repetition>>, RunError> {
        let Some(noise) = self.sole.noise_for(study, total) else {
            return Ok(None);
        };
        let noise = [noise];
        let variant = |repetition| Variant {
            noise: &noise,
            repetition,
            limit: Some(total.epsilon),
        };
        let together = |group: Range<u32>| {
            let variants: Vec<Variant<'_>> = group.map(variant).collect();
            self.sole.run(study, &variants)
        };
        let groups = Groups::of(study.run.repetitions, 1, self.sole.columns());
        groups.run(together).map(Some)
    }
}

/// All repetitions of a study, each party with the least noise that its total takes; `None` if there is none.
fn among_parties(
    experiment: &Experiment,
    study: Study,
    total: Guarantee,
) -> Result<Option<Vec<Repetition>>, RunError> {
    let experiment = experiment.with(study);
    match experiment.noise() {
        Err(_) => Ok(None),
        Ok(noise) => {
            let runs = experiment.repeat(&noise, Some(total.epsilon), &|_| ())?;
            Ok(Some(runs.repetitions))
        }
    }
}

/// The first of those that are right most often.
fn best(tried: &[Tried]) -> Option<&Candidate> {
    let mut best: Option<(&Candidate, f64)> = None;
    for one in tried {
        if let Some(right) = one.right
            && best.is_none_or(|(_, most)| right > most)
        {
            best = Some((&one.candidate, right));
        }
    }
    best.map(|(candidate, _)| candidate)
}

impl Candidate {
    /// A study with these parameters, in which every party may spend `total`.
    fn study(&self, base: &Study, total: Guarantee) -> Study {
        let mut study = base.clone();
        study.algorithm.method = self.method.clone();
        study.algorithm.iterations = self.iterations;
        study.problem.ridge = self.ridge;
        let noise = match total.delta > 0.0 {
            true => Family::Gaussian,
            false => Family::Gamma,
        };
        let kind = match self.method {
            Method::Dlm { .. } | Method::RecycledDlm { .. } | Method::Dgd { .. } => {
                Kind::Gradient { noise }
            }
            _ => Kind::Objective {
                noise,
                scale: Scaling::Fixed,
            },
        };
        study.privacy.noise = Noise::Total(Total {
            kind,
            epsilon: total.epsilon,
        });
        study.privacy.delta = total.delta;
        study.privacy.bound = Bound::Tight;
        study
    }
}

impl Chosen {
    /// Of at least one run with rows held out.
    fn of(candidate: &Candidate, runs: &[Repetition]) -> Option<Self> {
        let nodes = || runs.iter().flat_map(|run| &run.nodes);
        let spent = Spread::of(nodes().map(|node| node.spent.epsilon));
        Some(Self {
            candidate: candidate.clone(),
            data_steps: nodes().map(|node| node.data_steps).max()?,
            spent: [spent.low, spent.high],
            training: Spread::of(runs.iter().map(|run| run.everywhere.accuracy)),
            held_out: HeldOut::of(runs)?,
            stopped: runs.iter().filter(|run| run.stopped.is_some()).count(),
        })
    }
}

const ALIKE: (&str, &str) = (
    include_str!("../../../../studies/accuracy-alike.toml"),
    "accuracy-alike.toml",
);
const SKEWED: (&str, &str) = (
    include_str!("../../../../studies/accuracy-skewed.toml"),
    "accuracy-skewed.toml",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_studies_of_the_table_are_valid_and_differ_in_their_split_alone() {
        let [mut alike, skewed] = [ALIKE, SKEWED].map(|(text, file)| {
            let (study, notes) = Study::parse(text, file).unwrap();
            assert!(notes.is_empty(), "{notes:?}");
            study
        });
        assert_ne!(alike.data.split, skewed.data.split);
        alike.name.clone_from(&skewed.name);
        alike.data.split.clone_from(&skewed.data.split);
        assert_eq!(alike, skewed);
    }

    #[test]
    fn of_equally_good_parameters_the_first_are_chosen() {
        let tried = |ridge, right| Tried {
            candidate: Candidate {
                method: Method::Local { extra_ridge: 0.0 },
                iterations: 1,
                ridge,
            },
            right,
        };
        let all = [
            tried(1.0, None),
            tried(2.0, Some(0.7)),
            tried(3.0, Some(0.8)),
            tried(4.0, Some(0.8)),
        ];
        assert_eq!(best(&all).map(|candidate| candidate.ridge), Some(3.0));
        assert_eq!(best(&all[..1]), None);
    }
}
