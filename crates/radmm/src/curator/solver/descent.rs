//! Gradient descent, the step of the ladder that always converges.

use super::Evaluation;
use super::double_double::Point;
use super::objective::Objective;

impl Objective<'_> {
    /// Gradient descent at twice the digits. A step of `1/L` lowers `F` by at least `‖g‖²/4L` as long as the computed gradient
    /// `g` is four times as large as its error, and `‖∇F‖² ≥ 2m(F − min F)`: so after the steps taken here it is below any
    /// tolerance of more than four times that error. It is as slow as `L/m` is large, and hardly ever needed.
    pub(in crate::curator) fn descend(&self, near: &[f64], tolerance: f64) -> Evaluation {
        let mut here = self.at(Point::plain(near).doubled());
        let lipschitz = self.lipschitz();
        let ratio = lipschitz / self.modulus;
        let far = 2.0 * libm::log(here.residual / tolerance) + libm::log(4.0 * ratio);
        let steps = (3.2 * ratio * far.max(1.0)).ceil() as u64;
        for _ in 0..steps {
            if here.residual <= tolerance {
                break;
            }
            here = self.at(here.point.moved(-1.0 / lipschitz, &here.gradient));
        }
        here
    }
}
