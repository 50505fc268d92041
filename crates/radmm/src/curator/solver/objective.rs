//! The objective of a query, and the sums over rows that the solver needs of it.

use super::Evaluation;
use super::double_double::Point;
use crate::curator::kernel::hessian;
use crate::curator::kernel::passes::{self, CompensatedSum};
use crate::curator::rows::chunk::Chunk;
use crate::curator::rows::shard::Shard;
use crate::exec::{ChunkExecutor, gather};
use crate::linalg::dot::norm;
use crate::linalg::simd::Simd;
use crate::problem::Loss;

/// The number of chunks whose sums are held in memory at once before they are added up.
const CHUNKS_AT_ONCE: usize = 32;
/// The number of parts of a Hessian that are computed independently.
const HESSIAN_PARTS: usize = 8;

/// A smooth, strongly convex objective `F(f) = Σ_i (C_i/B_i) Σ_n L(fᵀz_n) + ⟨b, f⟩ + (m/2)‖f‖²`.
pub(in crate::curator) struct Objective<'a> {
    /// At least one shard with its weight `C_i`, all with the same number of columns.
    pub shards: Vec<(&'a Shard, f64)>,
    pub loss: Loss,
    /// `m > 0`, the modulus of strong convexity.
    pub modulus: f64,
    /// `b`.
    pub linear: &'a [f64],
    /// The executor of passes over the rows.
    pub executor: &'a dyn ChunkExecutor,
    /// The stride between the chunks in use. A stride of 1 uses all rows; a larger one uses a subsample with the same
    /// total weight.
    pub stride: usize,
}

