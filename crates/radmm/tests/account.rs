//! The accountant against independent computations, through what everybody sees of it: ledgers and totals.
#![allow(
    clippy::disallowed_methods,
    reason = "tests compare with the platform's functions"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::VecDeque;

use proptest::prelude::*;
use radmm::algorithm::admm::{Admm, Penalty};
use radmm::algorithm::recycled::Recycled;
use radmm::algorithm::schedule::Schedule;
use radmm::curator::{Curator, CuratorConfig, NoiseKey};
use radmm::graph::NodeId;
use radmm::node::{Node, NodeConfig, Output};
use radmm::privacy::{
    Bound, Budget, DatasetAccount, DatasetLimits, IdealRelease, Ledger, Mechanism,
    NoiseDistribution, NoiseScaling, PrivacyEvent, SlopeCurve, SpendError,
};
use radmm::problem::{Loss, Problem};
use radmm::protocol::query::Query;
use support::{invented, shard};

fn additive(sensitivity: f64, law: NoiseDistribution) -> PrivacyEvent {
    IdealRelease::Additive { sensitivity, law }.into()
}

fn objective(sensitivity: f64, spread: f64, law: NoiseDistribution) -> PrivacyEvent {
    IdealRelease::Objective {
        sensitivity,
        spread,
        curve: SlopeCurve::Logistic,
        law,
    }
    .into()
}

fn gaussian(sigma: f64) -> NoiseDistribution {
    NoiseDistribution::Gaussian { sigma }
}

fn gamma(rate: f64) -> NoiseDistribution {
    NoiseDistribution::Gamma { rate }
}

fn ledger(delta: f64) -> Ledger {
    Ledger::new(Budget::unlimited(delta).unwrap(), Bound::Tight)
}

fn spent(events: impl IntoIterator<Item = PrivacyEvent>, delta: f64) -> f64 {
    let mut ledger = ledger(delta);
    for event in events {
        ledger.spend(event).unwrap();
    }
    ledger.spent().epsilon
}

#[test]
fn gaussian_answers_cost_what_exact_arithmetic_says_and_hardly_more() {
    let table = include_str!("gaussian.txt");
    let lines: Vec<&str> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(lines.len(), 19 * 15);
    for line in lines {
        let columns: Vec<f64> = line.split(' ').map(|text| text.parse().unwrap()).collect();
        let &[mu, delta, exact] = columns.as_slice() else {
            panic!("{line}")
        };
        let ours = spent([additive(mu, gaussian(1.0))], delta);
        // Exact values were rounded down to 20 digits, and may have been rounded up to doubles.
        assert!(ours >= exact.next_down(), "{line}: {ours}");
        // A margin of 64 roundings in δ, of which little is left to see in 1 − δ.
        let margin = 1e-14 / (1.0 - delta).min(0.1);
        let excess = ours - exact;
        assert!(excess <= margin * (1.0 + exact), "{line}: {excess:e}");
    }
}

#[test]
fn gaussian_answers_cost_what_other_libraries_say() {
    // `get_epsilon_gaussian(σ, δ)` of dp_accounting 0.6.0, found to 1e-12.
    for (sigma, delta, epsilon) in [
        (1.0, 1e-5, 4.377_178_095_681_137),
        (4.0, 1e-5, 0.926_341_503_998_228_8),
        (0.5, 1e-6, 10.997_151_214_220_652),
        (10.0, 1e-8, 0.492_850_365_354_915_17),
    ] {
        let ours = spent([additive(1.0, gaussian(sigma))], delta);
        assert!((ours - epsilon).abs() < 1e-11, "{sigma} {delta}: {ours}");
    }
    // `get_sigma_gaussian(ε, δ)`, found to a tolerance in σ that shows in ε.
    for (epsilon, delta, sigma) in [
        (1.0, 1e-5, 3.730_631_634_815_937_4),
        (0.1, 1e-6, 36.304_690_426_195_194),
        (2.0, 1e-9, 2.844_547_073_495_747),
        (8.0, 1e-12, 0.912_251_998_839_913_5),
    ] {
        let ours = spent([additive(1.0, gaussian(sigma))], delta);
        assert!((ours / epsilon - 1.0).abs() < 1e-9, "{sigma}: {ours}");
    }
}

