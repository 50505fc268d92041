//! The likelihood of an answer under each of the two data sets, for rows in the hypothesis.
//!
//! The auditor knows every row but one, and that this one is one of two. For each of the two he computes the noise that would
//! have led to the answer, and its density:
//! ```text
//! objective   e = −(∇O(f) + b + a·f)          density of f:  ν(e)·det ∇²F(f)
//! output      e = f − argmin F                density of f:  ν(e)
//! gradient    e = g − ∇O(f)                   density of g:  ν(e)
//! ```
//! Only the point-wise losses are shared with the mechanism under attack.

use radmm::privacy::{IdealRelease, NoiseDistribution, PrivacyEvent};
use radmm::problem::Problem;
use radmm::protocol::query::Query;

pub(super) type Vector = [f64; 2];

/// The hypothesis that the victim has one of the two data sets.
#[derive(Clone, Debug)]
pub(super) struct Hypothesis {
    /// `z = y·x`.
    pub rows: Vec<Vector>,
    pub problem: Problem,
}

/// The noise that an answer implies.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImpliedNoise {
    /// `e`.
    pub noise: Vector,
    /// The log-density of the answer, up to a constant.
    pub ln_density: f64,
}

impl Hypothesis {
    /// Returns the noise with which this data set gives the answer; `None` if the answer has no noise.
    pub(super) fn implied_noise(
        &self,
        query: &Query,
        event: &PrivacyEvent,
        answer: &[f64],
    ) -> Option<ImpliedNoise> {
        let answer = vector(answer);
        match (&event.ideal, query) {
            (
                IdealRelease::Objective { law, .. },
                Query::Minimise {
                    quadratic, linear, ..
                },
            ) => {
                let here = self.at(answer, *quadratic, vector(linear));
                let noise = here.gradient.map(|slope| -slope);
                Some(ImpliedNoise {
                    noise,
                    ln_density: ln_density(law, noise) + libm::log(here.determinant()),
                })
            }
            (
                IdealRelease::Additive { law, .. },
                Query::Minimise {
                    quadratic, linear, ..
                },
            ) => {
                let exact = self.minimiser(*quadratic, vector(linear));
                Some(additive(law, answer, exact))
            }
            (IdealRelease::Additive { law, .. }, Query::Gradient { at }) => {
                let exact = self.at(vector(at), 0.0, [0.0; 2]).gradient;
                Some(additive(law, answer, exact))
            }
            _ => None,
        }
    }

    /// Returns `∇F` and `∇²F` of `F(f) = O(f) + ⟨b, f⟩ + (a/2)‖f‖²`.
    fn at(&self, f: Vector, a: f64, b: Vector) -> Derivatives {
        let Problem {
            loss,
            weight,
            ridge,
            nodes,
            ..
        } = self.problem;
        let share = weight / self.rows.len() as f64;
        let modulus = ridge / f64::from(nodes) + a;
        let mut gradient = [modulus * f[0] + b[0], modulus * f[1] + b[1]];
        let mut hessian = [modulus, 0.0, modulus];
        for z in &self.rows {
            let (slope, bend) = loss.slope_and_curvature(f[0] * z[0] + f[1] * z[1]);
            for (gradient, z) in gradient.iter_mut().zip(z) {
                *gradient += share * slope * z;
            }
            let products = [z[0] * z[0], z[0] * z[1], z[1] * z[1]];
            for (entry, product) in hessian.iter_mut().zip(products) {
                *entry += share * bend * product;
            }
        }
        Derivatives { gradient, hessian }
    }

    /// Returns the minimiser by Newton's method, with steps halved until the gradient shrinks. The function is strongly convex, so
    /// it converges.
    fn minimiser(&self, a: f64, b: Vector) -> Vector {
        let modulus = self.problem.ridge / f64::from(self.problem.nodes) + a;
        // The minimiser without rows.
        let mut f = b.map(|b| -b / modulus);
        let mut here = self.at(f, a, b);
        for _ in 0..200 {
            let step = here.newton();
            let mut length = 1.0;
            let there = loop {
                let point = [f[0] - length * step[0], f[1] - length * step[1]];
                let next = self.at(point, a, b);
                if norm(next.gradient) < norm(here.gradient) {
                    break Some((point, next));
                }
                length /= 2.0;
                if length < 1e-9 {
                    break None;
                }
            };
            match there {
                Some(next) => (f, here) = next,
                None => break,
            }
        }
        f
    }
}

/// Gradient and Hessian at a point.
struct Derivatives {
    gradient: Vector,
    /// The upper triangle.
    hessian: [f64; 3],
}

impl Derivatives {
    fn determinant(&self) -> f64 {
        let [xx, xy, yy] = self.hessian;
        xx * yy - xy * xy
    }

