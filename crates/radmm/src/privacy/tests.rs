//! Contracts of the ledger, and the prices against independent computations.

use super::composition::{Composition, renyi_to_epsilon};
use super::privacy_loss::{ln_1p_up, log_rectified_mgf, renyi_loss};
use super::*;
use proptest::prelude::*;

fn objective(sensitivity: f64, spread: f64, law: NoiseDistribution) -> PrivacyEvent {
    IdealRelease::Objective {
        sensitivity,
        spread,
        curve: SlopeCurve::Logistic,
        law,
    }
    .into()
}

fn gamma(rate: f64) -> NoiseDistribution {
    NoiseDistribution::Gamma { rate }
}

fn laplace(rate: f64) -> NoiseDistribution {
    NoiseDistribution::Laplace { rate }
}

fn gaussian(sigma: f64) -> NoiseDistribution {
    NoiseDistribution::Gaussian { sigma }
}

fn ledger(delta: f64) -> Ledger {
    Ledger::new(Budget::unlimited(delta).unwrap(), Bound::Tight)
}

fn total(events: &[PrivacyEvent], delta: f64) -> f64 {
    let mut ledger = ledger(delta);
    for event in events {
        ledger.spend(*event).unwrap();
    }
    ledger.spent().epsilon
}

#[test]
fn nothing_costs_nothing() {
    assert_eq!(ledger(0.0).spent().epsilon, 0.0);
    assert_eq!(ledger(1e-5).spent().epsilon, 0.0);
}

#[test]
fn no_noise_costs_everything() {
    assert_eq!(total(&[IdealRelease::Exact.into()], 0.0), f64::INFINITY);
    assert_eq!(total(&[IdealRelease::Exact.into()], 1e-5), f64::INFINITY);
}

#[test]
fn gaussian_noise_has_no_pure_guarantee() {
    assert_eq!(
        total(&[objective(0.1, 0.1, gaussian(1.0))], 0.0),
        f64::INFINITY
    );
}

#[test]
fn pure_losses_add_up_to_the_closed_form() {
    let events = [objective(0.05, 0.2, gamma(2.0)); 50];
    let exact = 50.0 * logistic_price(0.1, 0.2);
    let epsilon = total(&events, 0.0);
    assert!(epsilon >= exact && epsilon < exact * (1.0 + 1e-13));
    // A tenth less than slope and curvature apart.
    assert!(exact < 0.92 * 50.0 * (0.1 + 1.2f64.ln()));
}

/// The price of gamma noise in the objective of the logistic loss for `A = S·α` and `x`: with `s = (1 + t)/2` and a curvature of
/// `(1 − t²)/4`, the best `t` solves `A·x·t² + 8x·t = A(1 + x)`, or is 1.
fn logistic_price(a: f64, x: f64) -> f64 {
    let root = (16.0 * x * x + a * a * x * (1.0 + x)).sqrt();
    let t = (a * (1.0 + x) / (root + 4.0 * x)).min(1.0);
    a / 2.0 * (1.0 + (1.0 + t) / 2.0) + (x * (1.0 - t * t)).ln_1p()
}

#[test]
fn records_of_earlier_programs_are_charges_of_the_same_release() {
    let by = |curve| {
        PrivacyEvent::from(IdealRelease::Objective {
            sensitivity: 0.1,
            spread: 0.2,
            curve,
            law: gamma(2.0),
        })
    };
    for now in CURVES {
        for recorded in CURVES {
            let older = match now {
                SlopeCurve::TwoSigned => SlopeCurve::TwoSigned,
                _ => SlopeCurve::OneSigned,
            };
            let same = recorded == now || recorded == older;
            assert_eq!(
                by(now).is_recorded_as(&by(recorded)),
                same,
                "{now:?} {recorded:?}"
            );
            // What an earlier program charged is not less.
            assert!(!same || by(recorded).pure_loss() >= by(now).pure_loss());
        }
    }
    assert!(!by(SlopeCurve::Logistic).is_recorded_as(&objective(0.1, 0.2, gamma(2.1))));
}

#[test]
fn the_papers_bound_is_its_formula() {
    // C = 1750, B = 9044, N = 5, η = 1, V = 2, α = 2, c₁ = ¼.
    let (c, b, m) = (1750.0, 9044.0, 10f64.powf(-2.5) / 5.0 + 4.0);
    let event = objective(2.0 * c / b, c * 0.25 / (b * m), gamma(2.0));
    let exact = 2.0 * c / b * (1.4 * 0.25 / m + 2.0);
    let paper = event.paper_loss().unwrap();
    assert!((paper - exact).abs() < 1e-14 && paper >= exact);
}

