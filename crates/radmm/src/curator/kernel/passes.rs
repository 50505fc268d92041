//! Passes over a chunk of rows: margins, gradients, losses and Hessian products.
//!
//! With [`Simd`], a pass runs on the widest vector units that the processor has. All units run the same code, without
//! fused operations and in the same order, so they give the same bits.

use super::exp_log::{LANES, Lanes};
use crate::curator::rows::chunk::{BLOCK_ROWS, Block, Chunk};
use crate::curator::rows::layout::CODE_VALUES;
use crate::curator::solver::double_double::{Point, two_product, two_sum};
use crate::linalg::simd::Simd;
use crate::problem::Loss;

/// A compensated sum of vectors: the plain sum, and the sum of its rounding errors.
#[derive(Clone)]
pub(in crate::curator) struct CompensatedSum {
    pub sum: Vec<f64>,
    pub correction: Vec<f64>,
}

impl CompensatedSum {
    /// Creates a sum of zero.
    pub(in crate::curator) fn zero(length: usize) -> Self {
        Self {
            sum: vec![0.0; length],
            correction: vec![0.0; length],
        }
    }

    /// Creates a sum without corrections.
    pub(in crate::curator) fn plain(sum: Vec<f64>) -> Self {
        Self {
            sum,
            correction: Vec::new(),
        }
    }

    /// Returns the sum, rounded once more.
    pub(in crate::curator) fn rounded(&self) -> Vec<f64> {
        let parts = self.sum.iter().zip(&self.correction);
        parts.map(|(sum, correction)| sum + correction).collect()
    }

    /// Adds a value to one coordinate.
    #[inline(always)]
    fn add(&mut self, k: usize, value: f64) {
        let (sum, error) = two_sum(self.sum[k], value);
        self.sum[k] = sum;
        self.correction[k] += error;
    }

    /// Adds numbers, each without an error of its own.
    pub(in crate::curator) fn add_exactly(&mut self, numbers: &[f64]) {
        let numbers = numbers.iter().enumerate();
        numbers.for_each(|(k, number)| self.add(k, *number));
    }

    /// Adds another sum.
    pub(in crate::curator) fn add_all(&mut self, other: &Self) {
        for k in 0..self.sum.len() {
            self.add(k, other.sum[k]);
            self.correction[k] += other.correction[k];
        }
    }
}

/// One number for each value of a code.
type CodeTable = [f64; CODE_VALUES];

/// The contribution of each code's values to a margin at a point.
struct MarginTables {
    high: Vec<CodeTable>,
    /// The low parts; empty at a plain point.
    low: Vec<CodeTable>,
}

impl MarginTables {
    fn new(chunk: &Chunk, point: &Point) -> Self {
        let codes = &chunk.layout().codes;
        let mut high = vec![[0.0; CODE_VALUES]; codes.len()];
        if !point.is_doubled() {
            for (code, table) in codes.iter().zip(&mut high) {
                code.fill_table(table, point.high(), 0.0, |a, b| a + b);
            }
            return Self {
                high,
                low: Vec::new(),
            };
        }
        let pairs: Vec<(f64, f64)> = point
            .high()
            .iter()
            .copied()
            .zip(point.low().iter().copied())
            .collect();
        let mut low = high.clone();
        for ((code, high), low) in codes.iter().zip(&mut high).zip(&mut low) {
            let mut table = [(0.0, 0.0); CODE_VALUES];
            code.fill_table(&mut table, &pairs, (0.0, 0.0), |a, b| {
                let (sum, error) = two_sum(a.0, b.0);
                (sum, error + (a.1 + b.1))
            });
            for (value, &entry) in table.iter().enumerate() {
                (high[value], low[value]) = entry;
            }
        }
        Self { high, low }
    }
}

/// Computes the margins of a chunk's rows at a point, block by block.
struct MarginKernel<'a> {
    chunk: &'a Chunk,
    point: &'a Point,
    tables: MarginTables,
}

impl<'a> MarginKernel<'a> {
    fn new(chunk: &'a Chunk, point: &'a Point) -> Self {
        Self {
            chunk,
            point,
            tables: MarginTables::new(chunk, point),
        }
    }

