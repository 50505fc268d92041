//! The description of a pass.

mod encoding;

use std::ops::Range;
use std::sync::Arc;

use crate::curator::solver::double_double::Point;
use crate::problem::Loss;
use crate::protocol::metric::Metric;

/// The largest number of parts of a sum of matrices, which are computed independently.
pub(in crate::curator) const MATRIX_PARTS: usize = 8;

/// A pass over the rows: what is summed, and over which chunks.
#[derive(Clone)]
pub(in crate::curator) struct Pass {
    pub summand: Summand,
    /// The stride between the chunks in use. A stride of 1 uses all rows, a larger one a subsample.
    pub stride: usize,
}

/// A quantity that a pass sums over the rows `z = y·x`, or returns row by row.
#[derive(Clone)]
pub(in crate::curator) enum Summand {
    /// `w·L'(fᵀz) z`; in a metric `w·L'(q·fᵀz)·q·z`, with the factor `q` of the row in it.
    Gradient {
        at: Point,
        loss: Loss,
        weight: f64,
        metric: Option<Arc<Metric>>,
    },
    /// `w·L''(fᵀz) z zᵀ`, as a lower triangle.
    Hessian(CurvaturesAt),
    /// `w·L''(fᵀz) (vᵀz) z`.
    HessianProduct {
        curvatures: CurvaturesAt,
        vector: Point,
    },
    /// The diagonal of the Hessian, added to `start` in each column.
    HessianDiagonal {
        curvatures: CurvaturesAt,
        start: f64,
    },
    /// `√(w·L''(fᵀz))`, row by row.
    RootCurvature(CurvaturesAt),
    /// `x xᵀ`, as a lower triangle, each product rounded to a multiple of `unit`.
    Gram { unit: f64 },
    /// `w·x`, without the label.
    Row { weight: f64 },
    /// `w_n·z_n`, given a weight for each row in use.
    WeightedRow { weights: Vec<f64> },
    /// The products of all pairs of rows, as a lower triangle.
    RowProduct,
    /// `L(fᵀz)`, and the number of rows with `fᵀz > 0`, where rows with `fᵀz = 0` count half.
    Loss { at: Point, loss: Loss },
    /// `fᵀz`, row by row.
    Margin { at: Point },
    /// The label `y`, row by row.
    Label,
}

/// The curvatures `w·L''(fᵀz)` of the rows at a point.
#[derive(Clone)]
pub(in crate::curator) struct CurvaturesAt {
    pub at: Point,
    pub loss: Loss,
    pub weight: f64,
}

impl Pass {
    /// Creates a pass over all rows.
    pub(in crate::curator) fn over_all(summand: Summand) -> Self {
        Self { summand, stride: 1 }
    }

    /// Returns the number of chunks in use, of so many.
    pub(in crate::curator) fn chunks_in_use(&self, chunks: usize) -> usize {
        chunks.div_ceil(self.stride)
    }

    /// Returns the parts of the pass, as ranges of the chunks in use. They depend on the number of chunks alone.
    pub(in crate::curator) fn parts(&self, in_use: usize) -> impl Iterator<Item = Range<usize>> {
        let length = match self.summand {
            Summand::Hessian(_) | Summand::Gram { .. } => in_use.div_ceil(MATRIX_PARTS),
            // Plain sums over all rows, in their order.
            Summand::HessianDiagonal { .. } | Summand::RowProduct => in_use,
            _ => 1,
        };
        let firsts = (0..in_use).step_by(length.max(1));
        firsts.map(move |first| first..in_use.min(first + length))
    }

    /// Returns the numbers of numbers of a part's sum and of its correction, given the number of its rows.
    pub(in crate::curator) fn lengths(&self, columns: usize, rows: usize) -> (usize, usize) {
        match self.summand {
            Summand::Gradient { .. }
            | Summand::HessianProduct { .. }
            | Summand::Row { .. }
            | Summand::WeightedRow { .. } => (columns, columns),
            Summand::Hessian(_) | Summand::Gram { .. } => (columns * columns, 0),
            Summand::HessianDiagonal { .. } => (columns, 0),
            Summand::RowProduct => (rows * rows, 0),
            Summand::Loss { .. } => (2, 0),
            Summand::RootCurvature(_) | Summand::Margin { .. } | Summand::Label => (rows, 0),
        }
    }
}
