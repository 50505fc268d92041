//! NoisePlacement points for measuring passes over rows, for `bench/` alone.
//!
//! Privacy: these give unprotected sums of rows. They exist only with the feature `bench`, which no other crate turns on.

use super::kernel::{hessian, passes};
use super::rows::chunk::Chunk;
use super::rows::shard::Shard;
use super::solver::double_double::Point;
use crate::linalg::simd::Simd;
use crate::problem::Loss;

/// Which vector instructions to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorUnits {
    /// The widest that there are.
    Best,
    /// Those that every processor of the kind has.
    Plain,
}

/// Rows to be measured.
pub struct MeasuredRows {
    shard: Shard,
    simd: Simd,
}

impl MeasuredRows {
    /// Takes the rows in.
    pub fn new(shard: Shard, units: VectorUnits) -> Self {
        let simd = match units {
            VectorUnits::Best => Simd::best(),
            VectorUnits::Plain => Simd::Plain,
        };
        Self { shard, simd }
    }

    /// How many bytes the rows take.
    pub fn bytes(&self) -> usize {
        self.shard.chunks().iter().map(Chunk::bytes).sum()
    }

    /// A plain sum over all arrays.
    pub fn plain_sum(&self) -> f64 {
        self.shard.chunks().iter().map(Chunk::plain_sum).sum()
    }

    /// Margins and gradient of the logistic loss: one pass.
    pub fn gradient(&self, f: &[f64]) -> f64 {
        let point = Point::plain(f);
        let of = |chunk| passes::gradient(self.simd, chunk, &point, Loss::Logistic, 1.0).sum[0];
        self.shard.chunks().iter().map(of).sum()
    }

    /// The same with doubled margins.
    pub fn exact_gradient(&self, f: &[f64]) -> f64 {
        let point = Point::plain(f).doubled();
        let of = |chunk| passes::gradient(self.simd, chunk, &point, Loss::Logistic, 1.0).sum[0];
        self.shard.chunks().iter().map(of).sum()
    }

    /// Margins and losses.
    pub fn losses(&self, f: &[f64]) -> f64 {
        let point = Point::plain(f);
        let of = |chunk| passes::losses(self.simd, chunk, &point, Loss::Logistic).0;
        self.shard.chunks().iter().map(of).sum()
    }

    /// Margins, curvatures and the Hessian.
    pub fn hessian(&self, f: &[f64]) -> f64 {
        let point = Point::plain(f);
        let mut hessian = vec![0.0; f.len() * f.len()];
        for chunk in self.shard.chunks() {
            let curvatures = passes::curvatures(self.simd, chunk, &point, Loss::Logistic, 1.0);
            hessian::add(self.simd, chunk, &curvatures, &mut hessian);
        }
        hessian[0]
    }
}
