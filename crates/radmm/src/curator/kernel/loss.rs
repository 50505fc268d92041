//! Losses and their derivatives, of many margins at a time.

use std::f64::consts::LN_2;

use super::exp_log::{LANES, Lanes, exp_minus_abs, log_one_plus};
use crate::problem::Loss;

impl Loss {
    /// Returns a smoother loss with the same straight lines far out and a bend `2^stage` times as wide.
    pub(in crate::curator) fn smoothed(&self, stage: u32) -> Self {
        let width = match *self {
            Self::Logistic | Self::CutLogistic => 4.0,
            Self::SmoothHinge { width } => width,
        };
        Self::SmoothHinge {
            width: width * (1u64 << stage) as f64,
        }
    }

    /// Returns `L(z)`.
    pub fn value(&self, z: f64) -> f64 {
        let mut margins = [z];
        self.values(&mut margins);
        margins[0]
    }

    /// Returns `(L'(z), L''(z))`.
    pub fn slope_and_curvature(&self, z: f64) -> (f64, f64) {
        let (mut slopes, mut curvatures) = ([z], [z]);
        self.slopes(&mut slopes, 1.0);
        self.curvatures(&mut curvatures, 1.0);
        (slopes[0], curvatures[0])
    }

    /// Overwrites margins with `L`.
    #[inline(always)]
    pub(in crate::curator) fn values(&self, margins: &mut [f64]) {
        match *self {
            Self::Logistic => apply(margins, |z| {
                // For z < 0 this is −z + ln(1 + e^z), so that the exponential cannot overflow.
                (if z < 0.0 { -z } else { 0.0 }) + log_one_plus(exp_minus_abs(z))
            }),
            Self::CutLogistic => apply(margins, |z| {
                let log = log_one_plus(exp_minus_abs(z));
                if z < 0.0 { LN_2 - 0.5 * z } else { log }
            }),
            Self::SmoothHinge { width: h } => apply(margins, |z| {
                let u = 1.0 - z;
                let v = u / h;
                let bend = h * (3.0 / 16.0 + v * (0.5 + v * (3.0 / 8.0 - v * v / 16.0)));
                let line = if v >= 1.0 { u } else { bend };
                if v <= -1.0 { 0.0 } else { line }
            }),
        }
    }

    /// Returns `Σ L` of at most 256 margins, whose number is a multiple of eight. They are overwritten.
    ///
    /// A sum of logarithms is the logarithm of a product, whose factors are at most two.
    #[inline(always)]
    pub(in crate::curator) fn sum(&self, margins: &mut [f64]) -> f64 {
        let line = match *self {
            Self::Logistic => 1.0,
            Self::CutLogistic => 0.5,
            Self::SmoothHinge { .. } => {
                self.values(margins);
                return fold(margins, 0.0, |sum, value| sum + value).iter().sum();
            }
        };
        let lines = fold(margins, 0.0, |sum, z| sum + if z < 0.0 { -z } else { 0.0 });
        match *self {
            Self::Logistic => apply(margins, |z| 1.0 + exp_minus_abs(z)),
            _ => apply(margins, |z| {
                let factor = 1.0 + exp_minus_abs(z);
                if z < 0.0 { 2.0 } else { factor }
            }),
        }
        let products = fold(margins, 1.0, |product, factor| product * factor);
        line * lines.iter().sum::<f64>() + libm::log(products.iter().product())
    }

    /// Overwrites margins with `weight·L'`.
    #[inline(always)]
    pub(in crate::curator) fn slopes(&self, margins: &mut [f64], weight: f64) {
        match *self {
            Self::Logistic => apply(margins, |z| {
                let e = exp_minus_abs(z);
                // 1/(1 + e^z), the probability of the other label.
                weight * -((if z >= 0.0 { e } else { 1.0 }) / (1.0 + e))
            }),
            Self::CutLogistic => apply(margins, |z| {
                let e = exp_minus_abs(z);
                let slope = e / (1.0 + e);
                weight * -if z < 0.0 { 0.5 } else { slope }
            }),
            Self::SmoothHinge { width: h } => apply(margins, |z| {
                let v = (1.0 - z) / h;
                let bend = 0.5 + v * (0.75 - 0.25 * v * v);
                let line = if v >= 1.0 { 1.0 } else { bend };
                weight * if v <= -1.0 { 0.0 } else { -line }
            }),
        }
    }

    /// Overwrites margins with `weight·L''`.
    #[inline(always)]
    pub(in crate::curator) fn curvatures(&self, margins: &mut [f64], weight: f64) {
        match *self {
            Self::Logistic => apply(margins, |z| {
                let e = exp_minus_abs(z);
                weight * (e / ((1.0 + e) * (1.0 + e)))
            }),
            Self::CutLogistic => apply(margins, |z| {
                let e = exp_minus_abs(z);
                let bend = e / ((1.0 + e) * (1.0 + e));
                weight * if z < 0.0 { 0.0 } else { bend }
            }),
            Self::SmoothHinge { width: h } => apply(margins, |z| {
                let v = (1.0 - z) / h;
                let bend = 0.75 / h * (1.0 - v * v);
                weight * if v <= -1.0 || v >= 1.0 { 0.0 } else { bend }
            }),
        }
    }
}

/// Applies a function to each number.
#[inline(always)]
fn apply(numbers: &mut [f64], function: impl Fn(f64) -> f64) {
    for number in numbers {
        *number = function(*number);
    }
}

