//! The rows of one party: sparse, of norm at most one, multiplied by their labels.
//!
//! A row is stored as `z = y·x`, so that a margin is `fᵀz`. Training needs neither `x` nor `y` again. The label is
//! stored beside it, since ranking rows of both classes takes the score `fᵀx = y·fᵀz`.
//!
//! Nothing outside `curator/` can read a row back:
//! ```compile_fail
//! # use radmm::curator::{NormPolicy, ShardBuilder};
//! let mut builder = ShardBuilder::new(2, NormPolicy::Clip);
//! builder.push(&[(0, 1.0)], true).unwrap();
//! let shard = builder.finish().unwrap();
//! let leak = shard.chunks; // private field
//! ```
//! ```compile_fail
//! # fn shard() -> radmm::curator::Shard { unimplemented!() }
//! let copy = shard().clone(); // not Clone: rows move into one curator and stay there
//! ```
//! ```compile_fail
//! # fn shard() -> radmm::curator::Shard { unimplemented!() }
//! println!("{:?}", shard()); // not Debug: rows cannot slip into a log
//! ```
//! ```compile_fail
//! # fn shard() -> radmm::curator::Shard { unimplemented!() }
//! fn serialisable<T: serde::Serialize>(_: T) {}
//! serialisable(shard()); // not Serialize: rows cannot slip into a file or a message
//! ```
//! ```compile_fail
//! # fn shard() -> radmm::curator::Shard { unimplemented!() }
//! let rows = shard().chunks(); // visible in `curator/` alone
//! ```
//! The intended use of the builder:
//! ```
//! use radmm::curator::{NormPolicy, ShardBuilder};
//! let mut builder = ShardBuilder::new(2, NormPolicy::Clip);
//! builder.push(&[(0, 1.0)], true).unwrap();
//! let shard = builder.finish().unwrap();
//! assert_eq!((shard.rows(), shard.columns()), (1, 2));
//! ```

use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use thiserror::Error;

use super::chunk::{Chunk, ChunkBuilder, ChunkShape, MAX_COLUMNS, Row};
use super::row_memory::{ChunkBuffer, PlacedChunk, RowMemory, RowNumbers};
use crate::curator::row_passes::PassFailed;

/// The scaling that makes the norm of a row at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormPolicy {
    /// Every row is scaled to norm one, except rows of zeros.
    Unit,
    /// Rows of norm above one are scaled down to one. Other rows stay unchanged.
    Clip,
}

impl NormPolicy {
    /// Overwrites `row` with the scaled, non-zero entries that a shard of this many columns would store for a positive
    /// label.
    ///
    /// Use it to score rows by a model that was trained on such shards.
    pub fn apply(
        self,
        entries: &[(u32, f64)],
        columns: usize,
        row: &mut Vec<(u32, f64)>,
    ) -> Result<(), RowError> {
        normalise(entries, columns, self, 1.0, row).map(drop)
    }
}

/// The reason why a row is rejected.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum RowError {
    /// The shard does not have this column.
    #[error("column {column} does not exist: there are {columns}")]
    NoSuchColumn {
        /// The column.
        column: u32,
        /// The number of columns.
        columns: usize,
    },
    /// The columns are not strictly ascending.
    #[error("column {column} comes after a column that is not below it")]
    NotAscending {
        /// The column out of order.
        column: u32,
    },
    /// A value is NaN or infinite.
    #[error("the value {value} in column {column} is not a finite number")]
    NotFinite {
        /// The column of the value.
        column: u32,
        /// The value.
        value: f64,
    },
    /// The rows do not fit in memory, and their storage failed.
    #[error(transparent)]
    Storage(#[from] PassFailed),
}

/// The error of a shard without rows: a shard has at least one.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("there are no rows")]
pub struct NoRows;

/// The rows of one party, readable inside `curator/` alone.
pub struct Shard {
    columns: usize,
    rows: usize,
    /// The largest number of non-zeros of a row.
    max_nonzeros: u32,
    chunks: Vec<PlacedChunk>,
    /// The shapes of the chunks.
    shapes: Vec<ChunkShape>,
    /// Buffers for stored chunks: one for each thread that reads one.
    buffers: Mutex<Vec<ChunkBuffer>>,
}

