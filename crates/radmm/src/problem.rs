//! The problem that all parties agree on, and the point-wise losses on the margin `z = y·fᵀx`.
//!
//! ```text
//! logistic       L(z) = ln(1 + e^−z)                                 c₁ = 1/4
//! smooth hinge   L(z) = 0                                            z ≥ 1 + h
//!                       −u⁴/16h³ + 3u²/8h + u/2 + 3h/16,  u = 1 − z   |u| < h
//!                       1 − z                                        z ≤ 1 − h     c₁ = 3/4h
//! ```
//! The smooth hinge is twice continuously differentiable (Chaudhuri, Monteleoni and Sarwate 2011), which objective
//! perturbation needs. Both have `−1 ≤ L' ≤ 0` and `0 ≤ L'' ≤ c₁`.

use serde::Serialize;

use crate::privacy::up;

/// A convex loss of the margin with `|L'| ≤ 1`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "loss", rename_all = "kebab-case")]
pub enum Loss {
    /// `ln(1 + e^−z)`.
    Logistic,
    /// The hinge, rounded off over `1 ± width`.
    SmoothHinge {
        /// The half-width `h > 0` of the rounded part.
        width: f64,
    },
}

impl Loss {
    /// Returns `c₁`, an upper bound of `L''`.
    pub fn curvature(&self) -> f64 {
        match *self {
            Self::Logistic => 0.25,
            // Privacy: c₁ enters prices, so it rounds up.
            Self::SmoothHinge { width } => (0.75 / width).next_up(),
        }
    }

    /// Returns whether `L'` never changes sign, which allows the tighter bound for Gaussian noise.
    pub fn one_signed_slope(&self) -> bool {
        match self {
            Self::Logistic | Self::SmoothHinge { .. } => true,
        }
    }
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
}

impl Problem {
    /// Creates a problem for `nodes` parties with loss weight 1, ridge 1 and tolerance 10⁻⁸.
    pub fn new(loss: Loss, nodes: u32) -> Self {
        Self {
            loss,
            weight: 1.0,
            ridge: 1.0,
            nodes,
            tolerance: 1e-8,
        }
    }

    /// Sets the loss weight `C`.
    #[must_use]
    pub fn with_weight(self, weight: f64) -> Self {
        Self { weight, ..self }
    }

    /// Sets the ridge `ρ`.
    #[must_use]
    pub fn with_ridge(self, ridge: f64) -> Self {
        Self { ridge, ..self }
    }

    /// Sets the tolerance `τ`.
    #[must_use]
    pub fn with_tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Returns `ρ/N`.
    pub(crate) fn share(&self) -> f64 {
        self.ridge / f64::from(self.nodes)
    }

    /// Returns `M = C·c₁ + ρ/N`, a Lipschitz constant of every party's gradient (rows have norm at most one), rounded up.
    pub fn lipschitz(&self) -> f64 {
        ((self.weight * self.loss.curvature()).next_up() + self.share().next_up()).next_up()
    }

    /// Returns the least `τ` that double precision can reach for the simplest question.
    pub fn least_tolerance(&self) -> f64 {
        2.0 * f64::EPSILON * self.slopes()
    }

    /// Returns the scale of the rows' gradient and of its rounding error, `C(1 + c₁)`.
    pub(crate) fn slopes(&self) -> f64 {
        self.weight * (1.0 + self.loss.curvature())
    }

    /// Returns `S = 2C/B`, rounded up.
    pub(crate) fn sensitivity(&self, rows: usize) -> f64 {
        up(2.0 * self.weight / rows as f64)
    }

    /// Returns `m = ρ/N + a`, rounded down, since prices divide by it.
    pub(crate) fn modulus(&self, quadratic: f64) -> f64 {
        (self.share().next_down() + quadratic).next_down()
    }
}
