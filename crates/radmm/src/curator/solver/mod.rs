//! The certified minimiser of `F(f) = Σ_i (C/B_i) Σ_n L(fᵀz_n) + ⟨b, f⟩ + (m/2)‖f‖²`, with `z = y·x`.
//!
//! A curator has one shard `i` and `m = ρ/N + a`. The centralised optimum of a simulation has all shards and `m = ρ`.
//!
//! Methods form a ladder. A quasi-Newton search ([`quasi_newton`]) comes first. Where it fails, Newton's method follows
//! ([`newton`]), which converges from anywhere in exact arithmetic. Plain gradient descent at doubled precision ([`descent`])
//! comes last and cannot fail. Whatever the method, only a point whose computed gradient meets the tolerance is returned.

mod descent;
pub(super) mod double_double;
mod newton;
pub(super) mod objective;
pub(super) mod quasi_newton;
#[cfg(test)]
mod tests;

use thiserror::Error;

use double_double::Point;
use newton::DENSE_COLUMNS;
use objective::Objective;
use quasi_newton::{Progress, QuasiNewton, WarmStart};

/// The number of chunks from which on a cold start first solves for some of them.
const ROUGH_FROM: usize = 3;
/// The stride between the chunks of a rough start.
const ROUGH_STRIDE: usize = 8;

/// A point whose gradient is at most the tolerance.
pub(in crate::curator) struct Solution {
    pub point: Vec<f64>,
    /// `‖∇F‖₂` there. `F` is m-strongly convex, so the minimiser is at most `residual/m` away.
    pub residual: f64,
}

/// Nothing is released from a point that is not certified. How near it came depends on rows, so that is not told.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[error(
    "the minimiser could not be certified to a residual of {tolerance:e}; raise the tolerance or the ridge, or add less noise"
)]
pub struct NotCertified {
    /// What was asked for.
    pub tolerance: f64,
}

/// What a solution has to be.
#[derive(Clone, Copy)]
pub(in crate::curator) struct Target {
    /// Of the computed gradient norm.
    pub tolerance: f64,
    /// Whether it must be computed with doubled margins.
    pub doubled: bool,
}

/// Minimises from a starting point, with what earlier questions have told of the same rows.
pub(in crate::curator) fn minimise(
    objective: &Objective<'_>,
    near: &[f64],
    target: &Target,
    warm_start: &mut WarmStart,
) -> Result<Solution, NotCertified> {
    let mut found = objective.quickly(near, target, warm_start);
    if !found.meets(target) {
        found = objective.descend(near, target.tolerance);
    }
    // Written so that neither a NaN nor an infinity is certified.
    if found.meets(target) && target.tolerance.is_finite() {
        Ok(Solution {
            point: found.point.into_values(),
            residual: found.residual,
        })
    } else {
        Err(NotCertified {
            tolerance: target.tolerance,
        })
    }
}

/// A point, with what one pass over the rows tells of it.
pub(in crate::curator) struct Evaluation {
    pub point: Point,
    pub gradient: Vec<f64>,
    pub residual: f64,
}

impl Evaluation {
    pub(in crate::curator) fn meets(&self, target: &Target) -> bool {
        self.residual <= target.tolerance && (self.point.is_doubled() || !target.doubled)
    }
}

impl Objective<'_> {
    /// The quick way, from a rough start if nothing is known yet.
    fn quickly(&self, near: &[f64], target: &Target, warm_start: &mut WarmStart) -> Evaluation {
        if near.len() > DENSE_COLUMNS {
            warm_start.count(0);
            return self.by_newton(near, target);
        }
        let rough = match warm_start.knows_nothing() {
            true => self.rough_start(near),
            false => None,
        };
        self.search(rough.as_deref().unwrap_or(near), target, warm_start)
    }

    /// The quick way, and Newton's method from where it was lost.
    fn search(&self, near: &[f64], target: &Target, warm_start: &mut WarmStart) -> Evaluation {
        let mut search = QuasiNewton::new(self, near, *target, warm_start);
        loop {
            let place = self.at(search.asks().clone());
            match search.told(place) {
                Progress::NeedsGradient => {}
                Progress::Found(place) => return place,
                Progress::Failed(start) => return self.by_newton(&start, target),
            }
        }
    }

    /// A minimiser for a few of the rows, where there are many: not far from that of all, and found in a fraction of the time.
    fn rough_start(&self, near: &[f64]) -> Option<Vec<f64>> {
        let chunks: usize = self.shards.iter().map(|shard| shard.chunks().len()).sum();
        if chunks < ROUGH_FROM {
            return None;
        }
        let some = Objective {
            shards: self.shards.clone(),
            stride: chunks.min(ROUGH_STRIDE),
            ..*self
        };
        let rows: usize = some.chunks().iter().map(|(chunk, _)| chunk.rows()).sum();
        // More exact than the few rows are like all of them.
        let target = Target {
            tolerance: 0.1 * self.weight / (rows as f64).sqrt(),
            doubled: false,
        };
        let mut search = WarmStart::default();
        Some(some.search(near, &target, &mut search).point.into_values())
    }
}
