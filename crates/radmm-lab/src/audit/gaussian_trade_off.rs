//! The trade-off of a Gaussian transcript: two normal distributions of deviation one, `μ` apart.
//!
//! ```text
//! p = Φ(Φ⁻¹(p′) + μ)                              the largest P(E | D) at P(E | D′) = p′
//! δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)         the same as a curve of (ε, δ)
//! ```
//! This is not the program's own accounting, which it tests.

/// The argument beyond which `Φ` is zero or one in double precision.
const FAR: f64 = 38.0;

/// Returns the least `μ` at which an event can have probability `p` with one data set and `other` with the other.
pub(super) fn separation(p: f64, other: f64) -> f64 {
    quantile(p) - quantile(other)
}

/// Returns the least `ε ≥ 0` with `δ(ε) ≤ δ`, a little below it; infinity where `δ` is zero and `μ` is positive.
pub(super) fn epsilon(mu: f64, delta: f64) -> f64 {
    // Written so that NaN counts as nothing.
    let apart = mu > 0.0;
    if !apart || profile(mu, 0.0) <= delta {
        return 0.0;
    }
    if delta <= 0.0 {
        return f64::INFINITY;
    }
    // Φ(μ/2 − ε/μ) is zero at the upper end.
    bisect(0.0, mu * (mu / 2.0 + FAR), |epsilon| {
        profile(mu, epsilon) > delta
    })
}

/// Returns `δ(ε)`.
fn profile(mu: f64, epsilon: f64) -> f64 {
    normal(mu / 2.0 - epsilon / mu) - libm::exp(epsilon) * normal(-mu / 2.0 - epsilon / mu)
}

/// Returns `Φ`.
fn normal(x: f64) -> f64 {
    libm::erfc(-x / std::f64::consts::SQRT_2) / 2.0
}

/// Returns `Φ⁻¹`, at most [`FAR`] from zero.
fn quantile(p: f64) -> f64 {
    // By symmetry, the tail that has all its digits.
    match p <= 0.5 {
        true => bisect(-FAR, 0.0, |x| normal(x) < p),
        false => -bisect(-FAR, 0.0, |x| normal(x) < 1.0 - p),
    }
}

/// Returns the lower end of the interval in which a predicate ceases to hold.
fn bisect(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use radmm::privacy::{Bound, Budget, IdealRelease, Ledger, NoiseDistribution, PrivacyEvent};

    #[test]
    fn quantiles_are_inverse_to_the_normal_distribution() {
        // Φ(−1.959963984540054) = 0.025.
        assert!((quantile(0.025) + 1.959_963_984_540_054).abs() < 1e-12);
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
        assert!(quantile(0.5).abs() < 1e-15);
        for p in [1e-12, 0.1, 0.3, 0.77] {
            assert!((normal(quantile(p)) / p - 1.0).abs() < 1e-12, "{p}");
        }
        assert!(quantile(0.0) <= -FAR + 1e-9 && quantile(1.0) >= FAR - 1e-9);
    }

    #[test]
    fn the_curve_is_that_of_the_ledger() {
        for (mu, delta) in [(0.1, 1e-5), (0.268, 1e-5), (1.0, 1e-3), (4.0, 1e-9)] {
            let budget = Budget::unlimited(delta).unwrap();
            let mut ledger = Ledger::new(budget, Bound::Tight);
            let law = NoiseDistribution::gaussian(2.0);
            let sensitivity = 2.0 * mu / 2f64.sqrt();
            for _ in 0..2 {
                let event = PrivacyEvent::from(IdealRelease::Additive { sensitivity, law });
                ledger.spend(event).unwrap();
            }
            let (ours, theirs) = (epsilon(mu, delta), ledger.spent().epsilon);
            assert!((ours / theirs - 1.0).abs() < 1e-9, "{mu}: {ours} {theirs}");
        }
        assert_eq!(epsilon(0.0, 1e-5), 0.0);
        assert_eq!(epsilon(f64::NAN, 1e-5), 0.0);
        assert_eq!(epsilon(1.0, 0.0), f64::INFINITY);
    }

    #[test]
    fn an_event_separates_as_far_as_its_probabilities_are_apart() {
        for mu in [0.2, 1.0, 3.0] {
            for threshold in [-1.0, 0.0, 0.5, 2.0] {
                let (p, other) = (normal(mu - threshold), normal(-threshold));
                assert!((separation(p, other) - mu).abs() < 1e-10);
            }
        }
    }
}
