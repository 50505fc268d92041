//! What a statement says that all studies together have spent, held against what this one has.
//!
//! It cannot be less. How much more it is only the party knows.

use radmm::account::{Bound, Budget, Event, Guarantee, Ledger};
use serde_json::{Map, Value};

/// Sums that are taken in another order differ by some roundings.
const ROUNDINGS: f64 = 1e-9;

/// What cannot be so.
pub(super) fn faults(site: &Value, events: &[Event]) -> Vec<String> {
    match Account::read(site) {
        Ok(account) => account.faults(events),
        Err(what) => vec![format!("site: {what}")],
    }
}

struct Account {
    studies: u64,
    charges: u64,
    totals: Vec<Guarantee>,
}

impl Account {
    fn read(site: &Value) -> Result<Self, String> {
        let site = fields(site, &["studies", "charges", "totals"])?;
        let count = |name: &str| {
            let count = site[name].as_u64();
            count.ok_or_else(|| format!("{name}: must be a whole number"))
        };
        let totals = site["totals"].as_array().filter(|list| !list.is_empty());
        let totals = totals.ok_or("totals: must be a list, with one for each limit")?;
        Ok(Self {
            studies: count("studies")?,
            charges: count("charges")?,
            totals: totals
                .iter()
                .map(|one| total(one).map_err(|what| format!("totals: {what}")))
                .collect::<Result<_, _>>()?,
        })
    }

    fn faults(&self, events: &[Event]) -> Vec<String> {
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
        for total in &self.totals {
            let Some(alone) = alone(events, total.delta) else {
                faults.push(format!("it states site.totals at delta = {}", total.delta));
                continue;
            };
            // Written so that a NaN is told.
            let enough = total.epsilon >= alone * (1.0 - ROUNDINGS);
            if !enough {
                faults.push(format!(
                    "it states site.totals with epsilon = {} at delta = {:?}, and this study alone comes to {alone}",
                    total.epsilon, total.delta
                ));
            }
        }
        faults
    }
}

/// What one study comes to, by the best bound; nothing if δ is none.
fn alone(events: &[Event], delta: f64) -> Option<f64> {
    let budget = Budget::unlimited(delta).ok()?;
    let once = events.iter().map(|event| (*event, 1));
    // Charges that have no total are told with their transcript.
    let total = Ledger::total_of(budget, Bound::Tight, once);
    Some(total.map_or(0.0, |total| total.epsilon))
}

fn total(one: &Value) -> Result<Guarantee, String> {
    let one = fields(one, &["epsilon", "delta", "relation", "limit"])?;
    if one["relation"] != Guarantee::RELATION {
        return Err(format!("relation: must be {:?}", Guarantee::RELATION));
    }
    let number = |name: &str| {
        let number = one[name].as_f64().filter(|number| *number >= 0.0);
        number.ok_or_else(|| format!("{name}: must be a number of at least 0"))
    };
    number("limit")?;
    Ok(Guarantee {
        epsilon: match one["epsilon"].is_null() {
            true => f64::INFINITY,
            false => number("epsilon")?,
        },
        delta: number("delta")?,
    })
}

/// An object with these fields and no other.
fn fields<'a>(value: &'a Value, names: &[&str]) -> Result<&'a Map<String, Value>, String> {
    let object = value.as_object().ok_or("must be an object")?;
    if let Some(name) = names.iter().find(|name| !object.contains_key(**name)) {
        return Err(format!("{name} is missing"));
    }
    match object.keys().find(|key| !names.contains(&key.as_str())) {
        Some(key) => Err(format!("{key:?} means nothing")),
        None => Ok(object),
    }
}
