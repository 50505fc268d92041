//! The canonical form of a study: the one way to write it, its digest, and where two studies differ.

pub(crate) mod diff;
pub(crate) mod digest;
pub(crate) mod dotted_keys;
pub(crate) mod serialize_data;
mod serialize_network;
pub(crate) mod write_toml;
