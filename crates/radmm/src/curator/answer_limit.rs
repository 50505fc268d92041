//! The values that an honest curator can answer, from public facts: for those who receive an answer and do not trust its sender.
//!
//! With `m = ρ/N + a`, rows of norm at most one, slopes of at most `s`, and `r` a length that the noise exceeds with a probability
//! below `e^−47` ([`NoiseDistribution::reach`](crate::privacy::NoiseDistribution)):
//!
//! ```text
//! minimiser     ‖z + b/m‖ ≤ (sC + r)/m                             noise in the objective
//!               ‖z + b/m‖ ≤ (r + √(r² + 2mC·L(−‖b‖/m)))/m
//!               the same with r = 0, and r on top                  noise on the answer
//! gradient      ‖g − (ρ/N)f‖ ≤ sC + r
//! sums          ‖g‖ ≤ scale·sB + r,   scale·B + r                  of gradients; of rows and of their products
//! ```
//! An honest Gram matrix is `G + E` with `G` positive semidefinite of trace at most `scale·B`. With Gaussian noise of deviation `σ`
//! the trace of `E` is within `9.8·σ√d` and its eigenvalues are above `−σ(√(2d) + 9.8)`, but for a probability below `e^−47` each.
//!
//! The proofs are in docs/privacy.md. The error of the computed answer and the noise of the grid come on top. Everything here
//! rounds outwards, so that no honest party is accused.

use thiserror::Error;

use super::answer::AnswerPlan;
use super::error_model::{ErrorModel, NoisePlacement};
use crate::linalg::cholesky::Cholesky;
use crate::linalg::dot::norm;
use crate::privacy::{IdealRelease, Mechanism, NoiseDistribution};
use crate::problem::Problem;
use crate::protocol::query::{Query, gram_width};
use crate::protocol::release::SPACING;

/// The multiple of its deviation that a normal number exceeds with a probability below `e^−47`.
const NORMAL_REACH: f64 = 9.8;

/// The factor by which limits are widened: for the roundings of this arithmetic, and of rows to norm one.
const WIDENED: f64 = 1.001;

/// The limit of what an honest curator can answer to a query, or of a sum of such answers.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerLimit {
    /// The point around which honest answers lie.
    centre: Vec<f64>,
    /// The largest distance of an honest answer from it.
    radius: f64,
    /// The limits of a Gram matrix with Gaussian noise.
    gram: Option<GramLimit>,
}

/// The limits of a Gram matrix with Gaussian noise.
#[derive(Clone, Copy, Debug, PartialEq)]
struct GramLimit {
    columns: usize,
    /// The largest trace without noise.
    trace: f64,
    /// The largest size of the noise's trace.
    trace_noise: f64,
    /// The largest size of a negative eigenvalue.
    eigenvalue: f64,
}

/// The limit that a value exceeds.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum BeyondLimit {
    /// The value is too far from the point around which honest answers lie.
    #[error(
        "it lies {found:.4e} from the point around which honest answers lie, and an honest one at most {largest:.4e}"
    )]
    Distance {
        /// The distance.
        found: f64,
        /// The largest distance of an honest answer.
        largest: f64,
    },
    /// The trace of a Gram matrix is too small or too large.
    #[error("its trace is {found:.4e}, and an honest one is from {least:.4e} to {largest:.4e}")]
    Trace {
        /// The trace.
        found: f64,
        /// The least trace of an honest answer.
        least: f64,
        /// The largest trace of an honest answer.
        largest: f64,
    },
    /// A Gram matrix has too small an eigenvalue.
    #[error("it has an eigenvalue below {least:.4e}, and an honest Gram matrix has none")]
    Eigenvalue {
        /// The least eigenvalue of an honest answer.
        least: f64,
    },
}

