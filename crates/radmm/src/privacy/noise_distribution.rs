//! The distributions of noise vectors.
//!
//! ```text
//! gamma      density ∝ exp(−α‖e‖₂):  ‖e‖ ~ Gamma(shape d, scale 1/α), direction uniform on the sphere
//! laplace    density ∝ exp(−α‖e‖₁):  independent coordinates, each exponential with a fair sign
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
    /// Density ∝ exp(−rate·‖e‖₁): independent coordinates.
    Laplace {
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
    /// Density ∝ exp(−rate·‖e‖₁).
    Laplace,
    /// Independent normal coordinates.
    Gaussian,
}

impl NoiseFamily {
    /// Returns the name as studies have it: `gamma`, `laplace` or `gaussian`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gamma => "gamma",
            Self::Laplace => "laplace",
            Self::Gaussian => "gaussian",
        }
    }

    /// Returns whether noise of this family gives pure privacy, `δ = 0`.
    pub fn is_pure(self) -> bool {
        match self {
            Self::Gamma | Self::Laplace => true,
            Self::Gaussian => false,
        }
    }

    /// Returns the symbol of the amount: `rate` or `σ`.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Gamma | Self::Laplace => "rate",
            Self::Gaussian => "σ",
        }
    }

    /// Returns the distribution of this family with a rate or a sigma.
    pub fn with_amount(self, amount: f64) -> NoiseDistribution {
        match self {
            Self::Gamma => NoiseDistribution::gamma(amount),
            Self::Laplace => NoiseDistribution::laplace(amount),
            Self::Gaussian => NoiseDistribution::gaussian(amount),
        }
    }
}

impl NoiseDistribution {
    /// Returns gamma noise of rate `α`.
    pub fn gamma(rate: f64) -> Self {
        Self::Gamma { rate }
    }

    /// Returns Laplace noise of rate `α` in every coordinate.
    pub fn laplace(rate: f64) -> Self {
        Self::Laplace { rate }
    }

    /// Returns Gaussian noise of standard deviation `σ`.
    pub fn gaussian(sigma: f64) -> Self {
        Self::Gaussian { sigma }
    }

    /// Returns the family.
    pub fn family(&self) -> NoiseFamily {
        match self {
            Self::Gamma { .. } => NoiseFamily::Gamma,
            Self::Laplace { .. } => NoiseFamily::Laplace,
            Self::Gaussian { .. } => NoiseFamily::Gaussian,
        }
    }

    /// Returns `α` or `σ`.
    pub fn amount(&self) -> f64 {
        match *self {
            Self::Gamma { rate } | Self::Laplace { rate } => rate,
            Self::Gaussian { sigma } => sigma,
        }
    }

    /// Returns the standard deviation of a coordinate of a vector of `columns` coordinates.
    pub fn deviation(&self, columns: usize) -> f64 {
        match *self {
            // E‖e‖² = d(d + 1)/α², spread evenly over d coordinates.
            Self::Gamma { rate } => (columns as f64 + 1.0).sqrt() / rate,
            Self::Laplace { rate } => std::f64::consts::SQRT_2 / rate,
            Self::Gaussian { sigma } => sigma,
        }
    }

    /// Returns a length that noise in `columns` coordinates exceeds with probability below `e^−47` (Chernoff).
    pub fn reach(&self, columns: usize) -> f64 {
        let columns = columns as f64;
        match *self {
            Self::Gamma { rate } => (2.0 * columns + 60.0) / rate,
            Self::Laplace { rate } => laplace_reach(columns) / rate,
            Self::Gaussian { sigma } => sigma * (columns.sqrt() + 11.0),
        }
    }

    /// Returns the radius of a ball that noise in `columns` coordinates hits with at most this probability, wherever the ball is: the
    /// largest density times its volume.
    ///
    /// ```text
    /// gamma      P ≤ (αr)^d/d!
    /// laplace    P ≤ (αr)^d π^{d/2}/(2^d Γ(d/2 + 1))
    /// gaussian   P ≤ (r/σ)^d/(2^{d/2} Γ(d/2 + 1))
    /// ```
    pub fn avoided_radius(&self, columns: usize, probability: f64) -> f64 {
        let d = columns.max(1) as f64;
        let ln_half_factorial = libm::lgamma(d / 2.0 + 1.0);
        let ln_2 = std::f64::consts::LN_2;
        let (ln_bound, length) = match *self {
            Self::Gamma { rate } => (libm::lgamma(d + 1.0), 1.0 / rate),
            Self::Laplace { rate } => {
                let ln_pi = libm::log(std::f64::consts::PI);
                (ln_half_factorial + d * ln_2 - d / 2.0 * ln_pi, 1.0 / rate)
            }
            Self::Gaussian { sigma } => (ln_half_factorial + d / 2.0 * ln_2, sigma),
        };
        // A ten-thousandth less than the bound allows, for roundings.
        0.9999 * length * libm::exp((libm::log(probability) + ln_bound) / d)
    }

