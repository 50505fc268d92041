//! One party of a real network: transport, durable ledger, recovery.

pub(crate) mod atomic_file;
pub(crate) mod event_json;
pub mod evidence;
pub(crate) mod hex;
pub mod key;
pub mod local_network;
pub mod machine;
pub mod public_facts;
pub mod runtime;
pub mod setup;
pub mod store;
pub(crate) mod strict_json;
pub mod transport;
