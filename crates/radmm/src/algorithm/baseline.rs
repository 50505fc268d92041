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
/// f_i(1) = argmin O_i(f) + (a/2)‖f‖²
/// f_i(2) = w_ii s_i f_i(1) + Σ_j w_ij s_j f_j(1)
/// f_i(t) = w_ii f_i(t−1) + Σ_j w_ij f_j(t−1),    t > 2
/// ```
/// The public shares `s_i` have the mean one: all are one where parties count alike, and `s_i = N·B_i/Σ_j B_j` where rows do.
/// Gossip keeps the mean over all nodes, so that `f_i(t)` tends to `Σ_j (s_j/N) f_j(1)`.
///
/// `f_i(1)` is the local model. With unequal shares the iterates after it differ from a mean of models by a factor, which
/// tends to one as they do to their limit.
pub struct Average {
    extra_ridge: f64,
    weights: Vec<f64>,
    /// `s_i`.
    own_share: f64,
    /// `s_j` of the neighbours.
    shares: Vec<f64>,
}

impl Average {
    /// Creates a node's part with shares of one. `extra_ridge` is `a ≥ 0`; `weights` are those of the neighbours, in ascending
    /// order of their numbers.
    pub fn new(extra_ridge: f64, weights: Vec<f64>) -> Self {
        Self {
            extra_ridge,
            own_share: 1.0,
            shares: vec![1.0; weights.len()],
            weights,
        }
    }

    /// Sets the node's share and those of its neighbours, in ascending order of their numbers.
    #[must_use]
    pub fn with_shares(self, own_share: f64, shares: Vec<f64>) -> Self {
        Self {
            own_share,
            shares,
            ..self
        }
    }

    /// Returns the first gossip step, which weighs the local models by their shares.
    fn weigh(&self, view: &View<'_>) -> Vec<f64> {
        let own_weight = 1.0 - self.weights.iter().sum::<f64>();
        let pairs = self.weights.iter().zip(&self.shares);
        let weights: Vec<f64> = pairs.map(|(weight, share)| weight * share).collect();
        view.combine(own_weight * self.own_share, &weights)
    }
}

impl Algorithm for Average {
    fn next_step(&mut self, view: &View<'_>) -> Step {
        match view.iteration {
            0 => ask_alone(self.extra_ridge, view),
            1 => Step::Recycle(self.weigh(view)),
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
