//! `transcript.jsonl`: what a party said, heard and paid for, for anyone who wants to check it.
//!
//! One JSON object a line. First who it is and in which study, then the charges of this study with their answers, then every
//! message, own and heard, by iteration and sender, with its signature:
//!
//! ```text
//! {"radmm transcript":1,"program":{…},"study":"…","study_sha256":"…","party":"alder","node":0,"rows":120,…}
//! {"charge":{"iteration":1,"event":{"release":"objective",…},"units":[…]}}
//! {"from":"alder","node":0,"iteration":0,"units":[…],"signature":"…"}
//! ```
//! Coordinates are `units` of the grid, or `values` where the study releases doubles. An answer that was paid for is no secret:
//! it was released. Nothing else in here comes from the rows but their number.

mod line;
mod reading;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use radmm::account::Event;
use radmm::private::Recorded;
use radmm::public::graph::{Graph, NodeId};
use radmm::public::release::{Precision, Release};
use radmm_study::Study;
use radmm_study::statement_text::Program;
use serde::Serialize;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::about::About;
use crate::event::Written;
use crate::frame::Signed;
use crate::hex;
use crate::party::Party;
use crate::whole::WriteError;
use line::Line;
use reading::Reading;

/// Of what is written here.
const FORMAT: u64 = 1;

/// What a line may hold beside coordinates.
const LONGEST_REST: u64 = 4096;

/// How long a coordinate may be: a double has at most 24 characters.
const LONGEST_NUMBER: u64 = 32;

/// What a party said, heard and paid for.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// Which party's.
    pub node: NodeId,
    /// `B_i`, as it says.
    pub rows: u32,
    /// The iteration of its last value.
    pub iterations: u32,
    /// Whether it heard everybody's last value too.
    pub finished: bool,
    /// Whether its noise protects anybody, as it says.
    pub protects: bool,
    /// By iteration.
    pub charges: Vec<Recorded>,
    /// By iteration and sender.
    pub messages: BTreeMap<(u32, NodeId), Signed>,
    /// Of the file.
    pub sha256: [u8; 32],
}

/// Why a file is no transcript of a study.
#[derive(Debug, Error)]
pub enum TranscriptError {
    /// It cannot be opened.
    #[error("{}: {cause}", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// What the operating system says.
        cause: io::Error,
    },
    /// A line is not what it must be.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
}

/// What a statement says of the transcript that it goes with.
pub(crate) struct Summary {
    pub iterations: u32,
    pub finished: bool,
    /// By iteration.
    pub charges: Vec<(u32, Event)>,
    pub sha256: [u8; 32],
}

#[derive(Serialize)]
struct Head<'a> {
    #[serde(rename = "radmm transcript")]
    format: u64,
    program: Program,
    study: &'a str,
    study_sha256: String,
    party: &'a str,
    node: u32,
    rows: usize,
    iterations: u32,
    finished: bool,
    columns: usize,
    precision: Precision,
    protects: bool,
}

#[derive(Serialize)]
struct ChargeLine {
    charge: Charged,
}

#[derive(Serialize)]
struct Charged {
    iteration: u32,
    event: Written,
    #[serde(flatten)]
    answer: Option<Coordinates>,
}

#[derive(Serialize)]
struct MessageLine<'a> {
    from: &'a str,
    node: u32,
    iteration: u32,
    #[serde(flatten)]
    value: Coordinates,
    signature: String,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Coordinates {
    Units(Vec<i64>),
    Values(Vec<f64>),
}

impl From<&Release> for Coordinates {
    fn from(release: &Release) -> Self {
        match release.units() {
            Some(units) => Self::Units(units),
            None => Self::Values(release.values().to_vec()),
        }
    }
}

