//! Recycled ADMM: many parties, one linear classifier, no server, one privacy guarantee over every message of the run.
//!
//! One idea carries the crate: an analyst who never sees rows, and a curator who never lets one go unpaid.
//!
//! - An *algorithm* ([`algorithm`]) is a function of released values. At each iteration it asks, which costs privacy, or
//!   recycles, which is free.
//! - A *curator* ([`curator`]) owns the rows. It prices a question, charges it to its ledger ([`privacy`]), and answers it
//!   with noise.
//! - A *node* ([`node`]) joins the two into one state machine; the simulator ([`sim`]) drives many of them.
//!
//! The crate is pure: no IO, no clock, no threads, no randomness but what it is given.

pub mod algorithm;
pub mod convergence;
pub mod curator;
pub mod exec;
pub mod graph;
mod linalg;
pub mod node;
pub mod privacy;
pub mod problem;
pub mod protocol;
pub mod sim;
pub mod step_verifier;
