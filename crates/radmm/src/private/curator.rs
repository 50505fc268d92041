//! The curator: owns one party's rows and never lets an answer go unpaid.
//!
//! Price → spend → answer → grid, in this order: the price comes from public facts, the ledger refuses before a row is
//! read, and only an answer that was paid for and certified leaves, as integers.

use std::sync::Arc;

use thiserror::Error;

use super::grid::TooCoarse;
use super::hands::{Hands, OneHand};
use super::loss::Loss;
use super::mechanism::{Manner, Mechanism, Problem, Rows, Unanswerable, Unreleasable};
use super::noise::{Asked, Law, NoiseKey};
use super::quadratic::Quadratic;
use super::search::Memory;
use super::shard::Shard;
use super::solve::{self, Aim, NotCertified, Objective};
use crate::account::{Event, Ledger, Paid, SpendError};
use crate::public::release::{Precision, Query, Release};

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
    /// Rounding would cost more than what is charged for it. No row was read.
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
        event: Event,
        /// Why.
        cause: Unreleasable,
    },
}

/// Terms on which nothing can be answered.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum BadTerms {
    /// A quantity that is negative, zero, infinite or not a number.
    #[error("the {what} is {value}; it must be {needed}")]
    OutOfRange {
        /// Which.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What would be right.
        needed: &'static str,
    },
    /// A residual that double precision does not reach at this loss weight.
    #[error(
        "the tolerance is {tolerance:e}; at a loss weight of {weight:?} it must be at least {least:.1e}: raise it, lower the weight, or widen a smooth hinge"
    )]
    TooExact {
        /// `τ`.
        tolerance: f64,
        /// `C`.
        weight: f64,
        /// What would do.
        least: f64,
    },
    /// Sums over more rows lose more than the bound on their rounding says.
    #[error(
        "there are {rows} rows, and a party can have {MOST_ROWS} at most: share them out among several"
    )]
    TooManyRows {
        /// How many.
        rows: usize,
    },
    /// Rows that several curators hold could be asked more than one ledger knows of.
    #[error(
        "shared rows are for simulations, whose noise repeats; a real party's curator owns its rows"
    )]
    SharedRows,
}

/// How a party answers.
pub struct Terms {
    /// What is minimised.
    pub problem: Problem,
    /// How answers are protected.
    pub mechanism: Mechanism,
    /// What may be spent, and what has been.
    pub ledger: Ledger,
    /// Where noise comes from.
    pub noise: NoiseKey,
}

/// How good a model is on rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Fit {
    /// `(1/B) Σ_n L(fᵀz_n)`.
    pub loss: f64,
    /// The share of rows that are classified rightly.
    pub accuracy: f64,
    /// `O_i(f)`.
    pub objective: f64,
}

/// What a journal holds of a question that was charged.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Of the data step.
    pub iteration: u32,
    /// What was charged.
    pub event: Event,
    /// What was paid for; `None` if it could not be released.
    pub answer: Option<Release>,
}

/// A question that is to be answered.
pub(crate) struct Asking<'a> {
    pub curator: &'a mut Curator,
    /// Of which iteration.
    pub iteration: u32,
    pub query: &'a Query,
}

/// One party's rows and the terms on which they answer.
pub struct Curator {
    shard: Arc<Shard>,
    hands: Arc<dyn Hands>,
    terms: Terms,
    answered: u32,
    /// What its solver knows of the rows.
    memory: Memory,
    /// Passes over the rows that each answer took, if they were counted; more than 255 count as that.
    passes: Vec<u8>,
    largest_residual: f64,
}

impl Curator {
    /// Takes the rows in. They do not come out again.
    pub fn new(shard: Shard, terms: Terms) -> Result<Self, BadTerms> {
        Self::with_rows(Arc::new(shard), terms)
    }

    /// Repetitions of a simulation share their rows. Whoever holds these could ask them anything through a curator of
    /// his own, so the noise must be of the kind that protects nobody anyway.
    pub fn simulated(shard: Arc<Shard>, terms: Terms) -> Result<Self, BadTerms> {
        if !terms.noise.repeats() {
            return Err(BadTerms::SharedRows);
        }
        Self::with_rows(shard, terms)
    }

