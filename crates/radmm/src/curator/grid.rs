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

use super::error_model::ErrorBound;
use super::samplers::discrete_laplace;
use crate::linalg::dot::norm;
use crate::protocol::release::{FARTHEST, Release, SPACING};

/// An answer that doubles cannot hold.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "the answer cannot be computed exactly enough in double precision: add less noise (raise rate or lower sigma), raise the penalty or the ridge, or lower the weight"
)]
pub struct TooCoarse;

/// How an answer gets onto the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GridRounding {
    radius: f64,
    /// `s`, in units of the grid.
    scale: u64,
}

impl GridRounding {
    /// The least noise at which rounding costs no more than `slack`.
    pub(super) fn new(
        accuracy: &ErrorBound,
        columns: usize,
        slack: f64,
    ) -> Result<Self, TooCoarse> {
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
        let good = accuracy.radius > 0.0
            && apart <= radius / 4.0
            && relative <= 0.125
            && scale <= FARTHEST as f64;
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
    pub(super) fn release(&self, answer: Vec<f64>, rng: &mut ChaCha20Rng) -> Release {
        let unit = |coordinate: f64| {
            let unit = nearest(coordinate) + discrete_laplace(self.scale, rng);
            // Beyond the end of the grid is its end; that is a function of the sum, and tells nothing more.
            unit.clamp(-i128::from(FARTHEST), FARTHEST.into()) as i64
        };
        let units = self.on_ball(answer).into_iter().map(unit).collect();
        Release::from_units(units).expect("clamped to the grid")
    }

    /// The nearest point of the ball.
    fn on_ball(&self, mut answer: Vec<f64>) -> Vec<f64> {
        let length = norm(&answer);
        if length > self.radius {
            let factor = self.radius / length;
            for coordinate in &mut answer {
                *coordinate *= factor;
            }
        }
        answer
    }
}

/// In units of the grid.
fn nearest(coordinate: f64) -> i128 {
    (coordinate / SPACING).round() as i128
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;

    fn rng(seed: u64) -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(seed)
    }

    fn accuracy(absolute: f64, relative: f64, radius: f64) -> ErrorBound {
        ErrorBound {
            absolute,
            relative,
            radius,
            reach: radius,
        }
    }

    proptest! {
        /// The ratio of discrete Laplace probabilities of scale s around integers that are n apart in ℓ₁ is at most e^{n/s}.
        #[test]
        fn the_noise_hides_every_error_within_the_accuracy(
            absolute in -15f64..-6.0, relative in -16f64..-8.0, radius in -3f64..6.0,
            slack in -9f64..0.0, columns in 1usize..300, seed in any::<u64>(),
        ) {
            let accuracy = accuracy(10f64.powf(absolute), 10f64.powf(relative), 10f64.powf(radius));
            let slack = 10f64.powf(slack);
            let Ok(rounding) = GridRounding::new(&accuracy, columns, slack) else { return Ok(()) };
            // An answer that may be far out, and one as far from it as can be, in a direction of its own.
            let mut rng = rng(seed);
            let mut draw = |size: f64| -> Vec<f64> {
                let raw: Vec<f64> = (0..columns).map(|_| crate::curator::samplers::normal(&mut rng)).collect();
                let length = norm(&raw);
                raw.iter().map(|x| x / length * size).collect()
            };
            let exact = draw(accuracy.radius * [0.1, 1.0, 1.5, 100.0][(seed % 4) as usize]);
            let off = accuracy.absolute + accuracy.relative * norm(&exact);
            let computed: Vec<f64> = exact.iter().zip(draw(off)).map(|(z, o)| z + o).collect();
            let apart: f64 = rounding
                .on_ball(exact)
                .into_iter()
                .zip(rounding.on_ball(computed))
                .map(|(a, b)| (nearest(a) - nearest(b)).unsigned_abs() as f64)
                .sum();
            prop_assert!(apart <= slack * rounding.scale as f64, "{} of {}", apart / rounding.scale as f64, slack);
        }
    }

    #[test]
    fn what_rounding_adds_is_discrete_laplace_noise_of_its_scale() {
        let rounding = GridRounding {
            radius: 10.0,
            scale: 1000,
        };
        let mut rng = rng(3);
        let at = [0.25, -0.125];
        let drawn: Vec<i64> = (0..50_000)
            .flat_map(|_| {
                let release = rounding.release(at.to_vec(), &mut rng);
                let units = release.units();
                [units[0] - (1 << 38), units[1] + (1 << 37)]
            })
            .collect();
        // E|k| = s and Var|k| = s² up to 1/s; five standard errors of a mean of 100,000.
        let mean = drawn.iter().map(|k| k.abs() as f64).sum::<f64>() / drawn.len() as f64;
        assert!((mean / 1000.0 - 1.0).abs() < 5.0 / 1e5f64.sqrt(), "{mean}");
        // P(k > s·ln 2 · j) halves with each j.
        for j in 1..=5 {
            let edge = (1000.0 * std::f64::consts::LN_2 * f64::from(j)) as i64;
            let share = drawn.iter().filter(|k| **k > edge).count() as f64 / drawn.len() as f64;
            let expected = 0.5f64.powi(j + 1);
            let error = (expected / drawn.len() as f64).sqrt();
            assert!(
                (share - expected).abs() < 5.0 * error + 1e-3 * expected,
                "{j}: {share}"
            );
        }
    }

    #[test]
    fn an_answer_beyond_the_ball_is_taken_to_it() {
        let rounding = GridRounding {
            radius: 5.0,
            scale: 1,
        };
        let release = rounding.release(vec![300.0, -400.0], &mut rng(1));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(release.values()[0], 3.0) && near(release.values()[1], -4.0));
        assert_eq!(rounding.on_ball(vec![3.0, -3.0]), [3.0, -3.0]);
    }

    #[test]
    fn beyond_the_end_of_the_grid_is_its_end() {
        let rounding = GridRounding {
            radius: FARTHEST as f64 * SPACING,
            scale: 1 << 61,
        };
        let mut rng = rng(2);
        let mut at_the_end = 0;
        for _ in 0..100 {
            let release = rounding.release(vec![-rounding.radius], &mut rng);
            at_the_end += u32::from(release.units() == [-FARTHEST]);
        }
        // Half of them, and five standard errors.
        assert!((25..=75).contains(&at_the_end), "{at_the_end}");
    }

    #[test]
    fn going_to_the_ball_rounds_and_that_is_hidden_too() {
        // Half of d roundings in the norm, and three more, of coordinates up to R.
        let rounding = GridRounding::new(&accuracy(0.0, 0.0, 1e6), 100, 1.0).unwrap();
        assert!(rounding.noise() >= 10.0 * 53.0 * f64::EPSILON / 2.0 * 1e6);
    }

    #[test]
    fn noise_that_would_fill_the_grid_is_refused() {
        let fine = accuracy(1e-10, 1e-12, 10.0);
        assert!(GridRounding::new(&fine, 10, 1e-5).is_ok());
        for (accuracy, slack) in [
            (fine, 0.0),
            (fine, f64::NAN),
            (fine, 1e-300),
            (accuracy(1e-10, 0.2, 10.0), 1e-5),
            (accuracy(5.0, 1e-12, 10.0), 1e-5),
            (accuracy(f64::NAN, 1e-12, 10.0), 1e-5),
            (accuracy(1e-10, 1e-12, f64::NAN), 1e-5),
        ] {
            assert_eq!(GridRounding::new(&accuracy, 10, slack), Err(TooCoarse));
        }
    }
}
