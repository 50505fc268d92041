//! A chunk: up to [`CHUNK_ROWS`] rows, stored compactly in the parts of its [`layout`](super::layout).
//!
//! A row is `z = y·x`. Entries that are equal to the row's indicator value are stored as that value once and their
//! columns. Blocks of [`BLOCK_ROWS`] rows are stored column by column, so that eight rows can be processed at a time.
//! The last block is padded with rows of zeros.

mod encoding;

use super::layout::{CODE_VALUES, ChunkLayout, Code, ColumnSlot, ColumnStats};
use crate::curator::kernel::exp_log::LANES;

/// The number of rows of a full chunk. Sums over chunks are computed separately, on any thread, and added up in order.
pub(in crate::curator) const CHUNK_ROWS: usize = 16_384;
/// The number of rows of a full block. Sums are plain within a block, and compensated over blocks.
pub(in crate::curator) const BLOCK_ROWS: usize = 256;
/// The number of rows from which the layout of a chunk is derived.
const SAMPLE_ROWS: usize = 1024;

/// Up to [`CHUNK_ROWS`] rows.
#[derive(Default)]
pub(in crate::curator) struct Chunk {
    layout: ChunkLayout,
    rows: usize,
    /// The largest number of non-zeros of a row.
    max_nonzeros: u32,
    /// For each row, the value of its indicators, with the sign of its label; zero for padding.
    scales: Vec<f64>,
    /// Dense numbers, block by block, column by column in each.
    dense: Vec<f64>,
    /// Codes, in the same order.
    codes: Vec<u8>,
    /// The values that occur, by code: one bit each.
    occurring: Vec<[u64; CODE_VALUES / 64]>,
    sparse: SparseEntries,
}

/// The number of rows of a chunk, and the sizes of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::curator) struct ChunkShape {
    pub rows: usize,
    /// The number of dense columns.
    pub dense: usize,
    /// The number of codes, of their groups together, and of their values together.
    pub codes: usize,
    pub groups: usize,
    pub values: usize,
    pub sparse_entries: usize,
}

impl ChunkShape {
    /// Returns a bound on the number of entries that are not zero.
    pub(in crate::curator) fn max_entries(&self) -> usize {
        self.rows * (self.dense + self.groups) + self.sparse_entries
    }
}

/// The entries of a chunk that have no other slot: columns and values, row by row.
#[derive(Default)]
pub(in crate::curator) struct SparseEntries {
    /// The index of each row's first entry, and the end; empty if there are no entries.
    starts: Vec<u32>,
    columns: ColumnIndices,
    /// Empty if all values are equal to their row's indicator value.
    values: Vec<f64>,
}

/// Column indices, as narrow as the number of columns allows.
enum ColumnIndices {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

impl ColumnIndices {
    /// Returns an empty list of indices below a number of columns.
    fn empty(columns: usize) -> Self {
        match columns > usize::from(u16::MAX) + 1 {
            true => Self::Wide(Vec::new()),
            false => Self::Narrow(Vec::new()),
        }
    }

    fn is_narrow(&self) -> bool {
        matches!(self, Self::Narrow(_))
    }
}

impl Default for ColumnIndices {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

/// Consecutive rows of a chunk, padded to a multiple of eight.
pub(in crate::curator) struct Block<'a> {
    /// The index of the first row within the chunk.
    pub first_row: usize,
    /// The number of rows without padding.
    pub rows: usize,
    pub scales: &'a [f64],
    /// Dense numbers, column by column, each as long as `scales`.
    pub dense: &'a [f64],
    /// Codes, in the same order.
    pub codes: &'a [u8],
}

impl Chunk {
    pub(in crate::curator) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the largest number of non-zeros of a row.
    pub(in crate::curator) fn max_nonzeros(&self) -> u32 {
        self.max_nonzeros
    }

    pub(in crate::curator) fn layout(&self) -> &ChunkLayout {
        &self.layout
    }

