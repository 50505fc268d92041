//! The account of one data set over all studies that use it.
//!
//! A study's budget ends with the study; the rows remain, and so does what has been learnt of them. A [`DatasetAccount`] adds up
//! what every study on the same rows was charged, under limits that none of them can raise. Ledgers join it by
//! [`Ledger::with_account`](super::Ledger::with_account): a release is charged to its study and to the data set, or to neither.
//!
//! Privacy: the releases of several studies on the same rows, at once or one after the other, are one long adaptive
//! composition, and are priced as such: by our bound, whatever bound a study shows. Later studies may be designed by what
//! earlier ones released, their prices too. So at `δ > 0` the best way to add up cannot be taken afterwards. A limit has one
//! [`SiteAccounting`], which is fixed beforehand: one Rényi order, or the Gaussian filter. Pure losses stand beside it.
//!
//! The account is in memory. What a node gives out to be recorded ([`Output::Record`](crate::node::Output)) is the
//! journal from which [`DatasetAccount::replay`] makes it anew; a charge is on record before its release leaves.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use thiserror::Error;

use super::composition::{Composition, order_for};
use super::gaussian_filter::GaussianFilter;
use super::{Budget, Guarantee, InvalidBudget, PrivacyEvent, SpendError};

/// The rule by which a limit at a `δ` is kept, even if studies are chosen by earlier releases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SiteAccounting {
    /// Rényi losses of one order, which covers all noise.
    Renyi {
        /// The order.
        order: f64,
    },
    /// The Gaussian filter: Gaussian noise on answers, composed exactly, and little beside it. Gaussian noise in objectives is
    /// refused.
    Gaussian,
}

impl SiteAccounting {
    /// Returns the name as site files have it: `renyi` or `gaussian`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Renyi { .. } => "renyi",
            Self::Gaussian => "gaussian",
        }
    }
}

/// The limits on everything spent on a data set: a pure one, one at a `δ`, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct DatasetLimits {
    budgets: Vec<Budget>,
    /// The rule of the limit at a `δ`; unused without one.
    accounting: SiteAccounting,
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
        let order = relaxed.map_or(2.0, |limit| order_for(limit.epsilon, limit.delta));
        Ok(Self {
            accounting: SiteAccounting::Renyi { order },
            budgets: limits,
        })
    }

    /// Returns the rule by which the limit at a `δ` is kept; `None` without such a limit.
    pub fn accounting(&self) -> Option<SiteAccounting> {
        let relaxed = self.budgets.iter().any(|limit| limit.delta > 0.0);
        relaxed.then_some(self.accounting)
    }

    /// Returns the same limits, kept by another rule, such as that of the limits that were set first.
    // Privacy: the rule must not depend on what was released. A limit that is changed later, having seen releases, keeps it:
    // then what is promised is the largest limit that was ever set.
    #[must_use]
    pub fn kept_by(self, accounting: SiteAccounting) -> Self {
        Self { accounting, ..self }
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
    /// The limit is kept by the Gaussian filter, and the release has Gaussian noise in its objective, or no noise.
    #[error(
        "the data set's limit epsilon = {} at delta = {:?} is kept for Gaussian noise on answers (accounting = \"gaussian\"), and this release has its noise elsewhere; give the study mechanism = \"gradient\" or \"output\"",
        limit.epsilon,
        limit.delta
    )]
    NotGaussian {
        /// The limit.
        limit: Guarantee,
    },
    /// The limit is kept by the Gaussian filter, and pure losses and rounding would exceed their share of it.
    #[error(
        "the data set's limit epsilon = {} at delta = {:?} is kept for Gaussian noise on answers (accounting = \"gaussian\"), and sets aside {reserve} for pure losses and rounding: {spent:.6} of it is spent, and with this release it would be {total:.6}; give the study noise = \"gaussian\"",
        limit.epsilon,
        limit.delta
    )]
    OverReserve {
        /// The limit.
        limit: Guarantee,
        /// The ε set aside.
        reserve: f64,
        /// The ε of pure losses and rounding so far.
        spent: f64,
        /// The ε of pure losses and rounding with this release.
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
    /// The Gaussian answers, where the limit at a `δ` is kept by the Gaussian filter.
    pub gaussian: Option<GaussianTotal>,
}

