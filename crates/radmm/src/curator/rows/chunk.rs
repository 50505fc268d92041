//! Some thousand rows, stored once and compactly: see `shape` for their parts.
//!
//! A row is `z = y·x`. Entries that are equal to the row's own value are kept as that value and their columns alone. Blocks of
//! [`BLOCK`] rows are stored column by column, so that eight rows at a time can be worked on; the last one is filled up
//! with rows of zeros.

use super::layout::{ChunkLayout, ColumnSlot, Sample};
use crate::curator::kernel::exp_log::LANES;

/// Rows of a chunk. Sums over chunks are taken apart, on any thread, and added up in order.
pub(in crate::curator) const CHUNK: usize = 16_384;
/// Rows of a block. Within a block sums are plain; what is lost between blocks is kept.
pub(in crate::curator) const BLOCK: usize = 256;
/// From as many rows the shape of a chunk is read off.
const SAMPLE: usize = 1024;

/// Up to [`CHUNK`] rows.
pub(in crate::curator) struct Chunk {
    layout: ChunkLayout,
    rows: usize,
    /// Row by row: the value that its indicators share, with the sign of its label.
    scales: Vec<f64>,
    /// Block by block, in it column by column.
    dense: Vec<f64>,
    codes: Vec<u8>,
    rest: Rest,
}

/// Entries that have no better place: columns and values, row by row.
#[derive(Default)]
pub(in crate::curator) struct Rest {
    /// Where each row's begin, and the end; empty if there are none at all.
    starts: Vec<u32>,
    columns: Columns,
    /// Empty if all are equal to their row's value.
    values: Vec<f64>,
}

/// As narrow as the number of columns allows.
enum Columns {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

impl Default for Columns {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

/// Consecutive rows of a chunk, a multiple of eight of them.
pub(in crate::curator) struct Block<'a> {
    /// The first of them, within the chunk.
    pub first: usize,
    /// How many are no fillers.
    pub rows: usize,
    pub scales: &'a [f64],
    /// Column by column, each of as many as there are scales.
    pub dense: &'a [f64],
    pub codes: &'a [u8],
}

impl Chunk {
    pub(in crate::curator) fn rows(&self) -> usize {
        self.rows
    }

    pub(in crate::curator) fn layout(&self) -> &ChunkLayout {
        &self.layout
    }

    pub(in crate::curator) fn rest(&self) -> Option<&Rest> {
        (!self.rest.starts.is_empty()).then_some(&self.rest)
    }

    /// Row by row, whether it is of the positive class.
    pub(in crate::curator) fn labels(&self) -> impl Iterator<Item = bool> {
        let scales = self.scales[..self.rows].iter();
        scales.map(|scale| scale.is_sign_positive())
    }

    pub(in crate::curator) fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        (0..self.rows).step_by(BLOCK).map(|first| {
            let rows = (self.rows - first).min(BLOCK);
            let filled = &self.scales[first..][..rows.next_multiple_of(LANES)];
            let (dense, codes) = (self.layout.dense.len(), self.layout.codes.len());
            Block {
                first,
                rows,
                scales: filled,
                dense: &self.dense[first * dense..][..filled.len() * dense],
                codes: &self.codes[first * codes..][..filled.len() * codes],
            }
        })
    }

    /// Calls `take` with the columns and values of every row, in no order of columns, and where its rest begins.
    pub(in crate::curator) fn each_row(&self, take: impl FnMut(usize, &[u32], &[f64], usize)) {
        self.each_chosen(|_| true, take);
    }

    /// The same for rows that have a rest.
    pub(in crate::curator) fn each_with_rest(
        &self,
        take: impl FnMut(usize, &[u32], &[f64], usize),
    ) {
        let starts = &self.rest.starts;
        if !starts.is_empty() {
            self.each_chosen(|n| starts[n] < starts[n + 1], take);
        }
    }

    fn each_chosen(
        &self,
        chosen: impl Fn(usize) -> bool,
        mut take: impl FnMut(usize, &[u32], &[f64], usize),
    ) {
        let decoded: Vec<Vec<Vec<u32>>> = self
            .layout
            .codes
            .iter()
            .map(|code| {
                let values = 0..code.size();
                values.map(|value| code.columns(value).collect()).collect()
            })
            .collect();
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for block in self.blocks() {
            let width = block.scales.len();
            for n in (0..block.rows).filter(|n| chosen(block.first + n)) {
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
                let placed = columns.len();
                if let Some(rest) = self.rest() {
                    rest.each(block.first + n, block.scales[n], |column, value| {
                        columns.push(column as u32);
                        values.push(value);
                    });
                }
                take(block.first + n, &columns, &values, placed);
            }
        }
    }

    /// Panics when a row is read.
    #[cfg(test)]
    pub(in crate::curator) fn untouchable(rows: usize) -> Self {
        Self {
            layout: ChunkLayout::default(),
            rows,
            scales: Vec::new(),
            dense: Vec::new(),
            codes: Vec::new(),
            rest: Rest::default(),
        }
    }

