//! A buffer of encoded rows whose node is not known yet.
//!
//! Rows are stored without their zeros and leave in order. The memory of rows that have left is freed. Therefore the
//! buffer and the shards together never hold more than all rows once, and the spare capacity of the growing shards.

use super::block_queue::BlockQueue;

/// A FIFO buffer of encoded rows. Neither `Debug`, `Clone` nor `Serialize`: a row ends in a shard and nowhere else.
#[derive(Default)]
pub(crate) struct RowBuffer {
    /// The number of entries of each row.
    counts: BlockQueue<u32>,
    /// The column of each entry, with the flag [`ONE`] if its value is one, as in one-hot columns.
    columns: BlockQueue<u32>,
    /// The values of the entries without the flag.
    values: BlockQueue<f64>,
    positive: BlockQueue<bool>,
}

/// A bit that no column number uses.
const ONE: u32 = 1 << 31;

impl RowBuffer {
    /// Appends a row.
    pub(crate) fn push(&mut self, entries: &[(u32, f64)], positive: bool) {
        // Columns are numbered in 32 bits, so the number of entries fits 32 bits too.
        let mut count = 0;
        for (column, value) in entries.iter().filter(|entry| entry.1 != 0.0) {
            if *value == 1.0 {
                self.columns.push(*column | ONE);
            } else {
                self.columns.push(*column);
                self.values.push(*value);
            }
            count += 1;
        }
        self.counts.push(count);
        self.positive.push(positive);
    }

    /// Removes the first row: replaces `entries` by its own and returns its class, or `None` if the buffer is empty.
    pub(crate) fn pop(&mut self, entries: &mut Vec<(u32, f64)>) -> Option<bool> {
        entries.clear();
        for _ in 0..self.counts.pop()? {
            let column = self.columns.pop()?;
            let value = match column & ONE {
                0 => self.values.pop()?,
                _ => 1.0,
            };
            entries.push((column & !ONE, value));
        }
        self.positive.pop()
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Iterates over the classes of the rows.
    pub(crate) fn positive(&self) -> impl Iterator<Item = bool> {
        self.positive.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            buffer.push(&entries, positive);
        }
        assert_eq!(buffer.len(), rows);
        assert!(buffer.positive().eq((0..rows).map(|r| row(r).1)));
        let mut entries = Vec::new();
        for r in 0..rows {
            let (mut expected, class) = (row(r).0.to_vec(), row(r).1);
            expected.retain(|entry| entry.1 != 0.0);
            let positive = buffer.pop(&mut entries);
            assert_eq!((&entries, positive), (&expected, Some(class)));
        }
        assert_eq!(buffer.pop(&mut entries), None);
    }

    #[test]
    fn rows_without_entries_are_kept() {
        let mut buffer = RowBuffer::default();
        buffer.push(&[(1, 0.0)], false);
        buffer.push(&[], true);
        let mut entries = vec![(1, 1.0)];
        assert_eq!(buffer.pop(&mut entries), Some(false));
        assert!(entries.is_empty());
        assert_eq!(buffer.pop(&mut entries), Some(true));
        assert_eq!(buffer.pop(&mut entries), None);
    }
}
