//! Verification of a party's outputs: every message is recomputed from earlier releases.
//!
//! It uses the same [`StepVerifier`](step_verifier::StepVerifier) as a neighbour or an outsider. Partial sums and totals along a tree
//! are recycled values like any other: what a party adds must be what it released.

use radmm::algorithm::Algorithm;
use radmm::node::{Output, StopReason};
use radmm::privacy::{Mechanism, PrivacyEvent};
use radmm::problem::Problem;
use radmm::protocol::query::Query;
use radmm::protocol::release::Release;
use radmm::step_verifier::{self, ExpectedStep};
use thiserror::Error;

/// A query to the rows, its charge and its answer.
#[derive(Clone, Debug)]
pub(super) struct PaidAnswer {
    pub query: Query,
    pub event: PrivacyEvent,
    pub answer: Release,
}

/// A step whose value was verified to follow from earlier releases.
#[derive(Clone, Debug)]
pub(super) enum VerifiedStep {
    Data(Box<PaidAnswer>),
    Recycled,
}

/// An output of a party that does not follow from earlier releases.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unverifiable {
    /// A recycled value differs from the recomputed one.
    #[error("the recycled value of iteration {0} does not follow from the messages before it")]
    Recycled(u32),
    /// The value of a data step does not follow from its answer.
    #[error(
        "the value of iteration {0} does not follow from its answer and the messages before it"
    )]
    Answered(u32),
    /// There was a query without a recorded charge.
    #[error("the query of iteration {0} was not charged")]
    Uncharged(u32),
    /// The recorded charge is not the price of the query.
    #[error("the charge at iteration {0} is not the price of its query")]
    Mispriced(u32),
    /// There is a recorded charge without a query.
    #[error("there was a charge at iteration {0}, which has no query")]
    Unasked(u32),
    /// The party sent no message.
    #[error("there was no message at iteration {0}")]
    Silent(u32),
}

