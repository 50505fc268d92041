//! Checks one transcript by replaying it from its first message to its last.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use radmm::curator::AnswerLimit;
use radmm::graph::{Graph, NodeId};
use radmm::privacy::{Mechanism, PrivacyEvent};
use radmm::protocol::release::Release;
use radmm::step_verifier::{ExpectedStep, StepVerifier};
use radmm_study::instantiate::{self, Instance};
use radmm_study::pricing::UnattainableBudget;
use radmm_study::{NoiseOrigin, Study};

use super::{CheckedTranscript, Fault};
use crate::event_json::EventJson;
use crate::evidence::transcript::{Transcript, TranscriptSummary, neighbourhood};
use crate::public_facts::{PublicFacts, study_total};
use crate::public_key::PublicKey;
use crate::setup::plan_party;

/// The result of replaying a transcript.
pub(super) struct ReplayedTranscript {
    pub checked: CheckedTranscript,
    pub faults: Vec<Fault>,
    /// The messages without a valid signature.
    pub forged: BTreeSet<(u32, NodeId)>,
    pub node: NodeId,
    pub summary: TranscriptSummary,
    /// The public facts about its party, if the study has noise for it.
    pub facts: Option<PublicFacts>,
}

/// The noise of a party, and its charges by iteration.
type PartyCharges = (Mechanism, Vec<(u32, PrivacyEvent)>);

/// The result of recomputing a party's values.
#[derive(Default)]
struct CheckedValues {
    /// The number of values that follow from messages alone.
    recycled: usize,
    /// The number of values that follow from answers.
    answered: usize,
    /// The model that follows from all values; `None` if a value does not follow, or the party has not finished.
    model: Option<Release>,
}

/// A transcript that is being replayed.
struct Replay<'a> {
    study: &'a Study,
    graph: &'a Graph,
    path: &'a Path,
    transcript: &'a Transcript,
    faults: Vec<Fault>,
}

impl ReplayedTranscript {
    /// Checks everything that one transcript alone shows.
    pub(super) fn new(study: &Study, graph: &Graph, path: &Path, transcript: &Transcript) -> Self {
        let mut replay = Replay {
            study,
            graph,
            path,
            transcript,
            faults: Vec::new(),
        };
        let forged = replay.check_signatures();
        replay.check_completeness();
        let rows = transcript.rows as usize;
        let planned = plan_party(study, graph, transcript.node, rows);
        let values = replay.check_values(planned.as_ref().ok().map(|(mechanism, _)| mechanism));
        let mechanism = replay.check_charges(planned);
        let spent = study_total(study, transcript.charges.iter().map(|charge| charge.event));
        if let Err(error) = &spent {
            replay.fault(transcript.node, None, format!("no total: {error}"));
        }
        let node = transcript.node;
        let charges = transcript.charges.iter();
        let facts = |mechanism| PublicFacts {
            study: study.clone(),
            graph: graph.clone(),
            node,
            rows: transcript.rows as usize,
            mechanism,
            noise: transcript.noise,
            read_off: !transcript.protects
                && transcript.noise == NoiseOrigin::Secret
                && study.privacy.unprotected().is_none(),
            limit: None,
        };
        Self {
            checked: CheckedTranscript {
                file: path.to_owned(),
                party: replay.name(node).to_owned(),
                rows: transcript.rows,
                protects: transcript.protects,
                rehearsal: transcript.noise == NoiseOrigin::Seeded,
                iterations: transcript.iterations,
                of: study.algorithm.iterations,
                finished: transcript.finished,
                messages: transcript.messages.len(),
                signed: transcript.messages.len() - forged.len(),
                recycled: values.recycled,
                answered: values.answered,
                charges: transcript.charges.len(),
                total: spent.ok(),
                model: values.model,
            },
            faults: replay.faults,
            forged,
            node,
            summary: TranscriptSummary {
                iterations: transcript.iterations,
                finished: transcript.finished,
                charges: charges.map(|c| (c.iteration, c.event)).collect(),
                sha256: transcript.sha256,
            },
            facts: mechanism.map(facts),
        }
    }

    pub(super) fn file(&self) -> &PathBuf {
        &self.checked.file
    }
}

impl<'a> Replay<'a> {
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

    /// Checks the signatures of all messages; returns the messages without a valid one.
    fn check_signatures(&mut self) -> BTreeSet<(u32, NodeId)> {
        let noise = self.transcript.noise;
        let [digest, other_digest] =
            [noise, noise.other()].map(|noise| self.study.spoken_digest(noise));
        let messages = &self.transcript.messages;
        let senders: BTreeSet<NodeId> = messages.keys().map(|(_, from)| *from).collect();
        let (mut forged, mut of_other_runs) = (BTreeSet::new(), BTreeSet::new());
        for from in senders {
            let key = PublicKey::new(&self.study.parties[from.0 as usize].key.bytes());
            let of_sender = messages.iter().filter(|(at, _)| at.1 == from);
            let invalid = of_sender.filter(|(_, signed)| !signed.is_signed_by(&key, &digest));
            for (at, signed) in invalid {
                forged.insert(*at);
                if signed.is_signed_by(&key, &other_digest) {
                    of_other_runs.insert(*at);
                }
            }
        }
        for at in &forged {
            let what = match (of_other_runs.contains(at), noise) {
                (false, _) => "the message has no valid signature",
                (true, NoiseOrigin::Secret) => {
                    "the message is signed for a rehearsal, whose noise everybody knows, and means nothing in a run in earnest"
                }
                (true, NoiseOrigin::Seeded) => {
                    "the message is signed for a run in earnest, and means nothing in a rehearsal"
                }
            };
            self.fault(at.1, Some(at.0), what);
        }
        forged
    }

