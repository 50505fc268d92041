//! A queue whose memory follows its length.

use std::collections::VecDeque;

/// Values after which a block is full. Large enough that a freed block of numbers goes back to the operating system.
const FULL: usize = 1 << 16;

/// First in, first out, in blocks: one is freed when its values have left, and none ever moves but the one that is
/// being filled.
pub(crate) struct Fifo<T> {
    full: VecDeque<Vec<T>>,
    last: Vec<T>,
    /// Values of the first block that have left.
    gone: usize,
}

// Derived, it would ask for values with a default.
impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self {
            full: VecDeque::new(),
            last: Vec::new(),
            gone: 0,
        }
    }
}

impl<T: Copy> Fifo<T> {
    pub(crate) fn push(&mut self, value: T) {
        if self.last.len() == FULL {
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
        self.full.len() * FULL + self.last.len() - self.gone
    }

    /// The values in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        let blocks = self.full.iter().chain([&self.last]);
        blocks.flatten().copied().skip(self.gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_leave_as_they_came() {
        let mut fifo = Fifo::default();
        let (mut pushed, mut popped) = (0, 0);
        for (more, fewer) in [(10, 3), (2 * FULL, FULL), (FULL, 2 * FULL + 7), (5, 5)] {
            for _ in 0..more {
                fifo.push(pushed);
                pushed += 1;
            }
            for _ in 0..fewer {
                assert_eq!(fifo.pop(), Some(popped));
                popped += 1;
            }
            assert_eq!(fifo.len(), pushed - popped);
            assert!(fifo.iter().eq(popped..pushed));
        }
        assert_eq!((fifo.len(), fifo.pop()), (0, None));
    }

    #[test]
    fn few_values_need_few_blocks_however_many_pass() {
        let mut fifo = Fifo::default();
        for n in 0..5 * FULL {
            fifo.push(n);
            if n >= 10 {
                fifo.pop();
            }
            assert!(fifo.full.len() <= 1);
        }
    }
}