    /// Bytes that the rows take.
    #[cfg(any(test, feature = "bench"))]
    pub(in crate::curator) fn bytes(&self) -> usize {
        let columns = match &self.rest.columns {
            Columns::Narrow(columns) => 2 * columns.len(),
            Columns::Wide(columns) => 4 * columns.len(),
        };
        let rest = 4 * self.rest.starts.len() + columns + 8 * self.rest.values.len();
        8 * (self.scales.len() + self.dense.len()) + self.codes.len() + rest
    }

    /// A plain sum over everything that is stored, in order.
    #[cfg(feature = "bench")]
    pub(in crate::curator) fn plain_sum(&self) -> f64 {
        let doubles = [&self.scales, &self.dense, &self.rest.values];
        let sum: f64 = doubles
            .into_iter()
            .map(|list| list.iter().sum::<f64>())
            .sum();
        let codes: u64 = self.codes.iter().map(|&code| u64::from(code)).sum();
        sum + codes as f64
    }
}

impl Rest {
    /// Calls `take` with the column and value of each entry of a row with this value.
    #[inline(always)]
    pub(in crate::curator) fn each(
        &self,
        row: usize,
        scale: f64,
        mut take: impl FnMut(usize, f64),
    ) {
        let range = self.starts[row] as usize..self.starts[row + 1] as usize;
        let value = |k: usize| self.values.get(k).copied().unwrap_or(scale);
        match &self.columns {
            Columns::Narrow(columns) => {
                range.for_each(|k| take(usize::from(columns[k]), value(k)));
            }
            Columns::Wide(columns) => range.for_each(|k| take(columns[k] as usize, value(k))),
        }
    }

    /// Ends the last row and begins the next one; all rows before have none.
    fn begin(&mut self, row: usize) {
        let more = row + 1 - self.starts.len();
        make_room(&mut self.starts, more);
        self.starts.resize(row + 1, self.len());
    }

    fn len(&self) -> u32 {
        match &self.columns {
            Columns::Narrow(columns) => columns.len() as u32,
            Columns::Wide(columns) => columns.len() as u32,
        }
    }
}

/// A row as it comes in.
pub(in crate::curator) struct Row<'a> {
    /// What its indicators share, with the sign of its label. Not zero.
    pub scale: f64,
    /// Ascending columns, no zeros.
    pub entries: &'a [(u32, f64)],
}

/// Rows whose shape is not known yet, in little more room than they will take.
#[derive(Default)]
struct Waiting {
    /// Row by row, with the number of its entries.
    scales: Vec<(f64, u32)>,
    /// With [`SHARED`] for those that are equal to the row's value.
    columns: Vec<u32>,
    /// Of the others.
    values: Vec<f64>,
}

/// Beyond all columns.
const SHARED: u32 = 1 << 31;
/// More cannot be told apart.
pub(in crate::curator) const MOST_COLUMNS: usize = SHARED as usize;
/// Entries of the rest are numbered in 32 bits: with as many a chunk is full before its rows are.
const MOST_REST: u32 = 1 << 30;

impl Waiting {
    fn push(&mut self, row: &Row<'_>) {
        push(&mut self.scales, (row.scale, row.entries.len() as u32));
        for &(column, value) in row.entries {
            if value == row.scale {
                push(&mut self.columns, column | SHARED);
            } else {
                push(&mut self.columns, column);
                push(&mut self.values, value);
            }
        }
    }

    fn each(&self, mut take: impl FnMut(Row<'_>)) {
        let mut columns = self.columns.iter();
        let mut values = self.values.iter();
        let mut entries = Vec::new();
        for &(scale, count) in &self.scales {
            entries.clear();
            for &column in columns.by_ref().take(count as usize) {
                let shared = column & SHARED != 0;
                let value = if shared { None } else { values.next() };
                entries.push((column & !SHARED, *value.unwrap_or(&scale)));
            }
            take(Row {
                scale,
                entries: &entries,
            });
        }
    }
}

/// Lists grow by an eighth at a time: doubling would need three times as much for a moment, and keep half of it idle.
fn make_room<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 8));
    }
}

fn push<T>(list: &mut Vec<T>, item: T) {
    make_room(list, 1);
    list.push(item);
}

/// Takes rows one at a time.
pub(in crate::curator) struct ChunkBuilder {
    columns: usize,
    /// The first rows, until the shape is known.
    waiting: Waiting,
    settled: bool,
    /// By column; empty if all entries go to the rest.
    places: Vec<ColumnSlot>,
    /// Of the block that is being filled, row by row.
    dense: Vec<f64>,
    codes: Vec<u8>,
    /// How many rows that block has.
    open: usize,
    chunk: Chunk,
}

impl ChunkBuilder {
    pub(in crate::curator) fn new(columns: usize) -> Self {
        let wide = columns > usize::from(u16::MAX) + 1;
        Self {
            columns,
            waiting: Waiting::default(),
            settled: false,
            places: Vec::new(),
            dense: Vec::new(),
            codes: Vec::new(),
            chunk: Chunk {
                layout: ChunkLayout::default(),
                rows: 0,
                scales: Vec::new(),
                dense: Vec::new(),
                codes: Vec::new(),
                rest: Rest {
                    columns: match wide {
                        true => Columns::Wide(Vec::new()),
                        false => Columns::Narrow(Vec::new()),
                    },
                    ..Rest::default()
                },
            },
            open: 0,
        }
    }

