//! Events: what was released, described by public quantities.

use serde::Serialize;

use super::noise_distribution::NoiseDistribution;
use super::privacy_loss::slack_of;
use super::slope_curve::SlopeCurve;

/// Which proof prices objective perturbation with gamma noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Ours: no side condition, and never more than the paper's.
    Tight,
    /// The paper's Theorem IV.1, where its side condition holds.
    Paper,
}

/// One release, described by public quantities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacyEvent {
    /// The release in exact arithmetic.
    pub ideal: IdealRelease,
    /// `κ`: no release is more than `e^κ` times as likely or unlikely in the program as in exact arithmetic.
    pub slack: f64,
}

/// A release in real numbers, with exact minimisers and exact noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IdealRelease {
    /// An answer without noise: no finite bound.
    Exact,
    /// The minimiser of an objective with a random linear term.
    Objective {
        /// `S`, the largest distance by which one row can move the gradient: in ℓ₁ for Laplace noise, else in ℓ₂.
        sensitivity: f64,
        /// `x = C·c₁/(B·m)`, the largest relative change of the Hessian's determinant by one row.
        spread: f64,
        /// The curvature that the loss can have at each slope.
        curve: SlopeCurve,
        /// The distribution of the linear term.
        law: NoiseDistribution,
    },
    /// An exact answer plus noise.
    Additive {
        /// The largest distance by which one row can move the answer: in ℓ₁ for Laplace noise, else in ℓ₂.
        sensitivity: f64,
        /// The distribution of the noise.
        law: NoiseDistribution,
    },
}

impl From<IdealRelease> for PrivacyEvent {
    fn from(ideal: IdealRelease) -> Self {
        Self { ideal, slack: 0.0 }
    }
}

impl PrivacyEvent {
    /// Creates the event of a release on the grid, whose rounding costs about a thousandth of its price.
    pub fn on_grid(ideal: IdealRelease) -> Self {
        let slack = match ideal {
            IdealRelease::Exact => 0.0,
            _ => slack_of(&ideal),
        };
        Self { ideal, slack }
    }

    /// Returns whether `recorded` is the charge of this release, by this program or by an earlier one, which knew only the
    /// signs of slopes and charged more.
    pub fn is_recorded_as(&self, recorded: &Self) -> bool {
        let mut earlier = *self;
        if let IdealRelease::Objective { curve, .. } = &mut earlier.ideal {
            *curve = curve.without_curvatures();
        }
        [*self, earlier].contains(recorded)
    }

    pub(super) fn is_well_formed(&self) -> bool {
        self.slack >= 0.0 && self.ideal.is_well_formed()
    }
}

impl IdealRelease {
    pub(super) fn is_well_formed(&self) -> bool {
        let valid = |law: &NoiseDistribution| law.amount() > 0.0 && law.amount().is_finite();
        match self {
            Self::Exact => true,
            Self::Objective {
                sensitivity,
                spread,
                law,
                ..
            } => *sensitivity >= 0.0 && *spread >= 0.0 && valid(law),
            Self::Additive { sensitivity, law } => *sensitivity >= 0.0 && valid(law),
        }
    }
}
