//! What was charged, and what that comes to: a page of a ledger.
//!
//! A page follows from the one before it and the event that was charged, so parties that are charged the same turn to the same
//! page. Whoever gets there first writes it; while somebody is on it, the others find it.

use std::sync::{Arc, Mutex, Weak};

use super::total::Total;
use super::{Bound, Event, Guarantee};

/// Everything charged up to a moment, at one `δ`.
#[derive(Debug)]
pub(super) struct Book {
    delta: f64,
    charges: u32,
    total: Total,
    /// ε of the total by our bound.
    tight: f64,
    /// `None` once something was released that the paper's theorem does not cover.
    paper: Option<f64>,
    /// The pages that others turned to from here.
    next: Mutex<Vec<(Event, Weak<Book>)>>,
}

/// As many different prices at a time are looked through; parties beyond them write their own pages.
const MOST_PAGES: usize = 64;

impl Book {
    pub(super) fn new(delta: f64) -> Self {
        Self {
            delta,
            charges: 0,
            total: Total::nothing_at(delta),
            tight: 0.0,
            paper: Some(0.0),
            next: Mutex::default(),
        }
    }

    /// The page after one more charge.
    pub(super) fn after(&self, event: &Event) -> Arc<Self> {
        if let Some(page) = self.found(event) {
            return page;
        }
        // Written while the list is open to others: what two of them write at a time is the same.
        let mut page = Self {
            total: self.total.clone(),
            next: Mutex::default(),
            ..*self
        };
        page.enter(event, 1);
        page.add_up();
        let page = Arc::new(page);
        // A list that somebody left in the middle is as good as none.
        if let Ok(mut next) = self.next.lock() {
            next.retain(|(_, page)| page.strong_count() > 0);
            if next.len() < MOST_PAGES {
                next.push((*event, Arc::downgrade(&page)));
            }
        }
        page
    }

    fn found(&self, event: &Event) -> Option<Arc<Self>> {
        let next = self.next.lock().ok()?;
        let found = next.iter().find(|(after, _)| after == event);
        found.and_then(|(_, page)| page.upgrade())
    }

    /// Enters the same charge so many times.
    pub(super) fn enter(&mut self, event: &Event, count: u32) {
        self.charges += count;
        self.total.add_times(event, count);
    }

    /// What was entered, added up.
    pub(super) fn add_up(&mut self) {
        self.tight = self.total.epsilon_after(self.tight, self.delta);
        self.paper = self.total.paper();
    }

    pub(super) fn charges(&self) -> u32 {
        self.charges
    }

    /// The total by a bound.
    pub(super) fn spent(&self, bound: Bound) -> Guarantee {
        match bound {
            Bound::Tight => Guarantee {
                epsilon: self.tight,
                delta: self.delta,
            },
            // A ledger by the paper's bound refuses what the paper is silent about, so there is a total.
            Bound::Paper => Guarantee {
                epsilon: self.paper.unwrap_or(f64::INFINITY),
                delta: 0.0,
            },
        }
    }

    /// The total by the paper's bound, if its theorem covers everything.
    pub(super) fn paper(&self) -> Option<f64> {
        self.paper
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Budget, Ideal, Ledger};
    use crate::private::Law;

    fn event(rate: f64) -> Event {
        Event::on_grid(Ideal::Objective {
            sensitivity: 0.1,
            spread: 0.01,
            one_signed: true,
            law: Law::Gaussian { sigma: 1.0 / rate },
        })
    }

    fn empty() -> Ledger {
        Ledger::new(Budget::unlimited(1e-5).unwrap(), Bound::Tight)
    }

    fn charged(mut ledger: Ledger, rates: &[f64]) -> Ledger {
        for &rate in rates {
            ledger.spend(event(rate)).unwrap();
        }
        ledger
    }

    #[test]
    fn parties_that_are_charged_the_same_are_on_one_page() {
        let first = empty();
        let (one, other) = (charged(first.clone(), &[1.0, 2.0]), first.clone());
        // The page between is gone, since nobody is on it any more; those that come later write it again.
        let other = charged(other, &[1.0, 2.0]);
        assert_eq!(one.spent(), other.spent());
        let beside = charged(one.clone(), &[3.0]);
        assert!(Arc::ptr_eq(
            &beside.book,
            &charged(one.clone(), &[3.0]).book
        ));
        assert_eq!((one.charges(), beside.charges()), (2, 3));
    }

    #[test]
    fn a_total_of_many_charges_is_what_a_ledger_comes_to() {
        let budget = Budget::unlimited(1e-5).unwrap();
        let charges = [(event(1.0), 300), (event(2.0), 1), (event(1.0), 20)];
        let mut ledger = empty();
        for (event, count) in charges {
            for _ in 0..count {
                ledger.spend(event).unwrap();
            }
        }
        let total = Ledger::total_of(budget, Bound::Tight, charges).unwrap();
        // Rényi losses alone are added up here, without a search, and so to the bit.
        assert_eq!(total, ledger.spent());
        // What has no price has no total.
        assert!(Ledger::total_of(budget, Bound::Paper, charges).is_err());
    }

    #[test]
    fn who_is_charged_otherwise_does_not_notice_the_others() {
        let common = charged(empty(), &[1.0]);
        // More than there is room for.
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
    }
}