#[test]
fn laplace_noise_costs_what_gamma_noise_of_the_same_sensitivity_costs() {
    let additive = |law| {
        PrivacyEvent::on_grid(IdealRelease::Additive {
            sensitivity: 0.3,
            law,
        })
    };
    let priced = |law| [objective(0.05, 0.2, law), additive(law)];
    for (gamma, laplace) in priced(gamma(2.0)).into_iter().zip(priced(laplace(2.0))) {
        assert_eq!(gamma.slack, laplace.slack);
        for delta in [0.0, 1e-5] {
            assert_eq!(total(&[gamma; 7], delta), total(&[laplace; 7], delta));
        }
    }
}

#[test]
fn the_papers_bound_refuses_laplace_noise() {
    let mut by_paper = Ledger::new(Budget::unlimited(0.0).unwrap(), Bound::Paper);
    let refused = by_paper.spend(objective(0.1, 0.1, laplace(2.0)));
    let reason = "it is about gamma noise";
    assert_eq!(refused.err(), Some(SpendError::PaperSilent { reason }));
    assert_eq!(by_paper.charges(), 0);
}

#[test]
fn the_papers_bound_refuses_where_its_condition_fails() {
    let event = objective(0.1, 0.5, gamma(2.0));
    let mut by_paper = Ledger::new(Budget::unlimited(0.0).unwrap(), Bound::Paper);
    let refused = by_paper.spend(event).err().unwrap();
    assert!(refused.to_string().contains("side condition"), "{refused}");
    assert_eq!(by_paper.charges(), 0);
    let mut ours = ledger(0.0);
    ours.spend(event).unwrap();
    assert_eq!(ours.spent_paper(), None);
}

#[test]
fn totals_agree_with_high_precision_arithmetic() {
    // 200-bit evaluations of the formulas over the same orders, and for answers with Gaussian noise of the exact profile, at
    // δ = 1e-5. At least these, and hardly more.
    let additive =
        |sensitivity, law| PrivacyEvent::from(IdealRelease::Additive { sensitivity, law });
    let two_signed = PrivacyEvent::from(IdealRelease::Objective {
        sensitivity: 0.1,
        spread: 0.2,
        curve: SlopeCurve::TwoSigned,
        law: gaussian(1.0),
    });
    let apart = PrivacyEvent::from(IdealRelease::Objective {
        sensitivity: 0.05,
        spread: 0.002,
        curve: SlopeCurve::OneSigned,
        law: gamma(2.0),
    });
    let mut mixed = vec![additive(0.1, gaussian(1.0)); 20];
    mixed.push(additive(1.0, gamma(3.0)));
    let cases = [
        (
            vec![additive(0.1, gaussian(1.0)); 20],
            1.760_057_149_513_881,
        ),
        (
            vec![objective(0.1, 0.2, gaussian(1.0)); 20],
            5.812_179_187_865_625,
        ),
        (vec![two_signed; 20], 6.568_765_486_796_067),
        (
            vec![objective(0.02, 0.001, gaussian(1.0)); 100],
            0.798_883_971_948_454_7,
        ),
        (vec![apart; 50], 3.268_711_592_842_605_4),
        (
            vec![objective(0.05, 0.2, gamma(2.0)); 20],
            5.165_162_388_108_785,
        ),
        (mixed, 4.760_057_149_513_881),
    ];
    for (events, exact) in cases {
        let ours = total(&events, 1e-5);
        assert!(
            ours >= exact && ours < exact * (1.0 + 1e-11),
            "{ours} against {exact}"
        );
    }
}

#[test]
fn a_ledger_by_the_papers_bound_adds_up_the_papers_losses() {
    let mut ledger = Ledger::new(Budget::unlimited(0.0).unwrap(), Bound::Paper);
    ledger.spend(objective(0.1, 0.2, gamma(2.0))).unwrap();
    ledger.spend(objective(0.3, 0.4, gamma(1.0))).unwrap();
    let exact = (0.2 + 2.8 * 0.2) + (0.3 + 2.8 * 0.4);
    let spent = ledger.spent().epsilon;
    assert!(spent >= exact && spent < exact + 1e-14, "{spent} {exact}");
    let additive = PrivacyEvent::from(IdealRelease::Additive {
        sensitivity: 0.5,
        law: gamma(1.5),
    });
    for silent in [additive, IdealRelease::Exact.into()] {
        let refused = ledger.spend(silent).err();
        assert!(matches!(refused, Some(SpendError::PaperSilent { .. })));
    }
    assert_eq!(ledger.spent().epsilon, spent);
}

