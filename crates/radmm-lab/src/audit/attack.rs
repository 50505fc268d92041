//! Attacks: a score for each victim, computed from its releases. A large score speaks for one data set, a small one for the other.

use radmm::curator::NoiseKey;
use rayon::prelude::*;

use super::likelihood::{Hypothesis, ImpliedNoise, difference, norm};
use super::lower_bound::Scores;
use super::output_verifier::PaidAnswer;
use super::victim::{AttackError, Dataset, LedgerClaim, Victim, VictimRun};

/// The distance below which two noises count as equal: they are known up to the solver's tolerance and the grid of releases.
const EQUAL_NOISE: f64 = 1e-12;

/// The number of runs between two reports of progress.
pub(super) const RUNS_PER_REPORT: u32 = 1000;

/// A way to tell two data sets apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attack {
    /// The exact log-likelihood ratio of everything released, which is the best attack if the noise is as it should be.
    Likelihood,
    /// Whether the first two answers had the same noise under one data set or the other. It succeeds if noise is used twice.
    TwoAnswers,
    /// Whether the victim's noise is that of another party, which the attacker owns. It succeeds if two parties share a key.
    Accomplice {
        /// The offset of the accomplice's key from the victim's: 0 is the victim's own.
        apart: u32,
    },
}

impl Attack {
    /// Attacks `runs` victims with each data set and returns their scores and what each of them claims.
    pub(super) fn on(
        self,
        victim: &Victim,
        runs: u32,
        seed: u64,
        progress: &(dyn Fn() + Sync),
    ) -> Result<(Scores, LedgerClaim), AttackError> {
        // Kept to the end: all victims are charged alike, and share the states of its ledger.
        let first = victim.run(Dataset::Right, NoiseKey::repeating(seed, 0, 0))?;
        let claimed = first.claim(&victim.config);
        let scores = |dataset: Dataset| -> Result<Vec<f64>, AttackError> {
            let score = |run: u32| {
                let score = self.score(victim, dataset, run, seed);
                if run.is_multiple_of(RUNS_PER_REPORT) {
                    progress();
                }
                score
            };
            (0..runs).into_par_iter().map(score).collect()
        };
        let scores = Scores {
            right: scores(Dataset::Right)?,
            left: scores(Dataset::Left)?,
        };
        Ok((scores, claimed))
    }

    fn score(
        self,
        victim: &Victim,
        dataset: Dataset,
        run: u32,
        seed: u64,
    ) -> Result<f64, AttackError> {
        // Every victim has noise of its own: another run, or another data set.
        let key = |apart: u32| NoiseKey::repeating(seed, run, dataset as u32 + apart);
        let attacked = victim.run(dataset, key(0))?;
        let [right, left] = &victim.hypotheses;
        match self {
            Self::Likelihood => {
                let ln_density = |hypothesis: &Hypothesis| -> Result<f64, AttackError> {
                    let ln_density = |answer| Ok(implied_noise(hypothesis, answer)?.ln_density);
                    attacked.answers.iter().map(ln_density).sum()
                };
                Ok(ln_density(right)? - ln_density(left)?)
            }
            Self::TwoAnswers => {
                let apart = |hypothesis: &Hypothesis| -> Result<f64, AttackError> {
                    let [first, second] = first_two(&attacked)?;
                    let (first, second) = (
                        implied_noise(hypothesis, first)?,
                        implied_noise(hypothesis, second)?,
                    );
                    Ok(norm(&difference(&first.noise, &second.noise)))
                };
                Ok(closer(apart(right)?, apart(left)?))
            }
            Self::Accomplice { apart } => {
                // Its rows are its own: the attacker knows them.
                let accomplice = victim.run(Dataset::Right, key(apart))?;
                let known = implied_noise(right, first(&accomplice)?)?.noise;
                let apart = |hypothesis: &Hypothesis| -> Result<f64, AttackError> {
                    let implied = implied_noise(hypothesis, first(&attacked)?)?;
                    Ok(norm(&difference(&implied.noise, &known)))
                };
                Ok(closer(apart(right)?, apart(left)?))
            }
        }
    }
}

/// Returns a score that is large if the noises are closer under the right data set.
fn closer(right: f64, left: f64) -> f64 {
    libm::log(left.max(EQUAL_NOISE)) - libm::log(right.max(EQUAL_NOISE))
}

fn implied_noise(hypothesis: &Hypothesis, paid: &PaidAnswer) -> Result<ImpliedNoise, AttackError> {
    let implied = hypothesis.implied_noise(&paid.query, &paid.event, paid.answer.values());
    implied.ok_or(AttackError::NoNoise)
}

fn first(run: &VictimRun) -> Result<&PaidAnswer, AttackError> {
    run.answers.first().ok_or(AttackError::NoNoise)
}

fn first_two(run: &VictimRun) -> Result<[&PaidAnswer; 2], AttackError> {
    match &run.answers[..] {
        [first, second, ..] => Ok([first, second]),
        _ => Err(AttackError::NoNoise),
    }
}
