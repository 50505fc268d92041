//! Threads for one party's rows: whoever drives the core brings them.
//!
//! A pass over many rows is shared out by chunks. What comes of them is added up in their order afterwards, so any executor give the
//! same bits.

use std::sync::OnceLock;

/// Does the pieces of a pass, in any order, on any threads.
pub trait ChunkExecutor: Send + Sync {
    /// Calls `work` once with each of `0..count`.
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync));
}

/// One piece after the other.
pub struct Sequential;

impl ChunkExecutor for Sequential {
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(work);
    }
}

/// What comes of each of `0..count`, in order.
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
    // A piece that some executor left out is done now.
    let mut next = || {
        made.next()
            .map(|(k, slot)| slot.into_inner().unwrap_or_else(|| of(k)))
    };
    std::iter::from_fn(&mut next).collect()
}