#[test]
fn logarithms_round_up() {
    // ln(1 + x) to more digits than a double has, from its series; x small enough for three terms.
    for n in 1..1000 {
        let x = f64::from(n) * 1e-9;
        // ln(1+x) > x − x²/2, and the right side is exact to 2⁻¹⁰⁶ as a fused operation.
        let below = (-x / 2.0).mul_add(x, x);
        assert!(ln_1p_up(x) > below, "{x}");
    }
    assert!(ln_1p_up(f64::MAX).is_finite());
}

#[test]
fn the_renyi_loss_of_plain_gaussian_noise_is_its_closed_form() {
    for v in [1e-6, 0.1, 1.0, 7.3] {
        for q in [1.015625, 1.5, 2.0, 3.0, 16.0, 1000.0, 262_145.0] {
            let ideal = IdealRelease::Additive {
                sensitivity: 3.0 * v,
                law: gaussian(3.0),
            };
            let (ours, exact) = (renyi_loss(&ideal, q), q * v * v / 2.0);
            // Rounded up four times, against a closed form within two roundings.
            let error = ours / exact - 1.0;
            assert!(
                (-4e-16..2e-15).contains(&error),
                "v = {v}, q = {q}: {error}"
            );
        }
    }
}

#[test]
fn conversions_from_renyi_losses_agree_with_another_accountant() {
    // `compute_epsilon` of dp_accounting 0.6.0's RDP accountant over the same orders, for n answers with v = S/σ.
    let cases = [
        (0.1, 20, 1e-5, 1.914_271_672_613_230_3),
        (0.05, 1000, 1e-6, 8.863_558_424_678_98),
        (2.0, 1, 1e-3, 8.417_768_562_190_55),
    ];
    for (sensitivity, count, delta, theirs) in cases {
        let mut total = Composition::empty();
        for _ in 0..count {
            let law = gaussian(1.0);
            total.add(&IdealRelease::Additive { sensitivity, law }.into());
        }
        let ours = total.by_renyi(delta);
        assert!((ours / theirs - 1.0).abs() < 1e-12, "{ours} {theirs}");
        assert!(
            total.epsilon(delta) < 0.95 * ours,
            "the exact way is better"
        );
    }
}

#[test]
fn conversions_agree_with_high_precision_arithmetic() {
    // RDP + ln(1 − 1/q) − (ln δ + ln q)/(q − 1) with 60 digits (mpmath 1.3); q near 1/δ makes the logarithms
    // cancel.
    let cases = [
        (0.5, 2.0, 1e-05, 10.626631103850338),
        (
            0.001,
            262145.0,
            3.8146827137652828e-06,
            0.000_996_185_310_010_314_2,
        ),
        (
            0.01,
            1025.0,
            0.0009751340809361287,
            0.009_024_390_282_745_251,
        ),
        (3.0, 1.015625, 1e-09, 1324.1223583563729),
        (2.0, 17.0, 1e-300, 44.935_770_037_818_41),
        (0.75, 9.0, 0.999999, 0.35756401717665163),
        (40.0, 1.5, 1e-12, 93.352_499_726_972_65),
    ];
    for (renyi, q, delta, exact) in cases {
        let ours = renyi_to_epsilon(renyi, q, delta);
        let scale = renyi + (f64::ln(delta).abs() + f64::ln(q)) / (q - 1.0);
        assert!(ours >= exact, "{renyi} {q} {delta}: {ours} below {exact}");
        assert!(ours - exact <= 1e-14 * scale, "{renyi} {q} {delta}: {ours}");
    }
}

#[test]
fn answers_that_cost_next_to_nothing_never_lower_a_total() {
    // The search for ε ends within a few roundings of the solution, here above it, there on it.
    let answer = |sensitivity| {
        PrivacyEvent::from(IdealRelease::Additive {
            sensitivity,
            law: gaussian(1.0),
        })
    };
    for n in 1..100 {
        let mut ledger = ledger(1e-6);
        ledger.spend(answer(0.03 * f64::from(n))).unwrap();
        for _ in 0..50 {
            let before = ledger.spent().epsilon;
            ledger.spend(answer(1e-9)).unwrap();
            assert!(ledger.spent().epsilon >= before);
        }
    }
}

