//! Prices against 50-digit arithmetic: never below, and above by no more than roundings.

use serde_json::Value;

use super::gaussian_composition::epsilon;
use super::privacy_loss::{pure_loss, renyi_loss, substitution_loss, up};
use super::*;

/// The cases of one table, each as the numbers under its keys.
fn cases(table: &str, keys: [&str; 4]) -> Vec<[f64; 4]> {
    let golden: Value =
        serde_json::from_str(include_str!("../../tests/golden/prices.json")).unwrap();
    let number = |value: &Value| match value {
        Value::String(digits) => digits.parse().unwrap(),
        Value::Null => 0.0,
        other => other.as_f64().unwrap(),
    };
    let cases = golden[table].as_array().unwrap().iter();
    cases
        .map(|case| keys.map(|key| number(&case[key])))
        .collect()
}

#[track_caller]
fn assert_just_above(ours: f64, exact: f64) {
    assert!(ours >= exact, "{ours} is below {exact}");
    assert!(ours <= exact * (1.0 + 1e-12), "{ours} is far above {exact}");
}

#[test]
fn the_renyi_loss_of_objective_perturbation_is_that_of_exact_arithmetic() {
    let cases = cases("objective_gaussian_rdp", ["x", "v", "q", "rdp"]);
    assert_eq!(cases.len(), 33);
    for [spread, v, q, exact] in cases {
        assert_just_above(substitution_loss(v, spread, q), exact);
        let ideal = IdealRelease::Objective {
            sensitivity: v,
            spread,
            curve: SlopeCurve::Logistic,
            law: NoiseDistribution::Gaussian { sigma: 1.0 },
        };
        assert!(renyi_loss(&ideal, q) <= exact * (1.0 + 1e-12));
    }
}

#[test]
fn the_pure_loss_of_objective_perturbation_is_that_of_exact_arithmetic() {
    let cases = cases("objective_pure_logistic", ["alpha_S", "x", "epsilon", ""]);
    assert_eq!(cases.len(), 12);
    for [product, spread, exact, _] in cases {
        let ideal = IdealRelease::Objective {
            sensitivity: product / 4.0,
            spread,
            curve: SlopeCurve::Logistic,
            law: NoiseDistribution::Gamma { rate: 4.0 },
        };
        assert_just_above(pure_loss(&ideal), exact);
    }
}

#[test]
fn substitution_proves_nothing_where_the_hessians_differ_too_much() {
    for (spread, q) in [(1.0, 2.0), (0.5, 3.0), (1e-3, 1001.0), (f64::INFINITY, 1.5)] {
        assert_eq!(substitution_loss(0.1, spread, q), f64::INFINITY);
        let less = 0.9 * spread.min(1.0);
        assert!(substitution_loss(0.1, less, q).is_finite(), "{spread} {q}");
    }
}

#[test]
fn mu_is_that_of_exact_arithmetic_in_both_directions() {
    let cases = cases("gaussian_mu", ["epsilon", "delta", "mu", ""]);
    assert_eq!(cases.len(), 15);
    for [limit, delta, exact, _] in cases {
        let mu = Budget::limited(limit, delta).unwrap().gaussian_mu();
        assert!(mu <= exact, "{mu} is above {exact}");
        assert!(mu >= exact * (1.0 - 1e-12), "{mu} is far below {exact}");
        assert_just_above(epsilon(up(exact * exact), delta.ln()), limit);
        // An answer with this μ is within the limit but for roundings of the ledger, and one with a little more is not.
        let spend = |v: f64| {
            let law = NoiseDistribution::Gaussian { sigma: 1.0 };
            let sensitivity = v;
            let answer = IdealRelease::Additive { sensitivity, law };
            let budget = Budget::limited(limit, delta).unwrap();
            Ledger::new(budget, Bound::Tight).spend(answer.into())
        };
        assert!(spend(mu * (1.0 - 1e-13)).is_ok());
        assert!(spend(mu * (1.0 + 1e-12)).is_err());
    }
}

#[test]
fn a_limit_at_no_delta_leaves_no_room_for_gaussian_noise_and_no_limit_leaves_all() {
    assert_eq!(Budget::limited(5.0, 0.0).unwrap().gaussian_mu(), 0.0);
    for delta in [0.0, 1e-5] {
        let unlimited = Budget::unlimited(delta).unwrap();
        assert_eq!(unlimited.gaussian_mu(), f64::INFINITY);
    }
    for (epsilon, delta) in [(1e-100, 1e-300), (f64::MAX, 0.999), (1e-9, 0.5)] {
        let mu = Budget::limited(epsilon, delta).unwrap().gaussian_mu();
        assert!(mu > 0.0 && mu.is_finite(), "{mu}");
    }
}
