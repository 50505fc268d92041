//! Execution on a thread pool: parties and chunks shared out over threads, repetitions grouped into replicas.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Mutex;

use radmm::exec::ChunkExecutor;
use radmm::sim::{PartyExecutor, PartyReplicas};
use rayon::Scope;
use rayon::prelude::*;

/// An executor on the threads of the current rayon pool.
///
/// A free thread takes the next parties from a queue, those with most rows first. It takes fewer at a time when few are left,
/// so that no thread waits long for the last one.
pub(crate) struct RayonExecutor;

impl PartyExecutor for RayonExecutor {
    fn each(&self, parties: &mut [PartyReplicas], work: &(dyn Fn(&mut PartyReplicas) + Sync)) {
        let threads = rayon::current_num_threads();
        let mut order: Vec<&mut PartyReplicas> = parties.iter_mut().collect();
        order.sort_by_key(|party| Reverse(party.rows()));
        let queue = Mutex::new(&mut order[..]);
        let take_turns = |_: &Scope<'_>| {
            while let Some(share) = next_share(&queue, threads) {
                share.iter_mut().for_each(|party| work(party));
            }
        };
        rayon::scope(|scope| (0..threads).for_each(|_| scope.spawn(take_turns)));
    }
}

impl ChunkExecutor for RayonExecutor {
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..count).into_par_iter().with_max_len(1).for_each(work);
    }
}

/// Removes the next share of the work from the queue; `None` when nothing is left.
fn next_share<'a, T>(queue: &Mutex<&'a mut [T]>, threads: usize) -> Option<&'a mut [T]> {
    // A party whose work panics ends the simulation, whatever the others do.
    let mut left = queue.lock().ok()?;
    let share = left.len().div_ceil(SHARES_PER_THREAD * threads);
    let (now, later) = std::mem::take(&mut *left).split_at_mut(share);
    *left = later;
    (share > 0).then_some(now)
}

/// Shares a thread into which the remaining work is divided.
const SHARES_PER_THREAD: usize = 16;

/// Repetitions in groups that run as replicas of one simulation.
pub(crate) struct ReplicaGroups {
    /// The groups in order, none of them empty.
    groups: Vec<Range<u32>>,
    /// Whether several groups run at a time, because there are too few parties to keep all threads busy.
    concurrent: bool,
}

/// The largest number of replicas in a group. More gain nothing: a row that is read serves all of them.
const MAX_REPLICAS: usize = 16;

/// The largest number of model coordinates in a group, over all its parties and replicas. The algorithm keeps half a dozen
/// values beside each, so that a group takes a gigabyte at most, unless one repetition alone takes more.
const MAX_COORDINATES: usize = 1 << 24;

/// The largest number of columns up to which a party's solver keeps a Hessian and its factor. They take as much memory as
/// a third as many models as there are columns, each with its half a dozen other values.
const MAX_HESSIAN_COLUMNS: usize = 2048;

/// Parties per thread needed to keep threads busy, with little waiting at the end of an iteration.
const PARTIES_PER_THREAD: usize = 4;

impl ReplicaGroups {
    /// Groups repetitions for the threads of the current pool. The grouping has no influence on results.
    pub(crate) fn new(repetitions: u32, parties: usize, columns: usize) -> Self {
        let hessian = match columns <= MAX_HESSIAN_COLUMNS {
            true => columns / 3,
            false => 0,
        };
        let room = MAX_COORDINATES / (parties * columns * (1 + hessian)).max(1);
        Self::split(repetitions, parties, room, rayon::current_num_threads())
    }

    /// Runs every group by `run_group` and returns the results of all repetitions, in order.
    pub(crate) fn run<T: Send, E: Send>(
        self,
        run_group: impl Fn(Range<u32>) -> Result<Vec<T>, E> + Send + Sync,
    ) -> Result<Vec<T>, E> {
        let made: Result<Vec<Vec<T>>, E> = match self.concurrent {
            true => self.groups.into_par_iter().map(run_group).collect(),
            false => self.groups.into_iter().map(run_group).collect(),
        };
        Ok(made?.into_iter().flatten().collect())
    }

    fn split(repetitions: u32, parties: usize, room: usize, threads: usize) -> Self {
        let concurrent = parties < PARTIES_PER_THREAD * threads;
        let busy = match concurrent {
            true => threads.div_ceil(parties.max(1)) as u32,
            false => 1,
        };
        let largest = room.clamp(1, MAX_REPLICAS) as u32;
        let count = repetitions.div_ceil(largest).max(busy).min(repetitions);
        let bound = |k: u32| (u64::from(k) * u64::from(repetitions) / u64::from(count)) as u32;
        Self {
            groups: (0..count).map(|k| bound(k)..bound(k + 1)).collect(),
            concurrent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_shrink_and_cover_the_queue() {
        let mut all: Vec<u32> = (0..1000).collect();
        let queue = Mutex::new(&mut all[..]);
        let mut seen = Vec::new();
        let mut last = usize::MAX;
        while let Some(share) = next_share(&queue, 2) {
            assert!(share.len() <= last);
            last = share.len();
            seen.extend_from_slice(share);
        }
        assert_eq!(last, 1);
        assert_eq!(seen, (0..1000).collect::<Vec<_>>());
    }

    fn sizes(groups: &ReplicaGroups) -> Vec<usize> {
        groups.groups.iter().map(ExactSizeIterator::len).collect()
    }

    #[test]
    fn every_repetition_is_in_one_group() {
        for repetitions in 1..70 {
            for (parties, threads) in [(1, 1), (1, 8), (3, 2), (20, 2), (1000, 64)] {
                for room in [0, 1, 5, 100] {
                    let groups = ReplicaGroups::split(repetitions, parties, room, threads);
                    let all: Vec<u32> = groups.groups.into_iter().flatten().collect();
                    assert_eq!(all, (0..repetitions).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn repetitions_of_many_parties_run_together_as_far_as_memory_allows() {
        let groups = ReplicaGroups::split(10, 20, 1000, 2);
        assert_eq!((sizes(&groups), groups.concurrent), (vec![10], false));
        let groups = ReplicaGroups::split(40, 20, 1000, 2);
        assert_eq!(
            (sizes(&groups), groups.concurrent),
            (vec![13, 13, 14], false)
        );
        let groups = ReplicaGroups::split(4, 100_000, 0, 2);
        assert_eq!((sizes(&groups), groups.concurrent), (vec![1; 4], false));
    }

    #[test]
    fn with_few_parties_concurrent_groups_keep_the_threads_busy() {
        let groups = ReplicaGroups::split(10, 1, 1000, 2);
        assert_eq!((sizes(&groups), groups.concurrent), (vec![5, 5], true));
        let groups = ReplicaGroups::split(10, 2, 1000, 8);
        assert_eq!(
            (sizes(&groups), groups.concurrent),
            (vec![2, 3, 2, 3], true)
        );
        // There are not more groups than repetitions.
        let groups = ReplicaGroups::split(2, 1, 1000, 8);
        assert_eq!((sizes(&groups), groups.concurrent), (vec![1, 1], true));
    }
}
