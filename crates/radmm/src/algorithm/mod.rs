//! Distributed algorithms: functions of released values, with no rows in reach.

pub mod admm;
pub mod baseline;
pub mod dgd;
pub mod dlm;
pub mod dry_run;
pub mod init;
pub mod recycled;
pub mod schedule;

use crate::protocol::query::Query;
use crate::protocol::release::Release;

/// Everything a node knows at the end of an iteration.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// `t`: `own` and `heard` are of this iteration.
    pub iteration: u32,
    /// `f_i(t)`.
    pub own: &'a [f64],
    /// `f_j(t)` of all neighbours, in ascending order of their numbers.
    pub heard: &'a [Release],
}

impl View<'_> {
    /// `V_i`, the number of neighbours.
    pub fn degree(&self) -> f64 {
        self.heard.len() as f64
    }

    /// `Σ_j (f_i + f_j)`.
    pub fn sum_with_neighbours(&self) -> Vec<f64> {
        self.fold(|sum, own, theirs| sum + (own + theirs))
    }

    /// `Σ_j (f_i − f_j)`.
    pub fn difference_to_neighbours(&self) -> Vec<f64> {
        self.fold(|sum, own, theirs| sum + (own - theirs))
    }

    /// `w_ii f_i + Σ_j w_ij f_j` for the neighbours' weights `w_ij` and `w_ii = 1 − Σ_j w_ij`.
    pub fn mix(&self, weights: &[f64]) -> Vec<f64> {
        let own_weight = 1.0 - weights.iter().sum::<f64>();
        let mut mixed: Vec<f64> = self.own.iter().map(|own| own_weight * own).collect();
        for (release, weight) in self.heard.iter().zip(weights) {
            for (mixed, theirs) in mixed.iter_mut().zip(release.values()) {
                *mixed += weight * theirs;
            }
        }
        mixed
    }

    /// Folds over the neighbours in their order, so that the same messages give the same bits.
    fn fold(&self, step: impl Fn(f64, f64, f64) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.own.len()];
        for release in self.heard {
            for ((sum, own), theirs) in sums.iter_mut().zip(self.own).zip(release.values()) {
                *sum = step(*sum, *own, *theirs);
            }
        }
        sums
    }
}

/// What an algorithm does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask the rows. This costs privacy.
    Ask(Query),
    /// Go on from what was released already. This is free.
    Recycle(Vec<f64>),
}

/// A node's part of a distributed algorithm: a function of released values. There are no rows in its reach.
///
/// At the end of every iteration a node calls [`hear`](Self::hear), then for the next iteration
/// [`next`](Self::next), and, if that asked, [`answered`](Self::answered).
pub trait Algorithm: Send {
    /// Takes in the values of iteration `view.iteration` (the dual update, where there are duals).
    fn hear(&mut self, _view: &View<'_>) {}

    /// What to do for iteration `view.iteration + 1`.
    fn next(&mut self, view: &View<'_>) -> Step;

    /// Turns the answer to the question just asked into the iterate `f_i(t + 1)`; often it is that iterate.
    fn answered(&mut self, _view: &View<'_>, answer: &[f64]) -> Vec<f64> {
        answer.to_vec()
    }

    /// `λ_i`, where there are duals.
    fn dual(&self) -> Option<&[f64]> {
        None
    }
}
