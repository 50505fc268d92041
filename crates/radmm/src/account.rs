//! What happened to the rows, and what it cost.
//!
//! An [`Event`] says what was released, in public quantities. A [`Ledger`] adds events up under a [`Budget`] and refuses
//! the one that would exceed it; only it can make the [`Paid`] token without which a curator does not answer. What has been
//! spent is a [`Guarantee`] over *everything* released so far. A [`Site`] adds up what all studies spent on one data set.
//!
//! Privacy: two data sets are neighbours if one row of one party is replaced; the number of rows is public. A row belongs
//! to one party, so the network's loss is the largest of the parties', and a party's is composed over its releases.
//! With `S = 2C/B` the sensitivity of the gradient, `m` the strong convexity of the question and `x = C·c₁/(B·m)`:
//!
//! | event | pure loss | Rényi loss of order q, `v = S/σ`, `k = (q−1)v` | exact loss |
//! |---|---|---|---|
//! | objective perturbation, tight | `S·α + ln(1 + x)` | `ln(1+x) + v²/2 + ln(½ + e^{k²/2} Φ(k))/(q−1)` | – |
//! | the same, as in the paper | `S·α + 2.8x`, if `x < ½` | – | – |
//! | noise added to the answer | `S'·α`, `S'` the answer's sensitivity | `q·v²/2`, `v = S'/σ` | normal, mean `v²/2`, variance `v²` |
//!
//! What rounding adds is `κ`: `2κ` to a pure loss, `2κ + κ/(q−1)` to a Rényi loss. There are three ways to add up:
//!
//! | way | for | total |
//! |---|---|---|
//! | pure | gamma noise | `Σ ε_i`, at any `δ` |
//! | Rényi | everything with noise | `min_q RDP(q) + ln(1 − 1/q) − (ln δ + ln q)/(q−1)`, Rényi losses adding up at each order |
//! | exact | noise added to answers, and pure losses beside it | `Σ ε_i + 2K +` the `ε` with `Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) = δ·e^{−K}`, `μ² = Σ v²`, `K = Σ κ` over Gaussian answers |
//!
//! Each is a bound for the same transcript. Prices do not depend on what was released, and so neither does which of them is
//! least: the best way, and the best order of the second, may be taken afterwards.
//! The proofs are in docs/privacy.md. All arithmetic here rounds up.

#[cfg(test)]
mod actual;
mod book;
mod cost;
mod gaussian;
mod guarantee;
mod site;
#[cfg(test)]
mod tests;
mod total;

use std::sync::Arc;

use serde::Serialize;
use thiserror::Error;

use crate::private::{Law, NoiseKey};
use book::Book;
use cost::slack_of;
pub(crate) use cost::up;
pub use guarantee::Guarantee;
pub use site::{BadLimits, Limits, Site, SiteRefusal, Spent};

/// Which proof prices objective perturbation with gamma noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Ours: no side condition, and never more than the paper's.
    Tight,
    /// The paper's Theorem IV.1, where its side condition holds.
    Paper,
}

/// One release, described by public quantities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// What was released, were there no rounding.
    pub ideal: Ideal,
    /// `κ`: no release is more than `e^κ` times as likely or unlikely in the program as in the ideal.
    pub slack: f64,
}

/// A release in real numbers, with exact minimisers and exact noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ideal {
    /// An answer without noise: no finite bound.
    Exact,
    /// The minimiser of an objective with a random linear term.
    Objective {
        /// `S`, how far one row can move the gradient.
        sensitivity: f64,
        /// `x = C·c₁/(B·m)`, how far one row can move the Hessian's determinant.
        spread: f64,
        /// Whether the loss's slope has one sign.
        one_signed: bool,
        /// Of the linear term.
        law: Law,
    },
    /// An exact answer plus noise.
    Additive {
        /// How far one row can move the answer.
        sensitivity: f64,
        /// Of the noise.
        law: Law,
    },
}

/// A party's own limit. No study can raise it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    epsilon: f64,
    delta: f64,
}