/// The total of Gaussian answers under the Gaussian filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianTotal {
    /// The `μ` spent, rounded up: all answers together are as private as one with noise `1/μ` per unit of sensitivity.
    pub mu: f64,
    /// The largest `μ` allowed, rounded down.
    pub limit: f64,
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
    rule: LimitRule,
    spent: f64,
}

/// The rule by which one limit is kept.
#[derive(Clone, Copy, Debug)]
enum LimitRule {
    Pure,
    Renyi { order: f64 },
    Gaussian(GaussianFilter),
}

impl DatasetAccount {
    /// Creates the account of a data set that no study has used yet.
    pub fn new(limits: DatasetLimits) -> Self {
        let accounting = limits.accounting;
        let fresh = |limit: Budget| LimitStatus {
            limit,
            rule: match accounting {
                _ if limit.delta == 0.0 => LimitRule::Pure,
                SiteAccounting::Renyi { order } => LimitRule::Renyi { order },
                SiteAccounting::Gaussian => LimitRule::Gaussian(GaussianFilter::new(&limit)),
            },
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
        let gaussian = account.lines.iter().find_map(|line| match line.rule {
            LimitRule::Gaussian(filter) => Some(GaussianTotal {
                mu: account.total.mu(),
                limit: filter.largest_mu(),
            }),
            LimitRule::Pure | LimitRule::Renyi { .. } => None,
        });
        Ok(AccountTotals {
            totals: account.lines.iter().map(LimitStatus::spent).collect(),
            charges: account.charges,
            studies: account.studies,
            gaussian,
        })
    }

    /// Checks the total against the limits, as a charge does. Past charges on record may exceed them.
    pub fn check(&self) -> Result<(), AccountRefusal> {
        let account = self.account()?;
        account.check(&account)
    }

    /// Charges one release, or refuses and changes nothing.
    pub(super) fn charge(
        &self,
        event: &PrivacyEvent,
        new_study: bool,
    ) -> Result<(), AccountRefusal> {
        let mut account = self.account()?;
        let after = account.after(event, new_study);
        after.check(&account)?;
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
            let spent = match line.rule {
                LimitRule::Pure => after.total.epsilon(0.0),
                LimitRule::Renyi { order } => after.total.epsilon_at_order(order, line.limit.delta),
                LimitRule::Gaussian(filter) => filter.epsilon(&after.total),
            };
            // Until an order's conversion or a reserve is paid for, pure losses are less; a total never shrinks. A NaN stays
            // one.
            line.spent = if spent < line.spent {
                line.spent
            } else {
                spent
            };
        }
        after
    }

    /// Refuses totals beyond a limit, given those before.
    fn check(&self, before: &Self) -> Result<(), AccountRefusal> {
        for (line, earlier) in self.lines.iter().zip(&before.lines) {
            // Written so that a NaN is refused.
            let within = line.spent <= line.limit.epsilon;
            if !within {
                return Err(self.refusal(line, before, earlier.spent));
            }
        }
        Ok(())
    }

    fn refusal(&self, line: &LimitStatus, before: &Self, spent: f64) -> AccountRefusal {
        let limit = line.limit.as_guarantee();
        match line.rule {
            LimitRule::Gaussian(_) if self.total.beside_gaussian().is_infinite() => {
                AccountRefusal::NotGaussian { limit }
            }
            LimitRule::Gaussian(filter) if !filter.keeps_reserve(&self.total) => {
                AccountRefusal::OverReserve {
                    limit,
                    reserve: filter.reserve,
                    spent: before.total.beside_gaussian(),
                    total: self.total.beside_gaussian(),
                }
            }
            _ => AccountRefusal::OverLimit {
                limit,
                spent,
                studies: before.studies,
                total: line.spent,
            },
        }
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
