//! Memoised ledger states, shared by ledgers that are charged alike.
//!
//! A state follows from the one before it and the event that was charged. Parties with the same charges look the next state
//! up instead of composing it again. A state that no ledger is in any more is forgotten.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use crate::privacy::{Ledger, LedgerState, PrivacyEvent, StateCache};

/// Different limits whose ledgers share states; ledgers with further ones compose their own.
const MOST_LIMITS: usize = 64;

/// Hands one cache to all empty ledgers of a simulation that have the same limit and bound.
#[derive(Default)]
pub(super) struct LedgerSharing {
    templates: Vec<Ledger>,
}

impl LedgerSharing {
    pub(super) fn hand_to(&mut self, ledger: &mut Ledger) {
        let shared = self
            .templates
            .iter()
            .any(|template| ledger.adopt_states(template));
        if !shared && ledger.charges() == 0 && self.templates.len() < MOST_LIMITS {
            ledger.set_cache(Arc::new(LedgerCache::default()));
            self.templates.push(ledger.clone());
        }
    }
}

/// Makes all clones of an empty ledger share the states of the charges that they have in common.
///
/// This is for runs that protect nobody. A ledger between real parties composes its own states.
pub fn share_states(mut empty: Ledger) -> Ledger {
    LedgerSharing::default().hand_to(&mut empty);
    empty
}

/// Different next charges of a state that are kept; further ones are composed anew by each ledger.
const MOST_SUCCESSORS: usize = 64;

/// The known successors of each state, by the state's address.
#[derive(Debug, Default)]
struct LedgerCache {
    states: Mutex<KnownStates>,
}

#[derive(Debug, Default)]
struct KnownStates {
    by_address: BTreeMap<usize, Successors>,
    /// The size at which states that no ledger is in are dropped.
    full: usize,
}

#[derive(Debug)]
struct Successors {
    /// Keeps the address from being used for another state.
    of: Weak<LedgerState>,
    known: Vec<(PrivacyEvent, Weak<LedgerState>)>,
}

impl StateCache for LedgerCache {
    fn after(&self, state: &Arc<LedgerState>, event: &PrivacyEvent) -> Arc<LedgerState> {
        let address = Arc::as_ptr(state).addr();
        if let Some(next) = self.known(address, event) {
            return next;
        }
        // Composed without the lock: two threads that do so at a time get the same state.
        let next = Arc::new(state.after(event));
        // A poisoned memo is not used.
        if let Ok(mut states) = self.states.lock() {
            states.make_room();
            let entry = states.by_address.entry(address);
            let successors = entry.or_insert_with(|| Successors {
                of: Arc::downgrade(state),
                known: Vec::new(),
            });
            successors.known.retain(|(_, next)| next.strong_count() > 0);
            if successors.known.len() < MOST_SUCCESSORS {
                successors.known.push((*event, Arc::downgrade(&next)));
            }
        }
        next
    }
}

impl LedgerCache {
    fn known(&self, address: usize, event: &PrivacyEvent) -> Option<Arc<LedgerState>> {
        let states = self.states.lock().ok()?;
        let known = &states.by_address.get(&address)?.known;
        let found = known.iter().find(|(after, _)| after == event);
        found.and_then(|(_, next)| next.upgrade())
    }
}

impl KnownStates {
    /// Drops abandoned states each time that their number has doubled.
    fn make_room(&mut self) {
        if self.by_address.len() >= self.full {
            let alive = |_: &usize, successors: &mut Successors| successors.of.strong_count() > 0;
            self.by_address.retain(alive);
            self.full = 2 * self.by_address.len() + MOST_SUCCESSORS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::{Bound, Budget, IdealRelease, NoiseDistribution, SlopeCurve};

    fn event(rate: f64) -> PrivacyEvent {
        PrivacyEvent::on_grid(IdealRelease::Objective {
            sensitivity: 0.1,
            spread: 0.01,
            curve: SlopeCurve::Logistic,
            law: NoiseDistribution::Gaussian { sigma: 1.0 / rate },
        })
    }

    fn empty() -> Ledger {
        let mut ledger = Ledger::new(Budget::unlimited(1e-5).unwrap(), Bound::Tight);
        LedgerSharing::default().hand_to(&mut ledger);
        ledger
    }

    #[test]
    fn ledgers_with_equal_limits_share_states_and_others_do_not() {
        let ledger = |epsilon| Ledger::new(Budget::limited(epsilon, 1e-5).unwrap(), Bound::Tight);
        let mut ledgers = [ledger(8.0), ledger(8.0), ledger(9.0)];
        let mut sharing = LedgerSharing::default();
        ledgers
            .iter_mut()
            .for_each(|ledger| sharing.hand_to(ledger));
        let [a, b, c] = ledgers.map(|ledger| charged(ledger, &[1.0]));
        assert!(a.shares_state_with(&b) && !a.shares_state_with(&c));
        assert_eq!(a.spent(), c.spent());
        // A ledger that was charged before keeps its charges.
        let mut before = charged(ledger(8.0), &[2.0]);
        sharing.hand_to(&mut before);
        assert_eq!(before.charges(), 1);
    }

    fn charged(mut ledger: Ledger, rates: &[f64]) -> Ledger {
        for &rate in rates {
            ledger.spend(event(rate)).unwrap();
        }
        ledger
    }

    #[test]
    fn parties_with_equal_charges_share_one_state() {
        let first = empty();
        let (one, other) = (charged(first.clone(), &[1.0, 2.0]), first.clone());
        // No ledger is in the state between any more, so it is composed again.
        let other = charged(other, &[1.0, 2.0]);
        assert_eq!(one.spent(), other.spent());
        let beside = charged(one.clone(), &[3.0]);
        assert!(beside.shares_state_with(&charged(one.clone(), &[3.0])));
        assert_eq!((one.charges(), beside.charges()), (2, 3));
    }

    #[test]
    fn a_total_of_counted_charges_equals_that_of_a_ledger() {
        let budget = Budget::unlimited(1e-5).unwrap();
        let charges = [(event(1.0), 300), (event(2.0), 1), (event(1.0), 20)];
        let mut ledger = empty();
        for (event, count) in charges {
            for _ in 0..count {
                ledger.spend(event).unwrap();
            }
        }
        let total = Ledger::total_of(budget, Bound::Tight, charges).unwrap();
        // Rényi losses alone are composed here, without a search, and so to the bit.
        assert_eq!(total, ledger.spent());
        // Events without a price have no total.
        assert!(Ledger::total_of(budget, Bound::Paper, charges).is_err());
    }

    #[test]
    fn different_charges_do_not_affect_each_other() {
        let common = charged(empty(), &[1.0]);
        // More than the memo keeps.
        let rates: Vec<f64> = (1..=100).map(f64::from).collect();
        let together: Vec<Ledger> = rates
            .iter()
            .map(|&rate| charged(common.clone(), &[rate, 1.0]))
            .collect();
        for (&rate, ledger) in rates.iter().zip(&together) {
            let alone = charged(empty(), &[1.0, rate, 1.0]);
            assert_eq!(ledger.spent(), alone.spent());
            assert_eq!(ledger.charges(), 3);
        }
        assert_eq!(common.charges(), 1);
        // The same while all states after the common one are alive.
        let alive: Vec<Ledger> = rates
            .iter()
            .map(|&rate| charged(common.clone(), &[rate]))
            .collect();
        for (&rate, ledger) in rates.iter().zip(&alive) {
            assert_eq!(ledger.spent(), charged(empty(), &[1.0, rate]).spent());
        }
    }
}
