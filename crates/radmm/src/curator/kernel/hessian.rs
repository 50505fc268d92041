//! `Σ_n c_n z_n z_nᵀ` of a chunk of rows, computed by parts of the layout.
//!
//! Products of two dense numbers are summed eight rows at a time, products of a dense number and a code in tables, and
//! products of two indicators with one addition per pair. Only rows with sparse entries are processed entry by entry.

use super::exp_log::LANES;
use super::passes::{CodeTable, add_by_code, dot};
use crate::curator::rows::chunk::{BLOCK_ROWS, Block, Chunk};
use crate::curator::rows::layout::CODE_VALUES;
use crate::linalg::simd::Simd;

/// Adds the sum to the lower triangle of `matrix`, given `c_n` row by row.
pub(in crate::curator) fn add(simd: Simd, chunk: &Chunk, curvatures: &[f64], matrix: &mut [f64]) {
    add_rounded(simd, chunk, curvatures, matrix, |product| product);
}

/// Adds `Σ_n z_n z_nᵀ` to the lower triangle of `matrix`, each product rounded to a multiple of `unit`, a power of two from
/// `2⁻⁵⁰` to `2⁻²⁴`.
pub(in crate::curator) fn add_gram(simd: Simd, chunk: &Chunk, unit: f64, matrix: &mut [f64]) {
    let ones = vec![1.0; chunk.rows().next_multiple_of(LANES)];
    // Doubles near this number are one unit apart, up to four times it away from entries of at most one.
    let shift = 1.5 / f64::EPSILON * unit;
    add_rounded(simd, chunk, &ones, matrix, move |product| {
        (product + shift) - shift
    });
}

fn add_rounded(
    simd: Simd,
    chunk: &Chunk,
    curvatures: &[f64],
    matrix: &mut [f64],
    round: impl Fn(f64) -> f64 + Copy,
) {
    let d = matrix.len().isqrt();
    simd.run(
        #[inline(always)]
        || {
            let mut lower = LowerTriangle { d, matrix };
            let mut dense_code_sums = DenseCodeSums::new(chunk);
            let indicators = IndicatorColumns::new(chunk);
            for block in chunk.blocks() {
                let c = &curvatures[block.first_row..][..block.scales.len()];
                add_dense(chunk, &block, c, &mut lower, &mut dense_code_sums, round);
                indicators.add(&block, c, &mut lower, round);
            }
            dense_code_sums.add_to(chunk, &mut lower);
            add_sparse(chunk, curvatures, &mut lower, round);
        },
    );
}

/// The lower triangle of a matrix, row by row.
struct LowerTriangle<'a> {
    d: usize,
    matrix: &'a mut [f64],
}

impl LowerTriangle<'_> {
    /// Adds to the entry of columns `i` and `j`, in any order.
    #[inline(always)]
    fn add(&mut self, i: usize, j: usize, value: f64) {
        self.matrix[i.max(j) * self.d + i.min(j)] += value;
    }
}

/// Sums of products of dense numbers and codes: one table per dense number and code.
struct DenseCodeSums {
    tables: Vec<CodeTable>,
}

impl DenseCodeSums {
    fn new(chunk: &Chunk) -> Self {
        let layout = chunk.layout();
        Self {
            tables: vec![[0.0; CODE_VALUES]; layout.dense.len() * layout.codes.len()],
        }
    }

    /// Adds the sums to the matrix.
    #[inline(always)]
    fn add_to(&self, chunk: &Chunk, lower: &mut LowerTriangle<'_>) {
        let layout = chunk.layout();
        if layout.codes.is_empty() {
            return;
        }
        let by_dense = self.tables.chunks_exact(layout.codes.len());
        for (&dense, tables) in layout.dense.iter().zip(by_dense) {
            for (code, table) in layout.codes.iter().zip(tables) {
                code.for_each_column_value(|column, value| {
                    lower.add(dense as usize, column, table[value])
                });
            }
        }
    }
}

/// Adds a block's products of dense numbers with one another to the matrix, and those with codes to the sums.
#[inline(always)]
fn add_dense(
    chunk: &Chunk,
    block: &Block<'_>,
    c: &[f64],
    lower: &mut LowerTriangle<'_>,
    dense_code_sums: &mut DenseCodeSums,
    round: impl Fn(f64) -> f64 + Copy,
) {
    let (layout, width) = (chunk.layout(), c.len());
    let dense_columns = || layout.dense.iter().zip(block.dense.chunks_exact(width));
    let mut weighted = [0.0; BLOCK_ROWS];
    let weighted = &mut weighted[..width];
    for (k, (&i, u)) in dense_columns().enumerate() {
        for ((w, c), u) in weighted.iter_mut().zip(c).zip(u) {
            *w = c * u;
        }
        for (&j, v) in dense_columns().take(k + 1) {
            lower.add(i as usize, j as usize, dot(weighted, v, round));
        }
        for (w, scale) in weighted.iter_mut().zip(block.scales) {
            *w = round(*w * scale);
        }
        let codes = layout.codes.len();
        add_by_code(
            &mut dense_code_sums.tables[k * codes..][..codes],
            block.codes,
            weighted,
        );
    }
}

