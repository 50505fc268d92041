//! The paper's sufficient condition for convergence (Theorem III.1), decided for a graph, `η`, `γ` and `M_i`.
//!
//! With degrees `D`, adjacency `A`, `D̃ = diag(2ηV_i + γ)`, `σ` its least entry, and gradients of Lipschitz constants
//! `M_i = C_i·c₁ + ρ/N` (public, since rows have norm at most one), `D_M = diag(M_i²)`, the condition asks for some `L > 0`,
//! `μ > 1` with
//! ```text
//! I + η(D+A)D̃⁻¹ ≻ Lμ/(2ση) · D_M(D−A)⁺
//! η(D+A) ≻ η(D+A)D̃⁻¹η(D−A) + (2/L) η(D+A)D̃⁻¹η(D+A) + Lμ/(2σ(μ−1)) · D_M
//! ```
//! where `X ≻ Y` says that the symmetric part of `X − Y` is positive definite. It is about R-ADMM with one recycled step a data
//! step and constant `η`, `γ`. docs/algorithm.md says what we think of its proof.
//!
//! The search misses nothing. `L` and `μ` enter the first inequality as `p = Lμ` alone, linearly, so that it is an upper bound
//! on `p`. At a given `L` a larger `p` only helps the second, whose last factor is `pL/(p−L)`; so `p` is taken just below its
//! bound. What is left of the second is concave in `L`: `−1/L` times a positive semidefinite matrix and `−pL/(p−L)` times
//! `D_M` both are, and so is the least eigenvalue. One golden-section search over `L` decides.
//!
//! The values found are then proved: see [`Certificate`].

use serde::Serialize;
use thiserror::Error;

use crate::graph::{Graph, NodeId};
use crate::linalg::symmetric::Symmetric;

/// The largest number of parties. They take about a minute, and the time grows with the cube of their number.
pub const MOST_NODES: usize = 256;

/// The relative distance of `p` from its bound: a millionth.
const CLOSEST: i32 = 20;
/// Steps of the golden-section search over `L/p = 1/(1 + e^−u)`, `u` from −60 to 30, which leave `u` to a hundred-millionth.
const SECTIONS: usize = 48;
/// The largest ratio of `M` and `η`, and of `η` and one: beyond, their squares and products overflow.
const FARTHEST: f64 = 1e100;
/// The relative accuracy of the least `γ`.
const FINE: f64 = 1e-4;

/// Values of `L` and `μ` for which the condition holds.
///
/// Both inequalities are proved in floating point: each holds whatever rounding did to its matrices, so a certificate is right
/// in exact arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Certificate {
    /// `γ`.
    pub damping: f64,
    /// `L`.
    pub l: f64,
    /// `μ`.
    pub mu: f64,
    /// The least eigenvalue of the first inequality's difference.
    pub first_margin: f64,
    /// The least eigenvalue of the second inequality's difference.
    pub second_margin: f64,
}

/// The reason why no damping can be certified.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Uncertifiable {
    /// `D+A` is singular, so the second inequality fails along its null vector whatever `γ`, `L` and `μ` are.
    #[error(
        "the graph is bipartite: D+A is singular, and the condition fails for every damping; one edge within a side would change that"
    )]
    Bipartite,
    /// Eigenvalues of that many rows and columns take too long.
    #[error("{nodes} parties are too many to decide the condition for; the limit is {MOST_NODES}")]
    TooManyNodes {
        /// `N`.
        nodes: usize,
    },
    /// Numbers beyond what double precision can prove anything about.
    #[error("the condition's matrices are too ill-conditioned for double precision")]
    IllConditioned,
    /// The condition's numbers would overflow, or vanish.
    #[error(
        "its numbers overflow with a penalty of {eta:e} and M = {lipschitz:.1e}; the penalty and its ratio to M must be from 1e-100 to 1e100"
    )]
    Overflow {
        /// `η`.
        eta: f64,
        /// `M`.
        lipschitz: f64,
    },
}

/// The condition on one graph at one penalty.
#[derive(Clone, Debug)]
pub struct Condition {
    degrees: Vec<f64>,
    adjacent: Vec<bool>,
    eta: f64,
    /// `M`, the greatest `M_i`.
    lipschitz: f64,
    /// `Q = D_M/M²`.
    curvatures: Symmetric,
    /// The symmetric part of `Q(D−A)⁺`, its error and its largest eigenvalue, which is positive like its trace.
    pseudo_inverse: Symmetric,
    error: f64,
    spread: f64,
}

/// The matrices at one damping, which do not depend on `L` and `μ`.
struct AtDamping {
    /// `σ`.
    least: f64,
    /// `I + η(D+A)D̃⁻¹`.
    first: Symmetric,
    /// `η(D+A) − η(D+A)D̃⁻¹η(D−A)`.
    second: Symmetric,
    /// `2η(D+A)D̃⁻¹η(D+A)`.
    quadratic: Symmetric,
}

