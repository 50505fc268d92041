//! The driver of a running party: its event loop, and what the operator is told.

pub mod driver;
pub(crate) mod metrics;
pub mod notice;
pub mod probe;
pub mod signals;
pub mod status;
