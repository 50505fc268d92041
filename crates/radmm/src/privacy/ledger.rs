//! The ledger of one study at one party: charges under a budget, and proof of payment.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use thiserror::Error;

use super::composition::{Composition, log_down};
use super::dataset_account::{AccountRefusal, DatasetAccount};
use super::event::{Bound, PrivacyEvent};
use super::gaussian_composition;
use super::guarantee::Guarantee;
use super::profile::PrivacyProfile;

/// A limit on the total `ε`, stated at a `δ`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    pub(super) epsilon: f64,
    pub(super) delta: f64,
}

/// An invalid limit.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum InvalidBudget {
    /// ε must be positive and finite.
    #[error("invalid epsilon limit {0}: must be positive and finite")]
    Epsilon(f64),
    /// δ must be a probability below one.
    #[error("invalid delta {0}: must be at least 0 and below 1")]
    Delta(f64),
}

impl Budget {
    /// Creates a limit of `epsilon`, stated at `delta`.
    pub fn limited(epsilon: f64, delta: f64) -> Result<Self, InvalidBudget> {
        if !(epsilon.is_finite() && epsilon > 0.0) {
            return Err(InvalidBudget::Epsilon(epsilon));
        }
        Ok(Self {
            epsilon,
            ..Self::unlimited(delta)?
        })
    }

    /// Creates a budget without a limit; the total is stated at `delta`.
    pub fn unlimited(delta: f64) -> Result<Self, InvalidBudget> {
        if !(0.0..1.0).contains(&delta) {
            return Err(InvalidBudget::Delta(delta));
        }
        Ok(Self {
            epsilon: f64::INFINITY,
            delta,
        })
    }

    /// Returns the largest `μ` such that Gaussian answers with `Σ (sensitivity/σ)² = μ²` keep to this limit, rounded down; 0 for a
    /// limit at `δ = 0`, infinite without a limit.
    ///
    /// ```
    /// let total = radmm::privacy::Budget::limited(1.0, 1e-5)?;
    /// assert_eq!((1e4 * total.gaussian_mu()).floor(), 2680.0);
    /// # Ok::<(), radmm::privacy::InvalidBudget>(())
    /// ```
    pub fn gaussian_mu(&self) -> f64 {
        match self.delta == 0.0 && self.epsilon.is_finite() {
            true => 0.0,
            false => gaussian_composition::mu(self.epsilon, log_down(self.delta)),
        }
    }

    pub(super) fn as_guarantee(self) -> Guarantee {
        Guarantee {
            epsilon: self.epsilon,
            delta: self.delta,
        }
    }
}

/// The reason why a charge was refused.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SpendError {
    /// The total would exceed the limit.
    #[error(
        "the privacy limit epsilon = {limit} would be exceeded: {spent:.6} is spent, and with this release the total would be {total:.6}"
    )]
    OverBudget {
        /// The limit on ε.
        limit: f64,
        /// The total ε so far.
        spent: f64,
        /// The total ε with this release.
        total: f64,
    },
    /// The paper's theorem does not cover this release.
    #[error("the paper's bound does not apply: {reason}; use bound = \"tight\"")]
    PaperSilent {
        /// The condition that fails.
        reason: &'static str,
    },
    /// The account of the data set refused, whatever the study.
    #[error(transparent)]
    Account(#[from] AccountRefusal),
    /// The event has a NaN or negative quantity, or infinite noise.
    #[error(
        "the release cannot be priced: one of its quantities is negative, infinite or not a number"
    )]
    Malformed,
}

/// Proof that a release has been charged. Only a [`Ledger`] makes one, and answering consumes it.
///
/// ```compile_fail
/// let forged = radmm::privacy::Paid { event: radmm::privacy::IdealRelease::Exact.into() }; // private field
/// ```
pub struct Paid {
    event: PrivacyEvent,
}

impl Paid {
    /// Returns the event that was paid for.
    pub fn event(&self) -> &PrivacyEvent {
        &self.event
    }
}

/// Everything that a ledger was charged up to a moment, composed at one `δ`.
#[derive(Clone, Debug)]
pub(crate) struct LedgerState {
    delta: f64,
    charges: u32,
    total: Composition,
    /// ε of the total by our bound.
    tight: f64,
    /// ε of the total by the paper's bound; `None` once its theorem does not cover something.
    paper: Option<f64>,
    /// The total at several `δ`, once it was asked for: many ledgers share one state.
    profile: OnceLock<Option<Arc<PrivacyProfile>>>,
}

