//! Mechanisms: where noise enters an answer, and what the answer then costs.
//!
//! ```text
//! objective   argmin O(f) + ⟨b + e, f⟩ + (a/2)‖f‖²      S = 2C/B, x = C·c₁/(B·m)
//! output      argmin O(f) + ⟨b, f⟩ + (a/2)‖f‖²  +  e     sensitivity S/m
//! gradient    ∇O(f)  +  e                               sensitivity S
//! ```
//! with `m = ρ/N + a`. What a step does and what it costs stand side by side here: [`Mechanism::price`] uses public facts
//! alone and runs before a row is read, `Rows::answer` consumes the proof of payment. What finite precision does to an answer
//! is part of the price: see `grid`.

use rand_chacha::ChaCha20Rng;
use serde::Serialize;
use thiserror::Error;

use super::accuracy::{Entry, Facts};
use super::grid::{Rounding, TooCoarse};
use super::loss::Loss;
use super::noise::Law;
use super::shard::Shard;
use super::solve::{self, Aim, NotCertified, Objective, Solution};
use crate::account::{Event, Ideal, Paid, up};
use crate::public::release::{Precision, Query, Release};

/// Whether noise grows with the penalty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// `e` as drawn.
    Fixed,
    /// `a·e`, with `a` the quadratic coefficient of the question (`2ηV` in ADMM): penalty perturbation.
    Penalty,
}

/// How a curator's answers are protected.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "mechanism", rename_all = "kebab-case")]
pub enum Mechanism {
    /// Not at all.
    None,
    /// A random linear term in the objective (dual variable perturbation and its kin).
    Objective {
        /// Of the linear term.
        #[serde(flatten)]
        law: Law,
        /// Fixed, or growing with the penalty.
        scale: Scaling,
    },
    /// Noise on the exact minimiser (primal variable perturbation).
    Output {
        /// Of the noise.
        #[serde(flatten)]
        law: Law,
    },
    /// Noise on the exact gradient.
    Gradient {
        /// Of the noise.
        #[serde(flatten)]
        law: Law,
    },
}

/// The problem that all parties agree on: `O_i(f) = (C/B_i) Σ_n L(fᵀz_n) + (ρ/N)·½‖f‖²`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// `L`.
    pub loss: Loss,
    /// `C > 0`.
    pub weight: f64,
    /// `ρ > 0`.
    pub ridge: f64,
    /// `N`.
    pub nodes: u32,
    /// `τ > 0`, the gradient norm at which a minimiser counts as found.
    pub tolerance: f64,
    /// How answers are written.
    pub precision: Precision,
}

impl Problem {
    /// `ρ/N`.
    pub(super) fn share(&self) -> f64 {
        self.ridge / f64::from(self.nodes)
    }

    /// `M = C·c₁ + ρ/N`, a Lipschitz constant of every party's gradient, since rows have norm at most one; rounded up.
    pub fn lipschitz(&self) -> f64 {
        ((self.weight * self.loss.curvature()).next_up() + self.share().next_up()).next_up()
    }

    /// The least `τ` that makes sense: double precision does not reach less for the plainest question.
    pub fn least_tolerance(&self) -> f64 {
        2.0 * f64::EPSILON * self.slopes()
    }

    /// A gradient norm that the solver can get below for a question with a linear term of this norm, whatever the rows are:
    /// more than four times what rounding can make of a gradient at doubled margins (see `accuracy`), `m‖f‖` being at
    /// most `C + ‖b‖` near the minimum.
    pub(super) fn floor(&self, linear: f64) -> f64 {
        f64::EPSILON * (96.0 * self.slopes() + 128.0 * linear)
    }

    /// The residual to which a question with this linear term is certified: `τ`, or what double precision can reach.
    pub(super) fn residual(&self, linear: &[f64]) -> f64 {
        self.tolerance.max(self.floor(solve::norm(linear)))
    }