    /// Returns the values of a code that occur in the rows, ascending.
    pub(in crate::curator) fn occurring_values(&self, code: usize) -> impl Iterator<Item = u8> {
        let bits = &self.occurring[code];
        (0..=u8::MAX).filter(|value| bits[usize::from(value / 64)] >> (value % 64) & 1 == 1)
    }

    /// Returns the number of rows and the sizes of the parts.
    pub(in crate::curator) fn shape(&self) -> ChunkShape {
        let codes = &self.layout.codes;
        ChunkShape {
            rows: self.rows,
            dense: self.layout.dense.len(),
            codes: codes.len(),
            groups: codes.iter().map(|code| code.groups.len()).sum(),
            values: codes.iter().map(Code::value_count).sum(),
            sparse_entries: self.sparse.len() as usize,
        }
    }

    /// Returns the sparse entries, if there are any.
    pub(in crate::curator) fn sparse(&self) -> Option<&SparseEntries> {
        (!self.sparse.starts.is_empty()).then_some(&self.sparse)
    }

    /// Returns, for each row, whether it is of the positive class.
    pub(in crate::curator) fn labels(&self) -> impl Iterator<Item = bool> {
        let scales = self.scales[..self.rows].iter();
        scales.map(|scale| scale.is_sign_positive())
    }

    /// Returns the blocks, in order.
    pub(in crate::curator) fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        (0..self.rows).step_by(BLOCK_ROWS).map(|first_row| {
            let rows = (self.rows - first_row).min(BLOCK_ROWS);
            let scales = &self.scales[first_row..][..rows.next_multiple_of(LANES)];
            let (dense, codes) = (self.layout.dense.len(), self.layout.codes.len());
            Block {
                first_row,
                rows,
                scales,
                dense: &self.dense[first_row * dense..][..scales.len() * dense],
                codes: &self.codes[first_row * codes..][..scales.len() * codes],
            }
        })
    }

    /// Calls `visit` for every row with its index, its columns in no particular order, their values, and the position
    /// of its first sparse entry.
    pub(in crate::curator) fn for_each_row(&self, visit: impl FnMut(usize, &[u32], &[f64], usize)) {
        self.for_each_selected_row(|_| true, visit);
    }

    /// Does the same for rows with sparse entries only.
    pub(in crate::curator) fn for_each_row_with_sparse(
        &self,
        visit: impl FnMut(usize, &[u32], &[f64], usize),
    ) {
        let starts = &self.sparse.starts;
        if !starts.is_empty() {
            self.for_each_selected_row(|n| starts[n] < starts[n + 1], visit);
        }
    }

    fn for_each_selected_row(
        &self,
        selected: impl Fn(usize) -> bool,
        mut visit: impl FnMut(usize, &[u32], &[f64], usize),
    ) {
        let decoded: Vec<Vec<Vec<u32>>> = self
            .layout
            .codes
            .iter()
            .map(|code| {
                let values = 0..code.value_count();
                values.map(|value| code.columns(value).collect()).collect()
            })
            .collect();
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for block in self.blocks() {
            let width = block.scales.len();
            for n in (0..block.rows).filter(|n| selected(block.first_row + n)) {
                columns.clear();
                values.clear();
                for (&column, dense) in self.layout.dense.iter().zip(block.dense.chunks(width)) {
                    if dense[n] != 0.0 {
                        columns.push(column);
                        values.push(dense[n]);
                    }
                }
                for (decoded, codes) in decoded.iter().zip(block.codes.chunks(width)) {
                    columns.extend_from_slice(&decoded[usize::from(codes[n])]);
                    values.resize(columns.len(), block.scales[n]);
                }
                let first_sparse = columns.len();
                if let Some(sparse) = self.sparse() {
                    sparse.for_each_entry(block.first_row + n, block.scales[n], |column, value| {
                        columns.push(column as u32);
                        values.push(value);
                    });
                }
                visit(block.first_row + n, &columns, &values, first_sparse);
            }
        }
    }

