//! Linear algebra that gives the same bits on every machine.

pub(crate) mod cholesky;
pub(crate) mod dot;
pub(crate) mod eigen;
pub(crate) mod simd;
pub(crate) mod spectral_radius;
pub(crate) mod symmetric;