    /// How large the coefficients of a question may be: a thousand thousands of what rows can answer.
    pub(super) fn largest(&self) -> f64 {
        1e6 * (1.0 + self.slopes())
    }

    /// The size of the rows' gradient, and of what rounding makes of it.
    pub(super) fn slopes(&self) -> f64 {
        self.weight * (1.0 + self.loss.curvature())
    }

    /// `S = 2C/B`.
    fn sensitivity(&self, rows: usize) -> f64 {
        up(2.0 * self.weight / rows as f64)
    }

    /// `m = ρ/N + a`, rounded down, since it stands below fraction bars.
    fn modulus(&self, quadratic: f64) -> f64 {
        (self.share().next_down() + quadratic).next_down()
    }
}

/// An answer that was paid for and cannot leave. With noise on the grid there is none.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum Unreleasable {
    /// The minimiser was not found to the accuracy that was asked for.
    #[error(transparent)]
    NotCertified(#[from] NotCertified),
    /// An answer without noise, or without a grid, that is not finite or beyond the grid.
    #[error(
        "the answer is too large to be released: the algorithm diverges; raise the penalty or the ridge"
    )]
    BeyondGrid,
}

/// A question that a mechanism has no answer to.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unanswerable {
    /// Objective and output perturbation protect minimisers, gradient perturbation gradients.
    #[error("{mechanism} perturbation does not protect {question}")]
    Mismatch {
        /// What the party uses.
        mechanism: &'static str,
        /// What the algorithm asked for.
        question: &'static str,
    },
    /// Noise in proportion to a penalty of zero is no noise.
    #[error("noise that grows with the penalty needs a penalty, and this question has none")]
    NoPenalty,
}

impl Mechanism {
    /// What an answer will cost, from public facts: before a row is read, and whether or not it is then given.
    pub fn price(
        &self,
        query: &Query,
        problem: &Problem,
        rows: usize,
    ) -> Result<Event, Unanswerable> {
        let ideal = self.ideal(query, problem, rows)?;
        Ok(match problem.precision {
            Precision::Grid => Event::on_grid(ideal),
            Precision::Float => Event::in_doubles(ideal),
        })
    }

    fn ideal(&self, query: &Query, problem: &Problem, rows: usize) -> Result<Ideal, Unanswerable> {
        let sensitivity = problem.sensitivity(rows);
        match (*self, query) {
            (Self::None, _) => Ok(Ideal::Exact),
            (Self::Objective { law, scale }, Query::Minimise { quadratic, .. }) => {
                let curvature = up(problem.weight * problem.loss.curvature());
                let below = (rows as f64 * problem.modulus(*quadratic)).next_down();
                Ok(Ideal::Objective {
                    sensitivity,
                    spread: up(curvature / below),
                    one_signed: problem.loss.one_signed_slope(),
                    law: Self::linear_term(law, scale, *quadratic)?,
                })
            }
            (Self::Output { law }, Query::Minimise { quadratic, .. }) => Ok(Ideal::Additive {
                sensitivity: up(sensitivity / problem.modulus(*quadratic)),
                law,
            }),
            (Self::Gradient { law }, Query::Gradient { .. }) => {
                Ok(Ideal::Additive { sensitivity, law })
            }
            (Self::Objective { .. } | Self::Output { .. }, Query::Gradient { .. }) => {
                Err(Unanswerable::Mismatch {
                    mechanism: self.name(),
                    question: "gradients",
                })
            }
            (Self::Gradient { .. }, Query::Minimise { .. }) => Err(Unanswerable::Mismatch {
                mechanism: self.name(),
                question: "minimisers",
            }),
        }
    }

