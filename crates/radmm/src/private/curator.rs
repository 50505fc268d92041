//! The curator: owns one party's rows and never lets an answer go unpaid.
//!
//! Price → spend → answer, in this order: the price comes from public facts, the ledger refuses before a row is read,
//! and only an answer that was paid for and certified leaves.

use std::sync::Arc;

use thiserror::Error;

use super::mechanism::{Mechanism, Problem, Rows, Unanswerable};
use super::noise::NoiseKey;
use super::shard::Shard;
use super::solve::{self, NotCertified, Objective};
use crate::account::{Event, Ledger, SpendError};
use crate::public::release::{Query, Release};

/// Why a question was not answered.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Refusal {
    /// One question an iteration: a second one would be answered with the first one's noise.
    #[error("iteration {0} was answered already")]
    AskedTwice(u32),
    /// The question itself is malformed.
    #[error("the question is malformed: {0}")]
    Malformed(&'static str),
    /// The party's mechanism does not protect such answers.
    #[error(transparent)]
    Unanswerable(#[from] Unanswerable),
    /// The ledger said no. No row was read.
    #[error(transparent)]
    Unpaid(#[from] SpendError),
    /// The minimiser was not found with the accuracy that the guarantee needs. The charge stands, nothing was released.
    #[error(transparent)]
    NotCertified(#[from] NotCertified),
}

/// How a party answers.
pub struct Terms {
    /// What is minimised.
    pub problem: Problem,
    /// How answers are protected.
    pub mechanism: Mechanism,
    /// The largest gradient norm at which a minimiser counts as found.
    pub tolerance: f64,
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

/// One party's rows and the terms on which they answer.
pub struct Curator {
    shard: Arc<Shard>,
    terms: Terms,
    answered: u32,
    largest_residual: f64,
}

impl Curator {
    /// Takes the rows in. They do not come out again. Repetitions of a simulation may share them: whoever else holds the
    /// shard cannot read it either.
    pub fn new(shard: impl Into<Arc<Shard>>, terms: Terms) -> Self {
        Self {
            shard: shard.into(),
            terms,
            answered: 0,
            largest_residual: 0.0,
        }
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
        check(query, self.columns())?;
        let terms = &mut self.terms;
        let event = terms
            .mechanism
            .price(query, &terms.problem, self.shard.rows())?;
        let paid = terms.ledger.spend(event)?;
        self.answered = iteration;
        let rows = Rows {
            shard: &self.shard,
            problem: &terms.problem,
            tolerance: terms.tolerance,
        };
        let answer = rows.answer(query, paid, &mut terms.noise.generator(iteration))?;
        self.largest_residual = self.largest_residual.max(answer.residual);
        Ok((event, Release::new(answer.point)))
    }

    /// How good `f` is on these rows, unprotected: for the simulator alone, which holds everybody's rows anyway.
    pub(crate) fn observe(&self, f: &[f64]) -> Fit {
        let problem = &self.terms.problem;
        let (loss, accuracy) = solve::mean_loss_and_accuracy(&self.shard, problem.loss, f);
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
        let Terms {
            problem, tolerance, ..
        } = &first.terms;
        let shards = std::iter::once(&first.shard).chain(curators.map(|other| &other.shard));
        let objective = Objective {
            shards: shards.map(|shard| &**shard).collect(),
            loss: problem.loss,
            weight: problem.weight,
            modulus: problem.ridge,
            linear: &vec![0.0; first.columns()],
        };
        Ok(solve::minimise(&objective, &vec![0.0; first.columns()], *tolerance)?.point)
    }

    /// The largest gradient norm at which a minimiser was released. It depends on rows, so only the simulator tells it.
    pub(crate) fn largest_residual(&self) -> f64 {
        self.largest_residual
    }

    /// Takes the rows away, for a test that recycled steps do not miss them.
    #[cfg(test)]
    pub(crate) fn exchange_rows(&mut self, shard: Shard) {
        let removed = std::mem::replace(&mut self.shard, shard.into());
        assert!(Arc::into_inner(removed).is_some(), "nobody else held them");
    }
}

/// A question comes from what neighbours said, so it is not trusted.
fn check(query: &Query, columns: usize) -> Result<(), Refusal> {
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Bound, Budget};
    use crate::private::{Law, Loss, NormPolicy, Scaling, ShardBuilder};

    fn curator(budget: Budget) -> Curator {
        let mut builder = ShardBuilder::new(2, NormPolicy::Unit);
        builder.push(&[(0, 1.0)], true).unwrap();
        builder.push(&[(1, 1.0)], false).unwrap();
        let terms = Terms {
            problem: Problem {
                loss: Loss::Logistic,
                weight: 1.0,
                ridge: 0.1,
                nodes: 2,
            },
            mechanism: Mechanism::Objective {
                law: Law::Gamma { rate: 1.0 },
                scale: Scaling::Fixed,
            },
            tolerance: 1e-10,
            ledger: Ledger::new(budget, Bound::Tight),
            noise: NoiseKey::repeating(1, 0, 0),
        };
        Curator::new(builder.finish().unwrap(), terms)
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
            Query::Gradient { at: vec![0.0; 3] },
        ] {
            assert!(matches!(
                curator.answer(1, &query),
                Err(Refusal::Malformed(_))
            ));
        }
        assert_eq!(curator.ledger().charges(), 0);
    }

    #[test]
    fn a_refusal_comes_before_a_row_is_read() {
        // With the rows gone, an answer is impossible; the refusal is not.
        let mut curator = curator(Budget::limited(0.5, 0.0).unwrap());
        let mut empty = ShardBuilder::new(2, NormPolicy::Unit);
        empty.push(&[], true).unwrap();
        empty.push(&[], true).unwrap();
        curator.exchange_rows(empty.finish().unwrap());
        assert!(matches!(
            curator.answer(1, &question(vec![0.0; 2])),
            Err(Refusal::Unpaid(_))
        ));
    }
}
