//! A total at several `δ`.

use serde::Serialize;

use super::Guarantee;

/// A total over a whole run at several `δ`, and its `μ` where all noise is Gaussian and on answers.
///
/// One transcript has a guarantee at every `δ` at once, and each of them holds.
// Privacy: prices do not depend on what was released, and so neither do these totals: the best rule may be taken at each δ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrivacyProfile {
    /// The `μ` of Gaussian differential privacy, rounded up, of the answers in exact arithmetic: together they reveal no more
    /// than one number with noise of deviation `1/μ` that a row moves by one. What rounding adds is part of the totals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mu: Option<f64>,
    /// The total at each `δ`, from the largest `δ` to the smallest.
    #[serde(rename = "epsilon_at")]
    pub totals: Vec<Guarantee>,
}

impl PrivacyProfile {
    /// The `δ` at which totals are stated, besides the study's own.
    pub const DELTAS: [f64; 5] = [1e-4, 1e-5, 1e-6, 1e-8, 1e-10];

    /// Returns these `δ` and the study's own, from the largest to the smallest.
    pub(super) fn deltas(own: f64) -> Vec<f64> {
        let mut deltas = Self::DELTAS.to_vec();
        if !deltas.contains(&own) {
            deltas.push(own);
        }
        deltas.sort_by(|a, b| b.total_cmp(a));
        deltas
    }

    /// Returns the profile of a network from those of its parties, which are at the same `δ`: the largest totals and `μ`.
    pub fn network<'a>(parties: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let larger = |a: Self, b: &Self| Self {
            mu: a.mu.zip(b.mu).map(|(a, b)| a.max(b)),
            totals: { a.totals.into_iter().zip(&b.totals) }
                .map(|(a, b)| Guarantee::network([a, *b]))
                .collect(),
        };
        let mut parties = parties.into_iter();
        let first = parties.next()?.clone();
        Some(parties.fold(first, larger))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::{Bound, Budget, IdealRelease, Ledger, NoiseDistribution, PrivacyEvent};

    fn answer(v: f64) -> PrivacyEvent {
        let law = NoiseDistribution::gaussian(1.0);
        PrivacyEvent::on_grid(IdealRelease::Additive {
            sensitivity: v,
            law,
        })
    }

    fn pure(epsilon: f64) -> PrivacyEvent {
        PrivacyEvent::from(IdealRelease::Additive {
            sensitivity: epsilon,
            law: NoiseDistribution::gamma(1.0),
        })
    }

    fn ledger(delta: f64, events: &[PrivacyEvent]) -> Ledger {
        let mut ledger = Ledger::new(Budget::unlimited(delta).unwrap(), Bound::Tight);
        for event in events {
            ledger.spend(*event).unwrap();
        }
        ledger
    }

    #[test]
    fn every_total_of_a_profile_is_that_of_a_ledger_at_its_delta() {
        let events = [answer(0.1), answer(0.1), answer(0.2), pure(0.05)];
        for (own, count) in [(1e-5, 5), (3e-7, 6), (1e-12, 6), (0.01, 6)] {
            let charged = ledger(own, &events);
            let profile = charged.profile().unwrap();
            assert_eq!(profile.totals.len(), count);
            assert!(profile.totals.contains(&charged.spent()));
            assert!(profile.totals.is_sorted_by(|a, b| a.delta > b.delta));
            assert!(profile.totals.is_sorted_by(|a, b| a.epsilon < b.epsilon));
            for total in &profile.totals {
                let there = ledger(total.delta, &events).spent().epsilon;
                assert!((total.epsilon / there - 1.0).abs() < 1e-12, "{total}");
            }
            assert_eq!(profile.mu, None, "there is a pure loss");
        }
    }

    #[test]
    fn mu_is_the_root_of_the_sum_of_squares_rounded_up() {
        let profile = ledger(1e-5, &[answer(0.3), answer(0.4)]).profile().unwrap();
        let mu = profile.mu.unwrap();
        assert!((0.5..0.5 + 1e-15).contains(&mu), "{mu}");
        // The total at every δ is that of μ, and rounding: 2κ each.
        for total in &profile.totals {
            let alone = ledger(
                total.delta,
                &[PrivacyEvent {
                    slack: 0.0,
                    ..answer(0.5)
                }],
            );
            let rounding = total.epsilon - alone.spent().epsilon;
            assert!(
                (0.7 / 2048.0..0.75 / 2048.0).contains(&rounding),
                "{rounding}"
            );
        }
        let nothing = ledger(1e-5, &[]).profile().unwrap();
        assert_eq!(nothing.mu, Some(0.0));
        assert!(nothing.totals.iter().all(|total| total.epsilon == 0.0));
    }

    #[test]
    fn pure_and_infinite_totals_have_no_profile() {
        assert_eq!(ledger(0.0, &[pure(0.3)]).profile(), None);
        assert_eq!(ledger(1e-5, &[IdealRelease::Exact.into()]).profile(), None);
        let paper = Ledger::new(Budget::unlimited(1e-5).unwrap(), Bound::Paper);
        assert_eq!(paper.profile(), None);
    }

    #[test]
    fn a_charge_changes_the_profile() {
        let mut charged = ledger(1e-5, &[answer(0.1)]);
        let before = charged.profile().unwrap();
        charged.spend(answer(0.1)).unwrap();
        let after = charged.profile().unwrap();
        assert!(after.mu > before.mu && after.totals[0].epsilon > before.totals[0].epsilon);
        let all = [(answer(0.1), 2)];
        let at_once = Ledger::profile_of(Budget::unlimited(1e-5).unwrap(), Bound::Tight, all);
        assert_eq!(at_once.unwrap(), Some((*after).clone()));
    }

    #[test]
    fn a_network_has_the_largest_totals_at_every_delta() {
        let of = |events: &[PrivacyEvent]| ledger(1e-5, events).profile().unwrap();
        // A pure loss is worse at small δ, and better at large δ.
        let (one, other) = (of(&[answer(0.4)]), of(&[pure(1.9)]));
        let both = PrivacyProfile::network([&*one, &*other]).unwrap();
        assert_eq!(both.mu, None);
        assert_eq!(both.totals.first(), other.totals.first());
        assert_eq!(both.totals.last(), one.totals.last());
        let alike = PrivacyProfile::network([&*one, &*of(&[answer(0.5)])]).unwrap();
        assert_eq!(alike, *of(&[answer(0.5)]));
        assert_eq!(PrivacyProfile::network([]), None);
    }
}
