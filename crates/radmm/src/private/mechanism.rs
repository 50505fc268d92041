//! Mechanisms: where noise enters an answer, and what the answer then costs.
//!
//! ```text
//! objective   argmin O(f) + ⟨b + e, f⟩ + (a/2)‖f‖²      S = 2C/B, x = C·c₁/(B·m)
//! output      argmin O(f) + ⟨b, f⟩ + (a/2)‖f‖²  +  e     sensitivity S/m
//! gradient    ∇O(f)  +  e                               sensitivity S
//! ```
//! with `m = ρ/N + a`. What a step does and what it costs stand side by side here: [`Mechanism::price`] uses public facts
//! alone and runs before a row is read, `Rows::answer` consumes the proof of payment. What finite precision does to an answer
//! is part of the price: see `grid`.

#[cfg(test)]
mod tests;

use rand_chacha::ChaCha20Rng;
use serde::Serialize;
use thiserror::Error;

use super::accuracy::{Entry, Facts};
use super::chunk::BLOCK;
use super::grid::{Rounding, TooCoarse};
use super::hands::Hands;
use super::loss::Loss;
use super::noise::Law;
use super::search::Memory;
use super::shard::Shard;
use super::solve::{self, Aim, NotCertified, Objective, Solution};
use crate::account::{Event, Ideal, Paid, up};
use crate::public::release::{Precision, Query, Release};

/// Whether noise grows with the penalty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// `e` as drawn.
    Fixed,
    /// `a·e`, with `a` the quadratic coefficient of the question (`2ηV` in ADMM): penalty perturbation.
    Penalty,
}

/// How a curator's answers are protected.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "mechanism", rename_all = "kebab-case")]
pub enum Mechanism {
    /// Not at all.
    None,
    /// A random linear term in the objective (dual variable perturbation and its kin).
    Objective {
        /// Of the linear term.
        #[serde(flatten)]
        law: Law,
        /// Fixed, or growing with the penalty.
        scale: Scaling,
    },
    /// Noise on the exact minimiser (primal variable perturbation).
    Output {
        /// Of the noise.
        #[serde(flatten)]
        law: Law,
    },
    /// Noise on the exact gradient.
    Gradient {
        /// Of the noise.
        #[serde(flatten)]
        law: Law,
    },
}

/// The problem that all parties agree on: `O_i(f) = (C/B_i) Σ_n L(fᵀz_n) + (ρ/N)·½‖f‖²`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// `L`.
    pub loss: Loss,
    /// `C > 0`.
    pub weight: f64,
    /// `ρ > 0`.
    pub ridge: f64,
    /// `N`.
    pub nodes: u32,
    /// `τ > 0`, the gradient norm at which a minimiser counts as found.
    pub tolerance: f64,
    /// How answers are written.
    pub precision: Precision,
}

impl Problem {
    /// `ρ/N`.
    pub(super) fn share(&self) -> f64 {
        self.ridge / f64::from(self.nodes)
    }

    /// `M = C·c₁ + ρ/N`, a Lipschitz constant of every party's gradient, since rows have norm at most one; rounded up.
    pub fn lipschitz(&self) -> f64 {
        ((self.weight * self.loss.curvature()).next_up() + self.share().next_up()).next_up()
    }

    /// The least `τ` that makes sense: double precision does not reach less for the plainest question.
    pub fn least_tolerance(&self) -> f64 {
        2.0 * f64::EPSILON * self.slopes()
    }

    /// A gradient norm that the solver can get below for a question with a linear term of this norm, whatever the rows are:
    /// more than four times what rounding can make of a gradient at doubled margins (see `accuracy`), `m‖f‖` being at
    /// most `C + ‖b‖` near the minimum.
    pub(super) fn floor(&self, linear: f64) -> f64 {
        f64::EPSILON * (96.0 * self.slopes() + 2.25 * self.sums() + 128.0 * linear)
    }

    /// The residual to which a question with this linear term is certified: `τ`, or what double precision can reach.
    pub(super) fn residual(&self, linear: &[f64]) -> f64 {
        self.tolerance.max(self.floor(solve::norm(linear)))
    }