    /// Creates a chunk that panics when a row is read.
    #[cfg(test)]
    pub(in crate::curator) fn untouchable(rows: usize) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }

    /// Returns the number of bytes that the rows occupy.
    pub(in crate::curator) fn bytes(&self) -> usize {
        let columns = match &self.sparse.columns {
            ColumnIndices::Narrow(columns) => 2 * columns.len(),
            ColumnIndices::Wide(columns) => 4 * columns.len(),
        };
        let sparse = 4 * self.sparse.starts.len() + columns + 8 * self.sparse.values.len();
        8 * (self.scales.len() + self.dense.len()) + self.codes.len() + sparse
    }

    /// Returns a plain sum over all stored arrays, in order.
    #[cfg(feature = "bench")]
    pub(in crate::curator) fn plain_sum(&self) -> f64 {
        let doubles = [&self.scales, &self.dense, &self.sparse.values];
        let sum: f64 = doubles
            .into_iter()
            .map(|list| list.iter().sum::<f64>())
            .sum();
        let codes: u64 = self.codes.iter().map(|&code| u64::from(code)).sum();
        sum + codes as f64
    }
}

impl SparseEntries {
    /// Calls `visit` with the column and value of each entry of a row with this indicator value.
    #[inline(always)]
    pub(in crate::curator) fn for_each_entry(
        &self,
        row: usize,
        scale: f64,
        mut visit: impl FnMut(usize, f64),
    ) {
        let range = self.starts[row] as usize..self.starts[row + 1] as usize;
        let value = |k: usize| self.values.get(k).copied().unwrap_or(scale);
        match &self.columns {
            ColumnIndices::Narrow(columns) => {
                range.for_each(|k| visit(usize::from(columns[k]), value(k)));
            }
            ColumnIndices::Wide(columns) => {
                range.for_each(|k| visit(columns[k] as usize, value(k)))
            }
        }
    }

    /// Starts a row at the end of the entries. Rows before it that were not started have no entries.
    fn begin_row(&mut self, row: usize) {
        let additional = row + 1 - self.starts.len();
        reserve(&mut self.starts, additional);
        self.starts.resize(row + 1, self.len());
    }

    fn len(&self) -> u32 {
        match &self.columns {
            ColumnIndices::Narrow(columns) => columns.len() as u32,
            ColumnIndices::Wide(columns) => columns.len() as u32,
        }
    }
}

/// A row to be stored.
pub(in crate::curator) struct Row<'a> {
    /// The value of its indicators, with the sign of its label. Not zero.
    pub scale: f64,
    /// Entries in ascending order of columns, without zeros.
    pub entries: &'a [(u32, f64)],
}

/// Rows that wait for the layout, in little more memory than they will take.
#[derive(Default)]
struct PendingRows {
    /// For each row, its indicator value and its number of entries.
    scales: Vec<(f64, u32)>,
    /// The columns of the entries, marked with [`SHARED_FLAG`] where the value is the row's indicator value.
    columns: Vec<u32>,
    /// The values of the unmarked entries.
    values: Vec<f64>,
}

/// The bit that marks an entry with the row's indicator value. It is above all columns.
const SHARED_FLAG: u32 = 1 << 31;
/// The largest number of columns: more would collide with [`SHARED_FLAG`].
pub(in crate::curator) const MAX_COLUMNS: usize = SHARED_FLAG as usize;
/// The number of sparse entries at which a chunk is full before it has all its rows, since their indices have 32 bits.
const MAX_SPARSE_ENTRIES: u32 = 1 << 30;

impl PendingRows {
    fn push(&mut self, row: &Row<'_>) {
        push(&mut self.scales, (row.scale, row.entries.len() as u32));
        for &(column, value) in row.entries {
            if value == row.scale {
                push(&mut self.columns, column | SHARED_FLAG);
            } else {
                push(&mut self.columns, column);
                push(&mut self.values, value);
            }
        }
    }

