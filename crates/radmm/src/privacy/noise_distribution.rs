//! The distributions of noise vectors.
//!
//! ```text
//! gamma      density ∝ exp(−α‖e‖₂):  ‖e‖ ~ Gamma(shape d, scale 1/α), direction uniform on the sphere
//! gaussian   e ~ N(0, σ²I)
//! ```

use serde::{Deserialize, Serialize};

/// The distribution of a noise vector `e`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "noise", rename_all = "kebab-case")]
pub enum NoiseDistribution {
    /// Density ∝ exp(−rate·‖e‖₂).
    Gamma {
        /// `α`.
        rate: f64,
    },
    /// Independent N(0, sigma²) in every coordinate.
    Gaussian {
        /// `σ`.
        sigma: f64,
    },
}

/// The family of a [`NoiseDistribution`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseFamily {
    /// Density ∝ exp(−rate·‖e‖₂).
    Gamma,
    /// Independent normal coordinates.
    Gaussian,
}

impl NoiseFamily {
    /// Returns the name as studies have it: `gamma` or `gaussian`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gamma => "gamma",
            Self::Gaussian => "gaussian",
        }
    }

    /// Returns whether noise of this family gives pure privacy, `δ = 0`.
    pub fn is_pure(self) -> bool {
        match self {
            Self::Gamma => true,
            Self::Gaussian => false,
        }
    }

    /// Returns the symbol of the amount: `rate` or `σ`.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Gamma => "rate",
            Self::Gaussian => "σ",
        }
    }

    /// Returns the distribution of this family with a rate or a sigma.
    pub fn with_amount(self, amount: f64) -> NoiseDistribution {
        match self {
            Self::Gamma => NoiseDistribution::gamma(amount),
            Self::Gaussian => NoiseDistribution::gaussian(amount),
        }
    }
}

impl NoiseDistribution {
    /// Returns gamma noise of rate `α`.
    pub fn gamma(rate: f64) -> Self {
        Self::Gamma { rate }
    }

    /// Returns Gaussian noise of standard deviation `σ`.
    pub fn gaussian(sigma: f64) -> Self {
        Self::Gaussian { sigma }
    }

    /// Returns the family.
    pub fn family(&self) -> NoiseFamily {
        match self {
            Self::Gamma { .. } => NoiseFamily::Gamma,
            Self::Gaussian { .. } => NoiseFamily::Gaussian,
        }
    }

    /// Returns `α` or `σ`.
    pub fn amount(&self) -> f64 {
        match *self {
            Self::Gamma { rate } => rate,
            Self::Gaussian { sigma } => sigma,
        }
    }

    /// Returns the standard deviation of a coordinate of a vector of `columns` coordinates.
    pub fn deviation(&self, columns: usize) -> f64 {
        match *self {
            // E‖e‖² = d(d + 1)/α², spread evenly over d coordinates.
            Self::Gamma { rate } => (columns as f64 + 1.0).sqrt() / rate,
            Self::Gaussian { sigma } => sigma,
        }
    }

    /// Returns a length that noise in `columns` coordinates exceeds with probability below `e^−47` (Chernoff).
    pub(crate) fn reach(&self, columns: usize) -> f64 {
        let columns = columns as f64;
        match *self {
            Self::Gamma { rate } => (2.0 * columns + 60.0) / rate,
            Self::Gaussian { sigma } => sigma * (columns.sqrt() + 11.0),
        }
    }

    /// Returns `α` or `−σ`, so that the sign tells the families apart.
    pub(crate) fn parameter(&self) -> f64 {
        match *self {
            Self::Gamma { rate } => rate,
            Self::Gaussian { sigma } => -sigma,
        }
    }

    /// Returns how many times as large this noise is as another of its family; `None` for another family.
    pub fn size_ratio(&self, other: &Self) -> Option<f64> {
        match (*self, *other) {
            (Self::Gamma { rate }, Self::Gamma { rate: other }) => Some(other / rate),
            (Self::Gaussian { sigma }, Self::Gaussian { sigma: other }) => Some(sigma / other),
            _ => None,
        }
    }

    /// Returns the distribution of `factor·e`: a smaller rate, a larger sigma.
    pub fn scaled(&self, factor: f64) -> Self {
        match *self {
            Self::Gamma { rate } => Self::Gamma {
                rate: rate / factor,
            },
            Self::Gaussian { sigma } => Self::Gaussian {
                sigma: sigma * factor,
            },
        }
    }
}
