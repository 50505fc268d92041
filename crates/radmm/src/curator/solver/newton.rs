//! Newton's method with steps chosen by slopes.
//!
//! Along a direction the slope of a convex function only grows, so slopes alone tell a good step: one at whose end `F` still
//! falls, though less than at its start, or one that has overshot little and shrunk the least `‖∇F‖` so far by a tenth. No
//! difference of nearly equal values is ever taken. Steps of the first kind lower `F` by a share of what there is to gain;
//! steps of the second kind can raise it, but only as often as a gradient can shrink so. Hence it converges from anywhere.
//!
//! Up to [`DENSE_COLUMNS`] columns the direction comes from a Cholesky factor, above by preconditioned conjugate gradients.
//! Where the method comes to rest before the tolerance is met, the spacing of doubles is in the way, and it goes on with
//! points of doubled precision.

use super::double_double::Point;
use super::objective::Objective;
use super::{Evaluation, Target};
use crate::linalg::cholesky::Cholesky;
use crate::linalg::dot::{dot, norm};

/// The number of columns from which on a factor costs more than the products of conjugate gradients.
pub(in crate::curator) const DENSE_COLUMNS: usize = 2048;
const NEWTON_STEPS: usize = 1000;
/// Stages of widened bends; the widest is a thousand million times as wide as the loss's own.
const STAGES: u32 = 30;
/// Steps without the gradient having shrunk by a tenth, after which the method counts as having come to rest.
const PATIENCE: usize = 40;
const BISECTIONS: usize = 100;
/// Attempts to factor a Hessian with a larger and larger shift.
const SHIFTS: usize = 60;

impl Objective<'_> {
    /// Newton's method, and again from a better start if need be.
    pub(in crate::curator) fn by_newton(&self, near: &[f64], target: &Target) -> Evaluation {
        let found = self.newton(near, target);
        if found.meets(target) {
            return found;
        }
        // Far out a loss is two straight lines and a sharp bend, and Newton's method sees nothing of the bends of other
        // rows. So the bends are widened to the size of the margins there, and narrowed again step by step.
        let rough = Target {
            tolerance: (1e-9 * self.weight).max(target.tolerance),
            doubled: false,
        };
        let mut point = near.to_vec();
        for stage in (1..=STAGES).rev() {
            let softened = Objective {
                shards: self.shards.clone(),
                loss: self.loss.softened(stage),
                ..*self
            };
            point = softened.newton(&point, &rough).point.into_values();
        }
        self.newton(&point, target)
    }

    /// Newton's method from a starting point, to the tolerance or to where it comes to rest.
    pub(in crate::curator) fn newton(&self, near: &[f64], target: &Target) -> Evaluation {
        let tolerance = target.tolerance;
        let mut here = self.at(Point::plain(near));
        let (mut best, mut idle) = (here.residual, 0);
        for _ in 0..NEWTON_STEPS {
            if here.residual <= tolerance && !here.meets(target) {
                here = self.at(here.point.doubled());
                (best, idle) = (here.residual, 0);
            }
            if here.meets(target) {
                break;
            }
            let direction = if near.len() <= DENSE_COLUMNS {
                self.direction_by_factor(&here)
            } else {
                self.direction_by_products(&here)
            };
            let enough = (0.9 * best).max(tolerance);
            here = match self.step(&here, &direction, enough) {
                Some(there) if idle < PATIENCE && !here.point.is_at_rest(&there.point) => there,
                _ if here.point.is_doubled() => break,
                _ => {
                    idle = 0;
                    self.at(here.point.doubled())
                }
            };
            if here.residual <= 0.9 * best {
                (best, idle) = (here.residual, 0);
            } else {
                idle += 1;
            }
        }
        here
    }

    /// A good step along the direction, found by bisection; `enough` is a gradient norm worth overshooting for.
    pub(in crate::curator) fn step(
        &self,
        here: &Evaluation,
        direction: &[f64],
        enough: f64,
    ) -> Option<Evaluation> {
        let slope = dot(&here.gradient, direction);
        let (mut low, mut high, mut step) = (0.0, 1.0, 1.0);
        for _ in 0..BISECTIONS {
            let there = self.at(here.point.moved(step, direction));
            let end = dot(&there.gradient, direction);
            let falls = end <= 0.0 && (step == 1.0 || end >= 0.9 * slope);
            let shrinks = there.residual <= enough && end <= -0.1 * slope;
            if falls || shrinks {
                return Some(there);
            }
            if end <= 0.0 {
                low = step;
            } else {
                high = step;
            }
            step = (low + high) / 2.0;
        }
        None
    }

    /// `−H⁻¹∇F` by a Cholesky factor of `H = Σ_n curvature_n z_n z_nᵀ + m I`.
    pub(in crate::curator) fn direction_by_factor(&self, here: &Evaluation) -> Vec<f64> {
        let d = here.gradient.len();
        let hessian = self.hessian(&here.point);
        // In exact arithmetic m I makes H positive definite. If rounding hides that, a larger multiple still gives a
        // direction of descent: ∇Fᵀ H (H + s I)⁻¹ ∇F > 0.
        let mut direction: Vec<f64> = here.gradient.iter().map(|g| -g).collect();
        let mut shift = self.modulus;
        for _ in 0..SHIFTS {
            if let Some(factor) = Cholesky::of(hessian.clone(), d, shift) {
                factor.solve(&mut direction);
                break;
            }
            shift = (shift * 16.0).max(f64::EPSILON);
        }
        direction
    }

    /// `p` with `‖H p + ∇F‖ ≤ κ‖∇F‖`, `κ < 1`, by conjugate gradients with the diagonal of `H` as preconditioner.
    pub(in crate::curator) fn direction_by_products(&self, here: &Evaluation) -> Vec<f64> {
        let d = here.gradient.len();
        let curvatures = self.curvatures(&here.point);
        let mut diagonal = vec![self.modulus; d];
        for ((chunk, _), curvatures) in self.chunks().into_iter().zip(&curvatures) {
            chunk.each_row(|n, columns, values, _| {
                for (&column, &value) in columns.iter().zip(values) {
                    diagonal[column as usize] += curvatures[n] * value * value;
                }
            });
        }
        // Superlinear convergence: the nearer the minimum, the more exact the direction.
        let enough = here.residual.sqrt().min(0.1) * here.residual;
        let mut direction = vec![0.0; d];
        let mut rest: Vec<f64> = here.gradient.iter().map(|g| -g).collect();
        let mut scaled: Vec<f64> = rest.iter().zip(&diagonal).map(|(r, h)| r / h).collect();
        let mut search = scaled.clone();
        let mut energy = dot(&rest, &scaled);
        for _ in 0..10 * d {
            if norm(&rest) <= enough {
                break;
            }
            let product = self.hessian_times(&curvatures, &search);
            let step = energy / dot(&search, &product);
            for k in 0..d {
                direction[k] += step * search[k];
                rest[k] -= step * product[k];
                scaled[k] = rest[k] / diagonal[k];
            }
            let next_energy = dot(&rest, &scaled);
            let ratio = next_energy / energy;
            energy = next_energy;
            for (s, z) in search.iter_mut().zip(&scaled) {
                *s = z + ratio * *s;
            }
        }
        direction
    }
}
