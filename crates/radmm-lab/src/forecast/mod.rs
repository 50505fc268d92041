//! Forecasts: the accuracy to expect at a total ε, and the number of rows that it takes.
//!
//! ```text
//! share = (accuracy − majority)/(no noise − majority)      on rows that nobody trains on
//! ```
//! Every accuracy is that of a simulation of the study's own algorithm, with the noise that its total takes, on rows of the
//! same kind: drawn from the schema (`population`), or public ones (`sample`). A study's private rows are never read.
//!
//! **More rows than there are.** Noise enters a model relative to a sum over all rows. So `n` rows are simulated by the `m < n`
//! that there are, each counting `n/m` times, with noise that is smaller by `n/m`. Beyond `m` rows, what is learned from more
//! different rows is left out, which is little next to what noise takes.
//!
//! **Sizes** are tried on a ladder, each twice the one before, up and down from the study's own, until the shares that are
//! looked for are found. Between two of them, shares are interpolated on the logarithm of the number of rows.

mod below_majority;
mod ladder;
mod population;
mod sample;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests;

use std::sync::Arc;

use radmm::curator::RowError;
use radmm::graph::{Graph, GraphError};
use radmm::privacy::{Guarantee, Mechanism, NoiseFamily};
use radmm_study::pricing::{PartySize, Plan};
use radmm_study::statement_text::Program;
use radmm_study::{Method, Noise, Study};
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use crate::experiment::Experiment;
use crate::instantiate::RunError;
use crate::majority::MajorityClass;
use crate::outcome::FinalState;
use crate::stats::SampleStats;

pub use self::below_majority::BelowMajority;
use self::ladder::Ladder;
use self::population::Population;
pub use self::sample::PublicRows;
use self::sample::Sample;

/// The shares of the way from the majority class to no noise for which the number of rows is forecast.
pub(crate) const SHARES: [f64; 3] = [0.5, 0.9, 0.95];
/// The largest number of rows that is tried.
pub(crate) const MOST_ROWS: usize = 2_000_000;
/// The least number of rows a party that is tried.
const LEAST_PARTY_ROWS: usize = 16;
/// The most rows that a simulation trains on; more are simulated by less noise.
const TRAIN_ROWS: usize = 12_000;
/// The most parties that are simulated.
const MOST_PARTIES: usize = 1000;
/// The rows that a simulation tests on.
const TEST_ROWS: usize = 6_000;
/// The number of samples, each with rows and noise of its own.
const SAMPLES: u64 = 4;
/// The runs with different noise on each sample, and on samples of many columns, which take longer.
const RUNS: u32 = 3;
const RUNS_IF_WIDE: u32 = 1;
/// The number of columns beyond which they are many.
const WIDE: usize = 1000;
/// The least share of the way to no noise that is better than nothing.
const LEAST_SHARE: f64 = 0.1;
/// The least gap between the majority class and no noise of which a share can be measured.
const LEAST_GAP: f64 = 0.01;

/// The rows that a forecast is made on.
pub enum ForecastSource {
    /// Rows drawn from the study's schema.
    Schema,
    /// Public rows of the same kind.
    Public(PublicRows),
}

/// The reason why there is no forecast.
#[derive(Debug, Error)]
pub enum ForecastError {
    /// The topology is invalid.
    #[error("[network] {0}")]
    Graph(#[from] GraphError),
    /// A row cannot be used.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A simulation cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// There are too few public rows.
    #[error(
        "there are {rows} complete rows with a label, and a forecast for {parties} parties takes at least {least}; give a larger file"
    )]
    FewRows {
        /// The rows that there are.
        rows: usize,
        /// The number of parties.
        parties: usize,
        /// The rows that it takes.
        least: usize,
    },
    /// The columns do not tell the label.
    #[error(
        "without any noise these columns are no better than the majority class on the rows of the forecast: there is nothing to lose to privacy, and nothing to win; other columns would help"
    )]
    NoSignal,
    /// There are too many parties to simulate.
    #[error(
        "a plan is for at most {MOST_PARTIES} parties, and there are {0}; plan for fewer: with as many rows in all, fewer parties lose less to noise"
    )]
    ManyParties(usize),
    /// The sizes of the parties are of no use.
    #[error("there are {sizes} sizes for {parties} parties; give one for each")]
    Sizes {
        /// The number of sizes.
        sizes: usize,
        /// The number of parties.
        parties: usize,
    },
}

