//! Verification of a party's steps by anyone who holds the messages of its neighbourhood.
//!
//! A fresh algorithm is fed the neighbourhood's messages and the answers that were paid for. Its recycled values must equal
//! those of the party, to the bit: a recycled release is then a function of earlier ones, and reveals nothing more. A neighbour
//! can verify so while the study runs, and anyone afterwards.

use crate::algorithm::{Algorithm, Step, View};
use crate::protocol::query::Query;
use crate::protocol::release::Release;

/// The step that follows from the messages of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpectedStep {
    /// The party's next value; `None` if it is beyond the grid and cannot be released.
    Recycled(Option<Release>),
    /// A question that the party asks its rows.
    Asked(Query),
}

/// Recomputes one party's steps: [`expect`](Self::expect), then [`answered`](Self::answered) if the rows are asked, then
/// [`advance`](Self::advance).
pub struct StepVerifier {
    algorithm: Box<dyn Algorithm>,
    iteration: u32,
    own: Release,
}

impl StepVerifier {
    /// Creates a verifier. `algorithm` is a fresh one, built like the party's own; `start` is the party's first value.
    pub fn new(algorithm: Box<dyn Algorithm>, start: Release) -> Self {
        Self {
            algorithm,
            iteration: 0,
            own: start,
        }
    }

    /// Returns the iteration of the party's last value.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Returns the party's last value.
    pub fn last(&self) -> &Release {
        &self.own
    }

    /// Returns the step that follows from the neighbours' values of the last iteration. Called once an iteration.
    pub fn expect(&mut self, neighbours: &[Release]) -> ExpectedStep {
        let view = View {
            iteration: self.iteration,
            own: self.own.values(),
            neighbours,
        };
        self.algorithm.observe(&view);
        match self.algorithm.next_step(&view) {
            Step::Recycle(values) => ExpectedStep::Recycled(Release::rounded(&values)),
            Step::Ask(query) => ExpectedStep::Asked(query),
        }
    }

    /// Returns the value that follows from an answer; `None` if it is beyond the grid.
    pub fn answered(&mut self, neighbours: &[Release], answer: &Release) -> Option<Release> {
        let view = View {
            iteration: self.iteration,
            own: self.own.values(),
            neighbours,
        };
        let next = self.algorithm.absorb_answer(&view, answer.values());
        Release::rounded(&next)
    }

    /// Returns the number of values of a release of this iteration, for rows of `columns` columns.
    pub fn width(&self, iteration: u32, columns: usize) -> usize {
        self.algorithm.width(iteration, columns)
    }

    /// Returns the party's model after the iterations observed so far: its last value, unless the algorithm has another.
    pub fn model(&self) -> Option<Release> {
        match self.algorithm.model() {
            Some(model) => Release::rounded(model),
            None => Some(self.own.clone()),
        }
    }

    /// Goes on from the party's next value.
    pub fn advance(&mut self, next: Release) {
        self.iteration += 1;
        self.own = next;
    }
}
