//! One party of a real network: transport, durable ledger, recovery.

pub mod link;
