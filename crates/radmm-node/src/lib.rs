//! One party of a real network: transport, durable ledger, recovery.

pub mod about;
pub mod balance;
mod event;
pub mod frame;
mod hex;
pub mod key;
pub mod ledger;
pub mod link;
mod metrics;
pub mod notice;
mod once;
pub mod party;
pub mod premises;
pub mod probe;
pub mod quiet;
pub mod rehearsal;
pub mod results;
pub mod rows;
pub mod run;
mod shadow;
pub mod statement;
pub mod status;
pub mod store;
pub mod transcript;
pub mod transport;
pub mod verify;
pub mod whole;
