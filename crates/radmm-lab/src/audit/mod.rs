//! Privacy audits: attacks on the real mechanism through its real code path, for a lower bound on ε beside the claimed upper
//! bound. docs/audit.md has the method and its meaning.
//!
//! The attacker is a neighbour who knows everything except which of two rows the victim has (`victim.rs`), and chooses messages
//! that make them matter most (`hostile_totals.rs` where sums are taken along a tree). He attacks many victims of either kind,
//! scores their releases (`attack.rs`, with the densities of `likelihood.rs`), and counts (`lower_bound.rs`, `binomial.rs`,
//! `gaussian_trade_off.rs`). Every other message of victims and honest parties is recomputed from earlier releases
//! (`output_verifier.rs`, `honest_run.rs`).

mod attack;
mod binomial;
mod builtin_cases;
mod case;
mod gaussian_trade_off;
mod honest_run;
mod hostile_totals;
mod likelihood;
mod lower_bound;
mod output_verifier;
mod study_cases;
#[cfg(test)]
mod tests;
mod victim;

use radmm::privacy::Guarantee;
use radmm_study::number_format;
use radmm_study::statement_text::Program;
use serde::Serialize;
use thiserror::Error;

use crate::experiment::Experiment;
use crate::instantiate::RunError;

use case::AuditCase;
pub use case::{AttackResult, AuditVerdict, TradeOffCurve};
pub use honest_run::HonestRun;
pub use lower_bound::{CONFIDENCE, ScoreProfile};
pub use victim::AttackError;

/// The smallest number of runs that shows anything.
pub const MIN_RUNS: u32 = 100;

/// The claims to be attacked and the runs to be verified.
pub struct Audit<'a> {
    study: Option<&'a Experiment>,
    cases: Vec<AuditCase>,
    verified: Vec<(String, Experiment)>,
    runs: u32,
    seed: u64,
}

/// The reason why an audit did not finish.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum AuditError {
    /// An attack failed.
    #[error("{attack}: {cause}")]
    Attack {
        /// The label of the attack.
        attack: String,
        /// The cause.
        cause: AttackError,
    },
    /// The honest parties cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// The result of an audit.
#[derive(Clone, Debug, Serialize)]
pub struct AuditResult {
    program: Program,
    /// The study's name, if one was audited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub study: Option<String>,
    /// The seed of the noise.
    pub seed: u64,
    /// The number of victims with each of the two data sets.
    pub runs: u32,
    /// The confidence of each lower bound.
    pub confidence: f64,
    /// The neighbouring relation of every ε.
    pub relation: &'static str,
    /// The claims that were attacked.
    #[serde(rename = "attacked")]
    pub attacks: Vec<AttackResult>,
    /// The runs whose messages were recomputed.
    #[serde(rename = "retraced")]
    pub honest_runs: Vec<HonestRun>,
}

impl<'a> Audit<'a> {
    /// Returns the audit of every mechanism, and of every algorithm that recycles. `runs` is the number of victims with each
    /// of two data sets, at least [`MIN_RUNS`].
    pub fn builtin(runs: u32, seed: u64) -> Self {
        Self {
            study: None,
            cases: builtin_cases::cases(),
            verified: builtin_cases::networks(),
            runs: runs.max(MIN_RUNS),
            seed,
        }
    }

    /// Returns the audit of a study: its mechanism at the prices of the party that pays most, and its messages.
    pub fn for_study(experiment: &'a Experiment, runs: u32, seed: u64) -> Result<Self, AuditError> {
        let runs = runs.max(MIN_RUNS);
        Ok(Self {
            study: Some(experiment),
            cases: study_cases::cases(experiment, runs).map_err(RunError::from)?,
            verified: Vec::new(),
            runs,
            seed,
        })
    }

    /// Returns an upper bound on the number of calls of `progress` by [`run`](Self::run).
    pub fn progress_steps(&self) -> u64 {
        let iterations = |of: &Experiment| u64::from(of.study().algorithm.iterations);
        let verified: u64 = self.verified().map(|(_, of)| iterations(of)).sum();
        self.cases.len() as u64 * AuditCase::progress_steps(self.runs) + verified
    }

    fn verified(&self) -> impl Iterator<Item = (String, &Experiment)> {
        let study = self.study.map(|of| {
            let name = of.study().algorithm.method.name();
            (name.to_owned(), of)
        });
        let others = self.verified.iter().map(|(name, of)| (name.clone(), of));
        study.into_iter().chain(others)
    }

    /// Attacks all cases and verifies all runs, on all threads of the current pool. The result is the same for any number of
    /// threads. `progress` is called with the label of the current work.
    pub fn run(&self, progress: &(dyn Fn(&str) + Sync)) -> Result<AuditResult, AuditError> {
        let mut attacks = Vec::new();
        for case in &self.cases {
            let outcome = case.run(self.runs, self.seed, &|| progress(&case.label));
            attacks.push(outcome.map_err(|cause| AuditError::Attack {
                attack: case.label.clone(),
                cause,
            })?);
        }
        let mut honest_runs = Vec::new();
        for (name, experiment) in self.verified() {
            let report = || progress(&name);
            honest_runs.push(honest_run::verify(experiment, name.clone(), &report)?);
        }
        Ok(AuditResult {
            program: Program::THIS,
            study: self.study.map(|of| of.study().name.clone()),
            seed: self.seed,
            runs: self.runs,
            confidence: CONFIDENCE,
            relation: Guarantee::RELATION,
            attacks,
            honest_runs,
        })
    }
}

impl AuditResult {
    /// Returns one line for each claim that was refuted.
    pub fn failures(&self) -> Vec<String> {
        let fails = |one: &&AttackResult| one.verdict == AuditVerdict::Fails;
        let attacks = self.attacks.iter().filter(fails).map(|one| {
            format!(
                "{}, {}: ε is at least {} with a confidence of 95 %, and {} is claimed at δ = {}",
                one.mechanism,
                one.attack,
                number_format::at_least(one.lower_bound),
                number_format::epsilon(one.claimed.epsilon),
                number_format::delta(one.claimed.delta)
            )
        });
        let unverified = self.honest_runs.iter().filter_map(|one| {
            let why = one.unverifiable.as_ref()?;
            Some(format!("{}, {why}", one.algorithm))
        });
        attacks.chain(unverified).collect()
    }
}