impl AnswerLimit {
    /// Returns the limit of an honest answer of a party with `rows` rows of `columns` columns; `None` if an honest party does not
    /// answer.
    pub fn new(
        query: &Query,
        mechanism: &Mechanism,
        problem: &Problem,
        (rows, columns): (usize, usize),
    ) -> Option<Self> {
        let event = mechanism.price(query, problem, rows).ok()?;
        let plan = AnswerPlan::new(query, &event, problem, (rows, columns)).ok()?;
        let width = query.width(columns);
        let (in_objective, on_answer) = match event.ideal {
            IdealRelease::Exact => (0.0, 0.0),
            IdealRelease::Objective { law, .. } => (law.reach(width), 0.0),
            IdealRelease::Additive { law, .. } => (0.0, law.reach(width)),
        };
        let (centre, reach) = exact_answers(query, problem, (rows, columns), in_objective);
        let ideal = reach + on_answer;
        let blur = match plan.grid_noise() {
            // The distance of the computed answer is `slack` times the scale of the grid's noise at most.
            Some(scale) => {
                let grid = NoiseDistribution::laplace(1.0 / scale).reach(width);
                grid + event.slack * scale
            }
            None => {
                let model = ErrorModel {
                    problem,
                    rows,
                    columns,
                    doubled: false,
                };
                let none = NoiseDistribution::gaussian(0.0);
                let bound = model.error_bound(query, NoisePlacement::Answer, &none);
                bound.absolute + bound.relative * bound.radius
            }
        };
        let rounding = 2.0 * (width as f64).sqrt() * SPACING;
        let gram = match (query, event.ideal) {
            (
                Query::GramSum { scale, .. },
                IdealRelease::Additive {
                    law: NoiseDistribution::Gaussian { sigma },
                    ..
                },
            ) => {
                let d = columns as f64;
                Some(GramLimit {
                    columns,
                    trace: WIDENED * scale * rows as f64,
                    trace_noise: WIDENED * d.sqrt() * (NORMAL_REACH * sigma + blur + rounding),
                    eigenvalue: WIDENED
                        * (sigma * ((2.0 * d).sqrt() + NORMAL_REACH) + blur + rounding),
                })
            }
            _ => None,
        };
        Some(Self {
            centre,
            radius: WIDENED * (ideal + blur) + rounding,
            gram,
        })
    }

    /// Returns the limit of the sum of an answer within this limit and one within another.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (sum, addend) in self.centre.iter_mut().zip(&other.centre) {
            *sum += addend;
        }
        self.radius += other.radius;
        self.gram = match (self.gram, other.gram) {
            (Some(one), Some(other)) => Some(GramLimit {
                columns: one.columns,
                trace: one.trace + other.trace,
                trace_noise: one.trace_noise + other.trace_noise,
                eigenvalue: one.eigenvalue + other.eigenvalue,
            }),
            _ => None,
        };
        self
    }

    /// Returns the largest distance of an honest answer from the point around which honest answers lie.
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// Checks an answer that is known up to an error of length `error`.
    pub fn check(&self, answer: &[f64], error: f64) -> Result<(), BeyondLimit> {
        let apart = answer.iter().zip(&self.centre);
        let apart: Vec<f64> = apart.map(|(answer, centre)| answer - centre).collect();
        let (found, largest) = (norm(&apart), self.radius + WIDENED * error);
        // Written so that a NaN is beyond the limit.
        let is_near = found <= largest;
        if !is_near {
            return Err(BeyondLimit::Distance { found, largest });
        }
        self.gram.map_or(Ok(()), |gram| gram.check(answer))
    }
}

impl GramLimit {
    fn check(&self, packed: &[f64]) -> Result<(), BeyondLimit> {
        let d = self.columns;
        let found: f64 = (1..=d).map(|a| packed[gram_width(a) - 1]).sum();
        let (least, largest) = (-self.trace_noise, self.trace + self.trace_noise);
        if !(least..=largest).contains(&found) {
            return Err(BeyondLimit::Trace {
                found,
                least,
                largest,
            });
        }
        let mut matrix = vec![0.0; d * d];
        let mut entries = packed.iter();
        for (a, row) in matrix.chunks_exact_mut(d).enumerate() {
            for (entry, packed) in row[..=a].iter_mut().zip(&mut entries) {
                *entry = packed / std::f64::consts::SQRT_2;
            }
            row[a] *= std::f64::consts::SQRT_2;
        }
        // Beyond the roundings of a factorisation, which are relative to the trace.
        let shift = self.eigenvalue + 1e-9 * (self.trace + self.trace_noise);
        match Cholesky::new(&matrix, d, shift) {
            Some(_) => Ok(()),
            None => Err(BeyondLimit::Eigenvalue { least: -shift }),
        }
    }
}

/// Returns the centre and the radius of a ball that holds the exact answer to a query, whatever the rows are, with noise of at most
/// this length in the objective.
fn exact_answers(
    query: &Query,
    problem: &Problem,
    (rows, columns): (usize, usize),
    noise: f64,
) -> (Vec<f64>, f64) {
    let (weight, slope) = (problem.weight, problem.loss.largest_slope());
    match query {
        Query::Minimise {
            quadratic, linear, ..
        } => {
            let m = problem.share() + quadratic;
            let centre: Vec<f64> = linear.iter().map(|b| -b / m).collect();
            let by_slope = slope * weight + noise;
            let at_centre = weight * problem.loss.value(-norm(&centre));
            let by_value = noise + (noise * noise + 2.0 * m * at_centre).sqrt();
            (centre, by_slope.min(by_value) / m)
        }
        Query::Gradient { at } => {
            let share = problem.share();
            (at.iter().map(|f| share * f).collect(), slope * weight)
        }
        Query::GradientSum { scale, .. } => (vec![0.0; columns], slope * scale * rows as f64),
        Query::RowSum { scale, .. } | Query::GramSum { scale, .. } => {
            (vec![0.0; query.width(columns)], scale * rows as f64)
        }
    }
}

#[cfg(test)]
mod tests;
