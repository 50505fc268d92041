//! What anybody can check who has the study and the parties' transcripts, and trusts none of them.
//!
//! Of one transcript: every message is signed by who is said to have sent it; nobody's is missing; every recycled value follows
//! from earlier messages to the bit, and every other one from the recorded answer; the charges are those that the study asks
//! of a party with so many neighbours and rows. Of several: nobody told two neighbours different things, and what one says it
//! heard is what the other says it said. Of a statement: its party signed it, and its numbers are those of the transcript.
//!
//! What nobody can check is that the noise was really drawn, that the rows are real and as many as is said, and that there are no
//! other charges on the same rows than those of this study.

mod course;
mod stated;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use radmm::account::Guarantee;
use radmm::public::graph::{Graph, GraphError, NodeId};
use radmm_study::Study;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::frame::put_release;
use crate::statement::StatementError;
use crate::transcript::{Transcript, TranscriptError};
use course::Course;

/// Why nothing was checked.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// The study is for simulations.
    #[error(
        "the study has no [[parties]]: nobody's signature can be checked; give the study that the parties ran"
    )]
    NoParties,
    /// The network is none.
    #[error("[network] {0}")]
    Graph(#[from] GraphError),
    /// A file cannot be opened.
    #[error(transparent)]
    Transcript(TranscriptError),
    /// A file cannot be opened.
    #[error(transparent)]
    Statement(StatementError),
}

/// What came of checking.
#[derive(Debug, Default, Serialize)]
pub struct Verdict {
    /// Those that could be read, in the order in which they were given.
    pub transcripts: Vec<Checked>,
    /// The same of statements.
    pub statements: Vec<CheckedStatement>,
    /// What does not hold.
    pub faults: Vec<Fault>,
}

/// What was checked of a transcript.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// The file.
    #[serde(serialize_with = "as_shown")]
    pub file: PathBuf,
    /// Whose it is.
    pub party: String,
    /// How many rows it says it has.
    pub rows: u32,
    /// Whether its noise protects anybody, as it says.
    pub protects: bool,
    /// The iteration of its last value.
    pub iterations: u32,
    /// How many the study has.
    pub of: u32,
    /// Whether it heard everybody's last value too.
    pub finished: bool,
    /// How many messages there are, its own and its neighbours'.
    pub messages: usize,
    /// How many of them have their sender's signature.
    pub signed: usize,
    /// How many of its values follow from earlier messages, to the bit.
    pub recycled: usize,
    /// How many follow from an answer that was paid for.
    pub answered: usize,
    /// How often it was charged.
    pub charges: usize,
    /// What that comes to.
    pub total: Option<Guarantee>,
}

/// What was checked of a statement.
#[derive(Clone, Debug, Serialize)]
pub struct CheckedStatement {
    /// The file.
    #[serde(serialize_with = "as_shown")]
    pub file: PathBuf,
    /// Whose it is, by its signature.
    pub party: String,
    /// Whether there was a transcript of this party to compare it with.
    pub compared: bool,
}

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fault {
    /// Where it shows.
    #[serde(serialize_with = "as_shown")]
    pub file: PathBuf,
    /// Whose doing it is, as far as that can be told.
    pub party: Option<String>,
    /// When.
    pub iteration: Option<u32>,
    /// What it is.
    pub what: String,
}

/// Paths need not be UTF-8, and JSON is.
fn as_shown<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        match (&self.party, self.iteration) {
            (Some(party), Some(t)) => write!(f, "{party}, iteration {t}: ")?,
            (Some(party), None) => write!(f, "{party}: ")?,
            (None, _) => {}
        }
        // Files of strangers are quoted, and must not write to the terminal as they please.
        let shown = |c: char| if c.is_control() { '?' } else { c };
        f.write_str(&self.what.chars().map(shown).collect::<String>())
    }
}

impl Verdict {
    /// Whether everything that was checked holds.
    pub fn holds(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Checks transcripts of a study, and statements beside them.
pub fn verify(
    study: &Study,
    transcripts: &[PathBuf],
    statements: &[PathBuf],
) -> Result<Verdict, VerifyError> {
    if study.parties.is_empty() {
        return Err(VerifyError::NoParties);
    }
    let graph = Graph::new(&study.network.topology, study.network.nodes as usize)?;
    let mut verdict = Verdict::default();
    let mut said = Said::default();
    let mut courses = Vec::new();
    for path in transcripts {
        // One at a time: of the others only what they come to is kept.
        match Transcript::read(path, study, &graph) {
            Ok(transcript) => {
                let course = Course::follow(study, &graph, path, &transcript);
                verdict.faults.extend(course.faults.iter().cloned());
                let told = said.compare(study, path, &transcript, &course);
                verdict.faults.extend(told);
                verdict.transcripts.push(course.checked.clone());
                courses.push(course);
            }
            Err(error @ TranscriptError::Open { .. }) => {
                return Err(VerifyError::Transcript(error));
            }
            Err(TranscriptError::Line { path, line, what }) => verdict.faults.push(Fault {
                file: path,
                party: None,
                iteration: None,
                what: format!("line {line}: {what}"),
            }),
        }
    }
    for path in statements {
        let (checked, faults) = stated::check(study, path, &courses)?;
        verdict.statements.extend(checked);
        verdict.faults.extend(faults);
    }
    Ok(verdict)
}

/// What everybody said, by all transcripts so far: a hash of it, and in which it was seen first.
#[derive(Default)]
struct Said(BTreeMap<(NodeId, u32), ([u8; 32], PathBuf, NodeId)>);

impl Said {
    /// Messages that this transcript and another one have otherwise. Only what is signed counts: anybody can write the rest.
    fn compare(
        &mut self,
        study: &Study,
        path: &Path,
        transcript: &Transcript,
        course: &Course,
    ) -> Vec<Fault> {
        let name = |id: NodeId| study.parties[id.0 as usize].name.as_str();
        let mut faults = Vec::new();
        for (&(t, from), signed) in &transcript.messages {
            if course.forged.contains(&(t, from)) {
                continue;
            }
            let mut bytes = Vec::new();
            put_release(&mut bytes, &signed.message.release);
            let hash: [u8; 32] = Sha256::digest(&bytes).into();
            let entry = self.0.entry((from, t));
            let (before, file, of) = entry.or_insert((hash, path.to_owned(), transcript.node));
            if *before != hash {
                faults.push(Fault {
                    file: path.to_owned(),
                    party: Some(name(from).to_owned()),
                    iteration: Some(t),
                    what: format!(
                        "it said two different things: one in the transcript of {} ({}), another in that of {}; both have its signature",
                        name(*of),
                        file.display(),
                        name(transcript.node)
                    ),
                });
            }
        }
        faults
    }
}
