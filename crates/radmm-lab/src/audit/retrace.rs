//! Everything that a party says, computed again by somebody else, from what was released before.
//!
//! A fresh algorithm is fed the neighbourhood's messages and the answers that were paid for. What it recycles must be what
//! the party said, to the bit: then a recycled release is a function of earlier ones, and reveals nothing more.

use radmm::account::Event;
use radmm::node::{Output, Stop};
use radmm::public::release::{Algorithm, Query, Release, Step, View};
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

/// Follows one party from iteration to iteration.
pub(super) struct Tracer {
    algorithm: Box<dyn Algorithm>,
    iteration: u32,
    own: Release,
}

impl Tracer {
    /// `algorithm` is a fresh one, made like the party's own; `start` is what the party said first.
    pub(super) fn new(algorithm: Box<dyn Algorithm>, start: Release) -> Self {
        Self {
            algorithm,
            iteration: 0,
            own: start,
        }
    }

    /// What the party said last.
    pub(super) fn said(&self) -> &Release {
        &self.own
    }

    /// Compares what a party does on hearing all neighbours with what an algorithm of the same kind would do.
    pub(super) fn follow(
        &mut self,
        heard: &[Release],
        outputs: Vec<Output>,
    ) -> Result<Traced, Lost> {
        let t = self.iteration + 1;
        let (mut charges, mut said) = (Vec::new(), None);
        for output in outputs {
            match output {
                Output::Record {
                    iteration,
                    event,
                    answer,
                } => charges.push((iteration, event, answer)),
                Output::Broadcast(message) => said = Some(message.release),
                Output::Stopped(stop) => return Err(stop.into()),
                Output::Done(_) => {}
            }
        }
        let said = said.ok_or(Untraceable::Silent(t))?;
        let view = View {
            iteration: self.iteration,
            own: self.own.values(),
            heard,
        };
        self.algorithm.hear(&view);
        let traced = match (self.algorithm.next(&view), &charges[..]) {
            (Step::Recycle(values), []) => {
                if !is(&said, values) {
                    return Err(Untraceable::Recycled(t).into());
                }
                Traced::Recycled
            }
            (Step::Ask(query), [(iteration, event, answer)]) if *iteration == t => {
                if !is(&said, self.algorithm.answered(&view, answer.values())) {
                    return Err(Untraceable::Answered(t).into());
                }
                Traced::Asked(Box::new(Asked {
                    query,
                    event: *event,
                    answer: answer.clone(),
                }))
            }
            (Step::Ask(_), []) => return Err(Untraceable::Uncharged(t).into()),
            (_, [_, ..]) => return Err(Untraceable::Unasked(t).into()),
        };
        (self.iteration, self.own) = (t, said);
        Ok(traced)
    }
}

/// To the bit: zero and minus zero are two values.
fn is(said: &Release, values: Vec<f64>) -> bool {
    let bits = |release: &Release| -> Vec<u64> {
        let values = release.values().iter();
        values.map(|value| value.to_bits()).collect()
    };
    Release::heard(values).is_some_and(|computed| bits(&computed) == bits(said))
}
