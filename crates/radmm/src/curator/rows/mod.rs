//! Rows in memory: sparse input, stored compactly in chunks.

pub(super) mod chunk;
pub(super) mod layout;
pub(super) mod row_memory;
pub(super) mod shard;
