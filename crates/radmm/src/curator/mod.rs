//! The curator: owns one party's rows and never lets an answer go unpaid.
//!
//! A question is priced, charged, answered and rounded to the grid, in this order. The price comes from public facts, the
//! ledger refuses before a row is read, and only an answer that was paid for and certified leaves, as integers.
//!
//! This is the only folder that touches rows. They come in through [`ShardBuilder`], move into a [`Curator`], and leave as
//! paid answers.

mod answer;
#[cfg(feature = "bench")]
pub mod bench_hooks;
mod config;
mod error_model;
mod evaluation;
mod grid;
mod kernel;
mod noise_key;
mod quadratic_model;
mod rows;
mod samplers;
mod solver;

use std::sync::Arc;

use thiserror::Error;

pub use answer::Unreleasable;
pub use config::{CuratorConfig, InvalidCuratorConfig};
pub(crate) use evaluation::evaluate;
pub use evaluation::{HeldOutScore, auc};
pub use grid::TooCoarse;
pub use noise_key::NoiseKey;
pub(crate) use quadratic_model::QuadraticModel;
pub use rows::shard::{NoRows, NormPolicy, RowError, Shard, ShardBuilder};
pub use solver::NotCertified;
pub use solver::quasi_newton::WarmStart;

use crate::exec::{ChunkExecutor, Sequential};
use crate::linalg::dot::norm;
use crate::privacy::{Ledger, Paid, PrivacyEvent, SpendError, Unanswerable};
use crate::problem::Problem;
use crate::protocol::query::Query;
use crate::protocol::release::Release;
use answer::{AnswerPlan, Rows};
use noise_key::SeedInputs;
use solver::Target;
use solver::objective::{self, Objective};

/// Why a question was not answered.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Refusal {
    /// One question an iteration: a second one would be answered with the first one's noise.
    #[error("iteration {0} was answered already")]
    AskedTwice(u32),
    /// The question itself is malformed.
    #[error("the question is malformed: {0}")]
    Malformed(&'static str),
    /// No row was read: an answer could be certified for some rows and not for others.
    #[error(
        "the question's coefficients are of size {size:e}, and at most {largest:e} makes sense: the algorithm diverges (lower the step, raise the penalty), noise drowns it (raise rate or lower sigma), or a neighbour misbehaves"
    )]
    TooLarge {
        /// `‖b‖ + m‖near‖` of a minimiser, `(ρ/N)‖f‖` of a gradient.
        size: f64,
        /// What would do.
        largest: f64,
    },
    /// The party's mechanism does not protect such answers.
    #[error(transparent)]
    Unanswerable(#[from] Unanswerable),
    /// The ledger said no. No row was read.
    #[error(transparent)]
    Unpaid(#[from] SpendError),
    /// GridRounding would cost more than what is charged for it. No row was read.
    #[error(transparent)]
    TooCoarse(#[from] TooCoarse),
    /// A journal that is not of this study, these rows or this program.
    #[error(
        "what is on record for iteration {0} is not what this study asks, or not what these rows answer: the state belongs to another study, other rows or another version of the program"
    )]
    NotOnRecord(u32),
    /// It was charged before and nothing could be released. The charge stands.
    #[error(
        "the question of iteration {0} was charged before, and its answer could not be released"
    )]
    UnreleasableBefore(u32),
    /// The charge stands, nothing was released.
    #[error("{cause}")]
    Unreleasable {
        /// What was charged.
        event: PrivacyEvent,
        /// Why.
        cause: Unreleasable,
    },
}

/// How good a model is on rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RowFit {
    /// `(1/B) Σ_n L(fᵀz_n)`.
    pub loss: f64,
    /// The share of rows that are classified rightly.
    pub accuracy: f64,
    /// `O_i(f)`.
    pub objective: f64,
}

/// What a journal holds of a question that was charged.
#[derive(Clone, Debug, PartialEq)]
pub struct ChargedAnswer {
    /// Of the data step.
    pub iteration: u32,
    /// What was charged.
    pub event: PrivacyEvent,
    /// What was paid for; `None` if it could not be released.
    pub answer: Option<Release>,
}