/// The accuracy to expect of a study at several totals.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// The program that made it.
    pub program: Program,
    /// The name of the study.
    pub name: String,
    /// The number of parties.
    pub parties: usize,
    /// The number of all rows.
    pub rows: usize,
    /// The number of encoded columns.
    pub columns: usize,
    /// The algorithm's name in study files.
    pub algorithm: &'static str,
    /// `δ` of every total.
    pub delta: f64,
    /// The neighbouring relation of every total.
    pub relation: &'static str,
    /// The study's own total, if it has one.
    pub own_epsilon: Option<f64>,
    /// The public rows that the forecast was made on; `None` for rows drawn from the schema.
    pub source_rows: Option<usize>,
    /// The number of samples of rows.
    pub samples: usize,
    /// The accuracy of the majority class, on the rows of the forecast.
    pub majority: f64,
    /// The accuracy of the optimum without noise on them.
    pub no_noise: f64,
    /// The different rows that a simulation trains on at most; more rows are these, each counting several times.
    pub different_rows: usize,
    /// The forecasts, in the order of the totals.
    pub epsilons: Vec<EpsilonForecast>,
}

/// The accuracy to expect at one total.
#[derive(Clone, Debug, Serialize)]
pub struct EpsilonForecast {
    /// The total ε over the whole run.
    pub epsilon: f64,
    /// The accuracy at the study's number of rows.
    pub accuracy: f64,
    /// The share of the way from the majority class to no noise, over the samples. Zero or less is no better than the majority.
    pub share: SampleStats,
    /// The number of rows that shares of 50, 90 and 95 % take.
    pub rows_needed: Vec<RowsNeeded>,
    /// The share at other numbers of rows, in ascending order.
    pub by_rows: Vec<ForecastPoint>,
}

/// The accuracy to expect with some number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ForecastPoint {
    /// The number of all rows.
    pub rows: usize,
    /// The mean share of the way from the majority class to no noise.
    pub share: f64,
}

/// The number of rows that a share of the way from the majority class to no noise takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RowsNeeded {
    /// The share.
    pub share: f64,
    /// The number of all rows, to two digits; the largest or least that was tried, if it is beyond them.
    pub rows: usize,
    /// Whether it is about, above or below that number.
    pub relation: RowsRelation,
}

/// The relation between the rows that are needed and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowsRelation {
    /// At most so many.
    AtMost,
    /// About so many.
    About,
    /// More than so many.
    MoreThan,
}

impl EpsilonForecast {
    /// Returns whether something better than the majority class is to be expected: a tenth of the way to no noise at least.
    pub fn is_useful(&self) -> bool {
        self.share.mean >= LEAST_SHARE
    }
}

/// Makes forecasts for one study.
pub struct Forecaster {
    study: Study,
    graph: Graph,
    sizes: Vec<usize>,
    source_rows: Option<usize>,
    samples: Vec<SampleReference>,
}

/// A sample with what can be reached on it.
struct SampleReference {
    sample: Sample,
    /// All training rows, shared out to the parties.
    whole: Experiment,
    majority: f64,
    no_noise: f64,
}

impl Forecaster {
    /// Draws rows from a source for a study whose parties have these numbers of rows.
    pub fn new(
        study: &Study,
        sizes: &[usize],
        source: &ForecastSource,
    ) -> Result<Self, ForecastError> {
        let graph = study.network.graph()?;
        if sizes.len() != graph.len() {
            return Err(ForecastError::Sizes {
                sizes: sizes.len(),
                parties: graph.len(),
            });
        }
        if graph.len() > MOST_PARTIES {
            return Err(ForecastError::ManyParties(graph.len()));
        }
        let least = 2 * LEAST_PARTY_ROWS * graph.len();
        if let ForecastSource::Public(rows) = source
            && rows.rows() < least
        {
            return Err(ForecastError::FewRows {
                rows: rows.rows(),
                parties: graph.len(),
                least,
            });
        }
        let mut study = study.clone();
        study.run.repetitions = match study.data.schema.width() {
            0..=WIDE => RUNS,
            _ => RUNS_IF_WIDE,
        };
        study.parties.clear();
        let mut forecaster = Self {
            study,
            graph,
            sizes: sizes.to_vec(),
            source_rows: match source {
                ForecastSource::Schema => None,
                ForecastSource::Public(rows) => Some(rows.rows()),
            },
            samples: Vec::new(),
        };
        let samples: Result<Vec<_>, ForecastError> = (0..SAMPLES)
            .into_par_iter()
            .map(|number| forecaster.reference(source, number))
            .collect();
        forecaster.samples = samples?;
        let signal = |one: &SampleReference| one.no_noise - one.majority >= LEAST_GAP;
        forecaster.samples.retain(signal);
        match forecaster.samples.is_empty() {
            true => Err(ForecastError::NoSignal),
            false => Ok(forecaster),
        }
    }

