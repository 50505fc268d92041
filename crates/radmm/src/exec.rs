//! Executors: the threads that the caller of the core brings.
//!
//! A pass over many rows is divided into chunks. Their results are added up in order afterwards, so any executor gives the same
//! bits.

use std::sync::OnceLock;

/// Runs the chunks of a pass over one party's rows, in any order, on any threads.
pub trait ChunkExecutor: Send + Sync {
    /// Calls `work` once with each of `0..count`.
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync));
}

/// An executor that runs everything on the calling thread, in order.
pub struct Sequential;

impl ChunkExecutor for Sequential {
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(work);
    }
}

/// Returns the results for each of `0..count`, in order.
pub(super) fn gather<T: Send + Sync>(
    executor: &dyn ChunkExecutor,
    count: usize,
    of: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    if count < 2 {
        return (0..count).map(of).collect();
    }
    let made: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    executor.each(count, &|k| {
        made[k].get_or_init(|| of(k));
    });
    let mut made = made.into_iter().enumerate();
    // A chunk that the executor left out is computed now.
    let mut next = || {
        made.next()
            .map(|(k, slot)| slot.into_inner().unwrap_or_else(|| of(k)))
    };
    std::iter::from_fn(&mut next).collect()
}
