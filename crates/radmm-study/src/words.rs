//! What is said beside a total, by simulations and by real parties alike.

use radmm::account::Bound;
use radmm::private::Mechanism;
use radmm::public::release::Precision;
use serde::Serialize;

use crate::Privacy;

/// What made a file.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Program {
    name: &'static str,
    version: &'static str,
}

impl Program {
    /// This one.
    pub const THIS: Self = Self {
        name: "radmm",
        version: env!("CARGO_PKG_VERSION"),
    };
}

/// Who may look.
pub const ADVERSARY: &str = "sees every message on every edge from the first iteration to the last, and knows the study, the program, \
     the rows of all other parties, and all rows of this one but one";

/// How the losses of a party's answers become its total.
pub fn composition(privacy: &Privacy) -> &'static str {
    match (privacy.noise.like(), privacy.bound, privacy.delta == 0.0) {
        (Mechanism::None, ..) => "none: answers without noise have no finite loss",
        _ if privacy.precision == Precision::Float => {
            "none: the last digits of doubles have no finite loss"
        }
        (_, Bound::Paper, _) => "pure losses by the paper's Theorem IV.1, added up",
        (_, Bound::Tight, true) => "pure losses, added up",
        (Mechanism::Output { .. } | Mechanism::Gradient { .. }, Bound::Tight, false) => {
            "Gaussian losses, composed exactly into those of one Gaussian mechanism, or Rényi losses, whichever is less"
        }
        (_, Bound::Tight, false) => {
            "Rényi losses, added up at each order, and converted to ε at δ by the best order"
        }
    }
}

/// A mechanism as it is called in study files.
pub fn mechanism(like: &Mechanism) -> &'static str {
    match like {
        Mechanism::None => "none",
        Mechanism::Objective { .. } => "objective",
        Mechanism::Output { .. } => "output",
        Mechanism::Gradient { .. } => "gradient",
    }
}
