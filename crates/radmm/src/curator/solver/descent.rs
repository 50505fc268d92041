//! Gradient descent, the step of the ladder that always converges.

use super::Evaluation;
use super::double_double::Point;
use super::objective::Objective;
use crate::curator::row_passes::PassFailed;

impl Objective<'_> {
    /// Minimises by gradient descent in double-double arithmetic.
    ///
    /// A step of `1/L` lowers `F` by at least `‖g‖²/4L` as long as the computed gradient `g` is four times as large as
    /// its error, and `‖∇F‖² ≥ 2m(F − min F)`. So after the steps taken here the gradient is below any tolerance of
    /// more than four times that error. The number of steps grows with `L/m`. The method is hardly ever needed.
    pub(in crate::curator) fn minimise_by_descent(
        &self,
        near: &[f64],
        tolerance: f64,
    ) -> Result<Evaluation, PassFailed> {
        let mut here = self.evaluate(Point::plain(near).doubled())?;
        let lipschitz = self.lipschitz();
        let condition = lipschitz / self.modulus;
        let log_decrease = 2.0 * libm::log(here.residual / tolerance) + libm::log(4.0 * condition);
        let steps = (3.2 * condition * log_decrease.max(1.0)).ceil() as u64;
        for _ in 0..steps {
            if here.residual <= tolerance {
                break;
            }
            here = self.evaluate(here.point.moved(-1.0 / lipschitz, &here.gradient))?;
        }
        Ok(here)
    }
}
