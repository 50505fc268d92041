//! The account of one data set over all studies that use it.
//!
//! A study's budget ends with the study; the rows remain, and so does what has been learnt of them. A [`DatasetAccount`] adds up
//! what every study on the same rows was charged, under limits that none of them can raise. Ledgers share it by
//! [`Ledger::at`](super::Ledger::at): a release is charged to its study and to the site, or to neither.
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

/// What may be spent on a data set in all: a pure limit, one at a `δ`, or both, and then within both.
#[derive(Clone, Debug, PartialEq)]
pub struct DatasetLimits {
    budgets: Vec<Budget>,
    /// Of Rényi losses, for the limit at a `δ`.
    order: f64,
}

/// DatasetLimits that limit nothing.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum InvalidLimits {
    /// A site without a limit needs no account.
    #[error("there is no limit; give a pure epsilon, or an epsilon and a delta, or both")]
    Missing,
    /// Only a pure limit has no δ.
    #[error("delta = 0 makes a pure limit; give it as such, or a delta above 0 and below 1")]
    NoDelta,
    /// ε or δ out of range.
    #[error(transparent)]
    Budget(#[from] InvalidBudget),
}

impl DatasetLimits {
    /// At most `pure` at `δ = 0`, and at most `relaxed.0` at `δ = relaxed.1`; at least one of them.
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

    /// The order of Rényi losses at which the limit at a `δ` is kept; infinite if there is none.
    pub fn order(&self) -> f64 {
        self.order
    }

    /// The same limits, kept at the order of those that were set first.
    // Privacy: the order must not depend on what was released. A limit that is changed later, having seen releases, keeps it:
    // then what is promised is the largest limit that was ever set.
    pub fn at_order(self, order: f64) -> Self {
        Self { order, ..self }
    }
}

/// Why a site did not take a charge.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum AccountRefusal {
    /// The total over all studies would exceed a limit.
    #[error(
        "the data set's limit epsilon = {} at delta = {:?} would be exceeded: {spent:.6} was spent by {studies} {}, and with this release the total would be {total:.6}",
        limit.epsilon,
        limit.delta,
        if *studies == 1 { "study" } else { "studies" }
    )]
    OverLimit {
        /// Which one.
        limit: Guarantee,
        /// ε so far, at the limit's δ.
        spent: f64,
        /// By how many studies.
        studies: u32,
        /// ε if this had been released too.
        total: f64,
    },
    /// Somebody died in the middle of a charge: what was spent is not known.
    #[error(
        "the data set's account broke off in the middle of a charge; rebuild it from its journal before anything is released"
    )]
    Broken,
}

/// What was spent on a data set.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountTotals {
    /// For each limit, the pure one first.
    pub totals: Vec<Guarantee>,
    /// How many releases were charged.
    pub charges: u64,
    /// Of how many studies.
    pub studies: u32,
}

/// The account of one data set; clones are handles to the same account.
#[derive(Clone, Debug)]
pub struct DatasetAccount(Arc<Mutex<Account>>);

#[derive(Clone, Debug)]
struct Account {
    lines: Vec<Line>,
    total: Composition,
    charges: u64,
    studies: u32,
}

/// One limit, and ε at its δ.
#[derive(Clone, Copy, Debug)]
struct Line {
    limit: Budget,
    /// Of Rényi losses; of no matter for a pure limit.
    order: f64,
    spent: f64,
}

impl DatasetAccount {
    /// A data set that nobody has used yet.
    pub fn new(limits: DatasetLimits) -> Self {
        let order = limits.order;
        let fresh = |limit: Budget| Line {
            limit,
            order,
            spent: 0.0,
        };
        Self(Arc::new(Mutex::new(Account {
            lines: limits.budgets.into_iter().map(fresh).collect(),
            total: Composition::nothing(),
            charges: 0,
            studies: 0,
        })))
    }

    /// The account after everything on record: the number of a study and what it was charged, in the order in which it was
    /// charged. What has happened is booked even where it exceeds the limits; then nothing more will be released.
    pub fn replay(
        limits: DatasetLimits,
        journal: impl IntoIterator<Item = (u32, PrivacyEvent)>,
    ) -> Result<Self, SpendError> {
        let site = Self::new(limits);
        let mut studies = BTreeSet::new();
        let mut account = site.account()?;
        for (study, event) in journal {
            if !event.is_well_formed() {
                return Err(SpendError::Malformed);
            }
            *account = account.after(&event, studies.insert(study));
        }
        drop(account);
        Ok(site)
    }

    /// What was spent so far.
    pub fn spent(&self) -> Result<AccountTotals, AccountRefusal> {
        let account = self.account()?;
        Ok(AccountTotals {
            totals: account.lines.iter().map(Line::spent).collect(),
            charges: account.charges,
            studies: account.studies,
        })
    }

    /// Charges one release, or refuses and leaves everything as it was.
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

impl Line {
    fn spent(&self) -> Guarantee {
        Guarantee {
            epsilon: self.spent,
            delta: self.limit.delta,
        }
    }
}

#[cfg(test)]
mod tests;
