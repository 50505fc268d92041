//! Dot products and norms in the plain order of summation.
//!
//! The factorisation and the passes over rows have dot products of their own, because their order of summation differs.

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(crate) fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}
