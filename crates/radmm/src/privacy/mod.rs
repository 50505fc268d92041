//! Privacy accounting: prices, composition, ledgers and guarantees.
//!
//! A [`PrivacyEvent`] describes a release in public quantities; a [`Mechanism`] prices a question as such an event. A [`Ledger`]
//! composes events under a [`Budget`] and refuses the one that would exceed it. Only a ledger makes the [`Paid`] token without
//! which a curator does not answer. The total is a [`Guarantee`] over *everything* released so far. A [`DatasetAccount`] is
//! charged by all studies on one data set.
//!
//! Nothing here sees rows: prices and totals are functions of public facts.
//!
//! Privacy: two data sets are neighbours if one row of one party is replaced; the number of rows is public. A row belongs
//! to one party, so the network's loss is the largest of the parties', and a party's is composed over its releases.
//! With `S = 2C/B` the sensitivity of the gradient, `m` the strong convexity of the question and `x = C·c₁/(B·m)`:
//!
//! | event | pure loss | Rényi loss of order q, `v = S/σ`, `k = (q−1)v` | exact loss |
//! |---|---|---|---|
//! | objective perturbation, tight | `S·α/2 + max_s [S·α/2·s + ln(1 + x·k(s))]`, `k(s)` the curvature at slope `s` | the lesser of `ln(1+x) + v²/2 + ln(½ + e^{k²/2} Φ(k))/(q−1)` and, if `(q−1)x < 1`, `q·v²/2 − ln(1 − q(q−1)x²/(1+x))/(q−1)` | – |
//! | the same, as in the paper | `S·α + 2.8x`, if `x < ½` | – | – |
//! | noise added to the answer | `S'·α`, `S'` the answer's sensitivity | `q·v²/2`, `v = S'/σ` | normal, mean `v²/2`, variance `v²` |
//!
//! Rounding adds `κ`: `2κ` to a pure loss, `2κ + κ/(q−1)` to a Rényi loss. There are three composition rules:
//!
//! | rule | for | total |
//! |---|---|---|
//! | pure | gamma noise | `Σ ε_i`, at any `δ` |
//! | Rényi | everything with noise | `min_q RDP(q) + ln(1 − 1/q) − (ln δ + ln q)/(q−1)`, Rényi losses adding up at each order |
//! | exact | noise added to answers, and pure losses beside it | `Σ ε_i + 2K +` the `ε` with `Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) = δ·e^{−K}`, `μ² = Σ v²`, `K = Σ κ` over Gaussian answers |
//!
//! Each is a bound for the same transcript. Prices do not depend on what was released, and so neither does which of them is
//! least: the best way, and the best order of the second, may be taken afterwards.
//! The proofs are in docs/privacy.md. All arithmetic here rounds up.

mod composition;
mod dataset_account;
mod event;
mod gaussian_composition;
mod gaussian_filter;
#[cfg(test)]
mod golden_prices;
mod guarantee;
mod ledger;
mod mechanism;
mod noise_distribution;
#[cfg(test)]
mod numerical_check;
mod privacy_loss;
mod profile;
mod slope_curve;
#[cfg(test)]
mod tests;

pub use dataset_account::{
    AccountRefusal, AccountTotals, DatasetAccount, DatasetLimits, GaussianTotal, InvalidLimits,
    SiteAccounting,
};
pub use event::{Bound, IdealRelease, PrivacyEvent};
pub use guarantee::Guarantee;
pub use ledger::{Budget, InvalidBudget, Ledger, Paid, SpendError};
pub(crate) use ledger::{LedgerState, StateCache};
pub use mechanism::{Mechanism, NoiseScaling, Unanswerable};
pub use noise_distribution::{NoiseDistribution, NoiseFamily};
pub(crate) use privacy_loss::up;
pub use profile::PrivacyProfile;
pub use slope_curve::SlopeCurve;
