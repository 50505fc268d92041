//! The layout of a chunk of rows: the storage slot of each column.
//!
//! Encoded tables have a few numbers that nearly every row has, and one-hot groups of indicators. A row has at most one
//! indicator of a group, and all its indicators have the same value. So a row is stored as its *dense* numbers, one
//! *code* for several groups of indicators together, and *sparse* entries. The layout is derived from the first rows of
//! a chunk. An entry that does not fit its slot is stored as a sparse one, so that a bad guess costs memory and time,
//! and nothing else.

use std::ops::Range;

/// The largest number of values of a code, which is stored as one byte.
pub(in crate::curator) const CODE_VALUES: usize = 256;
/// The share of rows with an entry from which a numeric column is dense.
const DENSE_SHARE: f64 = 0.25;
/// The share of rows with an entry from which a numeric column may be dense if there are few such columns: dense
/// storage is much faster than sparse storage.
const RARE_SHARE: f64 = 0.02;
/// The number of rare dense columns that are allowed in addition to one for each frequent column.
const EXTRA_RARE: usize = 2;
/// The share of rows with an entry from which dense storage takes no more memory than sparse storage.
const FULL_SHARE: f64 = 0.75;
/// The largest number of dense columns of which some are not full, and of all.
const MAX_DENSE: usize = 64;
const MAX_FULL: usize = 1 << 14;
/// The largest number of groups per indicator of a row. With more, indicators are not one-hot and are stored as sparse
/// entries.
const MAX_GROUPS_PER_INDICATOR: f64 = 2.0;

/// The storage slot of a column's entries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::curator) enum ColumnSlot {
    /// The dense number at this position.
    Dense(u16),
    /// An indicator, which adds `step` to the code at this position unless the row has an entry of `group` already.
    Code { code: u8, group: u8, step: u8 },
    /// A sparse entry, stored with its column and value.
    Sparse,
}

/// Groups of indicators that are stored as one mixed-radix code, `Σ_g digit_g·stride_g`.
///
/// The digit of a group is 0 if the row has none of its columns, and otherwise the column's position in the group,
/// counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::curator) struct Code {
    /// Ranges of columns, ascending.
    pub groups: Vec<Range<u32>>,
}

impl Code {
    /// Returns the number of values.
    pub(in crate::curator) fn value_count(&self) -> usize {
        self.groups.iter().map(|group| group.len() + 1).product()
    }

    /// Returns the columns that a value stands for.
    pub(in crate::curator) fn columns(&self, mut value: usize) -> impl Iterator<Item = u32> {
        self.groups.iter().filter_map(move |group| {
            let size = group.len() + 1;
            let digit = value % size;
            value /= size;
            (digit > 0).then(|| group.start + digit as u32 - 1)
        })
    }

    /// Returns the digit of a group in each value.
    pub(in crate::curator) fn digits(&self, group: usize) -> [u32; CODE_VALUES] {
        let size = |group: &Range<u32>| group.len() + 1;
        let stride = self.groups[..group].iter().map(size).product();
        let mut digits = [0; CODE_VALUES];
        let own = (0..size(&self.groups[group]) as u32).cycle();
        for (values, digit) in digits.chunks_mut(stride).zip(own) {
            values.fill(digit);
        }
        digits
    }

    /// Fills `table`, for each value of the code, with the sum of the entries of `of` at its columns.
    pub(in crate::curator) fn fill_table<T: Copy>(
        &self,
        table: &mut [T],
        of: &[T],
        zero: T,
        plus: impl Fn(T, T) -> T,
    ) {
        table[0] = zero;
        let mut stride = 1;
        for group in &self.groups {
            for (digit, column) in group.clone().enumerate() {
                let value = of[column as usize];
                let (below, here) = table.split_at_mut(stride * (digit + 1));
                for (to, from) in here[..stride].iter_mut().zip(&*below) {
                    *to = plus(*from, value);
                }
            }
            stride *= group.len() + 1;
        }
    }
}

/// The dense columns and the codes of a chunk.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::curator) struct ChunkLayout {
    /// The columns of dense numbers.
    pub dense: Vec<u32>,
    pub codes: Vec<Code>,
}

/// Statistics of each column over the first rows of a chunk.
pub(in crate::curator) struct ColumnStats {
    rows: usize,
    /// The number of entries with a value of their own.
    numeric: Vec<u32>,
    /// The number of entries with their row's indicator value.
    shared: Vec<u32>,
    /// The nearest indicator column before this one that occurs in a row with it, plus one; zero if there is none.
    preceding: Vec<u32>,
}

impl ColumnStats {
    pub(in crate::curator) fn new(columns: usize) -> Self {
        Self {
            rows: 0,
            numeric: vec![0; columns],
            shared: vec![0; columns],
            preceding: vec![0; columns],
        }
    }

    /// Counts a row, given its columns and whether each has the row's indicator value.
    pub(in crate::curator) fn count_row(&mut self, entries: impl Iterator<Item = (u32, bool)>) {
        self.rows += 1;
        for (column, shared) in entries {
            match shared {
                true => self.shared[column as usize] += 1,
                false => self.numeric[column as usize] += 1,
            }
        }
    }