#[test]
fn slack_is_priced_in_every_way_to_add_up() {
    // 1e-3 a release: 2κ to a pure loss, the paper's too; 2κ + κ/(q−1) to a Rényi loss; 2Σκ, and δ·e^−Σκ for δ, to the
    // exact profile.
    let with = |ideal: IdealRelease, slack| PrivacyEvent { ideal, slack };
    let pure = IdealRelease::Additive {
        sensitivity: 0.5,
        law: gamma(1.0),
    };
    let epsilon = total(&[with(pure, 1e-3)], 0.0);
    assert!((0.502..0.502 + 1e-14).contains(&epsilon), "{epsilon}");
    let event = objective(0.1, 0.2, gamma(2.0));
    let paper = with(event.ideal, 1e-3).paper_loss().unwrap();
    let extra = paper - event.paper_loss().unwrap();
    assert!((extra - 2e-3).abs() < 1e-15, "{extra}");
    let answer = IdealRelease::Additive {
        sensitivity: 0.1,
        law: gaussian(1.0),
    };
    let mut sum = Composition::empty();
    for _ in 0..20 {
        sum.add(&with(answer, 1e-3));
    }
    // The ε of twenty such answers at δ = 1e-5·e^−0.02 (60 digits, mpmath 1.3), plus 0.04.
    let exact = 1.802_210_860_122_711_4;
    let ours = sum.by_profile(1e-5);
    assert!(ours >= exact && ours < exact * (1.0 + 1e-12), "{ours}");
    let mut one = Composition::empty();
    one.add(&with(answer, 1e-3));
    let renyi = one.by_renyi(1e-5);
    let by_hand = (-24..=72)
        .map(|k| 1.0 + 2f64.powf(f64::from(k) / 4.0))
        .map(|q| {
            let loss = q * 0.005 + 2e-3 + 1e-3 / (q - 1.0);
            loss + (1.0 - 1.0 / q).ln() - (1e-5f64.ln() + q.ln()) / (q - 1.0)
        })
        .fold(f64::INFINITY, f64::min);
    assert!((renyi - by_hand).abs() < 1e-12, "{renyi} {by_hand}");
}

#[test]
fn additive_gaussian_is_not_below_the_exact_privacy_profile() {
    // One release with v = 1: δ(ε) = Φ(v/2 − ε/v) − e^ε Φ(−v/2 − ε/v) (Balle and Wang 2018).
    let phi = |z: f64| 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
    for v in [0.1, 0.5, 1.0, 3.0] {
        let event = PrivacyEvent::from(IdealRelease::Additive {
            sensitivity: v,
            law: gaussian(1.0),
        });
        let epsilon = total(&[event], 1e-5);
        let delta = phi(v / 2.0 - epsilon / v) - epsilon.exp() * phi(-v / 2.0 - epsilon / v);
        assert!(delta <= 1e-5, "v = {v}: the true delta is {delta}");
    }
}

#[test]
fn the_rectified_moment_agrees_with_quadrature() {
    for k in [0.01, 0.5, 2.0, 6.0] {
        let (mut rectified, mut folded) = (0.0, 0.0);
        let step = 1e-4;
        for n in -200_000..200_000 {
            let z = (f64::from(n) + 0.5) * step;
            let weight = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * step;
            rectified += weight * (k * z.max(0.0)).exp();
            folded += weight * (k * z.abs()).exp();
        }
        assert!((log_rectified_mgf(k, true) - rectified.ln()).abs() < 1e-8);
        assert!((log_rectified_mgf(k, false) - folded.ln()).abs() < 1e-8);
    }
}

#[test]
fn a_refused_charge_leaves_the_ledger_as_it_was() {
    let mut ledger = Ledger::new(Budget::limited(1.0, 0.0).unwrap(), Bound::Tight);
    let event = objective(0.1, 0.1, gamma(3.0));
    for _ in 0..2 {
        ledger.spend(event).unwrap();
    }
    let before = (ledger.charges(), ledger.spent());
    assert!(matches!(
        ledger.spend(event),
        Err(SpendError::OverBudget { limit: 1.0, .. })
    ));
    assert_eq!((ledger.charges(), ledger.spent()), before);
    assert!(before.1.epsilon <= 1.0);
}

#[test]
fn a_limit_is_never_met_by_an_exact_answer() {
    let mut ledger = Ledger::new(Budget::limited(1e9, 0.0).unwrap(), Bound::Tight);
    assert!(ledger.spend(IdealRelease::Exact.into()).is_err());
}

