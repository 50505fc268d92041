//! The methods that the paper compares with, made from a study: the same problem, network and number of iterations, another
//! algorithm.
//!
//! | name | algorithm | noise |
//! |---|---|---|
//! | `dvp`: dual variable perturbation | conventional ADMM, `η(t)` of the study | in the objective, every iteration |
//! | `pp`: penalty perturbation | M-ADMM, `η_i(t) = η(0)·1.01ᵗ`, `θ = η(0)` | in the objective, `e = 2η_i(t)V_i·e'` |
//! | `pvp`: primal variable perturbation | conventional ADMM | on the answer |

use radmm::algorithm::schedule::Schedule;
use radmm::privacy::{Bound, NoiseScaling};
use radmm_study::{Method, NoiseKind, Study};

/// The growth of M-ADMM's penalties from one iteration to the next, as in the paper's Figure 3.
const GROWTH: f64 = 1.01;

/// An algorithm that the paper compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorMethod {
    /// Dual variable perturbation.
    Dvp,
    /// Penalty perturbation.
    Pp,
    /// Primal variable perturbation.
    Pvp,
}

impl PriorMethod {
    /// All prior methods.
    pub const ALL: [Self; 3] = [Self::Dvp, Self::Pp, Self::Pvp];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dvp => "dvp",
            Self::Pp => "pp",
            Self::Pvp => "pvp",
        }
    }

    /// Returns a study with this method in place of its own; `None` if the study has no penalty to take over, or no noise.
    pub fn study_from(self, study: &Study) -> Option<Study> {
        let eta = study.algorithm.method.penalty()?;
        let mut prior = study.clone();
        prior.name = self.name().to_owned();
        prior.algorithm.method = match self {
            Self::Dvp | Self::Pvp => Method::Admm { penalty: eta },
            Self::Pp => Method::MAdmm {
                penalty: vec![
                    Schedule::Growth {
                        start: eta.at(0),
                        growth: GROWTH,
                    };
                    study.network.nodes as usize
                ],
                dual_step: eta.at(0),
            },
        };
        prior.privacy.noise = study.privacy.noise.with_kind(|noise| match self {
            Self::Dvp => NoiseKind::Objective {
                noise,
                scale: NoiseScaling::Fixed,
            },
            Self::Pp => NoiseKind::Objective {
                noise,
                scale: NoiseScaling::Penalty,
            },
            Self::Pvp => NoiseKind::Output { noise },
        })?;
        if self == Self::Pvp {
            // The paper's theorem is about noise in the objective; for noise on the answer there is one bound.
            prior.privacy.bound = Bound::Tight;
        }
        Some(prior)
    }
}