impl Shard {
    /// Returns `B`, the number of rows. It is public by the neighbouring relation (one row *replaced*).
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns `d`, the number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Creates a shard that panics when a row is read, to show that none is.
    #[cfg(test)]
    pub(crate) fn untouchable(rows: usize, columns: usize) -> Self {
        let mut shard = Self::empty(columns);
        shard.push_chunk(Chunk::untouchable(rows));
        shard
    }

    /// Returns the largest number of non-zeros of a row. It comes from the rows.
    pub(in crate::curator) fn max_nonzeros(&self) -> u32 {
        self.max_nonzeros
    }

    /// Creates a shard without rows.
    pub(in crate::curator) fn empty(columns: usize) -> Self {
        Self {
            columns,
            rows: 0,
            max_nonzeros: 0,
            chunks: Vec::new(),
            shapes: Vec::new(),
            buffers: Mutex::default(),
        }
    }

    /// Appends a chunk, which stays in memory.
    pub(in crate::curator) fn push_chunk(&mut self, chunk: Chunk) {
        self.count(&chunk);
        self.chunks.push(PlacedChunk::InMemory(Box::new(chunk)));
    }

    /// Appends a chunk, which is stored if there is no memory left.
    fn place_chunk(&mut self, chunk: Chunk, memory: &RowMemory) -> Result<(), PassFailed> {
        self.count(&chunk);
        self.chunks.push(memory.place(chunk, self.columns)?);
        Ok(())
    }

    fn count(&mut self, chunk: &Chunk) {
        self.rows += chunk.rows();
        self.max_nonzeros = self.max_nonzeros.max(chunk.max_nonzeros());
        self.shapes.push(chunk.shape());
    }

    /// Returns whether a chunk is in memory.
    pub(in crate::curator) fn is_in_memory(&self, k: usize) -> bool {
        matches!(self.chunks[k], PlacedChunk::InMemory(_))
    }

    /// Returns the shapes of the chunks, in order.
    pub(in crate::curator) fn shapes(&self) -> &[ChunkShape] {
        &self.shapes
    }

    /// Calls `visit` with a chunk: rows, as `y·x`.
    pub(in crate::curator) fn with_chunk<T>(
        &self,
        k: usize,
        visit: impl FnOnce(&Chunk) -> T,
    ) -> Result<T, PassFailed> {
        let stored = match &self.chunks[k] {
            PlacedChunk::InMemory(chunk) => return Ok(visit(chunk)),
            PlacedChunk::Stored(stored) => stored,
        };
        let buffers = || self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = buffers().pop().unwrap_or_default();
        let result = stored.read_chunk(&mut buffer).map(visit);
        buffers().push(buffer);
        result
    }

    /// Keeps a number for each row of a chunk: in memory if the chunk is there, and in storage if it is not.
    pub(in crate::curator) fn place_numbers(
        &self,
        k: usize,
        numbers: Vec<f64>,
    ) -> Result<RowNumbers, PassFailed> {
        match &self.chunks[k] {
            PlacedChunk::InMemory(_) => Ok(RowNumbers::InMemory(numbers)),
            PlacedChunk::Stored(stored) => stored.store_numbers(&numbers),
        }
    }

    /// Returns the chunks, which are all in memory.
    #[cfg(any(test, feature = "bench"))]
    pub(in crate::curator) fn chunks(&self) -> Vec<&Chunk> {
        fn in_memory(chunk: &PlacedChunk) -> &Chunk {
            match chunk {
                PlacedChunk::InMemory(chunk) => chunk,
                PlacedChunk::Stored(_) => panic!("a chunk is stored"),
            }
        }
        self.chunks.iter().map(in_memory).collect()
    }
}

/// Builds a shard from rows, one at a time, and bounds their norms.
pub struct ShardBuilder {
    policy: NormPolicy,
    shard: Shard,
    memory: Option<RowMemory>,
    open_chunk: ChunkBuilder,
    /// A buffer for the entries of the row that is being added.
    entries: Vec<(u32, f64)>,
}

impl ShardBuilder {
    /// Creates a builder of a shard with this many columns.
    pub fn new(columns: usize, policy: NormPolicy) -> Self {
        Self {
            policy,
            shard: Shard::empty(columns),
            memory: None,
            open_chunk: ChunkBuilder::new(columns),
            entries: Vec::new(),
        }
    }