/// A budget that is none.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum BadBudget {
    /// ε must be positive and finite.
    #[error("a privacy limit of epsilon = {0} is none; it must be positive and finite")]
    Epsilon(f64),
    /// δ must be a probability below one.
    #[error("delta = {0} is out of range; it must be at least 0 and below 1")]
    Delta(f64),
}

impl Budget {
    /// At most `epsilon`, stated at `delta`.
    pub fn limited(epsilon: f64, delta: f64) -> Result<Self, BadBudget> {
        if !(epsilon.is_finite() && epsilon > 0.0) {
            return Err(BadBudget::Epsilon(epsilon));
        }
        Ok(Self {
            epsilon,
            ..Self::unlimited(delta)?
        })
    }

    /// No limit; what is spent is stated at `delta`.
    pub fn unlimited(delta: f64) -> Result<Self, BadBudget> {
        if !(0.0..1.0).contains(&delta) {
            return Err(BadBudget::Delta(delta));
        }
        Ok(Self {
            epsilon: f64::INFINITY,
            delta,
        })
    }

    fn as_guarantee(self) -> Guarantee {
        Guarantee {
            epsilon: self.epsilon,
            delta: self.delta,
        }
    }
}

/// Why a charge was not taken.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum SpendError {
    /// The total would exceed the limit.
    #[error(
        "the privacy limit epsilon = {limit} would be exceeded: {spent:.6} is spent, and with this release the total would be {total:.6}"
    )]
    OverBudget {
        /// The party's own limit.
        limit: f64,
        /// ε so far.
        spent: f64,
        /// ε if this had been released too.
        total: f64,
    },
    /// The paper's theorem says nothing about this release.
    #[error("the paper's bound does not apply: {reason}; use bound = \"tight\"")]
    PaperSilent {
        /// Which of its conditions fails.
        reason: &'static str,
    },
    /// The data set has been asked enough, by whatever study.
    #[error(transparent)]
    Site(#[from] SiteRefusal),
    /// A NaN or negative quantity somewhere in the event, or infinite noise.
    #[error(
        "the release cannot be priced: one of its quantities is negative, infinite or not a number"
    )]
    Malformed,
}

/// Proof that a release has been charged. Only a [`Ledger`] makes one, and answering consumes it.
///
/// ```compile_fail
/// let forged = radmm::account::Paid { event: radmm::account::Ideal::Exact.into() }; // private field
/// ```
pub struct Paid {
    event: Event,
}

impl Paid {
    /// What was paid for.
    pub fn event(&self) -> &Event {
        &self.event
    }
}

/// What one party has released about its rows.
///
/// Clones that are charged the same share what they know of it, and what it cost is computed once for all of them: a
/// simulation gives its parties clones of one empty ledger.
#[derive(Clone, Debug)]
pub struct Ledger {
    budget: Budget,
    bound: Bound,
    book: Arc<Book>,
    site: Option<Site>,
}

impl Ledger {
    /// An empty ledger.
    pub fn new(budget: Budget, bound: Bound) -> Self {
        Self {
            budget,
            bound,
            book: Arc::new(Book::new(budget.delta)),
            site: None,
        }
    }

    /// A ledger that was charged before, as its journal says. What has happened is booked even where it exceeds the budget; then
    /// nothing more will be released.
    pub fn resumed(
        budget: Budget,
        bound: Bound,
        journal: impl IntoIterator<Item = Event>,
    ) -> Result<Self, SpendError> {
        let mut ledger = Self::new(budget, bound);
        for event in journal {
            check(&event, bound)?;
            ledger.book = ledger.book.after(&event);
        }
        Ok(ledger)
    }

    /// The total of all these charges by a bound, each as often as it says: as much work for a thousand equal ones as for one.
    /// It is what a ledger comes to that is charged one after the other, but for a few roundings. The budget's limit has no
    /// part in it.
    pub fn total_of(
        budget: Budget,
        bound: Bound,
        charges: impl IntoIterator<Item = (Event, u32)>,
    ) -> Result<Guarantee, SpendError> {
        let mut book = Book::new(budget.delta);
        for (event, count) in charges {
            check(&event, bound)?;
            book.enter(&event, count);
        }
        book.add_up();
        Ok(book.spent(bound))
    }

