//! The likelihood of an answer under each of the two data sets, for rows in the hypothesis.
//!
//! The auditor knows every row but one, and that this one is one of two. For each of the two he computes the noise that would
//! have led to the answer, and its density:
//! ```text
//! objective   e = −(∇O(f) + b + a·f)          density of f:  ν(e)·det ∇²F(f)
//! output      e = f − argmin F                density of f:  ν(e)
//! gradient    e = g − ∇O(f)                   density of g:  ν(e)
//! sums        e = s − scale·Σ_n (…)           density of s:  ν(e)
//! ```
//! Only the point-wise losses and the metric, which is public, are shared with the mechanism under attack.

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
#[derive(Clone, Debug)]
pub(super) struct ImpliedNoise {
    /// `e`, with as many numbers as the answer has.
    pub noise: Vec<f64>,
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
        match (&event.ideal, query) {
            (
                IdealRelease::Objective { law, .. },
                Query::Minimise {
                    quadratic, linear, ..
                },
            ) => {
                let here = self.at(vector(answer), *quadratic, vector(linear));
                let noise = here.gradient.map(|slope| -slope);
                Some(ImpliedNoise {
                    ln_density: ln_density(law, &noise) + libm::log(here.determinant()),
                    noise: noise.to_vec(),
                })
            }
            (IdealRelease::Additive { law, .. }, _) => {
                let noise = difference(answer, &self.exact(query));
                Some(ImpliedNoise {
                    ln_density: ln_density(law, &noise),
                    noise,
                })
            }
            _ => None,
        }
    }

    /// Returns the answer without noise.
    fn exact(&self, query: &Query) -> Vec<f64> {
        match query {
            Query::Minimise {
                quadratic, linear, ..
            } => self.minimiser(*quadratic, vector(linear)).to_vec(),
            Query::Gradient { at } => self.at(vector(at), 0.0, [0.0; 2]).gradient.to_vec(),
            Query::GradientSum { at, scale, metric } => self.sum(*scale, 2, |z| {
                let z = match metric {
                    Some(metric) => unit(&metric.apply(&z)),
                    None => z.to_vec(),
                };
                let margin = at[0] * z[0] + at[1] * z[1];
                let (slope, _) = self.problem.loss.slope_and_curvature(margin);
                z.into_iter().map(|z| slope * z).collect()
            }),
            // Labels are positive, so that a row is `z`.
            Query::GramSum { scale, .. } => self.sum(*scale, 3, |[x, y]| {
                vec![x * x, std::f64::consts::SQRT_2 * x * y, y * y]
            }),
            Query::RowSum { scale, .. } => self.sum(*scale, 2, |z| z.to_vec()),
        }
    }

    /// Returns `scale·Σ_n term(z_n)`.
    fn sum(&self, scale: f64, width: usize, term: impl Fn(Vector) -> Vec<f64>) -> Vec<f64> {
        let mut sum = vec![0.0; width];
        for z in &self.rows {
            for (sum, term) in sum.iter_mut().zip(term(*z)) {
                *sum += scale * term;
            }
        }
        sum
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
                if norm(&next.gradient) < norm(&here.gradient) {
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

/// Returns the log-density of noise, up to a constant that is the same for both data sets.
fn ln_density(law: &NoiseDistribution, noise: &[f64]) -> f64 {
    match *law {
        NoiseDistribution::Gamma { rate } => -rate * norm(noise),
        NoiseDistribution::Laplace { rate } => -rate * noise.iter().map(|e| e.abs()).sum::<f64>(),
        NoiseDistribution::Gaussian { sigma } => -(norm(noise) / sigma).powi(2) / 2.0,
    }
}

pub(super) fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

pub(super) fn norm(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |norm, x| libm::hypot(norm, *x))
}

/// Returns a vector of norm one in the same direction; zeros for zeros.
fn unit(v: &[f64]) -> Vec<f64> {
    let length = norm(v);
    let divided = |x: &f64| if length > 0.0 { x / length } else { 0.0 };
    v.iter().map(divided).collect()
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
    use radmm::protocol::metric::Metric;

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
                let slope = norm(&hypothesis.at(f, 1.5, b).gradient);
                assert!(slope <= 1e-12 * (1.0 + norm(&b)), "{loss:?} {b:?}: {slope}");
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
            let [up, down] = [of(up), of(down)];
            [0, 1].map(|k| (up[k] - down[k]) / (2.0 * step))
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

    #[test]
    fn sums_are_those_of_the_rows_in_any_metric() {
        let hypothesis = hypothesis(Loss::CutLogistic);
        let (scale, noise) = (4.0, 1.0);
        let exact = |query: Query| hypothesis.exact(&query);
        let close = |found: Vec<f64>, expected: &[f64]| {
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            }
        };
        close(exact(Query::RowSum { scale, noise }), &[-0.4, -0.4]);
        // 0.36 + 0.81 + 0.04, 0.3 − 0.09 − 0.14, and 0.25 + 0.01 + 0.49.
        let gram = [4.84, 0.28 * 2f64.sqrt(), 3.0];
        close(exact(Query::GramSum { scale, noise }), &gram);
        // All slopes are −½ at zero.
        let gradient = |metric| {
            let at = vec![0.0; 2];
            exact(Query::GradientSum { at, scale, metric })
        };
        close(gradient(None), &[0.2, 0.2]);
        // A is 2 along the first axis and next to nothing along the second: rows are (±1, 0).
        let metric = Metric::shared(2, &[0.0, 0.0, 1e12], 0.25);
        let found = gradient(metric.clone());
        // −½·4·(1 − 1 + 1), up to the square of the angles.
        assert!(
            metric.is_some() && (found[0] + 2.0).abs() < 1e-9,
            "{found:?}"
        );
        assert!(found[1].abs() < 1e-4, "{found:?}");
    }
}