    /// The law of `e` in `⟨b + e, f⟩`.
    fn linear_term(law: Law, scale: Scaling, quadratic: f64) -> Result<Law, Unanswerable> {
        match scale {
            Scaling::Fixed => Ok(law),
            Scaling::Penalty if quadratic > 0.0 => Ok(law.scaled(quadratic)),
            Scaling::Penalty => Err(Unanswerable::NoPenalty),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::None => "no",
            Self::Objective { .. } => "objective",
            Self::Output { .. } => "output",
            Self::Gradient { .. } => "gradient",
        }
    }
}

/// Rows, and what is needed to ask them something.
pub(super) struct Rows<'a> {
    pub shard: &'a Shard,
    pub problem: &'a Problem,
}

/// How an answer is computed and written, decided from public facts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Manner {
    /// Whether margins are doubled.
    doubled: bool,
    /// `None` for an answer without noise, and for one in doubles.
    rounding: Option<Rounding>,
}

/// The share of a mechanism's own noise that rounding may add to it before an answer is computed more exactly.
const VISIBLE: f64 = 1e-4;

impl Manner {
    // Privacy: nothing here depends on rows. It runs before one is read.
    pub(super) fn new(
        query: &Query,
        event: &Event,
        problem: &Problem,
        (rows, columns): (usize, usize),
    ) -> Result<Self, TooCoarse> {
        let (entry, law) = match (event.ideal, problem.precision) {
            (Ideal::Objective { law, .. }, Precision::Grid) => (Entry::Objective, law),
            (Ideal::Additive { law, .. }, Precision::Grid) => (Entry::Answer, law),
            (Ideal::Exact, _) | (_, Precision::Float) => {
                return Ok(Self {
                    doubled: false,
                    rounding: None,
                });
            }
        };
        let manner = |doubled: bool| {
            let facts = Facts {
                problem,
                rows,
                columns,
                doubled,
            };
            let accuracy = facts.accuracy(query, entry, &law);
            let rounding = Rounding::new(&accuracy, columns, event.slack)?;
            // Both in one coordinate.
            let own = accuracy.reach / (columns as f64).sqrt();
            let manner = Self {
                doubled,
                rounding: Some(rounding),
            };
            Ok((manner, rounding.noise() <= VISIBLE * own))
        };
        match manner(false) {
            Ok((plain, true)) => Ok(plain),
            _ => manner(true).map(|(doubled, _)| doubled),
        }
    }
}

/// An answer, and what the simulator may know of it.
pub(super) struct Answer {
    pub release: Release,
    /// `‖∇F‖₂` where a minimiser was found.
    pub residual: f64,
}

impl Rows<'_> {
    /// Answers a question that was paid for.
    // Privacy: the noise follows the law in the event that was charged, so the two cannot drift apart.
    pub(super) fn answer(
        &self,
        query: &Query,
        paid: Paid,
        manner: &Manner,
        rng: &mut ChaCha20Rng,
    ) -> Result<Answer, Unreleasable> {
        let columns = self.shard.columns();
        let (in_objective, on_answer) = match paid.event().ideal {
            Ideal::Exact => (None, None),
            Ideal::Objective { law, .. } => (Some(law), None),
            Ideal::Additive { law, .. } => (None, Some(law)),
        };
        // A linear term ⟨e, f⟩ in the objective adds e to the linear coefficient, and to the gradient.
        let mut linear = match query {
            Query::Minimise { linear, .. } => linear.clone(),
            Query::Gradient { .. } => vec![0.0; columns],
        };
        if let Some(law) = in_objective {
            add(&mut linear, &law.sample(columns, rng));
        }
        let mut answer = match query {
            Query::Minimise {
                quadratic, near, ..
            } => {
                let aim = Aim {
                    // Depends on the question and its noise, not on rows.
                    tolerance: self.problem.residual(&linear),
                    doubled: manner.doubled,
                };
                solve::minimise(&self.objective(*quadratic, &linear), near, &aim)?
            }
            Query::Gradient { at } => Solution {
                point: self.objective(0.0, &linear).gradient(at, manner.doubled),
                residual: 0.0,
            },
        };
        if let Some(law) = on_answer {
            add(&mut answer.point, &law.sample(columns, rng));
        }
        let release = match manner.rounding {
            Some(rounding) => rounding.release(answer.point, rng),
            None => {
                Release::of(answer.point, self.problem.precision).ok_or(Unreleasable::BeyondGrid)?
            }
        };
        Ok(Answer {
            release,
            residual: answer.residual,
        })
    }

    fn objective<'a>(&'a self, quadratic: f64, linear: &'a [f64]) -> Objective<'a> {
        Objective {
            shards: vec![self.shard],
            loss: self.problem.loss,
            weight: self.problem.weight,
            modulus: self.problem.share() + quadratic,
            linear,
        }
    }
}

