//! One line of an audit: a mechanism, an attack on it, what was claimed and what could be shown.

use radmm::account::Guarantee;
use radmm::private::{Law, Loss, Mechanism, Scaling};
use serde::Serialize;

use super::attack::{Attack, CHUNK};
use super::binomial::Count;
use super::scene::{AuditError, Scene};
use super::scores::{Profile, Scores, ceiling, resolution};

/// What is to be attacked, and how.
pub(super) struct Case {
    pub scene: Scene,
    pub attack: Attack,
    /// In words.
    pub what: String,
}

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing above it could be shown, and it could have been.
    Holds,
    /// Nothing could be shown, and so small an ε would not have shown in so few runs.
    TooSmall,
    /// It is more than so few runs can show of anything.
    TooLarge,
    /// More than what was claimed could be shown: the mechanism, its price or the ledger is wrong.
    Fails,
}

/// A claim, attacked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attacked {
    /// Where the noise is, its law, the loss.
    pub mechanism: String,
    /// What was done to it.
    pub attack: String,
    /// How many questions were asked.
    pub data_steps: usize,
    /// What the party's own ledger says.
    #[serde(flatten)]
    pub claimed: Guarantee,
    /// What ε is at least, with a confidence of 95 %.
    pub at_least: f64,
    /// Of the victims with one data set, how many were in the event that shows it, of how many.
    pub hits: [usize; 2],
    /// Of those with the other.
    pub false_hits: [usize; 2],
    /// What this means.
    pub verdict: Verdict,
    /// For the picture.
    #[serde(skip)]
    pub profile: Profile,
}

impl Case {
    /// How often `progress` is called by [`run`](Self::run).
    pub(super) fn steps(runs: u32) -> u64 {
        2 * u64::from(runs.div_ceil(CHUNK))
    }

    /// Attacks that many victims with each data set.
    pub(super) fn run(
        &self,
        runs: u32,
        seed: u64,
        progress: &(dyn Fn() + Sync),
    ) -> Result<Attacked, AuditError> {
        let stage = self.scene.clone().stage();
        let (scores, claimed) = self.attack.on(&stage, runs, seed, progress)?;
        Ok(self.judge(&scores, claimed, runs))
    }

    /// Sets what scores show beside a claim.
    pub(super) fn judge(&self, scores: &Scores, claimed: Guarantee, runs: u32) -> Attacked {
        let lower = scores.lower(claimed.delta);
        let pair = |count: Count| [count.hits, count.trials];
        let verdict = if lower.epsilon > claimed.epsilon {
            Verdict::Fails
        } else if claimed.epsilon > ceiling(runs, claimed.delta) {
            Verdict::TooLarge
        } else if claimed.epsilon < 2.0 * resolution(runs) {
            Verdict::TooSmall
        } else {
            Verdict::Holds
        };
        Attacked {
            mechanism: in_words(&self.scene.mechanism, self.scene.problem.loss),
            attack: self.what.clone(),
            data_steps: self.scene.questions().len(),
            claimed,
            at_least: lower.epsilon,
            hits: pair(lower.hits),
            false_hits: pair(lower.false_hits),
            verdict,
            profile: scores.profile(),
        }
    }
}

impl Attacked {
    /// How much of the claim could be shown.
    pub fn share(&self) -> f64 {
        self.at_least / self.claimed.epsilon
    }
}

/// `objective gamma`.
fn in_words(mechanism: &Mechanism, loss: Loss) -> String {
    let law = |law: &Law| match law {
        Law::Gamma { .. } => "gamma",
        Law::Gaussian { .. } => "gaussian",
    };
    let words = match mechanism {
        Mechanism::None => "no noise".to_owned(),
        Mechanism::Objective {
            law: of,
            scale: Scaling::Fixed,
        } => format!("objective {}", law(of)),
        Mechanism::Objective {
            law: of,
            scale: Scaling::Penalty,
        } => format!("penalty-scaled {}", law(of)),
        Mechanism::Output { law: of } => format!("output {}", law(of)),
        Mechanism::Gradient { law: of } => format!("gradient {}", law(of)),
    };
    match loss {
        Loss::Logistic => words,
        Loss::SmoothHinge { .. } => format!("{words} hinge"),
    }
}
