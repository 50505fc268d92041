//! `transcript.jsonl`: what a party sent, received and was charged for, so that anyone can check it.
//!
//! One JSON object a line: first a header, then the charges of this study with their answers, then every message sent and received,
//! by iteration and sender, with its signature:
//!
//! ```text
//! {"radmm transcript":2,"program":{…},"study":"…","study_sha256":"…","party":"alder","node":0,"rows":120,…}
//! {"charge":{"iteration":1,"event":{"release":"objective",…},"units":[…]}}
//! {"from":"alder","node":0,"iteration":0,"units":[…],"signature":"…"}
//! ```
//! Coordinates are `units` of the grid.
//!
//! Privacy: the answers in a transcript are released and charged. Nothing else in it comes from the rows but their number.

mod read;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use radmm::curator::ChargedAnswer;
use radmm::graph::{Graph, NodeId};
use radmm::privacy::PrivacyEvent;
use radmm::protocol::release::Release;
use radmm_study::foreign_text::quoted;
use radmm_study::statement_text::{PRECISION, Program};
use radmm_study::{NoiseOrigin, Study, hex};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::results::{ResultsError, failed};
use crate::event_json::EventJson;
use crate::machine::{Party, SignedMessage};
use crate::message_widths::MessageWidths;
use crate::public_facts::PublicFacts;
use crate::public_key::PublicKey;
use crate::store::{Store, StoreError};
use crate::strict_json::{self, Object, StrictJsonError};
use read::TranscriptReader;

/// The version of the format.
const FORMAT: u32 = 2;

/// The version before, which knew no rehearsals.
const FORMAT_WITHOUT_REHEARSALS: u32 = 1;

/// The largest length of a line without its coordinates, in bytes.
const MAX_LINE: u64 = 4096;

/// The largest length of a coordinate with its comma, in bytes.
const MAX_NUMBER: u64 = 32;

/// The transcript of one party.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// The party's node.
    pub node: NodeId,
    /// The number of rows, `B_i`, as the party states it.
    pub rows: u32,
    /// The iteration of its last value.
    pub iterations: u32,
    /// Whether it received the last value of every neighbour too.
    pub finished: bool,
    /// Whether its noise protects anybody, as the party states it.
    pub protects: bool,
    /// The source of its noise. The messages are signed as those of a rehearsal if it is seeded.
    pub noise: NoiseOrigin,
    /// The charges and answers, by iteration.
    pub charges: Vec<ChargedAnswer>,
    /// The messages, by iteration and sender.
    pub messages: BTreeMap<(u32, NodeId), SignedMessage>,
    /// The SHA-256 hash of the file.
    pub sha256: [u8; 32],
}

/// The reason why a file is not a transcript of a study.
#[derive(Debug, Error)]
pub enum TranscriptError {
    /// The file cannot be opened.
    #[error("{}: {cause}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// A line is invalid.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The reason.
        what: String,
    },
}

/// The facts of a transcript that its statement repeats.
pub(super) struct TranscriptSummary {
    pub iterations: u32,
    pub finished: bool,
    /// The charges, by iteration.
    pub charges: Vec<(u32, PrivacyEvent)>,
    pub sha256: [u8; 32],
}

#[derive(Serialize)]
struct Header<'a> {
    #[serde(rename = "radmm transcript")]
    format: u32,
    program: Program,
    study: &'a str,
    study_sha256: String,
    party: &'a str,
    node: u32,
    rows: usize,
    iterations: u32,
    finished: bool,
    columns: usize,
    precision: &'static str,
    protects: bool,
    rehearsal: bool,
}

#[derive(Serialize)]
struct ChargeLine {
    charge: Charged,
}

#[derive(Serialize)]
struct Charged {
    iteration: u32,
    event: EventJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    units: Option<Vec<i64>>,
}

#[derive(Serialize)]
struct MessageLine<'a> {
    from: &'a str,
    node: u32,
    iteration: u32,
    units: Vec<i64>,
    signature: String,
}

