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

fn filtered(pure: Option<f64>, relaxed: (f64, f64)) -> DatasetAccount {
    let limits = DatasetLimits::new(pure, Some(relaxed)).unwrap();
    DatasetAccount::new(limits.kept_by(SiteAccounting::Gaussian))
}

/// An answer with Gaussian noise on the grid.
fn on_grid(v: f64) -> PrivacyEvent {
    PrivacyEvent::on_grid(gaussian(v).ideal)
}

fn in_objective(law: NoiseDistribution) -> PrivacyEvent {
    PrivacyEvent::from(IdealRelease::Objective {
        sensitivity: 0.01,
        spread: 1e-3,
        curve: SlopeCurve::Logistic,
        law,
    })
}

#[test]
fn the_gaussian_filter_admits_more_answers_than_one_order() {
    for (limit, delta) in [(1.0, 1e-5), (4.0, 1e-6), (0.3, 1e-8)] {
        let admitted = |account: &DatasetAccount| {
            let mut study = study(account);
            (0..5000)
                .take_while(|_| study.spend(on_grid(0.01 * limit)).is_ok())
                .count()
        };
        let by_order = admitted(&account(None, Some((limit, delta))));
        let by_filter = admitted(&filtered(None, (limit, delta)));
        assert!(
            by_filter as f64 > 1.1 * by_order as f64,
            "{by_filter} {by_order}"
        );
    }
}

#[test]
fn the_gaussian_filter_ends_at_its_fixed_mu_whatever_the_answers() {
    let (limit, delta) = (1.0, 1e-5);
    // μ of (0.99, 1e-5·e^−0.005), from the budget of that total.
    let left = Budget::limited(0.99, delta * (-0.005f64).exp()).unwrap();
    let mu = left.gaussian_mu();
    for each in [mu / 2.0, mu / 7.3, mu / 100.0] {
        let account = filtered(None, (limit, delta));
        let shown = account.spent().unwrap().gaussian.unwrap();
        assert!((shown.limit / mu - 1.0).abs() < 1e-12 && shown.mu == 0.0);
        let mut study = study(&account);
        let most = (mu / each).powi(2);
        let count = (0..20_000)
            .take_while(|_| study.spend(gaussian(each)).is_ok())
            .count();
        assert!(
            (most - 1.0..=most * (1.0 + 1e-9)).contains(&(count as f64)),
            "{count} {most}"
        );
        let shown = account.spent().unwrap().gaussian.unwrap();
        assert!(shown.mu <= shown.limit && shown.mu >= each * (count as f64).sqrt());
        let spent = epsilons(&account)[0];
        assert!(spent <= limit && spent > 0.7 * limit, "{spent}");
        let refused = over_limit(study.spend(gaussian(each)));
        assert!(
            matches!(refused, AccountRefusal::OverLimit { .. }),
            "{refused}"
        );
    }
}

#[test]
fn the_gaussian_filter_refuses_gaussian_noise_in_objectives_and_no_noise() {
    let account = filtered(None, (1.0, 1e-5));
    let mut ledger = study(&account);
    ledger.spend(on_grid(0.05)).unwrap();
    let before = account.spent().unwrap();
    let law = NoiseDistribution::Gaussian { sigma: 1.0 };
    let elsewhere = over_limit(ledger.spend(in_objective(law)));
    assert_eq!(
        elsewhere.to_string(),
        "the data set's limit epsilon = 1 at delta = 1e-5 is kept for Gaussian noise on answers (accounting = \"gaussian\"), \
         and this release has its noise elsewhere; give the study mechanism = \"gradient\" or \"output\""
    );
    let nowhere = over_limit(ledger.spend(IdealRelease::Exact.into()));
    assert!(matches!(nowhere, AccountRefusal::NotGaussian { .. }));
    assert_eq!(account.spent().unwrap(), before);
    ledger.spend(on_grid(0.05)).unwrap();
}