#[test]
fn many_answers_cost_what_one_with_all_their_noise_does() {
    // 5000 of v = 0.02 and one of √2.
    let many = spent(vec![additive(0.02, gaussian(1.0)); 5000], 1e-6);
    let one = spent([additive(2f64.sqrt(), gaussian(1.0))], 1e-6);
    assert!((many / one - 1.0).abs() < 1e-11, "{many} {one}");
    // They may come in any order, with pure losses between them.
    let mut mixed = Vec::new();
    for n in 0..100 {
        mixed.push(additive(0.001 * f64::from(n), gaussian(0.5)));
        mixed.extend((n % 50 == 3).then(|| additive(0.1, gamma(3.0))));
    }
    let forwards = spent(mixed.iter().copied(), 1e-6);
    let backwards = spent(mixed.iter().rev().copied(), 1e-6);
    assert!((forwards / backwards - 1.0).abs() < 1e-12);
    // Σ (2n/1000)² = 4e-6 · 99·100·199/6 = 1.3134, and two pure losses of 0.3.
    let exact = spent([additive(1.3134f64.sqrt(), gaussian(1.0))], 1e-6) + 0.6;
    assert!((forwards / exact - 1.0).abs() < 1e-12, "{forwards} {exact}");
}

#[test]
fn the_exact_way_is_the_better_the_more_often_answers_are_given() {
    for (count, v) in [(1, 0.1), (20, 0.1), (100, 0.1), (1000, 0.1)] {
        let exact = spent(vec![additive(v, gaussian(1.0)); count], 1e-5);
        // Rényi losses of q·n·v²/2, converted at the best of many orders.
        let renyi = (1..200_000)
            .map(|k| 1.0 + f64::from(k) * 1e-3)
            .map(|q| {
                let loss = q * count as f64 * v * v / 2.0;
                loss + (1.0 - 1.0 / q).ln() - (1e-5f64.ln() + q.ln()) / (q - 1.0)
            })
            .fold(f64::INFINITY, f64::min);
        assert!(exact < 0.96 * renyi, "{count}: {exact} {renyi}");
        assert!(exact > 0.8 * renyi, "{count}: {exact} {renyi}");
    }
}

/// `ln δ(ε)` of Gaussian answers by quadrature of an integral whose terms are all positive, so that nothing cancels:
/// `δ = φ(x) ∫₀^∞ e^(−xt − t²/2)(1 − e^(−μt)) dt` with `x = ε/μ − μ/2`. Simpson's rule, good to 1e-7 for μ ≤ 30.
fn log_profile(epsilon: f64, mu: f64) -> f64 {
    let x = epsilon / mu - mu / 2.0;
    let end = if x > 4.0 { 60.0 / x } else { 12.0 + x.abs() };
    let steps = 6000u32;
    let h = end / f64::from(steps);
    // Taken out, so that nothing overflows where x is negative.
    let peak = x.min(0.0).powi(2) / 2.0;
    let term = |n: u32| {
        let t = f64::from(n) * h;
        let weight = [2.0, 4.0][n as usize % 2] / (1.0 + f64::from(u8::from(n == steps)));
        -weight * (-x * t - t * t / 2.0 - peak).exp() * (-mu * t).exp_m1()
    };
    let integral: f64 = (1..=steps).map(term).sum::<f64>() * h / 3.0;
    peak - x * x / 2.0 - (2.0 * std::f64::consts::PI).sqrt().ln() + integral.ln()
}

