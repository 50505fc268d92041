//! The error model: a bound on the distance of a computed answer from the exact one, from public facts alone, for any
//! rows and any noise.
//!
//! With `u = 2⁻⁵³`, every operation has a relative error of at most `u`. After one pass over the rows, the computed
//! gradient of `F` at `p` is within
//!
//! ```text
//! E(p) = u·( 32·C(1 + c₁) + 256·C + C·B̂²u + 8‖l‖ + 8m‖p‖ ) + C·c₁·ϑ·‖p‖       l = b + e the linear term, B̂ = min(B, 2²⁹)
//! ```
//! of the exact one. Slopes have an error of at most `8u(1 + c₁)`, and their products with values one of `2u`. Plain
//! sums have 256 roundings at most: 255 of 256 rows, at even or at odd positions of two blocks, and one of both together.
//! Sums over further blocks are compensated, so that only the sum of their corrections is rounded, by at most `(B̂u)²·C`:
//! in whatever order up to 2²⁹ rows are added, and beyond because chunks are added up first and their sums then
//! (docs/privacy.md). The rest is a handful of additions per coordinate. A margin has an error of at most `ϑ‖p‖`,
//! with `ϑ = (d + 1)u` for plain sums and `(d + 2)(d + 3)u²` for doubled ones, and moves its slope by `c₁` as much.
//! (The last rounding of a doubled margin is relative to the margin itself, and `|z·L''(z)| ≤ 1 + c₁`.)
//!
//! A point with a computed gradient of at most `τ` is thus within `(τ + E)/m` of the minimiser. Noise is drawn with a
//! relative error of [`SAMPLING_ERROR`], which moves the minimiser by `1/m` as much. Where a bound is in terms of the
//! computed point or noise, the factor two turns it into one in terms of the exact answer.

use super::config::MAX_CHUNKS;
use super::rows::chunk::{BLOCK_ROWS, CHUNK_ROWS};
use super::samplers::SAMPLING_ERROR;
use crate::linalg::dot::norm;
use crate::privacy::NoiseDistribution;
use crate::problem::Problem;
use crate::protocol::query::Query;

/// The number of rows beyond which the bound on the rounding of corrections grows no more, since sums have two levels.
const ONE_LEVEL_ROWS: usize = 1 << 29;

// Privacy: with n rows in a chunk and M chunks, corrections are rounded by at most (n²/2 + 2M(n + M))u²·C in two levels.
const _: () = assert!(
    CHUNK_ROWS * CHUNK_ROWS / 2 + 2 * MAX_CHUNKS * (CHUNK_ROWS + MAX_CHUNKS)
        <= ONE_LEVEL_ROWS * ONE_LEVEL_ROWS / 2
);

/// The unit roundoff: half the spacing of doubles at one.
const U: f64 = f64::EPSILON / 2.0;

/// An error bound in the Euclidean norm: the computed answer is within `absolute + relative·‖z‖` of the exact answer
/// `z`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ErrorBound {
    pub absolute: f64,
    pub relative: f64,
    /// A norm that the exact answer exceeds with a probability below `e^−47`, whatever the rows are.
    pub radius: f64,
    /// The part of `radius` that is due to noise.
    pub noise_radius: f64,
}

/// The place where noise enters an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NoisePlacement {
    /// Noise is a linear term of the objective.
    Objective,
    /// Noise is added to the answer.
    Answer,
}

/// The public facts that, beside the query, determine an answer's accuracy.
#[derive(Clone, Copy)]
pub(super) struct ErrorModel<'a> {
    pub problem: &'a Problem,
    pub rows: usize,
    pub columns: usize,
    /// Whether margins are computed in double-double arithmetic.
    pub doubled: bool,
}