    fn reference(
        &self,
        source: &ForecastSource,
        number: u64,
    ) -> Result<SampleReference, ForecastError> {
        let schema = &self.study.data.schema;
        let seed = self
            .study
            .run
            .seed
            .wrapping_mul(SAMPLES)
            .wrapping_add(number);
        let sample = match source {
            ForecastSource::Schema => {
                let rows = TRAIN_ROWS.max(LEAST_PARTY_ROWS * self.graph.len());
                Population::new(schema, seed).sample(rows, TEST_ROWS)
            }
            ForecastSource::Public(rows) => rows.sample(seed),
        };
        let whole = self.experiment(&sample, sample.train.len())?;
        let majority = MajorityClass::of(whole.table()).accuracy_shown();
        let optimum = whole.optimum()?.and_then(|(_, held_out)| held_out);
        Ok(SampleReference {
            majority,
            no_noise: optimum.map_or(majority, |score| score.accuracy),
            whole,
            sample,
        })
    }

    /// Returns the study on the first rows of a sample.
    fn experiment(&self, sample: &Sample, rows: usize) -> Result<Experiment, ForecastError> {
        let sizes = shared_out(rows, &self.sizes);
        let table = sample.study_rows(&self.study.data.schema, &sizes)?;
        Ok(Experiment::new(
            self.study.clone(),
            self.graph.clone(),
            Arc::new(table),
        ))
    }

    /// Returns an upper bound on the number of calls of `progress`.
    pub fn progress_steps(&self, epsilons: usize) -> u64 {
        let sizes = MOST_ROWS.ilog2() as usize - LEAST_PARTY_ROWS.ilog2() as usize + 2;
        (sizes * epsilons * self.samples.len()) as u64
    }

