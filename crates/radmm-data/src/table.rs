//! Encoded rows that wait before they know where to go.
//!
//! They wait without their zeros and leave in order, and the memory of those that have left is free. What waits and what
//! is dealt are never more than all rows once, and the room in which the shards grow.

use crate::fifo::Fifo;

/// Neither `Debug`, `Clone` nor `Serialize`: rows go from here to shards and nowhere else.
#[derive(Default)]
pub(crate) struct Table {
    /// Of each row, how many entries it has.
    counts: Fifo<u32>,
    /// With [`ONE`] where the value is one, as that of indicators is.
    columns: Fifo<u32>,
    /// Of the others.
    values: Fifo<f64>,
    positive: Fifo<bool>,
}

/// Beyond all columns.
const ONE: u32 = 1 << 31;

impl Table {
    /// Adds a row as encoded.
    pub(crate) fn push(&mut self, entries: &[(u32, f64)], positive: bool) {
        // Columns are numbered in 32 bits, so that a row has no more entries than that.
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

    /// Replaces `entries` by those of the first row, and returns its class; none if there is no row.
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

    /// How many rows wait.
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    /// The class of each row.
    pub(crate) fn positive(&self) -> impl Iterator<Item = bool> {
        self.positive.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_as_they_went_in_but_for_zeros() {
        let rows = 150_017;
        let row = |r: usize| {
            let entries = [(0, r as f64), (3, 0.0), (4, 1.0), (5, (r % 2) as f64)];
            (entries, r.is_multiple_of(3))
        };
        let mut table = Table::default();
        for r in 0..rows {
            let (entries, positive) = row(r);
            table.push(&entries, positive);
        }
        assert_eq!(table.len(), rows);
        assert!(table.positive().eq((0..rows).map(|r| row(r).1)));
        let mut entries = Vec::new();
        for r in 0..rows {
            let (mut expected, class) = (row(r).0.to_vec(), row(r).1);
            expected.retain(|entry| entry.1 != 0.0);
            let positive = table.pop(&mut entries);
            assert_eq!((&entries, positive), (&expected, Some(class)));
        }
        assert_eq!(table.pop(&mut entries), None);
    }

    #[test]
    fn rows_without_entries_are_rows() {
        let mut table = Table::default();
        table.push(&[(1, 0.0)], false);
        table.push(&[], true);
        let mut entries = vec![(1, 1.0)];
        assert_eq!(table.pop(&mut entries), Some(false));
        assert!(entries.is_empty());
        assert_eq!(table.pop(&mut entries), Some(true));
        assert_eq!(table.pop(&mut entries), None);
    }
}
