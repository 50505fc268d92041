//! `Σ_n c_n z_n z_nᵀ` of a chunk of rows, part by part: dense numbers among themselves eight rows at a time, dense numbers with
//! codes in tables, indicators among themselves one addition a pair. Only rows that have a rest go entry by entry.

use super::passes::{Table, dot, scatter_codes};
use crate::curator::rows::chunk::{BLOCK, Block, Chunk};
use crate::curator::rows::layout::CODES;
use crate::linalg::simd::Simd;

/// Adds the sum to the lower triangle of a matrix, given `c_n` row by row.
pub(in crate::curator) fn add(simd: Simd, chunk: &Chunk, curvatures: &[f64], matrix: &mut [f64]) {
    let d = matrix.len().isqrt();
    simd.run(
        #[inline(always)]
        || {
            let mut lower = Lower { d, matrix };
            let mut crossed = Crossed::new(chunk);
            let indicators = Indicators::new(chunk);
            for block in chunk.blocks() {
                let c = &curvatures[block.first..][..block.scales.len()];
                dense_and_codes(chunk, &block, c, &mut lower, &mut crossed);
                indicators.add(&block, c, &mut lower);
            }
            crossed.finish(chunk, &mut lower);
            add_rest(chunk, curvatures, &mut lower);
        },
    );
}

/// The lower triangle, row by row.
struct Lower<'a> {
    d: usize,
    matrix: &'a mut [f64],
}

impl Lower<'_> {
    #[inline(always)]
    fn add(&mut self, i: usize, j: usize, value: f64) {
        self.matrix[i.max(j) * self.d + i.min(j)] += value;
    }
}

/// Of dense numbers with codes: by number and code, one after the other.
struct Crossed {
    tables: Vec<Table>,
}

impl Crossed {
    fn new(chunk: &Chunk) -> Self {
        let layout = chunk.layout();
        Self {
            tables: vec![[0.0; CODES]; layout.dense.len() * layout.codes.len()],
        }
    }

    #[inline(always)]
    fn finish(&self, chunk: &Chunk, lower: &mut Lower<'_>) {
        let layout = chunk.layout();
        if layout.codes.is_empty() {
            return;
        }
        let by_number = self.tables.chunks_exact(layout.codes.len());
        for (&dense, tables) in layout.dense.iter().zip(by_number) {
            for (code, table) in layout.codes.iter().zip(tables) {
                code.each_value(|column, value| lower.add(dense as usize, column, table[value]));
            }
        }
    }
}

#[inline(always)]
fn dense_and_codes(
    chunk: &Chunk,
    block: &Block<'_>,
    c: &[f64],
    lower: &mut Lower<'_>,
    crossed: &mut Crossed,
) {
    let (layout, width) = (chunk.layout(), c.len());
    let numbers = || layout.dense.iter().zip(block.dense.chunks_exact(width));
    let mut weighted = [0.0; BLOCK];
    let weighted = &mut weighted[..width];
    for (k, (&i, u)) in numbers().enumerate() {
        for ((w, c), u) in weighted.iter_mut().zip(c).zip(u) {
            *w = c * u;
        }
        for (&j, v) in numbers().take(k + 1) {
            lower.add(i as usize, j as usize, dot(weighted, v));
        }
        for (w, scale) in weighted.iter_mut().zip(block.scales) {
            *w *= scale;
        }
        let codes = layout.codes.len();
        scatter_codes(
            &mut crossed.tables[k * codes..][..codes],
            block.codes,
            weighted,
        );
    }
}

/// No column.
const NONE: u32 = u32::MAX;

/// The columns that values of codes stand for: by group, in ascending order of columns, and by value.
struct Indicators {
    groups: Vec<(usize, [u32; CODES])>,
}

impl Indicators {
    fn new(chunk: &Chunk) -> Self {
        let mut groups = Vec::new();
        for (position, code) in chunk.layout().codes.iter().enumerate() {
            let first = groups.len();
            groups.resize(first + code.groups.len(), (position, [NONE; CODES]));
            for value in 0..code.size() {
                for column in code.columns(value) {
                    let group = code.groups.iter().position(|g| g.contains(&column));
                    groups[first + group.unwrap_or(0)].1[value] = column;
                }
            }
        }
        let least = |columns: &[u32; CODES]| columns.iter().copied().min();
        groups.sort_by_key(|(_, columns)| least(columns));
        Self { groups }
    }

    /// Pair by pair of groups: their part of the matrix stays in the nearest cache.
    #[inline(always)]
    fn add(&self, block: &Block<'_>, c: &[f64], lower: &mut Lower<'_>) {
        let width = c.len();
        let mut weights = [0.0; BLOCK];
        for ((w, c), scale) in weights.iter_mut().zip(c).zip(block.scales) {
            *w = c * scale * scale;
        }
        // A column that is none counts as the first one of the group, with no weight.
        let mut columns = vec![[0u32; BLOCK]; self.groups.len()];
        let mut present = vec![None; self.groups.len()];
        for (((code, table), columns), present) in
            self.groups.iter().zip(&mut columns).zip(&mut present)
        {
            let codes = &block.codes[code * width..][..width];
            let first = table.iter().copied().min().unwrap_or(0);
            let mut all = true;
            for (column, code) in columns.iter_mut().zip(&codes[..block.rows]) {
                let found = table[usize::from(*code)];
                all &= found != NONE;
                *column = if found == NONE { first } else { found };
            }
            if !all {
                let mut ones = [0.0; BLOCK];
                for (one, code) in ones.iter_mut().zip(codes) {
                    *one = if table[usize::from(*code)] == NONE {
                        0.0
                    } else {
                        1.0
                    };
                }
                *present = Some(ones);
            }
        }
        for (k, rows) in columns.iter().enumerate() {
            let mut starts = [0usize; BLOCK];
            for (start, &row) in starts.iter_mut().zip(rows) {
                *start = row as usize * lower.d;
            }
            let mut here = weights;
            if let Some(ones) = &present[k] {
                here.iter_mut().zip(ones).for_each(|(w, one)| *w *= one);
            }
            for (columns, other) in columns[..=k].iter().zip(&present) {
                let mut fewer = [0.0; BLOCK];
                let both = match other {
                    None => &here,
                    Some(ones) => {
                        let products = here.iter().zip(ones).map(|(w, one)| w * one);
                        fewer.iter_mut().zip(products).for_each(|(to, w)| *to = w);
                        &fewer
                    }
                };
                let each = starts.iter().zip(columns).zip(both);
                for ((&start, &j), w) in each.take(block.rows) {
                    lower.matrix[start + j as usize] += w;
                }
            }
        }
    }
}

/// The pairs of a row's entries of which at least one is of the rest.
#[inline(always)]
fn add_rest(chunk: &Chunk, curvatures: &[f64], lower: &mut Lower<'_>) {
    chunk.each_with_rest(|n, columns, values, rest| {
        for k in rest..columns.len() {
            for j in 0..=k {
                let product = curvatures[n] * values[k] * values[j];
                lower.add(columns[k] as usize, columns[j] as usize, product);
            }
        }
    });
}
