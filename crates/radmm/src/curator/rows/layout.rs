//! Which part of a chunk of rows each column's entries go to.
//!
//! Encoded tables have a few numbers that nearly every row has, and indicators in groups of which a row has one at most, all of
//! the same value in that row. So a row is kept as its *dense* numbers, one *code* for several groups of indicators together,
//! and the *rest*. What goes where is read off the first rows of a chunk. An entry that does not fit there goes to the rest,
//! so that a bad guess costs room and time, and nothing else.

use std::ops::Range;

/// The values that a code can take: it is kept as one byte.
pub(in crate::curator) const CODES: usize = 256;
/// A number that this share of the rows have is dense.
const DENSE_SHARE: f64 = 0.25;
/// Numbers that are rarer than that but not rarer than this are dense too if they are few: in a place of their own they
/// are much faster than in the rest.
const RARE_SHARE: f64 = 0.02;
const FEW: usize = 2;
const MOST_DENSE: usize = 64;
/// More groups than this, for each indicator that a row has, and they are no groups.
const GROUPS_AN_ENTRY: f64 = 2.0;

/// Where a column's entries go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::curator) enum ColumnSlot {
    /// The number at this position.
    Dense(u8),
    /// Adds `step` to the code at this position, unless `group` has an entry already.
    Code { code: u8, group: u8, step: u8 },
    /// Its column and value are kept.
    Rest,
}

/// Groups of indicators that are kept as one code, `Σ_g digit_g·stride_g`. The digit of a group is 0 if the row has none of its
/// columns, and otherwise its place in the group, counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::curator) struct Code {
    /// Of columns, ascending.
    pub groups: Vec<Range<u32>>,
}

impl Code {
    /// How many values it takes.
    pub(in crate::curator) fn size(&self) -> usize {
        self.groups.iter().map(|group| group.len() + 1).product()
    }

    /// The columns that a value stands for.
    pub(in crate::curator) fn columns(&self, mut value: usize) -> impl Iterator<Item = u32> {
        self.groups.iter().filter_map(move |group| {
            let size = group.len() + 1;
            let digit = value % size;
            value /= size;
            (digit > 0).then(|| group.start + digit as u32 - 1)
        })
    }

    /// Calls `take` with each column and every value that stands for it, among others.
    #[inline(always)]
    pub(in crate::curator) fn each_value(&self, mut take: impl FnMut(usize, usize)) {
        let size = self.size();
        let mut stride = 1;
        for group in &self.groups {
            let next = stride * (group.len() + 1);
            for (digit, column) in group.clone().enumerate() {
                for first in (stride * (digit + 1)..size).step_by(next) {
                    (first..first + stride).for_each(|value| take(column as usize, value));
                }
            }
            stride = next;
        }
    }

    /// By value: the sum of what the columns of its digits have.
    pub(in crate::curator) fn fill<T: Copy>(
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

/// The parts of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::curator) struct ChunkLayout {
    /// Columns of dense numbers.
    pub dense: Vec<u32>,
    pub codes: Vec<Code>,
}

/// What the first rows show of each column.
pub(in crate::curator) struct Sample {
    rows: usize,
    /// Entries with a value of their own.
    valued: Vec<u32>,
    /// Entries with the row's value.
    shared: Vec<u32>,
    /// The last column before this one that shared a row with it, both as indicators; counted from 1.
    before: Vec<u32>,
}

impl Sample {
    pub(in crate::curator) fn new(columns: usize) -> Self {
        Self {
            rows: 0,
            valued: vec![0; columns],
            shared: vec![0; columns],
            before: vec![0; columns],
        }
    }

    /// A row: its columns, and whether their value is the one that the row shares.
    pub(in crate::curator) fn see(&mut self, entries: impl Iterator<Item = (u32, bool)>) {
        self.rows += 1;
        for (column, shared) in entries {
            match shared {
                true => self.shared[column as usize] += 1,
                false => self.valued[column as usize] += 1,
            }
        }
    }

