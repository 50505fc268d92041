//! The runtime of a party: event loop, signals, and the reports to the operator.

mod core_dumps;
mod driver;
mod health;
mod live_view;
mod notice;
mod notice_limit;
mod pacer;
mod page;
mod probe;
mod report;
mod signals;
mod status;

pub use core_dumps::forbid_core_dumps;
pub use driver::{Ending, NodeError, Observer, run};
pub use health::Health;
pub use notice::{LogLevel, Notice, Suspicion};
pub use pacer::Pacer;
pub use page::{PAGE_SCRIPT, PAGE_STYLE, link_file};
pub use probe::{ProbeResult, probe};
pub use report::{
    AwaitedPeer, OperatorMessage, PeerFinding, PeerReport, PrivacyReport, REPORT_VERSION,
    SpentTotal, StatusReport,
};
pub use signals::{StopSource, on_stop_signal};
pub use status::{LinkCounts, NodeStatus};