    /// Records which indicator columns occur together in a row. Must be called after all rows were counted, since only
    /// columns that are indicators in every row take part.
    pub(in crate::curator) fn record_cooccurrence(&mut self, columns: impl Iterator<Item = u32>) {
        let mut last = 0;
        for column in columns {
            if self.is_indicator(column as usize) {
                let preceding = &mut self.preceding[column as usize];
                *preceding = last.max(*preceding);
                last = column + 1;
            }
        }
    }

    fn is_indicator(&self, column: usize) -> bool {
        self.numeric[column] == 0
    }

    /// Derives the layout.
    pub(in crate::curator) fn layout(&self) -> ChunkLayout {
        let dense = self.dense_columns();
        let groups = self.groups(&dense);
        let indicators: u32 = (0..self.shared.len())
            .filter(|&k| self.is_indicator(k))
            .map(|k| self.shared[k])
            .sum();
        let max_groups =
            1.0 + MAX_GROUPS_PER_INDICATOR * f64::from(indicators) / self.rows.max(1) as f64;
        let codes = match groups.len() as f64 <= max_groups && groups.len() < CODE_VALUES {
            true => pack(groups, CODE_VALUES.min(self.rows / 4)),
            false => Vec::new(),
        };
        ChunkLayout { dense, codes }
    }

    /// Returns the numeric columns that many rows have, and a few rarer ones.
    fn dense_columns(&self) -> Vec<u32> {
        let count = |k: &u32| self.numeric[*k as usize] + self.shared[*k as usize];
        let at_least = |share: f64| (share * self.rows as f64).max(1.0) as u32;
        let numeric = (0..self.numeric.len() as u32).filter(|&k| self.numeric[k as usize] > 0);
        let mut columns: Vec<u32> = numeric
            .filter(|k| count(k) >= at_least(RARE_SHARE))
            .collect();
        columns.sort_by_key(|k| (std::cmp::Reverse(count(k)), *k));
        let frequent_count = at_least(DENSE_SHARE);
        let frequent = columns
            .iter()
            .filter(|k| count(k) >= frequent_count)
            .count();
        let full_count = at_least(FULL_SHARE);
        let full = columns.iter().filter(|k| count(k) >= full_count).count();
        let most = full.clamp(MAX_DENSE, MAX_FULL);
        columns.truncate((2 * frequent + EXTRA_RARE).min(most));
        columns.sort_unstable();
        columns
    }

    /// Returns the fewest ranges of columns, without dense columns, that have at most one indicator of every row each.
    fn groups(&self, dense: &[u32]) -> Vec<Range<u32>> {
        let mut groups: Vec<Range<u32>> = Vec::new();
        let mut open = false;
        for (k, &preceding) in self.preceding.iter().enumerate() {
            let column = k as u32;
            if dense.binary_search(&column).is_ok() || !self.is_indicator(k) {
                open = false;
                continue;
            }
            match groups.last_mut() {
                Some(group)
                    if open && preceding <= group.start && group.len() + 2 <= CODE_VALUES =>
                {
                    group.end = column + 1;
                }
                _ => groups.push(column..column + 1),
            }
            open = true;
        }
        // Drops ranges without a single entry.
        groups.retain(|group| group.clone().any(|k| self.shared[k as usize] > 0));
        groups
    }
}

/// Packs groups into few codes, each of at most `max_values` values unless one group alone has more: the largest group
/// first, each into the first code that has room for it.
fn pack(mut groups: Vec<Range<u32>>, max_values: usize) -> Vec<Code> {
    groups.sort_by_key(|group| (std::cmp::Reverse(group.len()), group.start));
    let mut codes: Vec<Code> = Vec::new();
    for group in groups {
        let size = group.len() + 1;
        match codes
            .iter_mut()
            .find(|code| code.value_count() * size <= max_values)
        {
            Some(code) => code.groups.push(group),
            None => codes.push(Code {
                groups: vec![group],
            }),
        }
    }
    for code in &mut codes {
        code.groups.sort_by_key(|group| group.start);
    }
    codes
}

impl ChunkLayout {
    /// Returns the slot of each column.
    pub(in crate::curator) fn slots(&self, columns: usize) -> Vec<ColumnSlot> {
        let mut slots = vec![ColumnSlot::Sparse; columns];
        for (position, &column) in self.dense.iter().enumerate() {
            slots[column as usize] = ColumnSlot::Dense(position as u16);
        }
        let mut group_number = 0;
        for (position, code) in self.codes.iter().enumerate() {
            let mut stride = 1;
            for group in &code.groups {
                for (digit, column) in group.clone().enumerate() {
                    slots[column as usize] = ColumnSlot::Code {
                        code: position as u8,
                        group: group_number,
                        // At most 255, since codes have at most 256 values.
                        step: ((digit + 1) * stride) as u8,
                    };
                }
                stride *= group.len() + 1;
                group_number += 1;
            }
        }
        slots
    }
}
