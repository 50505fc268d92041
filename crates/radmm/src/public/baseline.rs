//! What any collaboration has to beat: training alone, and averaging once.
//!
//! Both ask one question, `argmin O_i(f)`, in the first iteration, and nothing after it.

use super::release::{Algorithm, Query, Step, View};

/// Each node on its own rows. It hears its neighbours and learns nothing from them.
pub struct Local;

impl Algorithm for Local {
    fn next(&mut self, view: &View<'_>) -> Step {
        match view.iteration {
            0 => ask_alone(view),
            _ => Step::Recycle(view.own.to_vec()),
        }
    }
}

/// One-shot averaging: the local answers, averaged by gossip with Metropolis weights.
/// ```text
/// f_i(1) = argmin O_i(f),    f_i(t) = w_ii f_i(t−1) + Σ_j w_ij f_j(t−1)
/// ```
pub struct Average {
    weights: Vec<f64>,
}

impl Average {
    /// `weights` are those of the neighbours, in ascending order of their numbers.
    pub fn new(weights: Vec<f64>) -> Self {
        Self { weights }
    }
}

impl Algorithm for Average {
    fn next(&mut self, view: &View<'_>) -> Step {
        match view.iteration {
            0 => ask_alone(view),
            _ => Step::Recycle(view.mix(&self.weights)),
        }
    }
}

fn ask_alone(view: &View<'_>) -> Step {
    Step::Ask(Query::Minimise {
        quadratic: 0.0,
        linear: vec![0.0; view.own.len()],
        near: view.own.to_vec(),
    })
}
