//! What a neighbour must say next, where its whole neighbourhood is known.
//!
//! A recycled value is a function of what the neighbourhood said before. A party that hears all of it (a leaf's only
//! neighbour, a corner of a triangle, anyone on a complete graph) computes the value itself and compares, to the bit. The
//! answer to a data step can be anything, since it holds noise. Where answers are gradients nobody but their party sees them
//! while the study runs, so there the values are checked afterwards, from transcripts.

use radmm::public::graph::{Graph, NodeId};
use radmm::public::release::{Query, Release};
use radmm::trace::{Expected, Tracer};
use radmm_study::{Study, instantiate};

/// Follows one neighbour.
pub(crate) struct Shadow {
    tracer: Tracer,
    /// The neighbours of the neighbour, in order.
    around: Vec<NodeId>,
    expected: Option<Expected>,
    /// What it heard in the iteration that `expected` follows from.
    heard: Vec<Release>,
}

impl Shadow {
    /// For a neighbour all of whose neighbours are `me` or neighbours of `me`.
    pub(crate) fn new(
        study: &Study,
        graph: &Graph,
        me: NodeId,
        peer: NodeId,
        start: Release,
    ) -> Option<Self> {
        let mine = graph.neighbours(me);
        let around = graph.neighbours(peer).to_vec();
        let known = |id: &NodeId| *id == me || mine.binary_search(id).is_ok();
        let columns = start.values().len();
        let method = &study.algorithm.method;
        let algorithm = instantiate::algorithm(method, graph, peer, vec![0.0; columns]);
        around.iter().all(known).then(|| Self {
            tracer: Tracer::new(algorithm, start),
            around,
            expected: None,
            heard: Vec::new(),
        })
    }

    /// All values of an iteration are known.
    pub(crate) fn close(&mut self, value_of: impl Fn(NodeId) -> Option<Release>) {
        let heard: Option<Vec<Release>> = self.around.iter().map(|id| value_of(*id)).collect();
        if let Some(heard) = heard {
            self.expected = Some(self.tracer.expect(&heard));
            self.heard = heard;
        }
    }

    /// Whether the neighbour's next value may be this. If so, goes on from it; `None` if it cannot be followed any further.
    pub(crate) fn agrees(&mut self, said: &Release) -> Option<bool> {
        let follows = match self.expected.take() {
            Some(Expected::Recycled(value)) => value.as_ref() == Some(said),
            Some(Expected::Asked(Query::Minimise { .. })) => {
                self.tracer.answered(&self.heard, said).as_ref() == Some(said)
            }
            Some(Expected::Asked(Query::Gradient { .. })) | None => return None,
        };
        if follows {
            self.tracer.said(said.clone());
        }
        Some(follows)
    }
}
