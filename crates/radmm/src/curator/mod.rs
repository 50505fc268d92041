//! The curator: owns one party's rows and answers queries about them, each of them paid for.
//!
//! A query is checked, priced, charged, answered and rounded to the grid, in this order. The price comes from public
//! facts, and the ledger refuses before a row is read. Only an answer that was paid for and certified is released, as
//! integers.
//!
//! This is the only folder that reads rows. They enter through a [`ShardBuilder`] and move into a [`Curator`], which
//! releases nothing but paid answers.

mod answer;
mod answer_limit;
#[cfg(feature = "bench")]
pub mod bench_hooks;
mod bytes;
mod config;
mod error_model;
mod evaluation;
mod grid;
mod held_rows;
#[cfg(test)]
mod independence;
mod kernel;
mod noise_key;
mod quadratic_model;
mod query_check;
mod row_passes;
mod row_sums;
mod rows;
mod samplers;
mod solver;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use thiserror::Error;
use zeroize::optimization_barrier;

pub use answer::Unreleasable;
pub use answer_limit::{AnswerLimit, BeyondLimit};
pub use config::{CuratorConfig, InvalidCuratorConfig, MAX_ROWS};
pub(crate) use evaluation::evaluate;
pub use evaluation::{HeldOutScore, auc};
pub use grid::TooCoarse;
pub use held_rows::HeldRows;
pub use noise_key::{NoiseKey, NoiseSecret};
pub(crate) use quadratic_model::QuadraticModel;
pub use row_passes::{ChunkHolder, ChunkWorkers, PassFailed, WorkerRequest, WorkerRows};
pub use rows::row_memory::{ChunkStorage, RowMemory, StoredBytes};
pub use rows::shard::{NoRows, NormPolicy, RowError, Shard, ShardBuilder};
pub use solver::quasi_newton::WarmStart;
pub use solver::{NotCertified, Unsolved};

use crate::exec::{ChunkExecutor, Sequential};
use crate::privacy::{Ledger, Paid, PrivacyEvent, SpendError, Unanswerable};
use crate::protocol::query::Query;
use crate::protocol::release::Release;
use answer::{AnswerPlan, Rows, Unanswered};
use noise_key::SeedInputs;
use query_check::check;
use row_passes::{LocalChunks, PassCache};
use solver::Target;
use solver::objective::{self, Objective};

/// The reason why a query was not answered.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Refusal {
    /// The iteration has had its query. A second one would be answered with the noise of the first.
    #[error("iteration {0} was answered already")]
    AlreadyAnswered(u32),
    /// The query is malformed.
    #[error("malformed query: {0}")]
    Malformed(&'static str),
    /// The coefficients are too large: an answer could be certified for some rows and not for others. No row was read.
    #[error(
        "the query's coefficients are of size {size:e}, and the limit is {largest:e}: the algorithm diverges (lower the step, raise the penalty), the noise is too large for it (raise rate or lower sigma), or a neighbour misbehaves"
    )]
    TooLarge {
        /// `‖b‖ + m‖near‖` of a minimiser, `(ρ/N)‖f‖` of a gradient.
        size: f64,
        /// The limit.
        largest: f64,
    },
    /// The party's mechanism does not protect answers of this kind.
    #[error(transparent)]
    Unanswerable(#[from] Unanswerable),
    /// The ledger refused the charge. No row was read.
    #[error(transparent)]
    BudgetRefused(#[from] SpendError),
    /// Rounding to the grid would cost more than is charged for it. No row was read.
    #[error(transparent)]
    TooCoarse(#[from] TooCoarse),
    /// The journal belongs to another study, other rows or another version of the program.
    #[error(
        "the record of iteration {0} differs from what this study asks or what these rows answer: the state belongs to another study, other rows or another version of the program"
    )]
    RecordMismatch(u32),
    /// The query was charged before, and its answer could not be released. The charge stands.
    #[error("the query of iteration {0} was charged before, and its answer could not be released")]
    PreviouslyUnreleasable(u32),
    /// The answer cannot be released. The charge stands.
    #[error("{cause}")]
    Unreleasable {
        /// The event that was charged.
        event: PrivacyEvent,
        /// The reason.
        cause: Unreleasable,
    },
    /// The rows could not be read. Nothing was released: the party must stop before it records anything, and ask again
    /// after a restart.
    #[error(transparent)]
    PassFailed(#[from] PassFailed),
}

/// The fit of a model on one party's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RowFit {
    /// `(1/B) Σ_n L(fᵀz_n)`.
    pub loss: f64,
    /// The share of rows that are classified correctly.
    pub accuracy: f64,
    /// `O_i(f)`.
    pub objective: f64,
}