    fn with_rows(shard: Arc<Shard>, terms: Terms) -> Result<Self, BadTerms> {
        check_terms(&terms)?;
        check_rows(shard.rows())?;
        Ok(Self {
            shard,
            hands: Arc::new(OneHand),
            terms,
            answered: 0,
            memory: Memory::default(),
            passes: Vec::new(),
            largest_residual: 0.0,
        })
    }

    /// The same, with others to go over the rows.
    pub fn with_hands(self, hands: Arc<dyn Hands>) -> Self {
        Self { hands, ..self }
    }

    /// `B`; public.
    pub fn rows(&self) -> usize {
        self.shard.rows()
    }

    /// `d`; public.
    pub fn columns(&self) -> usize {
        self.shard.columns()
    }

    /// How its answers are written.
    pub fn precision(&self) -> Precision {
        self.terms.problem.precision
    }

    /// What has been spent.
    pub fn ledger(&self) -> &Ledger {
        &self.terms.ledger
    }

    /// Whether the noise can be drawn again by others, and so protects nobody.
    pub fn noise_repeats(&self) -> bool {
        self.terms.noise.repeats()
    }

    /// Answers the question of one iteration; iterations are counted from 1 and only go up.
    pub(crate) fn answer(
        &mut self,
        iteration: u32,
        query: &Query,
    ) -> Result<(Event, Release), Refusal> {
        if iteration <= self.answered {
            return Err(Refusal::AskedTwice(iteration));
        }
        check(query, self.columns(), &self.terms.problem)?;
        let problem = &self.terms.problem;
        let rows = self.shard.rows();
        let event = self.terms.mechanism.price(query, problem, rows)?;
        // What cannot be written finely enough is refused before it is charged.
        let manner = Manner::new(query, &event, problem, (rows, self.columns()))?;
        let paid = self.terms.ledger.spend(event)?;
        self.answered = iteration;
        Ok((event, self.solve(iteration, query, paid, &manner)?))
    }

    /// Draws the noise of an answer that was paid for, and finds it.
    fn solve(
        &mut self,
        iteration: u32,
        query: &Query,
        paid: Paid,
        manner: &Manner,
    ) -> Result<Release, Refusal> {
        let terms = &self.terms;
        let event = *paid.event();
        // Privacy: noise must depend on everything that an answer depends on but the rows, or two answers to one question
        // could differ by something without noise. What the solver remembers is not in its seed; so a real party, which may be
        // restarted and asked again, has it remember nothing. A simulation protects nobody, and may.
        if !terms.noise.repeats() {
            self.memory = Memory::default();
        }
        let rows = Rows {
            shard: &self.shard,
            problem: &terms.problem,
            hands: &*self.hands,
        };
        let asked = Asked {
            iteration,
            query,
            event: &event,
            problem: &terms.problem,
            rows: self.shard.rows(),
        };
        let mut rng = terms.noise.generator(&asked);
        let answer = rows
            .answer(query, paid, manner, &mut self.memory, &mut rng)
            .map_err(|cause| Refusal::Unreleasable { event, cause })?;
        self.largest_residual = self.largest_residual.max(answer.residual);
        if self.memory.passes() > 0 {
            self.passes.push(self.memory.passes().min(255) as u8);
        }
        Ok(answer.release)
    }

    /// Goes through a question again that is on record with its charge, which this curator's ledger has been given already, and
    /// with its answer. Nothing is charged.
    // Privacy: the answer is the one on record, never a second one. Rows are looked at for it only where noise repeats, since
    // there the solver remembers earlier questions and later answers depend on it; what is computed is compared and dropped.
    pub(crate) fn recall(
        &mut self,
        iteration: u32,
        query: &Query,
        recorded: &Recorded,
    ) -> Result<(Event, Release), Refusal> {
        if iteration <= self.answered {
            return Err(Refusal::AskedTwice(iteration));
        }
        let other = Refusal::NotOnRecord(iteration);
        check(query, self.columns(), &self.terms.problem)?;
        let (problem, rows) = (&self.terms.problem, self.shard.rows());
        let priced = self.terms.mechanism.price(query, problem, rows)?;
        if priced != recorded.event || recorded.iteration != iteration {
            return Err(other);
        }
        self.answered = iteration;
        let Some(answer) = &recorded.answer else {
            return Err(Refusal::UnreleasableBefore(iteration));
        };
        let fits =
            answer.values().len() == self.columns() && answer.precision() == self.precision();
        if !fits {
            return Err(other);
        }
        if let Some(paid) = self.terms.ledger.paid_before(priced, &self.terms.noise) {
            let manner = Manner::new(query, &priced, problem, (rows, self.columns()))?;
            if self.solve(iteration, query, paid, &manner)? != *answer {
                return Err(other);
            }
        }
        Ok((recorded.event, answer.clone()))
    }

