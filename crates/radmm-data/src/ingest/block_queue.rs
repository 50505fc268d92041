//! A FIFO queue whose memory is proportional to its length.

use std::collections::VecDeque;

/// The number of values per block. Large enough that a freed block of numbers goes back to the operating system.
const BLOCK: usize = 1 << 16;

/// A FIFO queue in blocks. A block is freed when all its values have left. No block moves but the one that is being
/// filled.
pub(crate) struct BlockQueue<T> {
    full: VecDeque<Vec<T>>,
    last: Vec<T>,
    /// The number of values of the first block that have left.
    gone: usize,
}

// A derived implementation would require `T: Default`.
impl<T> Default for BlockQueue<T> {
    fn default() -> Self {
        Self {
            full: VecDeque::new(),
            last: Vec::new(),
            gone: 0,
        }
    }
}

impl<T: Copy> BlockQueue<T> {
    pub(crate) fn push(&mut self, value: T) {
        if self.last.len() == BLOCK {
            self.full.push_back(std::mem::take(&mut self.last));
        }
        self.last.push(value);
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let first = self.full.front().unwrap_or(&self.last);
        let value = *first.get(self.gone)?;
        self.gone += 1;
        if self.gone == first.len() {
            self.gone = 0;
            if self.full.pop_front().is_none() {
                self.last.clear();
            }
        }
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.full.len() * BLOCK + self.last.len() - self.gone
    }

    /// Iterates over the values in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        let blocks = self.full.iter().chain([&self.last]);
        blocks.flatten().copied().skip(self.gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_leave_in_the_order_they_came() {
        let mut queue = BlockQueue::default();
        let (mut pushed, mut popped) = (0, 0);
        for (more, fewer) in [(10, 3), (2 * BLOCK, BLOCK), (BLOCK, 2 * BLOCK + 7), (5, 5)] {
            for _ in 0..more {
                queue.push(pushed);
                pushed += 1;
            }
            for _ in 0..fewer {
                assert_eq!(queue.pop(), Some(popped));
                popped += 1;
            }
            assert_eq!(queue.len(), pushed - popped);
            assert!(queue.iter().eq(popped..pushed));
        }
        assert_eq!((queue.len(), queue.pop()), (0, None));
    }

    #[test]
    fn a_short_queue_keeps_one_block_however_many_values_pass() {
        let mut queue = BlockQueue::default();
        for n in 0..5 * BLOCK {
            queue.push(n);
            if n >= 10 {
                queue.pop();
            }
            assert!(queue.full.len() <= 1);
        }
    }
}
