//! Recomputation of a neighbour's next value, as far as the values that it follows from are known.
//!
//! A recycled value is a function of values that the neighbour sent and received before. A party that has all of these computes the
//! value itself and compares it bit by bit. For most algorithms they are the values of the neighbour's whole neighbourhood, which
//! a leaf's only neighbour, a corner of a triangle and any party of a complete graph have. A sum along a tree needs fewer: a
//! value that a party keeps follows from its own last value, a total that it takes over from its parent's, and a partial sum from
//! its children's.
//!
//! The answer of a data step contains noise, and is compared with the limit of what an honest party can answer (`study_limits`). The
//! first question follows from starts that are public, so that every first answer is compared, and all answers and partial sums of a
//! sum along a tree. Where answers are gradients that the party turns into a model, only it sees them to the bit: they are compared as
//! far as its values tell them, and recycled values that follow from them are verified afterwards, from transcripts.

use std::mem;
use std::sync::Arc;

use radmm::algorithm::StepInputs;
use radmm::curator::{AnswerLimit, BeyondLimit};
use radmm::graph::NodeId;
use radmm::protocol::query::Query;
use radmm::protocol::release::Release;
use radmm::step_verifier::{ExpectedStep, StepVerifier};
use radmm_study::instantiate::{self, Instance};

use super::study_limits::StudyLimits;

/// The verifier of one neighbour's values.
pub(crate) struct NeighbourVerifier {
    me: NodeId,
    peer: NodeId,
    limits: Arc<StudyLimits>,
    tracer: StepVerifier,
    /// The neighbours of the neighbour, in order.
    neighbourhood: Vec<NodeId>,
    /// Their starts, which are public, until they have been used; `None` where a start is beyond the grid.
    starts: Vec<Option<Release>>,
    /// Their values of the last iteration, as far as they are known.
    known: Vec<Option<Release>>,
    /// The question asked last.
    asked: Option<Query>,
    /// Whether recycled values follow from answers that this party does not know to the bit.
    blind: bool,
    /// The step that follows from them; `None` if it follows from others too.
    expected: Option<ExpectedStep>,
    /// Whether it follows from values of others than the neighbour and this party.
    by_others: bool,
}

/// The finding about a neighbour's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Finding {
    /// The value follows from what is known, or what is known does not suffice to tell.
    Possible,
    /// The value does not follow.
    Wrong {
        /// Whether it would follow if a common neighbour had sent the neighbour another value than this party.
        by_others: bool,
    },
    /// The value follows from an answer, or from a sum of answers, that is beyond what honest parties can say.
    Beyond {
        /// The limit.
        limit: BeyondLimit,
        /// Whether the question would be another one if a common neighbour had sent the neighbour another value than this party.
        by_others: bool,
    },
    /// Neither this value nor a later one can be verified.
    Lost,
}

impl NeighbourVerifier {
    /// Returns a verifier of `peer` for its neighbour `me`.
    pub(crate) fn new(
        instance: &Instance<'_>,
        limits: Arc<StudyLimits>,
        me: NodeId,
        peer: NodeId,
        start: Release,
    ) -> Self {
        let columns = start.values().len();
        let algorithm = instance.algorithm(peer, vec![0.0; columns]);
        let neighbourhood = instance.graph.neighbours(peer).to_vec();
        let ids = neighbourhood.iter();
        let start_of =
            |id: &NodeId| Release::rounded(&instantiate::start(instance.study, *id, columns));
        Self {
            me,
            peer,
            limits,
            tracer: StepVerifier::new(algorithm, start),
            starts: ids.map(start_of).collect(),
            neighbourhood,
            known: Vec::new(),
            asked: None,
            blind: false,
            expected: None,
            by_others: false,
        }
    }

    /// Computes the expected next value from the values of an iteration, as far as they are known.
    pub(crate) fn close_iteration(&mut self, value_of: impl Fn(NodeId) -> Option<Release>) {
        let is_start = self.tracer.iteration() == 0;
        let is_other = |k: usize| self.neighbourhood[k] != self.me && !is_start;
        self.by_others = match self.tracer.inputs() {
            StepInputs::All => (0..self.neighbourhood.len()).any(is_other),
            StepInputs::Last(positions) => positions.into_iter().any(is_other),
        };
        self.known = match is_start {
            true => mem::take(&mut self.starts),
            false => self.neighbourhood.iter().map(|id| value_of(*id)).collect(),
        };
        self.expected = self.tracer.expect_from(&self.known);
    }

    /// Checks the neighbour's next value, and goes on from it unless it is wrong.
    pub(crate) fn check(&mut self, value: &Release) -> Finding {
        if self.tracer.is_lost() {
            return Finding::Lost;
        }
        let expected = self.expected.take();
        // An honest party adds up only what is within its limit, whoever sent it.
        let by_others = self.by_others && expected.is_some();
        let limited = match expected {
            None => self.check_sum(value),
            Some(ExpectedStep::Recycled(_)) if self.blind => Ok(()),
            Some(ExpectedStep::Recycled(expected)) if expected.as_ref() == Some(value) => Ok(()),
            Some(ExpectedStep::Recycled(_)) => return Finding::Wrong { by_others },
            Some(ExpectedStep::Asked(query)) => self.check_answer(query, value),
        };
        if let Err(limit) = limited {
            return Finding::Beyond { limit, by_others };
        }
        self.tracer.advance(value.clone());
        Finding::Possible
    }

    /// Checks the answer of which a value is made.
    fn check_answer(&mut self, query: Query, value: &Release) -> Result<(), BeyondLimit> {
        let limit = self.limits.answer(self.peer, &query);
        let implied = self.tracer.implied_answer(&self.known, value);
        match query {
            Query::Gradient { .. } => self.blind = true,
            // The value is the answer. What the algorithm keeps of it is what it would keep itself.
            _ => drop(self.tracer.answered_from(&self.known, value)),
        }
        self.asked = Some(query);
        match (limit, implied) {
            (Some(limit), Some((answer, error))) => limit.check(&answer, error),
            _ => Ok(()),
        }
    }

    /// Checks a sum of answers, some of which are not known here.
    fn check_sum(&self, value: &Release) -> Result<(), BeyondLimit> {
        let limit = || -> Option<AnswerLimit> {
            let summands = self.tracer.next_summands()?;
            self.limits.sum(self.peer, summands, self.asked.as_ref()?)
        };
        limit().map_or(Ok(()), |limit| limit.check(value.values(), 0.0))
    }
}
