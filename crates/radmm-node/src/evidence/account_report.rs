//! The account of a state folder, looked at from outside: what every study has spent, and whether the account is whole.

use std::collections::BTreeMap;

use radmm::account::{
    BadBudget, BadLimits, Bound, Budget, Event, Guarantee, Ideal, Ledger, Limits, SpendError,
};
use radmm::private::Law;
use radmm_study::Limit;
use serde::Serialize;
use thiserror::Error;

use crate::event_json::Written;
use crate::setup::balance::Balance;
use crate::store::{Begun, Charge, Evidence, Fingerprint, Store, StoreError};

/// Why an account cannot be shown, or is not whole.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// The state cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// δ is none.
    #[error(transparent)]
    Budget(#[from] BadBudget),
    /// No total can be shown at it.
    #[error(transparent)]
    Limits(#[from] BadLimits),
    /// What is on record cannot have been charged, taken together.
    #[error(
        "what is on record cannot have been charged ({0}): restore the state folder from a backup"
    )]
    Charges(SpendError),
    /// What is on record cannot have been charged.
    #[error(
        "study {study} ({name}): what is on record cannot have been charged ({cause}): restore the state folder from a backup"
    )]
    Charge {
        /// Its number.
        study: u32,
        /// Its name.
        name: String,
        /// Why.
        cause: SpendError,
    },
    /// Charges that no study here can have made, or not in this order.
    #[error("charge {place} is {what}: restore the state folder from a backup")]
    Order {
        /// Counted from 0 over all studies.
        place: usize,
        /// What is wrong.
        what: String,
    },
}

/// What a state folder holds.
#[derive(Debug, Serialize)]
pub struct Account {
    /// What all of them together have spent.
    pub site: SiteAccount,
    /// In the order in which they were begun.
    pub studies: Vec<StudyAccount>,
}

/// What all studies together have spent on the rows of a state folder.
#[derive(Debug, Serialize)]
pub struct SiteAccount {
    /// By which the rows are known here, in the order in which they were first asked; several if they changed.
    pub fingerprints: Vec<String>,
    /// What was spent on them.
    #[serde(flatten)]
    pub balance: Balance,
}

/// What one study has spent.
#[derive(Debug, Serialize)]
pub struct StudyAccount {
    /// Counted from 0.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The hash of its canonical form.
    pub sha256: String,
    /// Which of its parties this is.
    pub node: u32,
    /// By which these rows are known here.
    pub fingerprint: String,
    /// How many rows it asked.
    pub rows: u64,
    /// Whether all iterations are done.
    pub finished: bool,
    /// Whether its noise repeats, and so protects nobody.
    pub seeded: bool,
    /// At δ = 0 if that is finite, and at the δ that was asked for if some noise is Gaussian.
    pub totals: Vec<Guarantee>,
    /// What was charged.
    pub charges: Vec<ChargeLine>,
    /// What others said that cannot be right.
    pub evidence: Vec<Evidence>,
}

/// A charge.
#[derive(Debug, Serialize)]
pub struct ChargeLine {
    /// Of the data step.
    pub iteration: u32,
    #[serde(flatten)]
    written: Written,
    #[serde(skip)]
    event: Event,
}

impl ChargeLine {
    /// What was charged.
    pub fn event(&self) -> &Event {
        &self.event
    }
}

impl Account {
    /// The account of a store, with totals of Gaussian noise at `delta`. The total over all studies is at the δ of the site's
    /// limit if that is given.
    pub fn new(store: &Store, delta: f64, limit: Option<&Limit>) -> Result<Self, LedgerError> {
        let charges = store.charges()?;
        let site = SiteAccount::new(store, &charges, delta, limit)?;
        let mut studies = Vec::new();
        for begun in store.studies() {
            let own = charges.iter().filter(|charge| charge.study == begun.number);
            let line = |charge: &Charge| ChargeLine {
                iteration: charge.iteration,
                written: Written::from(&charge.event),
                event: charge.event,
            };
            let own: Vec<ChargeLine> = own.map(line).collect();
            let events: Vec<Event> = own.iter().map(|charge| charge.event).collect();
            let totals = totals(&events, delta, &begun)?;
            studies.push(StudyAccount {
                evidence: store.evidence(begun.number)?,
                number: begun.number,
                name: begun.name,
                sha256: begun.sha256,
                node: begun.party,
                fingerprint: begun.fingerprint,
                rows: begun.rows,
                finished: begun.finished,
                seeded: begun.seeded,
                totals,
                charges: own,
            });
        }
        Ok(Self { site, studies })
    }
}