#[test]
fn a_hundredth_is_set_aside_for_pure_losses_and_rounding() {
    let account = filtered(None, (2.0, 1e-5));
    let mut ledger = study(&account);
    ledger.spend(gaussian(0.1)).unwrap();
    ledger.spend(pure(0.012)).unwrap();
    let refused = over_limit(ledger.spend(pure(0.012)));
    assert_eq!(
        refused.to_string(),
        "the data set's limit epsilon = 2 at delta = 1e-5 is kept for Gaussian noise on answers (accounting = \"gaussian\"), \
         and sets aside 0.02 for pure losses and rounding: 0.012000 of it is spent, and with this release it would be \
         0.024000; give the study noise = \"gaussian\""
    );
    // 2κ of an answer counts too.
    let rounded = |slack| PrivacyEvent {
        slack,
        ..gaussian(0.1)
    };
    let refused = over_limit(ledger.spend(rounded(0.0041)));
    assert!(matches!(refused, AccountRefusal::OverReserve { .. }));
    ledger.spend(rounded(0.0039)).unwrap();
    // The reserve is spent, and pure losses in objectives count like others.
    let gamma = NoiseDistribution::Gamma { rate: 1.0 };
    let refused = over_limit(ledger.spend(in_objective(gamma)));
    assert!(matches!(refused, AccountRefusal::OverReserve { .. }));
    ledger.spend(gaussian(0.1)).unwrap();
}

#[test]
fn under_the_gaussian_filter_pure_studies_alone_may_spend_all() {
    let account = filtered(None, (1.0, 1e-5));
    for _ in 0..3 {
        study(&account).spend(pure(0.3)).unwrap();
    }
    let spent = epsilons(&account)[0];
    assert!((0.9..0.9 + 1e-12).contains(&spent), "{spent}");
    over_limit(study(&account).spend(pure(0.3)));
    // After that there is no room for any Gaussian answer.
    let refused = over_limit(study(&account).spend(gaussian(1e-6)));
    assert!(matches!(refused, AccountRefusal::OverReserve { .. }));
    // A pure limit beside it holds as ever.
    let both = filtered(Some(0.5), (1.0, 1e-5));
    study(&both).spend(pure(0.4)).unwrap();
    over_limit(study(&both).spend(pure(0.2)));
    over_limit(study(&both).spend(gaussian(1e-6)));
}

#[test]
fn the_rule_of_a_limit_is_that_of_its_delta() {
    let pure_only = DatasetLimits::new(Some(1.0), None).unwrap();
    assert_eq!(pure_only.accounting(), None);
    assert_eq!(
        pure_only.kept_by(SiteAccounting::Gaussian).accounting(),
        None
    );
    let both = DatasetLimits::new(Some(1.0), Some((1.0, 1e-5))).unwrap();
    let renyi = both.accounting().unwrap();
    assert_eq!(renyi.name(), "renyi");
    let gaussian = both.kept_by(SiteAccounting::Gaussian);
    assert_eq!(gaussian.accounting().unwrap().name(), "gaussian");
    assert_eq!(gaussian.kept_by(renyi).accounting(), Some(renyi));
}

#[test]
fn replaying_the_journal_restores_the_gaussian_filter() {
    let limits = || {
        let limits = DatasetLimits::new(None, Some((2.0, 1e-6))).unwrap();
        limits.kept_by(SiteAccounting::Gaussian)
    };
    let account = DatasetAccount::new(limits());
    let mut journal = Vec::new();
    for n in 0..40u32 {
        let event = [on_grid(0.02), on_grid(0.035), pure(1e-5)][n as usize % 3];
        study(&account).spend(event).unwrap();
        journal.push((n, event));
    }
    let again = DatasetAccount::replay(limits(), journal.iter().copied()).unwrap();
    assert_eq!(again.spent().unwrap(), account.spent().unwrap());
    assert_eq!(again.check(), Ok(()));
    // By the other rule the same charges are another total, and what is in objectives has one.
    let renyi = DatasetLimits::new(None, Some((2.0, 1e-6))).unwrap();
    let other = DatasetAccount::replay(renyi, journal).unwrap();
    assert!(epsilons(&other)[0] > epsilons(&account)[0]);
    let law = NoiseDistribution::Gaussian { sigma: 1.0 };
    let beyond = DatasetAccount::replay(limits(), [(0, in_objective(law))]).unwrap();
    assert!(matches!(
        beyond.check(),
        Err(AccountRefusal::NotGaussian { .. })
    ));
    assert_eq!(epsilons(&beyond), [f64::INFINITY]);
}

