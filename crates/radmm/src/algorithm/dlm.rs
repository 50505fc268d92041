//! DLM: decentralised linearised ADMM.

use super::admm::{Lagrangian, Penalty};
use super::recycled::{Linearisation, Recyclable, linearised_step};
use super::schedule::Schedule;
use super::{Algorithm, Step, View};
use crate::protocol::query::Query;

/// Decentralised linearised ADMM (Ling, Shi, Wu and Ribeiro 2015): ADMM's primal step with `O_i` replaced by its
/// linearisation at the last iterate plus `(γ/2)‖f − f_i(t−1)‖²`.
/// ```text
/// f_i(t) = f_i(t−1) − [ ∇O_i(f_i(t−1)) + 2λ_i(t−1) + η Σ_j (f_i(t−1) − f_j(t−1)) ] / (2ηV_i + γ)
/// λ_i(t) = λ_i(t−1) + (η/2) Σ_j (f_i(t) − f_j(t))
/// ```
pub struct Dlm {
    lagrangian: Lagrangian,
    damping: Schedule,
    model: Linearisation,
}

impl Dlm {
    /// Creates a node's part, with `λ_i = 0`.
    pub fn new(penalty: Penalty, damping: Schedule, columns: usize) -> Self {
        Self::with_dual(penalty, damping, vec![0.0; columns])
    }

    /// Creates a node's part that continues from `λ_i`.
    pub fn with_dual(penalty: Penalty, damping: Schedule, lambda: Vec<f64>) -> Self {
        let columns = lambda.len();
        Self {
            lagrangian: Lagrangian::new(penalty, lambda),
            damping,
            model: Linearisation::flat(columns),
        }
    }
}

impl Algorithm for Dlm {
    fn observe(&mut self, view: &View<'_>) {
        self.lagrangian.update_dual(view);
    }

    fn next_step(&mut self, view: &View<'_>) -> Step {
        Step::Ask(Query::Gradient {
            at: view.own.to_vec(),
        })
    }

    fn absorb_answer(&mut self, view: &View<'_>, answer: &[f64]) -> Vec<f64> {
        self.model = Linearisation {
            point: view.own.to_vec(),
            gradient: answer.to_vec(),
        };
        linearised_step(
            view,
            &self.lagrangian,
            &self.model,
            self.damping.at(view.iteration + 1),
        )
    }

    fn dual(&self) -> Option<&[f64]> {
        Some(self.lagrangian.lambda())
    }
}

impl Recyclable for Dlm {
    fn lagrangian(&self) -> &Lagrangian {
        &self.lagrangian
    }

    fn linearisation(&self) -> &Linearisation {
        &self.model
    }
}