    /// How good `f` is on these rows, unprotected: for the simulator alone, which holds everybody's rows anyway.
    pub(crate) fn observe(&self, f: &[f64]) -> Fit {
        let problem = &self.terms.problem;
        let (loss, accuracy) =
            solve::mean_loss_and_accuracy(&self.shard, problem.loss, f, &*self.hands);
        let square: f64 = f.iter().map(|f| f * f).sum();
        Fit {
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
        let problem = &first.terms.problem;
        let shards = std::iter::once(&first.shard).chain(curators.map(|other| &other.shard));
        let objective = Objective {
            shards: shards.map(|shard| &**shard).collect(),
            loss: problem.loss,
            weight: problem.weight,
            modulus: problem.ridge,
            linear: &vec![0.0; first.columns()],
            hands: &*first.hands,
            stride: 1,
        };
        let start = vec![0.0; first.columns()];
        // As exact as the parties' own minimisers: a sum of that many gradients.
        let aim = Aim {
            tolerance: problem.residual(&[]) * objective.shards.len() as f64,
            doubled: false,
        };
        Ok(solve::minimise(&objective, &start, &aim, &mut Memory::default())?.point)
    }

    /// The quadratic model of `O_i` at `f`, unprotected: for the simulator alone, which asks how fast algorithms converge.
    pub(crate) fn quadratic(&self, f: &[f64]) -> Quadratic {
        let problem = &self.terms.problem;
        let objective = Objective {
            shards: vec![&self.shard],
            loss: problem.loss,
            weight: problem.weight,
            modulus: problem.share(),
            linear: &vec![0.0; f.len()],
            hands: &*self.hands,
            stride: 1,
        };
        Quadratic::new(objective.hessian_at(f), f.len())
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
        self.terms.ledger = ledger;
    }

    /// Another mechanism, for a test of what cannot be released.
    #[cfg(test)]
    pub(crate) fn exchange_mechanism(&mut self, mechanism: Mechanism) {
        self.terms.mechanism = mechanism;
    }

    /// Another key, for a test of what secret noise forbids.
    #[cfg(test)]
    pub(crate) fn exchange_noise(&mut self, noise: NoiseKey) {
        self.terms.noise = noise;
    }

    /// Takes the rows away, for a test that recycled steps do not miss them.
    #[cfg(test)]
    pub(crate) fn exchange_rows(&mut self, shard: Shard) {
        let removed = std::mem::replace(&mut self.shard, shard.into());
        assert!(Arc::into_inner(removed).is_some(), "nobody else held them");
    }

    /// Whether both ask the same rows about the same problem.
    pub(crate) fn is_replica_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shard, &other.shard) && self.terms.problem == other.terms.problem
    }
}

impl Asking<'_> {
    /// Has it answered.
    pub(crate) fn answer(self) -> Result<(Event, Release), Refusal> {
        self.curator.answer(self.iteration, self.query)
    }

    /// Has it answered as is on record.
    pub(crate) fn recall(self, recorded: &Recorded) -> Result<(Event, Release), Refusal> {
        self.curator.recall(self.iteration, self.query, recorded)
    }
}

/// Below this strong convexity a hostile question can be found that is certified for some rows and not for others. A
/// question without a linear term, as of training alone, is nobody's but the party's own.
const LEAST_MODULUS: f64 = 1e-3;

/// `B²u < 1` up to here, `u = 2⁻⁵³`: a compensated sum over the rows is then as good as one addition.
const MOST_ROWS: usize = 1 << 26;

fn check_rows(rows: usize) -> Result<(), BadTerms> {
    match rows <= MOST_ROWS {
        true => Ok(()),
        false => Err(BadTerms::TooManyRows { rows }),
    }
}

