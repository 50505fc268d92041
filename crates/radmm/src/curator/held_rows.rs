//! The rows that a curator owns, wherever their chunks are.

use std::sync::Arc;

use super::row_passes::{LocalChunks, PassCache, RowPasses, WorkerRows};
use super::rows::shard::Shard;
use crate::exec::ChunkExecutor;

/// The rows of one party, in this process or with its workers.
pub struct HeldRows(Place);

enum Place {
    Here(Arc<Shard>),
    Workers(WorkerRows),
}

impl From<Shard> for HeldRows {
    fn from(shard: Shard) -> Self {
        Arc::new(shard).into()
    }
}

impl From<Arc<Shard>> for HeldRows {
    fn from(shard: Arc<Shard>) -> Self {
        Self(Place::Here(shard))
    }
}

impl From<WorkerRows> for HeldRows {
    fn from(rows: WorkerRows) -> Self {
        Self(Place::Workers(rows))
    }
}

impl HeldRows {
    /// Returns `B`, the number of rows; public.
    pub fn rows(&self) -> usize {
        match &self.0 {
            Place::Here(shard) => shard.rows(),
            Place::Workers(rows) => rows.rows(),
        }
    }

    /// Returns `d`, the number of columns; public.
    pub fn columns(&self) -> usize {
        match &self.0 {
            Place::Here(shard) => shard.columns(),
            Place::Workers(rows) => rows.columns(),
        }
    }

    /// Returns the number of chunks.
    pub(super) fn chunks(&self) -> usize {
        match &self.0 {
            Place::Here(shard) => shard.shapes().len(),
            Place::Workers(rows) => rows.chunks().len(),
        }
    }

    /// Returns the largest number of non-zeros of a row. It comes from the rows.
    pub(super) fn max_nonzeros(&self) -> u32 {
        match &self.0 {
            Place::Here(shard) => shard.max_nonzeros(),
            Place::Workers(rows) => rows.max_nonzeros(),
        }
    }

    /// Returns passes over the rows. Those in this process run on an executor.
    pub(super) fn passes<'a>(
        &'a self,
        executor: &'a dyn ChunkExecutor,
        cache: &'a PassCache,
    ) -> Box<dyn RowPasses + 'a> {
        match &self.0 {
            Place::Here(shard) => Box::new(LocalChunks::new(shard, executor, cache)),
            Place::Workers(rows) => Box::new(rows),
        }
    }

    /// Returns the rows, if they are in this process.
    pub(super) fn shard(&self) -> Option<&Arc<Shard>> {
        match &self.0 {
            Place::Here(shard) => Some(shard),
            Place::Workers(_) => None,
        }
    }
}
