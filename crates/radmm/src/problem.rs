//! The problem that all parties agree on, and the point-wise losses on the margin `z = y·fᵀx`.
//!
//! ```text
//! logistic       L(z) = ln(1 + e^−z)                                 c₁ = 1/4
//! smooth hinge   L(z) = 0                                            z ≥ 1 + h
//!                       −u⁴/16h³ + 3u²/8h + u/2 + 3h/16,  u = 1 − z   |u| < h
//!                       1 − z                                        z ≤ 1 − h     c₁ = 3/4h
//! cut logistic   L(z) = ln(1 + e^−z)                                 z ≥ 0
//!                       ln 2 − z/2                                   z ≤ 0         c₁ = 1/4
//! ```
//! All have `−s_max ≤ L' ≤ 0` and `0 ≤ L'' ≤ c₁`, with `s_max = ½` for the cut logistic loss and 1 for the others. The smooth
//! hinge is twice continuously differentiable (Chaudhuri, Monteleoni and Sarwate 2011). The slope of the cut logistic loss is
//! continuous and has a kink at zero, which is enough for objective perturbation (docs/privacy.md).

use serde::Serialize;

use crate::privacy::{SlopeCurve, up};

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
    /// The logistic loss with its slope cut at one half: noise is paid for the largest slope, and few rows have it.
    CutLogistic,
}

impl Loss {
    /// Returns `c₁`, an upper bound of `L''`.
    pub fn curvature(&self) -> f64 {
        match *self {
            Self::Logistic | Self::CutLogistic => 0.25,
            // Privacy: c₁ enters prices, so it rounds up.
            Self::SmoothHinge { width } => (0.75 / width).next_up(),
        }
    }

    /// Returns `s_max`, an upper bound of `|L'|`.
    pub fn largest_slope(&self) -> f64 {
        match self {
            Self::Logistic | Self::SmoothHinge { .. } => 1.0,
            Self::CutLogistic => 0.5,
        }
    }

    /// Returns the probability of the positive class at a score `fᵀx`, if the loss has one: the `p` for which this score
    /// minimises the expected loss `p·L(s) + (1 − p)·L(−s)`.
    pub fn probability(&self, score: f64) -> Option<f64> {
        let slope = |z: f64| self.slope_and_curvature(z).0;
        match self {
            // 1/(1 + e^−s): L'(s) + L'(−s) is −1.
            Self::Logistic => Some(-slope(-score)),
            Self::CutLogistic => {
                let (near, far) = (slope(score), slope(-score));
                Some(far / (near + far))
            }
            Self::SmoothHinge { .. } => None,
        }
    }

    /// Returns the curvature that the loss can have at each slope, on which prices depend.
    pub fn slope_curve(&self) -> SlopeCurve {
        match self {
            Self::Logistic => SlopeCurve::Logistic,
            Self::SmoothHinge { .. } => SlopeCurve::SmoothHinge,
            // Its curvature is largest where its slope is.
            Self::CutLogistic => SlopeCurve::OneSigned,
        }
    }
}

/// The weights of the parties' rows in the common objective, `Σ_i O_i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowCount {
    /// Every row counts the same: `C_i = C·N·B_i/Σ_j B_j`. The optimum is that of one party with all rows.
    Rows,
    /// Every party counts the same, as in the paper: `C_i = C`. The rows of a small party weigh more.
    Parties,
}

impl RowCount {
    /// Returns `C_i` of a party with `rows` of `total` rows, among `parties` parties.
    ///
    /// Under [`Rows`](Self::Rows), `C_i/B_i` is the same for all parties, and so is the noise that a price asks for.
    pub fn weight(self, weight: f64, parties: u32, rows: usize, total: usize) -> f64 {
        match self {
            Self::Rows => weight * f64::from(parties) * (rows as f64 / total as f64),
            Self::Parties => weight,
        }
    }
}

/// The public shape of rows, on which the price of Laplace noise depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowShape {
    columns: u32,
    max_nonzeros: u32,
}

impl RowShape {
    /// Creates the shape of rows with this many columns, of which at most `max_nonzeros` are not zero in any row.
    pub fn new(columns: u32, max_nonzeros: u32) -> Self {
        Self {
            columns,
            max_nonzeros: max_nonzeros.min(columns),
        }
    }

    /// Creates the shape of rows in which every column may be filled.
    pub fn dense(columns: u32) -> Self {
        Self::new(columns, columns)
    }

    /// Returns `d`, the number of columns.
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// Returns `k`, the largest number of non-zeros of a row. A row with `‖x‖₂ ≤ 1` has `‖x‖₁ ≤ √k`.
    pub fn max_nonzeros(&self) -> u32 {
        self.max_nonzeros
    }
}

/// One party's objective: `O_i(f) = (C_i/B_i) Σ_n L(fᵀz_n) + (ρ/N)·½‖f‖²`. All parties agree on it, `C_i` included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// `L`.
    pub loss: Loss,
    /// `C_i > 0`, the weight of this party's rows together; see [`RowCount`].
    pub weight: f64,
    /// `ρ > 0`.
    pub ridge: f64,
    /// `N`.
    pub nodes: u32,
    /// `τ > 0`, the gradient norm at which a minimiser counts as found.
    pub tolerance: f64,
    /// The shape of rows, which a curator enforces. `None` stands for rows in which every column may be filled; prices of Laplace
    /// noise then need the curator, which knows the number of columns.
    pub shape: Option<RowShape>,
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
            shape: None,
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

    /// Sets the shape of rows.
    #[must_use]
    pub fn with_shape(self, shape: RowShape) -> Self {
        let shape = Some(shape);
        Self { shape, ..self }
    }

    /// Returns `ρ/N`.
    pub(crate) fn share(&self) -> f64 {
        self.ridge / f64::from(self.nodes)
    }

    /// Returns `M_i = C_i·c₁ + ρ/N`, a Lipschitz constant of the party's gradient (rows have norm at most one), rounded up.
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

    /// Returns `S = 2·s_max·C_i/B_i`, rounded up.
    pub(crate) fn sensitivity(&self, rows: usize) -> f64 {
        // Twice the largest slope is a power of two.
        up(2.0 * self.loss.largest_slope() * self.weight / rows as f64)
    }

    /// Returns `m = ρ/N + a`, rounded down, since prices divide by it.
    pub(crate) fn modulus(&self, quadratic: f64) -> f64 {
        (self.share().next_down() + quadratic).next_down()
    }
}