impl SiteAccount {
    fn new(
        store: &Store,
        charges: &[Charge],
        delta: f64,
        limit: Option<&Limit>,
    ) -> Result<Self, LedgerError> {
        let balance = match limit {
            Some(limit) => {
                let order = store.order(limit.limits.order());
                Balance::within(limit, order, charges)
            }
            None => {
                // Infinite if no limit at a δ was ever set here. Then nothing says at which order its losses are to be added
                // up, and only pure ones are.
                let order = store.order(f64::INFINITY);
                let at = (order.is_finite() && delta > 0.0).then_some((f64::MAX, delta));
                let bounds = Limits::new(Some(f64::MAX), at)?;
                Balance::beneath(&bounds, order, charges)
            }
        };
        let mut fingerprints: Vec<Fingerprint> = Vec::new();
        for charge in charges {
            if !fingerprints.contains(&charge.data) {
                fingerprints.push(charge.data);
            }
        }
        Ok(Self {
            fingerprints: fingerprints.iter().map(Fingerprint::to_string).collect(),
            balance: balance.map_err(LedgerError::Charges)?,
        })
    }
}

/// What charges come to by our bound.
fn totals(events: &[Event], delta: f64, of: &Begun) -> Result<Vec<Guarantee>, LedgerError> {
    let at = |delta: f64| {
        let budget = Budget::unlimited(delta)?;
        let once = events.iter().map(|event| (*event, 1));
        Ledger::total_of(budget, Bound::Tight, once).map_err(|cause| LedgerError::Charge {
            study: of.number,
            name: of.name.clone(),
            cause,
        })
    };
    let pure = at(0.0)?;
    let relaxed = match events.iter().any(is_gaussian) && delta > 0.0 {
        true => Some(at(delta)?),
        false => None,
    };
    // An infinite total says something only where there is no other.
    let shown = relaxed.is_none() || pure.epsilon.is_finite();
    Ok([shown.then_some(pure), relaxed]
        .into_iter()
        .flatten()
        .collect())
}

fn is_gaussian(event: &Event) -> bool {
    match event.ideal {
        Ideal::Exact => false,
        Ideal::Objective { law, .. } | Ideal::Additive { law, .. } => {
            matches!(law, Law::Gaussian { .. })
        }
    }
}

/// What was checked of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// How many were begun.
    pub studies: usize,
    /// How many there are.
    pub charges: usize,
    /// How many of them have an answer; the others could not be released.
    pub answers: usize,
}

/// Checks that an account is whole. The hashes of its records were computed again when the store was opened.
pub fn check(store: &Store) -> Result<Whole, LedgerError> {
    // The chain of hashes.
    let charges = store.charges()?;
    let studies = store.studies();
    let mut last: BTreeMap<u32, u32> = BTreeMap::new();
    for (place, charge) in charges.iter().enumerate() {
        let Charge {
            study, iteration, ..
        } = *charge;
        let wrong = |what: String| Err(LedgerError::Order { place, what });
        if study as usize >= studies.len() {
            return wrong(format!("of study {study}, which was never begun"));
        }
        match last.insert(study, iteration) {
            Some(before) if before >= iteration => {
                return wrong(format!(
                    "for iteration {iteration} of study {study}, after one for iteration {before}"
                ));
            }
            _ => {}
        }
    }
    let mut answers = 0;
    for begun in &studies {
        let recorded = store.recorded(begun.number)?;
        answers += recorded.iter().filter(|one| one.answer.is_some()).count();
    }
    Ok(Whole {
        studies: studies.len(),
        charges: charges.len(),
        answers,
    })
}