    /// Stores the chunks that exceed this memory.
    #[must_use]
    pub fn with_memory(self, memory: Option<&RowMemory>) -> Self {
        Self {
            memory: memory.cloned(),
            ..self
        }
    }

    /// Adds a row, given by its non-zero entries in ascending order of their columns and its label.
    pub fn push(&mut self, entries: &[(u32, f64)], positive: bool) -> Result<(), RowError> {
        let sign = if positive { 1.0 } else { -1.0 };
        let columns = self.shard.columns;
        let scale = normalise(entries, columns, self.policy, sign, &mut self.entries)?;
        self.open_chunk.push(&Row {
            scale: sign * indicator_value(&self.entries, scale.apply(1.0)),
            entries: &self.entries,
        });
        if self.open_chunk.is_full() {
            self.close_chunk()?;
        }
        Ok(())
    }

    /// Returns the shard, if it has a row. Its last chunk stays in memory.
    pub fn finish(mut self) -> Result<Shard, NoRows> {
        if !self.open_chunk.is_empty() {
            self.shard.push_chunk(self.open_chunk.finish());
        }
        match self.shard.rows {
            0 => Err(NoRows),
            _ => Ok(self.shard),
        }
    }

    fn close_chunk(&mut self) -> Result<(), PassFailed> {
        let next = ChunkBuilder::new(self.shard.columns);
        let full = std::mem::replace(&mut self.open_chunk, next);
        match &self.memory {
            None => self.shard.push_chunk(full.finish()),
            Some(memory) => self.shard.place_chunk(full.finish(), memory)?,
        }
        Ok(())
    }
}

/// Checks a row, overwrites `row` with its non-zero entries, scaled and signed, and returns the scale.
fn normalise(
    entries: &[(u32, f64)],
    columns: usize,
    policy: NormPolicy,
    sign: f64,
    row: &mut Vec<(u32, f64)>,
) -> Result<RowScale, RowError> {
    let columns = columns.min(MAX_COLUMNS);
    let mut last = None;
    for &(column, value) in entries {
        if column as usize >= columns {
            return Err(RowError::NoSuchColumn { column, columns });
        }
        if last.is_some_and(|last| column <= last) {
            return Err(RowError::NotAscending { column });
        }
        if !value.is_finite() {
            return Err(RowError::NotFinite { column, value });
        }
        last = Some(column);
    }
    let filled = entries.iter().filter(|entry| entry.1 != 0.0);
    let scale = norm_scale(entries, filled.clone().count(), policy);
    row.clear();
    row.extend(filled.map(|&(column, value)| (column, sign * scale.apply(value))));
    Ok(scale)
}

/// Returns the absolute value of a row's indicators. It is `one`, the scaled value of one, if an entry has it, and
/// otherwise that of the last entry where that is neither large nor tiny.
// Privacy: sums are multiplied by it, so it must neither overflow nor underflow them, whatever the row is.
fn indicator_value(entries: &[(u32, f64)], one: f64) -> f64 {
    let size = match entries.last() {
        Some((_, last)) if entries.iter().all(|entry| entry.1.abs() != one) => last.abs(),
        _ => one,
    };
    if (1e-100..=1.0).contains(&size) {
        size
    } else {
        1.0
    }
}

/// The scaling of a row. A row is divided by its largest entry first, so that its norm neither overflows nor underflows.
struct RowScale {
    divisor: f64,
    factor: f64,
}

impl RowScale {
    const IDENTITY: Self = Self {
        divisor: 1.0,
        factor: 1.0,
    };

    fn apply(&self, value: f64) -> f64 {
        value / self.divisor * self.factor
    }
}

