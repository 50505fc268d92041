//! Rounding to the grid: answers are released as integers with exact discrete noise, so that the guarantee covers finite
//! precision.
//!
//! The proofs are about the exact answer. The computed answer is near it, by a public bound. So the computed answer is
//! projected onto a ball of public radius, rounded to the grid, and gets independent discrete Laplace noise of scale
//! `s` in each coordinate. The exact answer, treated alike, would give integers that differ by at most `n` in ℓ₁. So no
//! release is more than `e^{n/s}` times as likely or unlikely as the ideal says, and `s` is chosen such that `n/s ≤ κ`,
//! the slack that was charged.
//!
//! The ball turns a relative error into an absolute one: for answers longer than twice its radius `R` only their
//! direction counts. With an error of at most `A + η‖z‖ ≤ ¼‖z‖` there, projecting both onto the ball leaves them within
//! `A + 2ηR`.

use rand_chacha::ChaCha20Rng;
use thiserror::Error;

use super::error_model::ErrorBound;
use super::samplers::discrete_laplace;
use crate::linalg::dot::norm;
use crate::protocol::release::{FARTHEST, Release, SPACING};

/// The error of an answer that double precision cannot compute accurately enough.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "the answer cannot be computed exactly enough in double precision: add less noise (raise rate or lower sigma), raise the penalty or the ridge, or lower the weight"
)]
pub struct TooCoarse;

/// The parameters with which an answer is rounded to the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GridRounding {
    /// `R`, the radius of the ball.
    radius: f64,
    /// `s`, in units of the grid.
    scale: u64,
}

impl GridRounding {
    /// Chooses the least noise at which rounding costs no more than `slack`.
    pub(super) fn new(bound: &ErrorBound, columns: usize, slack: f64) -> Result<Self, TooCoarse> {
        let columns = columns as f64;
        let radius = bound.radius.min(FARTHEST as f64 * SPACING);
        // Projecting a vector onto the ball rounds as well: its norm, and each coordinate twice.
        let relative = bound.relative + (columns + 8.0) * f64::EPSILON / 2.0;
        let distance = bound.absolute + 2.0 * relative * radius;
        // The distance in ℓ₁, in units. Rounding moves each coordinate of both answers by up to half a unit.
        let units = columns.sqrt() * distance / SPACING + columns;
        // The factor 1.001 covers the roundings of this arithmetic itself.
        let scale = (1.001 * units / slack).ceil();
        // Written so that a NaN is refused.
        let feasible = bound.radius > 0.0
            && distance <= radius / 4.0
            && relative <= 0.125
            && scale <= FARTHEST as f64;
        match feasible {
            true => Ok(Self {
                radius,
                scale: scale as u64,
            }),
            false => Err(TooCoarse),
        }
    }

    /// Returns the scale of the noise that rounding adds to a coordinate.
    pub(super) fn noise_scale(&self) -> f64 {
        self.scale as f64 * SPACING
    }

    /// Rounds an answer to the grid and adds the noise.
    pub(super) fn release(&self, answer: Vec<f64>, rng: &mut ChaCha20Rng) -> Release {
        let unit = |coordinate: f64| {
            let unit = nearest_unit(coordinate) + discrete_laplace(self.scale, rng);
            // Privacy: values beyond the grid are clamped to its end. This is a function of the noisy value, so it
            // reveals nothing more.
            unit.clamp(-i128::from(FARTHEST), FARTHEST.into()) as i64
        };
        let units = self.project(answer).into_iter().map(unit).collect();
        Release::from_units(units).expect("clamped to the grid")
    }

