//! The ridge and the noise of one answer, from public facts: for a party alone under a pure total.
//!
//! ```text
//! b = s_max·min(d, √(2dk))/ε            the expected norm of the noise in the objective, over the sum of losses
//! a = max(b/(10·B), c₁/(B·(e^{ε/4} − 1)))   the extra ridge of a mean loss
//! ```
//! Gamma noise has the norm `s_max·d/ε`, and Laplace noise about `s_max·√(2dk)/ε`, where rows have `k` non-zeros of `d` columns: the one
//! with the smaller norm is taken. A pure total pays for every answer in full, so that one is better than several. A tenth of the
//! noise as ridge lets it move a minimiser by a norm of ten at most, which is that of useful models. The second term keeps what
//! curvature costs, `ln(1 + c₁/(aB))`, at a quarter of `ε`. No row is read.

use radmm::problem::{Loss, RowShape};

use crate::NoiseFamily;

/// The share of the noise's norm that is its ridge.
const RIDGE_PER_NOISE: f64 = 0.1;

/// The share of `ε` that curvature may cost.
const CURVATURE_SHARE: f64 = 0.25;

/// The ridge and the noise of one answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneAnswer {
    /// `a`, the `extra_ridge` of `local`, for a weight of one.
    pub extra_ridge: f64,
    /// The distribution of the noise in the objective.
    pub noise: NoiseFamily,
}

impl OneAnswer {
    /// Returns the rule's choice for a party with so many rows, and a pure total of `epsilon`.
    pub fn new(loss: Loss, shape: RowShape, rows: usize, epsilon: f64) -> Self {
        let columns = f64::from(shape.columns());
        let laplace = (2.0 * columns * f64::from(shape.max_nonzeros())).sqrt();
        let (noise, norm) = match laplace < columns {
            true => (NoiseFamily::Laplace, laplace),
            false => (NoiseFamily::Gamma, columns),
        };
        let rows = rows.max(1) as f64;
        let for_noise = RIDGE_PER_NOISE * loss.largest_slope() * norm / (epsilon * rows);
        let for_curvature = loss.curvature() / (rows * libm::expm1(CURVATURE_SHARE * epsilon));
        Self {
            extra_ridge: for_noise.max(for_curvature),
            noise,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HINGE: Loss = Loss::SmoothHinge { width: 1.0 };

    #[test]
    fn the_noise_with_the_smaller_norm_is_taken() {
        let noise = |columns, filled| {
            OneAnswer::new(HINGE, RowShape::new(columns, filled), 1000, 1.0).noise
        };
        assert_eq!(noise(150, 15), NoiseFamily::Laplace);
        assert_eq!(noise(58, 58), NoiseFamily::Gamma);
        assert_eq!(noise(400, 229), NoiseFamily::Gamma);
    }

    #[test]
    fn the_ridge_is_a_tenth_of_the_noise_and_falls_with_rows_and_epsilon() {
        let shape = RowShape::new(151, 33);
        let ridge = |rows, epsilon| OneAnswer::new(HINGE, shape, rows, epsilon).extra_ridge;
        let expected = 0.1 * (2.0f64 * 151.0 * 33.0).sqrt() / 32_561.0;
        assert!((ridge(32_561, 1.0) - expected).abs() < 1e-15);
        assert!(ridge(32_561, 2.0) < ridge(32_561, 1.0));
        assert!((ridge(1000, 1.0) / ridge(2000, 1.0) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn curvature_costs_a_quarter_of_the_total_at_most() {
        for epsilon in [0.01, 0.5, 1.0, 8.0] {
            for columns in [2, 11, 400] {
                let shape = RowShape::dense(columns);
                let chosen = OneAnswer::new(HINGE, shape, 500, epsilon).extra_ridge;
                let cost = (HINGE.curvature() / (chosen * 500.0)).ln_1p();
                assert!(
                    cost <= 0.25 * epsilon * (1.0 + 1e-12),
                    "{columns} {epsilon}"
                );
            }
        }
    }
}