#[test]
fn the_quadrature_behind_the_next_tests_is_right() {
    // Φ(½ − ε) − e^ε Φ(−½ − ε) with 30 digits (mpmath 1.3).
    for (epsilon, mu, delta) in [
        (1.0, 1.0, 0.126_936_737_506_643_95_f64),
        (4.377_178_095_681_137, 1.0, 1e-5),
        (0.0, 2.0, 0.682_689_492_137_085_9),
    ] {
        let log = log_profile(epsilon, mu);
        assert!((log - delta.ln()).abs() < 1e-7, "{epsilon} {mu}: {log}");
    }
}

/// Powers of ten with exponents in a range.
fn magnitude(low: f64, high: f64) -> impl Strategy<Value = f64> + Clone {
    (low..high).prop_map(|exponent| 10f64.powf(exponent))
}

/// From 1e-300 to 1 − 1e-12.
fn any_delta() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![
        magnitude(-300.0, -0.31),
        magnitude(-12.0, -1.0),
        magnitude(-12.0, -0.31).prop_map(|rest| 1.0 - rest),
    ]
}

fn any_event() -> impl Strategy<Value = PrivacyEvent> {
    let law = prop_oneof![
        magnitude(-300.0, 300.0).prop_map(gamma),
        magnitude(-300.0, 300.0).prop_map(gaussian),
        magnitude(-3.0, 3.0).prop_map(gamma),
        magnitude(-3.0, 3.0).prop_map(gaussian),
    ];
    let sensitivity = prop_oneof![Just(0.0), magnitude(-300.0, 300.0), magnitude(-4.0, 1.0)];
    let spread = prop_oneof![Just(0.0), magnitude(-300.0, 300.0), magnitude(-4.0, 1.0)];
    let slack = prop_oneof![Just(0.0), magnitude(-20.0, 0.0), magnitude(-300.0, 300.0)];
    (sensitivity, spread, law, slack, 0..3u8).prop_map(|(sensitivity, spread, law, slack, kind)| {
        let ideal = match kind {
            0 => IdealRelease::Additive { sensitivity, law },
            _ => IdealRelease::Objective {
                sensitivity,
                spread,
                curve: [SlopeCurve::Logistic, SlopeCurve::TwoSigned][kind as usize - 1],
                law,
            },
        };
        PrivacyEvent { ideal, slack }
    })
}