/// A journal's record of a query that was charged.
#[derive(Clone, Debug, PartialEq)]
pub struct ChargedAnswer {
    /// The iteration of the data step.
    pub iteration: u32,
    /// The event that was charged.
    pub event: PrivacyEvent,
    /// The answer; `None` if it could not be released.
    pub answer: Option<Release>,
}

/// A query that awaits its answer.
pub(crate) struct PendingQuery<'a> {
    pub curator: &'a mut Curator,
    pub iteration: u32,
    pub query: &'a Query,
}

/// One party's rows, and the configuration by which they answer queries.
pub struct Curator {
    rows: HeldRows,
    executor: Arc<dyn ChunkExecutor>,
    config: CuratorConfig,
    /// The last iteration whose query was charged.
    last_answered: u32,
    /// The solver's state between queries; `None` starts every query cold.
    warm_start: Option<WarmStart>,
    /// The numbers by row that the last pass left for the next one.
    cache: PassCache,
    /// The number of passes over the rows that each answer took, where they were counted; at most 255.
    passes: Vec<u8>,
    largest_residual: f64,
}

impl Curator {
    /// Creates a curator that owns the rows. They cannot be taken out again.
    pub fn new(
        rows: impl Into<HeldRows>,
        config: CuratorConfig,
    ) -> Result<Self, InvalidCuratorConfig> {
        Self::with_rows(rows.into(), config)
    }

    /// Creates a curator on shared rows, for the repetitions of a simulation.
    ///
    /// Shared rows could be queried through any number of curators, so the noise must be of the kind that repeats and
    /// protects nobody anyway.
    pub fn simulated(
        shard: Arc<Shard>,
        config: CuratorConfig,
    ) -> Result<Self, InvalidCuratorConfig> {
        if !config.noise.repeats() {
            return Err(InvalidCuratorConfig::SharedRows);
        }
        Self::with_rows(shard.into(), config)
    }

    fn with_rows(rows: HeldRows, mut config: CuratorConfig) -> Result<Self, InvalidCuratorConfig> {
        config::check(&config)?;
        config::check_size(rows.rows(), rows.chunks())?;
        config.problem.shape = Some(config::check_shape(&rows, config.problem.shape)?);
        Ok(Self {
            rows,
            executor: Arc::new(Sequential),
            config,
            last_answered: 0,
            warm_start: None,
            cache: PassCache::default(),
            passes: Vec::new(),
            largest_residual: 0.0,
        })
    }

    /// Runs passes over the rows on an executor.
    pub fn with_executor(self, executor: Arc<dyn ChunkExecutor>) -> Self {
        Self { executor, ..self }
    }

    /// Keeps the solver's state from one query to the next. This has no effect under a secret noise key.
    pub fn with_warm_start(mut self, warm_start: WarmStart) -> Self {
        self.set_warm_start(warm_start);
        self
    }

