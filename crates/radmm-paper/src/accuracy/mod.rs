//! The accuracy of several methods at the same total: a table over splits of the rows, totals and methods.
//!
//! Every cell is made in two steps. First all parameters of [`AccuracyMethod::parameter_sets`] are tried once each, and those that
//! classify most of *everybody's training rows* correctly are chosen. Then these are run several times from another seed, and
//! measured on held-out rows. So neither the rows nor the noise of the reported numbers have a part in the choice, and the
//! rule is the same for all methods.
//!
//! Privacy: the choice reads training rows, and its cost is not in the totals. A real study chooses on public rows, or pays for
//! the choice.

mod method;
mod tables;

use std::path::Path;

use radmm::privacy::{Bound, Guarantee};
use radmm_lab::{
    CentralisedParty, CentralisedResult, Experiment, HeldOutStats, PrepareError, Program,
    Repetition, RunError, SampleStats, StudyRowsError,
};
use radmm_study::{Noise, NoiseFamily, Study, TotalBudget};
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

pub use method::{AccuracyMethod, ParameterSet};

/// The experiments of a table of accuracies.
pub struct AccuracyExperiment {
    splits: Vec<Experiment>,
    centralised: CentralisedParty,
    settings: AccuracySettings,
}

/// The common settings of all methods.
#[derive(Clone, Debug)]
pub struct AccuracySettings {
    /// The totals, one for each column: with `δ = 0` noise is Laplace noise, else Gaussian.
    pub totals: Vec<Guarantee>,
    /// The number of runs with the chosen parameters.
    pub repetitions: u32,
    /// The seed of the noise in these runs.
    pub seed: u64,
    /// The seed of the noise while parameters are chosen.
    pub choosing_seed: u64,
    /// The parameters to be tried; as a rule [`AccuracyMethod::parameter_sets`].
    pub parameter_sets: fn(AccuracyMethod, &Experiment, NoiseFamily) -> Vec<ParameterSet>,
}

/// The reason why there is no table.
#[derive(Debug, Error)]
pub enum AccuracyError {
    /// A study is not ready to run.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// A study has no held-out rows to measure on.
    #[error("{study}: [data.test] is missing: accuracy is measured on held-out rows")]
    NoTest {
        /// The study.
        study: String,
    },
}

/// The table of accuracies.
#[derive(Clone, Debug, Serialize)]
pub struct AccuracyTable {
    /// The program that made it.
    pub program: Program,
    /// The number of runs of each cell.
    pub repetitions: u32,
    /// The seed of the noise in these runs.
    pub seed: u64,
    /// The seed of the noise while parameters were chosen.
    pub choosing_seed: u64,
    /// The number of held-out rows.
    pub held_out: usize,
    /// The tables of the studies, in the order given.
    pub splits: Vec<SplitTable>,
}

/// The part of the table for one split of the rows.
#[derive(Clone, Debug, Serialize)]
pub struct SplitTable {
    /// The study's name.
    pub name: String,
    /// The rows of each party.
    pub parties: Vec<PartyClassCounts>,
    /// The cells, by total and then by method.
    pub cells: Vec<AccuracyCell>,
    /// The minimiser of the study's own problem, without noise; `None` if it could not be certified.
    pub centralised: Option<CentralisedResult>,
}

/// The number of rows of a party, by class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartyClassCounts {
    /// `node 3`, or the value of the column by which rows were split.
    pub name: String,
    /// `B_i`.
    pub rows: usize,
    /// The number of rows in the positive class.
    pub positive: usize,
}

/// One method at one total.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccuracyCell {
    /// The method.
    #[serde(rename = "entrant")]
    pub method: AccuracyMethod,
    /// The total.
    #[serde(flatten)]
    pub total: Guarantee,
    /// The chosen parameters and their result; `None` if none of those tried reaches this total.
    pub chosen: Option<ChosenParameters>,
    /// All parameters that were tried, in order.
    pub tried: Vec<TriedParameters>,
}

/// Parameters and their accuracy in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriedParameters {
    /// The parameters.
    #[serde(flatten)]
    pub parameters: ParameterSet,
    /// The share of everybody's training rows classified correctly; `None` if no noise suffices for the total, or if the run
    /// ended early.
    #[serde(rename = "right")]
    pub accuracy: Option<f64>,
}

