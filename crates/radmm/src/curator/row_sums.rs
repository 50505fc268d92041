//! Sums over all rows of a shard: gradients, in a metric or not, the Gram matrix, and the rows themselves.
//!
//! In a metric `A` a row is `A(q·z)` with `q = 1/‖Az‖`. Rows stay sparse: margins are `q·zᵀ(Af)` and the sum is
//! `A·Σ_n L'·q·z_n`, so that only `q` is kept for each row.

use std::sync::Arc;

use super::kernel::passes::{self, CompensatedSum};
use super::kernel::{exp_log::LANES, hessian};
use super::rows::chunk::Chunk;
use super::rows::shard::Shard;
use super::solver::double_double::Point;
use crate::exec::{ChunkExecutor, gather};
use crate::linalg::dot::norm;
use crate::linalg::simd::Simd;
use crate::problem::Loss;
use crate::protocol::metric::Metric;
use crate::protocol::query::gram_width;

/// The number of chunks whose sums are held in memory at once before they are added up.
const CHUNKS_AT_ONCE: usize = 32;

/// The factor `q` of every row in a metric, by chunk, with padding rows.
pub(super) struct RowFactors {
    metric: Arc<Metric>,
    by_chunk: Vec<Vec<f64>>,
}

impl RowFactors {
    /// Computes the factors in one pass over the rows.
    pub(super) fn new(metric: &Arc<Metric>, shard: &Shard, executor: &dyn ChunkExecutor) -> Self {
        let chunks = shard.chunks();
        Self {
            by_chunk: gather(executor, chunks.len(), |k| factors(metric, &chunks[k])),
            metric: metric.clone(),
        }
    }

    /// Returns whether these are the factors of this metric.
    pub(super) fn are_of(&self, metric: &Arc<Metric>) -> bool {
        Arc::ptr_eq(&self.metric, metric) || self.metric == *metric
    }
}

/// Returns `1/‖Az_n‖` row by row, rounded down so far that `‖q·Az_n‖ ≤ 1` holds in exact arithmetic; zero for a row of zeros.
// Privacy: a factor must be a function of its row and of A alone. Which rows share a chunk decides the order in which entries
// are stored, so they are sorted first. Each coordinate of Az has a relative error of (k + 1)u in terms of absolute values, so
// the vector is within (d + 1)u·‖A‖_F‖z‖ of the exact one, and ‖z‖ ≤ ‖A⁻¹‖‖Az‖. The norm adds (d + 2)u. Any factor that is
// below 1/‖Az‖ would do as well: what it computes is then defined by the factor, not approximated.
fn factors(metric: &Metric, chunk: &Chunk) -> Vec<f64> {
    let columns = metric.columns();
    let roundings = (columns + 4) as f64 * f64::EPSILON;
    let margin = 1.0 + roundings * (2.0 + metric.gain() * metric.inverse_gain());
    let mut factors = vec![0.0; chunk.rows().next_multiple_of(LANES)];
    let (mut entries, mut image) = (Vec::new(), vec![0.0; columns]);
    chunk.for_each_row(|n, columns, values, _| {
        entries.clear();
        entries.extend(columns.iter().copied().zip(values.iter().copied()));
        entries.sort_unstable_by_key(|(column, _)| *column);
        image.fill(0.0);
        for (column, value) in &entries {
            let row = metric.row(*column as usize);
            for (image, entry) in image.iter_mut().zip(row) {
                *image += value * entry;
            }
        }
        let length = norm(&image);
        // A row so short that its square underflows counts as zero.
        factors[n] = if length > 1e-100 {
            1.0 / (length * margin)
        } else {
            0.0
        };
    });
    factors
}

/// Returns `scale·Σ_n L'(fᵀz_n) z_n`, in a metric if there are factors.
pub(super) fn gradient(
    shard: &Shard,
    (loss, scale): (Loss, f64),
    at: &[f64],
    factors: Option<&RowFactors>,
    doubled: bool,
    executor: &dyn ChunkExecutor,
) -> Vec<f64> {
    let at = match factors {
        Some(factors) => factors.metric.apply(at),
        None => at.to_vec(),
    };
    let point = Point::plain(&at);
    let point = if doubled { point.doubled() } else { point };
    let chunks = shard.chunks();
    let sum = sum_over_chunks(chunks.len(), at.len(), executor, |k| {
        let factors = factors.map(|factors| factors.by_chunk[k].as_slice());
        passes::gradient(Simd::best(), &chunks[k], &point, (loss, scale), factors)
    });
    match factors {
        Some(factors) => factors.metric.apply(&sum),
        None => sum,
    }
}

/// Returns `scale·Σ_n x_n`, without labels.
pub(super) fn rows(shard: &Shard, scale: f64, executor: &dyn ChunkExecutor) -> Vec<f64> {
    let chunks = shard.chunks();
    sum_over_chunks(chunks.len(), shard.columns(), executor, |k| {
        // A row is stored as y·x, and y² = 1.
        let labels: Vec<f64> = chunks[k]
            .labels()
            .map(|positive| if positive { scale } else { -scale })
            .collect();
        passes::weighted_sum(Simd::best(), &chunks[k], shard.columns(), &labels)
    })
}

fn sum_over_chunks(
    chunks: usize,
    columns: usize,
    executor: &dyn ChunkExecutor,
    of: impl Fn(usize) -> CompensatedSum + Sync,
) -> Vec<f64> {
    let mut total = CompensatedSum::zero(columns);
    for first in (0..chunks).step_by(CHUNKS_AT_ONCE) {
        let count = (chunks - first).min(CHUNKS_AT_ONCE);
        let sums = gather(executor, count, |k| of(first + k));
        sums.iter().for_each(|sum| total.add_all(sum));
    }
    let parts = total.sum.iter().zip(&total.correction);
    parts.map(|(sum, correction)| sum + correction).collect()
}

/// The number of parts of a Gram matrix that are computed independently.
const GRAM_PARTS: usize = 8;

/// Returns `scale·Σ_n x_n x_nᵀ` as packed numbers: `G_aa`, and `√2·G_ab` for `b < a`.
// Privacy: every product is rounded to a multiple of a public unit so large that the sum over all rows is exact. So a row's
// contribution is a function of the row alone, and the sum does not depend on the order of the rows.
pub(super) fn gram(shard: &Shard, scale: f64, executor: &dyn ChunkExecutor) -> Vec<f64> {
    let d = shard.columns();
    let chunks = shard.chunks();
    let batches: Vec<&[Chunk]> = chunks.chunks(chunks.len().div_ceil(GRAM_PARTS)).collect();
    let parts = gather(executor, batches.len(), |k| {
        let mut gram = vec![0.0; d * d];
        for chunk in batches[k] {
            hessian::add_gram(Simd::best(), chunk, gram_unit(shard.rows()), &mut gram);
        }
        gram
    });
    let mut packed = Vec::with_capacity(gram_width(d));
    for a in 0..d {
        for b in 0..=a {
            let sum: f64 = parts.iter().map(|part| part[a * d + b]).sum();
            let unit = if a == b {
                1.0
            } else {
                std::f64::consts::SQRT_2
            };
            packed.push(unit * (scale * sum));
        }
    }
    packed
}

/// Returns the unit to which products of entries are rounded: doubles hold sums of `rows` numbers up to one exactly.
pub(super) fn gram_unit(rows: usize) -> f64 {
    libm::scalbn(1.0, rows.next_power_of_two().ilog2() as i32 - 50)
}

#[cfg(test)]
mod tests;
