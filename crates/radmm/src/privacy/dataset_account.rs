//! The account of one data set over all studies that use it.
//!
//! A study's budget ends with the study; the rows remain, and so does what has been learnt of them. A [`DatasetAccount`] adds up
//! what every study on the same rows was charged, under limits that none of them can raise. Ledgers join it by
//! [`Ledger::with_account`](super::Ledger::with_account): a release is charged to its study and to the data set, or to neither.
//!
//! Privacy: the releases of several studies on the same rows, at once or one after the other, are one long adaptive
//! composition, and are priced as such: by our bound, whatever bound a study shows. Later studies may be designed by what
//! earlier ones released, their prices too. So at `δ > 0` the best way to add up cannot be taken afterwards: a limit has one
//! Rényi order, which it fixes itself, and pure losses beside it.
//!
//! The account is in memory. What a node gives out to be recorded ([`Output::Record`](crate::node::Output)) is the
//! journal from which [`DatasetAccount::replay`] makes it anew; a charge is on record before its release leaves.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use thiserror::Error;

use super::composition::{Composition, order_for};
use super::{Budget, Guarantee, InvalidBudget, PrivacyEvent, SpendError};

/// The limits on everything spent on a data set: a pure one, one at a `δ`, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct DatasetLimits {
    budgets: Vec<Budget>,
    /// The Rényi order of the limit at a `δ`.
    order: f64,
}

/// Invalid limits of a data set.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum InvalidLimits {
    /// No limit was given.
    #[error("there is no limit; give a pure epsilon, or an epsilon and a delta, or both")]
    Missing,
    /// A limit with `δ = 0` was not given as a pure one.
    #[error("delta = 0 makes a pure limit; give it as such, or a delta above 0 and below 1")]
    NoDelta,
    /// ε or δ out of range.
    #[error(transparent)]
    Budget(#[from] InvalidBudget),
}

impl DatasetLimits {
    /// Creates limits of `pure` at `δ = 0` and of `relaxed.0` at `δ = relaxed.1`; at least one must be given.
    pub fn new(pure: Option<f64>, relaxed: Option<(f64, f64)>) -> Result<Self, InvalidLimits> {
        let mut limits = Vec::new();
        if let Some(epsilon) = pure {
            limits.push(Budget::limited(epsilon, 0.0)?);
        }
        if let Some((epsilon, delta)) = relaxed {
            if delta == 0.0 {
                return Err(InvalidLimits::NoDelta);
            }
            limits.push(Budget::limited(epsilon, delta)?);
        }
        if limits.is_empty() {
            return Err(InvalidLimits::Missing);
        }
        let relaxed = limits.iter().find(|limit| limit.delta > 0.0);
        Ok(Self {
            order: relaxed.map_or(f64::INFINITY, |limit| order_for(limit.epsilon, limit.delta)),
            budgets: limits,
        })
    }

    /// Returns the Rényi order at which the limit at a `δ` is kept; infinite without such a limit.
    pub fn order(&self) -> f64 {
        self.order
    }

    /// Returns the same limits, kept at the order of those that were set first.
    // Privacy: the order must not depend on what was released. A limit that is changed later, having seen releases, keeps it:
    // then what is promised is the largest limit that was ever set.
    pub fn at_order(self, order: f64) -> Self {
        Self { order, ..self }
    }
}

/// The reason why the account of a data set refused a charge.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum AccountRefusal {
    /// The total over all studies would exceed a limit.
    #[error(
        "the data set's limit epsilon = {} at delta = {:?} would be exceeded: {spent:.6} was spent by {studies} {}, and with this release the total would be {total:.6}",
        limit.epsilon,
        limit.delta,
        if *studies == 1 { "study" } else { "studies" }
    )]
    OverLimit {
        /// The limit that would be exceeded.
        limit: Guarantee,
        /// The total ε so far, at the limit's δ.
        spent: f64,
        /// The number of studies that were charged.
        studies: u32,
        /// The total ε with this release.
        total: f64,
    },
    /// A charge was interrupted by a panic, so the total is not known.
    #[error(
        "a charge to the data set's account was interrupted; rebuild the account from its journal before anything is released"
    )]
    Broken,
}

