//! Convergence: the paper's sufficient condition, and the true rate near the optimum.

pub mod local_rate;
pub mod theorem;