impl ErrorModel<'_> {
    /// Returns the error bound of the answer to a query with this noise.
    pub(super) fn error_bound(
        &self,
        query: &Query,
        placement: NoisePlacement,
        law: &NoiseDistribution,
    ) -> ErrorBound {
        let noise_radius = law.reach(query.width(self.columns));
        let weight = self.problem.weight;
        match (query, placement) {
            (
                Query::Minimise {
                    quadratic, linear, ..
                },
                NoisePlacement::Objective,
            ) => {
                let (m, b) = (self.problem.share() + quadratic, norm(linear));
                // At the minimiser z of the problem with noise ‖b + e‖ ≤ C + m‖z‖: an error relative to b + e is
                // relative to z.
                let error = self.residual_bound(weight) + self.error_at_zero(weight);
                let drawn = SAMPLING_ERROR * (b + weight) + U * weight;
                let per_length =
                    self.residual_per_length(m) + self.error_per_length(m) + 9.0 * U * m;
                ErrorBound {
                    absolute: 2.0 * (error + drawn) / m,
                    relative: 2.0 * (per_length / m + SAMPLING_ERROR + 2.0 * U),
                    radius: self.minimiser_norm_bound(m, b + noise_radius),
                    noise_radius: noise_radius / m,
                }
            }
            (
                Query::Minimise {
                    quadratic, linear, ..
                },
                NoisePlacement::Answer,
            ) => {
                let (m, b) = (self.problem.share() + quadratic, norm(linear));
                let norm_bound = self.minimiser_norm_bound(m, b);
                let error = self.residual_bound(b)
                    + self.error_at_zero(b)
                    + self.error_per_length(m) * norm_bound;
                with_noise_added(2.0 * (error / m + U * norm_bound), norm_bound, noise_radius)
            }
            (Query::GradientSum { at, scale, metric }, _) => {
                let (gain, row) = metric
                    .as_ref()
                    .map_or((1.0, 1.0), |metric| (metric.gain(), metric.inverse_gain()));
                let sum = self.of_sum(*scale);
                let weight = sum.weight;
                let model = ErrorModel {
                    problem: &sum,
                    ..*self
                };
                // In a metric rows have norm `row` at most, and margins are taken at Af.
                let error = row * model.error_at_zero(0.0)
                    + row * row * model.error_per_length(0.0) * gain * norm(at);
                let product = match metric {
                    Some(_) => (self.columns + 2) as f64 * U * gain * row * weight,
                    None => 0.0,
                };
                with_noise_added(2.0 * (gain * error + product), weight, noise_radius)
            }
            (Query::RowSum { scale, .. }, _) => {
                let sum = self.of_sum(*scale);
                let model = ErrorModel {
                    problem: &sum,
                    ..*self
                };
                with_noise_added(2.0 * model.error_at_zero(0.0), sum.weight, noise_radius)
            }
            (Query::GramSum { scale, .. }, _) => {
                // The sum over rows is exact. What is left are at most three roundings of every entry.
                let length = scale * self.rows as f64;
                with_noise_added(4.0 * U * length, length, noise_radius)
            }
            (Query::Gradient { at }, _) => {
                let (m, length) = (self.problem.share(), norm(at));
                let error = self.error_at_zero(0.0) + self.error_per_length(m) * length;
                with_noise_added(2.0 * error, weight + m * length, noise_radius)
            }
        }
    }

    /// Returns the problem whose gradient is a sum over rows in this unit.
    fn of_sum(&self, scale: f64) -> Problem {
        Problem {
            weight: scale * self.rows as f64,
            ..*self.problem
        }
    }

    /// Returns whether the solver is certain to reach the required residual: `ϑ·C·c₁` at doubled margins must not
    /// outweigh the other errors, which the residual accounts for.
    pub(super) fn is_solvable(&self, query: &Query) -> bool {
        let m = match query {
            Query::Minimise { quadratic, .. } => self.problem.share() + quadratic,
            _ => return true,
        };
        let doubled = Self {
            doubled: true,
            ..*self
        };
        doubled.error_per_length(m) <= 10.0 * U * m
    }

    /// Returns a bound on the required residual for a linear term of this norm.
    fn residual_bound(&self, linear: f64) -> f64 {
        self.problem.tolerance + self.problem.residual_floor(linear)
    }

    /// Returns the growth of that bound per unit of `‖z‖`, if the linear term grows by `m`.
    fn residual_per_length(&self, m: f64) -> f64 {
        self.problem.residual_floor(m) - self.problem.residual_floor(0.0)
    }

    /// Returns `E(0)` for a linear term of this norm.
    fn error_at_zero(&self, linear: f64) -> f64 {
        let rows = self.rows.min(ONE_LEVEL_ROWS) as f64;
        let sums = self.problem.block_sum_error() + self.problem.weight * rows * rows * U;
        U * (32.0 * self.problem.slopes() + sums + 8.0 * linear)
    }

    /// Returns `(E(p) − E(0))/‖p‖`.
    fn error_per_length(&self, m: f64) -> f64 {
        let columns = self.columns as f64;
        let margin = match self.doubled {
            true => (columns + 2.0) * U * ((columns + 3.0) * U),
            false => (columns + 1.0) * U,
        };
        8.0 * U * m + self.problem.weight * self.problem.loss.curvature() * margin
    }

    /// Returns a bound on the minimiser's norm for a linear term of this norm. The gradient vanishes at the minimiser,
    /// so `m‖z‖ ≤ C + ‖l‖`. The objective there is at most its value at zero, so `½m‖z‖² − ‖l‖‖z‖ ≤ C·L(0)`.
    fn minimiser_norm_bound(&self, m: f64, linear: f64) -> f64 {
        let weight = self.problem.weight;
        let at_zero = weight * self.problem.loss.value(0.0);
        let by_value = linear + (linear * linear + 2.0 * m * at_zero).sqrt();
        1.01 * by_value.min(weight + linear) / m
    }
}

