//! Mechanisms: where noise enters an answer, and what the answer then costs.
//!
//! ```text
//! objective   argmin O(f) + ⟨b + e, f⟩ + (a/2)‖f‖²      S = 2C/B, x = C·c₁/(B·m)
//! output      argmin O(f) + ⟨b, f⟩ + (a/2)‖f‖²  +  e     sensitivity S/m
//! gradient    ∇O(f)  +  e                               sensitivity S
//!             c·Σ_n L'(fᵀz_n) z_n  +  e                  sensitivity 2c·s_max, in a metric too
//!             c·Σ_n x_n x_nᵀ  +  e                       sensitivity √2·c
//!             c·Σ_n x_n  +  e                            sensitivity 2c
//! ```
//! with `m = ρ/N + a`, in ℓ₂. With Laplace noise sensitivities are in ℓ₁: `√k` times as large for what rows add up to, since a
//! row of `k` non-zeros has `‖x‖₁ ≤ √k‖x‖₂`, and `√d` times for the output, since minimisers are dense.
//!
//! What a step does and what it costs stand side by side here: [`Mechanism::price`] uses public facts alone and runs before a row is read, `Rows::answer` consumes the proof of payment. What finite precision does to an answer
//! is part of the price: see `grid`.

use serde::Serialize;
use thiserror::Error;

use super::event::{IdealRelease, PrivacyEvent};
use super::noise_distribution::{NoiseDistribution, NoiseFamily};
use super::up;
use crate::problem::{Problem, RowShape};
use crate::protocol::query::Query;

/// The sensitivity of a sum of `x xᵀ`, with off-diagonal entries counted `√2` times: `√2`, and room for rounding.
// Privacy: ‖xxᵀ − x′x′ᵀ‖² = ‖x‖⁴ + ‖x′‖⁴ − 2(xᵀx′)² ≤ 2. Each product is rounded by at most half of 2⁻²⁴ (`gram_unit`, for the
// most rows), so each matrix by at most 1000·2⁻²⁵ in the Frobenius norm, for the most columns: 2·1000·2⁻²⁵ < √2·2⁻¹⁴.
const GRAM_SENSITIVITY: f64 = std::f64::consts::SQRT_2 * (1.0 + 1.0 / 8192.0);

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
    /// Rows in a metric are dense, which is where Laplace noise is at its worst.
    #[error(
        "Laplace noise is for sparse rows, and rows in a metric are dense: use gamma noise, or no metric"
    )]
    DenseRows,
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
        let of_rows = |law: NoiseDistribution, sensitivity| {
            in_norm_of(law.family(), sensitivity, problem, RowShape::max_nonzeros)
        };
        let of_dense = |law: NoiseDistribution, sensitivity| {
            in_norm_of(law.family(), sensitivity, problem, RowShape::columns)
        };
        match (*self, query) {
            (Self::None, _) => Ok(IdealRelease::Exact),
            (Self::Objective { law, scale }, Query::Minimise { quadratic, .. }) => {
                let curvature = up(problem.weight * problem.loss.curvature());
                let below = (rows as f64 * problem.modulus(*quadratic)).next_down();
                Ok(IdealRelease::Objective {
                    sensitivity: of_rows(law, sensitivity)?,
                    spread: up(curvature / below),
                    curve: problem.loss.slope_curve(),
                    law: Self::linear_term(law, scale, *quadratic)?,
                })
            }
            (Self::Output { law }, Query::Minimise { quadratic, .. }) => {
                let sensitivity = up(sensitivity / problem.modulus(*quadratic));
                Ok(IdealRelease::Additive {
                    // However sparse rows are.
                    sensitivity: of_dense(law, sensitivity)?,
                    law,
                })
            }
            (Self::Gradient { law }, Query::Gradient { .. }) => Ok(IdealRelease::Additive {
                sensitivity: of_rows(law, sensitivity)?,
                law,
            }),
            (
                Self::Gradient {
                    law: NoiseDistribution::Laplace { .. },
                },
                Query::GramSum { .. }
                | Query::GradientSum {
                    metric: Some(_), ..
                },
            ) => Err(Unanswerable::DenseRows),
            // Privacy: every row adds a vector of norm s_max at most, in a metric too, where rows have norm one.
            (Self::Gradient { law }, Query::GradientSum { scale, .. }) => {
                let sensitivity = up(2.0 * problem.loss.largest_slope() * scale);
                Ok(IdealRelease::Additive {
                    sensitivity: of_rows(law, sensitivity)?,
                    law,
                })
            }
            (Self::Gradient { law }, Query::GramSum { scale, noise }) => {
                Ok(IdealRelease::Additive {
                    sensitivity: up(GRAM_SENSITIVITY * scale),
                    law: law.scaled(*noise),
                })
            }
            (Self::Gradient { law }, Query::RowSum { scale, noise }) => {
                Ok(IdealRelease::Additive {
                    sensitivity: of_rows(law, 2.0 * scale)?,
                    law: law.scaled(*noise),
                })
            }
            (Self::Objective { .. } | Self::Output { .. }, _) => Err(Unanswerable::Mismatch {
                mechanism: self.name(),
                question: "gradients or sums",
            }),
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