    /// Overwrites `margins` with those of a block.
    #[inline(always)]
    fn compute(&self, block: &Block<'_>, margins: &mut [f64; BLOCK_ROWS]) {
        match self.point.is_doubled() {
            false => self.compute_plain(block, margins),
            true => self.compute_doubled(block, margins),
        }
    }

    #[inline(always)]
    fn compute_plain(&self, block: &Block<'_>, margins: &mut [f64; BLOCK_ROWS]) {
        let width = block.scales.len();
        let margins = &mut margins[..width];
        margins.fill(0.0);
        let mut tables = self.tables.high.as_slice();
        let mut codes = block.codes;
        while !tables.is_empty() {
            let count = tables.len().min(4);
            let (current, remaining) = codes.split_at(count * width);
            match tables {
                [a, b, c, d, ..] => {
                    let (i, current) = current.split_at(width);
                    let (j, current) = current.split_at(width);
                    let (k, l) = current.split_at(width);
                    for ((((m, i), j), k), l) in margins.iter_mut().zip(i).zip(j).zip(k).zip(l) {
                        let pair = a[usize::from(*i)] + b[usize::from(*j)];
                        *m += pair + (c[usize::from(*k)] + d[usize::from(*l)]);
                    }
                }
                _ => {
                    for (table, codes) in tables[..count].iter().zip(current.chunks_exact(width)) {
                        for (m, i) in margins.iter_mut().zip(codes) {
                            *m += table[usize::from(*i)];
                        }
                    }
                }
            }
            (tables, codes) = (&tables[count..], remaining);
        }
        for (m, scale) in margins.iter_mut().zip(block.scales) {
            *m *= scale;
        }
        let f = self.point.high();
        let (fours, rest) = self.chunk.layout().dense.as_chunks::<4>();
        let (dense, dense_rest) = block.dense.split_at(4 * fours.len() * width);
        for (&[a, b, c, d], dense) in fours.iter().zip(dense.chunks_exact(4 * width)) {
            let (u, dense) = dense.split_at(width);
            let (v, dense) = dense.split_at(width);
            let (w, x) = dense.split_at(width);
            let [a, b, c, d] = [a, b, c, d].map(|column| f[column as usize]);
            for ((((m, u), v), w), x) in margins.iter_mut().zip(u).zip(v).zip(w).zip(x) {
                *m += (a * u + b * v) + (c * w + d * x);
            }
        }
        for (&column, dense) in rest.iter().zip(dense_rest.chunks_exact(width)) {
            let f = f[column as usize];
            for (m, x) in margins.iter_mut().zip(dense) {
                *m += f * x;
            }
        }
        if let Some(sparse) = self.chunk.sparse() {
            for (n, m) in margins[..block.rows].iter_mut().enumerate() {
                let mut sum = 0.0;
                sparse.for_each_entry(block.first_row + n, block.scales[n], |column, value| {
                    sum += value * f[column];
                });
                *m += sum;
            }
        }
    }