impl Condition {
    /// Creates the condition at `η > 0` and `M_i > 0`, one for each node, unless it cannot hold whatever `γ` is.
    pub fn new(graph: &Graph, eta: f64, lipschitz: &[f64]) -> Result<Self, Uncertifiable> {
        let n = graph.len();
        if graph.is_bipartite() {
            return Err(Uncertifiable::Bipartite);
        }
        if n > MOST_NODES {
            return Err(Uncertifiable::TooManyNodes { nodes: n });
        }
        let moderate = |x: f64| (FARTHEST.recip()..=FARTHEST).contains(&x);
        let extreme = |lipschitz: &&f64| !(moderate(eta) && moderate(eta / **lipschitz));
        if let Some(&lipschitz) = lipschitz.iter().find(extreme) {
            return Err(Uncertifiable::Overflow { eta, lipschitz });
        }
        let greatest = lipschitz.iter().copied().fold(0.0, f64::max);
        // Relative to the greatest, rounded up; one where all are equal.
        let share = |m: f64| ((m / greatest) * (m / greatest)).next_up().min(1.0);
        let shares: Vec<f64> = lipschitz.iter().map(|m| share(*m)).collect();
        let mut adjacent = vec![false; n * n];
        for (NodeId(i), NodeId(j)) in graph.edges() {
            adjacent[i as usize * n + j as usize] = true;
            adjacent[j as usize * n + i as usize] = true;
        }
        let degrees: Vec<f64> = graph.nodes().map(|i| graph.degree(i) as f64).collect();
        // On a connected graph D−A has the null space of constants alone: (D−A)⁺ = (D−A + 11ᵀ/N)⁻¹ − 11ᵀ/N.
        let mean = 1.0 / n as f64;
        let whole = Symmetric::part_of(n, |i, j| {
            mean + if i == j {
                degrees[i]
            } else {
                -f64::from(u8::from(adjacent[i * n + j]))
            }
        });
        let (inverse, error) = whole.inverse().ok_or(Uncertifiable::IllConditioned)?;
        let pseudo_inverse = Symmetric::part_of(n, |i, j| shares[i] * (inverse.at(i, j) - mean));
        let diagonal = |i: usize, j: usize| if i == j { shares[i] } else { 0.0 };
        Ok(Self {
            degrees,
            adjacent,
            eta,
            lipschitz: greatest,
            curvatures: Symmetric::part_of(n, diagonal),
            error: error + 4.0 * f64::EPSILON * inverse.norm(),
            spread: pseudo_inverse.largest_eigenvalue(),
            pseudo_inverse,
        })
    }

    /// Returns `L` and `μ` that meet the condition at this `γ ≥ 0`, with as much room in the first inequality as the second
    /// allows; `None` if there are none.
    pub fn certify(&self, gamma: f64) -> Option<Certificate> {
        let at = self.at(gamma);
        let most = self.largest_product(&at)?;
        self.search(&at, gamma, room(most, CLOSEST))?;
        (1..=CLOSEST).find_map(|k| self.search(&at, gamma, room(most, k)))
    }

    /// Returns the certificate of the least `γ` that can be certified, to a ten-thousandth of it.
    ///
    /// On a regular graph all matrices commute, and every eigenvalue's margin grows with `γ`. On others that was seen and
    /// not proved; what is returned is certified in any case.
    pub fn least(&self) -> Result<Certificate, Uncertifiable> {
        let meets = |gamma: f64| {
            let at = self.at(gamma);
            let product = self.largest_product(&at);
            product.is_some_and(|most| self.search(&at, gamma, room(most, CLOSEST)).is_some())
        };
        let (mut low, mut high) = (0.0, 0.0);
        if !meets(0.0) {
            high = self.eta.min(self.lipschitz);
            while !meets(high) {
                (low, high) = (high, 4.0 * high);
                if !high.is_finite() {
                    return Err(Uncertifiable::IllConditioned);
                }
            }
            while high - low > FINE * high {
                let middle = low + (high - low) / 2.0;
                if meets(middle) {
                    high = middle;
                } else {
                    low = middle;
                }
            }
        }
        self.certify(high).ok_or(Uncertifiable::IllConditioned)
    }

    fn at(&self, gamma: f64) -> AtDamping {
        let (n, eta) = (self.degrees.len(), self.eta);
        let scale: Vec<f64> = self.degrees.iter().map(|v| 2.0 * eta * v + gamma).collect();
        let adjacency = |i: usize, j: usize| f64::from(u8::from(self.adjacent[i * n + j]));
        let signless = |i: usize, j: usize| {
            if i == j {
                self.degrees[i]
            } else {
                adjacency(i, j)
            }
        };
        let laplacian = |i: usize, j: usize| {
            if i == j {
                self.degrees[i]
            } else {
                -adjacency(i, j)
            }
        };
        let identity = |i: usize, j: usize| f64::from(u8::from(i == j));
        let eta2 = eta * eta;
        AtDamping {
            least: scale.iter().copied().fold(f64::INFINITY, f64::min),
            first: Symmetric::part_of(n, |i, j| identity(i, j) + eta * signless(i, j) / scale[j]),
            second: Symmetric::part_of(n, |i, j| {
                let product: f64 = (0..n)
                    .map(|k| signless(i, k) / scale[k] * laplacian(k, j))
                    .sum();
                eta * signless(i, j) - eta2 * product
            }),
            quadratic: Symmetric::part_of(n, |i, j| {
                let product: f64 = (0..n)
                    .map(|k| signless(i, k) / scale[k] * signless(k, j))
                    .sum();
                2.0 * eta2 * product
            }),
        }
    }

