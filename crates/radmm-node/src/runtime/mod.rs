//! The runtime of a party: event loop, signals, and the reports to the operator.

mod driver;
mod health;
mod live_view;
mod notice;
mod page;
mod probe;
mod report;
mod signals;
mod status;

pub use driver::{Ending, NodeError, Observer, run};
pub use health::Health;
pub use notice::Notice;
pub use page::{PAGE_SCRIPT, PAGE_STYLE, link_file};
pub use probe::{ProbeResult, probe};
pub use report::{
    AwaitedPeer, OperatorMessage, PeerFinding, PeerReport, PrivacyReport, REPORT_VERSION,
    SpentTotal, StatusReport,
};
pub use signals::on_stop_signal;
pub use status::{LinkCounts, NodeStatus};