    /// Computes margins in double-double arithmetic.
    #[inline(always)]
    fn compute_doubled(&self, block: &Block<'_>, margins: &mut [f64; BLOCK_ROWS]) {
        let width = block.scales.len();
        let margins = &mut margins[..width];
        margins.fill(0.0);
        let mut correction = [0.0; BLOCK_ROWS];
        let correction = &mut correction[..width];
        let tables = self.tables.high.iter().zip(&self.tables.low);
        for ((high, low), codes) in tables.zip(block.codes.chunks_exact(width)) {
            for ((m, correction), i) in margins.iter_mut().zip(&mut *correction).zip(codes) {
                let (sum, error) = two_sum(*m, high[usize::from(*i)]);
                *m = sum;
                *correction += error + low[usize::from(*i)];
            }
        }
        for ((m, correction), scale) in margins.iter_mut().zip(&mut *correction).zip(block.scales) {
            let (product, error) = two_product(*m, *scale);
            *m = product;
            *correction = error + *correction * scale;
        }
        let (high, low) = (self.point.high(), self.point.low());
        let add = |m: &mut f64, correction: &mut f64, x: f64, k: usize| {
            let (product, product_error) = two_product(x, high[k]);
            let (sum, sum_error) = two_sum(*m, product);
            *m = sum;
            *correction += product_error + sum_error + x * low[k];
        };
        let columns = self.chunk.layout().dense.iter();
        for (&column, dense) in columns.zip(block.dense.chunks_exact(width)) {
            for ((m, correction), x) in margins.iter_mut().zip(&mut *correction).zip(dense) {
                add(m, correction, *x, column as usize);
            }
        }
        if let Some(sparse) = self.chunk.sparse() {
            for n in 0..block.rows {
                let (m, correction) = (&mut margins[n], &mut correction[n]);
                sparse.for_each_entry(block.first_row + n, block.scales[n], |column, value| {
                    add(m, correction, value, column);
                });
            }
        }
        for (m, correction) in margins.iter_mut().zip(correction) {
            *m += *correction;
        }
    }
}

/// The number of blocks whose sums by code are plain. Each is one of two sums over [`BLOCK_ROWS`] rows.
const PLAIN_BLOCKS: usize = 2;
// Privacy: the error model allows for 256 roundings of a plain sum.
const _: () = assert!(PLAIN_BLOCKS * BLOCK_ROWS / 2 <= 256);

/// Accumulates `Σ_n w_n z_n` of a chunk: plain sums within a few blocks, compensated ones over them.
struct WeightedRowSum<'a> {
    chunk: &'a Chunk,
    /// The plain sums of the rows at even and at odd positions, by value of each code. In most rows the most frequent value
    /// is the same, and an addition to its sum waits for the one before.
    even: Vec<CodeTable>,
    odd: Vec<CodeTable>,
    /// The number of blocks in them.
    plain_blocks: usize,
    /// The sums of earlier blocks, by value of each code.
    code_sums: Vec<CodeTable>,
    /// The corrections of `code_sums`.
    code_corrections: Vec<CodeTable>,
    /// The sums of dense and sparse entries, by column.
    total: CompensatedSum,
}

impl<'a> WeightedRowSum<'a> {
    fn new(chunk: &'a Chunk, columns: usize) -> Self {
        let tables = vec![[0.0; CODE_VALUES]; chunk.layout().codes.len()];
        Self {
            chunk,
            even: tables.clone(),
            odd: tables.clone(),
            plain_blocks: 0,
            code_sums: tables.clone(),
            code_corrections: tables,
            total: CompensatedSum::zero(columns),
        }
    }

    /// Adds the rows of a block. Weights of padding rows do not matter: they are finite, and their rows are zero.
    #[inline(always)]
    fn add_block(&mut self, block: &Block<'_>, weights: &[f64; BLOCK_ROWS]) {
        let width = block.scales.len();
        let weights = &weights[..width];
        self.add_dense(block, weights);
        if let Some(sparse) = self.chunk.sparse() {
            for (n, w) in weights[..block.rows].iter().enumerate() {
                sparse.for_each_entry(block.first_row + n, block.scales[n], |column, value| {
                    self.total.add(column, w * value);
                });
            }
        }
        if self.even.is_empty() {
            return;
        }
        let mut scaled = [0.0; BLOCK_ROWS];
        for ((scaled, w), scale) in scaled.iter_mut().zip(weights).zip(block.scales) {
            *scaled = w * scale;
        }
        add_by_code(
            (&mut self.even, &mut self.odd),
            block.codes,
            &scaled[..width],
        );
        self.plain_blocks += 1;
        if self.plain_blocks == PLAIN_BLOCKS {
            self.close_plain_sums();
        }
    }

