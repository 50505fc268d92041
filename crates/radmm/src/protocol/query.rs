//! Questions to the rows of one party.

use std::sync::Arc;

use super::metric::Metric;

/// A question to the rows of one party. Its coefficients are public: functions of released values.
///
/// Sums over rows are in units of `scale`, a public power of two: see [`sum_scale`].
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// `argmin_f O(f) + ⟨b, f⟩ + (a/2)‖f‖²`.
    Minimise {
        /// `a ≥ 0`.
        quadratic: f64,
        /// `b`.
        linear: Vec<f64>,
        /// The starting point of the solver, unless it keeps a better one. It is public too.
        near: Vec<f64>,
    },
    /// `∇O(f)`.
    Gradient {
        /// `f`.
        at: Vec<f64>,
    },
    /// `scale · Σ_n L'(fᵀz_n) z_n`, without weights and without the ridge. In a metric `A`, a row is `Az/‖Az‖`.
    GradientSum {
        /// `f`, in the coordinates of the metric.
        at: Vec<f64>,
        /// The unit of the sum.
        scale: f64,
        /// `A`; `None` is the identity, with rows as they are.
        metric: Option<Arc<Metric>>,
    },
    /// `scale · Σ_n x_n x_nᵀ`, as [`gram_width`] numbers: row by row, `G_aa` and `√2·G_ab` for `b < a`.
    GramSum {
        /// The unit of the sum.
        scale: f64,
        /// The size of the noise, relative to the mechanism's.
        noise: f64,
    },
    /// `scale · Σ_n x_n`.
    RowSum {
        /// The unit of the sum.
        scale: f64,
        /// The size of the noise, relative to the mechanism's.
        noise: f64,
    },
}

impl Query {
    /// Returns the number of values of an answer, for rows of `columns` columns.
    pub fn width(&self, columns: usize) -> usize {
        match self {
            Self::GramSum { .. } => gram_width(columns),
            _ => columns,
        }
    }
}

/// Returns `d(d + 1)/2`, the number of different entries of a symmetric matrix.
pub fn gram_width(columns: usize) -> usize {
    columns * (columns + 1) / 2
}

/// The binary logarithm of the largest sum over all rows.
const SUM_EXPONENT: i32 = 11;

/// Returns the unit of sums over `total_rows` rows: the power of two at which a sum of unit vectors is above `2¹⁰` and at
/// most `2¹¹`.
///
/// There the grid is far finer than any useful noise, and doubles hold sums of grid points exactly, however many parties.
pub fn sum_scale(total_rows: usize) -> f64 {
    let rows = total_rows.max(1).next_power_of_two().ilog2() as i32;
    libm::scalbn(1.0, SUM_EXPONENT - rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_unit_rows_stay_below_the_limit_and_use_half_of_it() {
        for rows in [1, 2, 3, 100, 1024, 30_162, 1 << 26, 1_000_000_007] {
            let largest = sum_scale(rows) * rows as f64;
            assert!(largest > 1024.0 && largest <= 2048.0, "{rows}: {largest}");
        }
    }
}
