//! One case of an audit: a mechanism, an attack on it, the claimed ε and the lower bound that the attack shows.

use radmm::privacy::{Guarantee, Mechanism, NoiseDistribution, NoiseScaling};
use radmm::problem::Loss;
use radmm_study::Method;
use serde::Serialize;

use super::attack::{Attack, RUNS_PER_REPORT};
use super::binomial::BinomialCount;
use super::lower_bound::{ScoreProfile, Scores, TradeOff, ceiling, resolution};
use super::victim::{AttackError, LedgerClaim, VictimConfig};

/// A victim and the attack on it.
pub(super) struct AuditCase {
    pub victim: VictimConfig,
    pub attack: Attack,
    /// The attack in words.
    pub label: String,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditVerdict {
    /// The claim withstood an attack that could have refuted it.
    Holds,
    /// The claimed ε is too small to show in so few runs.
    TooSmall,
    /// The claimed ε is larger than so few runs can ever show.
    TooLarge,
    /// The attack shows more than was claimed: the mechanism, its price or the ledger is wrong.
    Fails,
}

/// The curve by which a claim bounds the probabilities of events, and counts bound ε.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TradeOffCurve {
    /// `p ≤ e^ε·p′ + δ`.
    EpsilonDelta,
    /// The curve of Gaussian noise on answers, `p ≤ Φ(Φ⁻¹(p′) + μ)`, stated as the ε of `μ` at `δ`.
    Gaussian,
}

/// The result of an attack on a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttackResult {
    /// The place of the noise, its distribution, and the loss.
    pub mechanism: String,
    /// The attack in words.
    pub attack: String,
    /// The number of queries.
    pub data_steps: usize,
    /// The guarantee in the party's own ledger.
    #[serde(flatten)]
    pub claimed: Guarantee,
    /// The lower bound on ε, with a confidence of 95 %.
    #[serde(rename = "at_least")]
    pub lower_bound: f64,
    /// The victims with one data set that are in the event which shows the bound, and the number of all of them.
    pub hits: [usize; 2],
    /// The same for the victims with the other data set.
    pub false_hits: [usize; 2],
    /// The curve by which the counts bound ε.
    pub curve: TradeOffCurve,
    /// The verdict.
    pub verdict: AuditVerdict,
    /// The distribution of the scores, for a plot.
    #[serde(skip)]
    pub profile: ScoreProfile,
}

impl AuditCase {
    /// Returns the number of calls of `progress` by [`run`](Self::run).
    pub(super) fn progress_steps(runs: u32) -> u64 {
        2 * u64::from(runs.div_ceil(RUNS_PER_REPORT))
    }

    /// Attacks `runs` victims with each data set.
    pub(super) fn run(
        &self,
        runs: u32,
        seed: u64,
        progress: &(dyn Fn() + Sync),
    ) -> Result<AttackResult, AttackError> {
        let victim = self.victim.clone().prepare();
        let (scores, claim) = self.attack.on(&victim, runs, seed, progress)?;
        Ok(self.judge(&scores, claim, runs))
    }

    /// Compares the bound that scores show with a claim.
    pub(super) fn judge(&self, scores: &Scores, claim: LedgerClaim, runs: u32) -> AttackResult {
        let LedgerClaim {
            total: claimed,
            trade_off,
        } = claim;
        let bound = scores.lower_bound(trade_off);
        let pair = |count: BinomialCount| [count.hits, count.trials];
        let verdict = if bound.epsilon > claimed.epsilon {
            AuditVerdict::Fails
        } else if claimed.epsilon > ceiling(runs, trade_off) {
            AuditVerdict::TooLarge
        } else if claimed.epsilon < 2.0 * resolution(runs, trade_off) {
            AuditVerdict::TooSmall
        } else {
            AuditVerdict::Holds
        };
        AttackResult {
            mechanism: mechanism_text(&self.victim),
            attack: self.label.clone(),
            data_steps: self.victim.queries().len(),
            claimed,
            lower_bound: bound.epsilon,
            hits: pair(bound.hits),
            false_hits: pair(bound.false_hits),
            curve: match trade_off {
                TradeOff::EpsilonDelta { .. } => TradeOffCurve::EpsilonDelta,
                TradeOff::Gaussian { .. } => TradeOffCurve::Gaussian,
            },
            verdict,
            profile: scores.profile(),
        }
    }
}

impl AttackResult {
    /// Returns the share of the claim that the attack shows.
    pub fn share(&self) -> f64 {
        self.lower_bound / self.claimed.epsilon
    }
}

/// Returns a mechanism in words, as in `objective gamma`.
fn mechanism_text(victim: &VictimConfig) -> String {
    let sums = matches!(victim.method, Method::Consensus { .. });
    let law = |law: &NoiseDistribution| law.family().name();
    let words = match &victim.mechanism {
        Mechanism::None => "no noise".to_owned(),
        Mechanism::Objective {
            law: of,
            scale: NoiseScaling::Fixed,
        } => format!("objective {}", law(of)),
        Mechanism::Objective {
            law: of,
            scale: NoiseScaling::Penalty,
        } => format!("penalty-scaled {}", law(of)),
        Mechanism::Output { law: of } => format!("output {}", law(of)),
        Mechanism::Gradient { law: of } if sums => format!("sum {}", law(of)),
        Mechanism::Gradient { law: of } => format!("gradient {}", law(of)),
    };
    match victim.problem.loss {
        Loss::Logistic => words,
        Loss::SmoothHinge { .. } => format!("{words} hinge"),
        Loss::CutLogistic => format!("{words} cut"),
    }
}
