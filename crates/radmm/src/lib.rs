//! Recycled ADMM: many parties, one linear classifier, no server, one privacy guarantee over every message of the run.
//!
//! One idea carries the crate: an analyst who never sees rows, and a curator who never lets one go unpaid.
//!
//! - An *algorithm* ([`public`]) is a function of released values. At each iteration it asks, which costs privacy, or
//!   recycles, which is free.
//! - A *curator* ([`private`]) owns the rows. It prices a question, charges it to its ledger ([`account`]), and answers
//!   it with noise.
//! - A *node* ([`node`]) joins the two into one state machine; the simulator ([`sim`]) drives many of them.
//!
//! The crate is pure: no IO, no clock, no threads, no randomness but what it is given.

pub mod account;
pub mod message;
pub mod node;
pub mod private;
pub mod public;
pub mod rate;
pub mod sim;
mod spectrum;
pub mod trace;