/// A question that is to be answered.
pub(crate) struct PendingQuery<'a> {
    pub curator: &'a mut Curator,
    /// Of which iteration.
    pub iteration: u32,
    pub query: &'a Query,
}

/// One party's rows and the terms on which they answer.
pub struct Curator {
    shard: Arc<Shard>,
    executor: Arc<dyn ChunkExecutor>,
    config: CuratorConfig,
    answered: u32,
    /// What the solver keeps between questions; `None` starts every question cold.
    warm_start: Option<WarmStart>,
    /// Passes over the rows that each answer took, if they were counted; more than 255 count as that.
    passes: Vec<u8>,
    largest_residual: f64,
}

impl Curator {
    /// Takes the rows in. They do not come out again.
    pub fn new(shard: Shard, config: CuratorConfig) -> Result<Self, InvalidCuratorConfig> {
        Self::with_rows(Arc::new(shard), config)
    }

    /// Repetitions of a simulation share their rows. Whoever holds these could ask them anything through a curator of
    /// his own, so the noise must be of the kind that protects nobody anyway.
    pub fn simulated(
        shard: Arc<Shard>,
        config: CuratorConfig,
    ) -> Result<Self, InvalidCuratorConfig> {
        if !config.noise.repeats() {
            return Err(InvalidCuratorConfig::SharedRows);
        }
        Self::with_rows(shard, config)
    }

    fn with_rows(shard: Arc<Shard>, config: CuratorConfig) -> Result<Self, InvalidCuratorConfig> {
        config::check(&config)?;
        config::check_rows(shard.rows())?;
        Ok(Self {
            shard,
            executor: Arc::new(Sequential),
            config,
            answered: 0,
            warm_start: None,
            passes: Vec::new(),
            largest_residual: 0.0,
        })
    }

    /// Shares passes over the rows out over an executor.
    pub fn with_executor(self, executor: Arc<dyn ChunkExecutor>) -> Self {
        Self { executor, ..self }
    }

    /// Keeps what the solver learns from one question to the next. Without effect under a secret noise key.
    pub fn with_warm_start(mut self, warm_start: WarmStart) -> Self {
        self.set_warm_start(warm_start);
        self
    }

