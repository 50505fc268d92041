//! Mechanisms: where noise enters an answer, and what the answer then costs.
//!
//! ```text
//! objective   argmin O(f) + ⟨b + e, f⟩ + (a/2)‖f‖²      S = 2C/B, x = C·c₁/(B·m)
//! output      argmin O(f) + ⟨b, f⟩ + (a/2)‖f‖²  +  e     sensitivity S/m
//! gradient    ∇O(f)  +  e                               sensitivity S
//! ```
//! with `m = ρ/N + a`, in ℓ₂. With Laplace noise sensitivities are in ℓ₁: `√k` times as large for objective and gradient, since a
//! row of `k` non-zeros has `‖x‖₁ ≤ √k‖x‖₂`, and `√d` times for the output, since minimisers are dense. What a step does and what it costs stand side by side here: [`Mechanism::price`] uses public facts
//! alone and runs before a row is read, `Rows::answer` consumes the proof of payment. What finite precision does to an answer
//! is part of the price: see `grid`.

use serde::Serialize;
use thiserror::Error;

use super::event::{IdealRelease, PrivacyEvent};
use super::noise_distribution::{NoiseDistribution, NoiseFamily};
use super::up;
use crate::problem::{Problem, RowShape};
use crate::protocol::query::Query;

/// The scaling of noise with the penalty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseScaling {
    /// `e` as drawn.
    Fixed,
    /// `a·e`, with `a` the quadratic coefficient of the question (`2ηV` in ADMM): penalty perturbation.
    Penalty,
}

/// The place where noise enters an answer, and its distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "mechanism", rename_all = "kebab-case")]
pub enum Mechanism {
    /// Answers without noise.
    None,
    /// A random linear term in the objective (dual variable perturbation and its kin).
    Objective {
        /// The distribution of the linear term.
        #[serde(flatten)]
        law: NoiseDistribution,
        /// Fixed, or growing with the penalty.
        scale: NoiseScaling,
    },
    /// Noise on the exact minimiser (primal variable perturbation).
    Output {
        /// The distribution of the noise.
        #[serde(flatten)]
        law: NoiseDistribution,
    },
    /// Noise on the exact gradient.
    Gradient {
        /// The distribution of the noise.
        #[serde(flatten)]
        law: NoiseDistribution,
    },
}

/// A question that a mechanism cannot answer.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unanswerable {
    /// Objective and output perturbation protect minimisers only, gradient perturbation gradients only.
    #[error("{mechanism} perturbation does not protect {question}")]
    Mismatch {
        /// The party's mechanism.
        mechanism: &'static str,
        /// The kind of answer that the algorithm asked for.
        question: &'static str,
    },
    /// Noise in proportion to a penalty of zero would be no noise.
    #[error("noise that grows with the penalty needs a penalty, and this question has none")]
    NoPenalty,
    /// The price of Laplace noise depends on the numbers of columns and non-zeros.
    #[error(
        "Laplace noise is priced by the numbers of columns and of non-zeros of a row, which the problem does not give"
    )]
    UnknownShape,
}

impl Mechanism {
    /// Returns objective perturbation with this noise.
    pub fn objective(noise: NoiseDistribution) -> Self {
        Self::Objective {
            law: noise,
            scale: NoiseScaling::Fixed,
        }
    }

    /// Returns output perturbation with this noise.
    pub fn output(noise: NoiseDistribution) -> Self {
        Self::Output { law: noise }
    }

    /// Returns gradient perturbation with this noise.
    pub fn gradient(noise: NoiseDistribution) -> Self {
        Self::Gradient { law: noise }
    }

    /// Returns the distribution of the noise, if there is any.
    pub fn noise(&self) -> Option<NoiseDistribution> {
        match *self {
            Self::None => None,
            Self::Objective { law, .. } | Self::Output { law } | Self::Gradient { law } => {
                Some(law)
            }
        }
    }

