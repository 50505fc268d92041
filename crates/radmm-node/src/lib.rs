//! One party of a real network.
//!
//! - [`setup`] brings study, site, key and rows together and prices the study before anything is sent.
//! - [`machine`] is the party as a pure state machine: events in, frames out, no clock and no IO but its store's.
//! - [`store`] keeps what must survive a crash: charges, answers and messages, each durable before anything is sent.
//! - [`transport`] carries frames between neighbours over TLS.
//! - [`runtime`] drives a party: event loop, signals, status, metrics and log lines.
//! - [`evidence`] is for others: transcript, signed statement, the report of an account, and the check of them all.
//! - [`http`] serves pages on a loopback address to whoever may see them.
//! - [`local_network`] prepares all parties of a study on one machine.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests compare with the platform's functions"
    )
)]

pub mod atomic_file;
mod event_json;
pub mod evidence;
pub mod http;
pub mod key;
pub mod local_network;
pub mod machine;
mod message_widths;
pub mod public_facts;
pub mod public_key;
pub mod runtime;
pub mod setup;
pub mod store;
mod strict_json;
pub mod transport;
pub mod utc_time;