/// Writes what a party has on record, message by message.
pub(crate) fn write(
    party: &Party,
    about: &About,
    path: &Path,
    to: &mut dyn Write,
) -> Result<Summary, WriteError> {
    let (store, begun) = party.store();
    let (study, me) = (&about.study, about.node);
    let mut iterations = party.iteration();
    // What the disk did not take was not said.
    while iterations > 0 && store.said(begun.number, iterations)?.is_none() {
        iterations -= 1;
    }
    let mut hash = Sha256::new();
    let mut line = |mut text: String| {
        text.push('\n');
        hash.update(&text);
        let written = to.write_all(text.as_bytes());
        written.map_err(|cause| WriteError::File {
            path: path.to_owned(),
            cause,
        })
    };
    line(json(&Head {
        format: FORMAT,
        program: Program::THIS,
        study: &study.name,
        study_sha256: study.sha256(),
        party: about.name(),
        node: me.0,
        rows: about.rows,
        iterations,
        finished: begun.finished,
        columns: party.node().curator().columns(),
        precision: radmm::public::release::Precision::Grid,
        protects: about.protects(),
    }))?;
    let mut charges = Vec::new();
    for recorded in store.recorded(begun.number)? {
        charges.push((recorded.iteration, recorded.event));
        line(json(&ChargeLine {
            charge: Charged {
                iteration: recorded.iteration,
                event: Written::from(&recorded.event),
                answer: recorded.answer.as_ref().map(Coordinates::from),
            },
        }))?;
    }
    let around = neighbourhood(&about.graph, me);
    for t in 0..=iterations {
        for id in &around {
            let signed = match *id == me {
                true => store.said(begun.number, t)?,
                false => store.heard(begun.number, t, *id)?,
            };
            // Of the last iteration not everybody may have been heard.
            let Some(signed) = signed else { continue };
            line(json(&MessageLine {
                from: &study.parties[id.0 as usize].name,
                node: id.0,
                iteration: t,
                value: Coordinates::from(&signed.message.release),
                signature: hex::digits(&signed.signature),
            }))?;
        }
    }
    Ok(Summary {
        iterations,
        finished: begun.finished,
        charges,
        sha256: hash.finalize().into(),
    })
}

fn json(object: &impl Serialize) -> String {
    // Every map has string keys, so that nothing is left to fail.
    serde_json::to_string(object).expect("a line is valid JSON")
}

/// A party and its neighbours, in order.
pub(crate) fn neighbourhood(graph: &Graph, node: NodeId) -> Vec<NodeId> {
    let mut around = graph.neighbours(node).to_vec();
    around.push(node);
    around.sort_unstable();
    around
}

impl Transcript {
    /// Reads a transcript of a study, which bounds how much is read. That what it says is right is for
    /// [`verify`](crate::verify).
    pub fn read(path: &Path, study: &Study, graph: &Graph) -> Result<Self, TranscriptError> {
        let open = |cause| TranscriptError::Open {
            path: path.to_owned(),
            cause,
        };
        let mut from = BufReader::new(File::open(path).map_err(open)?);
        let columns = study.data.schema.width();
        let longest = LONGEST_REST + LONGEST_NUMBER * columns as u64;
        let mut hash = Sha256::new();
        let mut bytes = Vec::new();
        let mut read: Option<Reading<'_>> = None;
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
                Some(b'\n') => Line::parse(&bytes),
                _ if bytes.len() as u64 == longest => Err(format!(
                    "a line of more than {longest} bytes, which no message of this study has"
                )),
                _ => Err("the line has no end: the file was cut off".to_owned()),
            };
            let line = line.map_err(wrong)?;
            match &mut read {
                None => read = Some(Reading::begin(&line, study, graph).map_err(wrong)?),
                Some(read) => read.add(&line).map_err(wrong)?,
            }
        }
        match read {
            Some(read) => Ok(Self {
                sha256: hash.finalize().into(),
                ..read.transcript
            }),
            None => Err(TranscriptError::Line {
                path: path.to_owned(),
                line: 1,
                what: "the file is empty".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