/// Writes the transcript of a party from its store, message by message.
pub(super) fn write(
    party: &Party,
    facts: &PublicFacts,
    path: &Path,
    to: &mut dyn Write,
) -> Result<TranscriptSummary, ResultsError> {
    let (store, record) = party.store();
    let (study, me) = (&facts.study, facts.node);
    let mut iterations = party.iteration();
    // A value that was not persisted was not sent.
    while iterations > 0 && store.sent(record.number, iterations)?.is_none() {
        iterations -= 1;
    }
    let mut hash = Sha256::new();
    let mut line = |mut text: String| {
        text.push('\n');
        hash.update(&text);
        let written = to.write_all(text.as_bytes());
        written.map_err(failed(path))
    };
    line(json(&Header {
        format: FORMAT,
        program: Program::THIS,
        study: &study.name,
        study_sha256: study.sha256(),
        party: facts.name(),
        node: me.0,
        rows: facts.rows,
        iterations,
        finished: record.finished,
        columns: party.node().curator().columns(),
        precision: PRECISION,
        protects: facts.protects(),
        rehearsal: facts.noise == NoiseOrigin::Seeded,
    }))?;
    let mut charges = Vec::new();
    for recorded in store.charged_answers(record.number)? {
        charges.push((recorded.iteration, recorded.event));
        line(json(&ChargeLine {
            charge: Charged {
                iteration: recorded.iteration,
                event: EventJson::from(&recorded.event),
                units: recorded.answer.as_ref().map(Release::units),
            },
        }))?;
    }
    let around = neighbourhood(&facts.graph, me);
    let kept = kept_as_evidence(store, record.number, facts)?;
    for t in 0..=iterations {
        let received = store.received_at(record.number, t)?;
        for id in &around {
            let is_theirs = |signed: &&SignedMessage| {
                signed.message.from == *id && signed.message.iteration == t
            };
            let signed = match *id == me {
                true => store.sent(record.number, t)?,
                false => { received.iter().chain(&kept) }.find(is_theirs).cloned(),
            };
            // Some values of the last iteration may not have been received.
            let Some(signed) = signed else { continue };
            line(json(&MessageLine {
                from: &study.parties[id.0 as usize].name,
                node: id.0,
                iteration: t,
                units: signed.message.release.units(),
                signature: hex::encode(&signed.signature),
            }))?;
        }
    }
    Ok(TranscriptSummary {
        iterations,
        finished: record.finished,
        charges,
        sha256: hash.finalize().into(),
    })
}

/// Returns the signed values of neighbours that were rejected and stopped the party, so that others see them too.
fn kept_as_evidence(
    store: &Store,
    record: u32,
    facts: &PublicFacts,
) -> Result<Vec<SignedMessage>, StoreError> {
    let study = &facts.study;
    let digest = study.spoken_digest(facts.noise);
    let read = |digits: &String| SignedMessage::from_bytes(&hex::decode_any(digits).ok()?).ok();
    let is_signed = |signed: &SignedMessage| {
        let sender = study.parties.get(signed.message.from.0 as usize);
        sender.is_some_and(|sender| {
            signed.is_signed_by(&PublicKey::new(&sender.key.bytes()), &digest)
        })
    };
    let kept = store.misbehaviours(record)?;
    let frames = kept.iter().flat_map(|one| &one.frames);
    Ok(frames.filter_map(read).filter(is_signed).collect())
}

fn json(object: &impl Serialize) -> String {
    // Cannot fail: every map has string keys.
    serde_json::to_string(object).expect("a line is valid JSON")
}

/// Returns a party and its neighbours, in order.
pub(super) fn neighbourhood(graph: &Graph, node: NodeId) -> Vec<NodeId> {
    let mut around = graph.neighbours(node).to_vec();
    around.push(node);
    around.sort_unstable();
    around
}

impl Transcript {
    /// Reads a transcript of a study, which bounds how much is read. Whether its content is right is for
    /// [`verify`](super::verify).
    pub fn read(path: &Path, study: &Study, graph: &Graph) -> Result<Self, TranscriptError> {
        let open = |cause| TranscriptError::Open {
            path: path.to_owned(),
            cause,
        };
        let mut from = BufReader::new(File::open(path).map_err(open)?);
        let widths = MessageWidths::new(study, graph);
        let longest = MAX_LINE + MAX_NUMBER * widths.largest() as u64;
        let mut hash = Sha256::new();
        let mut bytes = Vec::new();
        let mut reader: Option<TranscriptReader<'_>> = None;
        for number in 1.. {
            bytes.clear();
            let mut limited = (&mut from).take(longest);
            if limited.read_until(b'\n', &mut bytes).map_err(open)? == 0 {
                break;
            }
            hash.update(&bytes);
            let wrong = |what: String| TranscriptError::Line {
                path: path.to_owned(),
                line: number,
                what,
            };
            let line = match bytes.last() {
                Some(b'\n') => parse_line(&bytes),
                _ if bytes.len() as u64 == longest => Err(format!(
                    "a line of more than {longest} bytes, longer than any message of this study"
                )),
                _ => Err("the line has no end: the file is truncated".to_owned()),
            };
            let line = line.map_err(wrong)?;
            let object = Object::new(&line).map_err(wrong)?;
            match &mut reader {
                None => {
                    let header = TranscriptReader::new(&object, study, graph, &widths);
                    reader = Some(header.map_err(wrong)?);
                }
                Some(reader) => reader.add(&object).map_err(wrong)?,
            }
        }
        match reader {
            Some(reader) => Ok(Self {
                sha256: hash.finalize().into(),
                ..reader.transcript
            }),
            None => Err(TranscriptError::Line {
                path: path.to_owned(),
                line: 1,
                what: "the file is empty".to_owned(),
            }),
        }
    }
}

fn parse_line(bytes: &[u8]) -> Result<Value, String> {
    strict_json::parse(bytes).map_err(|error| match error {
        StrictJsonError::Json(error) => format!("invalid JSON (column {})", error.column()),
        StrictJsonError::DuplicateKey(key) => format!("duplicate key {}", quoted(&key)),
    })
}

#[cfg(test)]
pub(super) mod tests;
