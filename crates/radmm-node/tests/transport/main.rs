//! Tests of the transport over real sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod intruders;
mod links;
mod party;
mod pressure;