fn add(to: &mut [f64], what: &[f64]) {
    for (to, what) in to.iter_mut().zip(what) {
        *to += what;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Bound, Budget, Ledger};
    use crate::private::noise::{Asked, NoiseKey};
    use crate::private::shard::{NormPolicy, ShardBuilder};

    /// Rows as (x, label) in two dimensions.
    type Plane = Vec<([f64; 2], bool)>;

    fn shard(rows: &Plane) -> Shard {
        let mut builder = ShardBuilder::new(2, NormPolicy::Clip);
        for (x, label) in rows {
            builder.push(&[(0, x[0]), (1, x[1])], *label).unwrap();
        }
        builder.finish().unwrap()
    }

    fn problem(loss: Loss) -> Problem {
        Problem {
            loss,
            weight: 2.0,
            ridge: 0.5,
            nodes: 2,
            tolerance: 1e-12,
            precision: Precision::Float,
        }
    }

    fn minimise(quadratic: f64, linear: [f64; 2]) -> Query {
        Query::Minimise {
            quadratic,
            linear: linear.to_vec(),
            near: vec![0.0; 2],
        }
    }

    /// In exact arithmetic; what finite precision adds is tested beside the grid.
    fn pure_epsilon(event: Event) -> f64 {
        let mut ledger = Ledger::new(Budget::unlimited(0.0).unwrap(), Bound::Tight);
        ledger.spend(event.ideal.into()).unwrap();
        ledger.spent().epsilon
    }

    fn answer(rows: &Plane, mechanism: Mechanism, query: &Query, key: u64) -> Vec<f64> {
        let (shard, problem) = (shard(rows), problem(Loss::Logistic));
        let event = mechanism.price(query, &problem, rows.len()).unwrap();
        let mut ledger = Ledger::new(Budget::unlimited(1e-5).unwrap(), Bound::Tight);
        let paid = ledger.spend(event).unwrap();
        let rows = Rows {
            shard: &shard,
            problem: &problem,
        };
        let mut rng = generator(key, query, &event);
        let manner = Manner::new(query, &event, &problem, (shard.rows(), 2)).unwrap();
        let answer = rows.answer(query, paid, &manner, &mut rng).unwrap();
        answer.release.values().to_vec()
    }

    fn some_rows() -> Plane {
        (0..8)
            .map(|n| {
                let angle = f64::from(n) * 2.1;
                ([0.9 * angle.cos(), 0.8 * angle.sin()], n % 3 != 0)
            })
            .collect()
    }

    /// The noise in the answer to a question.
    fn drawn(mechanism: Mechanism, query: &Query, key: u64) -> Vec<f64> {
        let event = mechanism.price(query, &problem(Loss::Logistic), 8).unwrap();
        let (Ideal::Objective { law, .. } | Ideal::Additive { law, .. }) = event.ideal else {
            panic!("{mechanism:?} has noise")
        };
        law.sample(2, &mut generator(key, query, &event))
    }

    fn generator(key: u64, query: &Query, event: &Event) -> ChaCha20Rng {
        NoiseKey::repeating(key, 0, 0).generator(&Asked {
            iteration: 1,
            query,
            event,
            problem: &problem(Loss::Logistic),
            rows: 8,
        })
    }

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-10)
    }

    const LAWS: [Law; 2] = [Law::Gamma { rate: 1.5 }, Law::Gaussian { sigma: 0.7 }];

    #[test]
    fn objective_perturbation_is_the_exact_answer_to_a_question_with_noise_in_it() {
        for law in LAWS {
            for scale in [Scaling::Fixed, Scaling::Penalty] {
                let noisy = Mechanism::Objective { law, scale };
                let question = minimise(3.0, [0.3, -0.2]);
                let e = drawn(noisy, &question, 5);
                let linear = [0.3 + e[0], -0.2 + e[1]];
                let by_hand = answer(&some_rows(), Mechanism::None, &minimise(3.0, linear), 9);
                let ours = answer(&some_rows(), noisy, &question, 5);
                assert!(close(&ours, &by_hand), "{law:?} {scale:?}");
            }
        }
    }

    #[test]
    fn output_and_gradient_perturbation_add_noise_to_the_exact_answer() {
        let at = Query::Gradient {
            at: vec![0.4, -1.0],
        };
        for law in LAWS {
            let cases = [
                (Mechanism::Output { law }, minimise(3.0, [0.3, -0.2])),
                (Mechanism::Gradient { law }, at.clone()),
            ];
            for (mechanism, query) in cases {
                let mut by_hand = answer(&some_rows(), Mechanism::None, &query, 5);
                add(&mut by_hand, &drawn(mechanism, &query, 5));
                assert!(close(&answer(&some_rows(), mechanism, &query, 5), &by_hand));
            }
        }
    }

    #[test]
    fn prices_are_the_formulas() {
        let problem = problem(Loss::Logistic);
        let law = Law::Gamma { rate: 1.5 };
        // C = 2, B = 50, ρ/N = ¼, a = 3: S = 0.08, m = 3.25, x = 0.5/(50·3.25).
        let price = |mechanism: Mechanism, query| {
            pure_epsilon(mechanism.price(&query, &problem, 50).unwrap())
        };
        let question = || minimise(3.0, [0.0; 2]);
        let scale = Scaling::Fixed;
        let objective = price(Mechanism::Objective { law, scale }, question());
        assert!((objective - (0.08 * 1.5 + (1.0f64 + 0.5 / 162.5).ln())).abs() < 1e-15);
        let output = price(Mechanism::Output { law }, question());
        assert!((output - 1.5 * 0.08 / 3.25).abs() < 1e-15);
        let gradient = price(
            Mechanism::Gradient { law },
            Query::Gradient { at: vec![0.0; 2] },
        );
        assert!((gradient - 1.5 * 0.08).abs() < 1e-15);
    }

    #[test]
    fn sensitivities_round_up_and_moduli_down() {
        for n in 1..2000u32 {
            let (weight, ridge) = (f64::from(n) * 0.137, f64::from(n) * 0.0311);
            let problem = Problem {
                weight,
                ridge,
                nodes: n,
                ..problem(Loss::Logistic)
            };
            let rows = 7 * n as usize + 3;
            // Fused operations have the sign of the exact result: S·B ≥ 2C, m·N ≤ ρ.
            let s = problem.sensitivity(rows);
            assert!(s.mul_add(rows as f64, -2.0 * weight) >= 0.0, "{n}");
            let m = problem.modulus(0.0);
            assert!(m.mul_add(f64::from(n), -ridge) <= 0.0, "{n}");
            let spread = |quadratic| {
                let mechanism = Mechanism::Objective {
                    law: LAWS[0],
                    scale: Scaling::Fixed,
                };
                let question = minimise(quadratic, [0.0; 2]);
                let event = mechanism.price(&question, &problem, rows).unwrap();
                let Ideal::Objective {
                    spread, one_signed, ..
                } = event.ideal
                else {
                    panic!("{event:?}")
                };
                assert!(one_signed, "the logistic loss is decreasing");
                spread
            };
            // x·B·m ≥ C·c₁ with the rounded m, whose product with B is rounded down once more.
            let below = (rows as f64 * m).next_down();
            assert!(
                spread(0.0).mul_add(below, -0.25 * weight) >= 0.0,
                "{n}: {}",
                spread(0.0)
            );
            let exact_product = (rows as f64).mul_add(m, -below);
            assert!(exact_product >= 0.0, "{n}: B·m is rounded down");
        }
    }

    #[test]
    fn a_large_question_is_certified_less_exactly() {
        let problem = problem(Loss::Logistic);
        let small = problem.residual(&[0.0, 0.0]);
        let large = problem.residual(&[0.0, 1e6]);
        assert_eq!(small, problem.tolerance);
        assert!((128e6 * f64::EPSILON..1e-6).contains(&large), "{large}");
    }

    /// `(∇F(f), ∇²F(f))` of a question, written out in two dimensions, independently of the solver.
    fn derivatives(rows: &Plane, loss: Loss, a: f64, b: [f64; 2], f: [f64; 2]) -> ([f64; 2], f64) {
        let problem = problem(loss);
        let m = problem.ridge / 2.0 + a;
        let scale = problem.weight / rows.len() as f64;
        let (mut g, mut h) = ([b[0] + m * f[0], b[1] + m * f[1]], [m, 0.0, m]);
        for (x, label) in rows {
            let y = if *label { 1.0 } else { -1.0 };
            let (slope, curvature) = loss.slope_and_curvature(y * (x[0] * f[0] + x[1] * f[1]));
            g[0] += scale * slope * y * x[0];
            g[1] += scale * slope * y * x[1];
            h[0] += scale * curvature * x[0] * x[0];
            h[1] += scale * curvature * x[0] * x[1];
            h[2] += scale * curvature * x[1] * x[1];
        }
        (g, h[0] * h[2] - h[1] * h[1])
    }

    /// The log density of releasing `f`, up to a constant: that of the noise that makes `f` optimal, which is −∇F(f),
    /// times the Jacobian of that map.
    fn log_density(rows: &Plane, loss: Loss, rate: f64, b: [f64; 2], f: [f64; 2]) -> f64 {
        let (g, determinant) = derivatives(rows, loss, 0.2, b, f);
        determinant.ln() - rate * g[0].hypot(g[1])
    }

    /// Eight rows, and the same with the last one replaced.
    fn neighbours(last: [f64; 2], other: [f64; 2], label: bool) -> (Plane, Plane) {
        let mut one = some_rows();
        one.truncate(7);
        let mut two = one.clone();
        one.push((last, label));
        two.push((other, true));
        (one, two)
    }

    #[test]
    fn no_release_is_more_likely_under_a_neighbour_than_the_price_allows() {
        for loss in [Loss::Logistic, Loss::SmoothHinge { width: 0.5 }] {
            let mut largest: f64 = 0.0;
            for (rate, b) in [(0.3, [0.0, 0.0]), (1.5, [0.5, -2.0]), (4.0, [0.0, 9.0])] {
                let mechanism = Mechanism::Objective {
                    law: Law::Gamma { rate },
                    scale: Scaling::Fixed,
                };
                let event = mechanism
                    .price(&minimise(0.2, b), &problem(loss), 8)
                    .unwrap();
                let epsilon = pure_epsilon(event);
                for pair in 0..12 {
                    let turn = f64::from(pair) * 0.55;
                    let (one, two) = neighbours(
                        [turn.cos(), turn.sin()],
                        [-(turn * 1.3).cos(), (turn * 1.3).sin()],
                        pair % 2 == 0,
                    );
                    for u in -40..=40 {
                        for v in -40..=40 {
                            let f = [f64::from(u) * 0.5, f64::from(v) * 0.5];
                            let loss_here = log_density(&one, loss, rate, b, f)
                                - log_density(&two, loss, rate, b, f);
                            assert!(loss_here.abs() <= epsilon, "{loss:?} {rate} {b:?} {f:?}");
                            largest = largest.max(loss_here.abs() / epsilon);
                        }
                    }
                }
            }
            // The claim would be hollow if nothing came near the bound.
            assert!(largest > 0.5, "{loss:?}: {largest}");
        }
    }

    #[test]
    fn the_worst_case_comes_close_to_the_price() {
        // Two nearly opposite rows, and a linear term that drives f to where both slopes are −1.
        let (rate, phi) = (6.0, 0.05f64);
        let row = [phi.cos(), phi.sin()];
        let (one, two) = ([(row, true)], [([-row[0], row[1]], true)]);
        let (one, two) = (one.to_vec(), two.to_vec());
        let mechanism = Mechanism::Objective {
            law: Law::Gamma { rate },
            scale: Scaling::Fixed,
        };
        let event = mechanism
            .price(&minimise(0.2, [0.0; 2]), &problem(Loss::Logistic), 1)
            .unwrap();
        let epsilon = pure_epsilon(event);
        let f = [0.0, -200.0];
        // b such that the noise-free optimum of the first data set lies at f: the noise needed there is zero.
        let (g, _) = derivatives(&one, Loss::Logistic, 0.2, [0.0; 2], f);
        let b = [-g[0], -g[1]];
        let seen = log_density(&one, Loss::Logistic, rate, b, f)
            - log_density(&two, Loss::Logistic, rate, b, f);
        assert!(
            seen <= epsilon && seen > 0.9 * epsilon,
            "{seen} of {epsilon}"
        );
    }

    #[test]
    fn gaussian_noise_keeps_what_its_price_promises_at_every_delta() {
        // One dimension, by quadrature: the exact hockey-stick divergence at the ε that is charged must be below δ.
        let loss = Loss::Logistic;
        for (sigma, b) in [(0.3, 0.0), (0.7, 2.0), (2.0, -5.0)] {
            let (one, two) = neighbours([1.0, 0.0], [-1.0, 0.0], true);
            let mechanism = Mechanism::Objective {
                law: Law::Gaussian { sigma },
                scale: Scaling::Fixed,
            };
            let event = mechanism
                .price(&minimise(0.2, [b, 0.0]), &problem(loss), 8)
                .unwrap();
            for delta in [1e-2, 1e-4, 1e-6] {
                let mut ledger = Ledger::new(Budget::unlimited(delta).unwrap(), Bound::Tight);
                ledger.spend(event.ideal.into()).unwrap();
                let epsilon = ledger.spent().epsilon;
                for (p, q) in [(&one, &two), (&two, &one)] {
                    let density = |rows: &Plane, f: f64| {
                        // The second coordinate is left out: its rows' share is the same in both.
                        let flat: Plane = rows.iter().map(|(x, y)| ([x[0], 0.0], *y)).collect();
                        let (g, determinant) = derivatives(&flat, loss, 0.2, [b, 0.0], [f, 0.0]);
                        let m = problem(loss).ridge / 2.0 + 0.2;
                        let z = g[0] / sigma;
                        determinant / m * (-z * z / 2.0).exp()
                            / (sigma * (2.0 * std::f64::consts::PI).sqrt())
                    };
                    let step = 2e-3;
                    let (mut excess, mut mass) = (0.0, 0.0);
                    for n in -30_000..30_000 {
                        let f = (f64::from(n) + 0.5) * step;
                        let (p, q) = (density(p, f), density(q, f));
                        excess += (p - epsilon.exp() * q).max(0.0) * step;
                        mass += p * step;
                    }
                    assert!(
                        (mass - 1.0).abs() < 1e-6,
                        "the quadrature misses mass: {mass}"
                    );
                    assert!(excess <= delta, "{sigma} {b} {delta}: {excess}");
                }
            }
        }
    }
}
