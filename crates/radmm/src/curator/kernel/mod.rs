//! Vectorised passes over rows.

pub(super) mod exp_log;
pub(super) mod hessian;
pub(super) mod loss;
pub(super) mod passes;
