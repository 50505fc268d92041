//! The runtime of a party: event loop, signals, and the reports to the operator.

mod driver;
mod metrics;
mod notice;
mod pacer;
mod probe;
mod signals;
mod status;

pub use driver::{Ending, NodeError, Observer, run};
pub use notice::{Notice, Suspicion};
pub use pacer::Pacer;
pub use probe::{ProbeResult, probe};
pub use signals::on_stop_signal;
pub use status::{LinkCounts, NodeStatus};