/// Returns the scale that makes the norm of a row with `count` non-zero entries at most one.
// Privacy: sensitivities require ‖x‖ ≤ 1 in exact arithmetic. The computed norm of k numbers has relative error below
// (k + 4)·2⁻⁵³ and scaling adds three roundings per entry, so a row is scaled to 1 − (k + 8)·2⁻⁵², and counts as short
// enough only if it is below that already. Zeros are added without error: k is `count`, the number of non-zero entries,
// so that a row is the same with and without its zeros.
fn norm_scale(entries: &[(u32, f64)], count: usize, policy: NormPolicy) -> RowScale {
    let largest = entries.iter().fold(0.0, |m: f64, e| m.max(e.1.abs()));
    if largest == 0.0 {
        return RowScale::IDENTITY;
    }
    let squares: f64 = entries.iter().map(|e| (e.1 / largest).powi(2)).sum();
    let norm = squares.sqrt();
    let target = 1.0 - (count as f64 + 8.0) * f64::EPSILON;
    match policy {
        NormPolicy::Clip if largest <= 1.0 && norm * largest <= target => RowScale::IDENTITY,
        NormPolicy::Clip | NormPolicy::Unit => RowScale {
            divisor: largest,
            factor: target / norm,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn norm_of_only_row(entries: &[(u32, f64)], policy: NormPolicy) -> f64 {
        let mut builder = ShardBuilder::new(1000, policy);
        builder.push(entries, false).unwrap();
        let shard = builder.finish().unwrap();
        row(&shard, 0).1.iter().map(|v| v * v).sum::<f64>().sqrt()
    }

    /// Returns a row as it is stored, with its columns in order.
    fn row(shard: &Shard, n: usize) -> (Vec<u32>, Vec<f64>) {
        let mut found = Vec::new();
        shard.chunks()[0].for_each_row(|k, columns, values, _| {
            if k == n {
                found = columns
                    .iter()
                    .copied()
                    .zip(values.iter().copied())
                    .collect();
            }
        });
        found.sort_by_key(|entry: &(u32, f64)| entry.0);
        found.into_iter().unzip()
    }

    #[test]
    fn unit_rows_have_norm_one_and_never_more() {
        for scale in [1e-300, 1e-3, 1.0, 7.0, 1e300] {
            let entries: Vec<_> = (0..1000)
                .map(|k| (k, scale * f64::from(k + 1).sin()))
                .collect();
            let norm = norm_of_only_row(&entries, NormPolicy::Unit);
            assert!(norm <= 1.0 && norm > 1.0 - 1e-12, "{norm} at scale {scale}");
        }
    }

    #[test]
    fn clipping_leaves_short_rows_unchanged() {
        let mut builder = ShardBuilder::new(3, NormPolicy::Clip);
        builder.push(&[(0, 0.3), (2, -0.4)], true).unwrap();
        builder.push(&[(0, 3.0), (2, -4.0)], false).unwrap();
        let shard = builder.finish().unwrap();
        assert_eq!(row(&shard, 0), (vec![0, 2], vec![0.3, -0.4]));
        let (columns, values) = row(&shard, 1);
        assert_eq!(columns, [0, 2]);
        assert!((values[0] + 0.6).abs() < 1e-14 && (values[1] - 0.8).abs() < 1e-14);
    }

    /// Returns whether `Σ v² ≤ 1` in exact arithmetic: every square and every sum with its error, with the errors summed
    /// separately.
    fn is_at_most_one(values: &[f64]) -> bool {
        let (mut sum, mut error) = (-1.0f64, 0.0);
        for v in values {
            let square = v * v;
            error += v.mul_add(*v, -square);
            let next = sum + square;
            let back = next - sum;
            error += (sum - (next - back)) + (square - back);
            sum = next;
        }
        // The errors are 2⁻⁵³ of the sum and known to as many digits, so that the result is exact up to 1e-28.
        sum + error <= 0.0
    }

    #[test]
    fn no_norm_exceeds_one_even_in_exact_arithmetic() {
        let mut state = 1u64;
        let mut next = move || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for trial in 0..5000 {
            let count = 1 + trial % 40;
            let entries: Vec<_> = (0..count).map(|k| (k as u32, 2.0 * next() - 1.0)).collect();
            for policy in [NormPolicy::Unit, NormPolicy::Clip] {
                let mut builder = ShardBuilder::new(40, policy);
                builder.push(&entries, true).unwrap();
                let shard = builder.finish().unwrap();
                assert!(is_at_most_one(&row(&shard, 0).1), "{policy:?} {entries:?}");
            }
        }
    }

    #[test]
    fn clipping_bounds_the_norm_and_not_the_entries() {
        let norm = norm_of_only_row(&[(0, 0.9), (1, 0.9)], NormPolicy::Clip);
        assert!(norm <= 1.0 && norm > 1.0 - 1e-12);
    }

    #[test]
    fn a_row_is_the_same_with_and_without_its_zeros() {
        for policy in [NormPolicy::Unit, NormPolicy::Clip] {
            let mut builder = ShardBuilder::new(9, policy);
            let zeros = [(0, 0.0), (1, 0.7), (2, -0.0), (5, -0.9), (6, 0.0), (8, 0.0)];
            builder.push(&zeros, true).unwrap();
            builder.push(&[(1, 0.7), (5, -0.9)], true).unwrap();
            let shard = builder.finish().unwrap();
            assert_eq!(row(&shard, 0), row(&shard, 1));
        }
    }

    #[test]
    fn a_row_is_scored_as_it_is_stored() {
        let entries = [(0, 0.0), (1, 0.7), (2, -3.5), (5, -0.9), (8, 1e-9)];
        for policy in [NormPolicy::Unit, NormPolicy::Clip] {
            let mut builder = ShardBuilder::new(9, policy);
            builder.push(&entries, true).unwrap();
            builder.push(&entries, false).unwrap();
            let shard = builder.finish().unwrap();
            let mut scored = vec![(7, 7.0)];
            policy.apply(&entries, 9, &mut scored).unwrap();
            let (columns, values): (Vec<u32>, Vec<f64>) = scored.iter().copied().unzip();
            assert_eq!(row(&shard, 0), (columns.clone(), values.clone()));
            let opposite = values.iter().map(|value| -value).collect();
            assert_eq!(row(&shard, 1), (columns, opposite));
            let refused = policy.apply(&entries, 8, &mut scored);
            assert!(matches!(refused, Err(RowError::NoSuchColumn { .. })));
        }
    }

    #[test]
    fn the_norm_stays_further_below_one_the_more_entries_there_are() {
        // Each rounding of the sum may lose half a unit in the last place.
        let entries: Vec<(u32, f64)> = (0..4096).map(|k| (k, 1.0)).collect();
        let mut builder = ShardBuilder::new(4096, NormPolicy::Unit);
        builder.push(&entries, true).unwrap();
        let shard = builder.finish().unwrap();
        let squares: f64 = row(&shard, 0).1.iter().map(|value| value * value).sum();
        assert!(squares.sqrt() <= 1.0 - 4096.0 * f64::EPSILON, "{squares}");
    }

    #[test]
    fn the_indicator_value_is_neither_large_nor_tiny() {
        assert_eq!(
            indicator_value(&[(0, 0.5), (1, -0.25), (2, 0.25)], 0.25),
            0.25
        );
        assert_eq!(indicator_value(&[(0, 0.5), (1, -0.25)], 0.1), 0.25);
        assert_eq!(
            indicator_value(&[(0, 0.5), (1, 1e-200)], f64::INFINITY),
            1.0
        );
        assert_eq!(indicator_value(&[(0, 1e-200), (1, 1e-200)], 1e-200), 1.0);
        assert_eq!(indicator_value(&[], 1.0), 1.0);
    }

    #[test]
    fn a_row_of_zeros_is_kept() {
        let mut builder = ShardBuilder::new(2, NormPolicy::Unit);
        builder.push(&[(0, 0.0)], true).unwrap();
        let shard = builder.finish().unwrap();
        assert_eq!((shard.rows(), row(&shard, 0).1.len()), (1, 0));
    }

    #[test]
    fn invalid_rows_are_rejected_and_leave_nothing_behind() {
        let mut builder = ShardBuilder::new(2, NormPolicy::Unit);
        assert!(matches!(
            builder.push(&[(0, 1.0), (1, f64::NAN)], true),
            Err(RowError::NotFinite { column: 1, .. })
        ));
        assert_eq!(
            builder.push(&[(2, 1.0)], true),
            Err(RowError::NoSuchColumn {
                column: 2,
                columns: 2
            })
        );
        assert_eq!(
            builder.push(&[(1, 1.0), (1, 1.0)], true),
            Err(RowError::NotAscending { column: 1 })
        );
        assert!(matches!(builder.finish(), Err(NoRows)));
    }
}
