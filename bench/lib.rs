//! What the table of measurements and the counts of instructions share: rows, and parties that hold them.
#![allow(clippy::unwrap_used, reason = "a measurement may panic")]

mod kernel;
mod party;
mod rows;

pub use kernel::{Count, KERNELS, Kernel, model};
pub use party::{Neighbourhood, Party, problem, recycled, shard};
pub use rows::{COLUMNS, FILLED, Row, Source};
