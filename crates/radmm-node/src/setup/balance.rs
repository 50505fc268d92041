//! The balance of a state folder: what all studies together have spent on its rows.
//!
//! Everything charged in a state folder was asked of the same people's rows. So there is one balance, even if the fingerprint of the
//! rows changed.

use radmm::privacy::{DatasetAccount, DatasetLimits, Guarantee, SpendError};
use radmm_study::Limit;
use serde::Serialize;

use crate::store::Charge;

/// The total of all studies on the same rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Balance {
    /// The number of studies that asked.
    pub studies: u32,
    /// The number of charges.
    pub charges: u64,
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
}

impl Balance {
    /// Adds up charges under the limit of their site, at an order of Rényi losses.
    pub(crate) fn with_limit(
        limit: &Limit,
        order: f64,
        charges: &[Charge],
    ) -> Result<Self, SpendError> {
        let limits = [limit.pure, limit.relaxed.map(|(epsilon, _)| epsilon)];
        let limits = limits.into_iter().flatten().map(Some);
        Self::new(&limit.limits, order, charges, limits)
    }

    /// Adds up charges where no limit is known, under bounds that nothing reaches.
    pub(crate) fn without_limit(
        bounds: &DatasetLimits,
        order: f64,
        charges: &[Charge],
    ) -> Result<Self, SpendError> {
        let mut balance = Self::new(bounds, order, charges, std::iter::repeat(None))?;
        // An infinite total is shown only if there is no other.
        let finite = |one: &BalanceTotal| one.total.epsilon.is_finite();
        if balance.totals.iter().any(finite) {
            balance.totals.retain(finite);
        }
        Ok(balance)
    }

    fn new(
        limits: &DatasetLimits,
        order: f64,
        charges: &[Charge],
        limits_shown: impl Iterator<Item = Option<f64>>,
    ) -> Result<Self, SpendError> {
        let spent = replay(limits, order, charges)?.spent()?;
        let totals = spent.totals.into_iter().zip(limits_shown);
        Ok(Self {
            studies: spent.studies,
            charges: spent.charges,
            totals: totals
                .map(|(total, limit)| BalanceTotal { total, limit })
                .collect(),
        })
    }
}

/// Returns the account of rows after these charges, under limits at an order of Rényi losses.
// Privacy: the only way in which this crate adds up over studies, both for what is rejected and for what is shown.
pub(crate) fn replay(
    limits: &DatasetLimits,
    order: f64,
    charges: &[Charge],
) -> Result<DatasetAccount, SpendError> {
    let journal = charges.iter().map(|charge| (charge.study, charge.event));
    DatasetAccount::replay(limits.clone().at_order(order), journal)
}
