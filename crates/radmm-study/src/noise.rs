//! How much noise there is: as the study says, or as much as a total takes.

use radmm::private::{Law, Mechanism, Scaling};
use serde::Serialize;

/// Which noise protects the rows: given, or to be found for a total.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Noise {
    /// The same for every party, as the study says.
    Given(Mechanism),
    /// For each party the least that keeps its whole run within a total.
    Total(Total),
}

/// What every party may lose over the whole run, at the study's `δ`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Total {
    /// Of the noise that is to be found.
    #[serde(flatten)]
    pub kind: Kind,
    /// `ε`, positive and finite.
    pub epsilon: f64,
}

/// Where noise enters and of which family it is, whatever its amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "mechanism", rename_all = "kebab-case")]
pub enum Kind {
    /// A random linear term in the objective.
    Objective {
        /// Of the linear term.
        noise: Family,
        /// Fixed, or growing with the penalty.
        scale: Scaling,
    },
    /// Noise on the exact minimiser.
    Output {
        /// Of the noise.
        noise: Family,
    },
    /// Noise on the exact gradient.
    Gradient {
        /// Of the noise.
        noise: Family,
    },
}

/// The laws of noise that differ in their amount alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Density ∝ exp(−rate·‖e‖₂).
    Gamma,
    /// Independent N(0, sigma²) in every coordinate.
    Gaussian,
}

impl Noise {
    /// A mechanism of this kind. Its amount is the one that is given; where it is to be found, one, which means nothing.
    pub fn like(&self) -> Mechanism {
        match self {
            Self::Given(mechanism) => *mechanism,
            Self::Total(total) => total.kind.with(1.0),
        }
    }

    /// As much noise, or the same total, of another kind; `None` without noise.
    pub fn moved(self, to: impl FnOnce(Family) -> Kind) -> Option<Self> {
        let given = |law| match law {
            Law::Gamma { rate } => (Family::Gamma, rate),
            Law::Gaussian { sigma } => (Family::Gaussian, sigma),
        };
        Some(match self {
            Self::Given(Mechanism::None) => return None,
            Self::Given(
                Mechanism::Objective { law, .. }
                | Mechanism::Output { law }
                | Mechanism::Gradient { law },
            ) => {
                let (family, amount) = given(law);
                Self::Given(to(family).with(amount))
            }
            Self::Total(total) => Self::Total(Total {
                kind: to(total.kind.family()),
                ..total
            }),
        })
    }
}

impl Kind {
    /// Gamma or gaussian.
    pub fn family(self) -> Family {
        match self {
            Self::Objective { noise, .. } | Self::Output { noise } | Self::Gradient { noise } => {
                noise
            }
        }
    }

    /// With this much noise: a rate, or a σ.
    pub fn with(self, amount: f64) -> Mechanism {
        match self {
            Self::Objective { noise, scale } => Mechanism::Objective {
                law: noise.with(amount),
                scale,
            },
            Self::Output { noise } => Mechanism::Output {
                law: noise.with(amount),
            },
            Self::Gradient { noise } => Mechanism::Gradient {
                law: noise.with(amount),
            },
        }
    }
}

impl Family {
    fn with(self, amount: f64) -> Law {
        match self {
            Self::Gamma => Law::Gamma { rate: amount },
            Self::Gaussian => Law::Gaussian { sigma: amount },
        }
    }
}