    /// Returns the Newton step.
    fn newton(&self) -> Vector {
        let ([xx, xy, yy], [x, y]) = (self.hessian, self.gradient);
        let determinant = self.determinant();
        [
            (yy * x - xy * y) / determinant,
            (xx * y - xy * x) / determinant,
        ]
    }
}

fn additive(law: &NoiseDistribution, answer: Vector, exact: Vector) -> ImpliedNoise {
    let noise = difference(answer, exact);
    ImpliedNoise {
        noise,
        ln_density: ln_density(law, noise),
    }
}

/// Returns the log-density of noise, up to a constant that is the same for both data sets.
fn ln_density(law: &NoiseDistribution, noise: Vector) -> f64 {
    match *law {
        NoiseDistribution::Gamma { rate } => -rate * norm(noise),
        NoiseDistribution::Laplace { rate } => -rate * (noise[0].abs() + noise[1].abs()),
        NoiseDistribution::Gaussian { sigma } => -(norm(noise) / sigma).powi(2) / 2.0,
    }
}

pub(super) fn difference(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1]]
}

pub(super) fn norm(v: Vector) -> f64 {
    libm::hypot(v[0], v[1])
}

/// Returns a vector of an attack, which has two coordinates.
fn vector(values: &[f64]) -> Vector {
    [values[0], values[1]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use radmm::privacy::SlopeCurve;
    use radmm::problem::Loss;

    fn hypothesis(loss: Loss) -> Hypothesis {
        Hypothesis {
            rows: vec![[0.6, 0.5], [-0.9, 0.1], [0.2, -0.7]],
            problem: Problem {
                loss,
                weight: 3.0,
                ridge: 0.5,
                nodes: 2,
                tolerance: 1e-10,
                shape: None,
            },
        }
    }

    #[test]
    fn the_gradient_vanishes_at_the_minimiser() {
        for loss in [Loss::Logistic, Loss::SmoothHinge { width: 0.5 }] {
            for b in [[0.0, 0.0], [2.0, -1.0], [3000.0, 4000.0]] {
                let hypothesis = hypothesis(loss);
                let f = hypothesis.minimiser(1.5, b);
                let slope = norm(hypothesis.at(f, 1.5, b).gradient);
                assert!(slope <= 1e-12 * (1.0 + norm(b)), "{loss:?} {b:?}: {slope}");
            }
        }
    }

    #[test]
    fn the_hessian_is_the_derivative_of_the_gradient() {
        let (hypothesis, f, step) = (hypothesis(Loss::Logistic), [0.3, -0.8], 1e-6);
        let of = |f| hypothesis.at(f, 1.0, [0.0; 2]).gradient;
        let along = |k: usize| {
            let (mut up, mut down) = (f, f);
            up[k] += step;
            down[k] -= step;
            difference(of(up), of(down)).map(|d| d / (2.0 * step))
        };
        let ([xx, xy], [yx, yy]) = (along(0), along(1));
        let hessian = hypothesis.at(f, 1.0, [0.0; 2]).hessian;
        for (exact, seen) in hessian.iter().zip([xx, xy, yy]) {
            assert!((exact - seen).abs() < 1e-8, "{exact} {seen}");
        }
        assert!((xy - yx).abs() < 1e-8);
    }

    #[test]
    fn densities_of_answers_add_up_to_one() {
        // The midpoint rule over the plane, cells of a fortieth; the tails beyond are below e^−20.
        let hypothesis = hypothesis(Loss::Logistic);
        let query = Query::Minimise {
            quadratic: 2.0,
            linear: vec![0.4, -0.3],
            near: vec![0.0; 2],
        };
        let cell = 1.0 / 40.0;
        let sum = |law| {
            let event = PrivacyEvent::from(IdealRelease::Objective {
                sensitivity: 2.0,
                spread: 0.1,
                curve: SlopeCurve::Logistic,
                law,
            });
            let mut sum = 0.0;
            for i in -400..400 {
                for j in -400..400 {
                    let f = [(f64::from(i) + 0.5) * cell, (f64::from(j) + 0.5) * cell];
                    let explained = hypothesis.implied_noise(&query, &event, &f).unwrap();
                    sum += explained.ln_density.exp() * cell * cell;
                }
            }
            sum
        };
        for (law, whole) in [
            // ∫ exp(−α‖e‖₂) over the plane is 2π/α², and ∫ exp(−α‖e‖₁) is (2/α)².
            (
                NoiseDistribution::Gamma { rate: 2.0 },
                std::f64::consts::TAU / 4.0,
            ),
            (NoiseDistribution::Laplace { rate: 2.0 }, 1.0),
        ] {
            let share: f64 = sum(law) / whole;
            assert!((share - 1.0).abs() < 1e-3, "{law:?}: {share}");
        }
    }
}