/// Folds numbers, lane by lane.
#[inline(always)]
fn fold(numbers: &[f64], start: f64, with: impl Fn(f64, f64) -> f64) -> Lanes {
    let mut folded = [start; LANES];
    for numbers in numbers.as_chunks::<LANES>().0 {
        for k in 0..LANES {
            folded[k] = with(folded[k], numbers[k]);
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Loss; 4] = [
        Loss::CutLogistic,
        Loss::Logistic,
        Loss::SmoothHinge { width: 0.5 },
        Loss::SmoothHinge { width: 2.0 },
    ];

    fn margins() -> impl Iterator<Item = f64> {
        (-800..=800).map(|k| f64::from(k) / 100.0 + 0.00317)
    }

    #[test]
    fn slopes_agree_with_finite_differences() {
        // Central differences with step 1e-5: truncation ~ 1e-10, rounding ~ 1e-16 · |L| / 1e-5 ~ 1e-10.
        for loss in ALL {
            for z in margins() {
                let step = 1e-5;
                let (slope, curvature) = loss.slope_and_curvature(z);
                let difference = (loss.value(z + step) - loss.value(z - step)) / (2.0 * step);
                assert!((slope - difference).abs() < 1e-9, "{loss:?} at {z}");
                let (right, left) = (
                    loss.slope_and_curvature(z + step).0,
                    loss.slope_and_curvature(z - step).0,
                );
                // L'' of the smooth hinge has kinks at 1 ± h. There the error of the difference is its jump in slope ·
                // step. No margin is within a step of zero, where L'' of the cut logistic loss jumps.
                assert!(
                    (curvature - (right - left) / (2.0 * step)).abs() < 1e-4,
                    "{loss:?} at {z}"
                );
            }
        }
    }

    #[test]
    fn slope_and_curvature_stay_within_their_bounds() {
        for loss in ALL {
            for z in margins().chain([-1e6, 1e6, 0.0, 1.0]) {
                let (slope, curvature) = loss.slope_and_curvature(z);
                assert!(
                    (-loss.largest_slope()..=0.0).contains(&slope),
                    "{loss:?} at {z}"
                );
                assert!(
                    (0.0..=loss.curvature()).contains(&curvature),
                    "{loss:?} at {z}"
                );
            }
            assert!(loss.slope_curve().is_one_signed());
        }
    }

    #[test]
    fn the_curvature_bound_is_attained() {
        assert_eq!(Loss::Logistic.slope_and_curvature(0.0).1, 0.25);
        let hinge = Loss::SmoothHinge { width: 0.5 };
        assert!((hinge.slope_and_curvature(1.0).1 - hinge.curvature()).abs() < 1e-15);
    }

    #[test]
    fn the_curvature_bound_of_the_hinge_rounds_up() {
        for n in 1..1000 {
            let width = f64::from(n) * 0.00737;
            let c1 = Loss::SmoothHinge { width }.curvature();
            // A fused operation has the sign of the exact result.
            assert!(c1.mul_add(width, -0.75) >= 0.0, "{width}");
        }
    }

    #[test]
    fn huge_margins_neither_overflow_nor_lose_accuracy() {
        for loss in ALL {
            let steepest = loss.largest_slope();
            assert!((loss.value(-1e6) - steepest * 1e6).abs() <= 1.0);
            assert_eq!(loss.value(1e6), 0.0);
            assert_eq!(loss.slope_and_curvature(-1e6), (-steepest, 0.0));
            assert_eq!(loss.slope_and_curvature(1e6), (-0.0, 0.0));
        }
        assert!((Loss::Logistic.value(0.0) - std::f64::consts::LN_2).abs() <= f64::EPSILON);
    }

    #[test]
    fn a_sum_of_losses_is_that_of_its_terms() {
        // The largest number of margins, and those at which the product of all factors is largest.
        let wide: Vec<f64> = (0..256).map(|k| f64::from(k) - 130.5).collect();
        for loss in ALL {
            for margins in [
                wide.clone(),
                vec![0.0; 256],
                vec![-1e6; 8],
                vec![f64::MAX; 8],
            ] {
                let right: f64 = margins.iter().map(|z| loss.value(*z)).sum();
                let sum = loss.sum(&mut margins.clone());
                assert!(
                    (sum - right).abs() <= 1e-13 * right,
                    "{loss:?}: {sum} {right}"
                );
            }
            assert!(loss.sum(&mut [f64::NAN; 8]).is_nan());
        }
    }

    #[test]
    fn a_probability_is_the_one_at_which_its_score_minimises_the_expected_loss() {
        for score in [-7.0, -1.3, -0.2, 0.0, 0.4, 2.5, 9.0] {
            let logistic = Loss::Logistic.probability(score).unwrap();
            assert!((logistic - 1.0 / (1.0 + libm::exp(-score))).abs() < 1e-15);
            // ∂/∂s of p·L(s) + (1 − p)·L(−s) is zero; for the cut loss p = (1 + e^s)/(3 + e^s) at s ≥ 0, by hand.
            let cut = Loss::CutLogistic.probability(score).unwrap();
            let e = libm::exp(score.abs());
            let by_hand = (1.0 + e) / (3.0 + e);
            let expected = if score < 0.0 { 1.0 - by_hand } else { by_hand };
            assert!((cut - expected).abs() < 1e-15, "{score}");
        }
        let hinge = Loss::SmoothHinge { width: 1.0 };
        assert_eq!(hinge.probability(0.3), None);
    }
}
