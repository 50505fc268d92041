//! One party of a real network: transport, durable ledger, recovery.

pub mod key;
pub mod link;
pub mod transport;
