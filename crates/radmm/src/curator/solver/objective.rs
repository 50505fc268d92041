//! The objective of a question, and passes over its rows.

use super::Evaluation;
use super::double_double::Point;
use crate::curator::kernel::hessian;
use crate::curator::kernel::passes::{self, Sum};
use crate::curator::rows::chunk::Chunk;
use crate::curator::rows::shard::Shard;
use crate::exec::{ChunkExecutor, gather};
use crate::linalg::dot::norm;
use crate::linalg::simd::Simd;
use crate::problem::Loss;

/// Chunks whose sums are held beside one another before they are added up.
const AT_ONCE: usize = 32;
/// Parts of a Hessian that are computed independently.
const PIECES: usize = 8;

/// A smooth, strongly convex function of rows.
pub(in crate::curator) struct Objective<'a> {
    /// All of the same number of columns; at least one.
    pub shards: Vec<&'a Shard>,
    pub loss: Loss,
    /// `C`.
    pub weight: f64,
    /// `m > 0`, the strong convexity.
    pub modulus: f64,
    /// `b`.
    pub linear: &'a [f64],
    /// Who goes over the rows.
    pub executor: &'a dyn ChunkExecutor,
    /// All rows, or one chunk of as many in the place of all: for a rough start.
    pub stride: usize,
}

impl Objective<'_> {
    /// `L = Σ_i C·c₁ + m`, since rows have norm at most one; with room for its rounding.
    pub(in crate::curator) fn lipschitz(&self) -> f64 {
        let shards = self.shards.len() as f64;
        1.01 * (shards * self.weight * self.loss.curvature() + self.modulus)
    }

    /// `∇F(f)`, with doubled margins or plain ones.
    pub(in crate::curator) fn gradient(&self, f: &[f64], doubled: bool) -> Vec<f64> {
        let point = Point::plain(f);
        let point = if doubled { point.doubled() } else { point };
        self.at(point).gradient
    }

    pub(in crate::curator) fn at(&self, point: Point) -> Evaluation {
        let rows = self.over_chunks(|_, chunk, weight| {
            passes::gradient(Simd::best(), chunk, &point, self.loss, weight)
        });
        let mut rest = self.linear.to_vec();
        point.add_scaled_to(&mut rest, self.modulus);
        let parts = rows.sum.iter().zip(&rest).zip(&rows.lost);
        let gradient: Vec<f64> = parts.map(|((g, rest), lost)| (g + rest) + lost).collect();
        Evaluation {
            residual: norm(&gradient),
            point,
            gradient,
        }
    }

    /// Every chunk, with the weight `C/B_i` of its rows.
    pub(in crate::curator) fn chunks(&self) -> Vec<(&Chunk, f64)> {
        let mut chunks = Vec::new();
        for &shard in &self.shards {
            let weight = self.weight / shard.rows() as f64;
            chunks.extend(shard.chunks().iter().map(|chunk| (chunk, weight)));
        }
        if self.stride == 1 {
            return chunks;
        }
        let weigh = |chunks: &[(&Chunk, f64)]| -> f64 {
            chunks
                .iter()
                .map(|(chunk, weight)| weight * chunk.rows() as f64)
                .sum()
        };
        let all = weigh(&chunks);
        let mut some: Vec<_> = chunks.into_iter().step_by(self.stride).collect();
        let heavier = all / weigh(&some);
        some.iter_mut().for_each(|(_, weight)| *weight *= heavier);
        some
    }

    /// The sum of what the chunks have, in their order.
    pub(in crate::curator) fn over_chunks(
        &self,
        of: impl Fn(usize, &Chunk, f64) -> Sum + Sync,
    ) -> Sum {
        let mut total = Sum::zero(self.linear.len());
        let chunks = self.chunks();
        for (first, some) in chunks.chunks(AT_ONCE).enumerate() {
            let sums = gather(self.executor, some.len(), |k| {
                let (chunk, weight) = some[k];
                of(first * AT_ONCE + k, chunk, weight)
            });
            sums.iter().for_each(|sum| total.add_all(sum));
        }
        total
    }

    /// `(C/B_i) L''(fᵀz_n)`, row by row of each chunk.
    pub(in crate::curator) fn curvatures(&self, point: &Point) -> Vec<Vec<f64>> {
        let chunks = self.chunks();
        gather(self.executor, chunks.len(), |k| {
            let (chunk, weight) = chunks[k];
            passes::curvatures(Simd::best(), chunk, point, self.loss, weight)
        })
    }

    /// The lower triangle of `Σ_n curvature_n z_n z_nᵀ`.
    pub(in crate::curator) fn hessian(&self, point: &Point) -> Vec<f64> {
        let d = self.linear.len();
        let chunks = self.chunks();
        let pieces: Vec<&[(&Chunk, f64)]> = chunks.chunks(chunks.len().div_ceil(PIECES)).collect();
        let parts = gather(self.executor, pieces.len(), |k| {
            let mut hessian = vec![0.0; d * d];
            for (chunk, weight) in pieces[k] {
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

    /// `∇²F(f)`, all entries.
    pub(in crate::curator) fn hessian_at(&self, f: &[f64]) -> Vec<f64> {
        let d = f.len();
        let mut hessian = self.hessian(&Point::plain(f));
        for i in 0..d {
            hessian[i * d + i] += self.modulus;
            for j in 0..i {
                hessian[j * d + i] = hessian[i * d + j];
            }
        }
        hessian
    }

    pub(in crate::curator) fn hessian_times(
        &self,
        curvatures: &[Vec<f64>],
        vector: &[f64],
    ) -> Vec<f64> {
        let along = Point::plain(vector);
        let total = self.over_chunks(|k, chunk, _| {
            passes::product(Simd::best(), chunk, &along, &curvatures[k])
        });
        let parts = total.sum.iter().zip(&total.lost).zip(vector);
        parts
            .map(|((sum, lost), v)| (sum + lost) + self.modulus * v)
            .collect()
    }
}

/// `fᵀz_n` of every row.
pub(in crate::curator) fn margins(shard: &Shard, at: &[f64]) -> Vec<f64> {
    let at = Point::plain(at);
    let chunks = shard.chunks().iter();
    chunks
        .flat_map(|chunk| passes::margins(Simd::best(), chunk, &at))
        .collect()
}

/// `(1/B) Σ_n L(fᵀz_n)`, and the share of rows with `fᵀz_n > 0`, those with `fᵀz_n = 0` counted half.
pub(in crate::curator) fn mean_loss_and_accuracy(
    shard: &Shard,
    loss: Loss,
    at: &[f64],
    executor: &dyn ChunkExecutor,
) -> (f64, f64) {
    let at = Point::plain(at);
    let chunks = shard.chunks();
    let of = |k: usize| passes::losses(Simd::best(), &chunks[k], &at, loss);
    let (mut sum, mut right) = (0.0, 0.0);
    for (more, also) in gather(executor, chunks.len(), of) {
        sum += more;
        right += also;
    }
    let rows = shard.rows() as f64;
    (sum / rows, right / rows)
}
