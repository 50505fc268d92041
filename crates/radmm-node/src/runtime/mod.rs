//! The runtime of a party: event loop, signals, and everything that an operator is told.

mod driver;
mod metrics;
mod notice;
mod probe;
mod signals;
mod status;

pub use driver::{Ending, NodeError, Observer, run};
pub use notice::Notice;
pub use probe::{ProbeResult, probe};
pub use signals::on_stop_signal;
pub use status::{LinkCounts, NodeStatus};
