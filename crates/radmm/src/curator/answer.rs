//! Answers: where noise enters, and how an answer gets onto the grid.
//!
//! ```text
//! objective   argmin O(f) + ⟨b + e, f⟩ + (a/2)‖f‖²
//! output      argmin O(f) + ⟨b, f⟩ + (a/2)‖f‖²  +  e
//! gradient    ∇O(f)  +  e
//! ```
//! The price of an answer is in `privacy::mechanism`. Answering consumes the proof of payment, and the noise is drawn from the
//! distribution in the event that was charged.

#[cfg(test)]
mod tests;

use rand_chacha::ChaCha20Rng;
use thiserror::Error;

use super::error_model::{ErrorModel, NoisePlacement};
use super::grid::{GridRounding, TooCoarse};
use super::rows::shard::Shard;
use super::solver::objective::Objective;
use super::solver::quasi_newton::WarmStart;
use super::solver::{self, NotCertified, Solution, Target};
use crate::exec::ChunkExecutor;
use crate::privacy::{IdealRelease, Paid, PrivacyEvent};
use crate::problem::Problem;
use crate::protocol::query::Query;
use crate::protocol::release::Release;

/// An answer that was paid for and cannot leave. With noise on the grid there is none.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum Unreleasable {
    /// The minimiser was not found to the accuracy that was asked for.
    #[error(transparent)]
    NotCertified(#[from] NotCertified),
    /// An answer without noise is not finite or beyond the grid.
    #[error(
        "the answer is too large to be released: the algorithm diverges; raise the penalty or the ridge"
    )]
    BeyondGrid,
}

/// Rows, and what is needed to ask them something.
pub(super) struct Rows<'a> {
    pub shard: &'a Shard,
    pub problem: &'a Problem,
    pub executor: &'a dyn ChunkExecutor,
}

/// How an answer is computed and written, decided from public facts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AnswerPlan {
    /// Whether margins are doubled.
    doubled: bool,
    /// `None` for an answer without noise.
    rounding: Option<GridRounding>,
}

/// The share of a mechanism's own noise that rounding may add to it before an answer is computed more exactly.
const VISIBLE: f64 = 1e-4;

impl AnswerPlan {
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
            if !model.certain(query) {
                return Err(TooCoarse);
            }
            let bound = model.error_bound(query, placement, &law);
            let rounding = GridRounding::new(&bound, columns, event.slack)?;
            // Both in one coordinate.
            let own = bound.reach / (columns as f64).sqrt();
            let plan = Self {
                doubled,
                rounding: Some(rounding),
            };
            Ok((plan, rounding.noise() <= VISIBLE * own))
        };
        match plan(false) {
            Ok((plain, true)) => Ok(plain),
            _ => plan(true).map(|(doubled, _)| doubled),
        }
    }
}

/// An answer, and what the simulator may know of it.
pub(super) struct Answer {
    pub release: Release,
    /// `‖∇F‖₂` where a minimiser was found.
    pub residual: f64,
}

impl Rows<'_> {
    /// Answers a question that was paid for: computes it, adds the noise that was charged, rounds it to the grid.
    pub(super) fn noisy_answer(
        &self,
        query: &Query,
        paid: Paid,
        plan: &AnswerPlan,
        warm_start: &mut WarmStart,
        rng: &mut ChaCha20Rng,
    ) -> Result<Answer, Unreleasable> {
        let answer = self.unrounded(query, paid, plan, warm_start, rng)?;
        let release = match plan.rounding {
            Some(rounding) => rounding.release(answer.point, rng),
            None => Release::rounded(&answer.point).ok_or(Unreleasable::BeyondGrid)?,
        };
        Ok(Answer {
            release,
            residual: answer.residual,
        })
    }

    /// Computes an answer with the noise that was charged.
    // Privacy: the noise follows the distribution in the event that was charged, so the two cannot drift apart.
    fn unrounded(
        &self,
        query: &Query,
        paid: Paid,
        plan: &AnswerPlan,
        warm_start: &mut WarmStart,
        rng: &mut ChaCha20Rng,
    ) -> Result<Solution, NotCertified> {
        let columns = self.shard.columns();
        let (in_objective, on_answer) = match paid.event().ideal {
            IdealRelease::Exact => (None, None),
            IdealRelease::Objective { law, .. } => (Some(law), None),
            IdealRelease::Additive { law, .. } => (None, Some(law)),
        };
        // A linear term ⟨e, f⟩ in the objective adds e to the linear coefficient, and to the gradient.
        let mut linear = match query {
            Query::Minimise { linear, .. } => linear.clone(),
            Query::Gradient { .. } => vec![0.0; columns],
        };
        if let Some(law) = in_objective {
            add(&mut linear, &law.sample(columns, rng));
        }
        let mut answer = match query {
            Query::Minimise {
                quadratic, near, ..
            } => {
                let target = Target {
                    // Depends on the question and its noise, not on rows.
                    tolerance: self.problem.residual(&linear),
                    doubled: plan.doubled,
                };
                let objective = self.objective(*quadratic, &linear);
                solver::minimise(&objective, near, &target, warm_start)?
            }
            Query::Gradient { at } => {
                warm_start.count(1);
                Solution {
                    point: self.objective(0.0, &linear).gradient(at, plan.doubled),
                    residual: 0.0,
                }
            }
        };
        if let Some(law) = on_answer {
            add(&mut answer.point, &law.sample(columns, rng));
        }
        Ok(answer)
    }

    fn objective<'a>(&'a self, quadratic: f64, linear: &'a [f64]) -> Objective<'a> {
        Objective {
            shards: vec![self.shard],
            loss: self.problem.loss,
            weight: self.problem.weight,
            modulus: self.problem.share() + quadratic,
            linear,
            executor: self.executor,
            stride: 1,
        }
    }
}

fn add(to: &mut [f64], what: &[f64]) {
    for (to, what) in to.iter_mut().zip(what) {
        *to += what;
    }
}