impl Objective<'_> {
    /// Returns `Σ_i C_i`.
    pub(in crate::curator) fn weight(&self) -> f64 {
        self.shards.iter().map(|(_, weight)| weight).sum()
    }

    /// Returns the Lipschitz constant `L = Σ_i C_i·c₁ + m` of the gradient, since rows have norm at most one; with room
    /// for its rounding.
    pub(in crate::curator) fn lipschitz(&self) -> f64 {
        1.01 * (self.weight() * self.loss.curvature() + self.modulus)
    }

    /// Returns `∇F(f)`, with doubled margins or plain ones.
    pub(in crate::curator) fn gradient(&self, f: &[f64], doubled: bool) -> Vec<f64> {
        let point = Point::plain(f);
        let point = if doubled { point.doubled() } else { point };
        self.evaluate(point).gradient
    }

    /// Computes the gradient at a point in one pass over the rows.
    pub(in crate::curator) fn evaluate(&self, point: Point) -> Evaluation {
        let rows = self.sum_over_chunks(|_, chunk, weight| {
            passes::gradient(Simd::best(), chunk, &point, (self.loss, weight), None)
        });
        let mut rest = self.linear.to_vec();
        point.add_scaled_to(&mut rest, self.modulus);
        let parts = rows.sum.iter().zip(&rest).zip(&rows.correction);
        let gradient: Vec<f64> = parts
            .map(|((g, rest), correction)| (g + rest) + correction)
            .collect();
        Evaluation {
            residual: norm(&gradient),
            point,
            gradient,
        }
    }

    /// Returns the chunks in use, with the weight `C_i/B_i` of their rows.
    pub(in crate::curator) fn chunks(&self) -> Vec<(&Chunk, f64)> {
        let mut chunks = Vec::new();
        for &(shard, weight) in &self.shards {
            let weight = weight / shard.rows() as f64;
            chunks.extend(shard.chunks().iter().map(|chunk| (chunk, weight)));
        }
        if self.stride == 1 {
            return chunks;
        }
        let total_weight = |chunks: &[(&Chunk, f64)]| -> f64 {
            chunks
                .iter()
                .map(|(chunk, weight)| weight * chunk.rows() as f64)
                .sum()
        };
        let all = total_weight(&chunks);
        let mut subsample: Vec<_> = chunks.into_iter().step_by(self.stride).collect();
        let factor = all / total_weight(&subsample);
        subsample
            .iter_mut()
            .for_each(|(_, weight)| *weight *= factor);
        subsample
    }

    /// Sums `of(index, chunk, weight)` over the chunks, in their order.
    pub(in crate::curator) fn sum_over_chunks(
        &self,
        of: impl Fn(usize, &Chunk, f64) -> CompensatedSum + Sync,
    ) -> CompensatedSum {
        let mut total = CompensatedSum::zero(self.linear.len());
        let chunks = self.chunks();
        for (batch, batch_chunks) in chunks.chunks(CHUNKS_AT_ONCE).enumerate() {
            let sums = gather(self.executor, batch_chunks.len(), |k| {
                let (chunk, weight) = batch_chunks[k];
                of(batch * CHUNKS_AT_ONCE + k, chunk, weight)
            });
            sums.iter().for_each(|sum| total.add_all(sum));
        }
        total
    }

    /// Returns `(C_i/B_i) L''(fᵀz_n)` for each chunk, row by row.
    pub(in crate::curator) fn curvatures(&self, point: &Point) -> Vec<Vec<f64>> {
        let chunks = self.chunks();
        gather(self.executor, chunks.len(), |k| {
            let (chunk, weight) = chunks[k];
            passes::curvatures(Simd::best(), chunk, point, self.loss, weight)
        })
    }

    /// Returns the rows' part of the Hessian, the lower triangle of `Σ_n curvature_n z_n z_nᵀ`.
    pub(in crate::curator) fn rows_hessian(&self, point: &Point) -> Vec<f64> {
        let d = self.linear.len();
        let chunks = self.chunks();
        let batches: Vec<&[(&Chunk, f64)]> = chunks
            .chunks(chunks.len().div_ceil(HESSIAN_PARTS))
            .collect();
        let parts = gather(self.executor, batches.len(), |k| {
            let mut hessian = vec![0.0; d * d];
            for (chunk, weight) in batches[k] {
                let simd = Simd::best();
                let curvatures = passes::curvatures(simd, chunk, point, self.loss, *weight);
                hessian::add(simd, chunk, &curvatures, &mut hessian);
            }
            hessian
        });
        let mut parts = parts.into_iter();
        let mut hessian = parts.next().unwrap_or_default();
        for part in parts {
            hessian
                .iter_mut()
                .zip(&part)
                .for_each(|(h, part)| *h += part);
        }
        hessian
    }

    /// Returns all entries of `∇²F(f)`.
    pub(in crate::curator) fn full_hessian(&self, f: &[f64]) -> Vec<f64> {
        let d = f.len();
        let mut hessian = self.rows_hessian(&Point::plain(f));
        for i in 0..d {
            hessian[i * d + i] += self.modulus;
            for j in 0..i {
                hessian[j * d + i] = hessian[i * d + j];
            }
        }
        hessian
    }

    /// Returns `∇²F·vector`, given the curvatures of the rows.
    pub(in crate::curator) fn hessian_product(
        &self,
        curvatures: &[Vec<f64>],
        vector: &[f64],
    ) -> Vec<f64> {
        let along = Point::plain(vector);
        let total = self.sum_over_chunks(|k, chunk, _| {
            passes::hessian_product(Simd::best(), chunk, &along, &curvatures[k])
        });
        let parts = total.sum.iter().zip(&total.correction).zip(vector);
        parts
            .map(|((sum, correction), v)| (sum + correction) + self.modulus * v)
            .collect()
    }
}

/// Returns `fᵀz_n` of every row.
pub(in crate::curator) fn margins(shard: &Shard, at: &[f64]) -> Vec<f64> {
    let at = Point::plain(at);
    let chunks = shard.chunks().iter();
    chunks
        .flat_map(|chunk| passes::margins(Simd::best(), chunk, &at))
        .collect()
}

/// Returns `(1/B) Σ_n L(fᵀz_n)`, and the share of rows with `fᵀz_n > 0`, where rows with `fᵀz_n = 0` count half.
pub(in crate::curator) fn mean_loss_and_accuracy(
    shard: &Shard,
    loss: Loss,
    at: &[f64],
    executor: &dyn ChunkExecutor,
) -> (f64, f64) {
    let at = Point::plain(at);
    let chunks = shard.chunks();
    let of = |k: usize| passes::losses(Simd::best(), &chunks[k], &at, loss);
    let (mut loss_sum, mut correct) = (0.0, 0.0);
    for (chunk_loss, chunk_correct) in gather(executor, chunks.len(), of) {
        loss_sum += chunk_loss;
        correct += chunk_correct;
    }
    let rows = shard.rows() as f64;
    (loss_sum / rows, correct / rows)
}
