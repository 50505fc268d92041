//! Rows in memory.

pub(super) mod chunk;
pub(super) mod layout;
pub(super) mod shard;
