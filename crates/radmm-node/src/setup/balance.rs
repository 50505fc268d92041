//! What all studies together have spent on the rows of a state folder.
//!
//! Everything charged in a state folder was asked of the same people's rows: a node does not ask others there. So there is one
//! balance, whatever the rows' fingerprint was when they were asked.

use radmm::account::{Guarantee, Limits, Site, SpendError};
use radmm_study::Limit;
use serde::Serialize;

use crate::store::Charge;

/// What all studies together have spent on the same rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Balance {
    /// How many have asked.
    pub studies: u32,
    /// How often.
    pub charges: u64,
    /// For each limit; where these are not known, what is finite.
    pub totals: Vec<Limited>,
}

/// A total over all studies on the same rows, and the limit that it is held against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limited {
    /// What was spent.
    #[serde(flatten)]
    pub total: Guarantee,
    /// The largest ε at the same δ; `None` if it is not known here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
}

impl Balance {
    /// Of these charges, under the limit of their site, which is kept at an order of Rényi losses.
    pub(crate) fn within(
        limit: &Limit,
        order: f64,
        charges: &[Charge],
    ) -> Result<Self, SpendError> {
        let limits = [limit.pure, limit.relaxed.map(|(epsilon, _)| epsilon)];
        let limits = limits.into_iter().flatten().map(Some);
        Self::new(&limit.limits, order, charges, limits)
    }

    /// The same where no limit is at hand, but bounds that nothing reaches.
    pub(crate) fn beneath(
        bounds: &Limits,
        order: f64,
        charges: &[Charge],
    ) -> Result<Self, SpendError> {
        let mut balance = Self::new(bounds, order, charges, std::iter::repeat(None))?;
        // An infinite total says something only where there is no other.
        let finite = |one: &Limited| one.total.epsilon.is_finite();
        if balance.totals.iter().any(finite) {
            balance.totals.retain(finite);
        }
        Ok(balance)
    }

    fn new(
        limits: &Limits,
        order: f64,
        charges: &[Charge],
        shown: impl Iterator<Item = Option<f64>>,
    ) -> Result<Self, SpendError> {
        let spent = replay(limits, order, charges)?.spent()?;
        let totals = spent.totals.into_iter().zip(shown);
        Ok(Self {
            studies: spent.studies,
            charges: spent.charges,
            totals: totals
                .map(|(total, limit)| Limited { total, limit })
                .collect(),
        })
    }
}

/// The account of rows after these charges, under limits that are kept at an order of Rényi losses.
// Privacy: the one way in which this crate adds up over studies, for what is refused as for what is shown.
pub(crate) fn replay(limits: &Limits, order: f64, charges: &[Charge]) -> Result<Site, SpendError> {
    let journal = charges.iter().map(|charge| (charge.study, charge.event));
    Site::replay(limits.clone().at_order(order), journal)
}
