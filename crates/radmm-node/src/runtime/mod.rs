//! The runtime of a party: event loop, signals, and the reports to the operator.

mod driver;
mod metrics;
mod notice;
mod notice_limit;
mod probe;
mod signals;
mod status;

pub use driver::{Ending, NodeError, Observer, run};
pub use notice::{LogLevel, Notice};
pub use probe::{ProbeResult, probe};
pub use signals::{StopSource, on_stop_signal};
pub use status::{LinkCounts, NodeStatus};
