//! One transcript, followed from its first message to its last.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use radmm::account::Event;
use radmm::private::Mechanism;
use radmm::public::graph::{Graph, NodeId};
use radmm::public::release::Release;
use radmm::trace::{Expected, Tracer};
use radmm_study::pricing::{PartySize, Plan};
use radmm_study::{Study, instantiate};

use super::{Checked, Fault};
use crate::about::{About, total};
use crate::transcript::{Summary, Transcript, neighbourhood};

/// What a transcript comes to.
pub(super) struct Course {
    pub checked: Checked,
    pub faults: Vec<Fault>,
    /// Messages without their sender's signature.
    pub forged: BTreeSet<(u32, NodeId)>,
    pub node: NodeId,
    pub summary: Summary,
    /// What everybody may know of its party, if the study has noise for it.
    pub about: Option<About>,
}

/// A transcript and what it is held against.
struct Checking<'a> {
    study: &'a Study,
    graph: &'a Graph,
    path: &'a Path,
    transcript: &'a Transcript,
    faults: Vec<Fault>,
}

impl Course {
    /// Checks everything that one transcript alone can tell.
    pub(super) fn follow(
        study: &Study,
        graph: &Graph,
        path: &Path,
        transcript: &Transcript,
    ) -> Self {
        let mut checking = Checking {
            study,
            graph,
            path,
            transcript,
            faults: Vec::new(),
        };
        let forged = checking.signatures();
        checking.complete();
        let (recycled, answered) = checking.values();
        let mechanism = checking.charges();
        let spent = total(study, transcript.charges.iter().map(|charge| charge.event));
        if let Err(error) = &spent {
            checking.fault(transcript.node, None, format!("no total: {error}"));
        }
        let node = transcript.node;
        let charges = transcript.charges.iter();
        let about = |mechanism| About {
            study: study.clone(),
            graph: graph.clone(),
            node,
            rows: transcript.rows as usize,
            mechanism,
            seeded: !transcript.protects && study.privacy.unprotected().is_none(),
            limit: None,
        };
        Self {
            checked: Checked {
                file: path.to_owned(),
                party: checking.name(node).to_owned(),
                rows: transcript.rows,
                protects: transcript.protects,
                iterations: transcript.iterations,
                of: study.algorithm.iterations,
                finished: transcript.finished,
                messages: transcript.messages.len(),
                signed: transcript.messages.len() - forged.len(),
                recycled,
                answered,
                charges: transcript.charges.len(),
                total: spent.ok(),
            },
            faults: checking.faults,
            forged,
            node,
            summary: Summary {
                iterations: transcript.iterations,
                finished: transcript.finished,
                charges: charges.map(|c| (c.iteration, c.event)).collect(),
                sha256: transcript.sha256,
            },
            about: mechanism.map(about),
        }
    }

    pub(super) fn file(&self) -> &PathBuf {
        &self.checked.file
    }
}

