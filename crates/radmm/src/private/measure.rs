//! Entry points for measuring passes over rows, for `bench/` alone.
//!
//! Privacy: these give unprotected sums of rows. They exist only with the feature `bench`, which no other crate turns on.

use super::chunk::Chunk;
use super::hessian;
use super::kernel::{self, Path};
use super::loss::Loss;
use super::point::Point;
use super::shard::Shard;

/// Which vector instructions to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// The widest that there are.
    Best,
    /// Those that every processor of the kind has.
    Plain,
}

/// Rows to be measured.
pub struct Measured {
    shard: Shard,
    path: Path,
}

impl Measured {
    /// Takes the rows in.
    pub fn new(shard: Shard, units: Units) -> Self {
        let path = match units {
            Units::Best => Path::best(),
            Units::Plain => Path::Plain,
        };
        Self { shard, path }
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
        let of = |chunk| kernel::gradient(self.path, chunk, &point, Loss::Logistic, 1.0).sum[0];
        self.shard.chunks().iter().map(of).sum()
    }

    /// The same with doubled margins.
    pub fn exact_gradient(&self, f: &[f64]) -> f64 {
        let point = Point::plain(f).doubled();
        let of = |chunk| kernel::gradient(self.path, chunk, &point, Loss::Logistic, 1.0).sum[0];
        self.shard.chunks().iter().map(of).sum()
    }

    /// Margins and losses.
    pub fn losses(&self, f: &[f64]) -> f64 {
        let point = Point::plain(f);
        let of = |chunk| kernel::losses(self.path, chunk, &point, Loss::Logistic).0;
        self.shard.chunks().iter().map(of).sum()
    }

    /// Margins, curvatures and the Hessian.
    pub fn hessian(&self, f: &[f64]) -> f64 {
        let point = Point::plain(f);
        let mut hessian = vec![0.0; f.len() * f.len()];
        for chunk in self.shard.chunks() {
            let curvatures = kernel::curvatures(self.path, chunk, &point, Loss::Logistic, 1.0);
            hessian::add(self.path, chunk, &curvatures, &mut hessian);
        }
        hessian[0]
    }
}