    /// `M²/2σ`.
    fn stiffness(&self, at: &AtDamping) -> f64 {
        self.lipschitz * self.lipschitz / (2.0 * at.least)
    }

    /// Returns the upper bound on `p = Lμ` that the first inequality sets, rounded down.
    fn largest_product(&self, at: &AtDamping) -> Option<f64> {
        let unit = self.stiffness(at) / self.eta;
        let holds = |p: f64| {
            let difference = at.first.plus(-p * unit, &self.pseudo_inverse);
            difference.surely_positive(self.first_error(at, p * unit))
        };
        // Along the eigenvector of the largest eigenvalue of Q(D−A)⁺ the inequality fails from here on.
        let mut high = at.first.largest_eigenvalue() / (unit * self.spread);
        let mut low = 0.0;
        if !(high.is_finite() && holds(low)) {
            return None;
        }
        for _ in 0..40 {
            let middle = low + (high - low) / 2.0;
            if holds(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low > 0.0).then_some(low)
    }

    /// Searches the best `L` for a product `p = Lμ`, and returns it if the condition then holds.
    fn search(&self, at: &AtDamping, gamma: f64, p: f64) -> Option<Certificate> {
        let c = self.stiffness(at);
        let l_at = |u: f64| p / (1.0 + libm::exp(-u));
        let margin = |u: f64| {
            let l = l_at(u);
            // pL/(p−L) with p − L = p/(1 + e^u), which does not cancel.
            let last = c * l * (1.0 + libm::exp(u));
            self.second_difference(at, l, last).least_eigenvalue()
        };
        let golden = (5f64.sqrt() - 1.0) / 2.0;
        let (mut low, mut high) = (-60.0, 30.0);
        let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
        let (mut at_left, mut at_right) = (margin(left), margin(right));
        for _ in 0..SECTIONS {
            if at_left < at_right {
                (low, left, at_left) = (left, right, at_right);
                right = low + golden * (high - low);
                at_right = margin(right);
            } else {
                (high, right, at_right) = (right, left, at_left);
                left = high - golden * (high - low);
                at_left = margin(left);
            }
        }
        let l = l_at(if at_left < at_right { right } else { left });
        self.prove(at, gamma, l, p / l)
    }

    /// Returns the certificate of `L` and `μ`, if both inequalities can be proved.
    fn prove(&self, at: &AtDamping, gamma: f64, l: f64, mu: f64) -> Option<Certificate> {
        let (c, n) = (self.stiffness(at), self.degrees.len() as f64);
        let factor = l * mu * c / self.eta;
        let first = at.first.plus(-factor, &self.pseudo_inverse);
        let last = l * mu * c / (mu - 1.0);
        let second = self.second_difference(at, l, last);
        // Every entry is a sum of at most N products, rounded a few times on the way; D+A and D−A have spectral norms, taken
        // entry by entry without signs, of at most twice the largest degree. μ − 1 loses digits where μ is near one.
        let twice = 2.0 * self.degrees.iter().copied().fold(0.0, f64::max) * self.eta;
        let size = twice + twice * twice / at.least * (1.0 + 2.0 / l) + last * mu / (mu - 1.0);
        let error = (n + 16.0) * f64::EPSILON * size;
        let proved = mu > 1.0
            && first.surely_positive(self.first_error(at, factor))
            && second.surely_positive(error);
        proved.then(|| Certificate {
            damping: gamma,
            l,
            mu,
            first_margin: first.least_eigenvalue(),
            second_margin: second.least_eigenvalue(),
        })
    }

    /// Returns the second inequality's difference, `last` being the factor of `Q`.
    fn second_difference(&self, at: &AtDamping, l: f64, last: f64) -> Symmetric {
        at.second
            .plus(-1.0 / l, &at.quadratic)
            .plus(-last, &self.curvatures)
    }

    /// Bounds what rounding did to the first inequality's difference.
    fn first_error(&self, at: &AtDamping, factor: f64) -> f64 {
        let twice = 2.0 * self.degrees.iter().copied().fold(0.0, f64::max) * self.eta;
        let size = 1.0 + twice / at.least + factor * self.pseudo_inverse.norm();
        16.0 * f64::EPSILON * size + factor * self.error
    }
}

/// Returns `p` below its bound by a `2^k`-th of it.
fn room(most: f64, k: i32) -> f64 {
    most * (1.0 - 0.5f64.powi(k))
}