/// A value that stands for no column of its group.
const NO_COLUMN: u32 = u32::MAX;

/// The indicator columns that the values of codes stand for.
struct IndicatorColumns {
    /// For each group, in ascending order of columns: the position of its code, and the column of each value.
    groups: Vec<(usize, [u32; CODE_VALUES])>,
}

impl IndicatorColumns {
    fn new(chunk: &Chunk) -> Self {
        let mut groups = Vec::new();
        for (position, code) in chunk.layout().codes.iter().enumerate() {
            let first = groups.len();
            groups.resize(
                first + code.groups.len(),
                (position, [NO_COLUMN; CODE_VALUES]),
            );
            for value in 0..code.value_count() {
                for column in code.columns(value) {
                    let group = code.groups.iter().position(|g| g.contains(&column));
                    groups[first + group.unwrap_or(0)].1[value] = column;
                }
            }
        }
        let first_column = |columns: &[u32; CODE_VALUES]| columns.iter().copied().min();
        groups.sort_by_key(|(_, columns)| first_column(columns));
        Self { groups }
    }

    /// Adds a block's products of indicators, one pair of groups at a time, so that their part of the matrix stays in
    /// the nearest cache.
    #[inline(always)]
    fn add(
        &self,
        block: &Block<'_>,
        c: &[f64],
        lower: &mut LowerTriangle<'_>,
        round: impl Fn(f64) -> f64,
    ) {
        let width = c.len();
        let mut weights = [0.0; BLOCK_ROWS];
        for ((w, c), scale) in weights.iter_mut().zip(c).zip(block.scales) {
            *w = round(c * scale * scale);
        }
        // A missing indicator counts as the first column of its group, with weight zero.
        let mut columns = vec![[0u32; BLOCK_ROWS]; self.groups.len()];
        let mut masks = vec![None; self.groups.len()];
        for (((code, table), columns), mask) in self.groups.iter().zip(&mut columns).zip(&mut masks)
        {
            let codes = &block.codes[code * width..][..width];
            let first = table.iter().copied().min().unwrap_or(0);
            let mut all_present = true;
            for (column, code) in columns.iter_mut().zip(&codes[..block.rows]) {
                let found = table[usize::from(*code)];
                all_present &= found != NO_COLUMN;
                *column = if found == NO_COLUMN { first } else { found };
            }
            if !all_present {
                let mut ones = [0.0; BLOCK_ROWS];
                for (one, code) in ones.iter_mut().zip(codes) {
                    *one = if table[usize::from(*code)] == NO_COLUMN {
                        0.0
                    } else {
                        1.0
                    };
                }
                *mask = Some(ones);
            }
        }
        for (k, rows) in columns.iter().enumerate() {
            let mut starts = [0usize; BLOCK_ROWS];
            for (start, &row) in starts.iter_mut().zip(rows) {
                *start = row as usize * lower.d;
            }
            let mut masked = weights;
            if let Some(ones) = &masks[k] {
                masked.iter_mut().zip(ones).for_each(|(w, one)| *w *= one);
            }
            for (columns, other_mask) in columns[..=k].iter().zip(&masks) {
                let mut doubly_masked = [0.0; BLOCK_ROWS];
                let pair_weights = match other_mask {
                    None => &masked,
                    Some(ones) => {
                        let products = masked.iter().zip(ones).map(|(w, one)| w * one);
                        doubly_masked
                            .iter_mut()
                            .zip(products)
                            .for_each(|(to, w)| *to = w);
                        &doubly_masked
                    }
                };
                let rows = starts.iter().zip(columns).zip(pair_weights);
                for ((&start, &j), w) in rows.take(block.rows) {
                    lower.matrix[start + j as usize] += w;
                }
            }
        }
    }
}

/// Adds the products of pairs of entries of which at least one is sparse.
#[inline(always)]
fn add_sparse(
    chunk: &Chunk,
    curvatures: &[f64],
    lower: &mut LowerTriangle<'_>,
    round: impl Fn(f64) -> f64,
) {
    chunk.for_each_row_with_sparse(|n, columns, values, first_sparse| {
        for k in first_sparse..columns.len() {
            for j in 0..=k {
                let product = round(curvatures[n] * values[k] * values[j]);
                lower.add(columns[k] as usize, columns[j] as usize, product);
            }
        }
    });
}
