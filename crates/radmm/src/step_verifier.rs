//! What a party must say next, computed by somebody else from what was released before.
//!
//! A fresh algorithm is fed a neighbourhood's messages and the answers that were paid for. What it recycles must be what the
//! party said, to the bit: then a recycled release is a function of earlier ones, and reveals nothing more. Whoever holds the
//! messages of a neighbourhood can follow the party in its middle so: a neighbour while the study runs, anyone afterwards.

use crate::algorithm::{Algorithm, Step, View};
use crate::protocol::query::Query;
use crate::protocol::release::Release;

/// What follows from the messages of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpectedStep {
    /// The party's next value; `None` if it is out of all bounds, and so cannot be said.
    Recycled(Option<Release>),
    /// The party asks its rows this.
    Asked(Query),
}

/// Follows one party from iteration to iteration: [`expect`](Self::expect), then [`answered`](Self::answered) if the rows
/// are asked, then [`said`](Self::said).
pub struct StepVerifier {
    algorithm: Box<dyn Algorithm>,
    iteration: u32,
    own: Release,
}

impl StepVerifier {
    /// `algorithm` is a fresh one, made like the party's own; `start` is what the party said first.
    pub fn new(algorithm: Box<dyn Algorithm>, start: Release) -> Self {
        Self {
            algorithm,
            iteration: 0,
            own: start,
        }
    }

    /// The iteration of what the party said last.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// What the party said last.
    pub fn last(&self) -> &Release {
        &self.own
    }

    /// What follows once the party has heard these of the iteration of its last value, by neighbour. Called once an iteration.
    pub fn expect(&mut self, heard: &[Release]) -> ExpectedStep {
        let view = View {
            iteration: self.iteration,
            own: self.own.values(),
            heard,
        };
        self.algorithm.hear(&view);
        match self.algorithm.next(&view) {
            Step::Recycle(values) => ExpectedStep::Recycled(Release::rounded(&values)),
            Step::Ask(query) => ExpectedStep::Asked(query),
        }
    }

    /// The value that follows from an answer; `None` if it is out of all bounds.
    pub fn answered(&mut self, heard: &[Release], answer: &Release) -> Option<Release> {
        let view = View {
            iteration: self.iteration,
            own: self.own.values(),
            heard,
        };
        let next = self.algorithm.answered(&view, answer.values());
        Release::rounded(&next)
    }

    /// Goes on from what the party said next.
    pub fn said(&mut self, said: Release) {
        self.iteration += 1;
        self.own = said;
    }
}
