//! From lines to a transcript, each held against the study.

use std::collections::BTreeMap;

use radmm::message::Message;
use radmm::private::Recorded;
use radmm::public::graph::{Graph, NodeId};
use radmm::public::release::{Precision, Release};
use radmm_study::Study;

use super::line::Line;
use super::{FORMAT, Transcript, neighbourhood};
use crate::event::Written;
use crate::frame::Signed;
use crate::hex;

/// A transcript up to some line.
pub(super) struct Reading<'a> {
    study: &'a Study,
    around: Vec<NodeId>,
    pub(super) transcript: Transcript,
}

impl<'a> Reading<'a> {
    pub(super) fn begin(head: &Line, study: &'a Study, graph: &Graph) -> Result<Self, String> {
        match head.count("radmm transcript").map(u64::from) {
            Ok(FORMAT) => {}
            Ok(other) => {
                return Err(format!(
                    "a transcript of format {other}, and this program knows {FORMAT}"
                ));
            }
            Err(_) => return Err("it is not a radmm transcript".to_owned()),
        }
        let sha256 = head.text("study_sha256")?;
        if sha256 != study.sha256() {
            let (name, own) = (head.text("study")?, &study.name);
            return Err(format!(
                "study_sha256: it is of another study, {name:?} with {sha256:?}; {own:?} has {:?}",
                study.sha256()
            ));
        }
        let node = head.count("node")?;
        let name = head.text("party")?;
        match study.parties.get(node as usize) {
            Some(party) if party.name == name => {}
            _ => {
                return Err(format!(
                    "party: node {node} of the study is not called {name:?}"
                ));
            }
        }
        let columns = study.data.schema.width();
        if head.count("columns")? as usize != columns {
            return Err(format!("columns: the study has {columns}"));
        }
        let precision = match radmm::public::release::Precision::Grid {
            Precision::Grid => "grid",
            Precision::Float => "float",
        };
        if head.text("precision")? != precision {
            return Err(format!("precision: the study says {precision:?}"));
        }
        let iterations = head.count("iterations")?;
        let last = study.algorithm.iterations;
        let finished = head.flag("finished")?;
        if iterations > last || finished && iterations < last {
            return Err(format!("iterations: the study has {last}"));
        }
        let rows = match head.count("rows")? {
            0 => return Err("rows: there must be at least one".to_owned()),
            rows => rows,
        };
        let protects = head.flag("protects")?;
        if let (true, Some(how)) = (protects, study.privacy.unprotected()) {
            return Err(format!(
                "protects: answers are released {how}, which protects nobody"
            ));
        }
        let node = NodeId(node);
        Ok(Self {
            study,
            around: neighbourhood(graph, node),
            transcript: Transcript {
                node,
                rows,
                iterations,
                finished,
                protects,
                charges: Vec::new(),
                messages: BTreeMap::new(),
                sha256: [0; 32],
            },
        })
    }

    pub(super) fn add(&mut self, line: &Line) -> Result<(), String> {
        match line.has("charge") {
            true => self.charge(&line.within("charge")?),
            false => self.message(line),
        }
    }

    fn charge(&mut self, line: &Line) -> Result<(), String> {
        if !self.transcript.messages.is_empty() {
            return Err("a charge after messages: charges come first".to_owned());
        }
        let iteration = line.count("iteration")?;
        let after = self.transcript.charges.last().map_or(0, |c| c.iteration);
        if iteration <= after || iteration > self.study.algorithm.iterations {
            return Err(format!(
                "charge.iteration: {iteration} is out of turn after {after}"
            ));
        }
        let written: Written = serde_json::from_value(line.get("event")?.clone())
            .map_err(|error| format!("charge.event: {error}"))?;
        self.transcript.charges.push(Recorded {
            iteration,
            event: written.into(),
            answer: match line.has("units") || line.has("values") {
                true => Some(self.release(line)?),
                false => None,
            },
        });
        Ok(())
    }

    fn message(&mut self, line: &Line) -> Result<(), String> {
        let from = NodeId(line.count("node")?);
        let name = line.text("from")?;
        let known = self.around.binary_search(&from).is_ok();
        if !known || self.study.parties[from.0 as usize].name != name {
            return Err(format!(
                "from: {name:?}, node {}, is neither this party nor a neighbour of it",
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
                "iteration: messages go by iteration, then by node, and each is there once"
                    .to_owned(),
            );
        }
        let release = self.release(line)?;
        let signature = hex::bytes(line.text("signature")?);
        let signature =
            signature.ok_or("signature: must be 128 hexadecimal digits in lower case")?;
        let message = Message {
            from,
            iteration,
            release,
        };
        let signed = Signed { message, signature };
        self.transcript.messages.insert(key, signed);
        Ok(())
    }

    fn release(&self, line: &Line) -> Result<Release, String> {
        let release = match radmm::public::release::Precision::Grid {
            Precision::Grid => Release::on_grid(line.integers("units")?)
                .ok_or("units: one of them is beyond the grid")?,
            Precision::Float => {
                Release::float(line.doubles("values")?).ok_or("values: one is not finite")?
            }
        };
        let (columns, got) = (self.study.data.schema.width(), release.values().len());
        match got == columns {
            true => Ok(release),
            false => Err(format!("{got} coordinates; the study has {columns}")),
        }
    }
}