    // Privacy: noise must depend on everything that an answer depends on but the rows, or two answers to one question could
    // differ by something without noise. What the solver keeps is not in the noise's seed. A real party may be restarted and
    // asked again, so it keeps nothing; a simulation protects nobody, and may.
    pub(crate) fn set_warm_start(&mut self, warm_start: WarmStart) {
        self.warm_start = self.config.noise.repeats().then_some(warm_start);
    }

    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.config.ledger
    }

    /// `B`; public.
    pub fn rows(&self) -> usize {
        self.shard.rows()
    }

    /// `d`; public.
    pub fn columns(&self) -> usize {
        self.shard.columns()
    }

    /// What has been spent.
    pub fn ledger(&self) -> &Ledger {
        &self.config.ledger
    }

    /// Whether the noise can be drawn again by others, and so protects nobody.
    pub fn noise_repeats(&self) -> bool {
        self.config.noise.repeats()
    }

    /// Answers the question of one iteration; iterations are counted from 1 and only go up.
    pub(crate) fn answer(
        &mut self,
        iteration: u32,
        query: &Query,
    ) -> Result<(PrivacyEvent, Release), Refusal> {
        if iteration <= self.answered {
            return Err(Refusal::AskedTwice(iteration));
        }
        check(query, self.columns(), &self.config.problem)?;
        let problem = &self.config.problem;
        let rows = self.shard.rows();
        let event = self.config.mechanism.price(query, problem, rows)?;
        // What cannot be written finely enough is refused before it is charged.
        let plan = AnswerPlan::new(query, &event, problem, (rows, self.columns()))?;
        let paid = self.config.ledger.spend(event)?;
        self.answered = iteration;
        Ok((event, self.compute_release(iteration, query, paid, &plan)?))
    }

    /// Computes the release for a question that was paid for, with the noise that was charged.
    fn compute_release(
        &mut self,
        iteration: u32,
        query: &Query,
        paid: Paid,
        plan: &AnswerPlan,
    ) -> Result<Release, Refusal> {
        let config = &self.config;
        let event = *paid.event();
        let rows = Rows {
            shard: &self.shard,
            problem: &config.problem,
            executor: &*self.executor,
        };
        let inputs = SeedInputs {
            iteration,
            query,
            event: &event,
            problem: &config.problem,
            rows: self.shard.rows(),
        };
        let mut rng = config.noise.generator(&inputs);
        let mut cold = WarmStart::default();
        let warm_start = self.warm_start.as_mut().unwrap_or(&mut cold);
        let answer = rows
            .noisy_answer(query, paid, plan, warm_start, &mut rng)
            .map_err(|cause| Refusal::Unreleasable { event, cause })?;
        self.largest_residual = self.largest_residual.max(answer.residual);
        if warm_start.passes() > 0 {
            self.passes.push(warm_start.passes().min(255) as u8);
        }
        Ok(answer.release)
    }

    /// Goes through a question again that is on record with its charge, which this curator's ledger has been given already, and
    /// with its answer. Nothing is charged.
    // Privacy: the answer is the one on record, never a second one. Rows are looked at for it only where noise repeats, since
    // there the solver remembers earlier questions and later answers depend on it; what is computed is compared and dropped.
    pub(crate) fn replay(
        &mut self,
        iteration: u32,
        query: &Query,
        recorded: &ChargedAnswer,
    ) -> Result<(PrivacyEvent, Release), Refusal> {
        if iteration <= self.answered {
            return Err(Refusal::AskedTwice(iteration));
        }
        let other = Refusal::NotOnRecord(iteration);
        check(query, self.columns(), &self.config.problem)?;
        let (problem, rows) = (&self.config.problem, self.shard.rows());
        let priced = self.config.mechanism.price(query, problem, rows)?;
        if priced != recorded.event || recorded.iteration != iteration {
            return Err(other);
        }
        self.answered = iteration;
        let Some(answer) = &recorded.answer else {
            return Err(Refusal::UnreleasableBefore(iteration));
        };
        if answer.values().len() != self.columns() {
            return Err(other);
        }
        if let Some(paid) = self
            .config
            .ledger
            .paid_before(priced, self.config.noise.repeats())
        {
            let plan = AnswerPlan::new(query, &priced, problem, (rows, self.columns()))?;
            if self.compute_release(iteration, query, paid, &plan)? != *answer {
                return Err(other);
            }
        }
        Ok((recorded.event, answer.clone()))
    }

    /// How good `f` is on these rows, unprotected: for the simulator alone, which holds everybody's rows anyway.
    pub(crate) fn observe(&self, f: &[f64]) -> RowFit {
        let problem = &self.config.problem;
        let (loss, accuracy) =
            objective::mean_loss_and_accuracy(&self.shard, problem.loss, f, &*self.executor);
        let square: f64 = f.iter().map(|f| f * f).sum();
        RowFit {
            loss,
            accuracy,
            objective: problem.weight * loss + problem.share() / 2.0 * square,
        }
    }

    /// The minimiser of the sum of all curators' objectives, unprotected: for the simulator alone.
    pub(crate) fn centralised<'a>(
        mut curators: impl Iterator<Item = &'a Curator>,
    ) -> Result<Vec<f64>, NotCertified> {
        let Some(first) = curators.next() else {
            return Ok(Vec::new());
        };
        let problem = &first.config.problem;
        let shards = std::iter::once(&first.shard).chain(curators.map(|other| &other.shard));
        let objective = Objective {
            shards: shards.map(|shard| &**shard).collect(),
            loss: problem.loss,
            weight: problem.weight,
            modulus: problem.ridge,
            linear: &vec![0.0; first.columns()],
            executor: &*first.executor,
            stride: 1,
        };
        let start = vec![0.0; first.columns()];
        // As exact as the parties' own minimisers: a sum of that many gradients.
        let target = Target {
            tolerance: problem.residual(&[]) * objective.shards.len() as f64,
            doubled: false,
        };
        Ok(solver::minimise(&objective, &start, &target, &mut WarmStart::default())?.point)
    }

    /// The quadratic model of `O_i` at `f`, unprotected: for the simulator alone, which asks how fast algorithms converge.
    pub(crate) fn quadratic(&self, f: &[f64]) -> QuadraticModel {
        let problem = &self.config.problem;
        let objective = Objective {
            shards: vec![&self.shard],
            loss: problem.loss,
            weight: problem.weight,
            modulus: problem.share(),
            linear: &vec![0.0; f.len()],
            executor: &*self.executor,
            stride: 1,
        };
        QuadraticModel::new(objective.hessian_at(f), f.len())
    }

    /// How many passes over the rows each answer took. It depends on rows, so only the simulator tells it.
    pub(crate) fn passes(&self) -> &[u8] {
        &self.passes
    }

    /// The largest gradient norm at which a minimiser was released. It depends on rows, so only the simulator tells it.
    pub(crate) fn largest_residual(&self) -> f64 {
        self.largest_residual
    }

    /// Another ledger, for a test of what a limit does.
    #[cfg(test)]
    pub(crate) fn exchange_ledger(&mut self, ledger: Ledger) {
        self.config.ledger = ledger;
    }

    /// Another mechanism, for a test of what cannot be released.
    #[cfg(test)]
    pub(crate) fn exchange_mechanism(&mut self, mechanism: crate::privacy::Mechanism) {
        self.config.mechanism = mechanism;
    }

    /// Another key, for a test of what secret noise forbids.
    #[cfg(test)]
    pub(crate) fn exchange_noise(&mut self, noise: NoiseKey) {
        self.config.noise = noise;
    }

    /// Takes the rows away, for a test that recycled steps do not miss them.
    #[cfg(test)]
    pub(crate) fn exchange_rows(&mut self, shard: Shard) {
        let removed = std::mem::replace(&mut self.shard, shard.into());
        assert!(Arc::into_inner(removed).is_some(), "nobody else held them");
    }

    /// Whether both ask the same rows about the same problem.
    pub(crate) fn is_replica_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shard, &other.shard) && self.config.problem == other.config.problem
    }
}

