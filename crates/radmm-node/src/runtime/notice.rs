//! What an operator is told.
//!
//! Privacy: a log is read by people who may not see rows, and is sent on to others. So its lines are values of one type, and
//! what has no place in it cannot be logged: there is none for a row, a label, a loss or the time that a solver took. What
//! comes from rows is in here only as a function of releases, which are paid for.

use std::fmt;

use radmm::account::Guarantee;
use radmm::node::Kind;
use serde::Serialize;

/// Something worth a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Notice {
    /// The party is ready.
    Started {
        /// The study's name.
        study: String,
        /// Its hash.
        study_sha256: String,
        /// Which party this is; a line of a log says it anyway.
        #[serde(skip)]
        party: String,
        /// Where others may dial, if they may.
        listening: Option<String>,
        /// The iteration of its last value: above 0 if it goes on from where it was.
        iteration: u32,
        /// `T`.
        iterations: u32,
        /// Whether its noise protects anybody.
        protects: bool,
    },
    /// A link to a neighbour is up, and it holds the same study.
    Connected {
        /// Who.
        peer: String,
        /// The iteration of its last value.
        iteration: u32,
    },
    /// A link has gone.
    Disconnected {
        /// Who.
        peer: String,
        /// Why.
        reason: String,
    },
    /// A neighbour cannot be reached; it is tried again.
    Unreachable {
        /// Who.
        peer: String,
        /// Why.
        reason: String,
    },
    /// A neighbour has another study, or another version of the protocol.
    Disagrees {
        /// Who.
        peer: String,
        /// About what.
        what: String,
    },
    /// Somebody who is no neighbour was turned away.
    Refused {
        /// From where.
        address: String,
        /// Why.
        reason: String,
    },
    /// A neighbour said something that cannot be right.
    Lied {
        /// Who.
        peer: String,
        /// What.
        what: String,
    },
    /// An iteration is on record, and its value on its way.
    Iterated {
        /// Which.
        iteration: u32,
        /// `T`.
        iterations: u32,
        /// How its value came about.
        kind: Kind,
        /// What this study has spent.
        #[serde(flatten)]
        spent: Guarantee,
        /// The largest distance of a neighbour's last value from this party's.
        consensus: f64,
    },
    /// All iterations are done.
    Finished {
        /// `T`.
        iterations: u32,
        /// What this study has spent.
        #[serde(flatten)]
        spent: Guarantee,
    },
    /// The party is stopping, since it was asked to.
    Stopping {
        /// The iteration of its last value.
        iteration: u32,
    },
    /// Files of results were written.
    Wrote {
        /// Which.
        file: String,
    },
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
                    0 => write!(f, "{party} begins study {study}, {iterations} iterations")?,
                    at => write!(
                        f,
                        "{party} goes on with study {study} at iteration {at} of {iterations}"
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
                write!(f, "{peer} has gone: {reason}; waiting for it")
            }
            Self::Unreachable { peer, reason } => {
                write!(f, "{peer} cannot be reached: {reason}; trying on")
            }
            Self::Disagrees { peer, what } => write!(f, "{peer} disagrees: {what}"),
            Self::Refused { address, reason } => write!(f, "refused {address}: {reason}"),
            Self::Lied { peer, what } => write!(f, "{peer} lies: {what}"),
            Self::Iterated {
                iteration,
                iterations,
                kind,
                spent,
                consensus,
            } => {
                let kind = match kind {
                    Kind::Start => "start",
                    Kind::Data => "data",
                    Kind::Recycled => "recycled",
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
                "stopping at iteration {iteration}; the same command goes on from here"
            ),
            Self::Wrote { file } => write!(f, "wrote {file}"),
        }
    }
}
