//! Answers to paid queries: computed, perturbed with the charged noise, and rounded to the grid.
//!
//! ```text
//! objective   argmin O(f) + ⟨b + e, f⟩ + (a/2)‖f‖²
//! output      argmin O(f) + ⟨b, f⟩ + (a/2)‖f‖²  +  e
//! gradient    ∇O(f)  +  e
//! sums        scale·Σ_n (…)  +  e, of gradients, products or rows: see `row_sums`
//! ```
//! The price of an answer is in `privacy::mechanism`. Answering consumes the proof of payment, and the noise is drawn
//! from the distribution in the event that was charged.

#[cfg(test)]
mod tests;

use rand_chacha::ChaCha20Rng;
use thiserror::Error;

use super::error_model::{ErrorModel, NoisePlacement};
use super::grid::{GridRounding, TooCoarse};
use super::row_passes::{PassFailed, RowPasses};
use super::row_sums::{self, GradientPlace};
use super::solver::objective::Objective;
use super::solver::quasi_newton::WarmStart;
use super::solver::{self, NotCertified, Solution, Target, Unsolved};
use crate::privacy::{IdealRelease, Paid, PrivacyEvent};
use crate::problem::Problem;
use crate::protocol::query::Query;
use crate::protocol::release::Release;

/// The reason why an answer that was paid for cannot be released. Answers with noise on the grid always can.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum Unreleasable {
    /// The minimiser was not found to the required accuracy.
    #[error(transparent)]
    NotCertified(#[from] NotCertified),
    /// An answer without noise is not finite, or is beyond the grid.
    #[error(
        "the answer is too large to be released: the algorithm diverges; raise the penalty or the ridge"
    )]
    BeyondGrid,
}

/// The reason why a query that was paid for has no answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Unanswered {
    /// There is none that can be released. The charge stands.
    Unreleasable(Unreleasable),
    /// The rows could not be read. The same query has an answer when they can be.
    PassFailed(PassFailed),
}

impl From<Unsolved> for Unanswered {
    fn from(unsolved: Unsolved) -> Self {
        match unsolved {
            Unsolved::NotCertified(cause) => Self::Unreleasable(cause.into()),
            Unsolved::PassFailed(failed) => Self::PassFailed(failed),
        }
    }
}

/// One party's rows, with the problem that queries are about.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub passes: &'a dyn RowPasses,
    pub problem: &'a Problem,
}

/// The precision and the rounding of an answer, decided from public facts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AnswerPlan {
    /// Whether margins are computed in double-double arithmetic.
    doubled: bool,
    /// The rounding to the grid; `None` for an answer without noise.
    rounding: Option<GridRounding>,
}

/// The largest ratio of grid noise to a mechanism's own noise at which plain margins are precise enough.
const NEGLIGIBLE: f64 = 1e-4;

impl AnswerPlan {
    /// Chooses plain margins where they are precise enough, and doubled ones elsewhere.
    // Privacy: nothing here depends on rows. It runs before one is read.
    pub(super) fn new(
        query: &Query,
        event: &PrivacyEvent,
        problem: &Problem,
        (rows, columns): (usize, usize),
    ) -> Result<Self, TooCoarse> {
        let (placement, law) = match event.ideal {
            IdealRelease::Objective { law, .. } => (NoisePlacement::Objective, law),
            IdealRelease::Additive { law, .. } => (NoisePlacement::Answer, law),
            IdealRelease::Exact => {
                return Ok(Self {
                    doubled: false,
                    rounding: None,
                });
            }
        };
        let plan = |doubled: bool| {
            let model = ErrorModel {
                problem,
                rows,
                columns,
                doubled,
            };
            if !model.is_solvable(query) {
                return Err(TooCoarse);
            }
            let bound = model.error_bound(query, placement, &law);
            let width = query.width(columns);
            let rounding = GridRounding::new(&bound, width, event.slack)?;
            // Both are per coordinate.
            let own_noise = bound.noise_radius / (width as f64).sqrt();
            let plan = Self {
                doubled,
                rounding: Some(rounding),
            };
            Ok((plan, rounding.noise_scale() <= NEGLIGIBLE * own_noise))
        };
        match plan(false) {
            Ok((plain, true)) => Ok(plain),
            _ => plan(true).map(|(doubled, _)| doubled),
        }
    }
}

