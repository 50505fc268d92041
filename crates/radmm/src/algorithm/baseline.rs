//! Baselines that any collaboration has to beat: local training, and averaging once.
//!
//! Both ask one question, `argmin O_i(f) + (a/2)‖f‖²`, in the first iteration, and nothing after it. A single noisy answer
//! needs more ridge than the common objective has, so `a` is theirs to choose.

use super::{Algorithm, Step, View};
use crate::protocol::query::Query;

/// Local training: each node on its own rows, whatever its neighbours send.
pub struct Local {
    extra_ridge: f64,
}

impl Local {
    /// Creates a node's part; `extra_ridge` is `a ≥ 0`.
    pub fn new(extra_ridge: f64) -> Self {
        Self { extra_ridge }
    }
}

impl Algorithm for Local {
    fn next_step(&mut self, view: &View<'_>) -> Step {
        match view.iteration {
            0 => ask_alone(self.extra_ridge, view),
            _ => Step::Recycle(view.own.to_vec()),
        }
    }
}

/// One-shot averaging: the local answers, averaged by gossip with Metropolis weights.
/// ```text
/// f_i(1) = argmin O_i(f) + (a/2)‖f‖²,    f_i(t) = w_ii f_i(t−1) + Σ_j w_ij f_j(t−1)
/// ```
pub struct Average {
    extra_ridge: f64,
    weights: Vec<f64>,
}

impl Average {
    /// Creates a node's part. `extra_ridge` is `a ≥ 0`; `weights` are those of the neighbours, in ascending order of their numbers.
    pub fn new(extra_ridge: f64, weights: Vec<f64>) -> Self {
        Self {
            extra_ridge,
            weights,
        }
    }
}

impl Algorithm for Average {
    fn next_step(&mut self, view: &View<'_>) -> Step {
        match view.iteration {
            0 => ask_alone(self.extra_ridge, view),
            _ => Step::Recycle(view.mix(&self.weights)),
        }
    }
}

fn ask_alone(extra_ridge: f64, view: &View<'_>) -> Step {
    Step::Ask(Query::Minimise {
        quadratic: extra_ridge,
        linear: vec![0.0; view.own.len()],
        near: view.own.to_vec(),
    })
}
