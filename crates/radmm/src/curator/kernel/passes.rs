//! Passes over a chunk of rows: margins, gradients, losses and Hessian products.
//!
//! With [`Simd`], a pass runs on the widest vector units that the processor has. All units run the same code, without
//! fused operations and in the same order, so they give the same bits.

use super::exp_log::LANES;
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

    /// Adds a value to one coordinate.
    #[inline(always)]
    fn add(&mut self, k: usize, value: f64) {
        let (sum, error) = two_sum(self.sum[k], value);
        self.sum[k] = sum;
        self.correction[k] += error;
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
pub(in crate::curator) type CodeTable = [f64; CODE_VALUES];

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
        let columns = self.chunk.layout().dense.iter();
        for (&column, dense) in columns.zip(block.dense.chunks_exact(width)) {
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

/// Accumulates `Σ_n w_n z_n` of a chunk: plain sums within a block, compensated ones over blocks.
struct WeightedRowSum<'a> {
    chunk: &'a Chunk,
    /// The sums of the current block, by value of each code.
    block_sums: Vec<CodeTable>,
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
            block_sums: tables.clone(),
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
        let columns = self.chunk.layout().dense.iter();
        for (&column, dense) in columns.zip(block.dense.chunks_exact(width)) {
            self.total
                .add(column as usize, dot(weights, dense, |product| product));
        }
        if let Some(sparse) = self.chunk.sparse() {
            for (n, w) in weights[..block.rows].iter().enumerate() {
                sparse.for_each_entry(block.first_row + n, block.scales[n], |column, value| {
                    self.total.add(column, w * value);
                });
            }
        }
        if self.block_sums.is_empty() {
            return;
        }
        let mut scaled = [0.0; BLOCK_ROWS];
        for ((scaled, w), scale) in scaled.iter_mut().zip(weights).zip(block.scales) {
            *scaled = w * scale;
        }
        let scaled = &scaled[..width];
        add_by_code(&mut self.block_sums, block.codes, scaled);
        self.flush_block();
    }

    /// Adds the current block's sums to those of earlier blocks, and resets them.
    #[inline(always)]
    fn flush_block(&mut self) {
        let codes = self.chunk.layout().codes.iter();
        let tables = self
            .code_sums
            .iter_mut()
            .zip(&mut self.code_corrections)
            .zip(&mut self.block_sums);
        for (((sums, corrections), block), code) in tables.zip(codes) {
            let size = code.value_count().next_multiple_of(LANES).min(CODE_VALUES);
            for ((sum, correction), block) in sums[..size]
                .iter_mut()
                .zip(&mut corrections[..size])
                .zip(&mut block[..size])
            {
                let (next, error) = two_sum(*sum, *block);
                *sum = next;
                *correction += error;
                *block = 0.0;
            }
        }
    }

    /// Returns the sum by column.
    #[inline(always)]
    fn finish(mut self) -> CompensatedSum {
        let tables = self.code_sums.iter().zip(&self.code_corrections);
        for ((sums, corrections), code) in tables.zip(&self.chunk.layout().codes) {
            code.for_each_column_value(|column, value| {
                self.total.add(column, sums[value]);
                self.total.correction[column] += corrections[value];
            });
        }
        self.total
    }
}

/// Adds each row's weight to the tables of its codes, at the row's values.
#[inline(always)]
pub(in crate::curator) fn add_by_code(
    mut tables: &mut [CodeTable],
    mut codes: &[u8],
    weights: &[f64],
) {
    let width = weights.len();
    while !tables.is_empty() {
        let count = tables.len().min(4);
        let (current, remaining) = codes.split_at(count * width);
        match tables {
            [a, b, c, d, ..] => {
                let (i, current) = current.split_at(width);
                let (j, current) = current.split_at(width);
                let (k, l) = current.split_at(width);
                for ((((w, i), j), k), l) in weights.iter().zip(i).zip(j).zip(k).zip(l) {
                    a[usize::from(*i)] += w;
                    b[usize::from(*j)] += w;
                    c[usize::from(*k)] += w;
                    d[usize::from(*l)] += w;
                }
            }
            _ => {
                for (table, codes) in tables[..count].iter_mut().zip(current.chunks_exact(width)) {
                    for (w, i) in weights.iter().zip(codes) {
                        table[usize::from(*i)] += w;
                    }
                }
            }
        }
        (tables, codes) = (&mut tables[count..], remaining);
    }
}

/// Returns the dot product of `round`ed products, as eight partial sums, added in a fixed order.
#[inline(always)]
pub(in crate::curator) fn dot(a: &[f64], b: &[f64], round: impl Fn(f64) -> f64) -> f64 {
    let mut sums = [0.0; LANES];
    for (a, b) in a
        .as_chunks::<LANES>()
        .0
        .iter()
        .zip(b.as_chunks::<LANES>().0)
    {
        for k in 0..LANES {
            sums[k] += round(a[k] * b[k]);
        }
    }
    ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))
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
            let mut values = [0.0; BLOCK_ROWS];
            let (mut sum, mut correct) = (0.0, 0.0);
            for block in chunk.blocks() {
                kernel.compute(&block, &mut values);
                for m in &values[..block.rows] {
                    correct += if *m > 0.0 { 1.0 } else { 0.0 };
                    correct += if *m == 0.0 { 0.5 } else { 0.0 };
                }
                loss.values(&mut values[..block.scales.len()]);
                sum += values[..block.rows].iter().sum::<f64>();
            }
            (sum, correct)
        },
    )
}

#[cfg(test)]
mod tests;