impl Problem {
    /// Returns a gradient norm that the solver can reach for a query with a linear term of this norm, whatever the rows
    /// are. It is more than four times the rounding error of a gradient at doubled margins (see the module's
    /// documentation), where `m‖f‖` is at most `C + ‖b‖` near the minimum.
    pub(in crate::curator) fn residual_floor(&self, linear: f64) -> f64 {
        f64::EPSILON * (96.0 * self.slopes() + 2.25 * self.block_sum_error() + 128.0 * linear)
    }

    /// Returns the residual to which a query with this linear term is certified: `τ`, or what double precision can
    /// reach.
    pub(in crate::curator) fn required_residual(&self, linear: &[f64]) -> f64 {
        self.tolerance.max(self.residual_floor(norm(linear)))
    }

    /// Returns the largest size of a query's coefficients: a million times that of a gradient of rows.
    pub(in crate::curator) fn max_query_size(&self) -> f64 {
        1e6 * (1.0 + self.slopes())
    }

    /// Returns the rounding error of plain sums within a block of rows, in units of `u`.
    pub(in crate::curator) fn block_sum_error(&self) -> f64 {
        BLOCK_ROWS as f64 * self.weight
    }
}

/// Returns the error bound of an answer with added noise, if the answer alone has an error of at most `error` and a
/// norm of at most `length`. The norm of the noise is at most `length + ‖z‖`.
fn with_noise_added(error: f64, length: f64, noise_radius: f64) -> ErrorBound {
    ErrorBound {
        absolute: error + 2.0 * SAMPLING_ERROR * length,
        relative: 2.0 * (SAMPLING_ERROR + U),
        radius: length + noise_radius,
        noise_radius,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curator::config::MAX_ROWS;
    use crate::curator::kernel::passes::CompensatedSum;
    use crate::problem::Loss;

    const LAW: NoiseDistribution = NoiseDistribution::Gaussian { sigma: 1.0 };

    /// A problem with `m = 1` for a query without a penalty.
    const PROBLEM: Problem = Problem {
        loss: Loss::Logistic,
        weight: 1e3,
        ridge: 1.0,
        nodes: 1,
        tolerance: 1e-15,
        shape: None,
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
    fn a_minimisers_error_bound_is_at_least_its_residual() {
        let loose = Problem {
            tolerance: 0.5,
            ..PROBLEM
        };
        for placement in [NoisePlacement::Objective, NoisePlacement::Answer] {
            let bound = plain(&loose, 2).error_bound(&minimise(1.0), placement, &LAW);
            assert!(bound.absolute >= 0.5, "{placement:?}");
        }
    }

    #[test]
    fn every_bound_includes_the_rounding_of_margins() {
        // C·c₁·ϑ per unit of length, which is at least 1e6 where it is not that of the exact answer itself.
        let (columns, length) = (1000, 1e6);
        let share = 250.0 * 1001.0 * U;
        let model = plain(&PROBLEM, columns);
        let within = model.error_bound(&minimise(1.0), NoisePlacement::Objective, &LAW);
        assert!(within.relative >= share);
        // ‖z‖ ≥ (‖b‖ − C)/m.
        let output = model.error_bound(&minimise(length + 1e3), NoisePlacement::Answer, &LAW);
        assert!(output.absolute >= share * length);
        let slope = model.error_bound(&gradient(length), NoisePlacement::Answer, &LAW);
        assert!(slope.absolute >= share * length);
        // Doubled margins are far better, but not exact.
        let doubled = ErrorModel {
            doubled: true,
            ..model
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
    fn every_bound_includes_the_rounding_of_noise() {
        // In the objective e = l − b with ‖l‖ ≤ C + m‖z‖, so that its error is relative to ‖b‖ as well.
        let model = plain(&PROBLEM, 1);
        let within = model.error_bound(&minimise(1e9), NoisePlacement::Objective, &LAW);
        assert!(within.absolute >= 16.0 * U * 1e9);
        assert!(within.relative >= 16.0 * U);
        // On an answer e = z − ∇O, and the gradient itself has seven roundings of m‖f‖.
        let light = Problem {
            weight: 1e-3,
            ..PROBLEM
        };
        let slope = plain(&light, 1).error_bound(&gradient(1e6), NoisePlacement::Answer, &LAW);
        assert!(slope.absolute >= 23.0 * U * 1e6);
        assert!(slope.relative >= 17.0 * U);
    }

    #[test]
    fn queries_beyond_doubled_margins_are_not_solvable() {
        // 10¹⁴·u·C·c₁ against 2m.
        let wide = |weight, columns| {
            let problem = Problem { weight, ..PROBLEM };
            plain(&problem, columns).is_solvable(&minimise(1.0))
        };
        assert!(wide(1e3, 100_000) && !wide(1e3, 100_000_000));
        assert!(!wide(1e9, 100_000));
    }

    #[test]
    fn the_rounding_error_of_slopes_grows_with_the_curvature() {
        let sharp = Problem {
            loss: Loss::SmoothHinge { width: 0.01 },
            ..PROBLEM
        };
        let slope = plain(&sharp, 1).error_bound(&gradient(0.0), NoisePlacement::Answer, &LAW);
        assert!(slope.absolute >= 8.0 * U * 76.0 * 1e3);
    }

    /// Calls `check` with problems of all losses, small and large, and with the columns and linear terms of a query.
    fn each_size(mut check: impl FnMut(&Problem, usize, f64)) {
        let hinges = [0.01, 0.5, 100.0].map(|width| Loss::SmoothHinge { width });
        for loss in [Loss::Logistic, Loss::CutLogistic].iter().chain(&hinges) {
            for weight in [1e-3, 1.0, 1750.0, 1e6] {
                let problem = Problem {
                    loss: *loss,
                    weight,
                    ..PROBLEM
                };
                for (columns, linear) in [(1, 0.0), (105, 1.0), (2000, 1e3), (10_000, 1e9)] {
                    check(&problem, columns, linear);
                }
            }
        }
    }

    /// Returns `τ` and `4E` at doubled margins near the minimum, where `m‖p‖ ≤ C + ‖l‖ + τ`, if the query is solvable.
    fn residual_and_error(
        problem: &Problem,
        rows: usize,
        columns: usize,
        linear: f64,
    ) -> Option<(f64, f64)> {
        let model = ErrorModel {
            problem,
            rows,
            columns,
            doubled: true,
        };
        let required = problem.required_residual(&[linear]);
        let length = problem.weight + linear + required;
        let error = model.error_at_zero(linear) + model.error_per_length(1.0) * length;
        let solvable = model.is_solvable(&minimise(linear));
        solvable.then_some((required, 4.0 * error))
    }

    #[test]
    fn the_required_residual_is_more_than_four_times_the_rounding_error_of_a_gradient() {
        let mut solvable = 0;
        each_size(|problem, columns, linear| {
            for rows in [1, 1 << 14, 1 << 26, 1 << 28, 1 << 29, MAX_ROWS] {
                let found = residual_and_error(problem, rows, columns, linear);
                let holds = found.is_none_or(|(required, error)| required > error);
                assert!(holds, "{problem:?} {rows} {columns} {linear}");
                solvable += u32::from(found.is_some());
            }
        });
        assert!(solvable > 300, "{solvable}");
    }

    #[test]
    fn sums_in_one_level_would_end_where_the_proof_says() {
        // τ > 4E while B²u ≤ 22 + 16(1 + c₁), with a linear term of zero, where there is least room.
        let problem = Problem {
            weight: 1e6,
            tolerance: 1e-300,
            ..PROBLEM
        };
        let most = 22.0 + 16.0 * (1.0 + problem.loss.curvature());
        let with_term = |term: f64| {
            let (required, error) = residual_and_error(&problem, 1, 1, 0.0).unwrap();
            required > error + 4.0 * U * problem.weight * term
        };
        // At one column less is left for margins than the proof allows them: 2u·(C + τ).
        assert!(with_term(most) && !with_term(most + 2.1));
        let one_level = |rows: f64| rows * rows * U;
        assert!(one_level(ONE_LEVEL_ROWS as f64) <= most);
        assert!(one_level(2.0 * ONE_LEVEL_ROWS as f64) > most);
    }

    #[test]
    fn the_error_of_up_to_2_26_rows_is_what_it_was() {
        // Grids, and with them the bits of all releases, follow from it.
        let error = |rows: usize| {
            let model = ErrorModel {
                rows,
                ..plain(&PROBLEM, 1)
            };
            model.error_at_zero(1.0)
        };
        for rows in [1, 30_162, 1 << 26] {
            let (c, b) = (PROBLEM.weight, rows as f64);
            let sums = PROBLEM.block_sum_error() + c * b * b * U;
            assert_eq!(error(rows), U * (32.0 * PROBLEM.slopes() + sums + 8.0));
        }
        assert_eq!(error(1 << 29), error(MAX_ROWS));
    }

    /// Returns the exact value of a double that is an integer.
    fn integer(value: f64) -> i128 {
        assert!(value == value.trunc() && value.abs() < 2f64.powi(126));
        value as i128
    }

    #[test]
    fn sums_over_the_most_chunks_are_within_their_bound() {
        let mut state = 7u64;
        let mut next = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 11
        };
        // 2²⁹ rows in full chunks, and the largest number of chunks. Sizes spread over 2⁴⁵, and every other chunk nearly
        // cancels the one before.
        for chunks in [(1 << 29) / CHUNK_ROWS, MAX_CHUNKS] {
            let mut total = CompensatedSum::zero(1);
            let (mut exact, mut sizes, mut plain, mut last) = (0i128, 0.0, 0.0, 0.0);
            for k in 0..chunks {
                let sum = match k % 2 {
                    0 => (next() | 1 << 52) as f64 * 2f64.powi((next() % 45) as i32),
                    _ => -last * (1.0 + (next() % 8) as f64 * f64::EPSILON),
                };
                last = sum;
                // The largest corrections that the rows of a chunk can have.
                let share = next() as f64 / 2f64.powi(53) - 0.5;
                let correction = (share * CHUNK_ROWS as f64 * U * sum).round();
                exact += integer(sum) + integer(correction);
                sizes += sum.abs();
                plain += sum;
                total.add_all(&CompensatedSum {
                    sum: vec![sum],
                    correction: vec![correction],
                });
            }
            let error = |high: f64, low: f64| (integer(high) + integer(low) - exact).abs() as f64;
            let (n, m) = (CHUNK_ROWS as f64, chunks as f64);
            let bound = 2.0 * m * (n + m) * U * U * sizes;
            let allowed = (ONE_LEVEL_ROWS as f64 * U).powi(2) * sizes;
            let found = error(total.sum[0], total.correction[0]);
            assert!(found > 0.0 && found <= bound, "{found:e} {bound:e}");
            assert!(bound < allowed);
            assert!(error(plain, 0.0) > 1e3 * bound, "plain sums are worse");
        }
    }
}
