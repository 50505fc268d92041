//! The terms on which a curator answers.

use thiserror::Error;

use super::noise_key::NoiseKey;
use crate::privacy::{Ledger, Mechanism, NoiseDistribution};
use crate::problem::{Loss, Problem};

/// CuratorConfig on which nothing can be answered.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum InvalidCuratorConfig {
    /// A quantity that is negative, zero, infinite or not a number.
    #[error("the {what} is {value}; it must be {needed}")]
    OutOfRange {
        /// Which.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What would be right.
        needed: &'static str,
    },
    /// A residual that double precision does not reach at this loss weight.
    #[error(
        "the tolerance is {tolerance:e}; at a loss weight of {weight:?} it must be at least {least:.1e}: raise it, lower the weight, or widen a smooth hinge"
    )]
    TooExact {
        /// `τ`.
        tolerance: f64,
        /// `C`.
        weight: f64,
        /// What would do.
        least: f64,
    },
    /// Sums over more rows lose more than the bound on their rounding says.
    #[error(
        "there are {rows} rows, and a party can have {MOST_ROWS} at most: share them out among several"
    )]
    TooManyRows {
        /// How many.
        rows: usize,
    },
    /// Rows that several curators hold could be asked more than one ledger knows of.
    #[error(
        "shared rows are for simulations, whose noise repeats; a real party's curator owns its rows"
    )]
    SharedRows,
}

/// How a party answers.
pub struct CuratorConfig {
    /// What is minimised.
    pub problem: Problem,
    /// How answers are protected.
    pub mechanism: Mechanism,
    /// What may be spent, and what has been.
    pub ledger: Ledger,
    /// Where noise comes from.
    pub noise: NoiseKey,
}

/// `B²u < 1` up to here, `u = 2⁻⁵³`: a compensated sum over the rows is then as good as one addition.
pub(super) const MOST_ROWS: usize = 1 << 26;

pub(super) fn check_rows(rows: usize) -> Result<(), InvalidCuratorConfig> {
    match rows <= MOST_ROWS {
        true => Ok(()),
        false => Err(InvalidCuratorConfig::TooManyRows { rows }),
    }
}

/// Nothing downstream checks again.
pub(super) fn check(config: &CuratorConfig) -> Result<(), InvalidCuratorConfig> {
    let problem = &config.problem;
    let width = match problem.loss {
        Loss::Logistic => 1.0,
        Loss::SmoothHinge { width } => width,
    };
    let noise = match config.mechanism {
        Mechanism::None => 1.0,
        Mechanism::Objective { law, .. }
        | Mechanism::Output { law }
        | Mechanism::Gradient { law } => match law {
            NoiseDistribution::Gamma { rate } => rate,
            NoiseDistribution::Gaussian { sigma } => sigma,
        },
    };
    for (what, value) in [
        ("loss weight", problem.weight),
        ("ridge", problem.ridge),
        ("number of nodes", f64::from(problem.nodes)),
        ("width of the hinge", width),
        ("rate or sigma of the noise", noise),
        ("tolerance", problem.tolerance),
    ] {
        if !(value.is_finite() && value > 0.0) {
            return Err(InvalidCuratorConfig::OutOfRange {
                what,
                value,
                needed: "positive and finite",
            });
        }
    }
    let least = problem.least_tolerance();
    if problem.tolerance < least {
        return Err(InvalidCuratorConfig::TooExact {
            tolerance: problem.tolerance,
            weight: problem.weight,
            least,
        });
    }
    Ok(())
}
