//! Recomputation of a neighbour's next value, where its whole neighbourhood is known.
//!
//! A recycled value is a function of the values that the neighbourhood sent before. A party that receives all of them (a leaf's
//! only neighbour, a corner of a triangle, any party of a complete graph) computes the value itself and compares it bit by bit.
//! The answer of a data step contains noise and can be anything. Where answers are gradients, only their own party sees them
//! while the study runs; there the values are verified afterwards, from transcripts.

use radmm::graph::NodeId;
use radmm::protocol::query::Query;
use radmm::protocol::release::Release;
use radmm::step_verifier::{ExpectedStep, StepVerifier};
use radmm_study::instantiate::Instance;

/// The verifier of one neighbour's values.
pub(super) struct NeighbourVerifier {
    tracer: StepVerifier,
    /// The neighbours of the neighbour, in order.
    neighbourhood: Vec<NodeId>,
    expected: Option<ExpectedStep>,
    /// The values of the neighbourhood from which `expected` follows.
    inputs: Vec<Release>,
}

impl NeighbourVerifier {
    /// Returns a verifier of `peer`, or `None` unless all neighbours of `peer` are `me` or neighbours of `me`.
    pub(super) fn new(
        instance: &Instance<'_>,
        me: NodeId,
        peer: NodeId,
        start: Release,
    ) -> Option<Self> {
        let graph = instance.graph;
        let mine = graph.neighbours(me);
        let neighbourhood = graph.neighbours(peer).to_vec();
        let known = |id: &NodeId| *id == me || mine.binary_search(id).is_ok();
        let columns = start.values().len();
        let algorithm = instance.algorithm(peer, vec![0.0; columns]);
        neighbourhood.iter().all(known).then(|| Self {
            tracer: StepVerifier::new(algorithm, start),
            neighbourhood,
            expected: None,
            inputs: Vec::new(),
        })
    }

    /// Computes the expected next value from the values of an iteration.
    pub(super) fn close_iteration(&mut self, value_of: impl Fn(NodeId) -> Option<Release>) {
        let ids = self.neighbourhood.iter();
        let inputs: Option<Vec<Release>> = ids.map(|id| value_of(*id)).collect();
        if let Some(inputs) = inputs {
            self.expected = Some(self.tracer.expect(&inputs));
            self.inputs = inputs;
        }
    }

    /// Returns whether the neighbour's next value can be this one, and goes on from it if so. Returns `None` if the neighbour
    /// cannot be verified any further.
    pub(super) fn agrees(&mut self, value: &Release) -> Option<bool> {
        let follows = match self.expected.take() {
            Some(ExpectedStep::Recycled(expected)) => expected.as_ref() == Some(value),
            Some(ExpectedStep::Asked(query)) if !matches!(query, Query::Gradient { .. }) => {
                self.tracer.answered(&self.inputs, value).as_ref() == Some(value)
            }
            Some(ExpectedStep::Asked(_)) | None => return None,
        };
        if follows {
            self.tracer.advance(value.clone());
        }
        Some(follows)
    }
}
