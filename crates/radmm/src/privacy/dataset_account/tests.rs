//! The limits of a data set over several studies.

use super::*;
use crate::curator::{Curator, CuratorConfig, NoiseKey, Refusal, Shard};
use crate::privacy::{
    Bound, IdealRelease, Ledger, Mechanism, NoiseDistribution, NoiseScaling, SlopeCurve,
};
use crate::problem::{Loss, Problem};

use crate::protocol::query::Query;

/// A release that costs `epsilon`.
fn pure(epsilon: f64) -> PrivacyEvent {
    PrivacyEvent::from(IdealRelease::Additive {
        sensitivity: epsilon,
        law: NoiseDistribution::Gamma { rate: 1.0 },
    })
}

/// An answer with Gaussian noise, `v = S/σ`.
fn gaussian(v: f64) -> PrivacyEvent {
    PrivacyEvent::from(IdealRelease::Additive {
        sensitivity: v,
        law: NoiseDistribution::Gaussian { sigma: 1.0 },
    })
}

fn account(pure: Option<f64>, relaxed: Option<(f64, f64)>) -> DatasetAccount {
    DatasetAccount::new(DatasetLimits::new(pure, relaxed).unwrap())
}

/// A study of its own, without a limit of its own.
fn study(account: &DatasetAccount) -> Ledger {
    Ledger::new(Budget::unlimited(1e-5).unwrap(), Bound::Tight).with_account(account)
}

fn epsilons(account: &DatasetAccount) -> Vec<f64> {
    let spent = account.spent().unwrap();
    spent.totals.iter().map(|total| total.epsilon).collect()
}