/// A sum of two doubles without error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let rest = sum - a;
    (sum, (a - (sum - rest)) + (b - rest))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_total_is_nan_negative_or_smaller_than_before(
        events in prop::collection::vec((any_event(), 1..100u32), 1..8),
        delta in prop_oneof![Just(0.0), any_delta()],
    ) {
        let mut free = ledger(delta);
        let mut held = Ledger::new(Budget::limited(50.0, delta).unwrap(), Bound::Tight);
        let site = DatasetAccount::new(DatasetLimits::new(None, Some((60.0, 1e-5))).unwrap());
        let mut at_site = ledger(delta).with_account(&site);
        let mut last = 0.0;
        for (event, times) in events {
            for _ in 0..times {
                free.spend(event).unwrap();
                let epsilon = free.spent().epsilon;
                prop_assert!(epsilon >= last && epsilon >= 0.0, "{epsilon} after {last}");
                last = epsilon;
                // An overflow is infinite, and an infinite total is refused wherever there is a limit.
                let _ = held.spend(event);
                prop_assert!(held.spent().epsilon <= 50.0);
                let _ = at_site.spend(event);
                prop_assert!(site.spent().unwrap().totals[0].epsilon <= 60.0);
            }
        }
        prop_assert!(held.charges() == free.charges() || last > 50.0);
    }

    #[test]
    fn pure_losses_are_not_understated_by_a_single_rounding(
        events in prop::collection::vec(
            (magnitude(-150.0, 100.0), magnitude(-20.0, 20.0), magnitude(-100.0, 40.0), 1..1500u32),
            1..4,
        ),
    ) {
        // Products and sums without error, twice a double long; of the logarithm a bound from below.
        let (mut exact, mut rest) = (0.0, 0.0);
        let mut total = ledger(0.0);
        for (sensitivity, spread, rate, times) in events {
            let event = PrivacyEvent::from(IdealRelease::Objective {
                sensitivity,
                spread,
                curve: SlopeCurve::OneSigned,
                law: gamma(rate),
            });
            let product = sensitivity * rate;
            let lost = sensitivity.mul_add(rate, -product);
            for _ in 0..times {
                total.spend(event).unwrap();
                for term in [product, lost, libm::log1p(spread).next_down()] {
                    let (sum, error) = two_sum(exact, term);
                    (exact, rest) = (sum, rest + error);
                }
            }
        }
        let ours = total.spent().epsilon;
        prop_assert!((ours - exact) - rest >= 0.0, "{ours} below {exact} + {rest}");
        // Up once for the product, twice for the logarithm, twice for sums; down once for the bound; half an ulp for each.
        let roundings = 10.0 * f64::from(total.charges()) * f64::EPSILON;
        prop_assert!(ours <= exact * (1.0 + roundings), "{ours} far above {exact}");
    }

    #[test]
    fn gaussian_answers_keep_the_delta_they_are_priced_at(
        v in magnitude(-4.0, 0.3), times in 1..200u32, sigma in magnitude(-100.0, 100.0), delta in any_delta(),
    ) {
        let mu = v * f64::from(times).sqrt();
        let epsilon = spent(vec![additive(v * sigma, gaussian(sigma)); times as usize], delta);
        let log = log_profile(epsilon, mu);
        prop_assert!(log <= delta.ln() + 1e-6, "ε = {epsilon}: ln δ is {log}, not {}", delta.ln());
        // Nor does it give much away.
        if epsilon > 1e-9 && delta < 0.999 {
            prop_assert!(log >= delta.ln() - 1e-3, "ε = {epsilon}: ln δ is {log}, not {}", delta.ln());
        }
    }

    #[test]
    fn slack_costs_something_and_no_more_than_its_theorem_says(
        v in magnitude(-2.0, 0.0), times in 1..50u32, slack in magnitude(-6.0, -1.0), delta in magnitude(-12.0, -4.0),
    ) {
        let ideal = additive(v, gaussian(1.0));
        let with = spent(vec![PrivacyEvent { slack, ..ideal }; times as usize], delta);
        prop_assert!(with > spent(vec![ideal; times as usize], delta));
        // 2K, and the ideal at δ·e^−K.
        let k = slack * f64::from(times);
        let theorem = 2.0 * k + spent(vec![ideal; times as usize], delta * (-k).exp());
        prop_assert!(with <= theorem * (1.0 + 1e-11), "{with} above {theorem}");
    }

    #[test]
    fn gaussian_noise_in_the_objective_costs_at_least_what_it_would_on_the_answer(
        v in magnitude(-3.0, 0.5), spread in magnitude(-6.0, 1.0), times in 1..40u32, delta in magnitude(-30.0, -1.0),
    ) {
        // In the worst case both slopes are −1 and the loss is that of Gaussian noise on a shift by S.
        let epsilon = spent(vec![objective(v, spread, gaussian(1.0)); times as usize], delta);
        let log = log_profile(epsilon, v * f64::from(times).sqrt());
        prop_assert!(log <= delta.ln() + 1e-6, "ε = {epsilon}: {log}");
    }
}

#[test]
fn what_overflows_costs_everything_and_is_refused_under_a_limit() {
    let huge = [
        additive(1e300, gaussian(1e-300)),
        additive(1e200, gaussian(1.0)),
        objective(1e300, 0.0, gaussian(1e-300)),
        objective(1e300, 1.0, gamma(1e300)),
        objective(0.1, f64::INFINITY, gamma(1.0)),
        additive(f64::INFINITY, gamma(1e-300)),
        PrivacyEvent {
            slack: f64::INFINITY,
            ..additive(0.1, gaussian(1.0))
        },
        PrivacyEvent {
            slack: f64::MAX,
            ..additive(0.1, gamma(1.0))
        },
    ];
    for event in huge {
        for delta in [0.0, 1e-300, 1e-5, 0.999] {
            let mut free = ledger(delta);
            free.spend(event).unwrap();
            assert_eq!(free.spent().epsilon, f64::INFINITY, "{event:?}");
            free.spend(additive(0.1, gamma(1.0))).unwrap();
            assert_eq!(free.spent().epsilon, f64::INFINITY, "{event:?}");
            let budget = Budget::limited(f64::MAX, delta).unwrap();
            let refused = Ledger::new(budget, Bound::Tight).spend(event).err();
            assert!(matches!(refused, Some(SpendError::OverBudget { .. })));
        }
    }
}

