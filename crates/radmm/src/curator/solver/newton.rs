//! Newton's method with a line search on slopes.
//!
//! The slope of a convex function only grows along a direction, so slopes alone identify an acceptable step. Either `F`
//! still falls at its end, though less than at its start, or it has overshot little and shrunk the least `‖∇F‖` so far
//! by a tenth. No difference of nearly equal values is ever taken. Steps of the first kind lower `F` by a share of the
//! possible gain. Steps of the second kind can raise it, but only as often as a gradient can shrink by a tenth. Hence
//! the method converges from anywhere.
//!
//! The direction comes from a Cholesky factor where that takes less time than preconditioned conjugate gradients
//! ([`cost`](super::cost)). Where the method stalls before the tolerance is met, the spacing of doubles is the limit, and
//! it continues with points in double-double arithmetic.

use super::double_double::Point;
use super::objective::Objective;
use super::rows_hessian::RowsHessian;
use super::{Evaluation, Target};
use crate::curator::row_passes::PassFailed;
use crate::linalg::dot::{dot, norm};

const MAX_STEPS: usize = 1000;
/// The number of stages of smoothing. The smoothest loss has a bend a thousand million times as wide as the loss itself.
const SMOOTHING_STAGES: u32 = 30;
/// The number of steps without the gradient shrinking by a tenth after which the method counts as stalled.
const MAX_IDLE_STEPS: usize = 40;
const MAX_BISECTIONS: usize = 100;
/// The number of attempts to factor a Hessian with increasing shifts.
const MAX_SHIFTS: usize = 60;

impl Objective<'_> {
    /// Minimises by Newton's method, and again from a better start if that fails.
    pub(in crate::curator) fn minimise_by_newton(
        &self,
        near: &[f64],
        target: &Target,
    ) -> Result<Evaluation, PassFailed> {
        let found = self.newton(near, target)?;
        if found.meets(target) {
            return Ok(found);
        }
        // Far out, a loss is two straight lines and a sharp bend, and Newton's method does not see the bends of other
        // rows. So the bends are widened to the size of the margins there, and narrowed again stage by stage.
        let loose = Target {
            tolerance: (1e-9 * self.weight).max(target.tolerance),
            doubled: false,
        };
        let mut point = near.to_vec();
        for stage in (1..=SMOOTHING_STAGES).rev() {
            let smoothed = Objective {
                loss: self.loss.smoothed(stage),
                ..*self
            };
            point = smoothed.newton(&point, &loose)?.point.into_values();
        }
        self.newton(&point, target)
    }

    /// Runs Newton's method from a starting point until it meets the target or stalls.
    pub(in crate::curator) fn newton(
        &self,
        near: &[f64],
        target: &Target,
    ) -> Result<Evaluation, PassFailed> {
        let tolerance = target.tolerance;
        let mut here = self.evaluate(Point::plain(near))?;
        let (mut best, mut idle) = (here.residual, 0);
        let by_factor = self.factor_pays();
        for _ in 0..MAX_STEPS {
            if here.residual <= tolerance && !here.meets(target) {
                here = self.evaluate(here.point.doubled())?;
                (best, idle) = (here.residual, 0);
            }
            if here.meets(target) {
                break;
            }
            let direction = if by_factor {
                self.direction_by_cholesky(&here)?
            } else {
                self.direction_by_conjugate_gradients(&here)?
            };
            let sufficient = (0.9 * best).max(tolerance);
            here = match self.line_search(&here, &direction, sufficient)? {
                Some(there)
                    if idle < MAX_IDLE_STEPS && !here.point.is_within_rounding_of(&there.point) =>
                {
                    there
                }
                _ if here.point.is_doubled() => break,
                _ => {
                    idle = 0;
                    self.evaluate(here.point.doubled())?
                }
            };
            if here.residual <= 0.9 * best {
                (best, idle) = (here.residual, 0);
            } else {
                idle += 1;
            }
        }
        Ok(here)
    }

    /// Finds an acceptable step along the direction by bisection; `sufficient` is a gradient norm at which a step may
    /// overshoot.
    pub(in crate::curator) fn line_search(
        &self,
        here: &Evaluation,
        direction: &[f64],
        sufficient: f64,
    ) -> Result<Option<Evaluation>, PassFailed> {
        let slope = dot(&here.gradient, direction);
        let (mut low, mut high, mut step) = (0.0, 1.0, 1.0);
        for _ in 0..MAX_BISECTIONS {
            let there = self.evaluate(here.point.moved(step, direction))?;
            let end = dot(&there.gradient, direction);
            let falls = end <= 0.0 && (step == 1.0 || end >= 0.9 * slope);
            let shrinks = there.residual <= sufficient && end <= -0.1 * slope;
            if falls || shrinks {
                return Ok(Some(there));
            }
            if end <= 0.0 {
                low = step;
            } else {
                high = step;
            }
            step = (low + high) / 2.0;
        }
        Ok(None)
    }

    /// Returns `−H⁻¹∇F` by a Cholesky factor of `H = Σ_n curvature_n z_n z_nᵀ + m I`.
    pub(in crate::curator) fn direction_by_cholesky(
        &self,
        here: &Evaluation,
    ) -> Result<Vec<f64>, PassFailed> {
        let hessian = RowsHessian::new(self, &here.point)?;
        // In exact arithmetic m I makes H positive definite. If rounding hides that, a larger multiple still gives a
        // direction of descent: ∇Fᵀ H (H + s I)⁻¹ ∇F > 0.
        let mut direction: Vec<f64> = here.gradient.iter().map(|g| -g).collect();
        let mut shift = self.modulus;
        for _ in 0..MAX_SHIFTS {
            if let Some(factor) = hessian.factor(shift) {
                hessian.solve(self, (&factor, shift), &mut direction)?;
                break;
            }
            shift = (shift * 16.0).max(f64::EPSILON);
        }
        Ok(direction)
    }

    /// Returns `p` with `‖H p + ∇F‖ ≤ κ‖∇F‖`, `κ < 1`, by conjugate gradients with the diagonal of `H` as
    /// preconditioner.
    pub(in crate::curator) fn direction_by_conjugate_gradients(
        &self,
        here: &Evaluation,
    ) -> Result<Vec<f64>, PassFailed> {
        let d = here.gradient.len();
        let curvatures = self.curvatures(&here.point);
        let diagonal = self.hessian_diagonal(&curvatures)?;
        // Superlinear convergence: the nearer the minimum, the more accurate the direction.
        let sufficient = here.residual.sqrt().min(0.1) * here.residual;
        let mut direction = vec![0.0; d];
        let mut residual: Vec<f64> = here.gradient.iter().map(|g| -g).collect();
        let mut preconditioned: Vec<f64> =
            residual.iter().zip(&diagonal).map(|(r, h)| r / h).collect();
        let mut search = preconditioned.clone();
        let mut energy = dot(&residual, &preconditioned);
        for _ in 0..10 * d {
            if norm(&residual) <= sufficient {
                break;
            }
            let product = self.hessian_product(&curvatures, &search)?;
            let step = energy / dot(&search, &product);
            for k in 0..d {
                direction[k] += step * search[k];
                residual[k] -= step * product[k];
                preconditioned[k] = residual[k] / diagonal[k];
            }
            let next_energy = dot(&residual, &preconditioned);
            let ratio = next_energy / energy;
            energy = next_energy;
            for (s, z) in search.iter_mut().zip(&preconditioned) {
                *s = z + ratio * *s;
            }
        }
        Ok(direction)
    }
}
