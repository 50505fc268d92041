//! Distributed algorithms: functions of released values, with no rows in reach.
//!
//! An algorithm of one's own implements [`Algorithm`]; `examples/own_algorithm.rs` is one in under sixty lines.

pub mod admm;
pub mod baseline;
pub mod consensus;
pub mod dgd;
pub mod dlm;
pub mod dry_run;
pub mod init;
pub mod recycled;
pub mod schedule;

use crate::protocol::query::Query;
use crate::protocol::release::Release;

/// The released values that a node holds at the end of an iteration.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// `t`, the iteration of all values here.
    pub iteration: u32,
    /// `f_i(t)`.
    pub own: &'a [f64],
    /// `f_j(t)` of all neighbours, in ascending order of their numbers.
    pub neighbours: &'a [Release],
}

impl View<'_> {
    /// Returns `V_i`, the number of neighbours.
    pub fn degree(&self) -> f64 {
        self.neighbours.len() as f64
    }

    /// Returns `Σ_j (f_i + f_j)`.
    pub fn sum_with_neighbours(&self) -> Vec<f64> {
        self.fold(|sum, own, theirs| sum + (own + theirs))
    }

    /// Returns `Σ_j (f_i − f_j)`.
    pub fn difference_to_neighbours(&self) -> Vec<f64> {
        self.fold(|sum, own, theirs| sum + (own - theirs))
    }

    /// Returns `w_ii f_i + Σ_j w_ij f_j` for the neighbours' weights `w_ij` and `w_ii = 1 − Σ_j w_ij`.
    pub fn mix(&self, weights: &[f64]) -> Vec<f64> {
        self.combine(1.0 - weights.iter().sum::<f64>(), weights)
    }

    /// Returns `w_ii f_i + Σ_j w_ij f_j` for any weights, the neighbours' in ascending order of their numbers.
    pub fn combine(&self, own_weight: f64, weights: &[f64]) -> Vec<f64> {
        let mut mixed: Vec<f64> = self.own.iter().map(|own| own_weight * own).collect();
        for (release, weight) in self.neighbours.iter().zip(weights) {
            for (mixed, theirs) in mixed.iter_mut().zip(release.values()) {
                *mixed += weight * theirs;
            }
        }
        mixed
    }

    /// Folds over the neighbours in their order, so that the same messages give the same bits.
    fn fold(&self, step: impl Fn(f64, f64, f64) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.own.len()];
        for release in self.neighbours {
            for ((sum, own), theirs) in sums.iter_mut().zip(self.own).zip(release.values()) {
                *sum = step(*sum, *own, *theirs);
            }
        }
        sums
    }
}

/// An algorithm's next step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A data step: asks the rows, which costs privacy.
    Ask(Query),
    /// A recycled step: a function of earlier releases, which is free.
    Recycle(Vec<f64>),
}

/// The neighbours' values from which a party's next step follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepInputs {
    /// All values of all neighbours up to the last iteration.
    All,
    /// The last values of the neighbours at these positions, and nothing else but the party's own values. Such an algorithm keeps
    /// nothing of its neighbours' values, neither in `observe` nor in `next_step`.
    Last(Vec<usize>),
}

/// The nodes whose answers add up to a release, in a sum along a [spanning tree](crate::graph::SpanningTree).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summands {
    /// The node alone.
    Own,
    /// The node and everybody below it.
    Subtree,
    /// All nodes.
    All,
}

/// A node's part of a distributed algorithm: a function of released values, with no rows in reach.
///
/// At the end of every iteration a node calls [`observe`](Self::observe), then, for the next iteration,
/// [`next_step`](Self::next_step), and, if that asked the rows, [`absorb_answer`](Self::absorb_answer).
pub trait Algorithm: Send {
    /// Observes the values of iteration `view.iteration` (the dual update, if there are duals).
    fn observe(&mut self, _view: &View<'_>) {}

    /// Returns the step that makes iteration `view.iteration + 1`.
    fn next_step(&mut self, view: &View<'_>) -> Step;

    /// Turns the answer to the question just asked into the iterate `f_i(t + 1)`; by default it is that iterate.
    fn absorb_answer(&mut self, _view: &View<'_>, answer: &[f64]) -> Vec<f64> {
        answer.to_vec()
    }

    /// Returns the answer to the question just asked that turned into the iterate `next`, as far as the iterate's rounding to the
    /// grid lets it be told: the inverse of [`absorb_answer`](Self::absorb_answer). `None` if the iterate does not tell it.
    fn implied_answer(&self, _view: &View<'_>, next: &[f64]) -> Option<Vec<f64>> {
        Some(next.to_vec())
    }

    /// Returns how far the iterate of `t` moves if the answer that it is made of moves by one, at a node with so many neighbours.
    fn answer_gain(&self, _iteration: u32, _degree: usize) -> f64 {
        1.0
    }

    /// Returns whose answers add up to the release of iteration `t`, if it is a sum of answers.
    fn summands(&self, _iteration: u32) -> Option<Summands> {
        None
    }

    /// Returns the number of values of a release of iteration `t`, for rows of `columns` columns; by default as many.
    fn width(&self, _iteration: u32, columns: usize) -> usize {
        columns
    }

    /// Returns the neighbours' values from which the step that makes iteration `t + 1` follows; by default all there are.
    ///
    /// Anyone who knows these and the party's own values can compute a recycled step again.
    fn inputs(&self, _iteration: u32) -> StepInputs {
        StepInputs::All
    }

    /// Returns whether all parties release the same value at iteration `t`; by default they need not.
    fn is_common(&self, _iteration: u32) -> bool {
        false
    }

    /// Returns the model after the iterations observed so far, if it is not the value released last.
    fn model(&self) -> Option<&[f64]> {
        None
    }

    /// Returns `λ_i`, if the algorithm has duals.
    fn dual(&self) -> Option<&[f64]> {
        None
    }
}