#[test]
fn infinite_noise_and_nan_are_malformed() {
    for event in [
        additive(0.1, gaussian(f64::INFINITY)),
        additive(f64::INFINITY, gaussian(f64::INFINITY)),
        additive(0.0, gamma(f64::INFINITY)),
        objective(0.1, f64::NAN, gamma(1.0)),
        PrivacyEvent {
            slack: f64::NAN,
            ..additive(0.1, gamma(1.0))
        },
        PrivacyEvent {
            slack: -1e-9,
            ..additive(0.1, gamma(1.0))
        },
    ] {
        let refused = ledger(1e-5).spend(event).err();
        assert_eq!(refused, Some(SpendError::Malformed), "{event:?}");
    }
}

/// Loss weights, rows, penalties, rates and losses over many orders of magnitude.
#[test]
fn ours_is_never_above_the_papers_and_holds_where_the_paper_is_silent() {
    let (mut both, mut ours_alone) = (0, 0);
    let losses = [
        Loss::Logistic,
        Loss::SmoothHinge { width: 0.1 },
        Loss::SmoothHinge { width: 3.0 },
    ];
    for loss in losses {
        for weight in [0.01, 1.0, 17.0, 1750.0, 1e6] {
            for rows in [1usize, 7, 100, 9044, 1_000_000] {
                for k in -6..=6 {
                    let quadratic = 10f64.powf(f64::from(k) * 0.6);
                    for j in -10..=10 {
                        let law = gamma(10f64.powf(f64::from(j) * 0.4));
                        let event = priced(loss, weight, rows, quadratic, law);
                        // C·c₁/(B·m) < ½, in other words 2c₁ < B·m/C.
                        let modulus = 0.002 + quadratic;
                        let covered = 2.0 * loss.curvature() < rows as f64 * modulus / weight;
                        let mut tight = ledger(0.0);
                        tight.spend(event).unwrap();
                        let ours = tight.spent_tight().epsilon;
                        assert!(ours.is_finite() && ours > 0.0);
                        let budget = Budget::unlimited(0.0).unwrap();
                        let refused = Ledger::new(budget, Bound::Paper).spend(event).err();
                        match tight.spent_paper() {
                            Some(paper) => {
                                assert!(covered && refused.is_none());
                                assert!(ours <= paper.epsilon, "{event:?}");
                                both += 1;
                            }
                            None => {
                                assert!(!covered);
                                assert!(matches!(refused, Some(SpendError::PaperSilent { .. })));
                                ours_alone += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(both >= 10_000 && ours_alone >= 1000, "{both} {ours_alone}");
}

fn priced(
    loss: Loss,
    weight: f64,
    rows: usize,
    quadratic: f64,
    law: NoiseDistribution,
) -> PrivacyEvent {
    let problem = Problem {
        loss,
        weight,
        ridge: 0.01,
        nodes: 5,
        tolerance: 1e-6,
        shape: None,
    };
    let question = Query::Minimise {
        quadratic,
        linear: vec![0.0; 2],
        near: vec![0.0; 2],
    };
    let scale = NoiseScaling::Fixed;
    let mechanism = Mechanism::Objective { law, scale };
    mechanism.price(&question, &problem, rows).unwrap()
}

/// Three parties in a ring, of which the first has an account for its rows.
fn parties(site: &DatasetAccount, seed: u64) -> Vec<Node> {
    let rows = invented(3, 20, 3);
    let node = |i: u32| {
        let ledger = ledger(1e-5);
        let terms = CuratorConfig {
            problem: Problem {
                loss: Loss::Logistic,
                weight: 3.0,
                ridge: 0.2,
                nodes: 3,
                tolerance: 1e-10,
                shape: None,
            },
            mechanism: Mechanism::Objective {
                law: gaussian(4.0),
                scale: NoiseScaling::Fixed,
            },
            ledger: match i {
                0 => ledger.with_account(site),
                _ => ledger,
            },
            noise: NoiseKey::repeating(seed, 0, i),
        };
        let admm = Admm::new(Penalty::common(Schedule::Constant(0.5)), 3);
        Node::new(NodeConfig {
            id: NodeId(i),
            neighbours: (0..3).filter(|&j| j != i).map(NodeId).collect(),
            iterations: 10,
            start: vec![0.0; 3],
            algorithm: Box::new(Recycled::new(admm, Schedule::Constant(0.2), 1)),
            curator: Curator::new(shard(&rows[i as usize]), terms).unwrap(),
        })
    };
    (0..3).map(|i| node(i).unwrap()).collect()
}

/// What the first party gives out to be recorded, in a whole run.
fn journal(nodes: &mut [Node]) -> Vec<PrivacyEvent> {
    let mut recorded = Vec::new();
    let mut outputs: VecDeque<(usize, Output)> = VecDeque::new();
    for (i, node) in nodes.iter_mut().enumerate() {
        outputs.extend(node.start().into_iter().map(|output| (i, output)));
    }
    while let Some((i, output)) = outputs.pop_front() {
        match output {
            Output::Record { event, .. } if i == 0 => recorded.push(event),
            Output::Broadcast(message) => {
                for (j, node) in nodes.iter_mut().enumerate() {
                    if i != j {
                        let next = node.receive(message.clone()).unwrap();
                        outputs.extend(next.into_iter().map(|output| (j, output)));
                    }
                }
            }
            _ => {}
        }
    }
    recorded
}

#[test]
fn what_nodes_give_out_to_be_recorded_makes_the_account_anew() {
    let limits = || DatasetLimits::new(None, Some((30.0, 1e-6))).unwrap();
    let site = DatasetAccount::new(limits());
    let mut records = Vec::new();
    for study in 0..2u32 {
        let recorded = journal(&mut parties(&site, 5 + u64::from(study)));
        assert_eq!(recorded.len(), 5, "half of ten iterations");
        records.extend(recorded.into_iter().map(|event| (study, event)));
    }
    let spent = site.spent().unwrap();
    assert_eq!((spent.charges, spent.studies), (10, 2));
    assert!(spent.totals[0].epsilon > 1.0);
    let again = DatasetAccount::replay(limits(), records).unwrap();
    assert_eq!(again.spent().unwrap(), spent);
}

#[test]
fn a_site_ends_a_study_that_would_exceed_it() {
    // Ten data steps are too much, and the second study feels what the first one spent.
    let limited =
        |epsilon| DatasetAccount::new(DatasetLimits::new(None, Some((epsilon, 1e-6))).unwrap());
    let fits = |epsilon: &f64| journal(&mut parties(&limited(*epsilon), 5)).len() == 5;
    let limits = (0..200).map(|k| 30.0 * 0.95f64.powi(k));
    let one_study = limits.take_while(fits).last().unwrap();
    let site = limited(1.3 * one_study);
    assert_eq!(journal(&mut parties(&site, 5)).len(), 5);
    let mut nodes = parties(&site, 6);
    let fitted = journal(&mut nodes).len();
    assert!((1..5).contains(&fitted), "{fitted}");
    assert_eq!(nodes[0].curator().ledger().charges() as usize, fitted);
    assert!(site.spent().unwrap().totals[0].epsilon <= 1.3 * one_study);
}
