//! Attacks: what is made of one victim's releases, one number for each. Large speaks for one data set, small for the other.

use radmm::account::Guarantee;
use radmm::private::NoiseKey;
use rayon::prelude::*;

use super::plane::{Explained, Plane, difference, norm};
use super::retrace::Asked;
use super::scene::{Act, AuditError, Side, Stage};
use super::scores::Scores;

/// Noise counts as the same from here on down; it is known to the solver's tolerance and the grid of releases at best.
const SAME: f64 = 1e-12;

/// Runs between two reports of progress.
pub(super) const CHUNK: u32 = 1000;

/// How an attacker tells two data sets apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attack {
    /// By the exact log-likelihood ratio of everything released: nobody can do better, if noise is what it should be.
    Likelihood,
    /// By whether the first two answers had the same noise under one data set or the other: it works if noise is used twice.
    TwoAnswers,
    /// By whether the victim's noise is that of another party, which the attacker owns: it works if two parties share a key.
    Accomplice {
        /// How far the accomplice's key is from the victim's: 0 is the victim's own.
        apart: u32,
    },
}

impl Attack {
    /// Runs that many victims with each data set, and what every one of them was charged.
    pub(super) fn on(
        self,
        stage: &Stage,
        runs: u32,
        seed: u64,
        progress: &(dyn Fn() + Sync),
    ) -> Result<(Scores, Guarantee), AuditError> {
        let claimed = stage
            .act(Side::Right, NoiseKey::repeating(seed, 0, 0))?
            .spent;
        let one_side = |side: Side| -> Result<Vec<f64>, AuditError> {
            let score = |run: u32| {
                let score = self.score(stage, side, run, seed);
                if run.is_multiple_of(CHUNK) {
                    progress();
                }
                score
            };
            (0..runs).into_par_iter().map(score).collect()
        };
        let scores = Scores {
            right: one_side(Side::Right)?,
            left: one_side(Side::Left)?,
        };
        Ok((scores, claimed))
    }

    fn score(self, stage: &Stage, side: Side, run: u32, seed: u64) -> Result<f64, AuditError> {
        // Every victim has noise of its own: another run, or another side.
        let key = |apart: u32| NoiseKey::repeating(seed, run, side as u32 + apart);
        let victim = stage.act(side, key(0))?;
        let [right, left] = &stage.planes;
        match self {
            Self::Likelihood => {
                let ln_density = |plane: &Plane| -> Result<f64, AuditError> {
                    let explained = |asked| Ok(explain(plane, asked)?.ln_density);
                    victim.asked.iter().map(explained).sum()
                };
                Ok(ln_density(right)? - ln_density(left)?)
            }
            Self::TwoAnswers => {
                let apart = |plane: &Plane| -> Result<f64, AuditError> {
                    let [first, second] = first_two(&victim)?;
                    let (first, second) = (explain(plane, first)?, explain(plane, second)?);
                    Ok(norm(difference(first.noise, second.noise)))
                };
                Ok(closer(apart(right)?, apart(left)?))
            }
            Self::Accomplice { apart } => {
                // Its rows are its own: the attacker knows them.
                let accomplice = stage.act(Side::Right, key(apart))?;
                let known = explain(right, first(&accomplice)?)?.noise;
                let apart = |plane: &Plane| -> Result<f64, AuditError> {
                    let explained = explain(plane, first(&victim)?)?;
                    Ok(norm(difference(explained.noise, known)))
                };
                Ok(closer(apart(right)?, apart(left)?))
            }
        }
    }
}

/// Large if the noises are closer under the right data set.
fn closer(right: f64, left: f64) -> f64 {
    libm::log(left.max(SAME)) - libm::log(right.max(SAME))
}

fn explain(plane: &Plane, asked: &Asked) -> Result<Explained, AuditError> {
    let explained = plane.explain(&asked.query, &asked.event, asked.answer.values());
    explained.ok_or(AuditError::NoNoise)
}

fn first(act: &Act) -> Result<&Asked, AuditError> {
    act.asked.first().ok_or(AuditError::NoNoise)
}

fn first_two(act: &Act) -> Result<[&Asked; 2], AuditError> {
    match &act.asked[..] {
        [first, second, ..] => Ok([first, second]),
        _ => Err(AuditError::NoNoise),
    }
}
