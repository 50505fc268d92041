//! Threads for the simulator, and which repetitions run together.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Mutex;

use radmm::private::Hands;
use radmm::sim::{Crew, Party};
use rayon::Scope;
use rayon::prelude::*;

/// Shares the parties out over the threads of the current pool: whoever is free takes the next ones, those with most rows
/// first, and few at a time when few are left, so that nobody waits long for the last.
pub(crate) struct Pool;

impl Crew for Pool {
    fn each(&self, parties: &mut [Party], work: &(dyn Fn(&mut Party) + Sync)) {
        let threads = rayon::current_num_threads();
        let mut order: Vec<&mut Party> = parties.iter_mut().collect();
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

impl Hands for Pool {
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..count).into_par_iter().with_max_len(1).for_each(work);
    }
}

/// What is to be done next; `None` when nothing is left.
fn next_share<'a, T>(queue: &Mutex<&'a mut [T]>, threads: usize) -> Option<&'a mut [T]> {
    // A party whose work panics ends the simulation, whatever the others do.
    let mut left = queue.lock().ok()?;
    let share = left.len().div_ceil(SHARES * threads);
    let (now, later) = std::mem::take(&mut *left).split_at_mut(share);
    *left = later;
    (share > 0).then_some(now)
}

/// How many shares a thread would take of what is left.
const SHARES: usize = 16;

/// Repetitions in groups that run as replicas of one simulation.
pub(crate) struct Groups {
    /// In order, none of them empty.
    members: Vec<Range<u32>>,
    /// Whether several groups run at a time: where there are too few parties to keep all threads busy.
    at_once: bool,
}

/// More than these gain nothing: a row that is read serves all of them.
const MOST_REPLICAS: usize = 16;

/// Coordinates of models, over all parties and replicas of a group. Each comes with half a dozen others of the algorithm's,
/// so that a group takes a gigabyte at most, unless one repetition alone takes more.
const MOST_COORDINATES: usize = 1 << 24;

/// Up to as many columns a party's solver keeps a Hessian and its factor, which are as much as a third as many models as there are
/// columns, each with its half a dozen others.
const MOST_KEPT: usize = 2048;

/// As many parties a thread keep it busy, and hardly waiting for the others at the end of an iteration.
const PARTIES_PER_THREAD: usize = 4;

impl Groups {
    /// For the threads of the current pool. Which repetitions run together changes nothing in what comes of them.
    pub(crate) fn of(repetitions: u32, parties: usize, columns: usize) -> Self {
        let kept = match columns <= MOST_KEPT {
            true => columns / 3,
            false => 0,
        };
        let room = MOST_COORDINATES / (parties * columns * (1 + kept)).max(1);
        Self::split(repetitions, parties, room, rayon::current_num_threads())
    }

    /// What comes of every repetition, in order, `together` being what comes of a group.
    pub(crate) fn run<T: Send, E: Send>(
        self,
        together: impl Fn(Range<u32>) -> Result<Vec<T>, E> + Send + Sync,
    ) -> Result<Vec<T>, E> {
        let made: Result<Vec<Vec<T>>, E> = match self.at_once {
            true => self.members.into_par_iter().map(together).collect(),
            false => self.members.into_iter().map(together).collect(),
        };
        Ok(made?.into_iter().flatten().collect())
    }

    fn split(repetitions: u32, parties: usize, room: usize, threads: usize) -> Self {
        let at_once = parties < PARTIES_PER_THREAD * threads;
        let busy = match at_once {
            true => threads.div_ceil(parties.max(1)) as u32,
            false => 1,
        };
        let largest = room.clamp(1, MOST_REPLICAS) as u32;
        let count = repetitions.div_ceil(largest).max(busy).min(repetitions);
        let bound = |k: u32| (u64::from(k) * u64::from(repetitions) / u64::from(count)) as u32;
        Self {
            members: (0..count).map(|k| bound(k)..bound(k + 1)).collect(),
            at_once,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_grow_smaller_and_nothing_is_left() {
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

    fn sizes(groups: &Groups) -> Vec<usize> {
        groups.members.iter().map(ExactSizeIterator::len).collect()
    }

    #[test]
    fn every_repetition_is_in_one_group() {
        for repetitions in 1..70 {
            for (parties, threads) in [(1, 1), (1, 8), (3, 2), (20, 2), (1000, 64)] {
                for room in [0, 1, 5, 100] {
                    let groups = Groups::split(repetitions, parties, room, threads);
                    let all: Vec<u32> = groups.members.into_iter().flatten().collect();
                    assert_eq!(all, (0..repetitions).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn repetitions_of_many_parties_run_together_as_far_as_memory_goes() {
        let groups = Groups::split(10, 20, 1000, 2);
        assert_eq!((sizes(&groups), groups.at_once), (vec![10], false));
        let groups = Groups::split(40, 20, 1000, 2);
        assert_eq!((sizes(&groups), groups.at_once), (vec![13, 13, 14], false));
        let groups = Groups::split(4, 100_000, 0, 2);
        assert_eq!((sizes(&groups), groups.at_once), (vec![1; 4], false));
    }

    #[test]
    fn where_parties_are_few_groups_keep_the_threads_busy() {
        let groups = Groups::split(10, 1, 1000, 2);
        assert_eq!((sizes(&groups), groups.at_once), (vec![5, 5], true));
        let groups = Groups::split(10, 2, 1000, 8);
        assert_eq!((sizes(&groups), groups.at_once), (vec![2, 3, 2, 3], true));
        // There are not more groups than repetitions.
        let groups = Groups::split(2, 1, 1000, 8);
        assert_eq!((sizes(&groups), groups.at_once), (vec![1, 1], true));
    }
}
