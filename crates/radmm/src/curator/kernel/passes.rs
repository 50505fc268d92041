//! Passes over a chunk of rows: margins, gradients, losses and Hessian products.
//!
//! With [`Simd`] a pass runs on the widest vector units that the processor has. All units run the same code, without fused
//! operations and in the same order, so they give the same bits.

use super::exp_log::LANES;
use crate::curator::rows::chunk::{BLOCK, Block, Chunk};
use crate::curator::rows::layout::CODES;
use crate::curator::solver::double_double::{Point, two_product, two_sum};
use crate::linalg::simd::Simd;
use crate::problem::Loss;

/// A sum, and what its additions lost.
#[derive(Clone)]
pub(in crate::curator) struct Sum {
    pub sum: Vec<f64>,
    pub lost: Vec<f64>,
}

impl Sum {
    pub(in crate::curator) fn zero(length: usize) -> Self {
        Self {
            sum: vec![0.0; length],
            lost: vec![0.0; length],
        }
    }

    #[inline(always)]
    fn add(&mut self, k: usize, value: f64) {
        let (sum, error) = two_sum(self.sum[k], value);
        self.sum[k] = sum;
        self.lost[k] += error;
    }

    pub(in crate::curator) fn add_all(&mut self, other: &Self) {
        for k in 0..self.sum.len() {
            self.add(k, other.sum[k]);
            self.lost[k] += other.lost[k];
        }
    }
}

pub(in crate::curator) type Table = [f64; CODES];

/// What codes stand for at a point, by value.
struct Tables {
    high: Vec<Table>,
    /// Empty at a plain point.
    low: Vec<Table>,
}