/// The result of the chosen parameters, run again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChosenParameters {
    /// The parameters.
    #[serde(flatten)]
    pub parameters: ParameterSet,
    /// The number of queries to a party's rows.
    pub data_steps: u32,
    /// The least and the greatest ε that a party spent, over all runs.
    pub spent: [f64; 2],
    /// The share of everybody's training rows classified correctly.
    pub training: SampleStats,
    /// The quality on held-out rows.
    pub held_out: HeldOutStats,
    /// The number of runs that ended early; they count with the models that they had.
    pub stopped: usize,
}

impl AccuracySettings {
    /// Returns the settings of the table in docs/accuracy.md.
    pub fn standard(repetitions: u32) -> Self {
        let total = |delta| [0.5, 1.0, 2.0].map(|epsilon| Guarantee { epsilon, delta });
        Self {
            totals: [total(0.0), total(1e-5)].concat(),
            repetitions,
            seed: 1,
            choosing_seed: 2,
            parameter_sets: AccuracyMethod::parameter_sets,
        }
    }
}

impl AccuracyExperiment {
    /// Prepares the table of docs/accuracy.md: the Adult data, split in two ways.
    pub fn standard(repetitions: u32) -> Result<Self, AccuracyError> {
        let studies = [ALIKE, SKEWED].map(|(text, file)| {
            // A test parses each of them.
            let (study, _) = Study::parse(text, file).expect("a study of this crate is valid");
            study
        });
        Self::new(
            studies.into(),
            "".as_ref(),
            AccuracySettings::standard(repetitions),
        )
    }

    /// Reads the rows of at least one study; `folder` is the folder of the study files. All studies have the same rows, with splits
    /// of their own. Only their problem, start and tolerance are used.
    pub fn new(
        studies: Vec<Study>,
        folder: &Path,
        settings: AccuracySettings,
    ) -> Result<Self, AccuracyError> {
        let prepared = |error: StudyRowsError| AccuracyError::Prepare(error.into());
        let centralised = CentralisedParty::read(&studies[0], folder).map_err(prepared)?;
        let mut splits = Vec::new();
        for study in studies {
            if study.data.test.is_none() {
                return Err(AccuracyError::NoTest { study: study.name });
            }
            splits.push(Experiment::prepare(study, folder)?);
        }
        Ok(Self {
            splits,
            centralised,
            settings,
        })
    }

    /// Returns the number of cells, which is the number of calls of `progress`.
    pub fn cell_count(&self) -> u64 {
        (self.splits.len() * self.settings.totals.len() * AccuracyMethod::ALL.len()) as u64
    }

    /// Makes the table, on all threads of the current pool. `progress` is called after each cell. Numbers have the same bits for
    /// any number of threads.
    pub fn run(
        &self,
        progress: &(dyn Fn(&AccuracyCell) + Sync),
    ) -> Result<AccuracyTable, RunError> {
        let mut splits = Vec::new();
        for experiment in &self.splits {
            let mut cells = Vec::new();
            for &total in &self.settings.totals {
                for method in AccuracyMethod::ALL {
                    let cell = self.cell(experiment, method, total)?;
                    progress(&cell);
                    cells.push(cell);
                }
            }
            let parties = experiment.table().parties.iter();
            splits.push(SplitTable {
                name: experiment.study().name.clone(),
                parties: parties
                    .map(|party| PartyClassCounts {
                        name: party.name.clone(),
                        rows: party.shard.rows(),
                        positive: party.positive,
                    })
                    .collect(),
                cells,
                centralised: experiment.centralised()?,
            });
        }
        Ok(AccuracyTable {
            program: Program::THIS,
            repetitions: self.settings.repetitions,
            seed: self.settings.seed,
            choosing_seed: self.settings.choosing_seed,
            held_out: self.splits[0].table().counts.held_out,
            splits,
        })
    }