/// The reason why a party cannot be verified any further.
#[derive(Clone, Debug, Error, PartialEq)]
pub(super) enum VerifyFailure {
    #[error(transparent)]
    Unverifiable(#[from] Unverifiable),
    #[error(transparent)]
    Stopped(#[from] StopReason),
}

/// The public facts on which the prices of a party's answers depend.
#[derive(Clone, Copy, Debug)]
pub(super) struct PublicTerms {
    pub problem: Problem,
    pub mechanism: Mechanism,
    /// `B`.
    pub rows: usize,
}

/// Verifies the outputs of one party.
pub(super) struct OutputVerifier {
    steps: step_verifier::StepVerifier,
    terms: PublicTerms,
}

impl OutputVerifier {
    /// Returns a verifier. `algorithm` is a new one, made like the party's own; `start` is the party's first release.
    pub(super) fn new(algorithm: Box<dyn Algorithm>, start: Release, terms: PublicTerms) -> Self {
        Self {
            steps: step_verifier::StepVerifier::new(algorithm, start),
            terms,
        }
    }

    /// Returns the party's last release.
    pub(super) fn last(&self) -> &Release {
        self.steps.last()
    }

    /// Returns whether a charge is the price of a query.
    fn is_price(&self, event: &PrivacyEvent, query: &Query) -> bool {
        let PublicTerms {
            problem,
            mechanism,
            rows,
        } = &self.terms;
        mechanism.price(query, problem, *rows).as_ref() == Ok(event)
    }

    /// Compares a party's outputs after the messages of all neighbours with those of an algorithm of the same kind.
    pub(super) fn verify(
        &mut self,
        neighbours: &[Release],
        outputs: Vec<Output>,
    ) -> Result<VerifiedStep, VerifyFailure> {
        let t = self.steps.iteration() + 1;
        let (mut charges, mut said) = (Vec::new(), None);
        for output in outputs {
            match output {
                Output::Record {
                    iteration,
                    event,
                    answer: Some(answer),
                } => charges.push((iteration, event, answer)),
                // There is no message: the stop comes next.
                Output::Record { answer: None, .. } => {}
                Output::Broadcast(message) => said = Some(message.release),
                Output::Stopped(stop) => return Err(stop.into()),
                Output::Done(_) => {}
            }
        }
        let said = said.ok_or(Unverifiable::Silent(t))?;
        let step = match (self.steps.expect(neighbours), &charges[..]) {
            (ExpectedStep::Recycled(value), []) => {
                if value.as_ref() != Some(&said) {
                    return Err(Unverifiable::Recycled(t).into());
                }
                VerifiedStep::Recycled
            }
            (ExpectedStep::Asked(query), [(iteration, event, answer)]) if *iteration == t => {
                if self.steps.answered(neighbours, answer).as_ref() != Some(&said) {
                    return Err(Unverifiable::Answered(t).into());
                }
                if !self.is_price(event, &query) {
                    return Err(Unverifiable::Mispriced(t).into());
                }
                VerifiedStep::Data(Box::new(PaidAnswer {
                    query,
                    event: *event,
                    answer: answer.clone(),
                }))
            }
            (ExpectedStep::Asked(_), []) => return Err(Unverifiable::Uncharged(t).into()),
            (_, [_, ..]) => return Err(Unverifiable::Unasked(t).into()),
        };
        self.steps.advance(said);
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radmm::algorithm::admm::{Admm, Penalty};
    use radmm::algorithm::recycled::Recycled;
    use radmm::algorithm::schedule::Schedule;
    use radmm::algorithm::{Step, View};
    use radmm::graph::NodeId;
    use radmm::privacy::{IdealRelease, NoiseDistribution};
    use radmm::problem::Loss;
    use radmm::protocol::message::Message;

    const SILENT: PublicTerms = PublicTerms {
        problem: Problem {
            loss: Loss::Logistic,
            weight: 1.0,
            ridge: 1.0,
            nodes: 2,
            tolerance: 1e-8,
            shape: None,
        },
        mechanism: Mechanism::None,
        rows: 10,
    };

    fn verifier() -> OutputVerifier {
        OutputVerifier::new(algorithm(), release(0.0, 0.0), SILENT)
    }

    fn algorithm() -> Box<dyn Algorithm> {
        let admm = Admm::new(Penalty::common(Schedule::Constant(0.7)), 2);
        Box::new(Recycled::new(admm, Schedule::Constant(0.3), 1))
    }

    fn release(x: f64, y: f64) -> Release {
        Release::rounded(&[x, y]).unwrap()
    }

    fn record(iteration: u32) -> Output {
        Output::Record {
            iteration,
            event: IdealRelease::Exact.into(),
            answer: Some(release(0.1, -0.4)),
        }
    }

    fn broadcast(iteration: u32, release: Release) -> Output {
        Output::Broadcast(Message {
            from: NodeId(0),
            iteration,
            release,
        })
    }

    fn received(t: u32) -> [Release; 1] {
        [release(0.3 + f64::from(t), 0.9)]
    }

    /// A verifier after the first data step.
    fn after_one() -> OutputVerifier {
        let mut verifier = verifier();
        let outputs = vec![record(1), broadcast(1, release(0.1, -0.4))];
        let step = verifier.verify(&received(0), outputs).unwrap();
        assert!(matches!(step, VerifiedStep::Data(_)));
        verifier
    }

    /// Returns the value that a party with these messages recycles.
    fn recycled() -> Vec<f64> {
        let mut algorithm = algorithm();
        let view = |iteration, own, neighbours| View {
            iteration,
            own,
            neighbours,
        };
        let (first, answer) = (received(0), release(0.1, -0.4));
        let view0 = view(0, &[0.0, 0.0], &first);
        algorithm.observe(&view0);
        algorithm.next_step(&view0);
        algorithm.absorb_answer(&view0, answer.values());
        let second = received(1);
        let view1 = view(1, answer.values(), &second);
        algorithm.observe(&view1);
        match algorithm.next_step(&view1) {
            Step::Recycle(values) => values,
            Step::Ask(_) => panic!("the second iteration is recycled"),
        }
    }

    #[test]
    fn a_recycled_value_that_follows_from_messages_is_verified() {
        let values = recycled();
        let outputs = vec![broadcast(2, release(values[0], values[1]))];
        let step = after_one().verify(&received(1), outputs).unwrap();
        assert!(matches!(step, VerifiedStep::Recycled));
    }

    #[test]
    fn the_last_bit_of_a_recycled_value_is_verified() {
        // One step of the grid of releases, the least by which they can differ.
        for nudge in [2f64.powi(-40), -2f64.powi(-40)] {
            let values = recycled();
            let outputs = vec![broadcast(2, release(values[0], values[1] + nudge))];
            let failure = after_one().verify(&received(1), outputs).unwrap_err();
            assert_eq!(
                failure,
                VerifyFailure::Unverifiable(Unverifiable::Recycled(2))
            );
        }
    }

    #[test]
    fn charges_without_queries_and_queries_without_charges_are_rejected() {
        let values = recycled();
        let said = || release(values[0], values[1]);
        let failure = after_one().verify(&received(1), vec![record(2), broadcast(2, said())]);
        assert_eq!(failure.unwrap_err(), Unverifiable::Unasked(2).into());
        let mut fresh = verifier();
        let failure = fresh.verify(&received(0), vec![broadcast(1, release(0.1, -0.4))]);
        assert_eq!(failure.unwrap_err(), Unverifiable::Uncharged(1).into());
    }

    #[test]
    fn a_value_that_differs_from_its_answer_and_a_missing_message_are_rejected() {
        let outputs = vec![record(1), broadcast(1, release(0.1, -0.5))];
        let failure = verifier().verify(&received(0), outputs);
        assert_eq!(failure.unwrap_err(), Unverifiable::Answered(1).into());
        let failure = verifier().verify(&received(0), vec![record(1)]);
        assert_eq!(failure.unwrap_err(), Unverifiable::Silent(1).into());
    }

    #[test]
    fn a_charge_that_is_not_the_price_of_its_query_is_rejected() {
        let outputs = || vec![record(1), broadcast(1, release(0.1, -0.4))];
        let mut noisy = verifier();
        // The answer was charged, and given, without the noise that was agreed.
        noisy.terms.mechanism = Mechanism::objective(NoiseDistribution::gamma(1.0));
        let failure = noisy.verify(&received(0), outputs());
        assert_eq!(failure.unwrap_err(), Unverifiable::Mispriced(1).into());
        assert!(verifier().verify(&received(0), outputs()).is_ok());
    }
}