fn over_limit(refused: Result<crate::privacy::Paid, SpendError>) -> AccountRefusal {
    match refused.err() {
        Some(SpendError::Account(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn invalid_limits_are_unbuildable() {
    assert_eq!(DatasetLimits::new(None, None), Err(InvalidLimits::Missing));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(DatasetLimits::new(Some(bad), None).is_err(), "{bad}");
        assert!(
            DatasetLimits::new(Some(bad), Some((1.0, 1e-5))).is_err(),
            "{bad}"
        );
        assert!(
            DatasetLimits::new(None, Some((bad, 1e-5))).is_err(),
            "{bad}"
        );
        assert!(
            DatasetLimits::new(Some(1.0), Some((bad, 1e-5))).is_err(),
            "{bad}"
        );
    }
    for bad in [0.0, -0.0, -1e-9, 1.0, 1.5, f64::NAN, f64::INFINITY] {
        assert!(DatasetLimits::new(None, Some((1.0, bad))).is_err(), "{bad}");
    }
    assert!(DatasetLimits::new(Some(1.0), Some((0.5, 1e-5))).is_ok());
}

#[test]
fn two_studies_on_the_same_rows_share_one_limit() {
    let account = account(Some(1.0), None);
    let (mut first, mut second) = (study(&account), study(&account));
    first.spend(pure(0.4)).unwrap();
    second.spend(pure(0.3)).unwrap();
    // 0.6 would be within the limit for each of them alone.
    let refused = over_limit(first.spend(pure(0.4)));
    assert_eq!(
        refused.to_string(),
        "the data set's limit epsilon = 1 at delta = 0.0 would be exceeded: 0.700000 was spent by 2 studies, \
         and with this release the total would be 1.100000"
    );
    let third = study(&account).spend(pure(0.4));
    assert!(matches!(
        over_limit(third),
        AccountRefusal::OverLimit { .. }
    ));
    second.spend(pure(0.29)).unwrap();
    let spent = account.spent().unwrap();
    assert_eq!((spent.charges, spent.studies), (3, 2), "a refusal is none");
}

#[test]
fn a_later_study_has_what_is_left_of_the_limit() {
    let account = account(Some(1.0), None);
    {
        study(&account).spend(pure(0.8)).unwrap();
    }
    let refused = over_limit(study(&account).spend(pure(0.3)));
    let AccountRefusal::OverLimit { studies, spent, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(studies, 1);
    assert!((spent - 0.8).abs() < 1e-15);
    assert!(refused.to_string().contains("by 1 study,"), "{refused}");
}

/// The ε of a Rényi loss of zero at order q and δ = 1e-5.
fn conversion(q: f64) -> f64 {
    (1.0 - 1.0 / q).ln() - (1e-5f64.ln() + q.ln()) / (q - 1.0)
}

/// The order at which most Gaussian answers fit into ε = `limit` at δ = 1e-5, found independently.
fn fixed_order(limit: f64) -> f64 {
    let orders = (-24..=72).map(|k| 1.0 + (f64::from(k) / 4.0).exp2());
    let room = |q: &f64| (limit - conversion(*q)) / q;
    let best = orders.max_by(|a, b| room(a).total_cmp(&room(b)));
    best.unwrap()
}

#[test]
fn a_pure_study_and_a_gaussian_one_add_up_at_the_order_that_the_limit_fixed() {
    for limit in [1.0, 6.0, 20.0] {
        let q = fixed_order(limit);
        // Few enough answers to fit; the one order is used whatever comes first, and however much of each there is.
        for (loss, count) in [(0.02, 20), (0.2, 2), (0.3, 1)] {
            for gaussian_first in [false, true] {
                let account = account(None, Some((limit, 1e-5)));
                let mut answers = study(&account);
                let mut both = [pure(loss), gaussian(0.02)];
                if gaussian_first {
                    both.reverse();
                }
                for event in both {
                    for _ in 0..count {
                        answers.spend(event).unwrap();
                    }
                }
                let each = loss.min(q * loss * loss / 2.0) + q * 0.02 * 0.02 / 2.0;
                let exact = f64::from(count) * each + conversion(q);
                let spent = epsilons(&account)[0];
                assert!(
                    spent >= exact * (1.0 - 1e-12) && spent < exact * (1.0 + 1e-9),
                    "{limit} {loss}: {spent} {exact}"
                );
                assert!(
                    answers.spent().epsilon <= spent,
                    "the study's may be the best"
                );
            }
        }
    }
}

#[test]
fn pure_studies_alone_add_up_as_such_while_that_is_less() {
    let account = account(None, Some((1.0, 1e-5)));
    for _ in 0..3 {
        study(&account).spend(pure(0.3)).unwrap();
    }
    let spent = epsilons(&account)[0];
    assert!((0.9..0.9 + 1e-12).contains(&spent), "{spent}");
    over_limit(study(&account).spend(pure(0.3)));
}

#[test]
fn a_pure_limit_refuses_gaussian_noise_of_any_size() {
    let both = account(Some(100.0), Some((100.0, 1e-5)));
    let refused = over_limit(study(&both).spend(gaussian(1e-9)));
    let AccountRefusal::OverLimit { limit, total, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!((limit.epsilon, limit.delta), (100.0, 0.0));
    assert_eq!(total, f64::INFINITY);
    assert!(over_limit(study(&both).spend(IdealRelease::Exact.into())) != AccountRefusal::Broken);
    assert_eq!(epsilons(&both), [0.0, 0.0]);
    let relaxed = account(None, Some((100.0, 1e-5)));
    study(&relaxed).spend(gaussian(1e-9)).unwrap();
}

#[test]
fn with_two_limits_a_charge_keeps_within_both() {
    // Many small losses cost less at a δ than in sum.
    let steps = |account: &DatasetAccount| {
        let mut study = study(account);
        (0..1000)
            .take_while(|_| study.spend(pure(0.01)).is_ok())
            .count()
    };
    let by_sum = steps(&account(Some(2.005), None));
    let by_delta = steps(&account(None, Some((1.0, 1e-5))));
    assert_eq!(by_sum, 200);
    assert!(by_delta > 400, "{by_delta}");
    assert_eq!(steps(&account(Some(2.005), Some((1.0, 1e-5)))), 200);
    let tight_delta = steps(&account(Some(2.005), Some((0.1, 1e-5))));
    assert_eq!(tight_delta, steps(&account(None, Some((0.1, 1e-5)))));
    assert!(tight_delta < 200);
}

#[test]
fn a_charge_that_one_account_refuses_is_made_in_neither() {
    let account = account(Some(1.0), None);
    let own = Budget::limited(0.5, 0.0).unwrap();
    let mut ledger = Ledger::new(own, Bound::Tight).with_account(&account);
    ledger.spend(pure(0.4)).unwrap();
    let booked = (ledger.spent(), ledger.charges(), account.spent().unwrap());
    let beyond_study = ledger.spend(pure(0.2)).err();
    assert!(matches!(
        beyond_study,
        Some(SpendError::OverBudget { limit: 0.5, .. })
    ));
    assert_eq!(
        (ledger.spent(), ledger.charges(), account.spent().unwrap()),
        booked
    );
    study(&account).spend(pure(0.55)).unwrap();
    let others = account.spent().unwrap();
    over_limit(ledger.spend(pure(0.09)));
    assert_eq!((ledger.spent(), ledger.charges()), (booked.0, booked.1));
    assert_eq!(account.spent().unwrap(), others);
    let malformed = ledger.spend(pure(f64::NAN)).err();
    assert_eq!(malformed, Some(SpendError::Malformed));
    assert_eq!(account.spent().unwrap(), others);
}

#[test]
fn the_account_uses_our_bound_even_if_the_study_uses_the_papers() {
    let account = account(Some(10.0), None);
    let mut ledger =
        Ledger::new(Budget::unlimited(0.0).unwrap(), Bound::Paper).with_account(&account);
    let event = PrivacyEvent::from(IdealRelease::Objective {
        sensitivity: 0.1,
        spread: 0.4,
        curve: SlopeCurve::Logistic,
        law: NoiseDistribution::Gamma { rate: 2.0 },
    });
    ledger.spend(event).unwrap();
    assert_eq!(epsilons(&account)[0], ledger.spent_tight().epsilon);
    assert!(ledger.spent().epsilon > epsilons(&account)[0]);
    let silent = ledger.spend(pure(0.1)).err();
    assert!(matches!(silent, Some(SpendError::PaperSilent { .. })));
    assert_eq!(account.spent().unwrap().charges, 1);
}

#[test]
fn replaying_the_journal_restores_the_account() {
    let limits = || DatasetLimits::new(None, Some((50.0, 1e-6))).unwrap();
    let account = DatasetAccount::new(limits());
    let mut studies = [study(&account), study(&account), study(&account)];
    let mut journal = Vec::new();
    for n in 0..60u32 {
        let ideal = [pure(0.013).ideal, gaussian(0.21).ideal][n as usize % 2];
        let event = PrivacyEvent {
            ideal,
            slack: 1e-4 * f64::from(n % 7),
        };
        let which = n * n % 3;
        studies[which as usize].spend(event).unwrap();
        journal.push((which, event));
    }
    let again = DatasetAccount::replay(limits(), journal.iter().copied()).unwrap();
    assert_eq!(again.spent().unwrap(), account.spent().unwrap());
    // n² mod 3 is never 2.
    assert_eq!(again.spent().unwrap().studies, 2);
    // A study that goes on after a replay is neither charged nor counted again.
    let mut resumed = Ledger::new(Budget::unlimited(1e-6).unwrap(), Bound::Tight);
    for (_, event) in journal.iter().filter(|(which, _)| *which == 1) {
        resumed.spend(*event).unwrap();
    }
    let mut resumed = resumed.with_account(&again);
    assert_eq!(again.spent().unwrap(), account.spent().unwrap());
    for ledger in [&mut studies[1], &mut resumed] {
        ledger.spend(gaussian(0.3)).unwrap();
    }
    assert_eq!(again.spent().unwrap(), account.spent().unwrap());
}

#[test]
fn past_charges_are_replayed_even_beyond_the_limits() {
    let lowered = DatasetLimits::new(Some(0.5), None).unwrap();
    let account =
        DatasetAccount::replay(lowered.clone(), [(1, pure(0.4)), (9, pure(0.4))]).unwrap();
    let spent = account.spent().unwrap();
    assert!((spent.totals[0].epsilon - 0.8).abs() < 1e-15);
    assert_eq!((spent.charges, spent.studies), (2, 2));
    over_limit(study(&account).spend(pure(1e-12)));
    let torn = DatasetAccount::replay(lowered, [(1, pure(0.1)), (1, pure(-0.1))]);
    assert_eq!(torn.err(), Some(SpendError::Malformed));
}

#[test]
fn an_interrupted_account_refuses_every_charge() {
    let account = account(Some(1.0), None);
    let mut ledger = study(&account);
    ledger.spend(pure(0.1)).unwrap();
    let handle = account.clone();
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _held = handle.0.lock().unwrap();
        panic!("in the middle of a charge");
    }));
    assert!(died.is_err());
    assert_eq!(over_limit(ledger.spend(pure(0.1))), AccountRefusal::Broken);
    assert_eq!(account.spent(), Err(AccountRefusal::Broken));
    assert_eq!(ledger.charges(), 1);
}

#[test]
fn the_account_refuses_before_a_row_is_read() {
    let account = account(Some(0.5), None);
    study(&account).spend(pure(0.4)).unwrap();
    let terms = CuratorConfig {
        problem: Problem {
            loss: Loss::Logistic,
            weight: 1.0,
            ridge: 0.1,
            nodes: 2,
            tolerance: 1e-10,
            shape: None,
        },
        mechanism: Mechanism::Objective {
            law: NoiseDistribution::Gamma { rate: 0.5 },
            scale: NoiseScaling::Fixed,
        },
        ledger: study(&account),
        noise: NoiseKey::repeating(1, 0, 0),
    };
    // Reading a row of these panics.
    let mut curator = Curator::new(Shard::untouchable(20, 2), terms).unwrap();
    let question = Query::Minimise {
        quadratic: 1.0,
        linear: vec![0.0; 2],
        near: vec![0.0; 2],
    };
    // S·α + ln(1 + x) = 0.05 + 0.012 fits once.
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = curator.answer(1, &question);
    }));
    assert!(read.is_err(), "what fits is asked of the rows");
    let refused = curator.answer(2, &question);
    assert!(
        matches!(
            refused,
            Err(Refusal::BudgetRefused(SpendError::Account(
                AccountRefusal::OverLimit { studies: 2, .. }
            )))
        ),
        "{refused:?}"
    );
    assert_eq!(curator.ledger().charges(), 1);
}