/// Nothing downstream checks again.
fn check_terms(terms: &Terms) -> Result<(), BadTerms> {
    let problem = &terms.problem;
    let width = match problem.loss {
        Loss::Logistic => 1.0,
        Loss::SmoothHinge { width } => width,
    };
    let noise = match terms.mechanism {
        Mechanism::None => 1.0,
        Mechanism::Objective { law, .. }
        | Mechanism::Output { law }
        | Mechanism::Gradient { law } => match law {
            Law::Gamma { rate } => rate,
            Law::Gaussian { sigma } => sigma,
        },
    };
    for (what, value) in [
        ("loss weight", problem.weight),
        ("ridge", problem.ridge),
        ("number of nodes", f64::from(problem.nodes)),
        ("width of the hinge", width),
        ("rate or sigma of the noise", noise),
        ("tolerance", problem.tolerance),
    ] {
        if !(value.is_finite() && value > 0.0) {
            return Err(BadTerms::OutOfRange {
                what,
                value,
                needed: "positive and finite",
            });
        }
    }
    let least = problem.least_tolerance();
    if problem.tolerance < least {
        return Err(BadTerms::TooExact {
            tolerance: problem.tolerance,
            weight: problem.weight,
            least,
        });
    }
    Ok(())
}

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
            solve::norm(linear) + modulus * solve::norm(near)
        }
        Query::Gradient { at } => problem.share() * solve::norm(at),
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
    use super::*;
    use crate::account::{Bound, Budget};
    use crate::private::{NormPolicy, Scaling, ShardBuilder};

    fn rows() -> Shard {
        let mut builder = ShardBuilder::new(2, NormPolicy::Unit);
        builder.push(&[(0, 1.0)], true).unwrap();
        builder.push(&[(1, 1.0)], false).unwrap();
        builder.finish().unwrap()
    }

    fn terms(budget: Budget) -> Terms {
        Terms {
            problem: Problem {
                loss: Loss::Logistic,
                weight: 1.0,
                ridge: 0.1,
                nodes: 2,
                tolerance: 1e-10,
                precision: Precision::Grid,
            },
            mechanism: Mechanism::Objective {
                law: Law::Gamma { rate: 1.0 },
                scale: Scaling::Fixed,
            },
            ledger: Ledger::new(budget, Bound::Tight),
            noise: NoiseKey::repeating(1, 0, 0),
        }
    }

    fn curator(budget: Budget) -> Curator {
        Curator::new(rows(), terms(budget)).unwrap()
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
        let many = BadTerms::TooManyRows {
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
        curator.terms.problem.ridge = 1e-5;
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
                    curator.terms.problem.loss = loss;
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
            let terms = Terms {
                noise: NoiseKey::secret([7; 32]),
                ..terms(Budget::unlimited(0.0).unwrap())
            };
            let mut curator = Curator::new(rows(), terms).unwrap();
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
    fn terms_that_make_no_sense_are_refused() {
        let good = || terms(Budget::unlimited(0.0).unwrap());
        let with = |change: &dyn Fn(&mut Terms)| {
            let mut terms = good();
            change(&mut terms);
            Curator::new(rows(), terms).err()
        };
        assert_eq!(with(&|_| ()), None);
        let hinge = |width| Loss::SmoothHinge { width };
        let gaussian = |sigma| Mechanism::Output {
            law: Law::Gaussian { sigma },
        };
        let gamma = |rate| Mechanism::Objective {
            law: Law::Gamma { rate },
            scale: Scaling::Fixed,
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
        assert!(matches!(too_exact, Some(BadTerms::TooExact { .. })));
    }

    #[test]
    fn only_noise_that_protects_nobody_goes_with_shared_rows() {
        let shared = Arc::new(rows());
        let terms_with = |noise| Terms {
            noise,
            ..terms(Budget::unlimited(0.0).unwrap())
        };
        let secret = Curator::simulated(shared.clone(), terms_with(NoiseKey::secret([1; 32])));
        assert_eq!(secret.err(), Some(BadTerms::SharedRows));
        let seeded = Curator::simulated(shared, terms_with(NoiseKey::repeating(1, 0, 0)));
        assert!(seeded.is_ok());
    }
}
