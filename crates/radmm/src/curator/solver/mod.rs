//! The certified minimiser of `F(f) = Σ_i (C/B_i) Σ_n L(fᵀz_n) + ⟨b, f⟩ + (m/2)‖f‖²`, with `z = y·x`.
//!
//! A curator has one shard `i` and `m = ρ/N + a`. The centralised optimum of a simulation has all shards and `m = ρ`.
//!
//! The methods form a ladder. A quasi-Newton search ([`quasi_newton`]) comes first. Where it fails, Newton's method
//! follows ([`newton`]), which converges from anywhere in exact arithmetic. Plain gradient descent in double-double
//! arithmetic ([`descent`]) comes last and cannot fail. Whatever the method, only a point whose computed gradient meets
//! the tolerance is returned.

mod cost;
mod descent;
pub(super) mod double_double;
mod newton;
pub(super) mod objective;
pub(super) mod quasi_newton;
mod rows_hessian;
#[cfg(test)]
mod tests;

use thiserror::Error;

use super::row_passes::PassFailed;
use double_double::Point;
use objective::Objective;
use quasi_newton::{Progress, QuasiNewton, WarmStart};

/// The least number of chunks at which a cold start first solves for a subsample of them.
const SUBSAMPLE_MIN_CHUNKS: usize = 3;
/// The stride between the chunks of a subsample.
const SUBSAMPLE_STRIDE: usize = 8;

/// A certified minimiser: a point whose gradient norm is at most the tolerance.
pub(in crate::curator) struct Solution {
    pub point: Vec<f64>,
    /// `‖∇F‖₂` there. `F` is m-strongly convex, so the minimiser is at most `residual/m` away.
    pub residual: f64,
}

/// The minimiser could not be certified, so nothing is released. The residual that was reached depends on rows, so it
/// is not reported.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[error(
    "the minimiser could not be certified to a residual of {tolerance:e}; raise the tolerance or the ridge, or add less noise"
)]
pub struct NotCertified {
    /// The required residual.
    pub tolerance: f64,
}

/// The reason why there is no minimiser.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Unsolved {
    /// No point met the tolerance.
    #[error(transparent)]
    NotCertified(#[from] NotCertified),
    /// The rows could not be read.
    #[error(transparent)]
    PassFailed(#[from] PassFailed),
}

/// The requirements on a solution.
#[derive(Clone, Copy)]
pub(in crate::curator) struct Target {
    /// The largest computed gradient norm.
    pub tolerance: f64,
    /// Whether the gradient must be computed with margins in double-double arithmetic.
    pub doubled: bool,
}

/// Minimises an objective from a starting point and the state of earlier queries about the same rows.
pub(in crate::curator) fn minimise(
    objective: &Objective<'_>,
    near: &[f64],
    target: &Target,
    warm_start: &mut WarmStart,
) -> Result<Solution, Unsolved> {
    let mut found = objective.minimise_fast(near, target, warm_start)?;
    if !found.meets(target) {
        found = objective.minimise_by_descent(near, target.tolerance)?;
    }
    // Written so that neither a NaN nor an infinity is certified.
    if found.meets(target) && target.tolerance.is_finite() {
        Ok(Solution {
            point: found.point.into_values(),
            residual: found.residual,
        })
    } else {
        let tolerance = target.tolerance;
        Err(NotCertified { tolerance }.into())
    }
}

/// A point with its gradient, from one pass over the rows.
pub(in crate::curator) struct Evaluation {
    pub point: Point,
    pub gradient: Vec<f64>,
    pub residual: f64,
}

impl Evaluation {
    /// Returns whether the evaluation certifies the point.
    pub(in crate::curator) fn meets(&self, target: &Target) -> bool {
        self.residual <= target.tolerance && (self.point.is_doubled() || !target.doubled)
    }
}

impl Objective<'_> {
    /// Minimises without the last step of the ladder: by Newton's method where a factor takes too long, else by a
    /// quasi-Newton search, which starts from the minimiser of a subsample if the warm start is cold.
    fn minimise_fast(
        &self,
        near: &[f64],
        target: &Target,
        warm_start: &mut WarmStart,
    ) -> Result<Evaluation, PassFailed> {
        if !self.factor_pays() {
            warm_start.set_passes(0);
            return self.minimise_by_newton(near, target);
        }
        let start = match warm_start.is_cold() {
            true => self.subsample_minimiser(near)?,
            false => None,
        };
        self.minimise_by_quasi_newton(start.as_deref().unwrap_or(near), target, warm_start)
    }

    /// Minimises by a quasi-Newton search, and by Newton's method from the best point if that fails.
    fn minimise_by_quasi_newton(
        &self,
        near: &[f64],
        target: &Target,
        warm_start: &mut WarmStart,
    ) -> Result<Evaluation, PassFailed> {
        let mut search = QuasiNewton::new(self, near, *target, warm_start)?;
        loop {
            let evaluation = self.evaluate(search.trial().clone())?;
            match search.advance(evaluation)? {
                Progress::NeedsGradient => {}
                Progress::Found(evaluation) => return Ok(evaluation),
                Progress::Failed(start) => return self.minimise_by_newton(&start, target),
            }
        }
    }

    /// Returns the minimiser for a subsample of the chunks, if there are many. It is near that of all rows, and is
    /// found in a fraction of the time.
    fn subsample_minimiser(&self, near: &[f64]) -> Result<Option<Vec<f64>>, PassFailed> {
        let chunks = self.rows.chunks().len();
        if chunks < SUBSAMPLE_MIN_CHUNKS {
            return Ok(None);
        }
        let subsample = self.subsample(chunks.min(SUBSAMPLE_STRIDE));
        let rows: usize = subsample.chunks_in_use().map(|chunk| chunk.rows).sum();
        // More accurate than the subsample represents all rows.
        let target = Target {
            tolerance: 0.1 * self.weight / (rows as f64).sqrt(),
            doubled: false,
        };
        let mut warm_start = WarmStart::default();
        let found = subsample.minimise_by_quasi_newton(near, &target, &mut warm_start)?;
        Ok(Some(found.point.into_values()))
    }
}
