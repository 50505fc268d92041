//! The curvature that a loss can have at each slope, and the pure price of objective perturbation that follows from it.
//!
//! A row with a large slope has little curvature, so that no row costs the most by both. With `s` the slope of a row in units
//! of the largest and `c₁·k` its curvature, and with `A = S·α`, the price of gamma and Laplace noise is
//!
//! ```text
//! ε = A/2 + max over s of [ A/2·s + ln(1 + x·k(s)) ]
//! logistic       s = 1 − r/2             k = r(2 − r)        0 ≤ r ≤ 1
//! smooth hinge   s = 1 − r²(3 − r)/4     k = r(2 − r)        0 ≤ r ≤ 1
//! other losses   k = 1:  ε = A + ln(1 + x)
//! ```
//! In both families `2 − r` has the curvature of `r` and a smaller slope, so that `r ≤ 1` is enough.

// Privacy: one row of one party is replaced. As in Theorem 3 of docs/privacy.md, the log ratio of the densities at f is at most
// α·‖g − g′‖ + ln(1 + w·uᵀM⁻¹u), where g − g′ = (C/B)(L′(fᵀz)z − L′(fᵀz′)z′) has a norm of at most (S/2)(s + s′), s and s′ being
// the slopes of the row and of its replacement, and w = (C/B)·c₁·k is of the row alone. So s′ counts as 1, and s and k belong
// together: the maximum over s of both is what is charged. (With slopes of both signs S is the same, and s their absolute value.)
// For Laplace noise norms are in ℓ₁, and S is the sensitivity in it.

use serde::{Deserialize, Serialize};

use super::privacy_loss::{bisect, ln_1p_up, up};

/// The curvature that a loss can have at each slope, as far as a price makes use of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlopeCurve {
    /// The logistic loss: slope `s` and curvature `s(1 − s)`.
    Logistic,
    /// The smooth hinge: with `−1 ≤ t ≤ 1`, slope `½ + 3t/4 − t³/4` and curvature `c₁(1 − t²)`.
    SmoothHinge,
    /// Slopes of one sign, each with any curvature.
    OneSigned,
    /// Slopes of both signs, each with any curvature.
    TwoSigned,
}

/// A margin of 16 roundings, above the 11 of [`SlopeCurve::balance`].
const MARGIN: f64 = 8.0 * f64::EPSILON;

/// The range of products and spreads in which nothing below underflows or overflows.
const RANGE: std::ops::Range<f64> = 1e-100..1e100;

impl SlopeCurve {
    /// Returns whether slopes have one sign, which allows the tighter bound for Gaussian noise.
    pub fn is_one_signed(self) -> bool {
        self != Self::TwoSigned
    }

    /// Returns the same signs, each slope with any curvature.
    #[must_use]
    pub(super) fn without_curvatures(self) -> Self {
        match self.is_one_signed() {
            true => Self::OneSigned,
            false => Self::TwoSigned,
        }
    }

    /// Returns the pure loss of objective perturbation with `A = S·α` and `x`, rounded up.
    // Privacy: A/2·(1 + s) + ln(1 + x·k) as a function of r rises where `balance`'s gain exceeds its cost. The gain falls with r
    // and the cost grows, so that it rises up to its maximum and falls from there. It surely rises at `low`, or low is 0; it
    // surely falls at `high`, or high is 1. So the maximum is between them, where s is at most that at low and k at most that
    // at high. Both ends are within some roundings of the maximum, and so is the price.
    pub(super) fn pure_loss(self, product: f64, spread: f64) -> f64 {
        let apart = loss_apart(product, spread);
        let paired = matches!(self, Self::Logistic | Self::SmoothHinge);
        // Written so that what is infinite or NaN has the price without a pair.
        if !(paired && RANGE.contains(&product) && RANGE.contains(&spread)) {
            return apart;
        }
        let low = bisect(0.0, 1.0, |r| {
            let (gain, cost) = self.balance(product, spread, r);
            gain > cost * (1.0 + MARGIN)
        });
        let high = up(bisect(0.0, 1.0, |r| {
            let (gain, cost) = self.balance(product, spread, r);
            gain * (1.0 + MARGIN) >= cost
        }));
        let spared = (product / 2.0 * self.missing_slope(low) * (1.0 - MARGIN)).next_down();
        let curvature = curvature(high) * (1.0 + MARGIN);
        let bend = ln_1p_up(up(spread * curvature));
        up(up(product - spared) + bend).min(apart)
    }

    /// Returns `1 − s` at `r`.
    fn missing_slope(self, r: f64) -> f64 {
        match self {
            Self::SmoothHinge => r * r * (3.0 - r) / 4.0,
            _ => r / 2.0,
        }
    }

    /// Returns the derivatives by `r` of `ln(1 + x·k)` and of `−A/2·s`, both times the same positive number.
    fn balance(self, product: f64, spread: f64, r: f64) -> (f64, f64) {
        let k = curvature(r);
        let cost = product * (1.0 + spread * k);
        match self {
            // x(2 − 2r)/(1 + x·k) and A/2·3r(2 − r)/4.
            Self::SmoothHinge => (16.0 * spread * (1.0 - r), 3.0 * cost * k),
            // x(2 − 2r)/(1 + x·k) and A/4.
            _ => (8.0 * spread * (1.0 - r), cost),
        }
    }
}