    /// Checks that no message is missing up to the end of the transcript.
    fn check_completeness(&mut self) {
        let Transcript {
            node,
            iterations,
            finished,
            ..
        } = *self.transcript;
        for id in neighbourhood(self.graph, node) {
            // All values of the last iteration are there only if the party has finished.
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

    /// Checks the party's values up to the first fault, and its answers by the limits of its noise.
    fn check_values(&mut self, mechanism: Option<&Mechanism>) -> CheckedValues {
        let mut checked = CheckedValues::default();
        let (study, graph, node) = (self.study, self.graph, self.transcript.node);
        let columns = study.data.schema.width();
        let value = |t, id| {
            let signed = self.transcript.messages.get(&(t, id));
            signed.map(|signed| signed.message.release.clone())
        };
        for id in neighbourhood(graph, node) {
            let start = instantiate::start(study, id, columns);
            let start = Release::rounded(&start);
            if value(0, id).is_some_and(|first| Some(first) != start) {
                self.fault(id, Some(0), "the value is not the study's initial one");
                return checked;
            }
        }
        let Some(start) = value(0, node) else {
            return checked;
        };
        let instance = Instance::declared(study, graph);
        let algorithm = instance.algorithm(node, vec![0.0; columns]);
        let problem = instance.problem(node);
        let mut tracer = StepVerifier::new(algorithm, start);
        let all_received = |t| -> Option<Vec<Release>> {
            let around = graph.neighbours(node).iter();
            around.map(|id| value(t, *id)).collect()
        };
        for t in 0..self.transcript.iterations {
            // Missing messages have been reported.
            let (Some(received), Some(sent)) = (all_received(t), value(t + 1, node)) else {
                return checked;
            };
            let mut charges = self.transcript.charges.iter();
            let charge = charges.find(|charge| charge.iteration == t + 1);
            let answer = charge.and_then(|charge| charge.answer.as_ref());
            let step = tracer.expect(&received);
            if let (ExpectedStep::Asked(query), Some(answer), Some(mechanism)) =
                (&step, answer, mechanism)
            {
                let size = (self.transcript.rows as usize, columns);
                let limit = AnswerLimit::new(query, mechanism, &problem, size);
                let checked = limit.map_or(Ok(()), |limit| limit.check(answer.values(), 0.0));
                if let Err(beyond) = checked {
                    let what = format!("the answer on record cannot be an honest one: {beyond}");
                    self.fault(node, Some(t + 1), what);
                }
            }
            let (follows, counter, wrong) = match step {
                ExpectedStep::Recycled(value) => (
                    value.as_ref() == Some(&sent),
                    &mut checked.recycled,
                    "the recycled value does not follow from the messages before it",
                ),
                ExpectedStep::Asked(_) => match answer {
                    None => (
                        false,
                        &mut checked.answered,
                        "the rows were asked, and there is no answer on record",
                    ),
                    Some(answer) => (
                        tracer.answered(&received, answer).as_ref() == Some(&sent),
                        &mut checked.answered,
                        "the value does not follow from the answer on record",
                    ),
                },
            };
            if !follows {
                self.fault(node, Some(t + 1), wrong);
                return checked;
            }
            *counter += 1;
            tracer.advance(sent);
        }
        if let (true, Some(last)) = (self.transcript.finished, all_received(tracer.iteration())) {
            tracer.observe(&last);
            checked.model = tracer.model();
        }
        checked
    }

    /// Checks that the charges are those that the study asks of such a party; returns its noise.
    fn check_charges(
        &mut self,
        planned: Result<PartyCharges, UnattainableBudget>,
    ) -> Option<Mechanism> {
        let Transcript {
            node, iterations, ..
        } = *self.transcript;
        let rows = self.transcript.rows as usize;
        let declared = self.study.parties[node.0 as usize].rows;
        if let Some(declared) = declared.filter(|declared| *declared != rows) {
            let what =
                format!("the transcript is of {rows} rows, and the study declares {declared}");
            self.fault(node, None, what);
        }
        let (mechanism, planned) = match planned {
            Ok(planned) => planned,
            Err(error) => {
                self.fault(node, None, error.to_string());
                return None;
            }
        };
        let found = &self.transcript.charges;
        let event_at = |t: u32| found.iter().find(|c| c.iteration == t).map(|c| c.event);
        let mut due: Vec<(u32, PrivacyEvent)> = planned;
        // The last answer may have been charged before its value was sent.
        due.retain(|(t, _)| *t <= iterations || *t == iterations + 1 && event_at(*t).is_some());
        for &(t, event) in &due {
            match event_at(t) {
                None => self.fault(
                    node,
                    Some(t),
                    "the study charges here, and the transcript does not",
                ),
                Some(found) if !event.is_recorded_as(&found) => self.fault(
                    node,
                    Some(t),
                    format!(
                        "the charge is not the study's for {} rows: {} instead of {}",
                        self.transcript.rows,
                        as_json(&found),
                        as_json(&event)
                    ),
                ),
                Some(_) => {}
            }
        }
        for charge in found {
            if due.iter().all(|(t, _)| *t != charge.iteration) {
                let what = "there is a charge, and the study has none here";
                self.fault(node, Some(charge.iteration), what);
            }
        }
        Some(mechanism)
    }
}

/// Formats a charge as transcripts write it.
fn as_json(event: &PrivacyEvent) -> String {
    // An event has no maps: serialisation cannot fail.
    serde_json::to_string(&EventJson::from(event)).unwrap_or_default()
}
