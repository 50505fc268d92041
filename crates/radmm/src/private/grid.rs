//! Finite precision, inside the guarantee: an answer is released as integers, with a little exact noise of their own.
//!
//! The computed answer is not the one that the proofs are about, but it is near it, by a public bound. So it is taken to a
//! ball of public radius, rounded to the grid, and gets independent discrete Laplace noise of scale `s` in each coordinate. The
//! exact answer, treated alike, would give integers that differ by at most `n` in ℓ₁; so no release is more than `e^{n/s}` times
//! as likely or unlikely as the ideal says, and `s` is chosen such that `n/s ≤ κ`, the slack that was charged.
//!
//! The ball makes an error that is relative to the answer an absolute one: for answers longer than twice its radius `R` only
//! their direction counts. With an accuracy of `A + η‖z‖ ≤ ¼‖z‖` there, taking both to the ball leaves them within `A + 2ηR`.

use rand_chacha::ChaCha20Rng;
use thiserror::Error;

use super::accuracy::Accuracy;
use super::exact::discrete_laplace;
use super::solve::norm;
use crate::public::release::{FARTHEST, Release, SPACING};

/// An answer that doubles cannot hold.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "the answer cannot be computed exactly enough in double precision: add less noise (raise rate or lower sigma), raise the penalty or the ridge, or lower the weight"
)]
pub struct TooCoarse;

/// How an answer gets onto the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rounding {
    radius: f64,
    /// `s`, in units of the grid.
    scale: u64,
}

impl Rounding {
    /// The least noise at which rounding costs no more than `slack`.
    pub(super) fn new(accuracy: &Accuracy, columns: usize, slack: f64) -> Result<Self, TooCoarse> {
        let columns = columns as f64;
        let radius = accuracy.radius.min(FARTHEST as f64 * SPACING);
        // Taking a vector to the ball rounds too: its norm, and each coordinate twice.
        let relative = accuracy.relative + (columns + 8.0) * f64::EPSILON / 2.0;
        let apart = accuracy.absolute + 2.0 * relative * radius;
        // In ℓ₁ and in units; rounding moves each coordinate of each of the two by up to half a unit.
        let units = columns.sqrt() * apart / SPACING + columns;
        // A part in a thousand for the roundings of this arithmetic itself.
        let scale = (1.001 * units / slack).ceil();
        // Written so that a NaN is refused.
        let good = apart <= radius / 4.0 && relative <= 0.125 && scale <= FARTHEST as f64;
        match good {
            true => Ok(Self {
                radius,
                scale: scale as u64,
            }),
            false => Err(TooCoarse),
        }
    }

    /// The size of the noise that rounding adds to a coordinate.
    pub(super) fn noise(&self) -> f64 {
        self.scale as f64 * SPACING
    }

    /// Onto the grid.
    pub(super) fn release(&self, mut answer: Vec<f64>, rng: &mut ChaCha20Rng) -> Release {
        let length = norm(&answer);
        if length > self.radius {
            let factor = self.radius / length;
            for coordinate in &mut answer {
                *coordinate *= factor;
            }
        }
        let unit = |coordinate: f64, rng: &mut ChaCha20Rng| {
            let exact = (coordinate / SPACING).round() as i128 + discrete_laplace(self.scale, rng);
            // Beyond the end of the grid is its end; that is a function of the sum, and tells nothing more.
            exact.clamp(-i128::from(FARTHEST), FARTHEST.into()) as i64
        };
        let units = answer.iter().map(|&coordinate| unit(coordinate, rng));
        Release::on_grid(units.collect()).expect("clamped to the grid")
    }
}
