//! The Gaussian filter: a limit `(ε, δ)` kept by the sum of `v²` over answers with Gaussian noise, `v` the sensitivity over `σ`.
//!
//! A hundredth `ω` of `ε` is set aside for pure losses and for rounding on the grid, each release's `2κ`. What is left fixes
//! `μ`, and a release is admitted while
//!
//! ```text
//! Σ v² ≤ μ²,   Σ pure losses + Σ 2κ ≤ ω = ε/100,   with  ε(μ²; δ·e^(−ω/2)) = ε − ω
//! ```
//! `ε(μ²; δ)` being that of `gaussian_composition`. Both bounds are fixed before anything is released.

// Privacy: one row of one party is replaced. Queries, noise, prices and their number may be chosen by what was released before,
// in all studies together. Let τ be a transcript, P and P′ its probabilities under two neighbours with exact Gaussian answers,
// p and p′ those of the program, K(τ) the sum of κ and E(τ) that of pure losses, so that E + 2K ≤ ω on every transcript.
//
// 1. Exactly as in gaussian_composition, but with v_i chosen on the way. For a past with log ratio ℓ of its Gaussian answers and
//    with s = μ² − Σv² left, whatever follows has E(1 − e^(ε′ − ℓ − ΣL_i))⁺ ≤ h(ε′ − ℓ, s), by induction from the last release to
//    the first: given its past, a Gaussian answer adds L normal with mean a²/2 and variance a², a ≤ v, and so
//    E h(ε′ − ℓ − L, s − v²) = h(ε′ − ℓ, s − v² + a²) ≤ h(ε′ − ℓ, s), h growing in its second argument. Other releases leave ℓ
//    and s as they are. So E(1 − e^(ε′ − ΣL_i))⁺ ≤ h(ε′, μ²) at the start, under P (Smith and Thakurta 2022 prove the same).
// 2. For a set S of transcripts, with e^−K·P ≤ p ≤ e^K·P at each of them and ln(P/P′) ≤ E + ΣL_i,
//        p(S) − e^ε·p′(S) ≤ Σ_τ (e^K·P − e^(ε−K)·P′)⁺ ≤ e^(ω/2)·E_P(1 − e^(ε − 2K − E − ΣL_i))⁺ ≤ e^(ω/2)·h(ε − ω, μ²) = δ.
// 3. Where nothing but pure losses was charged, they may come to ε: split a set into the transcripts whose pure losses end at ε
//    at most, for which p ≤ e^ε·p′, and the others, which kept to the filter all the way: p ≤ e^ε·p′ + δ for the sum.

use super::composition::{Composition, log_down};
use super::privacy_loss::up;
use super::{Budget, gaussian_composition};

/// The share of `ε` that is set aside for pure losses and rounding.
const RESERVE: f64 = 0.01;

/// A limit at a `δ`, kept by the Gaussian filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct GaussianFilter {
    epsilon: f64,
    /// `ω`.
    pub(super) reserve: f64,
    /// `ln δ − ω/2`, rounded down.
    log_delta: f64,
}

impl GaussianFilter {
    pub(super) fn new(limit: &Budget) -> Self {
        let reserve = RESERVE * limit.epsilon;
        Self {
            epsilon: limit.epsilon,
            reserve,
            log_delta: (log_down(limit.delta) - reserve / 2.0).next_down(),
        }
    }

    /// Returns `μ`, rounded down.
    pub(super) fn largest_mu(&self) -> f64 {
        gaussian_composition::mu((self.epsilon - self.reserve).next_down(), self.log_delta)
    }

    pub(super) fn keeps_reserve(&self, total: &Composition) -> bool {
        total.beside_gaussian() <= self.reserve
    }

    /// Returns the least limit that would admit this total with this reserve, or the sum of pure losses if that is less.
    ///
    /// The reserve counts as spent from the first Gaussian answer on. Infinite if it is exceeded.
    pub(super) fn epsilon(&self, total: &Composition) -> f64 {
        let by_filter = match self.keeps_reserve(total) {
            true => {
                up(self.reserve + gaussian_composition::epsilon(total.square(), self.log_delta))
            }
            false => f64::INFINITY,
        };
        // A NaN is refused by what is compared with it.
        match total.epsilon(0.0) {
            pure if pure < by_filter => pure,
            _ => by_filter,
        }
    }
}
