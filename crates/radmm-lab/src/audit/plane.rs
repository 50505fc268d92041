//! What the auditor computes for himself: rows in the plane, and the noise that an answer would need to have had.
//!
//! He knows every row but one, and of that one that it is one of two. For each of the two he asks which noise would have led
//! to the answer, and how likely that is:
//! ```text
//! objective   e = −(∇O(f) + b + a·f)          density of f:  ν(e)·det ∇²F(f)
//! output      e = f − argmin F                density of f:  ν(e)
//! gradient    e = g − ∇O(f)                   density of g:  ν(e)
//! ```
//! Nothing here is shared with the mechanism that is attacked but the point-wise losses.

use radmm::account::{Event, Ideal};
use radmm::private::{Law, Problem};
use radmm::public::release::Query;

pub(super) type Vector = [f64; 2];

/// Everything about one of the two data sets.
#[derive(Clone, Debug)]
pub(super) struct Plane {
    /// `z = y·x`.
    pub rows: Vec<Vector>,
    pub problem: Problem,
}

/// An answer, explained by noise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Explained {
    /// `e`.
    pub noise: Vector,
    /// Of the answer, but for a constant.
    pub ln_density: f64,
}

impl Plane {
    /// The noise that this data set needs to give that answer; `None` if the answer has none.
    pub(super) fn explain(
        &self,
        query: &Query,
        event: &Event,
        answer: &[f64],
    ) -> Option<Explained> {
        let answer = vector(answer);
        match (&event.ideal, query) {
            (
                Ideal::Objective { law, .. },
                Query::Minimise {
                    quadratic, linear, ..
                },
            ) => {
                let place = self.at(answer, *quadratic, vector(linear));
                let noise = place.gradient.map(|slope| -slope);
                Some(Explained {
                    noise,
                    ln_density: ln_density(law, noise) + libm::log(place.determinant()),
                })
            }
            (
                Ideal::Additive { law, .. },
                Query::Minimise {
                    quadratic, linear, ..
                },
            ) => {
                let exact = self.minimiser(*quadratic, vector(linear));
                Some(additive(law, answer, exact))
            }
            (Ideal::Additive { law, .. }, Query::Gradient { at }) => {
                let exact = self.at(vector(at), 0.0, [0.0; 2]).gradient;
                Some(additive(law, answer, exact))
            }
            _ => None,
        }
    }

    /// `∇F` and `∇²F` of `F(f) = O(f) + ⟨b, f⟩ + (a/2)‖f‖²`.
    fn at(&self, f: Vector, a: f64, b: Vector) -> Place {
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
        Place { gradient, hessian }
    }

    /// Newton's method, with steps halved until the gradient shrinks. The function is strongly convex, so it converges.
    fn minimiser(&self, a: f64, b: Vector) -> Vector {
        let modulus = self.problem.ridge / f64::from(self.problem.nodes) + a;
        // Where it is if rows do not matter.
        let mut f = b.map(|b| -b / modulus);
        let mut here = self.at(f, a, b);
        for _ in 0..200 {
            let step = here.newton();
            let mut length = 1.0;
            let there = loop {
                let point = [f[0] - length * step[0], f[1] - length * step[1]];
                let place = self.at(point, a, b);
                if norm(place.gradient) < norm(here.gradient) {
                    break Some((point, place));
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

struct Place {
    gradient: Vector,
    /// Its upper triangle.
    hessian: [f64; 3],
}

impl Place {
    fn determinant(&self) -> f64 {
        let [xx, xy, yy] = self.hessian;
        xx * yy - xy * xy
    }

    fn newton(&self) -> Vector {
        let ([xx, xy, yy], [x, y]) = (self.hessian, self.gradient);
        let determinant = self.determinant();
        [
            (yy * x - xy * y) / determinant,
            (xx * y - xy * x) / determinant,
        ]
    }
}

fn additive(law: &Law, answer: Vector, exact: Vector) -> Explained {
    let noise = difference(answer, exact);
    Explained {
        noise,
        ln_density: ln_density(law, noise),
    }
}

/// But for a constant, which is the same for both data sets.
fn ln_density(law: &Law, noise: Vector) -> f64 {
    match *law {
        Law::Gamma { rate } => -rate * norm(noise),
        Law::Gaussian { sigma } => -(norm(noise) / sigma).powi(2) / 2.0,
    }
}

pub(super) fn difference(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1]]
}

pub(super) fn norm(v: Vector) -> f64 {
    v[0].hypot(v[1])
}

/// Every vector of an attack has two coordinates.
fn vector(values: &[f64]) -> Vector {
    [values[0], values[1]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use radmm::private::Loss;
    use radmm::public::release::Precision;

    fn plane(loss: Loss) -> Plane {
        Plane {
            rows: vec![[0.6, 0.5], [-0.9, 0.1], [0.2, -0.7]],
            problem: Problem {
                loss,
                weight: 3.0,
                ridge: 0.5,
                nodes: 2,
                tolerance: 1e-10,
                precision: Precision::Grid,
            },
        }
    }

    #[test]
    fn the_minimiser_has_no_slope() {
        for loss in [Loss::Logistic, Loss::SmoothHinge { width: 0.5 }] {
            for b in [[0.0, 0.0], [2.0, -1.0], [3000.0, 4000.0]] {
                let plane = plane(loss);
                let f = plane.minimiser(1.5, b);
                let slope = norm(plane.at(f, 1.5, b).gradient);
                assert!(slope <= 1e-12 * (1.0 + norm(b)), "{loss:?} {b:?}: {slope}");
            }
        }
    }

    #[test]
    fn the_hessian_is_the_slope_of_the_gradient() {
        let (plane, f, step) = (plane(Loss::Logistic), [0.3, -0.8], 1e-6);
        let of = |f| plane.at(f, 1.0, [0.0; 2]).gradient;
        let along = |k: usize| {
            let (mut up, mut down) = (f, f);
            up[k] += step;
            down[k] -= step;
            difference(of(up), of(down)).map(|d| d / (2.0 * step))
        };
        let ([xx, xy], [yx, yy]) = (along(0), along(1));
        let hessian = plane.at(f, 1.0, [0.0; 2]).hessian;
        for (exact, seen) in hessian.iter().zip([xx, xy, yy]) {
            assert!((exact - seen).abs() < 1e-8, "{exact} {seen}");
        }
        assert!((xy - yx).abs() < 1e-8);
    }

    #[test]
    fn densities_of_answers_add_up_to_one() {
        // The midpoint rule over the plane, cells of a fortieth; the tails beyond are below e^−20.
        let plane = plane(Loss::Logistic);
        let law = Law::Gamma { rate: 2.0 };
        let query = Query::Minimise {
            quadratic: 2.0,
            linear: vec![0.4, -0.3],
            near: vec![0.0; 2],
        };
        let event = Event::from(Ideal::Objective {
            sensitivity: 2.0,
            spread: 0.1,
            one_signed: true,
            law,
        });
        let cell = 1.0 / 40.0;
        let mut sum = 0.0;
        for i in -400..400 {
            for j in -400..400 {
                let f = [(f64::from(i) + 0.5) * cell, (f64::from(j) + 0.5) * cell];
                let explained = plane.explain(&query, &event, &f).unwrap();
                sum += explained.ln_density.exp() * cell * cell;
            }
        }
        // ∫ exp(−α‖e‖) over the plane is 2π/α².
        let whole = std::f64::consts::TAU / 4.0;
        assert!((sum / whole - 1.0).abs() < 1e-3, "{}", sum / whole);
    }
}
