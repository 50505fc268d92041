//! The paper's rivals, made from a study: the same problem, network and number of iterations, another algorithm.
//!
//! | name | algorithm | noise |
//! |---|---|---|
//! | `dvp`: dual variable perturbation | conventional ADMM, `η(t)` of the study | in the objective, every iteration |
//! | `pp`: penalty perturbation | M-ADMM, `η_i(t) = η(0)·1.01ᵗ`, `θ = η(0)` | in the objective, `e = 2η_i(t)V_i·e'` |
//! | `pvp`: primal variable perturbation | conventional ADMM | on the answer |

use radmm::account::Bound;
use radmm::private::Scaling;
use radmm::public::schedule::Schedule;
use radmm_study::{Kind, Method, Study};

/// By how much M-ADMM's penalties grow from one iteration to the next: as in the paper's Figure 3.
pub const GROWTH: f64 = 1.01;

/// An algorithm that the paper compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// Dual variable perturbation.
    Dvp,
    /// Penalty perturbation.
    Pp,
    /// Primal variable perturbation.
    Pvp,
}

impl Rival {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Dvp, Self::Pp, Self::Pvp];

    /// As typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dvp => "dvp",
            Self::Pp => "pp",
            Self::Pvp => "pvp",
        }
    }

    /// The rival of a study; `None` if the study has no penalty to take over, or no noise.
    pub fn of(self, study: &Study) -> Option<Study> {
        let eta = penalty(&study.algorithm.method)?;
        let mut rival = study.clone();
        rival.name = self.name().to_owned();
        rival.algorithm.method = match self {
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
        rival.privacy.noise = study.privacy.noise.moved(|noise| match self {
            Self::Dvp => Kind::Objective {
                noise,
                scale: Scaling::Fixed,
            },
            Self::Pp => Kind::Objective {
                noise,
                scale: Scaling::Penalty,
            },
            Self::Pvp => Kind::Output { noise },
        })?;
        if self == Self::Pvp {
            // The paper's theorem is about noise in the objective; for noise on the answer there is one bound.
            rival.privacy.bound = Bound::Tight;
        }
        Some(rival)
    }
}

/// `η` of an algorithm with one penalty for all; of M-ADMM's, the first node's.
fn penalty(method: &Method) -> Option<Schedule> {
    match method {
        Method::Admm { penalty }
        | Method::RecycledAdmm { penalty, .. }
        | Method::Dlm { penalty, .. }
        | Method::RecycledDlm { penalty, .. } => Some(*penalty),
        Method::MAdmm { penalty, .. } | Method::MRecycledAdmm { penalty, .. } => {
            penalty.first().copied()
        }
        Method::Dgd { .. } | Method::Local { .. } | Method::Average { .. } => None,
    }
}
