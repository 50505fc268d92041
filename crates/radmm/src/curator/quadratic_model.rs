//! The quadratic model of an objective near a point: its Hessian alone.
//!
//! Answers are those of `O(f) = ½fᵀHf`, whose minimum is at zero, so that every algorithm becomes a linear map of its
//! state.

use crate::linalg::cholesky::Cholesky;
use crate::protocol::query::Query;

/// A party's rows as a quadratic form.
///
/// It reveals as much as the rows themselves, so it exists for the simulator alone, whose rows are unprotected.
pub(crate) struct QuadraticModel {
    d: usize,
    /// All entries of `H`.
    hessian: Vec<f64>,
    /// `a` and the factor of `H + aI`. As a rule `a` is the same at every data step.
    factor: Option<(f64, Cholesky)>,
}

impl QuadraticModel {
    /// Creates the model from all entries of `H`, row by row.
    pub(super) fn new(hessian: Vec<f64>, d: usize) -> Self {
        Self {
            d,
            hessian,
            factor: None,
        }
    }

    /// Returns the answer without noise: `−(H + aI)⁻¹b`, or `Hf`; `None` if rounding hides that `H + aI` is positive
    /// definite.
    pub(crate) fn answer(&mut self, query: &Query) -> Option<Vec<f64>> {
        match query {
            // Sums over rows belong to algorithms that have no rate.
            Query::GradientSum { .. } | Query::GramSum { .. } | Query::RowSum { .. } => None,
            Query::Gradient { at } => {
                let rows = self.hessian.chunks_exact(self.d);
                Some(
                    rows.map(|row| row.iter().zip(at).map(|(h, f)| h * f).sum())
                        .collect(),
                )
            }
            Query::Minimise {
                quadratic, linear, ..
            } => {
                if self.factor.as_ref().is_none_or(|(a, _)| a != quadratic) {
                    let factor = Cholesky::new(&self.hessian, self.d, *quadratic)?;
                    self.factor = Some((*quadratic, factor));
                }
                let (_, factor) = self.factor.as_ref()?;
                let mut answer: Vec<f64> = linear.iter().map(|b| -b).collect();
                factor.solve(&mut answer);
                Some(answer)
            }
        }
    }
}