    /// Charges the data set's account too, from now on. What this ledger was charged before is taken to be on that account
    /// already: a study that goes on after its journal was replayed joins with its charges, a new one joins empty.
    pub fn at(self, site: &Site) -> Self {
        Self {
            site: Some(site.clone()),
            ..self
        }
    }

    /// Charges one release, to this study and to its data set, or refuses and leaves everything as it was.
    pub fn spend(&mut self, event: Event) -> Result<Paid, SpendError> {
        check(&event, self.bound)?;
        let after = self.book.after(&event);
        let total = after.spent(self.bound).epsilon;
        // Written so that a NaN is refused.
        let within = total <= self.budget.epsilon;
        if !within {
            return Err(SpendError::OverBudget {
                limit: self.budget.epsilon,
                spent: self.spent().epsilon,
                total,
            });
        }
        if let Some(site) = &self.site {
            site.book(&event, self.charges() == 0)?;
        }
        // Nothing fails any more: both are booked.
        self.book = after;
        Ok(Paid { event })
    }

    /// Proof for an event that is on record, to go through it again: only where noise repeats, and so protects nobody.
    pub(crate) fn paid_before(&self, event: Event, noise: &NoiseKey) -> Option<Paid> {
        noise.repeats().then_some(Paid { event })
    }

    /// How many releases were charged.
    pub fn charges(&self) -> u32 {
        self.book.charges()
    }

    /// The total so far, by the bound of this ledger.
    pub fn spent(&self) -> Guarantee {
        self.book.spent(self.bound)
    }

    /// The total so far by our bound.
    pub fn spent_tight(&self) -> Guarantee {
        self.book.spent(Bound::Tight)
    }

    /// The total so far by the paper's bound, if something was released and its theorem covers all of it.
    pub fn spent_paper(&self) -> Option<Guarantee> {
        let covered = self.book.paper().filter(|_| self.charges() > 0);
        covered.map(|epsilon| Guarantee {
            epsilon,
            delta: 0.0,
        })
    }
}

/// Whether an event can be priced by a bound.
fn check(event: &Event, bound: Bound) -> Result<(), SpendError> {
    if !event.is_well_formed() {
        return Err(SpendError::Malformed);
    }
    match (bound, event.paper_loss()) {
        (Bound::Paper, Err(reason)) => Err(SpendError::PaperSilent { reason }),
        _ => Ok(()),
    }
}

impl From<Ideal> for Event {
    fn from(ideal: Ideal) -> Self {
        Self { ideal, slack: 0.0 }
    }
}

impl Event {
    /// A release on the grid, whose rounding costs at most a thousandth of its price.
    pub fn on_grid(ideal: Ideal) -> Self {
        let slack = match ideal {
            Ideal::Exact => 0.0,
            _ => slack_of(&ideal),
        };
        Self { ideal, slack }
    }

    /// A release in doubles: nothing bounds what their last digits tell.
    pub fn in_doubles(ideal: Ideal) -> Self {
        Self {
            ideal,
            slack: f64::INFINITY,
        }
    }

    fn is_well_formed(&self) -> bool {
        self.slack >= 0.0 && self.ideal.is_well_formed()
    }
}

impl Ideal {
    fn is_well_formed(&self) -> bool {
        let law_is = |law: &Law| match *law {
            Law::Gamma { rate } => rate > 0.0 && rate.is_finite(),
            Law::Gaussian { sigma } => sigma > 0.0 && sigma.is_finite(),
        };
        match self {
            Self::Exact => true,
            Self::Objective {
                sensitivity,
                spread,
                law,
                ..
            } => *sensitivity >= 0.0 && *spread >= 0.0 && law_is(law),
            Self::Additive { sensitivity, law } => *sensitivity >= 0.0 && law_is(law),
        }
    }
}