    /// Returns the same mechanism with another distribution of its noise; without noise, itself.
    #[must_use]
    pub fn with_noise(self, noise: NoiseDistribution) -> Self {
        match self {
            Self::None => Self::None,
            Self::Objective { scale, .. } => Self::Objective { law: noise, scale },
            Self::Output { .. } => Self::output(noise),
            Self::Gradient { .. } => Self::gradient(noise),
        }
    }

    /// Prices an answer from public facts, before a row is read and whether or not it is then given.
    pub fn price(
        &self,
        query: &Query,
        problem: &Problem,
        rows: usize,
    ) -> Result<PrivacyEvent, Unanswerable> {
        Ok(PrivacyEvent::on_grid(self.ideal(query, problem, rows)?))
    }

    fn ideal(
        &self,
        query: &Query,
        problem: &Problem,
        rows: usize,
    ) -> Result<IdealRelease, Unanswerable> {
        let sensitivity = problem.sensitivity(rows);
        let of_rows = |law: NoiseDistribution| {
            in_norm_of(law.family(), sensitivity, problem, RowShape::max_nonzeros)
        };
        match (*self, query) {
            (Self::None, _) => Ok(IdealRelease::Exact),
            (Self::Objective { law, scale }, Query::Minimise { quadratic, .. }) => {
                let curvature = up(problem.weight * problem.loss.curvature());
                let below = (rows as f64 * problem.modulus(*quadratic)).next_down();
                Ok(IdealRelease::Objective {
                    sensitivity: of_rows(law)?,
                    spread: up(curvature / below),
                    one_signed: problem.loss.one_signed_slope(),
                    law: Self::linear_term(law, scale, *quadratic)?,
                })
            }
            (Self::Output { law }, Query::Minimise { quadratic, .. }) => {
                let sensitivity = up(sensitivity / problem.modulus(*quadratic));
                Ok(IdealRelease::Additive {
                    // Minimisers are dense, however sparse rows are.
                    sensitivity: in_norm_of(law.family(), sensitivity, problem, RowShape::columns)?,
                    law,
                })
            }
            (Self::Gradient { law }, Query::Gradient { .. }) => Ok(IdealRelease::Additive {
                sensitivity: of_rows(law)?,
                law,
            }),
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

    /// Returns the distribution of `e` in `⟨b + e, f⟩`.
    fn linear_term(
        law: NoiseDistribution,
        scale: NoiseScaling,
        quadratic: f64,
    ) -> Result<NoiseDistribution, Unanswerable> {
        match scale {
            NoiseScaling::Fixed => Ok(law),
            NoiseScaling::Penalty if quadratic > 0.0 => Ok(law.scaled(quadratic)),
            NoiseScaling::Penalty => Err(Unanswerable::NoPenalty),
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

/// Returns a sensitivity in the norm of the noise's density, rounded up, given that in ℓ₂ and the number of coordinates in which a
/// row shows.
// Privacy: one row of one party is replaced. By Cauchy–Schwarz ‖v‖₁ ≤ √n·‖v‖₂ for a vector of n non-zeros. The gradient moves by
// multiples of the two rows, each of which has k non-zeros at most; together they may have 2k, but ‖a − b‖₁ ≤ ‖a‖₁ + ‖b‖₁, and S is
// already the sum of the two lengths. The curator refuses rows that have more. A minimiser moves in all d coordinates.
fn in_norm_of(
    family: NoiseFamily,
    sensitivity: f64,
    problem: &Problem,
    coordinates: fn(&RowShape) -> u32,
) -> Result<f64, Unanswerable> {
    match family {
        NoiseFamily::Gamma | NoiseFamily::Gaussian => Ok(sensitivity),
        NoiseFamily::Laplace => {
            let shape = problem.shape.ok_or(Unanswerable::UnknownShape)?;
            Ok(up(sensitivity * up(f64::from(coordinates(&shape)).sqrt())))
        }
    }
}
