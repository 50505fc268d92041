//! Sees only released values; never imports `private`.

pub mod admm;
pub mod baseline;
pub mod certificate;
pub mod gradient;
pub mod graph;
pub mod plan;
pub mod recycled;
pub mod release;
pub mod schedule;
pub mod start;
mod symmetric;
pub mod topology;