/// The mean of `f(L)` for the privacy loss of a Gaussian answer, normal with mean `v²/2` and variance `v²`.
fn over_losses(v: f64, f: impl Fn(f64) -> f64) -> f64 {
    let step = 1e-3;
    let at = |n: i32| {
        let z = (f64::from(n) + 0.5) * step;
        (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * step * f(v * v / 2.0 + v * z)
    };
    (-12_000..12_000).map(at).sum()
}

/// `E(1 − e^(ε − L))⁺` for a Gaussian answer, or for randomised response with a pure loss.
fn gaussian_delta(epsilon: f64, v: f64) -> f64 {
    let phi = |z: f64| 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
    phi(v / 2.0 - epsilon / v) - epsilon.exp() * phi(-v / 2.0 - epsilon / v)
}

fn pure_delta(epsilon: f64, loss: f64) -> f64 {
    let more = loss.exp() / (1.0 + loss.exp());
    more * (1.0 - (epsilon - loss).exp()).max(0.0)
        + (1.0 - more) * (1.0 - (epsilon + loss).exp()).max(0.0)
}

/// The largest amount that is admitted after `first`.
fn most_after(
    first: PrivacyEvent,
    next: fn(f64) -> PrivacyEvent,
    spend: &dyn Fn(&[PrivacyEvent]) -> bool,
) -> f64 {
    let (mut low, mut high) = (0.0, 2.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match spend(&[first, next(middle)]) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// The true δ at ε if after one Gaussian answer the next is the worse of the largest Gaussian and the largest pure one that are
/// admitted, depending on the first.
fn adaptive_delta(epsilon: f64, v: f64, spend: &dyn Fn(&[PrivacyEvent]) -> bool) -> f64 {
    let first = gaussian(v);
    let (second, loss) = (
        most_after(first, gaussian, spend),
        most_after(first, pure, spend),
    );
    over_losses(v, |seen| {
        let left = epsilon - seen;
        let stop = (1.0 - left.exp()).max(0.0);
        gaussian_delta(left, second)
            .max(pure_delta(left, loss))
            .max(stop)
    })
}

#[test]
fn adaptively_chosen_answers_keep_the_limit_under_the_filter_and_not_under_the_best_rule() {
    let (limit, delta) = (1.0, 1e-5);
    let by_filter = |events: &[PrivacyEvent]| {
        let account = filtered(None, (limit, delta));
        events
            .iter()
            .all(|event| study(&account).spend(*event).is_ok())
    };
    // The least total over all rules, as a study may take it whose prices are fixed beforehand.
    let by_best = |events: &[PrivacyEvent]| {
        let mut ledger = Ledger::new(Budget::limited(limit, delta).unwrap(), Bound::Tight);
        events.iter().all(|event| ledger.spend(*event).is_ok())
    };
    for v in [0.05, 0.12, 0.2, 0.25] {
        let kept = adaptive_delta(limit, v, &by_filter);
        assert!(kept <= delta, "{v}: {kept}");
        // Nor is much of it left: a hundredth of ε is some thirtieth of ln δ here.
        assert!(kept > 0.6 * delta, "{v}: {kept}");
    }
    let exceeded = adaptive_delta(limit, 0.12, &by_best);
    assert!(exceeded > 1.2 * delta, "{exceeded}");
}
