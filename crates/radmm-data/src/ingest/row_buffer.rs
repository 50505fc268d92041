//! A buffer of encoded rows whose node is not known yet.
//!
//! Rows are kept without their zeros and leave in order. The memory of rows that have left is freed. Therefore the
//! buffer and the shards together never hold more than all rows once, and the spare capacity of the growing shards. Blocks of rows
//! that exceed the memory are stored.

use std::collections::VecDeque;

use radmm::curator::{PassFailed, RowMemory, StoredBytes};

use super::block_queue::BlockQueue;

/// A FIFO buffer of encoded rows. Neither `Debug`, `Clone` nor `Serialize`: a row ends in a shard and nowhere else.
#[derive(Default)]
pub(crate) struct RowBuffer {
    memory: Option<RowMemory>,
    /// The blocks of rows between the first and the last one.
    blocks: VecDeque<Block>,
    /// The block from which rows leave, and the bytes of it that have left.
    first: Vec<u8>,
    gone: usize,
    /// The bytes of memory that were taken for the first block.
    taken: u64,
    /// The block that is being filled.
    last: Vec<u8>,
    positive: BlockQueue<bool>,
}

/// Rows, each as the number of its entries, and for each entry its column, with the flag [`ONE`] if its value is one, as in
/// one-hot columns, and otherwise followed by its value.
enum Block {
    InMemory(Vec<u8>),
    Stored(StoredBytes),
}

/// A bit that no column number uses.
const ONE: u32 = 1 << 31;

/// The number of bytes of a full block. Large enough that a freed one goes back to the operating system.
const BLOCK: usize = 1 << 18;

impl RowBuffer {
    /// Creates a buffer that stores the blocks that exceed this memory.
    pub(crate) fn within(memory: Option<&RowMemory>) -> Self {
        Self {
            memory: memory.cloned(),
            ..Self::default()
        }
    }

    /// Appends a row.
    pub(crate) fn push(
        &mut self,
        entries: &[(u32, f64)],
        positive: bool,
    ) -> Result<(), PassFailed> {
        if self.last.capacity() == 0 {
            self.last.reserve_exact(BLOCK);
        }
        let filled = || entries.iter().filter(|entry| entry.1 != 0.0);
        // Columns are numbered in 32 bits, so the number of entries fits 32 bits too.
        let count = filled().count() as u32;
        self.last.extend(count.to_le_bytes());
        for (column, value) in filled() {
            if *value == 1.0 {
                self.last.extend((*column | ONE).to_le_bytes());
            } else {
                self.last.extend(column.to_le_bytes());
                self.last.extend(value.to_le_bytes());
            }
        }
        self.positive.push(positive);
        if self.last.len() >= BLOCK {
            let mut block = std::mem::take(&mut self.last);
            block.shrink_to_fit();
            self.blocks.push_back(match &self.memory {
                Some(memory) if !memory.take(block.len() as u64) => {
                    Block::Stored(memory.store(&block)?)
                }
                _ => Block::InMemory(block),
            });
        }
        Ok(())
    }

    /// Removes the first row: replaces `entries` by its own and returns its class, or `None` if the buffer is empty.
    pub(crate) fn pop(
        &mut self,
        entries: &mut Vec<(u32, f64)>,
    ) -> Result<Option<bool>, PassFailed> {
        entries.clear();
        if self.gone == self.first.len() {
            self.begin_block()?;
        }
        let Some(positive) = self.positive.pop() else {
            return Ok(None);
        };
        for _ in 0..u32::from_le_bytes(self.take()) {
            let column = u32::from_le_bytes(self.take());
            let value = match column & ONE {
                0 => f64::from_le_bytes(self.take()),
                _ => 1.0,
            };
            entries.push((column & !ONE, value));
        }
        Ok(Some(positive))
    }

    /// Makes the next block the first one.
    fn begin_block(&mut self) -> Result<(), PassFailed> {
        self.gone = 0;
        if let Some(memory) = &self.memory {
            memory.give_back(std::mem::take(&mut self.taken));
        }
        match self.blocks.pop_front() {
            None => self.first = std::mem::take(&mut self.last),
            Some(Block::InMemory(block)) => {
                self.taken = block.len() as u64;
                self.first = block;
            }
            Some(Block::Stored(stored)) => stored.read_into(&mut self.first)?,
        }
        Ok(())
    }

    /// Takes the next bytes of the first block: what was written of a row is whole, and was checked when it was read back.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let rest = self.first[self.gone..].first_chunk();
        self.gone += N;
        rest.copied().unwrap_or([0; N])
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.positive.len()
    }

    /// Iterates over the classes of the rows.
    pub(crate) fn positive(&self) -> impl Iterator<Item = bool> {
        self.positive.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::overflow_file::row_memory;

    #[test]
    fn rows_leave_in_order_without_their_zeros() {
        let rows = 150_017;
        let row = |r: usize| {
            let entries = [(0, r as f64), (3, 0.0), (4, 1.0), (5, (r % 2) as f64)];
            (entries, r.is_multiple_of(3))
        };
        let mut buffer = RowBuffer::default();
        for r in 0..rows {
            let (entries, positive) = row(r);
            buffer.push(&entries, positive).unwrap();
        }
        assert_eq!(buffer.len(), rows);
        assert!(buffer.positive().eq((0..rows).map(|r| row(r).1)));
        let mut entries = Vec::new();
        for r in 0..rows {
            let (mut expected, class) = (row(r).0.to_vec(), row(r).1);
            expected.retain(|entry| entry.1 != 0.0);
            let positive = buffer.pop(&mut entries).unwrap();
            assert_eq!((&entries, positive), (&expected, Some(class)));
        }
        assert_eq!(buffer.pop(&mut entries), Ok(None));
    }

    #[test]
    fn rows_beyond_the_memory_leave_in_order_too_and_give_their_memory_back() {
        let folder = tempfile::tempdir().unwrap();
        let room = 3 * (BLOCK as u64 + 20);
        let memory = row_memory(room, folder.path()).unwrap();
        let mut buffer = RowBuffer::within(Some(&memory));
        let row = |r: u32| [(r % 7, f64::from(r) + 2.0), (8, 1.0)];
        let rows = 8 * BLOCK as u32 / 20;
        (0..rows).for_each(|r| buffer.push(&row(r), r % 3 == 0).unwrap());
        let stored = |block: &&Block| matches!(block, Block::Stored(_));
        assert_eq!(buffer.blocks.iter().filter(stored).count(), 4);
        let mut entries = Vec::new();
        for r in 0..rows {
            let positive = buffer.pop(&mut entries).unwrap();
            assert_eq!((&entries[..], positive), (&row(r)[..], Some(r % 3 == 0)));
        }
        assert_eq!(buffer.pop(&mut entries), Ok(None));
        assert!(memory.take(room) && !memory.take(1));
    }

    #[test]
    fn rows_without_entries_are_kept() {
        let mut buffer = RowBuffer::default();
        buffer.push(&[(1, 0.0)], false).unwrap();
        buffer.push(&[], true).unwrap();
        let mut entries = vec![(1, 1.0)];
        assert_eq!(buffer.pop(&mut entries), Ok(Some(false)));
        assert!(entries.is_empty());
        assert_eq!(buffer.pop(&mut entries), Ok(Some(true)));
        assert_eq!(buffer.pop(&mut entries), Ok(None));
    }
}