impl LedgerState {
    fn new(delta: f64) -> Self {
        Self {
            delta,
            charges: 0,
            total: Composition::empty_at(delta),
            tight: 0.0,
            paper: Some(0.0),
            profile: OnceLock::new(),
        }
    }

    /// Returns the state after one more charge.
    pub(crate) fn after(&self, event: &PrivacyEvent) -> Self {
        let mut next = self.clone();
        next.charge(event, 1);
        next.compose();
        next
    }

    /// Charges the same event `count` times, without composing.
    fn charge(&mut self, event: &PrivacyEvent, count: u32) {
        self.charges += count;
        self.total.add_times(event, count);
    }

    /// Brings the totals up to date with the charges.
    fn compose(&mut self) {
        self.tight = self.total.epsilon_after(self.tight, self.delta);
        self.paper = self.total.paper();
        self.profile = OnceLock::new();
    }

    /// Returns the total by our bound at several `δ`; `None` if it is pure or infinite.
    fn profile(&self) -> Option<Arc<PrivacyProfile>> {
        let compose = || {
            let total = |delta: f64| Guarantee {
                epsilon: match delta == self.delta {
                    true => self.tight,
                    false => self.total.epsilon(delta),
                },
                delta,
            };
            let stated = self.delta > 0.0 && self.tight.is_finite();
            stated.then(|| {
                Arc::new(PrivacyProfile {
                    mu: self.total.is_gaussian().then(|| self.total.mu()),
                    totals: PrivacyProfile::deltas(self.delta)
                        .into_iter()
                        .map(total)
                        .collect(),
                })
            })
        };
        self.profile.get_or_init(compose).clone()
    }

    fn spent(&self, bound: Bound) -> Guarantee {
        match bound {
            Bound::Tight => Guarantee {
                epsilon: self.tight,
                delta: self.delta,
            },
            // A ledger by the paper's bound refuses what the paper does not cover, so there is a total.
            Bound::Paper => Guarantee {
                epsilon: self.paper.unwrap_or(f64::INFINITY),
                delta: 0.0,
            },
        }
    }
}

/// A memo of ledger states. The simulator hands one to the ledgers of parties that are charged alike.
pub(crate) trait StateCache: Debug + Send + Sync {
    /// Returns [`LedgerState::after`] of `state`, from memory if it is known.
    fn after(&self, state: &Arc<LedgerState>, event: &PrivacyEvent) -> Arc<LedgerState>;
}

/// The charges of one party in one study, under a [`Budget`].
#[derive(Clone, Debug)]
pub struct Ledger {
    budget: Budget,
    bound: Bound,
    state: Arc<LedgerState>,
    cache: Option<Arc<dyn StateCache>>,
    account: Option<DatasetAccount>,
}

impl Ledger {
    /// Creates an empty ledger.
    pub fn new(budget: Budget, bound: Bound) -> Self {
        Self {
            budget,
            bound,
            state: Arc::new(LedgerState::new(budget.delta)),
            cache: None,
            account: None,
        }
    }

    /// Creates a ledger that was charged before, from its journal.
    ///
    /// Past charges are accepted even where they exceed the budget; then nothing more is released.
    pub fn resumed(
        budget: Budget,
        bound: Bound,
        journal: impl IntoIterator<Item = PrivacyEvent>,
    ) -> Result<Self, SpendError> {
        let mut ledger = Self::new(budget, bound);
        for event in journal {
            check(&event, bound)?;
            ledger.state = ledger.after(&event);
        }
        Ok(ledger)
    }

    /// Returns the total of charges, each with its count: a thousand equal ones take as much work as one.
    ///
    /// The result is that of a ledger charged one by one, but for a few roundings. The budget's ε is not enforced.
    pub fn total_of(
        budget: Budget,
        bound: Bound,
        charges: impl IntoIterator<Item = (PrivacyEvent, u32)>,
    ) -> Result<Guarantee, SpendError> {
        Ok(Self::state_of(budget, bound, charges)?.spent(bound))
    }

