//! One party of a real network: transport, durable ledger, recovery.

pub mod frame;
pub mod key;
pub mod link;
pub mod notice;
pub mod party;
pub mod premises;
pub mod quiet;
pub mod rows;
mod shadow;
pub mod store;