    /// Returns `α` or `−σ`, so that the sign tells gamma and Gaussian noise apart.
    pub(crate) fn parameter(&self) -> f64 {
        match *self {
            Self::Gamma { rate } | Self::Laplace { rate } => rate,
            Self::Gaussian { sigma } => -sigma,
        }
    }

    /// Returns how many times as large this noise is as another of its family; `None` for another family.
    pub fn size_ratio(&self, other: &Self) -> Option<f64> {
        match (*self, *other) {
            (Self::Gamma { rate }, Self::Gamma { rate: other })
            | (Self::Laplace { rate }, Self::Laplace { rate: other }) => Some(other / rate),
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
            Self::Laplace { rate } => Self::Laplace {
                rate: rate / factor,
            },
            Self::Gaussian { sigma } => Self::Gaussian {
                sigma: sigma * factor,
            },
        }
    }
}

/// Returns a length that `d` independent exponential numbers of mean one exceed with probability below `e^−47`.
///
/// Their sum follows a gamma distribution, and is at least their length, so that `2d + 60` will do as for gamma noise. In many
/// columns this is better: each is at most `T = 48 + ln d`, but for a probability of `d·e^−T = e^−48`. With `λ = 1/4T` and
/// `e^y ≤ 1 + y + ½y²e^y`,
///
/// ```text
/// E[e^{λX²}; X ≤ T] ≤ 1 + 2λ + ½λ²·E[X⁴e^{X/4}] = 1 + 2λ + 12λ²/(¾)⁵
/// ```
/// so that by Chernoff `‖X‖² > 2.3d + 192T` has a probability of at most `e^−48` too, and `2e^−48 < e^−47`.
fn laplace_reach(columns: f64) -> f64 {
    let largest = 48.0 + libm::log(columns.max(1.0));
    (2.0 * columns + 60.0).min((2.3 * columns + 192.0 * largest).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The logarithm of Chernoff's bound on `P(‖X‖ > r)` with every `X ≤ T`, by the midpoint rule for `E[e^{λX²}; X ≤ T]`.
    fn ln_chernoff(columns: f64, reach: f64) -> f64 {
        let largest = 48.0 + columns.ln();
        let lambda = 1.0 / (4.0 * largest);
        let cell = 1e-3;
        let cells = (largest / cell) as u32;
        let density = |k: u32| {
            let x = (f64::from(k) + 0.5) * cell;
            (lambda * x * x - x).exp() * cell
        };
        let moment: f64 = (0..cells).map(density).sum();
        columns * moment.ln() - lambda * reach * reach
    }

    #[test]
    fn the_avoided_radius_is_that_of_a_ball_at_the_largest_density() {
        let p: f64 = 1e-6;
        let near = |found: f64, expected: f64| (found / expected - 0.9999).abs() < 1e-6;
        let (gamma, laplace, gaussian) = (
            NoiseDistribution::gamma(2.0),
            NoiseDistribution::laplace(2.0),
            NoiseDistribution::gaussian(3.0),
        );
        // In one column, twice the largest density; in two, π times it.
        for law in [gamma, laplace] {
            assert!(near(law.avoided_radius(1, p), p / 2.0));
        }
        let pi = std::f64::consts::PI;
        assert!(near(
            gaussian.avoided_radius(1, p),
            3.0 * p * (pi / 2.0).sqrt()
        ));
        assert!(near(gaussian.avoided_radius(2, p), 3.0 * (2.0 * p).sqrt()));
        assert!(near(laplace.avoided_radius(2, p), (p / pi).sqrt()));
        assert!(near(gamma.avoided_radius(2, p), (2.0 * p).sqrt() / 2.0));
        // In many columns, noise is rarely much shorter than its typical length.
        let (typical, avoided) = (3.0 * 1e4f64.sqrt(), gaussian.avoided_radius(10_000, 1e-12));
        assert!(avoided > 0.6 * typical && avoided < typical);
    }

    #[test]
    fn laplace_noise_is_longer_than_its_reach_with_probability_below_e_to_minus_47() {
        for columns in [1.0, 2.0, 10.0, 105.0, 1e3, 1e5, 1e8] {
            let reach = laplace_reach(columns);
            match reach < 2.0 * columns + 60.0 {
                true => assert!(ln_chernoff(columns, reach) <= -48.0, "{columns}"),
                // The gamma distribution's tail: e^−x (ex/d)^d.
                false => {
                    let tail = -reach + columns * (1.0 + (reach / columns).ln());
                    assert!(tail < -47.0, "{columns}: {tail}");
                }
            }
        }
        // Not by orders of magnitude: the typical length is √(2d).
        assert!(laplace_reach(1e5) < 1.2 * 2e5f64.sqrt());
    }
}