impl PendingQuery<'_> {
    /// Has it answered.
    pub(crate) fn answer(self) -> Result<(PrivacyEvent, Release), Refusal> {
        self.curator.answer(self.iteration, self.query)
    }

    /// Has it answered as is on record.
    pub(crate) fn replay(
        self,
        recorded: &ChargedAnswer,
    ) -> Result<(PrivacyEvent, Release), Refusal> {
        self.curator.replay(self.iteration, self.query, recorded)
    }
}

/// Below this strong convexity a hostile question can be found that is certified for some rows and not for others. A
/// question without a linear term, as of training alone, is nobody's but the party's own.
const LEAST_MODULUS: f64 = 1e-3;

/// A question comes from what neighbours said, so it is not trusted.
// Privacy: without a limit on its size a neighbour could ask what is certified for some rows and not for others, and
// learn a row from the refusal. This refusal depends on public values alone.
fn check(query: &Query, columns: usize, problem: &Problem) -> Result<(), Refusal> {
    let vectors: &[&[f64]] = match query {
        Query::Minimise {
            quadratic,
            linear,
            near,
        } => {
            if !(quadratic.is_finite() && *quadratic >= 0.0) {
                return Err(Refusal::Malformed(
                    "its quadratic coefficient is negative or not finite",
                ));
            }
            &[linear, near]
        }
        Query::Gradient { at } => &[at],
    };
    for vector in vectors {
        if vector.len() != columns {
            return Err(Refusal::Malformed("it has the wrong dimension"));
        }
        if !vector.iter().all(|value| value.is_finite()) {
            return Err(Refusal::Malformed(
                "a coefficient is not finite; the algorithm has diverged",
            ));
        }
    }
    let size = match query {
        Query::Minimise {
            quadratic,
            linear,
            near,
        } => {
            let modulus = problem.share() + quadratic;
            if modulus < LEAST_MODULUS && linear.iter().any(|b| *b != 0.0) {
                return Err(Refusal::Malformed(
                    "its penalty is too small to hold what neighbours ask; raise the penalty or the ridge",
                ));
            }
            norm(linear) + modulus * norm(near)
        }
        Query::Gradient { at } => problem.share() * norm(at),
    };
    let largest = problem.largest();
    // Written so that an overflow is refused.
    let sensible = size <= largest;
    if !sensible {
        return Err(Refusal::TooLarge { size, largest });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::config::{MOST_ROWS, check_rows};
    use super::*;
    use crate::curator::{NormPolicy, ShardBuilder};
    use crate::privacy::NoiseScaling;
    use crate::privacy::{Bound, Budget};
    use crate::privacy::{Mechanism, NoiseDistribution};
    use crate::problem::Loss;

    fn rows() -> Shard {
        let mut builder = ShardBuilder::new(2, NormPolicy::Unit);
        builder.push(&[(0, 1.0)], true).unwrap();
        builder.push(&[(1, 1.0)], false).unwrap();
        builder.finish().unwrap()
    }

    fn config(budget: Budget) -> CuratorConfig {
        CuratorConfig {
            problem: Problem {
                loss: Loss::Logistic,
                weight: 1.0,
                ridge: 0.1,
                nodes: 2,
                tolerance: 1e-10,
            },
            mechanism: Mechanism::Objective {
                law: NoiseDistribution::Gamma { rate: 1.0 },
                scale: NoiseScaling::Fixed,
            },
            ledger: Ledger::new(budget, Bound::Tight),
            noise: NoiseKey::repeating(1, 0, 0),
        }
    }

    fn curator(budget: Budget) -> Curator {
        Curator::new(rows(), config(budget)).unwrap()
    }

    fn question(linear: Vec<f64>) -> Query {
        Query::Minimise {
            quadratic: 1.0,
            linear,
            near: vec![0.0; 2],
        }
    }

    #[test]
    fn no_iteration_is_answered_twice() {
        let mut curator = curator(Budget::unlimited(0.0).unwrap());
        curator.answer(3, &question(vec![0.0; 2])).unwrap();
        // Another question with the same noise would give the noise away.
        for iteration in [1, 3] {
            let again = curator.answer(iteration, &question(vec![1.0, 0.0]));
            assert_eq!(again, Err(Refusal::AskedTwice(iteration)));
        }
        assert_eq!(curator.ledger().charges(), 1);
    }

    #[test]
    fn malformed_questions_are_neither_answered_nor_charged() {
        let mut curator = curator(Budget::unlimited(0.0).unwrap());
        for query in [
            question(vec![0.0]),
            question(vec![f64::NAN, 0.0]),
            question(vec![0.0, f64::INFINITY]),
            Query::Minimise {
                quadratic: -1.0,
                linear: vec![0.0; 2],
                near: vec![0.0; 2],
            },
            Query::Minimise {
                quadratic: f64::NAN,
                linear: vec![0.0; 2],
                near: vec![0.0; 2],
            },
            Query::Minimise {
                quadratic: f64::INFINITY,
                linear: vec![0.0; 2],
                near: vec![0.0; 2],
            },
            Query::Minimise {
                quadratic: 1.0,
                linear: vec![0.0; 2],
                near: vec![0.0, f64::NAN],
            },
            Query::Gradient { at: vec![0.0; 3] },
            Query::Gradient {
                at: vec![0.0, f64::NAN],
            },
        ] {
            assert!(matches!(
                curator.answer(1, &query),
                Err(Refusal::Malformed(_))
            ));
        }
        assert_eq!(curator.ledger().charges(), 0);
    }

    #[test]
    fn a_party_has_no_more_rows_than_sums_are_proved_for() {
        assert_eq!(check_rows(MOST_ROWS), Ok(()));
        let many = InvalidCuratorConfig::TooManyRows {
            rows: MOST_ROWS + 1,
        };
        assert_eq!(check_rows(MOST_ROWS + 1), Err(many));
    }

    #[test]
    fn a_refusal_comes_before_a_row_is_read() {
        let mut curator = curator(Budget::limited(0.5, 0.0).unwrap());
        curator.exchange_rows(Shard::untouchable(2, 2));
        assert!(matches!(
            curator.answer(1, &question(vec![0.0; 2])),
            Err(Refusal::Unpaid(_))
        ));
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn an_answer_does_read_rows() {
        // The test above would be hollow otherwise.
        let mut curator = curator(Budget::unlimited(0.0).unwrap());
        curator.exchange_rows(Shard::untouchable(2, 2));
        let _ = curator.answer(1, &question(vec![0.0; 2]));
    }

    #[test]
    fn a_question_too_large_to_be_certified_is_refused_whatever_the_rows_are() {
        let mut curator = curator(Budget::unlimited(0.0).unwrap());
        curator.exchange_rows(Shard::untouchable(2, 2));
        let far = Query::Minimise {
            quadratic: 1.0,
            linear: vec![0.0; 2],
            near: vec![1e7, 0.0],
        };
        let steep = Query::Gradient { at: vec![1e9, 0.0] };
        // A norm that overflows is too large too.
        for large in [
            question(vec![0.0, 1e7]),
            question(vec![0.0, 1e300]),
            far,
            steep,
        ] {
            let refused = curator.answer(1, &large);
            assert!(
                matches!(refused, Err(Refusal::TooLarge { .. })),
                "{refused:?}"
            );
        }
        assert_eq!(curator.ledger().charges(), 0);
    }

    #[test]
    fn neighbours_ask_nothing_of_a_penalty_too_small_to_hold_it() {
        let mut curator = curator(Budget::unlimited(0.0).unwrap());
        curator.config.problem.ridge = 1e-5;
        let weak = |b| Query::Minimise {
            quadratic: 0.0,
            linear: vec![b, 0.0],
            near: vec![0.0; 2],
        };
        assert!(matches!(
            curator.answer(1, &weak(1.0)),
            Err(Refusal::Malformed(_))
        ));
        assert!(curator.answer(1, &weak(0.0)).is_ok(), "training alone");
    }

    #[test]
    fn a_refusal_does_not_tell_which_rows_there_are() {
        // Fifty people; a column that the last one alone may have; a neighbour that sends as much as it may there.
        for rare in [false, true] {
            for exponent in [0, 2, 4, 6] {
                for sign in [1.0, -1.0] {
                    let mut builder = ShardBuilder::new(8, NormPolicy::Clip);
                    for n in 0..50u32 {
                        let x = 0.5 * (f64::from(n) * 1.7).sin();
                        let column = if n == 49 && rare { 7 } else { 1 + n % 6 };
                        builder.push(&[(0, x), (column, 0.7)], n % 3 == 0).unwrap();
                    }
                    let mut curator = curator(Budget::unlimited(0.0).unwrap());
                    curator.exchange_rows(builder.finish().unwrap());
                    for iteration in 1..=50 {
                        let mut linear = vec![0.0; 8];
                        linear[7] = sign * 10f64.powi(exponent);
                        let question = Query::Minimise {
                            quadratic: 2.0,
                            linear,
                            near: vec![0.0; 8],
                        };
                        let answered = curator.answer(iteration, &question);
                        assert!(answered.is_ok(), "{rare} {exponent}: {answered:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_row_is_too_short_to_be_answered_about() {
        for loss in [Loss::Logistic, Loss::SmoothHinge { width: 0.5 }] {
            for tiny in [-0.5, 1e-3, -1e-100, -1e-200, 1e-305, -1e-310] {
                for zero in [false, true] {
                    let mut builder = ShardBuilder::new(9, NormPolicy::Unit);
                    for n in 0..400u32 {
                        let x = (f64::from(n) * 1.7).sin();
                        builder
                            .push(&[(0, x), (1 + n % 7, 1.0)], n % 3 == 0)
                            .unwrap();
                    }
                    let row = [(0, tiny), (8, 0.0)];
                    let row = if zero { &row[..] } else { &row[..1] };
                    builder.push(row, true).unwrap();
                    let mut curator = curator(Budget::unlimited(0.0).unwrap());
                    curator.config.problem.loss = loss;
                    curator.exchange_rows(builder.finish().unwrap());
                    let question = Query::Minimise {
                        quadratic: 1.0,
                        linear: vec![0.1; 9],
                        near: vec![0.0; 9],
                    };
                    let answered = curator.answer(1, &question);
                    assert!(answered.is_ok(), "{loss:?} {tiny}: {answered:?}");
                }
            }
        }
    }

    #[test]
    fn a_real_party_answers_alike_whatever_it_was_asked_before() {
        let ask = |before: bool| {
            let config = CuratorConfig {
                noise: NoiseKey::secret([7; 32]),
                ..config(Budget::unlimited(0.0).unwrap())
            };
            let mut curator = Curator::new(rows(), config).unwrap();
            if before {
                curator.answer(1, &question(vec![3.0, -2.0])).unwrap();
            }
            curator.answer(2, &question(vec![0.5, 0.2])).unwrap()
        };
        assert_eq!(ask(false), ask(true));
    }

    #[test]
    fn a_question_that_was_paid_for_is_not_asked_again_even_if_it_failed() {
        // Rows of another width make the solver fail after the charge; in a real party only an uncertified answer does.
        let mut curator = curator(Budget::unlimited(0.0).unwrap());
        curator.exchange_rows(Shard::untouchable(2, 2));
        let paid = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            curator.answer(1, &question(vec![0.0; 2]))
        }));
        assert!(paid.is_err());
        let again = curator.answer(1, &question(vec![1.0; 2]));
        assert_eq!(again, Err(Refusal::AskedTwice(1)));
        assert_eq!(curator.ledger().charges(), 1);
    }

    #[test]
    fn invalid_configs_are_rejected() {
        let good = || config(Budget::unlimited(0.0).unwrap());
        let with = |change: &dyn Fn(&mut CuratorConfig)| {
            let mut config = good();
            change(&mut config);
            Curator::new(rows(), config).err()
        };
        assert_eq!(with(&|_| ()), None);
        let hinge = |width| Loss::SmoothHinge { width };
        let gaussian = |sigma| Mechanism::Output {
            law: NoiseDistribution::Gaussian { sigma },
        };
        let gamma = |rate| Mechanism::Objective {
            law: NoiseDistribution::Gamma { rate },
            scale: NoiseScaling::Fixed,
        };
        assert!(with(&|t| t.problem.nodes = 0).is_some());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(with(&|t| t.problem.weight = bad).is_some());
            assert!(with(&|t| t.problem.ridge = bad).is_some());
            assert!(with(&|t| t.problem.tolerance = bad).is_some());
            assert!(with(&|t| t.problem.loss = hinge(bad)).is_some());
            assert!(with(&|t| t.mechanism = gaussian(bad)).is_some());
            assert!(with(&|t| t.mechanism = gamma(bad)).is_some());
        }
        let too_exact = with(&|t| t.problem.tolerance = 1e-16);
        assert!(matches!(
            too_exact,
            Some(InvalidCuratorConfig::TooExact { .. })
        ));
    }

    #[test]
    fn only_noise_that_protects_nobody_goes_with_shared_rows() {
        let shared = Arc::new(rows());
        let config_with = |noise| CuratorConfig {
            noise,
            ..config(Budget::unlimited(0.0).unwrap())
        };
        let secret = Curator::simulated(shared.clone(), config_with(NoiseKey::secret([1; 32])));
        assert_eq!(secret.err(), Some(InvalidCuratorConfig::SharedRows));
        let seeded = Curator::simulated(shared, config_with(NoiseKey::repeating(1, 0, 0)));
        assert!(seeded.is_ok());
    }
}
