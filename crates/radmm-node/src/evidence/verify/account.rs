//! Compares what a statement says that all studies together have spent with what this study has spent.
//!
//! It cannot be less. Only the party knows how much more it is.

use radmm::privacy::{
    Bound, Budget, Guarantee, IdealRelease, Ledger, NoiseDistribution, PrivacyEvent,
};
use radmm_study::number_format::as_typed;
use serde_json::Value;

use crate::strict_json::Object;

/// The relative difference that sums in another order may have by rounding.
const ROUNDING: f64 = 1e-9;

/// Returns what cannot be right in the `site` of a statement.
pub(super) fn faults(site: &Value, events: &[PrivacyEvent]) -> Vec<String> {
    match StatedBalance::read(site) {
        Ok(balance) => balance.faults(events),
        Err(what) => vec![format!("site: {what}")],
    }
}

/// The balance that a statement states.
struct StatedBalance {
    studies: u64,
    charges: u64,
    totals: Vec<StatedTotal>,
}

/// One of its totals, with the `μ` of the Gaussian filter if that keeps the limit.
struct StatedTotal {
    total: Guarantee,
    mu: Option<f64>,
}

impl StatedBalance {
    fn read(site: &Value) -> Result<Self, String> {
        let site = Object::new(site)?.only(&["studies", "charges", "uncovered", "totals"])?;
        let totals = site.get("totals")?.as_array();
        let totals = totals.filter(|list| !list.is_empty());
        let totals = totals.ok_or("totals: must be a list, with one for each limit")?;
        Ok(Self {
            studies: site.count("studies")?,
            charges: site.count("charges")?,
            totals: totals
                .iter()
                .map(|one| stated_total(one).map_err(|what| format!("totals: {what}")))
                .collect::<Result<_, _>>()?,
        })
    }

    fn faults(&self, events: &[PrivacyEvent]) -> Vec<String> {
        let mut faults = Vec::new();
        let (studies, charges, own) = (self.studies, self.charges, events.len() as u64);
        if charges < own {
            faults.push(format!(
                "it states site.charges = {charges}, and this study alone has {own}"
            ));
        } else if studies == 0 && own > 0 {
            faults.push("it states site.studies = 0, and this is one".to_owned());
        } else if studies == 1 && own > 0 && charges > own {
            faults.push(format!(
                "it states site.charges = {charges} of one study, and this one has {own}"
            ));
        }
        for StatedTotal { total, mu } in &self.totals {
            let Some(alone) = study_alone(events, total.delta) else {
                faults.push(format!("it states site.totals at delta = {}", total.delta));
                continue;
            };
            // Written so that a NaN is reported.
            let enough = total.epsilon >= alone * (1.0 - ROUNDING);
            let least = mu_alone(events);
            if let Some(mu) = mu.filter(|mu| *mu < least * (1.0 - ROUNDING)) {
                faults.push(format!(
                    "it states site.totals with mu = {mu}, and this study alone comes to {least}"
                ));
            }
            if !enough {
                faults.push(format!(
                    "it states site.totals with epsilon = {} at delta = {}, and this study alone comes to {alone}",
                    total.epsilon,
                    as_typed(total.delta)
                ));
            }
        }
        faults
    }
}

/// Returns the ε of one study by the tight bound; `None` if δ is invalid.
fn study_alone(events: &[PrivacyEvent], delta: f64) -> Option<f64> {
    let budget = Budget::unlimited(delta).ok()?;
    let once = events.iter().map(|event| (*event, 1));
    // Charges without a total are reported with their transcript.
    let total = Ledger::total_of(budget, Bound::Tight, once);
    Some(total.map_or(0.0, |total| total.epsilon))
}

/// Returns the `μ` of the Gaussian answers of one study.
fn mu_alone(events: &[PrivacyEvent]) -> f64 {
    let square = |event: &PrivacyEvent| match event.ideal {
        IdealRelease::Additive {
            sensitivity,
            law: NoiseDistribution::Gaussian { sigma },
        } => (sensitivity / sigma) * (sensitivity / sigma),
        _ => 0.0,
    };
    events.iter().map(square).sum::<f64>().sqrt()
}

fn stated_total(total: &Value) -> Result<StatedTotal, String> {
    let total =
        Object::new(total)?.only(&["epsilon", "delta", "relation", "limit", "mu", "mu_limit"])?;
    if total.get("relation")? != Guarantee::RELATION {
        return Err(format!("relation: must be \"{}\"", Guarantee::RELATION));
    }
    total.number("limit")?;
    let stated = Guarantee {
        epsilon: match total.get("epsilon")?.is_null() {
            true => f64::INFINITY,
            false => total.number("epsilon")?,
        },
        delta: total.number("delta")?,
    };
    Ok(StatedTotal {
        total: stated,
        mu: match total.has("mu") {
            true => Some(total.number("mu")?),
            false => None,
        },
    })
}
