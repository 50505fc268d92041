//! What anybody can check who has the study and the parties' transcripts, and trusts none of them.
//!
//! Of one transcript: every message is signed by who is said to have sent it; nobody's is missing; every recycled value follows
//! from earlier messages to the bit, and every other one from the recorded answer; the charges are those that the study asks
//! of a party with so many neighbours and rows. Of several: nobody told two neighbours different things, and what one says it
//! heard is what the other says it said, and no transcript ends before what others heard of its party. Of a statement: its party
//! signed it, its numbers are those of the transcript, and what all studies together have spent is not less than what this one has.
//!
//! What nobody can check is that the noise was really drawn, and not from a seed that others know, that the rows are real and as many
//! as is said, and that there are no other charges on the same rows than those of this study and those that the party states.

mod account;
mod messages;
mod replay;
mod statements;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use radmm::account::Guarantee;
use radmm::public::graph::{Graph, GraphError};
use radmm_study::Study;
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::evidence::statement::StatementError;
use crate::evidence::transcript::{Transcript, TranscriptError};
use messages::Said;
use replay::Course;

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
    /// Compared with itself, a transcript always agrees.
    #[error("{}: the same transcript as {}; give each once", path.display(), before.display())]
    Twice {
        /// Which file.
        path: PathBuf,
        /// Given before it.
        before: PathBuf,
    },
}

/// What came of checking.
#[derive(Debug, Default, Serialize)]
pub struct Verdict {
    /// Those that could be read, in the order in which they were given.
    pub transcripts: Vec<Checked>,
    /// The same of statements.
    pub statements: Vec<CheckedStatement>,
    /// The parties without a transcript that could be read: of them only what others heard was checked.
    pub missing: Vec<String>,
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
    /// Whether its noise protects anybody, as it says: nobody else can tell.
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
    /// Whether it states what all studies together have spent. That this is not less than what the study itself has spent is
    /// compared; the rest is the party's word.
    pub site: bool,
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
    let mut courses: Vec<Course> = Vec::new();
    for (k, path) in transcripts.iter().enumerate() {
        let twice = |before: &PathBuf| VerifyError::Twice {
            path: path.clone(),
            before: before.clone(),
        };
        if transcripts[..k].contains(path) {
            return Err(twice(path));
        }
        // One at a time: of the others only what they come to is kept.
        match Transcript::read(path, study, &graph) {
            Ok(transcript) => {
                let sha256 = transcript.sha256;
                let mut before = courses.iter();
                if let Some(same) = before.find(|before| before.summary.sha256 == sha256) {
                    return Err(twice(same.file()));
                }
                let mut before = courses.iter();
                if let Some(other) = before.find(|before| before.node == transcript.node) {
                    verdict.faults.push(Fault {
                        file: path.clone(),
                        party: Some(other.checked.party.clone()),
                        iteration: None,
                        what: format!(
                            "its transcript is another one than {}, and a party has one",
                            other.file().display()
                        ),
                    });
                }
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
    for course in &courses {
        verdict.faults.extend(said.beyond(study, course));
    }
    let parties = study.parties.iter().enumerate();
    let missing =
        parties.filter(|(i, _)| courses.iter().all(|course| course.node.0 as usize != *i));
    verdict.missing = missing.map(|(_, party)| party.name.clone()).collect();
    for path in statements {
        let (checked, faults) = statements::check(study, path, &courses, &said)?;
        verdict.statements.extend(checked);
        verdict.faults.extend(faults);
    }
    Ok(verdict)
}