#[test]
fn a_limit_is_kept_to_the_last_digit() {
    let event = objective(0.1, 0.02, gamma(3.0));
    let price = total(&[event], 0.0);
    let under = |limit: f64| {
        let budget = Budget::limited(limit, 0.0).unwrap();
        Ledger::new(budget, Bound::Tight).spend(event).is_ok()
    };
    assert!(under(price) && !under(price.next_down()));
}

#[test]
fn slack_that_would_lower_a_price_is_refused() {
    for slack in [-1e-9, f64::NAN] {
        let event = PrivacyEvent {
            slack,
            ..objective(0.1, 0.02, gamma(3.0))
        };
        let refused = ledger(0.0).spend(event).err();
        assert_eq!(refused, Some(SpendError::Malformed));
    }
}

#[test]
fn negative_nan_and_infinite_limits_are_unbuildable() {
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Budget::limited(epsilon, 0.0).is_err());
    }
    for delta in [-1e-9, 1.0, f64::NAN] {
        assert!(Budget::unlimited(delta).is_err());
    }
}

#[test]
fn negative_and_nan_events_are_refused() {
    for event in [
        objective(-0.1, 0.1, gamma(1.0)),
        objective(f64::NAN, 0.1, gamma(1.0)),
        objective(0.1, -0.1, gamma(1.0)),
        objective(0.1, 0.1, gamma(-1.0)),
        objective(0.1, 0.1, gaussian(0.0)),
        objective(0.1, 0.1, gaussian(f64::NAN)),
    ] {
        assert_eq!(ledger(1e-5).spend(event).err(), Some(SpendError::Malformed));
    }
}

const CURVES: [SlopeCurve; 4] = [
    SlopeCurve::Logistic,
    SlopeCurve::SmoothHinge,
    SlopeCurve::OneSigned,
    SlopeCurve::TwoSigned,
];

fn any_event() -> impl Strategy<Value = PrivacyEvent> {
    let law = prop_oneof![
        (1e-6f64..1e6).prop_map(gamma),
        (1e-6f64..1e6).prop_map(laplace),
        (1e-6f64..1e6).prop_map(gaussian)
    ];
    (1e-9f64..1e3, 0.0f64..1e3, law, 0..4usize, any::<bool>()).prop_map(
        |(sensitivity, spread, law, curve, additive)| {
            if additive {
                IdealRelease::Additive { sensitivity, law }.into()
            } else {
                IdealRelease::Objective {
                    sensitivity,
                    spread,
                    curve: CURVES[curve],
                    law,
                }
                .into()
            }
        },
    )
}

proptest! {
    #[test]
    fn totals_never_shrink_and_are_never_negative_or_nan(
        events in prop::collection::vec(any_event(), 1..20),
        delta in prop_oneof![Just(0.0), 1e-12f64..0.1],
    ) {
        let mut ledger = ledger(delta);
        let mut last = 0.0;
        for event in events {
            ledger.spend(event).unwrap();
            let epsilon = ledger.spent().epsilon;
            prop_assert!(epsilon >= last);
            last = epsilon;
        }
    }

    #[test]
    fn ours_is_never_above_the_papers(
        sensitivity in 1e-9f64..10.0, spread in 0.0f64..0.5, rate in 1e-6f64..1e4,
    ) {
        let event = objective(sensitivity, spread, gamma(rate));
        prop_assert!(event.pure_loss() <= event.paper_loss().unwrap());
    }

    #[test]
    fn less_noise_costs_more(event in any_event(), factor in 1.01f64..100.0) {
        let quieter = |law: NoiseDistribution| match law {
            NoiseDistribution::Gamma { rate } => gamma(rate * factor),
            NoiseDistribution::Laplace { rate } => laplace(rate * factor),
            NoiseDistribution::Gaussian { sigma } => gaussian(sigma / factor),
        };
        let louder = event;
        let quiet = match event.ideal {
            IdealRelease::Objective { sensitivity, spread, curve, law } =>
                IdealRelease::Objective { sensitivity, spread, curve, law: quieter(law) },
            IdealRelease::Additive { sensitivity, law } =>
                IdealRelease::Additive { sensitivity, law: quieter(law) },
            IdealRelease::Exact => IdealRelease::Exact,
        };
        prop_assert!(total(&[quiet.into()], 1e-5) >= total(&[louder], 1e-5));
    }
}
