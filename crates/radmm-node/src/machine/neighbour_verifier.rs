//! Recomputation of a neighbour's next value, as far as the values that it follows from are known.
//!
//! A recycled value is a function of values that the neighbour sent and received before. A party that has all of these computes the
//! value itself and compares it bit by bit. For most algorithms they are the values of the neighbour's whole neighbourhood, which
//! a leaf's only neighbour, a corner of a triangle and any party of a complete graph have. A sum along a tree needs fewer: a
//! value that a party keeps follows from its own last value, a total that it takes over from its parent's, and a partial sum from
//! its children's.
//!
//! The answer of a data step contains noise and can be anything. Where answers are gradients that the party turns into a model,
//! only it sees them while the study runs; there the values are verified afterwards, from transcripts.

use radmm::algorithm::StepInputs;
use radmm::graph::NodeId;
use radmm::protocol::query::Query;
use radmm::protocol::release::Release;
use radmm::step_verifier::{ExpectedStep, StepVerifier};
use radmm_study::instantiate::Instance;

/// The verifier of one neighbour's values.
pub(crate) struct NeighbourVerifier {
    me: NodeId,
    tracer: StepVerifier,
    /// The neighbours of the neighbour, in order.
    neighbourhood: Vec<NodeId>,
    /// Their values of the last iteration, as far as they are known.
    known: Vec<Option<Release>>,
    /// The step that follows from them; `None` if it follows from others too.
    expected: Option<ExpectedStep>,
    /// Whether it follows from values of others than the neighbour and this party.
    by_others: bool,
}

/// The finding about a neighbour's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The value follows from what is known, or what is known does not suffice to tell.
    Possible,
    /// The value does not follow.
    Wrong {
        /// Whether it would follow if a common neighbour had sent the neighbour another value than this party.
        by_others: bool,
    },
    /// Neither this value nor a later one can be verified.
    Lost,
}

impl NeighbourVerifier {
    /// Returns a verifier of `peer` for its neighbour `me`.
    pub(crate) fn new(instance: &Instance<'_>, me: NodeId, peer: NodeId, start: Release) -> Self {
        let columns = start.values().len();
        let algorithm = instance.algorithm(peer, vec![0.0; columns]);
        Self {
            me,
            tracer: StepVerifier::new(algorithm, start),
            neighbourhood: instance.graph.neighbours(peer).to_vec(),
            known: Vec::new(),
            expected: None,
            by_others: false,
        }
    }

    /// Computes the expected next value from the values of an iteration, as far as they are known.
    pub(crate) fn close_iteration(&mut self, value_of: impl Fn(NodeId) -> Option<Release>) {
        let is_other = |k: usize| self.neighbourhood[k] != self.me;
        self.by_others = match self.tracer.inputs() {
            StepInputs::All => (0..self.neighbourhood.len()).any(is_other),
            StepInputs::Last(positions) => positions.into_iter().any(is_other),
        };
        let ids = self.neighbourhood.iter();
        self.known = ids.map(|id| value_of(*id)).collect();
        self.expected = self.tracer.expect_from(&self.known);
    }

    /// Checks the neighbour's next value, and goes on from it unless it is wrong.
    pub(crate) fn check(&mut self, value: &Release) -> Finding {
        if self.tracer.is_lost() {
            return Finding::Lost;
        }
        let follows = match self.expected.take() {
            None => true,
            Some(ExpectedStep::Recycled(expected)) => expected.as_ref() == Some(value),
            Some(ExpectedStep::Asked(Query::Gradient { .. })) => return Finding::Lost,
            Some(ExpectedStep::Asked(_)) => {
                self.tracer.answered_from(&self.known, value).as_ref() == Some(value)
            }
        };
        if !follows {
            let by_others = self.by_others;
            return Finding::Wrong { by_others };
        }
        self.tracer.advance(value.clone());
        Finding::Possible
    }
}
