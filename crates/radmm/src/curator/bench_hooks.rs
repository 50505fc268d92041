//! Entry points for measuring passes over rows, for `bench/` alone.
//!
//! Privacy: these give unprotected sums of rows. They exist only with the feature `bench`, which no other crate turns
//! on.

use super::kernel::{hessian, passes};
use super::row_sums::gram_unit;
use super::rows::chunk::Chunk;
use super::rows::shard::Shard;
use super::solver::double_double::Point;
use crate::linalg::simd::Simd;
use crate::problem::Loss;

/// The vector instructions to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorUnits {
    /// The widest that the processor has.
    Best,
    /// The baseline that every processor of the target has.
    Plain,
}

/// Rows to measure passes on.
pub struct MeasuredRows {
    shard: Shard,
    simd: Simd,
}

impl MeasuredRows {
    /// Creates a measurement on these rows.
    pub fn new(shard: Shard, units: VectorUnits) -> Self {
        let simd = match units {
            VectorUnits::Best => Simd::best(),
            VectorUnits::Plain => Simd::Plain,
        };
        Self { shard, simd }
    }

    /// Returns the number of bytes that the rows occupy.
    pub fn bytes(&self) -> usize {
        self.shard.chunks().into_iter().map(Chunk::bytes).sum()
    }

    /// Sums all stored arrays plainly: the cost of reading the rows.
    pub fn plain_sum(&self) -> f64 {
        self.shard.chunks().into_iter().map(Chunk::plain_sum).sum()
    }

    /// Computes margins and the gradient of the logistic loss in one pass; returns its first coordinate.
    pub fn gradient(&self, f: &[f64]) -> f64 {
        let point = Point::plain(f);
        let of =
            |chunk| passes::gradient(self.simd, chunk, &point, (Loss::Logistic, 1.0), None).sum[0];
        self.shard.chunks().into_iter().map(of).sum()
    }

    /// Computes the same with margins in double-double arithmetic.
    pub fn exact_gradient(&self, f: &[f64]) -> f64 {
        let point = Point::plain(f).doubled();
        let of =
            |chunk| passes::gradient(self.simd, chunk, &point, (Loss::Logistic, 1.0), None).sum[0];
        self.shard.chunks().into_iter().map(of).sum()
    }

    /// Computes margins and losses; returns their sum.
    pub fn losses(&self, f: &[f64]) -> f64 {
        let point = Point::plain(f);
        let of = |chunk| passes::losses(self.simd, chunk, &point, Loss::Logistic).0;
        self.shard.chunks().into_iter().map(of).sum()
    }

    /// Computes margins, curvatures and the Hessian; returns its first entry.
    pub fn hessian(&self, f: &[f64]) -> f64 {
        let point = Point::plain(f);
        let mut hessian = vec![0.0; f.len() * f.len()];
        for chunk in self.shard.chunks() {
            let curvatures = passes::curvatures(self.simd, chunk, &point, Loss::Logistic, 1.0);
            hessian::add(self.simd, chunk, &curvatures, &mut hessian);
        }
        hessian[0]
    }

    /// Computes the Gram matrix; returns its first entry.
    pub fn gram(&self, f: &[f64]) -> f64 {
        let mut gram = vec![0.0; f.len() * f.len()];
        let unit = gram_unit(self.shard.rows());
        for chunk in self.shard.chunks() {
            hessian::add_gram(self.simd, chunk, unit, &mut gram);
        }
        gram[0]
    }
}
