//! Passes over rows on vector units.

pub(super) mod exp_log;
pub(super) mod hessian;
pub(super) mod loss;
pub(super) mod passes;
