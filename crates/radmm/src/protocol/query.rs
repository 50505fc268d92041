//! Questions to the rows of one party.

/// A question to the rows of one party. Its coefficients are public: functions of released values.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// `argmin_f O(f) + ⟨b, f⟩ + (a/2)‖f‖²`.
    Minimise {
        /// `a ≥ 0`.
        quadratic: f64,
        /// `b`.
        linear: Vec<f64>,
        /// The starting point of the solver, unless it keeps a better one. It is public too.
        near: Vec<f64>,
    },
    /// `∇O(f)`.
    Gradient {
        /// `f`.
        at: Vec<f64>,
    },
}