impl<'a> Checking<'a> {
    fn name(&self, id: NodeId) -> &'a str {
        &self.study.parties[id.0 as usize].name
    }

    fn fault(&mut self, party: NodeId, iteration: Option<u32>, what: impl Into<String>) {
        self.faults.push(Fault {
            file: self.path.to_owned(),
            party: Some(self.name(party).to_owned()),
            iteration,
            what: what.into(),
        });
    }

    /// Those without one.
    fn signatures(&mut self) -> BTreeSet<(u32, NodeId)> {
        let digest = self.study.digest();
        let mut forged = BTreeSet::new();
        for (&(t, from), signed) in &self.transcript.messages {
            let key = self.study.parties[from.0 as usize].key.bytes();
            if !signed.is_by(&key, &digest) {
                self.fault(from, Some(t), "the message does not have its signature");
                forged.insert((t, from));
            }
        }
        forged
    }

    /// Whether everybody's messages are there as far as the transcript goes.
    fn complete(&mut self) {
        let Transcript {
            node,
            iterations,
            finished,
            ..
        } = *self.transcript;
        for id in neighbourhood(self.graph, node) {
            // Of its last iteration a party has heard everybody only when all is over.
            let end = match id == node || finished {
                true => iterations + 1,
                false => iterations,
            };
            let there = |t: &u32| self.transcript.messages.contains_key(&(*t, id));
            let mut missing = (0..end).filter(|t| !there(t));
            if let Some(first) = missing.next() {
                let what = match missing.count() {
                    0 => "the message is missing".to_owned(),
                    more => format!("the message is missing, and {more} after it"),
                };
                self.fault(id, Some(first), what);
            }
        }
    }

    /// How many values follow from messages alone, and how many from answers. Nothing is followed beyond what is wrong.
    fn values(&mut self) -> (usize, usize) {
        let (mut recycled, mut answered) = (0, 0);
        let (study, graph, node) = (self.study, self.graph, self.transcript.node);
        let columns = study.data.schema.width();
        let value = |t, id| {
            let signed = self.transcript.messages.get(&(t, id));
            signed.map(|signed| signed.message.release.clone())
        };
        for id in neighbourhood(graph, node) {
            let start = instantiate::start(study, id, columns);
            let start = Release::of(start, radmm::public::release::Precision::Grid);
            if value(0, id).is_some_and(|said| Some(said) != start) {
                self.fault(id, Some(0), "the value is not the study's start");
                return (0, 0);
            }
        }
        let Some(start) = value(0, node) else {
            return (0, 0);
        };
        let method = &study.algorithm.method;
        let algorithm = instantiate::algorithm(method, graph, node, vec![0.0; columns]);
        let mut tracer = Tracer::new(algorithm, start);
        for t in 0..self.transcript.iterations {
            let around = graph.neighbours(node).iter();
            let heard: Option<Vec<Release>> = around.map(|id| value(t, *id)).collect();
            // What is missing has been told.
            let (Some(heard), Some(said)) = (heard, value(t + 1, node)) else {
                break;
            };
            let mut charges = self.transcript.charges.iter();
            let charge = charges.find(|charge| charge.iteration == t + 1);
            let answer = charge.and_then(|charge| charge.answer.as_ref());
            let (follows, counter, wrong) = match tracer.expect(&heard) {
                Expected::Recycled(value) => (
                    value.as_ref() == Some(&said),
                    &mut recycled,
                    "the recycled value does not follow from the messages before it",
                ),
                Expected::Asked(_) => match answer {
                    None => (
                        false,
                        &mut answered,
                        "the rows were asked, and there is no answer that was charged",
                    ),
                    Some(answer) => (
                        tracer.answered(&heard, answer).as_ref() == Some(&said),
                        &mut answered,
                        "the value does not follow from the answer on record",
                    ),
                },
            };
            if !follows {
                self.fault(node, Some(t + 1), wrong);
                break;
            }
            *counter += 1;
            tracer.said(said);
        }
        (recycled, answered)
    }

    /// Whether the charges are those that the study asks of such a party; its noise.
    fn charges(&mut self) -> Option<Mechanism> {
        let Transcript {
            node, iterations, ..
        } = *self.transcript;
        let i = node.0 as usize;
        let billed = PartySize {
            name: self.name(node).to_owned(),
            rows: self.transcript.rows as usize,
        };
        let plan = Plan {
            study: self.study,
            graph: self.graph,
            parties: vec![billed; self.graph.len()],
        };
        let planned = plan.party(i).noise().and_then(|mechanism| {
            let charges = plan.party(i).charges(&mechanism)?;
            Ok((mechanism, charges))
        });
        let (mechanism, planned) = match planned {
            Ok(planned) => planned,
            Err(error) => {
                self.fault(node, None, error.to_string());
                return None;
            }
        };
        let found = &self.transcript.charges;
        let event_at = |t: u32| found.iter().find(|c| c.iteration == t).map(|c| c.event);
        let mut due: Vec<(u32, Event)> = planned;
        // A question may have been charged whose value never came to be said.
        due.retain(|(t, _)| *t <= iterations || *t == iterations + 1 && event_at(*t).is_some());
        for &(t, event) in &due {
            match event_at(t) {
                None => self.fault(node, Some(t), "the study charges here, and the transcript does not"),
                Some(found) if found != event => self.fault(
                    node,
                    Some(t),
                    format!("the charge is not the study's for {} rows: {found:?} in place of {event:?}", self.transcript.rows),
                ),
                Some(_) => {}
            }
        }
        for charge in found {
            if due.iter().all(|(t, _)| *t != charge.iteration) {
                let what = "there is a charge, and the study asks for none here";
                self.fault(node, Some(charge.iteration), what);
            }
        }
        Some(mechanism)
    }
}
