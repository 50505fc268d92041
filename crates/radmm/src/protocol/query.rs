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
        /// Where to look first, unless earlier questions have shown a better place. It is public too.
        near: Vec<f64>,
    },
    /// `∇O(f)`.
    Gradient {
        /// `f`.
        at: Vec<f64>,
    },
}
