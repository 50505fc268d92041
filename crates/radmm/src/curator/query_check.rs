//! The check of a query before it is priced.
//!
//! A query is built from what neighbours released, so it is not trusted.

use super::Refusal;
use crate::linalg::dot::norm;
use crate::problem::Problem;
use crate::protocol::metric::MAX_METRIC_COLUMNS;
use crate::protocol::query::Query;

/// The least strong convexity of a query with a linear term. Below it, a hostile query can be found that is certified
/// for some rows and not for others. A query without a linear term, as in training alone, comes from the party itself.
const LEAST_MODULUS: f64 = 1e-3;

/// Refuses a sum whose unit is not a power of two, or whose noise has no size.
fn check_scale(scale: f64, noise: f64) -> Result<(), Refusal> {
    let power_of_two = scale.is_normal() && scale > 0.0 && scale.to_bits().trailing_zeros() >= 52;
    // Written so that a NaN is refused.
    let sized = noise > 0.0 && noise.is_finite();
    match power_of_two && sized {
        true => Ok(()),
        false => Err(Refusal::Malformed(
            "the unit of a sum must be a power of two, and the size of its noise positive",
        )),
    }
}

/// Refuses a query that is malformed or too large.
// Privacy: without a limit on its size, a neighbour could cause a query that is certified for some rows and not for
// others, and learn a row from the refusal. This refusal depends on public values alone.
pub(super) fn check(query: &Query, columns: usize, problem: &Problem) -> Result<(), Refusal> {
    let vectors: &[&[f64]] = match query {
        Query::Minimise {
            quadratic,
            linear,
            near,
        } => {
            if !(quadratic.is_finite() && *quadratic >= 0.0) {
                return Err(Refusal::Malformed(
                    "its quadratic coefficient is negative or not finite",
                ));
            }
            &[linear, near]
        }
        Query::Gradient { at } => &[at],
        Query::GradientSum { at, scale, metric } => {
            check_scale(*scale, 1.0)?;
            if metric
                .as_ref()
                .is_some_and(|metric| metric.columns() != columns)
            {
                return Err(Refusal::Malformed("its metric has the wrong dimension"));
            }
            &[at]
        }
        Query::GramSum { scale, noise } => {
            check_scale(*scale, *noise)?;
            if columns > MAX_METRIC_COLUMNS {
                return Err(Refusal::Malformed(
                    "there are too many columns for a Gram matrix; use metric = \"none\"",
                ));
            }
            &[]
        }
        Query::RowSum { scale, noise } => {
            check_scale(*scale, *noise)?;
            &[]
        }
    };
    for vector in vectors {
        if vector.len() != columns {
            return Err(Refusal::Malformed("it has the wrong dimension"));
        }
        if !vector.iter().all(|value| value.is_finite()) {
            return Err(Refusal::Malformed(
                "a coefficient is not finite; the algorithm has diverged",
            ));
        }
    }
    let size = match query {
        Query::Minimise {
            quadratic,
            linear,
            near,
        } => {
            let modulus = problem.share() + quadratic;
            if modulus < LEAST_MODULUS && linear.iter().any(|b| *b != 0.0) {
                return Err(Refusal::Malformed(
                    "its penalty is too small for a query with a linear term; raise the penalty or the ridge",
                ));
            }
            norm(linear) + modulus * norm(near)
        }
        Query::Gradient { at } => problem.share() * norm(at),
        // Sums over rows are bounded, wherever they are taken. The limit is on margins.
        Query::GradientSum { at, metric, .. } => {
            norm(at) * metric.as_ref().map_or(1.0, |metric| metric.gain())
        }
        Query::GramSum { .. } | Query::RowSum { .. } => 0.0,
    };
    let largest = problem.max_query_size();
    // Written so that an overflow is refused.
    let within_limit = size <= largest;
    if !within_limit {
        return Err(Refusal::TooLarge { size, largest });
    }
    Ok(())
}
