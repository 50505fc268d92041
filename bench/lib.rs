//! What measurements need: rows, parties that hold them, kernels to count, and how results are written.
#![allow(clippy::unwrap_used, reason = "a measurement may panic")]

mod adult;
mod kernel;
mod party;
pub mod power_law;
pub mod report;
mod rows;

pub use adult::{ADULT_PARTIES, AdultRow, adult_party, adult_rows, adult_shard};
pub use kernel::{Count, KERNELS, Kernel, model};
pub use party::{BenchParty, Neighbourhood, problem, recycled, shard};
pub use rows::{COLUMNS, FILLED, Row, Source};
