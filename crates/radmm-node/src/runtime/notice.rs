//! The lines of a node's log.
//!
//! Privacy: a log is read by people who may not see rows, and is forwarded to others. So its lines are values of one type, which has
//! no field for a row, a label, a loss or the running time of a solver. It depends on rows only through releases, which are paid for.

use std::fmt;

use radmm::node::StepKind;
use radmm::privacy::Guarantee;
use radmm_study::foreign_text::{MAX_FOREIGN_TEXT, visible};
use serde::Serialize;

/// The urgency of a line of a log, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// The party cannot go on.
    Error,
    /// Something that the operator may have to look into.
    Warning,
    /// The course of a run.
    Info,
    /// Every iteration.
    Debug,
}

impl LogLevel {
    /// All levels.
    pub const ALL: [Self; 4] = [Self::Error, Self::Warning, Self::Info, Self::Debug];

    /// Returns the level as one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// The most characters of a text in a line: a reason of our own with a quoted one in it.
const MAX_TEXT: usize = 4 * MAX_FOREIGN_TEXT;

/// A reason to suspect a neighbour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suspicion {
    /// The neighbour.
    pub peer: String,
    /// The iteration of its value.
    pub iteration: u32,
    /// The reason, in words.
    pub why: String,
}

/// One line of a node's log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Notice {
    /// A command is still printing the rows.
    ReadingRows {
        /// The time since its start, in seconds.
        seconds: u64,
        /// The time since it last printed something, in seconds.
        silent: u64,
    },
    /// The party has started or resumed.
    Started {
        /// The study's name.
        study: String,
        /// The study's SHA-256 digest.
        study_sha256: String,
        /// The party's name; not serialised, since every line of a log has it.
        #[serde(skip)]
        party: String,
        /// The address that the node listens on.
        listening: Option<String>,
        /// The iteration of its last value: above 0 if it was resumed.
        iteration: u32,
        /// The number of iterations, `T`.
        iterations: u32,
        /// Whether its noise protects anybody.
        protects: bool,
    },
    /// A neighbour is connected and holds the same study.
    Connected {
        /// The neighbour.
        peer: String,
        /// The iteration of its last value.
        iteration: u32,
    },
    /// A link to a neighbour has closed.
    Disconnected {
        /// The neighbour.
        peer: String,
        /// The reason.
        reason: String,
    },
    /// A neighbour cannot be reached. It is dialled again.
    Unreachable {
        /// The neighbour.
        peer: String,
        /// The reason.
        reason: String,
    },
    /// A neighbour has another study, another version of the protocol, or another value where all must have the same.
    Disagrees {
        /// The neighbour.
        peer: String,
        /// The first difference.
        what: String,
    },
    /// A connection from a stranger was rejected.
    Refused {
        /// The stranger's address.
        address: String,
        /// The reason.
        reason: String,
        /// The number of connections that were rejected since the last such notice without one of their own.
        more: u64,
    },
    /// A neighbour sent something invalid.
    #[serde(rename = "lied")]
    Misbehaved {
        /// The neighbour.
        peer: String,
        /// A description.
        what: String,
    },
    /// A neighbour's values are possible, and hardly any honest party would send them.
    Suspicious(Suspicion),
    /// An iteration is persisted and its value sent.
    Iterated {
        /// The iteration.
        iteration: u32,
        /// The number of iterations, `T`.
        iterations: u32,
        /// The kind of its step.
        kind: StepKind,
        /// The total of this study so far.
        #[serde(flatten)]
        spent: Guarantee,
        /// The largest distance between a neighbour's last value and this party's.
        consensus: f64,
    },
    /// An answer was not ready at its tick, and left at a later one. Neighbours see that too, and nothing finer.
    Late {
        /// The iteration.
        iteration: u32,
        /// The number of ticks after which it left.
        ticks: u32,
    },
    /// All iterations are done.
    Finished {
        /// The number of iterations, `T`.
        iterations: u32,
        /// The total of this study so far.
        #[serde(flatten)]
        spent: Guarantee,
    },
    /// The operator stops the party.
    Stopping {
        /// The iteration of its last value.
        iteration: u32,
    },
    /// A file of results was written.
    Wrote {
        /// The file.
        file: String,
    },
    /// More was to be said about a neighbour than belongs into a log.
    LeftOut {
        /// The neighbour.
        peer: String,
        /// The number of lines that were left out.
        lines: u64,
        /// The time in which they were, in seconds.
        seconds: u64,
    },
}

