//! Dot products and norms in the plain order of summation.
//!
//! The factorisations and the passes over rows have dot products of their own, because their order of summation differs.

/// Returns `aᵀb`.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns `‖vector‖₂`.
pub(crate) fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}