    /// Returns the nearest point of the ball.
    fn project(&self, mut answer: Vec<f64>) -> Vec<f64> {
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

/// Returns the nearest grid point, in units of the grid.
fn nearest_unit(coordinate: f64) -> i128 {
    (coordinate / SPACING).round() as i128
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curator::independence::{assert_pairwise_independent, assert_sizes_are_distinct};
    use proptest::prelude::*;
    use rand::SeedableRng;

    fn rng(seed: u64) -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(seed)
    }

    fn error_bound(absolute: f64, relative: f64, radius: f64) -> ErrorBound {
        ErrorBound {
            absolute,
            relative,
            radius,
            noise_radius: radius,
        }
    }

    proptest! {
        /// The ratio of discrete Laplace probabilities of scale s around integers that differ by n in ℓ₁ is at most
        /// e^{n/s}.
        #[test]
        fn the_noise_hides_every_error_within_the_bound(
            absolute in -15f64..-6.0, relative in -16f64..-8.0, radius in -3f64..6.0,
            slack in -9f64..0.0, columns in 1usize..300, seed in any::<u64>(),
        ) {
            let bound = error_bound(10f64.powf(absolute), 10f64.powf(relative), 10f64.powf(radius));
            let slack = 10f64.powf(slack);
            let Ok(rounding) = GridRounding::new(&bound, columns, slack) else { return Ok(()) };
            // An answer that may be far out, and one at the largest distance from it, in a random direction.
            let mut rng = rng(seed);
            let mut draw = |size: f64| -> Vec<f64> {
                let raw: Vec<f64> = (0..columns).map(|_| crate::curator::samplers::normal(&mut rng)).collect();
                let length = norm(&raw);
                raw.iter().map(|x| x / length * size).collect()
            };
            let exact = draw(bound.radius * [0.1, 1.0, 1.5, 100.0][(seed % 4) as usize]);
            let error = bound.absolute + bound.relative * norm(&exact);
            let computed: Vec<f64> = exact.iter().zip(draw(error)).map(|(z, o)| z + o).collect();
            let distance: f64 = rounding
                .project(exact)
                .into_iter()
                .zip(rounding.project(computed))
                .map(|(a, b)| (nearest_unit(a) - nearest_unit(b)).unsigned_abs() as f64)
                .sum();
            prop_assert!(distance <= slack * rounding.scale as f64, "{} of {}", distance / rounding.scale as f64, slack);
        }
    }

    #[test]
    fn rounding_adds_discrete_laplace_noise_of_its_scale() {
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

    /// Returns the units that rounding adds to zeros.
    fn rounding_noise(scale: u64, columns: usize, rng: &mut ChaCha20Rng) -> Vec<i64> {
        let rounding = GridRounding { radius: 1.0, scale };
        rounding.release(vec![0.0; columns], rng).units().to_vec()
    }

    #[test]
    fn every_coordinate_has_rounding_noise_of_its_own() {
        let mut rng = rng(4);
        let scale = 1 << 40;
        let noise = |_| {
            let units = rounding_noise(scale, 105, &mut rng);
            units.iter().map(|unit| *unit as f64).collect()
        };
        let all: Vec<Vec<f64>> = (0..4000).map(noise).collect();
        for vector in &all[..100] {
            assert_sizes_are_distinct(vector);
        }
        let median = scale as f64 * std::f64::consts::LN_2;
        assert_pairwise_independent(&all, |unit| unit > 0.0);
        assert_pairwise_independent(&all, |unit| unit.abs() > median);
    }

    /// The noise is what the exact sampler draws, in order and to the last bit, however large the scale.
    #[test]
    fn rounding_noise_comes_from_the_exact_sampler() {
        for scale in [1, 1000, 123_456_789, 1 << 57] {
            let (mut ours, mut exact) = (rng(5), rng(5));
            let drawn = rounding_noise(scale, 105, &mut ours);
            let expected = (0..105).map(|_| discrete_laplace(scale, &mut exact) as i64);
            assert!(drawn.into_iter().eq(expected), "scale {scale}");
        }
    }

    /// A product of doubles has 53 significant bits, so that the low bits of large integers would be zero.
    #[test]
    fn the_low_bits_of_large_rounding_noise_are_fair() {
        let mut rng = rng(6);
        let units = rounding_noise(1 << 57, 16_000, &mut rng);
        for bit in 0..8 {
            let ones = units.iter().filter(|unit| *unit >> bit & 1 == 1).count();
            // Five standard errors of 16,000 fair bits.
            assert!(ones.abs_diff(8000) < 317, "bit {bit}: {ones}");
        }
    }

    #[test]
    fn an_answer_outside_the_ball_is_projected_onto_it() {
        let rounding = GridRounding {
            radius: 5.0,
            scale: 1,
        };
        let release = rounding.release(vec![300.0, -400.0], &mut rng(1));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(release.values()[0], 3.0) && near(release.values()[1], -4.0));
        assert_eq!(rounding.project(vec![3.0, -3.0]), [3.0, -3.0]);
    }

    #[test]
    fn values_beyond_the_grid_are_clamped_to_its_end() {
        let rounding = GridRounding {
            radius: FARTHEST as f64 * SPACING,
            scale: 1 << 61,
        };
        let mut rng = rng(2);
        let mut clamped = 0;
        for _ in 0..100 {
            let release = rounding.release(vec![-rounding.radius], &mut rng);
            clamped += u32::from(release.units() == [-FARTHEST]);
        }
        // Half of them, and five standard errors.
        assert!((25..=75).contains(&clamped), "{clamped}");
    }

    #[test]
    fn the_noise_hides_the_rounding_of_the_projection() {
        // Half of d roundings in the norm, and three more, for coordinates up to R.
        let rounding = GridRounding::new(&error_bound(0.0, 0.0, 1e6), 100, 1.0).unwrap();
        assert!(rounding.noise_scale() >= 10.0 * 53.0 * f64::EPSILON / 2.0 * 1e6);
    }

    #[test]
    fn rounding_that_is_too_coarse_is_refused() {
        let fine = error_bound(1e-10, 1e-12, 10.0);
        assert!(GridRounding::new(&fine, 10, 1e-5).is_ok());
        for (bound, slack) in [
            (fine, 0.0),
            (fine, f64::NAN),
            (fine, 1e-300),
            (error_bound(1e-10, 0.2, 10.0), 1e-5),
            (error_bound(5.0, 1e-12, 10.0), 1e-5),
            (error_bound(f64::NAN, 1e-12, 10.0), 1e-5),
            (error_bound(1e-10, 1e-12, f64::NAN), 1e-5),
        ] {
            assert_eq!(GridRounding::new(&bound, 10, slack), Err(TooCoarse));
        }
    }
}
