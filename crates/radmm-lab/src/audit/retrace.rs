//! Everything that a party says, computed again by somebody else, from what was released before.
//!
//! The same [`Tracer`](trace::Tracer) that a neighbour or an outsider uses is held against a party's own outputs.

use radmm::account::Event;
use radmm::node::{Output, Stop};
use radmm::public::release::{Algorithm, Query, Release};
use radmm::trace::{self, Expected};
use thiserror::Error;

/// A question that the rows were asked, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub query: Query,
    pub event: Event,
    pub answer: Release,
}

/// How a value came about, once it is known to follow from what was released before.
#[derive(Clone, Debug)]
pub(super) enum Traced {
    Asked(Box<Asked>),
    Recycled,
}

/// Something that a party said and that does not follow from what was released before.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Untraceable {
    /// A recycled iterate is another one.
    #[error("the recycled value of iteration {0} is not the one that the messages before it give")]
    Recycled(u32),
    /// The iterate of a data step is not the one that its answer gives.
    #[error(
        "the value of iteration {0} is not the one that its answer and the messages before it give"
    )]
    Answered(u32),
    /// The rows were asked, and no charge is on record.
    #[error("the rows were asked at iteration {0}, and nothing was charged")]
    Uncharged(u32),
    /// A charge is on record, and nothing was asked.
    #[error("something was charged at iteration {0}, where nothing is asked")]
    Unasked(u32),
    /// The party did not say anything.
    #[error("nothing was said at iteration {0}")]
    Silent(u32),
}

