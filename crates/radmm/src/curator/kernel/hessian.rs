//! `Σ_n c_n z_n z_nᵀ` of a chunk of rows, computed by parts of the layout.
//!
//! Products of two dense numbers are summed in tiles of sixteen pairs, eight rows at a time. Products with indicators are
//! summed by [`IndicatorProducts`]. Only rows with sparse entries are processed entry by entry.

use super::exp_log::LANES;
use super::indicator_products::IndicatorProducts;
use super::passes::sum_of_lanes;
use crate::curator::rows::chunk::{BLOCK_ROWS, Block, Chunk};
use crate::linalg::simd::Simd;

/// Adds the sum to the lower triangle of `matrix`, given `c_n` row by row.
pub(in crate::curator) fn add(simd: Simd, chunk: &Chunk, curvatures: &[f64], matrix: &mut [f64]) {
    add_rounded(simd, chunk, curvatures, matrix, |product| product);
}

/// Adds `Σ_n z_n z_nᵀ` to the lower triangle of `matrix`, each product rounded to a multiple of `unit`, a power of two from
/// `2⁻⁵⁰` to `2⁻²³`.
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
            let mut indicators = IndicatorProducts::new(chunk);
            for block in chunk.blocks() {
                let c = &curvatures[block.first_row..][..block.scales.len()];
                add_dense(chunk, &block, c, &mut lower, round);
                indicators.add(&block, c, round);
            }
            indicators.add_to(chunk, &mut lower);
            add_sparse(chunk, curvatures, &mut lower, round);
        },
    );
}

/// The lower triangle of a matrix, row by row.
pub(super) struct LowerTriangle<'a> {
    d: usize,
    matrix: &'a mut [f64],
}

impl LowerTriangle<'_> {
    /// Adds to the entry of columns `i` and `j`, in any order.
    #[inline(always)]
    pub(super) fn add(&mut self, i: usize, j: usize, value: f64) {
        self.matrix[i.max(j) * self.d + i.min(j)] += value;
    }
}

/// The largest number of columns on each side of a tile of products.
const TILE: usize = 4;

/// The number of columns that are multiplied with all others before the next ones are.
const PANEL: usize = 16;

/// Returns the number of columns of the next tile, if so many are left: a power of two, so that few sizes occur.
fn tile_size(left: usize) -> usize {
    match left {
        0 | 1 => 1,
        2 | 3 => 2,
        _ => TILE,
    }
}

/// Adds a block's products of dense numbers with one another, in tiles. The columns of a panel stay in the nearest cache
/// while all others are multiplied with them.
#[inline(always)]
fn add_dense(
    chunk: &Chunk,
    block: &Block<'_>,
    c: &[f64],
    lower: &mut LowerTriangle<'_>,
    round: impl Fn(f64) -> f64 + Copy,
) {
    let (columns, width) = (chunk.layout().dense.as_slice(), c.len());
    let mut weighted = [[0.0; BLOCK_ROWS]; TILE];
    for panel in (0..columns.len()).step_by(PANEL) {
        let mut row = panel;
        while row < columns.len() {
            let rows = tile_size(columns.len() - row);
            let numbers = block.dense[row * width..].chunks_exact(width);
            for (weighted, numbers) in weighted[..rows].iter_mut().zip(numbers) {
                for ((w, c), u) in weighted.iter_mut().zip(c).zip(numbers) {
                    *w = c * u;
                }
            }
            let mut column = panel;
            while column <= row && column < panel + PANEL {
                let others = tile_size(columns.len() - column);
                let numbers = &block.dense[column * width..];
                let place = (&columns[row..], &columns[column..]);
                match (rows, others) {
                    (TILE, _) => add_tile::<4, 4>(&weighted, numbers, width, place, lower, round),
                    (2, TILE) => add_tile::<2, 4>(&weighted, numbers, width, place, lower, round),
                    (2, _) => add_tile::<2, 2>(&weighted, numbers, width, place, lower, round),
                    (_, TILE) => add_tile::<1, 4>(&weighted, numbers, width, place, lower, round),
                    (_, 2) => add_tile::<1, 2>(&weighted, numbers, width, place, lower, round),
                    _ => add_tile::<1, 1>(&weighted, numbers, width, place, lower, round),
                }
                column += others;
            }
            row += rows;
        }
    }
}

/// Adds `Σ_n weighted_n number_n` for `I` weighted columns and `J` others of `width` rows, at these columns of the matrix.
#[inline(always)]
fn add_tile<const I: usize, const J: usize>(
    weighted: &[[f64; BLOCK_ROWS]; TILE],
    numbers: &[f64],
    width: usize,
    (rows, columns): (&[u32], &[u32]),
    lower: &mut LowerTriangle<'_>,
    round: impl Fn(f64) -> f64,
) {
    let mut sums = [[[0.0; LANES]; J]; I];
    for first in (0..width).step_by(LANES) {
        for i in 0..I {
            let a = &weighted[i][first..][..LANES];
            for j in 0..J {
                let b = &numbers[j * width + first..][..LANES];
                for k in 0..LANES {
                    sums[i][j][k] += round(a[k] * b[k]);
                }
            }
        }
    }
    for i in 0..I {
        // On the diagonal, a pair of different columns is in the tile twice.
        for j in (0..J).filter(|&j| columns[j] <= rows[i]) {
            lower.add(
                rows[i] as usize,
                columns[j] as usize,
                sum_of_lanes(&sums[i][j]),
            );
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