    fn for_each(&self, mut visit: impl FnMut(Row<'_>)) {
        let mut columns = self.columns.iter();
        let mut values = self.values.iter();
        let mut entries = Vec::new();
        for &(scale, count) in &self.scales {
            entries.clear();
            for &column in columns.by_ref().take(count as usize) {
                let shared = column & SHARED_FLAG != 0;
                let value = if shared { None } else { values.next() };
                entries.push((column & !SHARED_FLAG, *value.unwrap_or(&scale)));
            }
            visit(Row {
                scale,
                entries: &entries,
            });
        }
    }
}

/// Reserves space for `additional` items. Lists grow by an eighth at a time: doubling would need three times the memory
/// while copying, and leave half of it unused.
fn reserve<T>(list: &mut Vec<T>, additional: usize) {
    if list.capacity() - list.len() < additional {
        list.reserve_exact(additional.max(list.len() / 8));
    }
}

/// Appends an item, growing as in [`reserve`].
fn push<T>(list: &mut Vec<T>, item: T) {
    reserve(list, 1);
    list.push(item);
}

/// Builds a chunk from rows, one at a time.
pub(in crate::curator) struct ChunkBuilder {
    columns: usize,
    /// The first rows, until the layout is fixed.
    pending: PendingRows,
    layout_fixed: bool,
    /// The slot of each column; empty if all entries are sparse.
    slots: Vec<ColumnSlot>,
    /// Dense numbers of the open block, row by row.
    dense: Vec<f64>,
    /// Codes of the open block, row by row.
    codes: Vec<u8>,
    /// The number of rows in the open block.
    open_rows: usize,
    chunk: Chunk,
}

impl ChunkBuilder {
    pub(in crate::curator) fn new(columns: usize) -> Self {
        Self {
            columns,
            pending: PendingRows::default(),
            layout_fixed: false,
            slots: Vec::new(),
            dense: Vec::new(),
            codes: Vec::new(),
            chunk: Chunk {
                sparse: SparseEntries {
                    columns: ColumnIndices::empty(columns),
                    ..SparseEntries::default()
                },
                ..Chunk::default()
            },
            open_rows: 0,
        }
    }

    pub(in crate::curator) fn is_empty(&self) -> bool {
        self.chunk.rows == 0
    }

    pub(in crate::curator) fn is_full(&self) -> bool {
        self.chunk.rows == CHUNK_ROWS || self.chunk.sparse.len() >= MAX_SPARSE_ENTRIES
    }

    pub(in crate::curator) fn push(&mut self, row: &Row<'_>) {
        self.chunk.rows += 1;
        let nonzeros = row.entries.len() as u32;
        self.chunk.max_nonzeros = self.chunk.max_nonzeros.max(nonzeros);
        if self.layout_fixed {
            return self.store(row);
        }
        self.pending.push(row);
        if self.chunk.rows == SAMPLE_ROWS {
            self.fix_layout();
        }
    }

    pub(in crate::curator) fn finish(mut self) -> Chunk {
        if !self.layout_fixed {
            self.fix_layout();
        }
        self.close_block();
        let chunk = &mut self.chunk;
        chunk.scales.shrink_to_fit();
        chunk.dense.shrink_to_fit();
        chunk.codes.shrink_to_fit();
        chunk.sparse.starts.shrink_to_fit();
        chunk.sparse.values.shrink_to_fit();
        match &mut chunk.sparse.columns {
            ColumnIndices::Narrow(columns) => columns.shrink_to_fit(),
            ColumnIndices::Wide(columns) => columns.shrink_to_fit(),
        }
        self.chunk
    }

    /// Derives the layout from the pending rows, and stores them in it.
    fn fix_layout(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let mut stats = ColumnStats::new(self.columns);
        pending
            .for_each(|row| stats.count_row(row.entries.iter().map(|e| (e.0, e.1 == row.scale))));
        pending.for_each(|row| stats.record_cooccurrence(row.entries.iter().map(|e| e.0)));
        self.chunk.layout = stats.layout();
        if self.chunk.layout != ChunkLayout::default() {
            self.slots = self.chunk.layout.slots(self.columns);
        }
        self.layout_fixed = true;
        pending.for_each(|row| self.store(&row));
    }