/// Returns `k` at `r`.
fn curvature(r: f64) -> f64 {
    r * (2.0 - r)
}

/// Returns `A + ln(1 + x)`, rounded up: the loss if a row could have the largest slope and the largest curvature at once.
pub(super) fn loss_apart(product: f64, spread: f64) -> f64 {
    up(product + ln_1p_up(spread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Loss;
    use proptest::prelude::*;

    const PAIRED: [SlopeCurve; 2] = [SlopeCurve::Logistic, SlopeCurve::SmoothHinge];

    /// The largest price over slopes of the loss itself, at margins that lie close together.
    fn by_margins(loss: Loss, product: f64, spread: f64) -> f64 {
        let margins = (-40_000..=40_000).map(|k| f64::from(k) * 1e-3);
        let price = |z: f64| {
            let (slope, curvature) = loss.slope_and_curvature(z);
            product / 2.0 * (1.0 - slope) + (spread * curvature / loss.curvature()).ln_1p()
        };
        margins.map(price).fold(0.0, f64::max)
    }

    #[test]
    fn curves_are_those_of_the_losses() {
        let hinges = [0.5, 1.0, 3.0].map(|width| Loss::SmoothHinge { width });
        for loss in [Loss::Logistic].into_iter().chain(hinges) {
            for product in [0.01, 0.3, 2.0, 11.0] {
                for spread in [1e-3, 0.04, 0.5, 3.0, 40.0] {
                    let ours = loss.slope_curve().pure_loss(product, spread);
                    let seen = by_margins(loss, product, spread);
                    // Margins a thousandth apart miss the maximum by a millionth of the second derivative, at most.
                    assert!(ours >= seen - 1e-15 * seen, "{loss:?}: {ours} {seen}");
                    assert!(
                        ours <= seen * (1.0 + 1e-5),
                        "{loss:?} {product} {spread}: {ours} {seen}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_price_of_the_smooth_hinge_is_that_of_exact_arithmetic() {
        // A, x, and the price with 50 digits (mpmath 1.3).
        let table = [
            (0.05, 0.001, 0.050_051_469_832_261_48),
            (0.05, 0.05, 0.088_089_282_339_711),
            (0.4, 0.002, 0.400_026_429_430_101_6),
            (0.4, 0.5, 0.721_694_047_766_049_6),
            (2.0, 0.01, 2.000_132_119_468_986_6),
            (2.0, 3.0, 3.042_951_982_470_388_5),
            (12.0, 0.3, 12.018_472_148_530_185),
            (0.001, 40.0, 3.714_322_102_739_462_6),
        ];
        for (product, spread, exact) in table {
            let ours = SlopeCurve::SmoothHinge.pure_loss(product, spread);
            assert!(
                ours >= exact && ours <= exact * (1.0 + 1e-14),
                "{ours} {exact}"
            );
        }
    }

    #[test]
    fn a_bend_that_is_small_enough_is_free_under_the_logistic_loss() {
        for product in [1e-6, 0.05, 3.0] {
            let free = SlopeCurve::Logistic.pure_loss(product, product / 8.0 * (1.0 - 1e-9));
            assert!((product..product * (1.0 + 1e-15)).contains(&free), "{free}");
            let bent = SlopeCurve::Logistic.pure_loss(product, product / 7.0);
            assert!(bent > product * (1.0 + 1e-4), "{bent}");
        }
    }

    #[test]
    fn without_a_pair_slope_and_curvature_cost_apart() {
        for curve in [SlopeCurve::OneSigned, SlopeCurve::TwoSigned] {
            assert_eq!(curve.pure_loss(0.4, 0.5), loss_apart(0.4, 0.5));
        }
        for curve in PAIRED {
            for (product, spread) in [(1e-200, 1.0), (1.0, 1e200), (0.0, 0.1), (0.1, 0.0)] {
                assert_eq!(
                    curve.pure_loss(product, spread),
                    loss_apart(product, spread)
                );
            }
            assert_eq!(curve.pure_loss(f64::INFINITY, 1.0), f64::INFINITY);
            assert_eq!(curve.pure_loss(1.0, f64::INFINITY), f64::INFINITY);
        }
    }

    proptest! {
        #[test]
        fn no_slope_costs_more_than_the_price(
            product in (-8.0f64..3.0).prop_map(|e| 10f64.powf(e)),
            spread in (-8.0f64..3.0).prop_map(|e| 10f64.powf(e)),
            r in 0.0f64..=2.0,
        ) {
            for curve in PAIRED {
                let price = curve.pure_loss(product, spread);
                let here = product * (1.0 - curve.missing_slope(r) / 2.0)
                    + (spread * curvature(r)).ln_1p();
                prop_assert!(here <= price * (1.0 + 1e-15), "{curve:?}: {here} of {price}");
                prop_assert!((product..=loss_apart(product, spread)).contains(&price));
                // The price is at least A, and at least ¾A + ln(1 + x), that of half the slope and all of the curvature.
                prop_assert!(loss_apart(product, spread) <= 1.25 * price);
            }
        }
    }
}
