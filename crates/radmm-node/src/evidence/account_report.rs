//! The report of a state folder's account: what every study has spent, and whether the account is consistent.

use std::collections::BTreeMap;

use radmm::privacy::{
    Bound, Budget, DatasetLimits, Guarantee, IdealRelease, InvalidBudget, InvalidLimits, Ledger,
    NoiseDistribution, PrivacyEvent, SpendError,
};
use radmm_study::Limit;
use serde::Serialize;
use thiserror::Error;

use crate::event_json::EventJson;
use crate::setup::Balance;
use crate::store::{Charge, MisbehaviourRecord, RowFingerprint, Store, StoreError, StudyRecord};

/// The reason why an account cannot be reported, or is not consistent.
#[derive(Debug, Error)]
pub enum AccountError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The δ is invalid.
    #[error(transparent)]
    Budget(#[from] InvalidBudget),
    /// The δ is out of range for a total.
    #[error(transparent)]
    DatasetLimits(#[from] InvalidLimits),
    /// The charges of all studies together are invalid.
    #[error("the charges on record are invalid ({0}): put back the state folder as it was last")]
    Charges(SpendError),
    /// The charges of one study are invalid.
    #[error(
        "study {study} ({name}): the charges on record are invalid ({cause}): put back the state folder as it was last"
    )]
    Charge {
        /// The study's number.
        study: u32,
        /// The study's name.
        name: String,
        /// The reason.
        cause: SpendError,
    },
    /// A charge belongs to no study, or is out of order.
    #[error("charge {place} is {what}: put back the state folder as it was last")]
    Order {
        /// The position of the charge, counted from 0 over all studies.
        place: usize,
        /// The reason.
        what: String,
    },
}

/// The report of a state folder's account.
#[derive(Debug, Serialize)]
pub struct AccountReport {
    /// The total of all studies.
    pub site: SiteReport,
    /// The studies in the order in which they were started.
    pub studies: Vec<StudyReport>,
}

/// The total of all studies on the rows of a state folder.
#[derive(Debug, Serialize)]
pub struct SiteReport {
    /// The fingerprints of the rows, in the order in which they were first asked; several if the rows changed.
    pub fingerprints: Vec<String>,
    /// The balance of the rows.
    #[serde(flatten)]
    pub balance: Balance,
}

/// The account of one study.
#[derive(Debug, Serialize)]
pub struct StudyReport {
    /// The number of the study, counted from 0.
    pub number: u32,
    /// The name of the study.
    pub name: String,
    /// The SHA-256 digest of its canonical form.
    pub sha256: String,
    /// The node of this party.
    pub node: u32,
    /// The fingerprint of the rows.
    pub fingerprint: String,
    /// The number of rows.
    pub rows: u64,
    /// Whether all iterations are done.
    pub finished: bool,
    /// Whether an adoption of the folder ended it, and charged it for all that it had planned.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// Whether its noise repeats from a seed, and so protects nobody.
    pub seeded: bool,
    /// Whether its bounds or vocabularies were read off the rows, so that no total covers what they tell.
    pub read_off: bool,
    /// The total at δ = 0 if it is finite, and at the given δ if some noise is Gaussian.
    pub totals: Vec<Guarantee>,
    /// The charges of its data steps.
    pub charges: Vec<ChargeReport>,
    /// The misbehaviour of neighbours.
    pub evidence: Vec<MisbehaviourRecord>,
}

/// One charge.
#[derive(Debug, Serialize)]
pub struct ChargeReport {
    /// The iteration of the data step.
    pub iteration: u32,
    #[serde(flatten)]
    json: EventJson,
    #[serde(skip)]
    event: PrivacyEvent,
}

impl ChargeReport {
    /// Returns the privacy event that was charged.
    pub fn event(&self) -> &PrivacyEvent {
        &self.event
    }
}

