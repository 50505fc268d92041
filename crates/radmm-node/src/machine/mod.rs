//! One party as a pure state machine: events in, frames and durable records out. No IO but the store's, no clock, no async.

pub mod frame;
pub(crate) mod handshake;
pub mod link;
pub(crate) mod misbehaviour;
pub(crate) mod neighbour_verifier;
pub mod party;
pub(crate) mod receive;
pub(crate) mod send;
pub(crate) mod shutdown;
#[cfg(test)]
pub(crate) mod tests;
