//! How far a computed answer can be from the exact one: from public facts alone, for any rows and any noise.
//!
//! With `u = 2⁻⁵³`, every operation is off by at most `u` of its result. Summed up over one pass over the rows, the gradient
//! of `F` at `p` comes out within
//!
//! ```text
//! E(p) = u·( 32·C(1 + c₁) + 256·C + C·B²u + 8‖l‖ + 8m‖p‖ ) + C·c₁·ϑ·‖p‖         l = b + e the linear term
//! ```
//! of itself: slopes are good to `8u(1 + c₁)` and their products with values to `2u`; sums over the 256 rows of a block are plain;
//! sums over blocks are compensated, so that only the sum of what they lose is rounded, `(Bu)²·C`; the rest are a handful of additions a coordinate. A margin is off by
//! `ϑ‖p‖`, with `ϑ = (d + 1)u` for plain sums and `(d + 2)(d + 3)u²` for doubled ones, and moves its slope by `c₁` as much. (Of a doubled
//! margin the last rounding is relative to the margin itself, and `|z·L''(z)| ≤ 1 + c₁`.)
//!
//! A point with a computed gradient of at most `τ` is thus within `(τ + E)/m` of the minimiser. Noise is drawn to [`DRAWN`] of
//! its length, which moves the minimiser by `1/m` as much. Where a bound is in terms of the computed point or noise, the factor
//! two turns it into one in terms of the exact answer.

use super::rows::chunk::BLOCK;
use super::samplers::DRAWN;
use crate::linalg::dot::norm;
use crate::privacy::NoiseDistribution;
use crate::problem::Problem;
use crate::protocol::query::Query;

/// Half the spacing of doubles at one.
const U: f64 = f64::EPSILON / 2.0;

/// Of a computed answer, in the Euclidean norm: it is within `absolute + relative·‖z‖` of the exact answer `z`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ErrorBound {
    pub absolute: f64,
    pub relative: f64,
    /// A norm that the exact answer exceeds with a probability below `e^−47`, whatever the rows are.
    pub radius: f64,
    /// The part of that norm that is noise.
    pub reach: f64,
}

/// Where noise enters an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NoisePlacement {
    /// As a linear term of what is minimised.
    Objective,
    /// Added to the answer.
    Answer,
}

/// The public facts that an answer's accuracy depends on, beside the question.
#[derive(Clone, Copy)]
pub(super) struct ErrorModel<'a> {
    pub problem: &'a Problem,
    pub rows: usize,
    pub columns: usize,
    /// Whether margins are doubled.
    pub doubled: bool,
}

