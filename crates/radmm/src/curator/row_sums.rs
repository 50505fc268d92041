//! Sums over all rows of a shard: gradients, in a metric or not, the Gram matrix, and the rows themselves.
//!
//! In a metric `A` a row is `A(q·z)` with `q = 1/‖Az‖`. Rows stay sparse: margins are `q·zᵀ(Af)` and the sum is
//! `A·Σ_n L'·q·z_n`, so that only `q` is kept for each row.

use std::sync::Arc;

use super::config::MAX_CHUNKS;
use super::kernel::exp_log::LANES;
use super::kernel::passes::CompensatedSum;
use super::row_passes::{MATRIX_PARTS, Pass, PassFailed, RowPasses, Summand};
use super::rows::chunk::{CHUNK_ROWS, Chunk};
use super::solver::double_double::Point;
use crate::linalg::dot::norm;
use crate::problem::Loss;
use crate::protocol::metric::Metric;
use crate::protocol::query::gram_width;

/// The point and the metric of a sum of gradients.
#[derive(Clone, Copy)]
pub(super) struct GradientPlace<'a> {
    pub at: &'a [f64],
    pub metric: Option<&'a Arc<Metric>>,
    /// Whether margins are computed in double-double arithmetic.
    pub doubled: bool,
}

/// Returns `1/‖Az_n‖` row by row, rounded down so far that `‖q·Az_n‖ ≤ 1` holds in exact arithmetic; zero for a row of zeros.
// Privacy: a factor must be a function of its row and of A alone. Which rows share a chunk decides the order in which entries
// are stored, so they are sorted first. Each coordinate of Az has a relative error of (k + 1)u in terms of absolute values, so
// the vector is within (d + 1)u·‖A‖_F‖z‖ of the exact one, and ‖z‖ ≤ ‖A⁻¹‖‖Az‖. The norm adds (d + 2)u. Any factor that is
// below 1/‖Az‖ would do as well: what it computes is then defined by the factor, not approximated.
pub(super) fn factors(metric: &Metric, chunk: &Chunk) -> Vec<f64> {
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

/// Returns `scale·Σ_n L'(fᵀz_n) z_n`, in a metric if there is one.
pub(super) fn gradient(
    rows: &dyn RowPasses,
    (loss, scale): (Loss, f64),
    place: GradientPlace<'_>,
) -> Result<Vec<f64>, PassFailed> {
    let GradientPlace {
        at,
        metric,
        doubled,
    } = place;
    let point = match metric {
        Some(metric) => Point::plain(&metric.apply(at)),
        None => Point::plain(at),
    };
    let pass = Pass::over_all(Summand::Gradient {
        at: if doubled { point.doubled() } else { point },
        loss,
        weight: scale,
        metric: metric.cloned(),
    });
    let sum = rows.total(&pass)?.rounded();
    Ok(match metric {
        Some(metric) => metric.apply(&sum),
        None => sum,
    })
}

/// Returns `scale·Σ_n x_n`, without labels.
pub(super) fn rows(rows: &dyn RowPasses, scale: f64) -> Result<Vec<f64>, PassFailed> {
    let pass = Pass::over_all(Summand::Row { weight: scale });
    Ok(rows.total(&pass)?.rounded())
}

/// Returns `scale·Σ_n x_n x_nᵀ` as packed numbers: `G_aa`, and `√2·G_ab` for `b < a`.
// Privacy: every product is rounded to a multiple of a public unit so large that the sum over a part of the rows is exact, and
// that of the parts is kept with its errors, which are multiples of the unit too. So a row's contribution is a function of the
// row alone, and the sum does not depend on the order of the rows.
pub(super) fn gram(rows: &dyn RowPasses, scale: f64) -> Result<Vec<f64>, PassFailed> {
    let d = rows.columns();
    let unit = gram_unit(rows.rows());
    let mut sum = CompensatedSum::zero(d * d);
    rows.run(&Pass::over_all(Summand::Gram { unit }), &mut |part| {
        sum.add_exactly(&part.sum);
    })?;
    let sum = sum.rounded();
    let mut packed = Vec::with_capacity(gram_width(d));
    for a in 0..d {
        for b in 0..=a {
            let unit = if a == b {
                1.0
            } else {
                std::f64::consts::SQRT_2
            };
            packed.push(unit * (scale * sum[a * d + b]));
        }
    }
    Ok(packed)
}

/// The exponent of the largest unit of products. The price of a Gram matrix allows for its rounding.
const LARGEST_UNIT: i32 = -23;

// Privacy: doubles hold sums of 2³⁰ numbers up to one exactly, in units of 2⁻²³, and no part of a pass has more rows.
const _: () = assert!(MAX_CHUNKS / MATRIX_PARTS * CHUNK_ROWS <= 1 << 30);

/// Returns the unit to which products of entries are rounded: doubles hold sums of `rows` numbers up to one exactly, or of the
/// rows of one part if there are more than 2³⁰.
pub(super) fn gram_unit(rows: usize) -> f64 {
    let exponent = rows.next_power_of_two().ilog2() as i32 - 50;
    libm::scalbn(1.0, exponent.min(LARGEST_UNIT))
}

#[cfg(test)]
mod tests;
