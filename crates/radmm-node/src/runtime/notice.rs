//! The lines of a node's log.
//!
//! Privacy: a log is read by people who may not see rows, and is forwarded to others. So its lines are values of one type, which has
//! no field for a row, a label, a loss or the running time of a solver. It depends on rows only through releases, which are paid for.

use std::fmt;

use radmm::node::StepKind;
use radmm::privacy::Guarantee;
use serde::Serialize;

/// One line of a node's log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Notice {
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
    },
    /// A neighbour sent something invalid.
    #[serde(rename = "lied")]
    Misbehaved {
        /// The neighbour.
        peer: String,
        /// A description.
        what: String,
    },
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
}

impl Notice {
    /// Returns whether the operator should look at it.
    pub fn is_warning(&self) -> bool {
        matches!(
            self,
            Self::Disagrees { .. } | Self::Refused { .. } | Self::Misbehaved { .. }
        )
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
            Self::Refused { address, reason } => write!(f, "rejected {address}: {reason}"),
            Self::Misbehaved { peer, what } => write!(f, "{peer} misbehaves: {what}"),
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
            Self::Finished { iterations, spent } => {
                write!(f, "all {iterations} iterations are done; spent {spent}")
            }
            Self::Stopping { iteration } => write!(
                f,
                "stopping at iteration {iteration}; the same command resumes from here"
            ),
            Self::Wrote { file } => write!(f, "wrote {file}"),
        }
    }
}