impl Tables {
    fn of(chunk: &Chunk, point: &Point) -> Self {
        let codes = &chunk.layout().codes;
        let mut high = vec![[0.0; CODES]; codes.len()];
        if !point.is_doubled() {
            for (code, table) in codes.iter().zip(&mut high) {
                code.fill(table, point.high(), 0.0, |a, b| a + b);
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
            let mut table = [(0.0, 0.0); CODES];
            code.fill(&mut table, &pairs, (0.0, 0.0), |a, b| {
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

/// Margins of a chunk's rows at a point, block by block.
struct Margins<'a> {
    chunk: &'a Chunk,
    point: &'a Point,
    tables: Tables,
}

impl<'a> Margins<'a> {
    fn new(chunk: &'a Chunk, point: &'a Point) -> Self {
        Self {
            chunk,
            point,
            tables: Tables::of(chunk, point),
        }
    }

    #[inline(always)]
    fn of(&self, block: &Block<'_>, margins: &mut [f64; BLOCK]) {
        match self.point.is_doubled() {
            false => self.plain(block, margins),
            true => self.doubled(block, margins),
        }
    }

    #[inline(always)]
    fn plain(&self, block: &Block<'_>, margins: &mut [f64; BLOCK]) {
        let width = block.scales.len();
        let margins = &mut margins[..width];
        margins.fill(0.0);
        let mut tables = self.tables.high.as_slice();
        let mut codes = block.codes;
        while !tables.is_empty() {
            let several = tables.len().min(4);
            let (now, later) = codes.split_at(several * width);
            match tables {
                [a, b, c, d, ..] => {
                    let (i, now) = now.split_at(width);
                    let (j, now) = now.split_at(width);
                    let (k, l) = now.split_at(width);
                    for ((((m, i), j), k), l) in margins.iter_mut().zip(i).zip(j).zip(k).zip(l) {
                        let pair = a[usize::from(*i)] + b[usize::from(*j)];
                        *m += pair + (c[usize::from(*k)] + d[usize::from(*l)]);
                    }
                }
                _ => {
                    for (table, codes) in tables[..several].iter().zip(now.chunks_exact(width)) {
                        for (m, i) in margins.iter_mut().zip(codes) {
                            *m += table[usize::from(*i)];
                        }
                    }
                }
            }
            (tables, codes) = (&tables[several..], later);
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
        if let Some(rest) = self.chunk.rest() {
            for (n, m) in margins[..block.rows].iter_mut().enumerate() {
                let mut sum = 0.0;
                rest.each(block.first + n, block.scales[n], |column, value| {
                    sum += value * f[column];
                });
                *m += sum;
            }
        }
    }

    /// Sums and products without error, as far as two doubles hold them.
    #[inline(always)]
    fn doubled(&self, block: &Block<'_>, margins: &mut [f64; BLOCK]) {
        let width = block.scales.len();
        let margins = &mut margins[..width];
        margins.fill(0.0);
        let mut lost = [0.0; BLOCK];
        let lost = &mut lost[..width];
        let tables = self.tables.high.iter().zip(&self.tables.low);
        for ((high, low), codes) in tables.zip(block.codes.chunks_exact(width)) {
            for ((m, lost), i) in margins.iter_mut().zip(&mut *lost).zip(codes) {
                let (sum, error) = two_sum(*m, high[usize::from(*i)]);
                *m = sum;
                *lost += error + low[usize::from(*i)];
            }
        }
        for ((m, lost), scale) in margins.iter_mut().zip(&mut *lost).zip(block.scales) {
            let (product, error) = two_product(*m, *scale);
            *m = product;
            *lost = error + *lost * scale;
        }
        let (high, low) = (self.point.high(), self.point.low());
        let add = |m: &mut f64, lost: &mut f64, x: f64, k: usize| {
            let (product, error) = two_product(x, high[k]);
            let (sum, short) = two_sum(*m, product);
            *m = sum;
            *lost += error + short + x * low[k];
        };
        let columns = self.chunk.layout().dense.iter();
        for (&column, dense) in columns.zip(block.dense.chunks_exact(width)) {
            for ((m, lost), x) in margins.iter_mut().zip(&mut *lost).zip(dense) {
                add(m, lost, *x, column as usize);
            }
        }
        if let Some(rest) = self.chunk.rest() {
            for n in 0..block.rows {
                let (m, lost) = (&mut margins[n], &mut lost[n]);
                rest.each(block.first + n, block.scales[n], |column, value| {
                    add(m, lost, value, column);
                });
            }
        }
        for (m, lost) in margins.iter_mut().zip(lost) {
            *m += *lost;
        }
    }
}

/// `Σ_n w_n z_n` of a chunk: plain sums within a block, compensated ones over blocks.
struct Scatter<'a> {
    chunk: &'a Chunk,
    block: Vec<Table>,
    sums: Vec<Table>,
    lost: Vec<Table>,
    total: Sum,
}

impl<'a> Scatter<'a> {
    fn new(chunk: &'a Chunk, columns: usize) -> Self {
        let tables = vec![[0.0; CODES]; chunk.layout().codes.len()];
        Self {
            chunk,
            block: tables.clone(),
            sums: tables.clone(),
            lost: tables,
            total: Sum::zero(columns),
        }
    }

    /// Weights of fillers do not matter: they are finite, and their rows are zero.
    #[inline(always)]
    fn add(&mut self, block: &Block<'_>, weights: &[f64; BLOCK]) {
        let width = block.scales.len();
        let weights = &weights[..width];
        let columns = self.chunk.layout().dense.iter();
        for (&column, dense) in columns.zip(block.dense.chunks_exact(width)) {
            self.total.add(column as usize, dot(weights, dense));
        }
        if let Some(rest) = self.chunk.rest() {
            for (n, w) in weights[..block.rows].iter().enumerate() {
                rest.each(block.first + n, block.scales[n], |column, value| {
                    self.total.add(column, w * value);
                });
            }
        }
        if self.block.is_empty() {
            return;
        }
        let mut scaled = [0.0; BLOCK];
        for ((scaled, w), scale) in scaled.iter_mut().zip(weights).zip(block.scales) {
            *scaled = w * scale;
        }
        let scaled = &scaled[..width];
        scatter_codes(&mut self.block, block.codes, scaled);
        self.close();
    }

    /// Adds the block's sums to the others'.
    #[inline(always)]
    fn close(&mut self) {
        let codes = self.chunk.layout().codes.iter();
        let tables = self
            .sums
            .iter_mut()
            .zip(&mut self.lost)
            .zip(&mut self.block);
        for (((sums, lost), block), code) in tables.zip(codes) {
            let size = code.size().next_multiple_of(LANES).min(CODES);
            for ((sum, lost), block) in sums[..size]
                .iter_mut()
                .zip(&mut lost[..size])
                .zip(&mut block[..size])
            {
                let (next, error) = two_sum(*sum, *block);
                *sum = next;
                *lost += error;
                *block = 0.0;
            }
        }
    }

    /// By column.
    #[inline(always)]
    fn finish(mut self) -> Sum {
        let tables = self.sums.iter().zip(&self.lost);
        for ((sums, lost), code) in tables.zip(&self.chunk.layout().codes) {
            code.each_value(|column, value| {
                self.total.add(column, sums[value]);
                self.total.lost[column] += lost[value];
            });
        }
        self.total
    }
}

/// Adds each row's weight to the tables of its codes, at their values.
#[inline(always)]
pub(in crate::curator) fn scatter_codes(
    mut tables: &mut [Table],
    mut codes: &[u8],
    weights: &[f64],
) {
    let width = weights.len();
    while !tables.is_empty() {
        let several = tables.len().min(4);
        let (now, later) = codes.split_at(several * width);
        match tables {
            [a, b, c, d, ..] => {
                let (i, now) = now.split_at(width);
                let (j, now) = now.split_at(width);
                let (k, l) = now.split_at(width);
                for ((((w, i), j), k), l) in weights.iter().zip(i).zip(j).zip(k).zip(l) {
                    a[usize::from(*i)] += w;
                    b[usize::from(*j)] += w;
                    c[usize::from(*k)] += w;
                    d[usize::from(*l)] += w;
                }
            }
            _ => {
                for (table, codes) in tables[..several].iter_mut().zip(now.chunks_exact(width)) {
                    for (w, i) in weights.iter().zip(codes) {
                        table[usize::from(*i)] += w;
                    }
                }
            }
        }
        (tables, codes) = (&mut tables[several..], later);
    }
}

/// Eight sums side by side.
#[inline(always)]
pub(in crate::curator) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    for (a, b) in a
        .as_chunks::<LANES>()
        .0
        .iter()
        .zip(b.as_chunks::<LANES>().0)
    {
        for k in 0..LANES {
            sums[k] += a[k] * b[k];
        }
    }
    ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))
}

/// `weight·Σ_n L'(fᵀz_n) z_n`.
pub(in crate::curator) fn gradient(
    simd: Simd,
    chunk: &Chunk,
    point: &Point,
    loss: Loss,
    weight: f64,
) -> Sum {
    let columns = point.high().len();
    simd.run(
        #[inline(always)]
        || {
            let margins = Margins::new(chunk, point);
            let mut scatter = Scatter::new(chunk, columns);
            let mut weights = [0.0; BLOCK];
            for block in chunk.blocks() {
                margins.of(&block, &mut weights);
                loss.slopes(&mut weights[..block.scales.len()], weight);
                scatter.add(&block, &weights);
            }
            scatter.finish()
        },
    )
}

/// `L''(fᵀz_n)`, row by row, times `weight`.
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
            let margins = Margins::new(chunk, point);
            let mut block_margins = [0.0; BLOCK];
            let mut all = Vec::with_capacity(chunk.rows().next_multiple_of(LANES));
            for block in chunk.blocks() {
                margins.of(&block, &mut block_margins);
                let here = &mut block_margins[..block.scales.len()];
                loss.curvatures(here, weight);
                all.extend_from_slice(here);
            }
            all
        },
    )
}