/// The totals of a data set's account.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountTotals {
    /// The total for each limit, the pure one first.
    pub totals: Vec<Guarantee>,
    /// The number of releases charged.
    pub charges: u64,
    /// The number of studies that were charged.
    pub studies: u32,
}

/// The account of one data set; clones are handles to the same account.
#[derive(Clone, Debug)]
pub struct DatasetAccount(Arc<Mutex<Account>>);

#[derive(Clone, Debug)]
struct Account {
    lines: Vec<LimitStatus>,
    total: Composition,
    charges: u64,
    studies: u32,
}

/// A limit, and the total ε at its δ.
#[derive(Clone, Copy, Debug)]
struct LimitStatus {
    limit: Budget,
    /// The Rényi order; unused by a pure limit.
    order: f64,
    spent: f64,
}

impl DatasetAccount {
    /// Creates the account of a data set that no study has used yet.
    pub fn new(limits: DatasetLimits) -> Self {
        let order = limits.order;
        let fresh = |limit: Budget| LimitStatus {
            limit,
            order,
            spent: 0.0,
        };
        Self(Arc::new(Mutex::new(Account {
            lines: limits.budgets.into_iter().map(fresh).collect(),
            total: Composition::empty(),
            charges: 0,
            studies: 0,
        })))
    }

    /// Creates the account from a journal of study numbers and charges, in the order in which they were made.
    ///
    /// Past charges are accepted even where they exceed the limits; then nothing more is released.
    pub fn replay(
        limits: DatasetLimits,
        journal: impl IntoIterator<Item = (u32, PrivacyEvent)>,
    ) -> Result<Self, SpendError> {
        let new = Self::new(limits);
        let mut studies = BTreeSet::new();
        let mut account = new.account()?;
        for (study, event) in journal {
            if !event.is_well_formed() {
                return Err(SpendError::Malformed);
            }
            *account = account.after(&event, studies.insert(study));
        }
        drop(account);
        Ok(new)
    }

    /// Returns what was spent so far.
    pub fn spent(&self) -> Result<AccountTotals, AccountRefusal> {
        let account = self.account()?;
        Ok(AccountTotals {
            totals: account.lines.iter().map(LimitStatus::spent).collect(),
            charges: account.charges,
            studies: account.studies,
        })
    }

    /// Charges one release, or refuses and changes nothing.
    pub(super) fn charge(
        &self,
        event: &PrivacyEvent,
        new_study: bool,
    ) -> Result<(), AccountRefusal> {
        let mut account = self.account()?;
        let after = account.after(event, new_study);
        for (line, before) in after.lines.iter().zip(&account.lines) {
            // Written so that a NaN is refused.
            let within = line.spent <= line.limit.epsilon;
            if !within {
                return Err(AccountRefusal::OverLimit {
                    limit: line.limit.as_guarantee(),
                    spent: before.spent,
                    studies: account.studies,
                    total: line.spent,
                });
            }
        }
        *account = after;
        Ok(())
    }

    // Privacy: a lock that was held when its holder panicked guards an account that may lack a charge. It stays shut.
    fn account(&self) -> Result<MutexGuard<'_, Account>, AccountRefusal> {
        self.0.lock().map_err(|_| AccountRefusal::Broken)
    }
}

impl Account {
    fn after(&self, event: &PrivacyEvent, new_study: bool) -> Self {
        let mut after = self.clone();
        after.total.add(event);
        after.charges += 1;
        after.studies += u32::from(new_study);
        for line in &mut after.lines {
            let spent = match line.limit.delta == 0.0 {
                true => after.total.epsilon(0.0),
                false => after.total.epsilon_at_order(line.order, line.limit.delta),
            };
            // Until the order's conversion is paid for, pure losses are less; a total never shrinks. A NaN stays one.
            line.spent = if spent < line.spent {
                line.spent
            } else {
                spent
            };
        }
        after
    }
}

impl LimitStatus {
    fn spent(&self) -> Guarantee {
        Guarantee {
            epsilon: self.spent,
            delta: self.limit.delta,
        }
    }
}

#[cfg(test)]
mod tests;
