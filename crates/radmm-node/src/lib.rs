//! One party of a real network: transport, durable ledger, recovery.

pub mod frame;
pub mod key;
pub mod link;
pub mod notice;
pub mod party;
pub mod quiet;
mod shadow;
pub mod store;
