//! Checks the transcripts and statements of a study, trusting none of its parties.
//!
//! One transcript: every message has its sender's signature, for a rehearsal or for a run in earnest, and none is missing. Every recycled value follows from earlier messages
//! to the bit, and every other value from the recorded answer. The charges are those that the study asks of a party with so many
//! neighbours and rows. Every answer on record is one that an honest party can give.
//!
//! Several transcripts: no party sent two neighbours different values. What one received is what the other sent. No transcript ends
//! before the last message that others received from its party. The values of a party without a transcript are recomputed as far as
//! the messages in its neighbours' transcripts allow.
//!
//! A model: its weights are those that follow from its party's transcript.
//!
//! A statement: its party signed it, its numbers are those of the transcript, and what all studies together have spent is at least
//! what this one has spent.
//!
//! Nobody can check that the noise was really drawn, and not from a seed that others know; that the rows are real and as many as
//! stated; and that there are no more charges on the same rows than the party states.

mod absent;
mod account;
mod messages;
mod models;
mod replay;
mod statements;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use radmm::graph::GraphError;
use radmm::privacy::Guarantee;
use radmm::protocol::release::Release;
use radmm_study::Study;
use radmm_study::foreign_text::visible;
use serde::{Serialize, Serializer};
use thiserror::Error;

use super::statement::StatementError;
use super::transcript::{Transcript, TranscriptError};
use crate::machine::StudyLimits;
use messages::SentMessages;
use replay::ReplayedTranscript;

/// The reason why nothing was checked.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// The study names no parties: it is for simulations.
    #[error(
        "the study has no [[parties]]: no signature can be checked; give the study that the parties ran"
    )]
    NoParties,
    /// The network is invalid.
    #[error("[network] {0}")]
    Graph(#[from] GraphError),
    /// A transcript cannot be opened.
    #[error(transparent)]
    Transcript(TranscriptError),
    /// A statement cannot be opened.
    #[error(transparent)]
    Statement(StatementError),
    /// A model cannot be opened.
    #[error("{}: {cause}", path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The same transcript was given twice. Compared with itself it would always agree.
    #[error("{}: the same transcript as {}; give each once", path.display(), before.display())]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// The same file, given before.
        before: PathBuf,
    },
}

/// The result of checking a study.
#[derive(Debug, Default, Serialize)]
pub struct Verification {
    /// The transcripts that could be read, in the order in which they were given.
    pub transcripts: Vec<CheckedTranscript>,
    /// The statements that could be read, in the order in which they were given.
    pub statements: Vec<CheckedStatement>,
    /// The models that could be read, in the order in which they were given.
    pub models: Vec<CheckedModel>,
    /// The parties without a readable transcript. Only the messages that others received from them were checked.
    pub missing: Vec<String>,
    /// Everything that does not hold.
    pub faults: Vec<Fault>,
}

/// The result of checking one transcript.
#[derive(Clone, Debug, Serialize)]
pub struct CheckedTranscript {
    /// The file.
    #[serde(serialize_with = "serialize_path")]
    pub file: PathBuf,
    /// The party's name.
    pub party: String,
    /// The number of rows, as the party states it.
    pub rows: u32,
    /// Whether the noise protects anybody, as the party states it. Nobody else can tell.
    pub protects: bool,
    /// Whether it is of a rehearsal, whose messages mean nothing in earnest.
    pub rehearsal: bool,
    /// The iteration of the party's last value.
    pub iterations: u32,
    /// The number of iterations of the study.
    pub of: u32,
    /// Whether the party received the last value of every neighbour too.
    pub finished: bool,
    /// The number of messages, sent and received.
    pub messages: usize,
    /// The number of messages with a valid signature.
    pub signed: usize,
    /// The number of the party's values that follow from earlier messages, to the bit.
    pub recycled: usize,
    /// The number of the party's values that follow from an answer that was charged.
    pub answered: usize,
    /// The number of charges.
    pub charges: usize,
    /// The total of the charges.
    pub total: Option<Guarantee>,
    /// The model that follows from the messages; `None` if a value does not follow, or the party has not finished.
    #[serde(skip)]
    pub model: Option<Release>,
}

/// The result of checking one statement.
#[derive(Clone, Debug, Serialize)]
pub struct CheckedStatement {
    /// The file.
    #[serde(serialize_with = "serialize_path")]
    pub file: PathBuf,
    /// The party that signed it.
    pub party: String,
    /// Whether it was compared with a transcript of the party.
    pub compared: bool,
    /// Whether it states what all studies together have spent. This is checked to be at least what the study itself has spent;
    /// beyond that it is the party's word.
    pub site: bool,
}

