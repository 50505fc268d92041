//! Builds a transcript from its lines, each checked against the study.

use std::collections::BTreeMap;

use radmm::curator::ChargedAnswer;
use radmm::graph::{Graph, NodeId};
use radmm::protocol::message::Message;
use radmm::protocol::release::Release;
use radmm_study::foreign_text::quoted;
use radmm_study::statement_text::PRECISION;
use radmm_study::{NoiseOrigin, Study, hex};

use super::{FORMAT, FORMAT_WITHOUT_REHEARSALS, Transcript, neighbourhood};
use crate::event_json::EventJson;
use crate::machine::SignedMessage;
use crate::message_widths::MessageWidths;
use crate::strict_json::Object;

/// A transcript up to the last line read.
pub(super) struct TranscriptReader<'a> {
    study: &'a Study,
    widths: &'a MessageWidths,
    around: Vec<NodeId>,
    pub(super) transcript: Transcript,
}

impl<'a> TranscriptReader<'a> {
    pub(super) fn new(
        header: &Object<'_>,
        study: &'a Study,
        graph: &Graph,
        widths: &'a MessageWidths,
    ) -> Result<Self, String> {
        let noise = match header.count("radmm transcript") {
            Ok(FORMAT) => match header.flag("rehearsal")? {
                true => NoiseOrigin::Seeded,
                false => NoiseOrigin::Secret,
            },
            Ok(FORMAT_WITHOUT_REHEARSALS) => NoiseOrigin::Secret,
            Ok(other) => {
                return Err(format!(
                    "a transcript of format {other}; this program reads format {FORMAT}"
                ));
            }
            Err(_) => return Err("it is not a radmm transcript".to_owned()),
        };
        let sha256 = header.text("study_sha256")?;
        if sha256 != study.sha256() {
            let (name, own) = (header.text("study")?, &study.name);
            return Err(format!(
                "study_sha256: it is of another study, {} with {}; {} has {}",
                quoted(name),
                quoted(sha256),
                quoted(own),
                quoted(&study.sha256())
            ));
        }
        let node: u32 = header.count("node")?;
        let name = header.text("party")?;
        match study.parties.get(node as usize) {
            Some(party) if party.name == name => {}
            _ => {
                return Err(format!(
                    "party: node {node} of the study is not called {}",
                    quoted(name)
                ));
            }
        }
        let columns = study.data.schema.width();
        if header.count::<usize>("columns")? != columns {
            return Err(format!("columns: the study has {columns}"));
        }
        if header.text("precision")? != PRECISION {
            return Err(format!("precision: must be \"{PRECISION}\""));
        }
        let iterations = header.count("iterations")?;
        let last = study.algorithm.iterations;
        let finished = header.flag("finished")?;
        if iterations > last || finished && iterations < last {
            return Err(format!("iterations: the study has {last}"));
        }
        let rows = match header.count("rows")? {
            0 => return Err("rows: there must be at least one".to_owned()),
            rows => rows,
        };
        let protects = header.flag("protects")?;
        if let (true, Some(how)) = (protects, study.privacy.unprotected()) {
            return Err(format!(
                "protects: answers are released {how}, which protects nobody"
            ));
        }
        if protects && noise == NoiseOrigin::Seeded {
            return Err("protects: a rehearsal protects nobody".to_owned());
        }
        let node = NodeId(node);
        Ok(Self {
            study,
            widths,
            around: neighbourhood(graph, node),
            transcript: Transcript {
                node,
                rows,
                iterations,
                finished,
                protects,
                noise,
                charges: Vec::new(),
                messages: BTreeMap::new(),
                sha256: [0; 32],
            },
        })
    }

    pub(super) fn add(&mut self, line: &Object<'_>) -> Result<(), String> {
        match line.has("charge") {
            true => self.charge(&line.object("charge")?),
            false => self.message(line),
        }
    }

    fn charge(&mut self, line: &Object<'_>) -> Result<(), String> {
        if !self.transcript.messages.is_empty() {
            return Err("a charge after messages: charges come first".to_owned());
        }
        let iteration = line.count("iteration")?;
        let after = self.transcript.charges.last().map_or(0, |c| c.iteration);
        if iteration <= after || iteration > self.study.algorithm.iterations {
            return Err(format!(
                "charge.iteration: {iteration} is out of order after {after}"
            ));
        }
        let event: EventJson = serde_json::from_value(line.get("event")?.clone())
            .map_err(|error| format!("charge.event: {error}"))?;
        self.transcript.charges.push(ChargedAnswer {
            iteration,
            event: event.into(),
            answer: match line.has("units") {
                true => Some(self.release(line, iteration)?),
                false => None,
            },
        });
        Ok(())
    }

    fn message(&mut self, line: &Object<'_>) -> Result<(), String> {
        let from = NodeId(line.count("node")?);
        let name = line.text("from")?;
        let known = self.around.binary_search(&from).is_ok();
        if !known || self.study.parties[from.0 as usize].name != name {
            return Err(format!(
                "from: {}, node {}, is neither this party nor a neighbour of it",
                quoted(name),
                from.0
            ));
        }
        let iteration = line.count("iteration")?;
        if iteration > self.transcript.iterations {
            return Err(format!(
                "iteration: {iteration}, but the transcript ends at {}",
                self.transcript.iterations
            ));
        }
        let key = (iteration, from);
        let last = self.transcript.messages.last_key_value();
        if last.is_some_and(|(last, _)| *last >= key) {
            return Err(
                "iteration: messages must be ordered by iteration and node, without duplicates"
                    .to_owned(),
            );
        }
        let release = self.release(line, iteration)?;
        let signature =
            hex::decode(line.text("signature")?).map_err(|error| format!("signature: {error}"))?;
        let message = Message {
            from,
            iteration,
            release,
        };
        let signed = SignedMessage { message, signature };
        self.transcript.messages.insert(key, signed);
        Ok(())
    }

    fn release(&self, line: &Object<'_>, iteration: u32) -> Result<Release, String> {
        let release = Release::from_units(line.integers("units")?);
        let release = release.ok_or("units: one of them is beyond the grid")?;
        let (width, got) = (self.widths.at(iteration), release.values().len());
        match got == width {
            true => Ok(release),
            false => Err(format!(
                "{got} coordinates; the study has {width} at iteration {iteration}"
            )),
        }
    }
}
