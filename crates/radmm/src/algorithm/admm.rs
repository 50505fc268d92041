//! Conventional ADMM (the paper's eqs. 8 and 9), and M-ADMM, where `η` is a node's own and `θ` common.
//!
//! Iteration `t` computes, with `η = η_i(t)` and `θ = θ(t) ≤ η`,
//! ```text
//! f_i(t) = argmin O_i(f) + ⟨b, f⟩ + (a/2)‖f‖²,    a = 2ηV_i,    b = 2λ_i(t−1) − η Σ_j (f_i(t−1) + f_j(t−1))
//! λ_i(t) = λ_i(t−1) + (θ/2) Σ_j (f_i(t) − f_j(t)),    λ_i(0) = 0
//! ```
//! Conventional ADMM has `θ = η`. The dual step is common to all nodes, or else `Σ_i λ_i = 0` would be lost and with it
//! the optimum.

use super::recycled::{Linearisation, Recyclable};
use super::schedule::Schedule;
use super::{Algorithm, Step, View};
use crate::protocol::query::Query;

/// The penalties of one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    /// `η_i(t)`.
    pub primal: Schedule,
    /// `θ(t)`.
    pub dual: Schedule,
}

impl Penalty {
    /// Returns `θ = η`, the same for all nodes.
    pub fn common(eta: Schedule) -> Self {
        Self {
            primal: eta,
            dual: eta,
        }
    }
}

/// A node's share of the augmented Lagrangian: its penalty and its dual.
#[derive(Clone, Debug)]
pub struct Lagrangian {
    penalty: Penalty,
    lambda: Vec<f64>,
}

impl Lagrangian {
    pub(super) fn new(penalty: Penalty, lambda: Vec<f64>) -> Self {
        Self { penalty, lambda }
    }

    /// `η_i(t)`.
    pub fn eta(&self, t: u32) -> f64 {
        self.penalty.primal.at(t)
    }

    /// `λ_i`.
    pub fn lambda(&self) -> &[f64] {
        &self.lambda
    }

    /// Returns `(a, b)` of the next iteration's primal problem.
    pub fn coefficients(&self, view: &View<'_>) -> (f64, Vec<f64>) {
        let eta = self.eta(view.iteration + 1);
        let mut b = view.sum_with_neighbours();
        for (b, lambda) in b.iter_mut().zip(&self.lambda) {
            *b = 2.0 * lambda - eta * *b;
        }
        (2.0 * eta * view.degree(), b)
    }

    /// Returns `2λ_i + η Σ_j (f_i − f_j)`, the gradient at `f_i` of all terms but `O_i`.
    pub fn penalty_gradient(&self, view: &View<'_>, eta: f64) -> Vec<f64> {
        let mut gradient = view.difference_to_neighbours();
        for (g, lambda) in gradient.iter_mut().zip(&self.lambda) {
            *g = 2.0 * lambda + eta * *g;
        }
        gradient
    }

    /// Updates the dual: `λ_i(t) = λ_i(t−1) + (θ/2) Σ_j (f_i(t) − f_j(t))`. Before the first iteration there is none.
    pub fn update_dual(&mut self, view: &View<'_>) {
        if view.iteration == 0 {
            return;
        }
        let half = self.penalty.dual.at(view.iteration) / 2.0;
        for (lambda, difference) in self.lambda.iter_mut().zip(view.difference_to_neighbours()) {
            *lambda += half * difference;
        }
    }
}

/// Conventional ADMM or M-ADMM at one node.
pub struct Admm {
    lagrangian: Lagrangian,
    /// `(a, b)` of the pending question.
    pending: (f64, Vec<f64>),
    model: Linearisation,
}

impl Admm {
    /// Creates a node's part, with `λ_i = 0`.
    pub fn new(penalty: Penalty, columns: usize) -> Self {
        Self::with_dual(penalty, vec![0.0; columns])
    }

    /// Creates a node's part that continues from `λ_i`.
    pub fn with_dual(penalty: Penalty, lambda: Vec<f64>) -> Self {
        let columns = lambda.len();
        Self {
            lagrangian: Lagrangian::new(penalty, lambda),
            pending: (0.0, Vec::new()),
            model: Linearisation::flat(columns),
        }
    }
}

impl Algorithm for Admm {
    fn observe(&mut self, view: &View<'_>) {
        self.lagrangian.update_dual(view);
    }

    fn next_step(&mut self, view: &View<'_>) -> Step {
        let (a, b) = self.lagrangian.coefficients(view);
        self.pending = (a, b.clone());
        Step::Ask(Query::Minimise {
            quadratic: a,
            linear: b,
            near: view.own.to_vec(),
        })
    }

    fn absorb_answer(&mut self, _view: &View<'_>, answer: &[f64]) -> Vec<f64> {
        // Optimality hands the gradient over for nothing: ∇O_i(f) + e = −(b + a·f), with whatever noise e the curator
        // put into the question. It is a function of the answer, so using it reveals nothing more.
        let (a, mut gradient) = std::mem::take(&mut self.pending);
        for (b, f) in gradient.iter_mut().zip(answer) {
            *b = -(*b + a * f);
        }
        self.model = Linearisation {
            point: answer.to_vec(),
            gradient,
        };
        answer.to_vec()
    }

    fn dual(&self) -> Option<&[f64]> {
        Some(self.lagrangian.lambda())
    }
}

impl Recyclable for Admm {
    fn lagrangian(&self) -> &Lagrangian {
        &self.lagrangian
    }

    fn linearisation(&self) -> &Linearisation {
        &self.model
    }
}