    /// Returns the profile of charges, each with its count; see [`profile`](Self::profile).
    pub fn profile_of(
        budget: Budget,
        bound: Bound,
        charges: impl IntoIterator<Item = (PrivacyEvent, u32)>,
    ) -> Result<Option<PrivacyProfile>, SpendError> {
        let state = Self::state_of(budget, bound, charges)?;
        let profile = state.profile().filter(|_| bound == Bound::Tight);
        Ok(profile.map(|profile| (*profile).clone()))
    }

    fn state_of(
        budget: Budget,
        bound: Bound,
        charges: impl IntoIterator<Item = (PrivacyEvent, u32)>,
    ) -> Result<LedgerState, SpendError> {
        let mut state = LedgerState::new(budget.delta);
        for (event, count) in charges {
            check(&event, bound)?;
            state.charge(&event, count);
        }
        state.compose();
        Ok(state)
    }

    /// Looks states up in a memo from now on.
    pub(crate) fn set_cache(&mut self, cache: Arc<dyn StateCache>) {
        self.cache = Some(cache);
    }

    /// Goes on from the state and the memo of another empty ledger with the same limit and bound; `false` if they differ.
    pub(crate) fn adopt_states(&mut self, other: &Self) -> bool {
        let alike = self.budget == other.budget && self.bound == other.bound;
        let adopts = alike && self.charges() == 0 && other.charges() == 0;
        if adopts {
            (self.state, self.cache) = (other.state.clone(), other.cache.clone());
        }
        adopts
    }

    fn after(&self, event: &PrivacyEvent) -> Arc<LedgerState> {
        match &self.cache {
            Some(cache) => cache.after(&self.state, event),
            None => Arc::new(self.state.after(event)),
        }
    }

    /// Charges the account of the data set too, from now on.
    ///
    /// Earlier charges of this ledger are taken to be on that account already: a resumed study joins with its charges, a new
    /// one joins empty.
    pub fn with_account(self, account: &DatasetAccount) -> Self {
        Self {
            account: Some(account.clone()),
            ..self
        }
    }

    /// Charges one release to this study and to its data set, or refuses and changes nothing.
    pub fn spend(&mut self, event: PrivacyEvent) -> Result<Paid, SpendError> {
        check(&event, self.bound)?;
        let after = self.after(&event);
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
        if let Some(account) = &self.account {
            account.charge(&event, self.charges() == 0)?;
        }
        // Nothing fails any more: both are charged.
        self.state = after;
        Ok(Paid { event })
    }

    /// Returns proof of payment for an event on record, to answer it again: only where noise repeats, and so protects nobody.
    pub(crate) fn paid_before(&self, event: PrivacyEvent, noise_repeats: bool) -> Option<Paid> {
        noise_repeats.then_some(Paid { event })
    }

    #[cfg(test)]
    pub(crate) fn shares_state_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Returns the number of releases charged.
    pub fn charges(&self) -> u32 {
        self.state.charges
    }

    /// Returns the total so far, by the bound of this ledger.
    pub fn spent(&self) -> Guarantee {
        self.state.spent(self.bound)
    }

    /// Returns the total so far by our bound.
    pub fn spent_tight(&self) -> Guarantee {
        self.state.spent(Bound::Tight)
    }

    /// Returns the total so far at several `δ`, the budget's among them; `None` if the budget is at `δ = 0`, the bound is the
    /// paper's, or the total infinite.
    pub fn profile(&self) -> Option<Arc<PrivacyProfile>> {
        self.state.profile().filter(|_| self.bound == Bound::Tight)
    }

    /// Returns the total so far by the paper's bound, if something was released and its theorem covers all of it.
    pub fn spent_paper(&self) -> Option<Guarantee> {
        let covered = self.state.paper.filter(|_| self.charges() > 0);
        covered.map(|epsilon| Guarantee {
            epsilon,
            delta: 0.0,
        })
    }
}

/// Checks that an event can be priced by a bound.
fn check(event: &PrivacyEvent, bound: Bound) -> Result<(), SpendError> {
    if !event.is_well_formed() {
        return Err(SpendError::Malformed);
    }
    match (bound, event.paper_loss()) {
        (Bound::Paper, Err(reason)) => Err(SpendError::PaperSilent { reason }),
        _ => Ok(()),
    }
}
