//! DGD: decentralised gradient descent.

use super::schedule::Schedule;
use super::{Algorithm, Step, View};
use crate::protocol::query::Query;

/// Decentralised gradient descent (Nedić and Ozdaglar 2009) with Metropolis weights `w_ij = 1/(1 + max(V_i, V_j))`.
/// ```text
/// f_i(t) = w_ii f_i(t−1) + Σ_j w_ij f_j(t−1) − s(t)·∇O_i(f_i(t−1))
/// ```
pub struct Dgd {
    weights: Vec<f64>,
    step: Schedule,
}

impl Dgd {
    /// Creates a node's part. `weights` are those of the neighbours, in ascending order of their numbers.
    pub fn new(weights: Vec<f64>, step: Schedule) -> Self {
        Self { weights, step }
    }
}

impl Algorithm for Dgd {
    fn next_step(&mut self, view: &View<'_>) -> Step {
        Step::Ask(Query::Gradient {
            at: view.own.to_vec(),
        })
    }

    fn absorb_answer(&mut self, view: &View<'_>, answer: &[f64]) -> Vec<f64> {
        let step = self.step.at(view.iteration + 1);
        let mut next = view.mix(&self.weights);
        for (next, gradient) in next.iter_mut().zip(answer) {
            *next -= step * gradient;
        }
        next
    }

    fn implied_answer(&self, view: &View<'_>, next: &[f64]) -> Option<Vec<f64>> {
        let step = self.step.at(view.iteration + 1);
        let mixed = view.mix(&self.weights).into_iter().zip(next);
        (step > 0.0).then(|| mixed.map(|(mixed, next)| (mixed - next) / step).collect())
    }

    fn answer_gain(&self, iteration: u32, _degree: usize) -> f64 {
        self.step.at(iteration)
    }
}