impl AccountReport {
    /// Reports the account of a store, with totals of Gaussian noise at `delta`. The total over all studies is at the δ of the
    /// site's limit if that is given.
    pub fn new(store: &Store, delta: f64, limit: Option<&Limit>) -> Result<Self, AccountError> {
        let charges = store.charges()?;
        let site = SiteReport::new(store, &charges, delta, limit)?;
        let mut studies = Vec::new();
        for record in store.studies() {
            let own = charges
                .iter()
                .filter(|charge| charge.study == record.number);
            let line = |charge: &Charge| ChargeReport {
                iteration: charge.iteration,
                json: EventJson::from(&charge.event),
                event: charge.event,
            };
            let own: Vec<ChargeReport> = own.map(line).collect();
            let events: Vec<PrivacyEvent> = own.iter().map(|charge| charge.event).collect();
            let totals = totals(&events, delta, &record)?;
            studies.push(StudyReport {
                evidence: store.misbehaviours(record.number)?,
                number: record.number,
                name: record.name,
                sha256: record.sha256,
                node: record.party,
                fingerprint: record.fingerprint,
                rows: record.rows,
                finished: record.finished,
                ended: record.ended,
                seeded: record.seeded,
                read_off: record.read_off,
                totals,
                charges: own,
            });
        }
        Ok(Self { site, studies })
    }
}

impl SiteReport {
    fn new(
        store: &Store,
        charges: &[Charge],
        delta: f64,
        limit: Option<&Limit>,
    ) -> Result<Self, AccountError> {
        let balance = match limit {
            Some(limit) => Balance::with_limit(limit, store, charges),
            None => {
                // If no limit at a δ was ever set here, no rule is fixed, and only pure losses are added up.
                let at = (store.accounting().is_some() && delta > 0.0).then_some((f64::MAX, delta));
                let bounds = DatasetLimits::new(Some(f64::MAX), at)?;
                let unlimited = Budget::unlimited(delta)?;
                Balance::without_limit(&bounds, unlimited, store, charges)
            }
        };
        let mut fingerprints: Vec<RowFingerprint> = Vec::new();
        for charge in charges {
            if !fingerprints.contains(&charge.rows) {
                fingerprints.push(charge.rows);
            }
        }
        Ok(Self {
            fingerprints: fingerprints.iter().map(RowFingerprint::to_string).collect(),
            balance: balance.map_err(AccountError::Charges)?,
        })
    }
}

/// Returns the totals of a study's charges by the tight bound.
fn totals(
    events: &[PrivacyEvent],
    delta: f64,
    of: &StudyRecord,
) -> Result<Vec<Guarantee>, AccountError> {
    let at = |delta: f64| {
        let budget = Budget::unlimited(delta)?;
        let once = events.iter().map(|event| (*event, 1));
        Ledger::total_of(budget, Bound::Tight, once).map_err(|cause| AccountError::Charge {
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
    // An infinite total is shown only if there is no other.
    let shown = relaxed.is_none() || pure.epsilon.is_finite();
    Ok([shown.then_some(pure), relaxed]
        .into_iter()
        .flatten()
        .collect())
}

fn is_gaussian(event: &PrivacyEvent) -> bool {
    match event.ideal {
        IdealRelease::Exact => false,
        IdealRelease::Objective { law, .. } | IdealRelease::Additive { law, .. } => {
            matches!(law, NoiseDistribution::Gaussian { .. })
        }
    }
}

/// The result of checking an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedAccount {
    /// The number of studies.
    pub studies: usize,
    /// The number of charges.
    pub charges: usize,
    /// The number of charges with an answer. The other answers could not be released.
    pub answers: usize,
}

/// Checks that an account is consistent. The hashes of its records were computed again when the store was opened.
pub fn check_account(store: &Store) -> Result<CheckedAccount, AccountError> {
    let charges = store.charges_with_answers()?;
    let studies = store.studies();
    let mut last: BTreeMap<u32, u32> = BTreeMap::new();
    for (place, (charge, _)) in charges.iter().enumerate() {
        let Charge {
            study, iteration, ..
        } = *charge;
        let wrong = |what: String| Err(AccountError::Order { place, what });
        if study as usize >= studies.len() {
            return wrong(format!("of study {study}, which was never started"));
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
    Ok(CheckedAccount {
        studies: studies.len(),
        charges: charges.len(),
        answers: charges
            .iter()
            .filter(|(_, answer)| answer.is_some())
            .count(),
    })
}