/// Why a party cannot be followed any further.
#[derive(Clone, Debug, Error, PartialEq)]
pub(super) enum Lost {
    #[error(transparent)]
    Untraceable(#[from] Untraceable),
    #[error(transparent)]
    Stopped(#[from] Stop),
}

/// Follows one party by what it does.
pub(super) struct Tracer(trace::Tracer);

impl Tracer {
    /// `algorithm` is a fresh one, made like the party's own; `start` is what the party said first.
    pub(super) fn new(algorithm: Box<dyn Algorithm>, start: Release) -> Self {
        Self(trace::Tracer::new(algorithm, start))
    }

    /// What the party said last.
    pub(super) fn said(&self) -> &Release {
        self.0.last()
    }

    /// Compares what a party does on hearing all neighbours with what an algorithm of the same kind would do.
    pub(super) fn follow(
        &mut self,
        heard: &[Release],
        outputs: Vec<Output>,
    ) -> Result<Traced, Lost> {
        let t = self.0.iteration() + 1;
        let (mut charges, mut said) = (Vec::new(), None);
        for output in outputs {
            match output {
                Output::Record {
                    iteration,
                    event,
                    answer: Some(answer),
                } => charges.push((iteration, event, answer)),
                // Nothing was said: that it stopped comes next.
                Output::Record { answer: None, .. } => {}
                Output::Broadcast(message) => said = Some(message.release),
                Output::Stopped(stop) => return Err(stop.into()),
                Output::Done(_) => {}
            }
        }
        let said = said.ok_or(Untraceable::Silent(t))?;
        let traced = match (self.0.expect(heard), &charges[..]) {
            (Expected::Recycled(value), []) => {
                if value.as_ref() != Some(&said) {
                    return Err(Untraceable::Recycled(t).into());
                }
                Traced::Recycled
            }
            (Expected::Asked(query), [(iteration, event, answer)]) if *iteration == t => {
                if self.0.answered(heard, answer).as_ref() != Some(&said) {
                    return Err(Untraceable::Answered(t).into());
                }
                Traced::Asked(Box::new(Asked {
                    query,
                    event: *event,
                    answer: answer.clone(),
                }))
            }
            (Expected::Asked(_), []) => return Err(Untraceable::Uncharged(t).into()),
            (_, [_, ..]) => return Err(Untraceable::Unasked(t).into()),
        };
        self.0.said(said);
        Ok(traced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radmm::account::Ideal;
    use radmm::message::Message;
    use radmm::public::admm::{Admm, Penalty};
    use radmm::public::graph::NodeId;
    use radmm::public::recycled::Recycled;
    use radmm::public::release::{Precision, Step, View};
    use radmm::public::schedule::Schedule;

    fn algorithm() -> Box<dyn Algorithm> {
        let admm = Admm::new(Penalty::common(Schedule::Constant(0.7)), 2);
        Box::new(Recycled::new(admm, Schedule::Constant(0.3), 1))
    }

    fn release(x: f64, y: f64) -> Release {
        Release::of(vec![x, y], Precision::Grid).unwrap()
    }

    fn record(iteration: u32) -> Output {
        Output::Record {
            iteration,
            event: Ideal::Exact.into(),
            answer: Some(release(0.1, -0.4)),
        }
    }

    fn say(iteration: u32, release: Release) -> Output {
        Output::Broadcast(Message {
            from: NodeId(0),
            iteration,
            release,
        })
    }

    fn heard(t: u32) -> [Release; 1] {
        [release(0.3 + f64::from(t), 0.9)]
    }

    /// A tracer after the first data step.
    fn after_one() -> Tracer {
        let mut tracer = Tracer::new(algorithm(), release(0.0, 0.0));
        let outputs = vec![record(1), say(1, release(0.1, -0.4))];
        let traced = tracer.follow(&heard(0), outputs).unwrap();
        assert!(matches!(traced, Traced::Asked(_)));
        tracer
    }

    /// What a party with these messages recycles.
    fn recycled() -> Vec<f64> {
        let mut algorithm = algorithm();
        let view = |iteration, own, heard| View {
            iteration,
            own,
            heard,
        };
        let (first, answer) = (heard(0), release(0.1, -0.4));
        let view0 = view(0, &[0.0, 0.0], &first);
        algorithm.hear(&view0);
        algorithm.next(&view0);
        algorithm.answered(&view0, answer.values());
        let second = heard(1);
        let view1 = view(1, answer.values(), &second);
        algorithm.hear(&view1);
        match algorithm.next(&view1) {
            Step::Recycle(values) => values,
            Step::Ask(_) => panic!("the second iteration is recycled"),
        }
    }

    #[test]
    fn what_follows_from_messages_is_found_to_do_so() {
        let values = recycled();
        let outputs = vec![say(2, release(values[0], values[1]))];
        let traced = after_one().follow(&heard(1), outputs).unwrap();
        assert!(matches!(traced, Traced::Recycled));
    }

    #[test]
    fn the_last_bit_of_a_recycled_value_matters() {
        // By as little as values can differ; of releases on a grid, by one step of it.
        for nudge in [2f64.powi(-40), -2f64.powi(-40)] {
            let values = recycled();
            let outputs = vec![say(2, release(values[0], values[1] + nudge))];
            let lost = after_one().follow(&heard(1), outputs).unwrap_err();
            assert_eq!(lost, Lost::Untraceable(Untraceable::Recycled(2)));
        }
    }

    #[test]
    fn charges_without_questions_and_questions_without_charges_are_found() {
        let values = recycled();
        let said = || release(values[0], values[1]);
        let lost = after_one().follow(&heard(1), vec![record(2), say(2, said())]);
        assert_eq!(lost.unwrap_err(), Untraceable::Unasked(2).into());
        let mut fresh = Tracer::new(algorithm(), release(0.0, 0.0));
        let lost = fresh.follow(&heard(0), vec![say(1, release(0.1, -0.4))]);
        assert_eq!(lost.unwrap_err(), Untraceable::Uncharged(1).into());
    }

    #[test]
    fn an_iterate_that_is_not_its_answer_is_found_and_so_is_silence() {
        let start = || Tracer::new(algorithm(), release(0.0, 0.0));
        let outputs = vec![record(1), say(1, release(0.1, -0.5))];
        let lost = start().follow(&heard(0), outputs);
        assert_eq!(lost.unwrap_err(), Untraceable::Answered(1).into());
        let lost = start().follow(&heard(0), vec![record(1)]);
        assert_eq!(lost.unwrap_err(), Untraceable::Silent(1).into());
    }
}