/// `fᵀz_n`, row by row.
pub(in crate::curator) fn margins(simd: Simd, chunk: &Chunk, point: &Point) -> Vec<f64> {
    simd.run(
        #[inline(always)]
        || {
            let margins = Margins::new(chunk, point);
            let mut block_margins = [0.0; BLOCK];
            let mut all = Vec::with_capacity(chunk.rows());
            for block in chunk.blocks() {
                margins.of(&block, &mut block_margins);
                all.extend_from_slice(&block_margins[..block.rows]);
            }
            all
        },
    )
}

/// `Σ_n c_n (vᵀz_n) z_n`, given `c_n` row by row.
pub(in crate::curator) fn product(
    simd: Simd,
    chunk: &Chunk,
    along: &Point,
    curvatures: &[f64],
) -> Sum {
    simd.run(
        #[inline(always)]
        || {
            let margins = Margins::new(chunk, along);
            let mut scatter = Scatter::new(chunk, along.high().len());
            let mut weights = [0.0; BLOCK];
            for block in chunk.blocks() {
                margins.of(&block, &mut weights);
                for (w, c) in weights.iter_mut().zip(&curvatures[block.first..]) {
                    *w *= c;
                }
                scatter.add(&block, &weights);
            }
            scatter.finish()
        },
    )
}

/// `Σ_n L(fᵀz_n)`, and how many rows have `fᵀz_n > 0`, those with `fᵀz_n = 0` counted half.
pub(in crate::curator) fn losses(
    simd: Simd,
    chunk: &Chunk,
    point: &Point,
    loss: Loss,
) -> (f64, f64) {
    simd.run(
        #[inline(always)]
        || {
            let margins = Margins::new(chunk, point);
            let mut values = [0.0; BLOCK];
            let (mut sum, mut right) = (0.0, 0.0);
            for block in chunk.blocks() {
                margins.of(&block, &mut values);
                for m in &values[..block.rows] {
                    right += if *m > 0.0 { 1.0 } else { 0.0 };
                    right += if *m == 0.0 { 0.5 } else { 0.0 };
                }
                loss.values(&mut values[..block.scales.len()]);
                sum += values[..block.rows].iter().sum::<f64>();
            }
            (sum, right)
        },
    )
}

#[cfg(test)]
mod tests;
