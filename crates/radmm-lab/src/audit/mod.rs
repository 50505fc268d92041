//! Attacks on the real mechanism through its real code path: how much privacy is lost *at least*, beside what is claimed
//! at most. docs/audit.md says what is done and what it means.
//!
//! The attacker is a neighbour who knows everything but which of two rows his victim has (`scene.rs`). He meets many victims
//! of either kind, scores what they release (`attack.rs`, with the arithmetic of `plane.rs`), and counts (`scores.rs`,
//! `binomial.rs`). Whatever victims and honest parties say beside paid answers is computed again from earlier releases
//! (`retrace.rs`, `network.rs`).

mod attack;
mod binomial;
mod builtin;
mod case;
mod network;
mod plane;
mod retrace;
mod scene;
mod scores;
mod study;
#[cfg(test)]
mod tests;

use radmm::account::Guarantee;
use radmm_study::words::Program;
use serde::Serialize;
use thiserror::Error;

use crate::assemble::RunError;
use crate::experiment::Experiment;
use crate::shown;

use case::Case;
pub use case::{Attacked, Verdict};
pub use network::Retraced;
pub use scene::AuditError;
pub use scores::{CONFIDENCE, Profile};

/// The fewest runs that show anything.
pub const FEWEST_RUNS: u32 = 100;

/// What is to be attacked and followed.
pub struct Audit<'a> {
    study: Option<&'a Experiment>,
    cases: Vec<Case>,
    followed: Vec<(String, Experiment)>,
    runs: u32,
    seed: u64,
}

/// Why an audit did not come to an end.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Unaudited {
    /// An attack came to nothing.
    #[error("{what}: {cause}")]
    Attack {
        /// Which.
        what: String,
        /// Why.
        cause: AuditError,
    },
    /// Parties cannot be had.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// What came out.
#[derive(Clone, Debug, Serialize)]
pub struct Audited {
    program: Program,
    /// The study's name, if one was audited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub study: Option<String>,
    /// Of the noise.
    pub seed: u64,
    /// Victims with each of the two data sets.
    pub runs: u32,
    /// Of each lower bound.
    pub confidence: f64,
    /// Of every ε.
    pub relation: &'static str,
    /// Claims that were attacked.
    pub attacked: Vec<Attacked>,
    /// Runs whose messages were computed again.
    pub retraced: Vec<Retraced>,
}

impl<'a> Audit<'a> {
    /// Of every mechanism of the program, and every algorithm that recycles. `runs` are victims with each of two data
    /// sets, at least [`FEWEST_RUNS`].
    pub fn of_program(runs: u32, seed: u64) -> Self {
        Self {
            study: None,
            cases: builtin::cases(),
            followed: builtin::networks(),
            runs: runs.max(FEWEST_RUNS),
            seed,
        }
    }

    /// Of a study: its mechanism at the prices of its dearest party, and its messages.
    pub fn of_study(experiment: &'a Experiment, runs: u32, seed: u64) -> Result<Self, Unaudited> {
        let runs = runs.max(FEWEST_RUNS);
        Ok(Self {
            study: Some(experiment),
            cases: study::cases(experiment, runs).map_err(RunError::from)?,
            followed: Vec::new(),
            runs,
            seed,
        })
    }

    /// How often `progress` is called by [`run`](Self::run), at most.
    pub fn steps(&self) -> u64 {
        let iterations = |of: &Experiment| u64::from(of.study().algorithm.iterations);
        let followed: u64 = self.followed().map(|(_, of)| iterations(of)).sum();
        self.cases.len() as u64 * Case::steps(self.runs) + followed
    }

    fn followed(&self) -> impl Iterator<Item = (String, &Experiment)> {
        let study = self.study.map(|of| {
            let name = of.study().algorithm.method.name();
            (name.to_owned(), of)
        });
        let others = self.followed.iter().map(|(name, of)| (name.clone(), of));
        study.into_iter().chain(others)
    }

    /// Attacks and follows, on all threads of the current pool; the result is the same for any number. `progress` is told what
    /// is at work.
    pub fn run(&self, progress: &(dyn Fn(&str) + Sync)) -> Result<Audited, Unaudited> {
        let mut attacked = Vec::new();
        for case in &self.cases {
            let outcome = case.run(self.runs, self.seed, &|| progress(&case.what));
            attacked.push(outcome.map_err(|cause| Unaudited::Attack {
                what: case.what.clone(),
                cause,
            })?);
        }
        let mut retraced = Vec::new();
        for (name, experiment) in self.followed() {
            let telling = || progress(&name);
            retraced.push(network::follow(experiment, name.clone(), &telling)?);
        }
        Ok(Audited {
            program: Program::THIS,
            study: self.study.map(|of| of.study().name.clone()),
            seed: self.seed,
            runs: self.runs,
            confidence: CONFIDENCE,
            relation: Guarantee::RELATION,
            attacked,
            retraced,
        })
    }
}

impl Audited {
    /// What is wrong, a line each; nothing, if every claim withstood.
    pub fn failures(&self) -> Vec<String> {
        let fails = |one: &&Attacked| one.verdict == Verdict::Fails;
        let attacked = self.attacked.iter().filter(fails).map(|one| {
            format!(
                "{}, {}: ε is at least {} with a confidence of 95 %, and {} is claimed at δ = {}",
                one.mechanism,
                one.attack,
                shown::at_least(one.at_least),
                shown::epsilon(one.claimed.epsilon),
                one.claimed.delta
            )
        });
        let retraced = self.retraced.iter().filter_map(|one| {
            let why = one.untraceable.as_ref()?;
            Some(format!("{}, {why}", one.algorithm))
        });
        attacked.chain(retraced).collect()
    }
}
