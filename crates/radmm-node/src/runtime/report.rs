//! The report on a running node that its page and `radmm status` show, as one versioned structure.
//!
//! Privacy: it is for the operator, behind a token. It depends on rows through releases, and through the times at which they were
//! made, in whole seconds; accuracy and loss are not in it.

use serde::{Deserialize, Serialize};

use super::health::Health;

/// The version of the report's form.
pub const REPORT_VERSION: u32 = 1;

/// A report on a running node. Times are in whole seconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// [`REPORT_VERSION`].
    pub version: u32,
    /// The time of the report.
    pub time: u64,
    /// The time at which this process started.
    pub started: u64,
    /// The party's name.
    pub party: String,
    /// The party's public key.
    pub key: String,
    /// The number of the party's rows, which is public.
    pub rows: usize,
    /// The study's name.
    pub study: String,
    /// The study's digest.
    pub study_sha256: String,
    /// The algorithm's name.
    pub algorithm: String,
    /// The number of parties.
    pub parties: usize,
    /// Whether the noise protects anybody; if not, this is a rehearsal.
    pub protects: bool,
    /// The caveat that goes with every total of this party.
    pub caveat: String,
    /// The address on which neighbours are accepted.
    pub listening: Option<String>,
    /// The node's health.
    pub health: Health,
    /// The iteration of the last value that is persisted.
    pub iteration: u32,
    /// The number of iterations, `T`.
    pub iterations: u32,
    /// The kind of the last step: `start`, `data` or `recycled`.
    pub kind: String,
    /// Whether all iterations are done.
    pub finished: bool,
    /// The data steps so far, and all of them.
    pub data_steps: (usize, usize),
    /// Iterations a minute lately; `None` before there are some.
    pub pace: Option<f64>,
    /// The seconds that are left at this pace.
    pub seconds_left: Option<u64>,
    /// The neighbours whose values are missing.
    pub waiting_for: Vec<AwaitedPeer>,
    /// The privacy that was spent and will be; `None` while the node starts.
    pub privacy: Option<PrivacyReport>,
    /// The largest distance between a neighbour's last value and this party's.
    pub distance: f64,
    /// The distances by iteration; some of them if there are many.
    pub distances: Vec<(u32, f64)>,
    /// The neighbours.
    pub neighbours: Vec<PeerReport>,
    /// Values that can hardly be honest work.
    pub suspicions: Vec<PeerFinding>,
    /// The evidence that is kept against neighbours.
    pub evidence: Vec<PeerFinding>,
    /// The strangers that were rejected.
    pub refused: u64,
    /// The latest messages to the operator, oldest first.
    pub messages: Vec<OperatorMessage>,
    /// The files that were written, in the folder of results.
    pub files: Vec<String>,
}

/// A neighbour whose value is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedPeer {
    /// The neighbour.
    pub name: String,
    /// Its state: `away`, `awaited` or `disagrees`.
    pub state: String,
    /// The time since which it is waited for.
    pub since: u64,
}

/// The privacy spent, each as a total over all messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivacyReport {
    /// The neighbouring relation of all totals.
    pub relation: String,
    /// The totals of this study.
    pub study: SpentTotal,
    /// The totals of all studies on these rows, for each limit of the site.
    pub rows: Vec<SpentTotal>,
}

/// A total so far, and at the end of the study. An infinite one is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpentTotal {
    /// `δ`.
    pub delta: f64,
    /// `ε` so far.
    pub spent: Option<f64>,
    /// `ε` when this study is over.
    pub planned: Option<f64>,
    /// The limit on it, if there is one.
    pub limit: Option<f64>,
}

/// A neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerReport {
    /// Its name.
    pub name: String,
    /// Its public key.
    pub key: String,
    /// Its state: `away`, `awaited`, `heard`, `disagrees` or `done`.
    pub state: String,
    /// The time since which it has that state.
    pub since: u64,
    /// The iteration of its last value, as far as is known.
    pub iteration: u32,
    /// The time at which something was last heard of it.
    pub heard: Option<u64>,
    /// The address at which it is dialled; `None` if it dials this party.
    pub address: Option<String>,
    /// The party that dialled the latest connection.
    pub dialled_by: Option<String>,
}

/// Something found about a neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerFinding {
    /// The neighbour.
    pub peer: String,
    /// A description.
    pub what: String,
    /// The time at which it was found; `None` if an earlier process found it.
    pub time: Option<u64>,
}

/// A message to the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorMessage {
    /// The time at which it was last sent.
    pub time: u64,
    /// Whether it needs attention.
    pub warning: bool,
    /// The text.
    pub text: String,
    /// The number of times that it was sent in a row.
    pub count: u32,
}
