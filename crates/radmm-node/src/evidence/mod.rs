//! What a party leaves behind: its account, transcript and signed statement, and the program that verifies them.

pub mod account_report;
pub mod results;
pub mod statement;
pub(crate) mod transcript;
pub mod verify;