    /// How large the coefficients of a question may be: a thousand thousands of what rows can answer.
    pub(super) fn largest(&self) -> f64 {
        1e6 * (1.0 + self.slopes())
    }

    /// The size of the rows' gradient, and of what rounding makes of it.
    pub(super) fn slopes(&self) -> f64 {
        self.weight * (1.0 + self.loss.curvature())
    }

    /// What plain sums within a block of rows can lose, in units of rounding.
    pub(super) fn sums(&self) -> f64 {
        BLOCK as f64 * self.weight
    }

    /// `S = 2C/B`.
    fn sensitivity(&self, rows: usize) -> f64 {
        up(2.0 * self.weight / rows as f64)
    }

    /// `m = ρ/N + a`, rounded down, since it stands below fraction bars.
    fn modulus(&self, quadratic: f64) -> f64 {
        (self.share().next_down() + quadratic).next_down()
    }
}

/// An answer that was paid for and cannot leave. With noise on the grid there is none.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum Unreleasable {
    /// The minimiser was not found to the accuracy that was asked for.
    #[error(transparent)]
    NotCertified(#[from] NotCertified),
    /// An answer without noise, or without a grid, that is not finite or beyond the grid.
    #[error(
        "the answer is too large to be released: the algorithm diverges; raise the penalty or the ridge"
    )]
    BeyondGrid,
}

/// A question that a mechanism has no answer to.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unanswerable {
    /// Objective and output perturbation protect minimisers, gradient perturbation gradients.
    #[error("{mechanism} perturbation does not protect {question}")]
    Mismatch {
        /// What the party uses.
        mechanism: &'static str,
        /// What the algorithm asked for.
        question: &'static str,
    },
    /// Noise in proportion to a penalty of zero is no noise.
    #[error("noise that grows with the penalty needs a penalty, and this question has none")]
    NoPenalty,
}

impl Mechanism {
    /// What an answer will cost, from public facts: before a row is read, and whether or not it is then given.
    pub fn price(
        &self,
        query: &Query,
        problem: &Problem,
        rows: usize,
    ) -> Result<Event, Unanswerable> {
        let ideal = self.ideal(query, problem, rows)?;
        Ok(match problem.precision {
            Precision::Grid => Event::on_grid(ideal),
            Precision::Float => Event::in_doubles(ideal),
        })
    }

    fn ideal(&self, query: &Query, problem: &Problem, rows: usize) -> Result<Ideal, Unanswerable> {
        let sensitivity = problem.sensitivity(rows);
        match (*self, query) {
            (Self::None, _) => Ok(Ideal::Exact),
            (Self::Objective { law, scale }, Query::Minimise { quadratic, .. }) => {
                let curvature = up(problem.weight * problem.loss.curvature());
                let below = (rows as f64 * problem.modulus(*quadratic)).next_down();
                Ok(Ideal::Objective {
                    sensitivity,
                    spread: up(curvature / below),
                    one_signed: problem.loss.one_signed_slope(),
                    law: Self::linear_term(law, scale, *quadratic)?,
                })
            }
            (Self::Output { law }, Query::Minimise { quadratic, .. }) => Ok(Ideal::Additive {
                sensitivity: up(sensitivity / problem.modulus(*quadratic)),
                law,
            }),
            (Self::Gradient { law }, Query::Gradient { .. }) => {
                Ok(Ideal::Additive { sensitivity, law })
            }
            (Self::Objective { .. } | Self::Output { .. }, Query::Gradient { .. }) => {
                Err(Unanswerable::Mismatch {
                    mechanism: self.name(),
                    question: "gradients",
                })
            }
            (Self::Gradient { .. }, Query::Minimise { .. }) => Err(Unanswerable::Mismatch {
                mechanism: self.name(),
                question: "minimisers",
            }),
        }
    }

    /// The law of `e` in `⟨b + e, f⟩`.
    fn linear_term(law: Law, scale: Scaling, quadratic: f64) -> Result<Law, Unanswerable> {
        match scale {
            Scaling::Fixed => Ok(law),
            Scaling::Penalty if quadratic > 0.0 => Ok(law.scaled(quadratic)),
            Scaling::Penalty => Err(Unanswerable::NoPenalty),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::None => "no",
            Self::Objective { .. } => "objective",
            Self::Output { .. } => "output",
            Self::Gradient { .. } => "gradient",
        }
    }
}