    /// Adds the products of weights and dense numbers, of four columns at a time.
    #[inline(always)]
    fn add_dense(&mut self, block: &Block<'_>, weights: &[f64]) {
        let width = weights.len();
        let (fours, rest) = self.chunk.layout().dense.as_chunks::<4>();
        let (dense, dense_rest) = block.dense.split_at(4 * fours.len() * width);
        for (columns, dense) in fours.iter().zip(dense.chunks_exact(4 * width)) {
            let sums = dots::<4>(weights, dense);
            for (&column, sum) in columns.iter().zip(sums) {
                self.total.add(column as usize, sum);
            }
        }
        for (&column, dense) in rest.iter().zip(dense_rest.chunks_exact(width)) {
            let [sum] = dots::<1>(weights, dense);
            self.total.add(column as usize, sum);
        }
    }

    /// Adds the plain sums to those of earlier blocks, and resets them.
    #[inline(always)]
    fn close_plain_sums(&mut self) {
        self.plain_blocks = 0;
        let codes = self.chunk.layout().codes.iter();
        let plain = self.even.iter_mut().zip(&mut self.odd);
        let compensated = self.code_sums.iter_mut().zip(&mut self.code_corrections);
        for (((even, odd), (sums, corrections)), code) in plain.zip(compensated).zip(codes) {
            let size = code.value_count().next_multiple_of(LANES).min(CODE_VALUES);
            for k in 0..size {
                let (sum, error) = two_sum(sums[k], even[k] + odd[k]);
                sums[k] = sum;
                corrections[k] += error;
                (even[k], odd[k]) = (0.0, 0.0);
            }
        }
    }

    /// Returns the sum by column.
    #[inline(always)]
    fn finish(mut self) -> CompensatedSum {
        self.close_plain_sums();
        let mut digits = CompensatedTable::zero();
        let tables = self.code_sums.iter().zip(&self.code_corrections);
        for ((sum, correction), code) in tables.zip(&self.chunk.layout().codes) {
            let mut values = CompensatedTable {
                sum: *sum,
                correction: *correction,
            };
            let mut count = code.value_count();
            for group in &code.groups {
                let base = group.len() + 1;
                values.sum_by_last_digit(count, base, &mut digits);
                // Digit zero stands for no column.
                for (digit, column) in (1..).zip(group.clone()) {
                    self.total.add(column as usize, digits.sum[digit]);
                    self.total.correction[column as usize] += digits.correction[digit];
                }
                values.drop_last_digit(count, base);
                count /= base;
            }
        }
        self.total
    }
}

/// Compensated sums by value of a code.
struct CompensatedTable {
    sum: CodeTable,
    correction: CodeTable,
}

impl CompensatedTable {
    fn zero() -> Self {
        Self {
            sum: [0.0; CODE_VALUES],
            correction: [0.0; CODE_VALUES],
        }
    }

    /// Overwrites `digits` with the sums by last digit of the first `count` values.
    #[inline(always)]
    fn sum_by_last_digit(&self, count: usize, base: usize, digits: &mut Self) {
        let (totals, corrections) = (&mut digits.sum[..base], &mut digits.correction[..base]);
        totals.fill(0.0);
        corrections.fill(0.0);
        for first in (0..count).step_by(base) {
            let (sums, errors) = (
                &self.sum[first..][..base],
                &self.correction[first..][..base],
            );
            for k in 0..base {
                let (sum, error) = two_sum(totals[k], sums[k]);
                totals[k] = sum;
                corrections[k] += error + errors[k];
            }
        }
    }

    /// Overwrites the first `count` values with the sums by their other digits.
    #[inline(always)]
    fn drop_last_digit(&mut self, count: usize, base: usize) {
        for k in 0..count / base {
            let (mut total, mut correction) = (0.0, 0.0);
            for value in k * base..(k + 1) * base {
                let (sum, error) = two_sum(total, self.sum[value]);
                total = sum;
                correction += error + self.correction[value];
            }
            (self.sum[k], self.correction[k]) = (total, correction);
        }
    }
}

