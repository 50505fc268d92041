//! Encoded rows that wait for the last one before they know their node.
//!
//! They wait in blocks, without their zeros, and leave in order: a block is freed when its rows are dealt. What waits
//! and what is dealt are never more than all rows once, and the room in which the shards grow.

/// Entries or rows after which a block is full. Large enough that a freed block goes back to the operating system.
const FULL: usize = 1 << 16;

/// Neither `Debug`, `Clone` nor `Serialize`: rows go from here to shards and nowhere else.
#[derive(Default)]
pub(crate) struct Table {
    full: Vec<Block>,
    last: Block,
    positive: Vec<bool>,
}

#[derive(Default)]
struct Block {
    /// Of each row, how many entries it has.
    counts: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Table {
    /// Adds a row as encoded.
    pub(crate) fn push(&mut self, entries: &[(u32, f64)], positive: bool) {
        self.last.push(entries);
        self.positive.push(positive);
        if self.last.counts.len().max(self.last.columns.len()) >= FULL {
            self.last.shrink();
            self.full.push(std::mem::take(&mut self.last));
        }
    }

    /// The class of each row.
    pub(crate) fn positive(&self) -> &[bool] {
        &self.positive
    }

    /// Hands out every row, in order: its number, its entries and its class.
    pub(crate) fn drain<E>(
        self,
        mut take: impl FnMut(usize, &[(u32, f64)], bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut entries = Vec::new();
        let mut classes = self.positive.into_iter().enumerate();
        for block in self.full.into_iter().chain([self.last]) {
            let mut rest = block
                .columns
                .iter()
                .copied()
                .zip(block.values.iter().copied());
            // The block's rows first: a class taken from the iterator is gone.
            for (count, (row, positive)) in block.counts.iter().zip(&mut classes) {
                entries.clear();
                entries.extend(rest.by_ref().take(*count as usize));
                take(row, &entries, positive)?;
            }
        }
        Ok(())
    }
}

impl Block {
    fn push(&mut self, entries: &[(u32, f64)]) {
        let filled = entries.iter().filter(|entry| entry.1 != 0.0);
        let before = self.columns.len();
        self.columns.extend(filled.clone().map(|entry| entry.0));
        self.values.extend(filled.map(|entry| entry.1));
        // Columns are numbered in 32 bits, so that a row has no more entries than that.
        self.counts.push((self.columns.len() - before) as u32);
    }

    fn shrink(&mut self) {
        self.counts.shrink_to_fit();
        self.columns.shrink_to_fit();
        self.values.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_as_they_went_in_but_for_zeros() {
        let rows = 2 * FULL + 17;
        let row = |r: usize| {
            let entries = [(0, r as f64), (3, 0.0), (4, 1.0), (5, (r % 2) as f64)];
            (entries, r.is_multiple_of(3))
        };
        let mut table = Table::default();
        for r in 0..rows {
            let (entries, positive) = row(r);
            table.push(&entries, positive);
        }
        assert_eq!(table.positive().len(), rows);
        let mut seen = 0;
        let drained: Result<(), ()> = table.drain(|r, entries, positive| {
            let (mut expected, class) = (row(r).0.to_vec(), row(r).1);
            expected.retain(|entry| entry.1 != 0.0);
            assert_eq!((r, entries, positive), (seen, &expected[..], class));
            seen += 1;
            Ok(())
        });
        assert_eq!((drained, seen), (Ok(()), rows));
    }

    #[test]
    fn rows_without_entries_are_rows() {
        let mut table = Table::default();
        for _ in 0..FULL + 2 {
            table.push(&[(1, 0.0)], false);
        }
        let mut seen = 0;
        let drained: Result<(), ()> = table.drain(|_, entries, _| {
            assert!(entries.is_empty());
            seen += 1;
            Ok(())
        });
        assert_eq!((drained, seen), (Ok(()), FULL + 2));
    }
}
