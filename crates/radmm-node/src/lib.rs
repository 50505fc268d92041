//! One party of a real network: transport, durable ledger, recovery.

pub mod about;
mod event;
pub mod frame;
mod hex;
pub mod key;
pub mod ledger;
pub mod link;
pub mod notice;
pub mod party;
pub mod premises;
pub mod quiet;
pub mod rows;
mod shadow;
pub mod statement;
pub mod store;
pub mod transcript;
pub mod verify;
pub mod whole;