/// Adds each row's weight to the tables of its codes, at the row's values: to the first ones if its position is even, and
/// to the second ones if it is odd.
#[inline(always)]
fn add_by_code(
    (mut even, mut odd): (&mut [CodeTable], &mut [CodeTable]),
    mut codes: &[u8],
    weights: &[f64],
) {
    let width = weights.len();
    let (pairs, _) = weights.as_chunks::<2>();
    while !even.is_empty() {
        let count = even.len().min(4);
        let (current, remaining) = codes.split_at(count * width);
        match (&mut *even, &mut *odd) {
            ([a, b, c, d, ..], [e, f, g, h, ..]) => {
                let (i, current) = current.split_at(width);
                let (j, current) = current.split_at(width);
                let (k, l) = current.split_at(width);
                let (i, j) = (i.as_chunks::<2>().0.iter(), j.as_chunks::<2>().0);
                let (k, l) = (k.as_chunks::<2>().0, l.as_chunks::<2>().0);
                for ((((w, i), j), k), l) in pairs.iter().zip(i).zip(j).zip(k).zip(l) {
                    a[usize::from(i[0])] += w[0];
                    b[usize::from(j[0])] += w[0];
                    c[usize::from(k[0])] += w[0];
                    d[usize::from(l[0])] += w[0];
                    e[usize::from(i[1])] += w[1];
                    f[usize::from(j[1])] += w[1];
                    g[usize::from(k[1])] += w[1];
                    h[usize::from(l[1])] += w[1];
                }
            }
            (even, odd) => {
                let tables = even.iter_mut().zip(odd.iter_mut()).take(count);
                for ((even, odd), codes) in tables.zip(current.chunks_exact(width)) {
                    for (w, i) in pairs.iter().zip(codes.as_chunks::<2>().0) {
                        even[usize::from(i[0])] += w[0];
                        odd[usize::from(i[1])] += w[1];
                    }
                }
            }
        }
        (even, odd, codes) = (&mut even[count..], &mut odd[count..], remaining);
    }
}

/// Returns the dot products of the weights with each of `J` columns, as eight partial sums each.
#[inline(always)]
fn dots<const J: usize>(weights: &[f64], columns: &[f64]) -> [f64; J] {
    let width = weights.len();
    let mut sums = [[0.0; LANES]; J];
    for first in (0..width).step_by(LANES) {
        let w = &weights[first..][..LANES];
        for j in 0..J {
            let x = &columns[j * width + first..][..LANES];
            for k in 0..LANES {
                sums[j][k] += w[k] * x[k];
            }
        }
    }
    let mut dots = [0.0; J];
    for j in 0..J {
        dots[j] = sum_of_lanes(&sums[j]);
    }
    dots
}

/// Returns the sum of eight partial sums, added in a fixed order.
#[inline(always)]
pub(in crate::curator) fn sum_of_lanes(lanes: &Lanes) -> f64 {
    ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6]))
        + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
}

/// Returns `weight·Σ_n L'(fᵀz_n) z_n`, with `q_n z_n` for `z_n` if there are factors `q_n`, row by row with padding rows.
pub(in crate::curator) fn gradient(
    simd: Simd,
    chunk: &Chunk,
    point: &Point,
    (loss, weight): (Loss, f64),
    factors: Option<&[f64]>,
) -> CompensatedSum {
    let columns = point.high().len();
    simd.run(
        #[inline(always)]
        || {
            let kernel = MarginKernel::new(chunk, point);
            let mut total = WeightedRowSum::new(chunk, columns);
            let mut weights = [0.0; BLOCK_ROWS];
            for block in chunk.blocks() {
                kernel.compute(&block, &mut weights);
                let slopes = &mut weights[..block.scales.len()];
                let factors = factors.map(|factors| &factors[block.first_row..][..slopes.len()]);
                multiply(slopes, factors);
                loss.slopes(slopes, weight);
                multiply(slopes, factors);
                total.add_block(&block, &weights);
            }
            total.finish()
        },
    )
}

/// Multiplies each number by its factor, if there are factors.
#[inline(always)]
fn multiply(numbers: &mut [f64], factors: Option<&[f64]>) {
    for (number, factor) in numbers.iter_mut().zip(factors.unwrap_or_default()) {
        *number *= factor;
    }
}