    fn cell(
        &self,
        experiment: &Experiment,
        method: AccuracyMethod,
        total: Guarantee,
    ) -> Result<AccuracyCell, RunError> {
        let parameter_sets = (self.settings.parameter_sets)(method, experiment, family(total));
        let runs = |parameters: &ParameterSet, seed, repetitions| {
            let mut study = parameters.study(experiment.study(), total);
            study.run.seed = seed;
            study.run.repetitions = repetitions;
            match method {
                AccuracyMethod::Centralised => self.centralised(&study, total),
                _ => among_parties(experiment, study, total),
            }
        };
        let tried = parameter_sets.into_par_iter().map(|parameters| {
            let run = runs(&parameters, self.settings.choosing_seed, 1)?;
            // Held-out rows are not looked at here.
            let complete = |run: &Repetition| run.stopped.is_none();
            let run = run.and_then(|runs| runs.into_iter().find(complete));
            Ok(TriedParameters {
                parameters,
                accuracy: run.map(|run| run.everywhere.accuracy),
            })
        });
        let tried = tried.collect::<Result<Vec<TriedParameters>, RunError>>()?;
        let chosen = match best(&tried) {
            None => None,
            Some(parameters) => runs(parameters, self.settings.seed, self.settings.repetitions)?
                .and_then(|runs| ChosenParameters::new(parameters, &runs)),
        };
        Ok(AccuracyCell {
            method,
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
        match self.centralised.noise_for(study, total) {
            None => Ok(None),
            Some(noise) => {
                let runs = self.centralised.repeat(study, noise, Some(total.epsilon));
                runs.map(Some)
            }
        }
    }
}

/// Runs all repetitions of a study, each party with the least noise for its total; `None` if no noise suffices.
fn among_parties(
    experiment: &Experiment,
    study: Study,
    total: Guarantee,
) -> Result<Option<Vec<Repetition>>, RunError> {
    let experiment = experiment.on_same_network(study);
    match experiment.noise() {
        Err(_) => Ok(None),
        Ok(noise) => {
            let runs = experiment.repeat(&noise, Some(total.epsilon), &|_| ())?;
            Ok(Some(runs.repetitions))
        }
    }
}

/// Returns the family of noise for a total.
fn family(total: Guarantee) -> NoiseFamily {
    match total.delta > 0.0 {
        true => NoiseFamily::Gaussian,
        false => NoiseFamily::Laplace,
    }
}

/// Returns the first of the most accurate parameters.
fn best(tried: &[TriedParameters]) -> Option<&ParameterSet> {
    let mut best: Option<(&ParameterSet, f64)> = None;
    for one in tried {
        if let Some(accuracy) = one.accuracy
            && best.is_none_or(|(_, most)| accuracy > most)
        {
            best = Some((&one.parameters, accuracy));
        }
    }
    best.map(|(parameters, _)| parameters)
}

impl ParameterSet {
    /// Returns the study with these parameters, in which every party may spend `total`.
    fn study(&self, base: &Study, total: Guarantee) -> Study {
        let mut study = base.clone();
        study.algorithm.method = self.method.clone();
        study.algorithm.iterations = self.iterations;
        study.problem.ridge = self.ridge;
        study.privacy.noise = Noise::Total(TotalBudget {
            kind: self.method.noise_kind(family(total)),
            epsilon: total.epsilon,
        });
        study.privacy.delta = total.delta;
        study.privacy.bound = Bound::Tight;
        study
    }
}

impl ChosenParameters {
    /// Returns the result of at least one run with held-out rows.
    fn new(parameters: &ParameterSet, runs: &[Repetition]) -> Option<Self> {
        let nodes = || runs.iter().flat_map(|run| &run.nodes);
        let spent = SampleStats::of(nodes().map(|node| node.spent.epsilon));
        Some(Self {
            parameters: parameters.clone(),
            data_steps: nodes().map(|node| node.data_steps).max()?,
            spent: spent.ends(),
            training: SampleStats::of(runs.iter().map(|run| run.everywhere.accuracy)),
            held_out: HeldOutStats::of(runs)?,
            stopped: runs.iter().filter(|run| run.stopped.is_some()).count(),
        })
    }
}

const ALIKE: (&str, &str) = (
    include_str!("../../studies/accuracy-alike.toml"),
    "accuracy-alike.toml",
);
const SKEWED: (&str, &str) = (
    include_str!("../../studies/accuracy-skewed.toml"),
    "accuracy-skewed.toml",
);

#[cfg(test)]
mod tests {
    use super::*;
    use radmm_study::Method;

    #[test]
    fn the_studies_of_the_table_are_valid_and_differ_only_in_their_split() {
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
    fn among_equally_accurate_parameters_the_first_are_chosen() {
        let tried = |ridge, accuracy| TriedParameters {
            parameters: ParameterSet {
                method: Method::Local { extra_ridge: 0.0 },
                iterations: 1,
                ridge,
            },
            accuracy,
        };
        let all = [
            tried(1.0, None),
            tried(2.0, Some(0.7)),
            tried(3.0, Some(0.8)),
            tried(4.0, Some(0.8)),
        ];
        assert_eq!(best(&all).map(|parameters| parameters.ridge), Some(3.0));
        assert_eq!(best(&all[..1]), None);
    }
}
