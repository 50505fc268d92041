//! R-ADMM (the paper's Algorithm 1): after each data step, `m` steps that reuse what its answer revealed.
//!
//! A data step leaves a model of `O_i` behind, its gradient `g` at a point `p`:
//! ```text
//! O_i(f) ≈ ⟨g, f − p⟩ + (γ/2)‖f − p‖²
//! ```
//! A recycled iteration `t` is ADMM's primal step on that model, and leaves the dual alone:
//! ```text
//! f_i(t) = f_i(t−1) − [ g + γ(f_i(t−1) − p) + 2λ_i + η Σ_j (f_i(t−1) − f_j(t−1)) ] / (2ηV_i + γ)
//! ```
//! with `η = η_i(t)`, `γ = γ_i(t)`. The first recycled step after an exact minimisation has `p = f_i(t−1)`, which is the
//! paper's eq. 10. Since `g` and `p` come out of released values, so does `f_i(t)`: it costs no privacy.

use super::admm::{Admm, Lagrangian, Penalty};
use super::schedule::Schedule;
use super::{Algorithm, Step, View};

/// The linear model of `O_i` that a data step leaves behind: its (noisy) gradient at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Linearisation {
    /// `p`.
    pub point: Vec<f64>,
    /// `g`.
    pub gradient: Vec<f64>,
}

impl Linearisation {
    /// Returns the model before the first data step.
    pub(super) fn flat(columns: usize) -> Self {
        Self {
            point: vec![0.0; columns],
            gradient: vec![0.0; columns],
        }
    }
}

/// An algorithm whose data steps leave a [`Linearisation`] behind.
pub trait Recyclable: Algorithm {
    /// Returns its penalty and dual.
    fn lagrangian(&self) -> &Lagrangian;

    /// Returns the model that the last data step left behind.
    fn linearisation(&self) -> &Linearisation;
}

/// `A` with `m` recycled steps after each data step: R-ADMM over ADMM, linearised R-ADMM over DLM.
pub struct Recycled<A> {
    inner: A,
    damping: Schedule,
    period: u32,
}

impl Recycled<Admm> {
    /// Creates the paper's R-ADMM at one node: constant penalty `η` and damping `γ`, one recycled step after each data step.
    pub fn admm(penalty: f64, damping: f64, columns: usize) -> Self {
        let admm = Admm::new(Penalty::common(Schedule::Constant(penalty)), columns);
        Self::new(admm, Schedule::Constant(damping), 1)
    }
}

impl<A: Recyclable> Recycled<A> {
    /// Wraps `inner` with `recycle = m` recycled steps after each data step; the paper's algorithm has `m = 1`.
    pub fn new(inner: A, damping: Schedule, recycle: u32) -> Self {
        Self {
            inner,
            damping,
            period: recycle + 1,
        }
    }

    fn asks_at(&self, iteration: u32) -> bool {
        (iteration - 1).is_multiple_of(self.period)
    }
}

impl<A: Recyclable> Algorithm for Recycled<A> {
    fn observe(&mut self, view: &View<'_>) {
        if view.iteration > 0 && self.asks_at(view.iteration) {
            self.inner.observe(view);
        }
    }

    fn next_step(&mut self, view: &View<'_>) -> Step {
        let t = view.iteration + 1;
        if self.asks_at(t) {
            return self.inner.next_step(view);
        }
        let lagrangian = self.inner.lagrangian();
        Step::Recycle(linearised_step(
            view,
            lagrangian,
            self.inner.linearisation(),
            self.damping.at(t),
        ))
    }

    fn absorb_answer(&mut self, view: &View<'_>, answer: &[f64]) -> Vec<f64> {
        self.inner.absorb_answer(view, answer)
    }

    fn implied_answer(&self, view: &View<'_>, next: &[f64]) -> Option<Vec<f64>> {
        self.inner.implied_answer(view, next)
    }

    fn answer_gain(&self, iteration: u32, degree: usize) -> f64 {
        self.inner.answer_gain(iteration, degree)
    }

    fn dual(&self) -> Option<&[f64]> {
        self.inner.dual()
    }
}

/// Returns ADMM's primal step for iteration `view.iteration + 1`, with `O_i` replaced by `model` and `(γ/2)‖f − p‖²`.
pub fn linearised_step(
    view: &View<'_>,
    lagrangian: &Lagrangian,
    model: &Linearisation,
    gamma: f64,
) -> Vec<f64> {
    let eta = lagrangian.eta(view.iteration + 1);
    let scale = 2.0 * eta * view.degree() + gamma;
    let mut next = lagrangian.penalty_gradient(view, eta);
    for (k, next) in next.iter_mut().enumerate() {
        let own = view.own[k];
        let slope = model.gradient[k] + gamma * (own - model.point[k]);
        *next = own - (slope + *next) / scale;
    }
    next
}

/// Returns the first recycled step after a data step from messages alone: duals and rows drop out at constant `η`.
/// ```text
/// f_i(t) = f_i(t−1) + η/(2ηV_i + γ) · Σ_j ( 2f_j(t−1) − f_i(t−2) − f_j(t−2) )
/// ```
/// Anyone who holds a neighbourhood's messages can check a recycled step with it. `data` is the view after the data step,
/// `before` the one before it.
pub fn closed_form(before: &View<'_>, data: &View<'_>, eta: f64, gamma: f64) -> Vec<f64> {
    let factor = eta / (2.0 * eta * data.degree() + gamma);
    let mut next = data.own.to_vec();
    for (theirs, theirs_before) in data.neighbours.iter().zip(before.neighbours) {
        for (k, next) in next.iter_mut().enumerate() {
            let change = 2.0 * theirs.values()[k] - before.own[k] - theirs_before.values()[k];
            *next += factor * change;
        }
    }
    next
}