/// Returns `Σ_n w_n z_n`, given `w_n` row by row.
pub(in crate::curator) fn weighted_sum(
    simd: Simd,
    chunk: &Chunk,
    columns: usize,
    weights: &[f64],
) -> CompensatedSum {
    simd.run(
        #[inline(always)]
        || {
            let mut total = WeightedRowSum::new(chunk, columns);
            let mut block_weights = [0.0; BLOCK_ROWS];
            for block in chunk.blocks() {
                let own = &weights[block.first_row..][..block.rows];
                block_weights[..block.rows].copy_from_slice(own);
                total.add_block(&block, &block_weights);
            }
            total.finish()
        },
    )
}

/// Returns `weight·L''(fᵀz_n)`, row by row, with padding rows.
pub(in crate::curator) fn curvatures(
    simd: Simd,
    chunk: &Chunk,
    point: &Point,
    loss: Loss,
    weight: f64,
) -> Vec<f64> {
    simd.run(
        #[inline(always)]
        || {
            let kernel = MarginKernel::new(chunk, point);
            let mut block_margins = [0.0; BLOCK_ROWS];
            let mut all = Vec::with_capacity(chunk.rows().next_multiple_of(LANES));
            for block in chunk.blocks() {
                kernel.compute(&block, &mut block_margins);
                let block_curvatures = &mut block_margins[..block.scales.len()];
                loss.curvatures(block_curvatures, weight);
                all.extend_from_slice(block_curvatures);
            }
            all
        },
    )
}

/// Returns `fᵀz_n`, row by row.
pub(in crate::curator) fn margins(simd: Simd, chunk: &Chunk, point: &Point) -> Vec<f64> {
    simd.run(
        #[inline(always)]
        || {
            let kernel = MarginKernel::new(chunk, point);
            let mut block_margins = [0.0; BLOCK_ROWS];
            let mut all = Vec::with_capacity(chunk.rows());
            for block in chunk.blocks() {
                kernel.compute(&block, &mut block_margins);
                all.extend_from_slice(&block_margins[..block.rows]);
            }
            all
        },
    )
}

/// Returns `Σ_n c_n (vᵀz_n) z_n`, given `c_n` row by row.
pub(in crate::curator) fn hessian_product(
    simd: Simd,
    chunk: &Chunk,
    direction: &Point,
    curvatures: &[f64],
) -> CompensatedSum {
    simd.run(
        #[inline(always)]
        || {
            let kernel = MarginKernel::new(chunk, direction);
            let mut total = WeightedRowSum::new(chunk, direction.high().len());
            let mut weights = [0.0; BLOCK_ROWS];
            for block in chunk.blocks() {
                kernel.compute(&block, &mut weights);
                for (w, c) in weights.iter_mut().zip(&curvatures[block.first_row..]) {
                    *w *= c;
                }
                total.add_block(&block, &weights);
            }
            total.finish()
        },
    )
}

/// Returns `Σ_n L(fᵀz_n)`, and the number of rows with `fᵀz_n > 0`, where rows with `fᵀz_n = 0` count half.
pub(in crate::curator) fn losses(
    simd: Simd,
    chunk: &Chunk,
    point: &Point,
    loss: Loss,
) -> (f64, f64) {
    simd.run(
        #[inline(always)]
        || {
            let kernel = MarginKernel::new(chunk, point);
            let mut margins = [0.0; BLOCK_ROWS];
            let (mut sum, mut correct_halves) = (0.0, 0);
            for block in chunk.blocks() {
                kernel.compute(&block, &mut margins);
                // The loss of padding rows must be zero.
                margins[block.rows..].fill(f64::MAX);
                let padding = block.scales.len() - block.rows;
                let margins = &mut margins[..block.scales.len()];
                correct_halves += correct_half_rows(margins) - 2 * padding as u64;
                sum += loss.sum(margins);
            }
            (sum, correct_halves as f64 / 2.0)
        },
    )
}

/// Returns twice the number of positive margins, plus the number of zeros.
#[inline(always)]
fn correct_half_rows(margins: &[f64]) -> u64 {
    let halves = |margin: &f64| u64::from(*margin > 0.0) + u64::from(*margin >= 0.0);
    margins.iter().map(halves).sum()
}

#[cfg(test)]
mod tests;