impl ErrorModel<'_> {
    pub(super) fn error_bound(
        &self,
        query: &Query,
        placement: NoisePlacement,
        law: &NoiseDistribution,
    ) -> ErrorBound {
        let reach = law.reach(self.columns);
        let weight = self.problem.weight;
        match (query, placement) {
            (
                Query::Minimise {
                    quadratic, linear, ..
                },
                NoisePlacement::Objective,
            ) => {
                let (m, b) = (self.problem.share() + quadratic, norm(linear));
                // At the minimiser z of the problem with noise ‖b + e‖ ≤ C + m‖z‖: what is relative to b + e is so to z.
                let found = self.residual(weight) + self.at_zero(weight);
                let drawn = DRAWN * (b + weight) + U * weight;
                let by_length = self.residual_by_length(m) + self.by_length(m) + 9.0 * U * m;
                ErrorBound {
                    absolute: 2.0 * (found + drawn) / m,
                    relative: 2.0 * (by_length / m + DRAWN + 2.0 * U),
                    radius: self.farthest(m, b + reach),
                    reach: reach / m,
                }
            }
            (
                Query::Minimise {
                    quadratic, linear, ..
                },
                NoisePlacement::Answer,
            ) => {
                let (m, b) = (self.problem.share() + quadratic, norm(linear));
                let farthest = self.farthest(m, b);
                let found = self.residual(b) + self.at_zero(b) + self.by_length(m) * farthest;
                with_noise_added(2.0 * (found / m + U * farthest), farthest, reach)
            }
            (Query::Gradient { at }, _) => {
                let (m, length) = (self.problem.share(), norm(at));
                let found = self.at_zero(0.0) + self.by_length(m) * length;
                with_noise_added(2.0 * found, weight + m * length, reach)
            }
        }
    }

    /// Whether the solver is sure to get to the residual that is asked for: `ϑ·C·c₁` at doubled margins must not outweigh the
    /// other errors, for which the residual leaves room.
    pub(super) fn certain(&self, query: &Query) -> bool {
        let m = match query {
            Query::Minimise { quadratic, .. } => self.problem.share() + quadratic,
            Query::Gradient { .. } => return true,
        };
        let doubled = Self {
            doubled: true,
            ..*self
        };
        doubled.by_length(m) <= 10.0 * U * m
    }

    /// The residual that is asked for, for a linear term of this norm.
    fn residual(&self, linear: f64) -> f64 {
        self.problem.tolerance + self.problem.floor(linear)
    }

    /// What it grows by for each unit of `‖z‖`, if the linear term grows by `m`.
    fn residual_by_length(&self, m: f64) -> f64 {
        self.problem.floor(m) - self.problem.floor(0.0)
    }

    /// `E(0)`, for a linear term of this norm.
    fn at_zero(&self, linear: f64) -> f64 {
        let rows = self.rows as f64;
        let sums = self.problem.sums() + self.problem.weight * rows * rows * U;
        U * (32.0 * self.problem.slopes() + sums + 8.0 * linear)
    }

    /// `(E(p) − E(0))/‖p‖`.
    fn by_length(&self, m: f64) -> f64 {
        let columns = self.columns as f64;
        let margin = match self.doubled {
            true => (columns + 2.0) * U * ((columns + 3.0) * U),
            false => (columns + 1.0) * U,
        };
        8.0 * U * m + self.problem.weight * self.problem.loss.curvature() * margin
    }

    /// A bound of the minimiser's norm for a linear term of this one. Its gradient vanishes, so `m‖z‖ ≤ C + ‖l‖`; and it is
    /// no worse than zero, so `½m‖z‖² − ‖l‖‖z‖ ≤ C·L(0)`.
    fn farthest(&self, m: f64, linear: f64) -> f64 {
        let weight = self.problem.weight;
        let at_zero = weight * self.problem.loss.value(0.0);
        let by_value = linear + (linear * linear + 2.0 * m * at_zero).sqrt();
        1.01 * by_value.min(weight + linear) / m
    }
}

impl Problem {
    /// A gradient norm that the solver can get below for a question with a linear term of this norm, whatever the rows are:
    /// more than four times what rounding can make of a gradient at doubled margins (see `accuracy`), `m‖f‖` being at
    /// most `C + ‖b‖` near the minimum.
    pub(in crate::curator) fn floor(&self, linear: f64) -> f64 {
        f64::EPSILON * (96.0 * self.slopes() + 2.25 * self.sums() + 128.0 * linear)
    }

    /// The residual to which a question with this linear term is certified: `τ`, or what double precision can reach.
    pub(in crate::curator) fn residual(&self, linear: &[f64]) -> f64 {
        self.tolerance.max(self.floor(norm(linear)))
    }

    /// How large the coefficients of a question may be: a thousand thousands of what rows can answer.
    pub(in crate::curator) fn largest(&self) -> f64 {
        1e6 * (1.0 + self.slopes())
    }

    /// What plain sums within a block of rows can lose, in units of rounding.
    pub(in crate::curator) fn sums(&self) -> f64 {
        BLOCK as f64 * self.weight
    }
}