/// The result of checking one model.
#[derive(Clone, Debug, Serialize)]
pub struct CheckedModel {
    /// The file.
    #[serde(serialize_with = "serialize_path")]
    pub file: PathBuf,
    /// The party whose model it is, as the file states it.
    pub party: String,
    /// Whether it was compared with the model that follows from the party's transcript.
    pub compared: bool,
}

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fault {
    /// The file that shows it.
    #[serde(serialize_with = "serialize_path")]
    pub file: PathBuf,
    /// The party at fault, as far as that can be told.
    pub party: Option<String>,
    /// The iteration.
    pub iteration: Option<u32>,
    /// The description.
    pub what: String,
}

/// Serialises a path as text. Paths need not be UTF-8, and JSON is.
fn serialize_path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

/// The most characters of a description that are shown.
const MAX_SHOWN: usize = 2000;

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        match (&self.party, self.iteration) {
            (Some(party), Some(t)) => write!(f, "{party}, iteration {t}: ")?,
            (Some(party), None) => write!(f, "{party}: ")?,
            (None, _) => {}
        }
        // Untrusted files are quoted, and must not control the terminal.
        f.write_str(&visible(&self.what, MAX_SHOWN))
    }
}

impl Verification {
    /// Returns whether everything that was checked holds.
    pub fn holds(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Checks transcripts of a study, and statements beside them.
pub fn verify(
    study: &Study,
    transcripts: &[PathBuf],
    statements: &[PathBuf],
) -> Result<Verification, VerifyError> {
    if study.parties.is_empty() {
        return Err(VerifyError::NoParties);
    }
    let graph = study.network.graph()?;
    let mut verification = Verification::default();
    let mut sent = SentMessages::default();
    let mut replayed: Vec<ReplayedTranscript> = Vec::new();
    for (k, path) in transcripts.iter().enumerate() {
        let duplicate = |before: &PathBuf| VerifyError::Duplicate {
            path: path.clone(),
            before: before.clone(),
        };
        if transcripts[..k].contains(path) {
            return Err(duplicate(path));
        }
        // One transcript at a time is in memory.
        match Transcript::read(path, study, &graph) {
            Ok(transcript) => {
                let sha256 = transcript.sha256;
                let mut before = replayed.iter();
                if let Some(same) = before.find(|before| before.summary.sha256 == sha256) {
                    return Err(duplicate(same.file()));
                }
                let mut before = replayed.iter();
                if let Some(other) = before.find(|before| before.node == transcript.node) {
                    verification.faults.push(Fault {
                        file: path.clone(),
                        party: Some(other.checked.party.clone()),
                        iteration: None,
                        what: format!(
                            "its transcript differs from {}, and a party has only one",
                            other.file().display()
                        ),
                    });
                }
                let replay = ReplayedTranscript::new(study, &graph, path, &transcript);
                verification.faults.extend(replay.faults.iter().cloned());
                if let Some(first) = replayed.first() {
                    verification.faults.extend(other_run(first, &replay));
                }
                let conflicts = sent.compare(study, path, &transcript, &replay);
                verification.faults.extend(conflicts);
                verification.transcripts.push(replay.checked.clone());
                replayed.push(replay);
            }
            Err(error @ TranscriptError::Open { .. }) => {
                return Err(VerifyError::Transcript(error));
            }
            Err(TranscriptError::Line { path, line, what }) => verification.faults.push(Fault {
                file: path,
                party: None,
                iteration: None,
                what: format!("line {line}: {what}"),
            }),
        }
    }
    for replay in &replayed {
        verification.faults.extend(sent.truncation(study, replay));
    }
    let limits = Arc::new(StudyLimits::new(study, &graph, []));
    for absent in graph.nodes() {
        if replayed.iter().any(|replay| replay.node == absent) {
            continue;
        }
        let party = &study.parties[absent.0 as usize];
        verification.missing.push(party.name.clone());
        let faults = absent::check(study, &graph, absent, &limits, &replayed)?;
        verification.faults.extend(faults);
    }
    for path in statements {
        let (checked, faults) = statements::check(study, path, &replayed, &sent)?;
        verification.statements.extend(checked);
        verification.faults.extend(faults);
    }
    Ok(verification)
}

/// Returns the fault of a transcript that is of a rehearsal if the first one is not, or the other way round.
fn other_run(first: &ReplayedTranscript, this: &ReplayedTranscript) -> Option<Fault> {
    let run = |is_rehearsal| match is_rehearsal {
        true => "a rehearsal",
        false => "a run in earnest",
    };
    let (one, other) = (first.checked.rehearsal, this.checked.rehearsal);
    (one != other).then(|| Fault {
        file: this.file().clone(),
        party: Some(this.checked.party.clone()),
        iteration: None,
        what: format!(
            "its transcript is of {}, and {} is of {}: they are not of one run",
            run(other),
            first.file().display(),
            run(one)
        ),
    })
}