impl Notice {
    /// Returns how much the line matters.
    pub fn level(&self) -> LogLevel {
        match self {
            Self::Disconnected { .. }
            | Self::Unreachable { .. }
            | Self::Disagrees { .. }
            | Self::Refused { .. }
            | Self::Misbehaved { .. }
            | Self::Suspicious(_)
            | Self::Late { .. }
            | Self::LeftOut { .. } => LogLevel::Warning,
            Self::ReadingRows { .. }
            | Self::Started { .. }
            | Self::Connected { .. }
            | Self::Finished { .. }
            | Self::Stopping { .. }
            | Self::Wrote { .. } => LogLevel::Info,
            Self::Iterated { .. } => LogLevel::Debug,
        }
    }

    /// Returns the line with everything in it escaped that a peer can have a part in.
    pub(crate) fn escaped(mut self) -> Self {
        let text = match &mut self {
            Self::Disconnected { reason, .. }
            | Self::Unreachable { reason, .. }
            | Self::Refused { reason, .. } => reason,
            Self::Disagrees { what, .. } | Self::Misbehaved { what, .. } => what,
            _ => return self,
        };
        *text = visible(text, MAX_TEXT);
        self
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadingRows { seconds, silent } => {
                write!(f, "still reading the rows of the command, for {seconds} s")?;
                match silent {
                    // It is reported every few seconds.
                    0..5 => Ok(()),
                    _ => write!(f, "; it has printed nothing for {silent} s; Ctrl-C ends it"),
                }
            }
            Self::Started {
                study,
                party,
                listening,
                iteration,
                iterations,
                protects,
                ..
            } => {
                match iteration {
                    0 => write!(f, "{party} starts study {study}, {iterations} iterations")?,
                    at => write!(
                        f,
                        "{party} resumes study {study} at iteration {at} of {iterations}"
                    )?,
                }
                match listening {
                    Some(address) => write!(f, "; listening on {address}")?,
                    None => f.write_str("; dialling only")?,
                }
                match protects {
                    true => Ok(()),
                    false => f.write_str("; SEEDED NOISE PROTECTS NOBODY"),
                }
            }
            Self::Connected { peer, iteration } => {
                write!(f, "{peer} is connected, at iteration {iteration}")
            }
            Self::Disconnected { peer, reason } => {
                write!(f, "{peer} is disconnected: {reason}; waiting for it")
            }
            Self::Unreachable { peer, reason } => {
                write!(f, "{peer} cannot be reached: {reason}; trying again")
            }
            Self::Disagrees { peer, what } => write!(f, "{peer} disagrees: {what}"),
            Self::Refused {
                address,
                reason,
                more,
            } => {
                write!(f, "rejected {address}: {reason}")?;
                match more {
                    0 => Ok(()),
                    _ => write!(f, " (and {more} more since the last such message)"),
                }
            }
            Self::Misbehaved { peer, what } => write!(f, "{peer} misbehaves: {what}"),
            Self::Suspicious(Suspicion {
                peer,
                iteration,
                why,
            }) => write!(f, "{peer} is suspicious at iteration {iteration}: {why}"),
            Self::Iterated {
                iteration,
                iterations,
                kind,
                spent,
                consensus,
            } => {
                let kind = match kind {
                    StepKind::Start => "start",
                    StepKind::Data => "data",
                    StepKind::Recycled => "recycled",
                };
                write!(
                    f,
                    "iteration {iteration} of {iterations} ({kind}), spent {spent}, consensus {consensus:.2e}"
                )
            }
            Self::Late { iteration, ticks } => write!(
                f,
                "the answer of iteration {iteration} was late, and left after {ticks} ticks: how late depends on rows; agree on a longer tick"
            ),
            Self::Finished { iterations, spent } => {
                write!(f, "all {iterations} iterations are done; spent {spent}")
            }
            Self::Stopping { iteration } => write!(
                f,
                "stopping at iteration {iteration}; the same command resumes from here"
            ),
            Self::Wrote { file } => write!(f, "wrote {file}"),
            Self::LeftOut {
                peer,
                lines,
                seconds,
            } => {
                match lines {
                    1 => write!(f, "1 more line about {peer} was left out")?,
                    many => write!(f, "{many} more lines about {peer} were left out")?,
                }
                write!(f, " within {seconds} s")
            }
        }
    }
}