    /// Forecasts the accuracy at these totals, all of them at once on the threads of the current pool. `progress` is called after
    /// every simulation.
    pub fn forecast(
        &self,
        epsilons: &[f64],
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<Forecast, ForecastError> {
        let mean =
            |of: fn(&SampleReference) -> f64| SampleStats::of(self.samples.iter().map(of)).mean;
        let one = |epsilon: &f64| self.at_epsilon(*epsilon, progress);
        let forecasts: Result<Vec<_>, ForecastError> = epsilons.par_iter().map(one).collect();
        let different = self.samples.iter().map(|one| one.sample.train.len());
        let own_epsilon = match self.study.privacy.noise {
            Noise::Total(total) => Some(total.epsilon),
            Noise::Given(_) => None,
        };
        Ok(Forecast {
            program: Program::THIS,
            name: self.study.name.clone(),
            own_epsilon,
            source_rows: self.source_rows,
            samples: self.samples.len(),
            parties: self.graph.len(),
            rows: self.sizes.iter().sum(),
            columns: self.study.data.schema.width(),
            algorithm: self.study.algorithm.method.name(),
            delta: self.study.privacy.delta,
            relation: Guarantee::RELATION,
            majority: mean(|one| one.majority),
            no_noise: mean(|one| one.no_noise),
            different_rows: different.min().unwrap_or(0),
            epsilons: forecasts?,
        })
    }

    fn at_epsilon(
        &self,
        epsilon: f64,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<EpsilonForecast, ForecastError> {
        let least = LEAST_PARTY_ROWS * self.graph.len();
        let own = self.sizes.iter().sum::<usize>().max(least);
        let mut at_own = Vec::new();
        let ladder = Ladder::climb(own, least, |rows| {
            let shares: Result<Vec<f64>, ForecastError> = self
                .samples
                .par_iter()
                .map(|one| {
                    let accuracy = self.accuracy(one, epsilon, rows)?;
                    progress(epsilon);
                    Ok((accuracy - one.majority) / (one.no_noise - one.majority))
                })
                .collect();
            let shares = shares?;
            let mean = SampleStats::of(shares.iter().copied()).mean;
            if rows == own {
                at_own = shares;
            }
            Ok::<f64, ForecastError>(mean)
        })?;
        let share = SampleStats::of(at_own.iter().copied());
        let accuracies = self.samples.iter().zip(&at_own);
        let accuracies =
            accuracies.map(|(one, share)| one.majority + share * (one.no_noise - one.majority));
        Ok(EpsilonForecast {
            epsilon,
            accuracy: SampleStats::of(accuracies).mean,
            share,
            rows_needed: SHARES.map(|share| ladder.rows_for(share)).into(),
            by_rows: ladder.points,
        })
    }

    /// Returns the mean accuracy on held-out rows with so many rows; that of the majority if no noise is enough for the total.
    fn accuracy(
        &self,
        one: &SampleReference,
        epsilon: f64,
        rows: usize,
    ) -> Result<f64, ForecastError> {
        let there = one.sample.train.len();
        let own;
        let experiment = match rows < there {
            true => {
                own = self.experiment(&one.sample, rows)?;
                &own
            }
            false => &one.whole,
        };
        let total = Guarantee {
            epsilon,
            delta: self.study.privacy.delta,
        };
        let totals = vec![total; self.graph.len()];
        let factor = rows as f64 / rows.min(there) as f64;
        let ends = experiment.as_if_rows_counted(factor, &totals)?;
        Ok(ends.map_or(one.majority, |ends| mean_accuracy(&ends)))
    }
}

/// Returns the mean accuracy that is shown: on held-out rows if there are any, else on all training rows.
fn mean_accuracy(ends: &[FinalState]) -> f64 {
    let shown = |end: &FinalState| {
        end.held_out
            .map_or(end.everywhere.accuracy, |score| score.accuracy)
    };
    SampleStats::of(ends.iter().map(shown)).mean
}

/// Divides rows among parties in proportion to their sizes; each gets one at least.
fn shared_out(rows: usize, sizes: &[usize]) -> Vec<usize> {
    let total: usize = sizes.iter().sum();
    let spare = rows.saturating_sub(sizes.len());
    let (mut before, mut given) = (0, 0);
    let share = |size: &usize| {
        before += size;
        let up_to = (spare as u128 * before as u128 / total.max(1) as u128) as usize;
        let own = up_to - given;
        given = up_to;
        own + 1
    };
    sizes.iter().map(share).collect()
}

impl Experiment {
    /// Runs the study as if each of its rows counted `factor` times, where every party spends its total; `None` if no noise is
    /// enough for that.
    pub(crate) fn as_if_rows_counted(
        &self,
        factor: f64,
        totals: &[Guarantee],
    ) -> Result<Option<Vec<FinalState>>, RunError> {
        let Some(noise) = self.noise_as_if(factor, totals) else {
            return Ok(None);
        };
        let mut study = self.study().clone();
        // The public rule goes by the noise that is really drawn.
        study.privacy.noise = Noise::Given(noise[0]);
        let less_noisy = self.on_same_network(study);
        less_noisy.final_states(&noise, &|_| ()).map(Some)
    }

    fn noise_as_if(&self, factor: f64, totals: &[Guarantee]) -> Option<Vec<Mechanism>> {
        let mut study = self.study().clone();
        if matches!(study.privacy.noise, Noise::Given(Mechanism::None)) {
            let family = match study.privacy.delta > 0.0 {
                true => NoiseFamily::Gaussian,
                false => NoiseFamily::Gamma,
            };
            let kind = study.algorithm.method.noise_kind(family);
            study.privacy.noise = Noise::Given(kind.with_amount(1.0));
        }
        let sums = matches!(study.algorithm.method, Method::Consensus { .. });
        // Noise is in units of the weight of all rows, and for consensus in units of a row.
        let counted = if sums { 1.0 } else { factor };
        let parties = self.table().parties.iter().map(|party| PartySize {
            name: party.name.clone(),
            rows: (party.shard.rows() as f64 * counted).round() as usize,
        });
        let noise = Plan::new(&study, self.graph(), parties.collect()).noise_for(totals)?;
        let scaled = |mechanism: Mechanism| match mechanism.noise() {
            Some(law) if sums => mechanism.with_noise(law.scaled(1.0 / factor)),
            _ => mechanism,
        };
        Some(noise.into_iter().map(scaled).collect())
    }
}