impl AnswerPlan {
    /// Returns the scale of the noise that rounding to the grid adds to a coordinate; `None` for an answer without noise.
    pub(super) fn grid_noise(&self) -> Option<f64> {
        self.rounding.map(|rounding| rounding.noise_scale())
    }
}

/// An answer, with its residual for the simulator.
pub(super) struct Answer {
    pub release: Release,
    /// `‖∇F‖₂` at a minimiser; zero for a gradient.
    pub residual: f64,
}

impl Rows<'_> {
    /// Answers a query that was paid for: computes the answer, adds the noise that was charged, and rounds to the grid.
    pub(super) fn noisy_answer(
        &self,
        query: &Query,
        paid: Paid,
        plan: &AnswerPlan,
        warm_start: &mut WarmStart,
        rng: &mut ChaCha20Rng,
    ) -> Result<Answer, Unanswered> {
        let answer = self.perturbed_answer(query, paid, plan, warm_start, rng)?;
        let release = match plan.rounding {
            Some(rounding) => rounding.release(answer.point, rng),
            None => Release::rounded(&answer.point)
                .ok_or(Unanswered::Unreleasable(Unreleasable::BeyondGrid))?,
        };
        Ok(Answer {
            release,
            residual: answer.residual,
        })
    }

    /// Computes an answer with the noise that was charged, before rounding to the grid.
    // Privacy: the noise follows the distribution in the event that was charged, so the two cannot drift apart.
    fn perturbed_answer(
        &self,
        query: &Query,
        paid: Paid,
        plan: &AnswerPlan,
        warm_start: &mut WarmStart,
        rng: &mut ChaCha20Rng,
    ) -> Result<Solution, Unsolved> {
        let columns = self.passes.columns();
        let (objective_noise, output_noise) = match paid.event().ideal {
            IdealRelease::Exact => (None, None),
            IdealRelease::Objective { law, .. } => (Some(law), None),
            IdealRelease::Additive { law, .. } => (None, Some(law)),
        };
        // A linear term ⟨e, f⟩ in the objective adds e to the linear coefficient, and to the gradient.
        let mut linear = match query {
            Query::Minimise { linear, .. } => linear.clone(),
            _ => vec![0.0; columns],
        };
        if let Some(law) = objective_noise {
            add(&mut linear, &law.sample(columns, rng));
        }
        let mut answer = match query {
            Query::Minimise {
                quadratic, near, ..
            } => {
                let target = Target {
                    // Depends on the query and its noise, not on rows.
                    tolerance: self.problem.required_residual(&linear),
                    doubled: plan.doubled,
                };
                let objective = self.objective(*quadratic, &linear);
                solver::minimise(&objective, near, &target, warm_start)?
            }
            _ => {
                warm_start.set_passes(1);
                Solution {
                    point: self.sum(query, &linear, plan.doubled)?,
                    residual: 0.0,
                }
            }
        };
        if let Some(law) = output_noise {
            let width = answer.point.len();
            add(&mut answer.point, &law.sample(width, rng));
        }
        Ok(answer)
    }

    /// Computes the exact answer to a query that is answered in one pass over the rows.
    fn sum(&self, query: &Query, linear: &[f64], doubled: bool) -> Result<Vec<f64>, PassFailed> {
        let rows = self.passes;
        match query {
            Query::GradientSum { at, scale, metric } => {
                let place = GradientPlace {
                    at,
                    metric: metric.as_ref(),
                    doubled,
                };
                row_sums::gradient(rows, (self.problem.loss, *scale), place)
            }
            Query::GramSum { scale, .. } => row_sums::gram(rows, *scale),
            Query::RowSum { scale, .. } => row_sums::rows(rows, *scale),
            Query::Gradient { at: near } | Query::Minimise { near, .. } => {
                self.objective(0.0, linear).gradient(near, doubled)
            }
        }
    }

    /// Returns `O(f) + ⟨linear, f⟩ + (quadratic/2)‖f‖²`.
    pub(super) fn objective<'a>(&'a self, quadratic: f64, linear: &'a [f64]) -> Objective<'a> {
        let rows = (self.passes, self.problem.weight);
        let modulus = self.problem.share() + quadratic;
        Objective::of_party(rows, self.problem.loss, modulus, linear)
    }
}

fn add(sum: &mut [f64], addend: &[f64]) {
    for (sum, addend) in sum.iter_mut().zip(addend) {
        *sum += addend;
    }
}