    /// Stores a row in the open block.
    fn store(&mut self, row: &Row<'_>) {
        let (dense, codes) = (self.dense.len(), self.codes.len());
        self.dense
            .resize(dense + self.chunk.layout.dense.len(), 0.0);
        self.codes.resize(codes + self.chunk.layout.codes.len(), 0);
        // One bit per group, since groups ascend within a code but not over codes.
        let mut seen_groups = [0u64; 4];
        for &(column, value) in row.entries {
            match self
                .slots
                .get(column as usize)
                .copied()
                .unwrap_or(ColumnSlot::Sparse)
            {
                ColumnSlot::Dense(k) => self.dense[dense + usize::from(k)] = value,
                ColumnSlot::Code { code, group, step }
                    if value == row.scale
                        && seen_groups[usize::from(group / 64)] >> (group % 64) & 1 == 0 =>
                {
                    seen_groups[usize::from(group / 64)] |= 1 << (group % 64);
                    self.codes[codes + usize::from(code)] += step;
                }
                ColumnSlot::Code { .. } | ColumnSlot::Sparse => {
                    self.push_sparse(column, value, row.scale)
                }
            }
        }
        push(&mut self.chunk.scales, row.scale);
        if !self.chunk.sparse.starts.is_empty() {
            self.chunk.sparse.begin_row(self.chunk.scales.len());
        }
        self.open_rows += 1;
        if self.open_rows == BLOCK_ROWS {
            self.close_block();
        }
    }

    /// Appends a sparse entry to the row that is being stored.
    fn push_sparse(&mut self, column: u32, value: f64, scale: f64) {
        let (sparse, scales) = (&mut self.chunk.sparse, &self.chunk.scales);
        if sparse.starts.is_empty() {
            sparse.begin_row(scales.len());
        }
        if value != scale && sparse.values.is_empty() {
            // The first entry with a value of its own: from now on all values are stored.
            for (row, &scale) in scales.iter().enumerate() {
                sparse.values.resize(sparse.starts[row + 1] as usize, scale);
            }
            sparse.values.resize(sparse.len() as usize, scale);
        }
        if value != scale || !sparse.values.is_empty() {
            push(&mut sparse.values, value);
        }
        match &mut sparse.columns {
            ColumnIndices::Narrow(columns) => push(columns, column as u16),
            ColumnIndices::Wide(columns) => push(columns, column),
        }
    }

    /// Transposes the open block into columns, padded to a multiple of eight rows.
    fn close_block(&mut self) {
        let height = self.open_rows.next_multiple_of(LANES);
        let chunk = &mut self.chunk;
        let codes = chunk.layout.codes.len();
        chunk.occurring.resize(codes, Default::default());
        for row in self.codes.chunks_exact(codes.max(1)) {
            for (bits, value) in chunk.occurring.iter_mut().zip(row) {
                bits[usize::from(value / 64)] |= 1 << (value % 64);
            }
        }
        transpose(
            &self.dense,
            chunk.layout.dense.len(),
            height,
            &mut chunk.dense,
        );
        transpose(
            &self.codes,
            chunk.layout.codes.len(),
            height,
            &mut chunk.codes,
        );
        let padding = height - self.open_rows;
        chunk.scales.resize(chunk.scales.len() + padding, 0.0);
        self.dense.clear();
        self.codes.clear();
        self.open_rows = 0;
    }
}

/// Appends rows of `width` entries as columns of `height` entries, padded with zeros.
fn transpose<T: Copy + Default>(rows: &[T], width: usize, height: usize, columns: &mut Vec<T>) {
    reserve(columns, width * height);
    for k in 0..width {
        let column = rows.iter().skip(k).step_by(width).copied();
        let end = columns.len() + height;
        columns.extend(column);
        columns.resize(end, T::default());
    }
}
