//! Verification of a party's steps by anyone who holds the messages of its neighbourhood.
//!
//! A fresh algorithm is fed the neighbourhood's messages and the answers that were paid for. Its recycled values must equal
//! those of the party, to the bit: a recycled release is then a function of earlier ones, and reveals nothing more. A neighbour
//! can verify so while the study runs, and anyone afterwards.

use crate::algorithm::{Algorithm, Step, StepInputs, Summands, View};
use crate::protocol::query::Query;
use crate::protocol::release::{Release, SPACING};

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
    /// Whether a value is missing that all later steps depend on.
    lost: bool,
}

impl StepVerifier {
    /// Creates a verifier. `algorithm` is a fresh one, built like the party's own; `start` is the party's first value.
    pub fn new(algorithm: Box<dyn Algorithm>, start: Release) -> Self {
        Self {
            algorithm,
            iteration: 0,
            own: start,
            lost: false,
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
        self.observe(neighbours);
        let view = View {
            iteration: self.iteration,
            own: self.own.values(),
            neighbours,
        };
        match self.algorithm.next_step(&view) {
            Step::Recycle(values) => ExpectedStep::Recycled(Release::rounded(&values)),
            Step::Ask(query) => ExpectedStep::Asked(query),
        }
    }

    /// Returns the same as far as it follows from the values that are known, by the neighbours' positions; `None` if it does not.
    /// Called in place of [`expect`](Self::expect).
    pub fn expect_from(&mut self, known: &[Option<Release>]) -> Option<ExpectedStep> {
        let is_known = |k: &usize| known.get(*k).is_some_and(Option::is_some);
        match self.inputs() {
            StepInputs::All => self.lost |= !(0..known.len()).all(|k| is_known(&k)),
            StepInputs::Last(positions) if !positions.iter().all(is_known) => {
                self.observe(&filled(known));
                return None;
            }
            StepInputs::Last(_) => {}
        }
        (!self.lost).then(|| self.expect(&filled(known)))
    }

    /// Returns whether no further step can be computed, since a value is missing that all of them depend on.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Returns the neighbours' values from which the next step follows.
    pub fn inputs(&self) -> StepInputs {
        self.algorithm.inputs(self.iteration)
    }

    /// Returns whether all parties release the same value at this iteration.
    pub fn is_common(&self, iteration: u32) -> bool {
        self.algorithm.is_common(iteration)
    }

    /// Observes the neighbours' values of the last iteration, after which the study ends.
    pub fn observe(&mut self, neighbours: &[Release]) {
        self.algorithm.observe(&View {
            iteration: self.iteration,
            own: self.own.values(),
            neighbours,
        });
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

    /// Returns the same for a step that [`expect_from`](Self::expect_from) returned for these values.
    pub fn answered_from(
        &mut self,
        known: &[Option<Release>],
        answer: &Release,
    ) -> Option<Release> {
        self.answered(&filled(known), answer)
    }

    /// Returns the answer that turned into the party's next value, for a step that [`expect_from`](Self::expect_from) returned for
    /// these values, and how far it can be from the true one because the value is rounded.
    pub fn implied_answer(
        &self,
        known: &[Option<Release>],
        next: &Release,
    ) -> Option<(Vec<f64>, f64)> {
        let neighbours = filled(known);
        let view = View {
            iteration: self.iteration,
            own: self.own.values(),
            neighbours: &neighbours,
        };
        let answer = self.algorithm.implied_answer(&view, next.values())?;
        let gain = self.algorithm.answer_gain(self.iteration + 1, known.len());
        // Twice the rounding of every coordinate leaves room for that of the arithmetic.
        let rounding = (next.values().len() as f64).sqrt() * SPACING / gain;
        Some((answer, rounding))
    }

    /// Returns whose answers add up to the party's next value, if it is a sum of answers.
    pub fn next_summands(&self) -> Option<Summands> {
        self.algorithm.summands(self.iteration + 1)
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

/// Returns the known values at their positions. No step that is computed reads the others.
fn filled(known: &[Option<Release>]) -> Vec<Release> {
    let unknown = || Release::imagined(Vec::new());
    let values = known.iter().cloned();
    values.map(|value| value.unwrap_or_else(unknown)).collect()
}