    pub(in crate::curator) fn is_empty(&self) -> bool {
        self.chunk.rows == 0
    }

    pub(in crate::curator) fn is_full(&self) -> bool {
        self.chunk.rows == CHUNK || self.chunk.rest.len() >= MOST_REST
    }

    pub(in crate::curator) fn push(&mut self, row: &Row<'_>) {
        self.chunk.rows += 1;
        if self.settled {
            return self.place(row);
        }
        self.waiting.push(row);
        if self.chunk.rows == SAMPLE {
            self.settle();
        }
    }

    pub(in crate::curator) fn finish(mut self) -> Chunk {
        if !self.settled {
            self.settle();
        }
        self.close_block();
        let chunk = &mut self.chunk;
        chunk.scales.shrink_to_fit();
        chunk.dense.shrink_to_fit();
        chunk.codes.shrink_to_fit();
        chunk.rest.starts.shrink_to_fit();
        chunk.rest.values.shrink_to_fit();
        match &mut chunk.rest.columns {
            Columns::Narrow(columns) => columns.shrink_to_fit(),
            Columns::Wide(columns) => columns.shrink_to_fit(),
        }
        self.chunk
    }

    /// The shape is read off the rows so far, and they are put into it.
    fn settle(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let mut sample = Sample::new(self.columns);
        waiting.each(|row| sample.see(row.entries.iter().map(|e| (e.0, e.1 == row.scale))));
        waiting.each(|row| sample.pair(row.entries.iter().map(|e| e.0)));
        self.chunk.layout = sample.layout();
        if self.chunk.layout != ChunkLayout::default() {
            self.places = self.chunk.layout.places(self.columns);
        }
        self.settled = true;
        waiting.each(|row| self.place(&row));
    }

    fn place(&mut self, row: &Row<'_>) {
        let (dense, codes) = (self.dense.len(), self.codes.len());
        self.dense
            .resize(dense + self.chunk.layout.dense.len(), 0.0);
        self.codes.resize(codes + self.chunk.layout.codes.len(), 0);
        // Groups ascend within a code but not over codes, and there are few of them.
        let mut taken = [0u64; 4];
        for &(column, value) in row.entries {
            match self
                .places
                .get(column as usize)
                .copied()
                .unwrap_or(ColumnSlot::Rest)
            {
                ColumnSlot::Dense(k) => self.dense[dense + usize::from(k)] = value,
                ColumnSlot::Code { code, group, step }
                    if value == row.scale
                        && taken[usize::from(group / 64)] >> (group % 64) & 1 == 0 =>
                {
                    taken[usize::from(group / 64)] |= 1 << (group % 64);
                    self.codes[codes + usize::from(code)] += step;
                }
                ColumnSlot::Code { .. } | ColumnSlot::Rest => {
                    self.keep_apart(column, value, row.scale)
                }
            }
        }
        push(&mut self.chunk.scales, row.scale);
        if !self.chunk.rest.starts.is_empty() {
            self.chunk.rest.begin(self.chunk.scales.len());
        }
        self.open += 1;
        if self.open == BLOCK {
            self.close_block();
        }
    }

    fn keep_apart(&mut self, column: u32, value: f64, scale: f64) {
        let (rest, scales) = (&mut self.chunk.rest, &self.chunk.scales);
        if rest.starts.is_empty() {
            rest.begin(scales.len());
        }
        if value != scale && rest.values.is_empty() {
            // The first with a value of its own: now all need theirs.
            for (row, &scale) in scales.iter().enumerate() {
                rest.values.resize(rest.starts[row + 1] as usize, scale);
            }
            rest.values.resize(rest.len() as usize, scale);
        }
        if value != scale || !rest.values.is_empty() {
            push(&mut rest.values, value);
        }
        match &mut rest.columns {
            Columns::Narrow(columns) => push(columns, column as u16),
            Columns::Wide(columns) => push(columns, column),
        }
    }

    /// Turns the rows of the open block into columns.
    fn close_block(&mut self) {
        let height = self.open.next_multiple_of(LANES);
        let chunk = &mut self.chunk;
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
        let fillers = height - self.open;
        chunk.scales.resize(chunk.scales.len() + fillers, 0.0);
        self.dense.clear();
        self.codes.clear();
        self.open = 0;
    }
}

/// Appends rows of `width` as columns of `height`, filled up with zeros.
fn transpose<T: Copy + Default>(rows: &[T], width: usize, height: usize, columns: &mut Vec<T>) {
    make_room(columns, width * height);
    for k in 0..width {
        let column = rows.iter().skip(k).step_by(width).copied();
        let end = columns.len() + height;
        columns.extend(column);
        columns.resize(end, T::default());
    }
}
