//! The noise of a study: as much as the study says, or as much as a total takes.

use radmm::privacy::{Mechanism, NoiseFamily, NoiseScaling};
use serde::Serialize;

/// The noise that protects the rows: given, or to be found for a total.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Noise {
    /// The same for every party, as the study says.
    Given(Mechanism),
    /// For each party the least that keeps its whole run within a total.
    Total(TotalBudget),
}

/// The total that every party may lose over the whole run, at the study's `δ`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TotalBudget {
    /// The kind of the noise that is to be found.
    #[serde(flatten)]
    pub kind: NoiseKind,
    /// `ε`, positive and finite.
    pub epsilon: f64,
}

/// The mechanism and the family of noise, whatever its amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "mechanism", rename_all = "kebab-case")]
pub enum NoiseKind {
    /// A random linear term in the objective.
    Objective {
        /// The family of the linear term.
        noise: NoiseFamily,
        /// Fixed, or growing with the penalty.
        scale: NoiseScaling,
    },
    /// Noise on the exact minimiser.
    Output {
        /// The family of the noise.
        noise: NoiseFamily,
    },
    /// Noise on the exact gradient.
    Gradient {
        /// The family of the noise.
        noise: NoiseFamily,
    },
}

impl Noise {
    /// Returns a mechanism of this kind. Its amount is the one that is given; where the amount is to be found it is one,
    /// which means nothing.
    pub fn template(&self) -> Mechanism {
        match self {
            Self::Given(mechanism) => *mechanism,
            Self::Total(total) => total.kind.with_amount(1.0),
        }
    }

    /// Returns as much noise, or the same total, of another kind; `None` without noise.
    pub fn with_kind(self, kind: impl FnOnce(NoiseFamily) -> NoiseKind) -> Option<Self> {
        Some(match self {
            Self::Given(mechanism) => {
                let noise = mechanism.noise()?;
                Self::Given(kind(noise.family()).with_amount(noise.amount()))
            }
            Self::Total(total) => Self::Total(TotalBudget {
                kind: kind(total.kind.family()),
                ..total
            }),
        })
    }
}

impl NoiseKind {
    /// Noise in the objective that does not grow with the penalty.
    pub fn objective(noise: NoiseFamily) -> Self {
        let scale = NoiseScaling::Fixed;
        Self::Objective { noise, scale }
    }

    /// Returns the family of the noise.
    pub fn family(self) -> NoiseFamily {
        match self {
            Self::Objective { noise, .. } | Self::Output { noise } | Self::Gradient { noise } => {
                noise
            }
        }
    }

    /// Returns the mechanism with this much noise: a rate, or a σ.
    pub fn with_amount(self, amount: f64) -> Mechanism {
        let law = self.family().with_amount(amount);
        match self {
            Self::Objective { scale, .. } => Mechanism::Objective { law, scale },
            Self::Output { .. } => Mechanism::Output { law },
            Self::Gradient { .. } => Mechanism::Gradient { law },
        }
    }
}