    /// Only columns that are indicators in every row count as neighbours in one: to be called when all rows were seen.
    pub(in crate::curator) fn pair(&mut self, columns: impl Iterator<Item = u32>) {
        let mut last = 0;
        for column in columns {
            if self.is_indicator(column as usize) {
                let before = &mut self.before[column as usize];
                *before = last.max(*before);
                last = column + 1;
            }
        }
    }

    fn is_indicator(&self, column: usize) -> bool {
        self.valued[column] == 0
    }

    pub(in crate::curator) fn layout(&self) -> ChunkLayout {
        let dense = self.dense();
        let groups = self.groups(&dense);
        let indicators: u32 = (0..self.shared.len())
            .filter(|&k| self.is_indicator(k))
            .map(|k| self.shared[k])
            .sum();
        let most = 1.0 + GROUPS_AN_ENTRY * f64::from(indicators) / self.rows.max(1) as f64;
        let codes = match groups.len() as f64 <= most && groups.len() < CODES {
            true => packed(groups, CODES.min(self.rows / 4)),
            false => Vec::new(),
        };
        ChunkLayout { dense, codes }
    }

    /// Columns whose numbers most rows have, and a few rarer ones.
    fn dense(&self) -> Vec<u32> {
        let count = |k: &u32| self.valued[*k as usize] + self.shared[*k as usize];
        let at_least = |share: f64| (share * self.rows as f64).max(1.0) as u32;
        let valued = (0..self.valued.len() as u32).filter(|&k| self.valued[k as usize] > 0);
        let mut columns: Vec<u32> = valued
            .filter(|k| count(k) >= at_least(RARE_SHARE))
            .collect();
        columns.sort_by_key(|k| (std::cmp::Reverse(count(k)), *k));
        let enough = at_least(DENSE_SHARE);
        let often = columns.iter().filter(|k| count(k) >= enough).count();
        columns.truncate((2 * often + FEW).min(MOST_DENSE));
        columns.sort_unstable();
        columns
    }

    /// The fewest ranges of columns with at most one indicator of every row in each, without dense columns.
    fn groups(&self, dense: &[u32]) -> Vec<Range<u32>> {
        let mut groups: Vec<Range<u32>> = Vec::new();
        let mut open = false;
        for (k, &before) in self.before.iter().enumerate() {
            let column = k as u32;
            if dense.binary_search(&column).is_ok() || !self.is_indicator(k) {
                open = false;
                continue;
            }
            match groups.last_mut() {
                Some(group) if open && before <= group.start && group.len() + 2 <= CODES => {
                    group.end = column + 1;
                }
                _ => groups.push(column..column + 1),
            }
            open = true;
        }
        // A range without a single entry is for nobody.
        groups.retain(|group| group.clone().any(|k| self.shared[k as usize] > 0));
        groups
    }
}

/// Groups in few codes, each of at most `most` values unless one group alone has more: the largest first, each to the
/// first code that has room for it.
fn packed(mut groups: Vec<Range<u32>>, most: usize) -> Vec<Code> {
    groups.sort_by_key(|group| (std::cmp::Reverse(group.len()), group.start));
    let mut codes: Vec<Code> = Vec::new();
    for group in groups {
        let size = group.len() + 1;
        match codes.iter_mut().find(|code| code.size() * size <= most) {
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
    /// By column.
    pub(in crate::curator) fn places(&self, columns: usize) -> Vec<ColumnSlot> {
        let mut places = vec![ColumnSlot::Rest; columns];
        for (position, &column) in self.dense.iter().enumerate() {
            places[column as usize] = ColumnSlot::Dense(position as u8);
        }
        let mut number = 0;
        for (position, code) in self.codes.iter().enumerate() {
            let mut stride = 1;
            for group in &code.groups {
                for (digit, column) in group.clone().enumerate() {
                    places[column as usize] = ColumnSlot::Code {
                        code: position as u8,
                        group: number,
                        // At most 255, since codes take at most 256 values.
                        step: ((digit + 1) * stride) as u8,
                    };
                }
                stride *= group.len() + 1;
                number += 1;
            }
        }
        places
    }
}
