//! The configuration of a curator, and its validation.

use thiserror::Error;

use super::held_rows::HeldRows;
use super::noise_key::NoiseKey;
use super::rows::chunk::CHUNK_ROWS;
use crate::privacy::{Ledger, Mechanism};
use crate::problem::{Loss, Problem, RowShape};

/// The reason why a configuration is invalid.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum InvalidCuratorConfig {
    /// A quantity is negative, zero, infinite or not a number.
    #[error("the {what} is {value}; it must be {needed}")]
    OutOfRange {
        /// The name of the quantity.
        what: &'static str,
        /// Its value.
        value: f64,
        /// The requirement.
        needed: &'static str,
    },
    /// The tolerance is below what double precision reaches at this loss weight.
    #[error(
        "the tolerance is {tolerance:e}; at a loss weight of {weight:?} it must be at least {least:.1e}: raise it, lower the weight, or widen a smooth hinge"
    )]
    ToleranceTooSmall {
        /// `τ`.
        tolerance: f64,
        /// `C`.
        weight: f64,
        /// The least tolerance that is reachable.
        least: f64,
    },
    /// There are too many rows: sums over more lose more than the bound on their rounding allows.
    #[error(
        "there are {rows} rows, and a party can have {MAX_ROWS} at most, fewer if they have more than 65,536 sparse entries each: split them among several parties"
    )]
    TooManyRows {
        /// The number of rows.
        rows: usize,
    },
    /// The rows have another number of columns than the problem says.
    #[error("the rows have {found} columns, and the problem says {expected}")]
    WrongColumns {
        /// The number of columns of the rows.
        found: usize,
        /// The number of columns of the problem.
        expected: u32,
    },
    /// A row has more non-zeros than the problem allows. Laplace noise is priced by that number.
    #[error(
        "a row has more than the {limit} non-zeros that all parties agreed on: raise the limit"
    )]
    TooManyNonZeros {
        /// The largest number of non-zeros that is allowed.
        limit: u32,
    },
    /// The rows are shared and the noise is secret. Shared rows could be queried more often than one ledger records.
    #[error(
        "shared rows need repeating noise, which only simulations use; a real party's curator owns its rows"
    )]
    SharedRows,
}

/// The problem, mechanism, ledger and noise with which a party answers queries.
pub struct CuratorConfig {
    /// The objective to minimise.
    pub problem: Problem,
    /// The mechanism that protects answers.
    pub mechanism: Mechanism,
    /// The budget, and what has been spent of it.
    pub ledger: Ledger,
    /// The key from which noise is derived.
    pub noise: NoiseKey,
}

impl CuratorConfig {
    /// Creates the configuration of one party.
    pub fn new(problem: Problem, mechanism: Mechanism, ledger: Ledger, noise: NoiseKey) -> Self {
        Self {
            problem,
            mechanism,
            ledger,
            noise,
        }
    }
}

/// The largest number of chunks: in each of the eight parts of a Gram matrix there are at most 2³⁰ rows, whose products
/// doubles add up exactly, and sums over so many chunks are as accurate as the error model says (docs/privacy.md).
pub(super) const MAX_CHUNKS: usize = 1 << 19;

/// The largest number of rows of a party: those of so many full chunks.
pub const MAX_ROWS: usize = MAX_CHUNKS * CHUNK_ROWS;

/// Checks the number of rows and of their chunks.
pub(super) fn check_size(rows: usize, chunks: usize) -> Result<(), InvalidCuratorConfig> {
    match rows <= MAX_ROWS && chunks <= MAX_CHUNKS {
        true => Ok(()),
        false => Err(InvalidCuratorConfig::TooManyRows { rows }),
    }
}

/// Checks rows against the shape that the problem gives them, and returns their shape.
// Privacy: the ℓ₁ sensitivity of Laplace noise is proved for rows of this shape. That a row breaks the agreement is told to the
// owner of the rows, without a number that comes from them.
pub(super) fn check_shape(
    rows: &HeldRows,
    agreed: Option<RowShape>,
) -> Result<RowShape, InvalidCuratorConfig> {
    let columns = rows.columns();
    let shape = agreed.unwrap_or(RowShape::dense(u32::try_from(columns).unwrap_or(u32::MAX)));
    if columns != shape.columns() as usize {
        return Err(InvalidCuratorConfig::WrongColumns {
            found: columns,
            expected: shape.columns(),
        });
    }
    match rows.max_nonzeros() <= shape.max_nonzeros() {
        true => Ok(shape),
        false => Err(InvalidCuratorConfig::TooManyNonZeros {
            limit: shape.max_nonzeros(),
        }),
    }
}

/// Checks a configuration. Nothing downstream checks again.
pub(super) fn check(config: &CuratorConfig) -> Result<(), InvalidCuratorConfig> {
    let problem = &config.problem;
    let width = match problem.loss {
        Loss::Logistic | Loss::CutLogistic => 1.0,
        Loss::SmoothHinge { width } => width,
    };
    let noise = config.mechanism.noise();
    for (what, value) in [
        ("loss weight", problem.weight),
        ("ridge", problem.ridge),
        ("number of nodes", f64::from(problem.nodes)),
        ("width of the hinge", width),
        (
            "rate or sigma of the noise",
            noise.map_or(1.0, |noise| noise.amount()),
        ),
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
        return Err(InvalidCuratorConfig::ToleranceTooSmall {
            tolerance: problem.tolerance,
            weight: problem.weight,
            least,
        });
    }
    Ok(())
}
