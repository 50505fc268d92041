//! Vectorised passes over rows.

pub(super) mod exp_log;
pub(super) mod hessian;
mod indicator_products;
pub(super) mod loss;
pub(super) mod passes;
