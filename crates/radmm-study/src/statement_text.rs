//! Sentences that accompany a privacy total, shared by simulations and real parties.

use radmm::privacy::{Bound, Mechanism};
use serde::Serialize;

use crate::PrivacySection;

/// The program that wrote a file.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Program {
    name: &'static str,
    version: &'static str,
}

impl Program {
    /// This program.
    pub const THIS: Self = Self {
        name: "radmm",
        version: env!("CARGO_PKG_VERSION"),
    };
}

/// The value of `precision` in studies, statements and transcripts: releases are integer multiples of 2⁻⁴⁰.
pub const PRECISION: &str = "grid";

/// The adversary that a total holds against.
pub const ADVERSARY: &str = "sees every message on every edge from the first iteration to the last, and knows the study, the program, \
     the rows of all other parties, and all rows of this one but one";

/// Returns how the losses of a party's answers are composed into its total.
pub fn composition(privacy: &PrivacySection) -> &'static str {
    match (
        privacy.noise.template(),
        privacy.bound,
        privacy.delta == 0.0,
    ) {
        (Mechanism::None, ..) => "none: answers without noise have no finite loss",
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

/// Returns the name of a mechanism in study files.
pub fn mechanism(mechanism: &Mechanism) -> &'static str {
    match mechanism {
        Mechanism::None => "none",
        Mechanism::Objective { .. } => "objective",
        Mechanism::Output { .. } => "output",
        Mechanism::Gradient { .. } => "gradient",
    }
}