/// Rows, and what is needed to ask them something.
pub(super) struct Rows<'a> {
    pub shard: &'a Shard,
    pub problem: &'a Problem,
    pub hands: &'a dyn Hands,
}

/// How an answer is computed and written, decided from public facts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Manner {
    /// Whether margins are doubled.
    doubled: bool,
    /// `None` for an answer without noise, and for one in doubles.
    rounding: Option<Rounding>,
}

/// The share of a mechanism's own noise that rounding may add to it before an answer is computed more exactly.
const VISIBLE: f64 = 1e-4;

impl Manner {
    // Privacy: nothing here depends on rows. It runs before one is read.
    pub(super) fn new(
        query: &Query,
        event: &Event,
        problem: &Problem,
        (rows, columns): (usize, usize),
    ) -> Result<Self, TooCoarse> {
        let (entry, law) = match (event.ideal, problem.precision) {
            (Ideal::Objective { law, .. }, Precision::Grid) => (Entry::Objective, law),
            (Ideal::Additive { law, .. }, Precision::Grid) => (Entry::Answer, law),
            (Ideal::Exact, _) | (_, Precision::Float) => {
                return Ok(Self {
                    doubled: false,
                    rounding: None,
                });
            }
        };
        let manner = |doubled: bool| {
            let facts = Facts {
                problem,
                rows,
                columns,
                doubled,
            };
            if !facts.certain(query) {
                return Err(TooCoarse);
            }
            let accuracy = facts.accuracy(query, entry, &law);
            let rounding = Rounding::new(&accuracy, columns, event.slack)?;
            // Both in one coordinate.
            let own = accuracy.reach / (columns as f64).sqrt();
            let manner = Self {
                doubled,
                rounding: Some(rounding),
            };
            Ok((manner, rounding.noise() <= VISIBLE * own))
        };
        match manner(false) {
            Ok((plain, true)) => Ok(plain),
            _ => manner(true).map(|(doubled, _)| doubled),
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
    /// Answers a question that was paid for.
    // Privacy: the noise follows the law in the event that was charged, so the two cannot drift apart.
    pub(super) fn answer(
        &self,
        query: &Query,
        paid: Paid,
        manner: &Manner,
        memory: &mut Memory,
        rng: &mut ChaCha20Rng,
    ) -> Result<Answer, Unreleasable> {
        let columns = self.shard.columns();
        let (in_objective, on_answer) = match paid.event().ideal {
            Ideal::Exact => (None, None),
            Ideal::Objective { law, .. } => (Some(law), None),
            Ideal::Additive { law, .. } => (None, Some(law)),
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
                let aim = Aim {
                    // Depends on the question and its noise, not on rows.
                    tolerance: self.problem.residual(&linear),
                    doubled: manner.doubled,
                };
                solve::minimise(&self.objective(*quadratic, &linear), near, &aim, memory)?
            }
            Query::Gradient { at } => {
                memory.count(1);
                Solution {
                    point: self.objective(0.0, &linear).gradient(at, manner.doubled),
                    residual: 0.0,
                }
            }
        };
        if let Some(law) = on_answer {
            add(&mut answer.point, &law.sample(columns, rng));
        }
        let release = match manner.rounding {
            Some(rounding) => rounding.release(answer.point, rng),
            None => {
                Release::of(answer.point, self.problem.precision).ok_or(Unreleasable::BeyondGrid)?
            }
        };
        Ok(Answer {
            release,
            residual: answer.residual,
        })
    }

    fn objective<'a>(&'a self, quadratic: f64, linear: &'a [f64]) -> Objective<'a> {
        Objective {
            shards: vec![self.shard],
            loss: self.problem.loss,
            weight: self.problem.weight,
            modulus: self.problem.share() + quadratic,
            linear,
            hands: self.hands,
            stride: 1,
        }
    }
}

fn add(to: &mut [f64], what: &[f64]) {
    for (to, what) in to.iter_mut().zip(what) {
        *to += what;
    }
}
