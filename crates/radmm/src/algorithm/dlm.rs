//! DLM: decentralised linearised ADMM.

use super::admm::{Lagrangian, Penalty};
use super::recycled::{Linearisation, Recyclable, linearised_step};
use super::schedule::Schedule;
use super::{Algorithm, Step, View};
use crate::protocol::query::Query;

/// Decentralised linearised ADMM (Ling, Shi, Wu and Ribeiro 2015): ADMM's primal step with `O_i` replaced by its
/// linearisation at the last iterate plus `(γ/2)‖f − f_i(t−1)‖²`.
/// ```text
/// f_i(t) = f_i(t−1) − [ ∇O_i(f_i(t−1)) + 2λ_i(t−1) + η Σ_j (f_i(t−1) − f_j(t−1)) ] / (2ηV_i + γ)
/// λ_i(t) = λ_i(t−1) + (η/2) Σ_j (f_i(t) − f_j(t))
/// ```
pub struct Dlm {
    lagrangian: Lagrangian,
    damping: Schedule,
    model: Linearisation,
}

impl Dlm {
    /// Creates a node's part, with `λ_i = 0`.
    pub fn new(penalty: Penalty, damping: Schedule, columns: usize) -> Self {
        Self::with_dual(penalty, damping, vec![0.0; columns])
    }

    /// Creates a node's part that continues from `λ_i`.
    pub fn with_dual(penalty: Penalty, damping: Schedule, lambda: Vec<f64>) -> Self {
        let columns = lambda.len();
        Self {
            lagrangian: Lagrangian::new(penalty, lambda),
            damping,
            model: Linearisation::flat(columns),
        }
    }
}

impl Algorithm for Dlm {
    fn observe(&mut self, view: &View<'_>) {
        self.lagrangian.update_dual(view);
    }

    fn next_step(&mut self, view: &View<'_>) -> Step {
        Step::Ask(Query::Gradient {
            at: view.own.to_vec(),
        })
    }

    fn absorb_answer(&mut self, view: &View<'_>, answer: &[f64]) -> Vec<f64> {
        self.model = Linearisation {
            point: view.own.to_vec(),
            gradient: answer.to_vec(),
        };
        linearised_step(
            view,
            &self.lagrangian,
            &self.model,
            self.damping.at(view.iteration + 1),
        )
    }

    fn implied_answer(&self, view: &View<'_>, next: &[f64]) -> Option<Vec<f64>> {
        let gain = self.answer_gain(view.iteration + 1, view.neighbours.len());
        let eta = self.lagrangian.eta(view.iteration + 1);
        let penalty = self.lagrangian.penalty_gradient(view, eta);
        let moved = view.own.iter().zip(next).map(|(own, next)| own - next);
        let gradient = moved
            .zip(penalty)
            .map(|(moved, slope)| moved / gain - slope);
        (gain > 0.0).then(|| gradient.collect())
    }

    fn answer_gain(&self, iteration: u32, degree: usize) -> f64 {
        let eta = self.lagrangian.eta(iteration);
        1.0 / (2.0 * eta * degree as f64 + self.damping.at(iteration))
    }

    fn dual(&self) -> Option<&[f64]> {
        Some(self.lagrangian.lambda())
    }
}

impl Recyclable for Dlm {
    fn lagrangian(&self) -> &Lagrangian {
        &self.lagrangian
    }

    fn linearisation(&self) -> &Linearisation {
        &self.model
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::dgd::Dgd;
    use crate::algorithm::recycled::Recycled;
    use crate::protocol::release::Release;

    #[test]
    fn an_answer_is_told_by_the_iterate_that_it_turned_into() {
        let eta = Schedule::Growth {
            start: 1.5,
            growth: 1.2,
        };
        let damping = Schedule::Constant(0.7);
        let dual = vec![0.4, -0.3];
        let dlm = || Dlm::with_dual(Penalty::common(eta), damping, dual.clone());
        let algorithms: [Box<dyn Algorithm>; 3] = [
            Box::new(dlm()),
            Box::new(Recycled::new(dlm(), damping, 1)),
            Box::new(Dgd::new(vec![0.2, 0.3], Schedule::Constant(0.05))),
        ];
        let neighbours = [[1.0, 2.0], [-0.5, 0.25]].map(|v| Release::imagined(v.to_vec()));
        for mut algorithm in algorithms {
            let view = View {
                iteration: 2,
                own: &[0.3, -0.7],
                neighbours: &neighbours,
            };
            algorithm.next_step(&view);
            let [answer, other] = [[5.0, -8.0], [5.0, -7.0]];
            let [next, moved] = [answer, other].map(|g| algorithm.absorb_answer(&view, &g));
            let told = algorithm.implied_answer(&view, &next).unwrap();
            for (told, answer) in told.iter().zip(answer) {
                assert!((told - answer).abs() < 1e-12);
            }
            let gain = algorithm.answer_gain(3, 2);
            assert!((moved[1] - next[1] + gain).abs() < 1e-14);
            assert_eq!(moved[0], next[0]);
        }
    }
}