    // Privacy: noise must depend on everything that an answer depends on except the rows, or two answers to one query
    // could differ by a quantity without noise. The solver's state is not in the noise's seed. A real party may be
    // restarted and asked again, so it keeps no state. A simulation protects nobody, so it may.
    pub(crate) fn set_warm_start(&mut self, warm_start: WarmStart) {
        self.warm_start = self.config.noise.repeats().then_some(warm_start);
    }

    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.config.ledger
    }

    /// Returns `B`, the number of rows; public.
    pub fn rows(&self) -> usize {
        self.rows.rows()
    }

    /// Returns `d`, the number of columns; public.
    pub fn columns(&self) -> usize {
        self.rows.columns()
    }

    /// Returns the ledger, with everything that has been spent.
    pub fn ledger(&self) -> &Ledger {
        &self.config.ledger
    }

    /// Returns whether others can draw the noise again, so that it protects nobody.
    pub fn noise_repeats(&self) -> bool {
        self.config.noise.repeats()
    }

    /// Checks, prices, charges and answers the query of one iteration. Iterations count from 1 and must increase.
    pub(crate) fn answer(
        &mut self,
        iteration: u32,
        query: &Query,
    ) -> Result<(PrivacyEvent, Release), Refusal> {
        if iteration <= self.last_answered {
            return Err(Refusal::AlreadyAnswered(iteration));
        }
        check(query, self.columns(), &self.config.problem)?;
        let problem = &self.config.problem;
        let rows = self.rows();
        let event = self.config.mechanism.price(query, problem, rows)?;
        // An answer that the grid cannot hold accurately enough is refused before it is charged.
        let plan = AnswerPlan::new(query, &event, problem, (rows, self.columns()))?;
        let paid = self.config.ledger.spend(event)?;
        self.last_answered = iteration;
        let release = self.compute_release(iteration, query, paid, &plan);
        // Privacy: whoever reads this process later cannot draw the noise of this answer again. A query whose pass failed
        // has no answer yet: it is asked again after a restart, and must get the same noise, or two answers to it could be
        // told apart.
        if !matches!(release, Err(Refusal::PassFailed(_))) {
            self.config.noise.ratchet();
        }
        Ok((event, release?))
    }

    /// Computes the release for a query that was paid for, with the noise that was charged.
    // A function of its own, so that what it leaves on the stack is below its caller's part, and can be wiped.
    #[inline(never)]
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
            passes: &*self.rows.passes(&*self.executor, &self.cache),
            problem: &config.problem,
        };
        let inputs = SeedInputs {
            iteration,
            query,
            event: &event,
            problem: &config.problem,
            rows: self.rows.rows(),
        };
        let mut rng = config.noise.generator(&inputs);
        let mut cold = WarmStart::default();
        let warm_start = self.warm_start.as_mut().unwrap_or(&mut cold);
        let answer = rows
            .noisy_answer(query, paid, plan, warm_start, &mut rng)
            .map_err(|unanswered| match unanswered {
                Unanswered::Unreleasable(cause) => Refusal::Unreleasable { event, cause },
                Unanswered::PassFailed(failed) => Refusal::PassFailed(failed),
            });
        // Privacy: the generator's state would draw the same noise again.
        rng = ChaCha20Rng::from_seed([0; 32]);
        optimization_barrier(&rng);
        let answer = answer?;
        self.largest_residual = self.largest_residual.max(answer.residual);
        if warm_start.passes() > 0 {
            self.passes.push(warm_start.passes().min(255) as u8);
        }
        Ok(answer.release)
    }

    /// Replays a query from the journal, with its recorded charge and answer. Nothing is charged: this curator's ledger
    /// holds the charge already.
    // Privacy: the answer is the one on record, never a second one. Rows are read only where noise repeats: for minimisers, since the
    // solver keeps state between them and later answers depend on it, and for the first answer, which shows whether the rows are
    // those of the journal. The computed answer is compared and dropped.
    pub(crate) fn replay(
        &mut self,
        iteration: u32,
        query: &Query,
        recorded: &ChargedAnswer,
    ) -> Result<(PrivacyEvent, Release), Refusal> {
        if iteration <= self.last_answered {
            return Err(Refusal::AlreadyAnswered(iteration));
        }
        let mismatch = Refusal::RecordMismatch(iteration);
        check(query, self.columns(), &self.config.problem)?;
        let (problem, rows) = (&self.config.problem, self.rows());
        let event = self.config.mechanism.price(query, problem, rows)?;
        if !event.is_recorded_as(&recorded.event) || recorded.iteration != iteration {
            return Err(mismatch);
        }
        let is_first = self.last_answered == 0;
        self.last_answered = iteration;
        let Some(answer) = &recorded.answer else {
            return Err(Refusal::PreviouslyUnreleasable(iteration));
        };
        if answer.values().len() != query.width(self.columns()) {
            return Err(mismatch);
        }
        let computes = is_first || matches!(query, Query::Minimise { .. });
        let repeats = self.config.noise.repeats();
        let paid = self.config.ledger.paid_before(event, repeats);
        if let Some(paid) = paid.filter(|_| computes) {
            let plan = AnswerPlan::new(query, &event, problem, (rows, self.columns()))?;
            if self.compute_release(iteration, query, paid, &plan)? != *answer {
                return Err(mismatch);
            }
        }
        Ok((recorded.event, answer.clone()))
    }

    /// Returns the fit of `f` on these rows, unprotected: for the simulator alone, which holds all parties' rows anyway.
    pub(crate) fn row_fit(&self, f: &[f64]) -> Result<RowFit, PassFailed> {
        let problem = &self.config.problem;
        let cache = PassCache::default();
        let rows = self.rows.passes(&*self.executor, &cache);
        let (loss, accuracy) = objective::mean_loss_and_accuracy(&*rows, problem.loss, f)?;
        let square: f64 = f.iter().map(|f| f * f).sum();
        Ok(RowFit {
            loss,
            accuracy,
            objective: problem.weight * loss + problem.share() / 2.0 * square,
        })
    }

    /// Returns the minimiser of the sum of all curators' objectives, unprotected: for the simulator alone.
    pub(crate) fn centralised<'a>(
        curators: impl Iterator<Item = &'a Curator>,
    ) -> Result<Vec<f64>, Unsolved> {
        let mut curators = curators.peekable();
        let Some(&first) = curators.peek() else {
            return Ok(Vec::new());
        };
        let problem = &first.config.problem;
        let mut weight = 0.0;
        let mut shards = Vec::new();
        for curator in curators {
            let shard = curator.rows.shard().ok_or_else(|| {
                PassFailed::new("rows that are with workers cannot be pooled with others")
            })?;
            let own = curator.config.problem.weight;
            weight += own;
            shards.push((&**shard, own / curator.rows() as f64));
        }
        let count = shards.len() as f64;
        let cache = PassCache::default();
        let rows = LocalChunks::pooled(shards.into_iter(), &*first.executor, &cache);
        let objective = Objective {
            rows: &rows,
            weight,
            row_weight: 1.0,
            loss: problem.loss,
            modulus: problem.ridge,
            linear: &vec![0.0; first.columns()],
            stride: 1,
        };
        let start = vec![0.0; first.columns()];
        // As accurate as the parties' own minimisers: the gradient is a sum of that many gradients.
        let target = Target {
            tolerance: problem.required_residual(&[]) * count,
            doubled: false,
        };
        Ok(solver::minimise(&objective, &start, &target, &mut WarmStart::default())?.point)
    }

    /// Returns the quadratic model of `O_i` at `f`, unprotected: for the simulator alone, which computes convergence
    /// rates.
    pub(crate) fn quadratic(&self, f: &[f64]) -> Result<QuadraticModel, PassFailed> {
        let cache = PassCache::default();
        let rows = Rows {
            passes: &*self.rows.passes(&*self.executor, &cache),
            problem: &self.config.problem,
        };
        let linear = vec![0.0; f.len()];
        let hessian = rows.objective(0.0, &linear).full_hessian(f)?;
        Ok(QuadraticModel::new(hessian, f.len()))
    }

    /// Returns the number of passes over the rows that each answer took. It depends on rows, so only the simulator
    /// reports it.
    pub(crate) fn passes(&self) -> &[u8] {
        &self.passes
    }

    /// Returns the largest gradient norm at which a minimiser was released. It depends on rows, so only the simulator
    /// reports it.
    pub(crate) fn largest_residual(&self) -> f64 {
        self.largest_residual
    }

    /// Replaces the ledger, for tests of budget limits.
    #[cfg(test)]
    pub(crate) fn replace_ledger(&mut self, ledger: Ledger) {
        self.config.ledger = ledger;
    }

    /// Replaces the mechanism, for tests of answers that cannot be released.
    #[cfg(test)]
    pub(crate) fn replace_mechanism(&mut self, mechanism: crate::privacy::Mechanism) {
        self.config.mechanism = mechanism;
    }

    /// Replaces the noise key, for tests of what secret noise forbids.
    #[cfg(test)]
    pub(crate) fn replace_noise(&mut self, noise: NoiseKey) {
        self.config.noise = noise;
    }

    /// Replaces the rows, for tests that recycled steps do not read them.
    #[cfg(test)]
    pub(crate) fn replace_rows(&mut self, shard: Shard) {
        let removed = std::mem::replace(&mut self.rows, shard.into());
        let shared = removed.shard().map_or(1, Arc::strong_count);
        assert_eq!(shared, 1, "nobody else held them");
    }

    /// Returns whether both curators hold the same rows and the same problem.
    pub(crate) fn is_replica_of(&self, other: &Self) -> bool {
        let same = match (self.rows.shard(), other.rows.shard()) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        same && self.config.problem == other.config.problem
    }
}

impl PendingQuery<'_> {
    /// Answers the query, see [`Curator::answer`].
    pub(crate) fn answer(self) -> Result<(PrivacyEvent, Release), Refusal> {
        self.curator.answer(self.iteration, self.query)
    }

    /// Answers the query from its record, see [`Curator::replay`].
    pub(crate) fn replay(
        self,
        recorded: &ChargedAnswer,
    ) -> Result<(PrivacyEvent, Release), Refusal> {
        self.curator.replay(self.iteration, self.query, recorded)
    }
}