/// Noise added to an answer that is off by `off` and no longer than `length`: the noise is at most `length + ‖z‖`.
fn with_noise_added(off: f64, length: f64, reach: f64) -> ErrorBound {
    ErrorBound {
        absolute: off + 2.0 * DRAWN * length,
        relative: 2.0 * (DRAWN + U),
        radius: length + reach,
        reach,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Loss;

    const LAW: NoiseDistribution = NoiseDistribution::Gaussian { sigma: 1.0 };

    /// `m = 1` for a question without a penalty.
    const PROBLEM: Problem = Problem {
        loss: Loss::Logistic,
        weight: 1e3,
        ridge: 1.0,
        nodes: 1,
        tolerance: 1e-15,
    };

    fn plain(problem: &Problem, columns: usize) -> ErrorModel<'_> {
        ErrorModel {
            problem,
            rows: 10,
            columns,
            doubled: false,
        }
    }

    fn minimise(linear: f64) -> Query {
        Query::Minimise {
            quadratic: 0.0,
            linear: vec![linear],
            near: vec![0.0],
        }
    }

    fn gradient(at: f64) -> Query {
        Query::Gradient { at: vec![at] }
    }

    #[test]
    fn a_minimiser_is_no_nearer_than_its_residual_says() {
        let loose = Problem {
            tolerance: 0.5,
            ..PROBLEM
        };
        for entry in [NoisePlacement::Objective, NoisePlacement::Answer] {
            let accuracy = plain(&loose, 2).error_bound(&minimise(1.0), entry, &LAW);
            assert!(accuracy.absolute >= 0.5, "{entry:?}");
        }
    }

    #[test]
    fn the_rounding_of_margins_counts_in_every_answer() {
        // C·c₁·ϑ for each unit of length, which is 1e6 at least where it is not the exact answer's own.
        let (columns, length) = (1000, 1e6);
        let share = 250.0 * 1001.0 * U;
        let facts = plain(&PROBLEM, columns);
        let within = facts.error_bound(&minimise(1.0), NoisePlacement::Objective, &LAW);
        assert!(within.relative >= share);
        // ‖z‖ ≥ (‖b‖ − C)/m.
        let output = facts.error_bound(&minimise(length + 1e3), NoisePlacement::Answer, &LAW);
        assert!(output.absolute >= share * length);
        let slope = facts.error_bound(&gradient(length), NoisePlacement::Answer, &LAW);
        assert!(slope.absolute >= share * length);
        // Doubled margins are better, by far and no more than that.
        let doubled = ErrorModel {
            doubled: true,
            ..facts
        };
        let fine = doubled.error_bound(&gradient(length), NoisePlacement::Answer, &LAW);
        assert!(fine.absolute < 0.01 * slope.absolute);
        let wide = ErrorModel {
            columns: 10_000_000,
            ..doubled
        };
        let wide = wide.error_bound(&gradient(length), NoisePlacement::Answer, &LAW);
        assert!(wide.absolute >= 250.0 * (1e7 * U).powi(2) * length);
    }

    #[test]
    fn the_rounding_of_noise_counts_in_every_answer() {
        // In the objective e = l − b with ‖l‖ ≤ C + m‖z‖, so that its error is relative to ‖b‖ too.
        let facts = plain(&PROBLEM, 1);
        let within = facts.error_bound(&minimise(1e9), NoisePlacement::Objective, &LAW);
        assert!(within.absolute >= 16.0 * U * 1e9);
        assert!(within.relative >= 16.0 * U);
        // On an answer e = z − ∇O, and the gradient itself is off by seven roundings of m‖f‖.
        let light = Problem {
            weight: 1e-3,
            ..PROBLEM
        };
        let slope = plain(&light, 1).error_bound(&gradient(1e6), NoisePlacement::Answer, &LAW);
        assert!(slope.absolute >= 23.0 * U * 1e6);
        assert!(slope.relative >= 17.0 * U);
    }

    #[test]
    fn where_doubled_margins_are_not_enough_nothing_is_asked() {
        // 10¹⁴·u·C·c₁ against 2m.
        let wide = |weight, columns| {
            let problem = Problem { weight, ..PROBLEM };
            plain(&problem, columns).certain(&minimise(1.0))
        };
        assert!(wide(1e3, 100_000) && !wide(1e3, 100_000_000));
        assert!(!wide(1e9, 100_000));
    }

    #[test]
    fn the_rounding_of_slopes_grows_with_the_curvature() {
        let sharp = Problem {
            loss: Loss::SmoothHinge { width: 0.01 },
            ..PROBLEM
        };
        let slope = plain(&sharp, 1).error_bound(&gradient(0.0), NoisePlacement::Answer, &LAW);
        assert!(slope.absolute >= 8.0 * U * 76.0 * 1e3);
    }

    #[test]
    fn the_residual_that_is_asked_for_is_four_times_what_rounding_makes_of_a_gradient() {
        // Near the minimum m‖p‖ ≤ C + ‖l‖ + τ; as many rows as a party may have.
        for weight in [1e-3, 1.0, 1750.0, 1e6] {
            for width in [0.01, 0.5, 100.0] {
                for (columns, linear) in [(1, 0.0), (105, 1.0), (2000, 1e3), (10_000, 1e9)] {
                    let problem = Problem {
                        loss: Loss::SmoothHinge { width },
                        weight,
                        ..PROBLEM
                    };
                    let facts = ErrorModel {
                        problem: &problem,
                        rows: 1 << 26,
                        columns,
                        doubled: true,
                    };
                    if !facts.certain(&minimise(linear)) {
                        continue;
                    }
                    let asked = problem.residual(&[linear]);
                    let length = weight + linear + asked;
                    let error = facts.at_zero(linear) + facts.by_length(1.0) * length;
                    assert!(asked >= 4.0 * error, "{weight} {width} {columns} {linear}");
                }
            }
        }
    }
}
