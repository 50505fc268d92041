//! The balance of a state folder: what all studies together have spent on its rows.
//!
//! Everything charged in a state folder was asked of the same people's rows. So there is one balance, even if the fingerprint of the
//! rows changed.

use radmm::privacy::{
    Bound, Budget, DatasetAccount, DatasetLimits, Guarantee, Ledger, SiteAccounting, SpendError,
};
use radmm_study::Limit;
use serde::Serialize;

use crate::store::{Charge, Store};

/// The total of all studies on the same rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Balance {
    /// The number of studies that asked.
    pub studies: u32,
    /// The number of charges.
    pub charges: u64,
    /// The number of studies that told something no total covers: bounds or vocabularies read off the rows.
    #[serde(skip_serializing_if = "is_zero")]
    pub uncovered: u32,
    /// One total for each limit; the finite totals if the limits are unknown.
    pub totals: Vec<BalanceTotal>,
}

/// A total over all studies on the same rows, with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BalanceTotal {
    /// The total.
    #[serde(flatten)]
    pub total: Guarantee,
    /// The largest ε allowed at the same δ; `None` if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// The `μ` of all Gaussian answers, rounded up, where the Gaussian filter keeps the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mu: Option<f64>,
    /// The largest `μ` allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mu_limit: Option<f64>,
}

impl Balance {
    /// Adds up charges under the limit of their site, by the rule on record if there is one.
    pub(crate) fn with_limit(
        limit: &Limit,
        store: &Store,
        charges: &[Charge],
    ) -> Result<Self, SpendError> {
        let limits = [limit.pure, limit.relaxed.map(|(epsilon, _)| epsilon)];
        let limits = limits.into_iter().flatten().map(Some);
        Self::new(&limit.limits, store, charges, limits)
    }

    /// Adds up charges where no limit is known, under bounds that nothing reaches.
    ///
    /// The Gaussian filter depends on its limit. Without it the total is that of studies that were fixed beforehand.
    pub(crate) fn without_limit(
        bounds: &DatasetLimits,
        unlimited: Budget,
        store: &Store,
        charges: &[Charge],
    ) -> Result<Self, SpendError> {
        let mut balance = Self::new(bounds, store, charges, std::iter::repeat(None))?;
        for one in balance.totals.iter_mut().filter(|one| one.mu.is_some()) {
            let events = charges.iter().map(|charge| (charge.event, 1));
            one.total = Ledger::total_of(unlimited, Bound::Tight, events)?;
            one.mu_limit = None;
        }
        // An infinite total is shown only if there is no other.
        let finite = |one: &BalanceTotal| one.total.epsilon.is_finite();
        if balance.totals.iter().any(finite) {
            balance.totals.retain(finite);
        }
        Ok(balance)
    }

    fn new(
        limits: &DatasetLimits,
        store: &Store,
        charges: &[Charge],
        limits_shown: impl Iterator<Item = Option<f64>>,
    ) -> Result<Self, SpendError> {
        let spent = replay(limits, store.accounting(), charges)?.spent()?;
        let totals = spent.totals.into_iter().zip(limits_shown);
        let total = |(total, limit): (Guarantee, Option<f64>)| {
            let gaussian = spent.gaussian.filter(|_| total.delta > 0.0);
            BalanceTotal {
                total,
                limit,
                mu: gaussian.map(|gaussian| gaussian.mu),
                mu_limit: gaussian.map(|gaussian| gaussian.limit),
            }
        };
        Ok(Self {
            studies: spent.studies,
            charges: spent.charges,
            uncovered: store.uncovered(charges),
            totals: totals.map(total).collect(),
        })
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Returns the account of rows after these charges, under limits kept by the rule on record, or else by their own.
// Privacy: the only way in which this crate adds up over studies, both for what is rejected and for what is shown.
pub(crate) fn replay(
    limits: &DatasetLimits,
    accounting: Option<SiteAccounting>,
    charges: &[Charge],
) -> Result<DatasetAccount, SpendError> {
    let journal = charges.iter().map(|charge| (charge.study, charge.event));
    let limits = accounting
        .into_iter()
        .fold(limits.clone(), DatasetLimits::kept_by);
    DatasetAccount::replay(limits, journal)
}
