//! Equal privacy: the noise at which a whole run costs a party a given total.

use radmm::account::{Bound, Budget, Guarantee, Ledger, SpendError};
use radmm::private::{Law, Mechanism, Problem, Scaling};
use radmm::public::release::Query;

/// What one party will be asked, and on which terms.
pub struct Asked<'a> {
    /// In their order.
    pub questions: &'a [Query],
    /// What is minimised.
    pub problem: &'a Problem,
    /// `B`.
    pub rows: usize,
    /// By which the total is stated.
    pub bound: Bound,
}

impl Asked<'_> {
    /// The mechanism with the least noise, of the kind of `like`, under which the party may answer everything and lose no
    /// more than `total`. `None` if no noise is enough: objective perturbation charges for the Hessian however much there
    /// is, and the paper's bound does not cover every question.
    pub fn calibrate(&self, like: &Mechanism, total: Guarantee) -> Option<Mechanism> {
        if matches!(like, Mechanism::None) {
            return Some(Mechanism::None);
        }
        let budget = Budget::limited(total.epsilon, total.delta).ok()?;
        let runs = self.runs();
        let affordable = |k: f64| {
            let mechanism = with_noise(like, k);
            match self.about(&mechanism, &runs, budget) {
                None => false,
                Some(about) if about < total.epsilon * (1.0 - ROUNDINGS) => true,
                Some(about) if about > total.epsilon * (1.0 + ROUNDINGS) => false,
                Some(_) => self.ledger(&mechanism, &runs, budget).is_some(),
            }
        };
        let (mut low, mut high) = (MOST_NOISE, -MOST_NOISE);
        if !affordable(low) {
            return None;
        }
        // Halving 400 down to the spacing of doubles near 200.
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if affordable(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        // The study's own noise, where that is what was found: the same noise gives the same draws.
        let found = with_noise(like, low);
        let own = scale(like).zip(scale(&found));
        let same = own.is_some_and(|(own, found)| (own / found - 1.0).abs() < 1e-9);
        match same && self.ledger(like, &runs, budget).is_some() {
            true => Some(*like),
            false => Some(found),
        }
    }

    /// What everything would cost with as much noise as double precision can work with.
    pub fn least(&self, like: &Mechanism, delta: f64) -> Result<f64, NoTotal> {
        self.totals(&with_noise(like, MOST_NOISE), delta)
            .map(|course| course.last().copied().unwrap_or(0.0))
    }

    /// The questions, with how often each is asked in a row: most algorithms ask the same all the time, as far as its price is
    /// concerned.
    fn runs(&self) -> Vec<(&Query, u32)> {
        let same = self.questions.chunk_by(|a, b| a == b);
        same.map(|run| (&run[0], run.len() as u32)).collect()
    }

    /// What everything costs, but for a few roundings; `None` if something would be refused whatever the limit.
    fn about(&self, mechanism: &Mechanism, runs: &[(&Query, u32)], budget: Budget) -> Option<f64> {
        let charge = |&(question, count): &(&Query, u32)| {
            let event = mechanism.price(question, self.problem, self.rows).ok()?;
            Some((event, count))
        };
        let charges: Option<Vec<_>> = runs.iter().map(charge).collect();
        let total = Ledger::total_of(budget, self.bound, charges?).ok()?;
        Some(total.epsilon)
    }

    /// The ledger after everything has been answered; `None` if something would be refused.
    fn ledger(
        &self,
        mechanism: &Mechanism,
        runs: &[(&Query, u32)],
        budget: Budget,
    ) -> Option<Ledger> {
        let mut ledger = Ledger::new(budget, self.bound);
        for (question, count) in runs {
            let event = mechanism.price(question, self.problem, self.rows).ok()?;
            for _ in 0..*count {
                ledger.spend(event).ok()?;
            }
        }
        Some(ledger)
    }

    /// The total after each question, by the bound in force.
    pub fn totals(&self, mechanism: &Mechanism, delta: f64) -> Result<Vec<f64>, NoTotal> {
        let budget = Budget::unlimited(delta).map_err(NoTotal::wrong)?;
        let mut ledger = Ledger::new(budget, self.bound);
        let mut totals = Vec::with_capacity(self.questions.len());
        for (question, count) in self.runs() {
            let event = mechanism.price(question, self.problem, self.rows);
            let event = event.map_err(NoTotal::wrong)?;
            for _ in 0..count {
                ledger.spend(event).map_err(NoTotal::of)?;
                totals.push(ledger.spent().epsilon);
            }
        }
        Ok(totals)
    }

    /// What each question would cost if it were the only one.
    pub fn prices(&self, mechanism: &Mechanism, delta: f64) -> Result<Vec<f64>, NoTotal> {
        let budget = Budget::unlimited(delta).map_err(NoTotal::wrong)?;
        let mut prices = Vec::with_capacity(self.questions.len());
        for (question, count) in self.runs() {
            let event = mechanism.price(question, self.problem, self.rows);
            let once = (event.map_err(NoTotal::wrong)?, 1);
            let total = Ledger::total_of(budget, self.bound, [once]).map_err(NoTotal::of)?;
            prices.extend(std::iter::repeat_n(total.epsilon, count as usize));
        }
        Ok(prices)
    }
}

/// Where a total is nearer to its limit than this, relatively, a ledger decides that is charged one question after the other.
const ROUNDINGS: f64 = 1e-12;

/// Why there is no total.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTotal {
    /// Which condition of the paper's theorem fails.
    Paper(&'static str),
    /// What no study file can say, but a study made in a program: noise that does not go with the questions.
    Wrong(String),
}

impl NoTotal {
    fn of(error: SpendError) -> Self {
        match error {
            SpendError::PaperSilent { reason } => Self::Paper(reason),
            error => Self::wrong(error),
        }
    }

    fn wrong(error: impl ToString) -> Self {
        Self::Wrong(error.to_string())
    }
}

/// The binary logarithm of the smallest rate, or of one over the largest σ, that noise is looked for at: its square is far from
/// overflowing.
const MOST_NOISE: f64 = -200.0;

/// The law of a mechanism's noise.
pub fn law(mechanism: &Mechanism) -> Option<Law> {
    match *mechanism {
        Mechanism::None => None,
        Mechanism::Objective { law, .. }
        | Mechanism::Output { law }
        | Mechanism::Gradient { law } => Some(law),
    }
}

/// The rate or σ of a mechanism's noise.
pub fn scale(mechanism: &Mechanism) -> Option<f64> {
    law(mechanism).map(|law| match law {
        Law::Gamma { rate } => rate,
        Law::Gaussian { sigma } => sigma,
    })
}

/// The kind of `like` with a scale of `2^k` as a rate, or as one over sigma: large is little noise, and dear.
fn with_noise(like: &Mechanism, k: f64) -> Mechanism {
    let scaled = |law: &Law| match law {
        Law::Gamma { .. } => Law::Gamma { rate: k.exp2() },
        Law::Gaussian { .. } => Law::Gaussian { sigma: (-k).exp2() },
    };
    match like {
        Mechanism::None => Mechanism::None,
        Mechanism::Objective { law, scale } => Mechanism::Objective {
            law: scaled(law),
            scale: *scale,
        },
        Mechanism::Output { law } => Mechanism::Output { law: scaled(law) },
        Mechanism::Gradient { law } => Mechanism::Gradient { law: scaled(law) },
    }
}

/// A mechanism with the law of `like` for one minimisation without a penalty, as the baselines ask it: there are no gradients
/// to perturb, and no penalty to scale noise by.
pub fn for_one_answer(like: &Mechanism) -> Mechanism {
    match *like {
        Mechanism::None => Mechanism::None,
        Mechanism::Output { law } => Mechanism::Output { law },
        Mechanism::Objective { law, .. } | Mechanism::Gradient { law } => Mechanism::Objective {
            law,
            scale: Scaling::Fixed,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radmm::private::Loss;
    use radmm::public::release::Precision;

    const PROBLEM: Problem = Problem {
        loss: Loss::Logistic,
        weight: 2.0,
        ridge: 5.0,
        nodes: 5,
        tolerance: 1e-10,
        precision: Precision::Grid,
    };

    /// What an answer on the grid costs, relative to its price in exact arithmetic.
    const ON_GRID: f64 = 1.0 + 1.0 / 1024.0;

    const ONE: Query = Query::Minimise {
        quadratic: 0.0,
        linear: Vec::new(),
        near: Vec::new(),
    };

    fn one_question(
        like: &Mechanism,
        total: Guarantee,
        problem: &Problem,
        rows: usize,
    ) -> Option<Mechanism> {
        let asked = Asked {
            questions: &[ONE],
            problem,
            rows,
            bound: Bound::Tight,
        };
        asked.calibrate(&for_one_answer(like), total)
    }

    fn guarantee(epsilon: f64, delta: f64) -> Guarantee {
        Guarantee { epsilon, delta }
    }

    #[test]
    fn gamma_noise_spends_exactly_the_total() {
        let like = Mechanism::Objective {
            law: Law::Gamma { rate: 1.0 },
            scale: Scaling::Penalty,
        };
        let found = one_question(&like, guarantee(0.7, 0.0), &PROBLEM, 100);
        let Some(Mechanism::Objective {
            law: Law::Gamma { rate },
            scale: Scaling::Fixed,
        }) = found
        else {
            panic!("{found:?}")
        };
        // S·α + ln(1 + x) and a thousandth of it are ε, with S = 0.04, x = 0.5/(100·1).
        let exact = (0.7 / ON_GRID - 1.005f64.ln()) / 0.04;
        assert!((rate / exact - 1.0).abs() < 1e-12, "{rate} {exact}");
    }

    #[test]
    fn gaussian_noise_is_the_least_that_fits() {
        let like = Mechanism::Gradient {
            law: Law::Gaussian { sigma: 1.0 },
        };
        let total = guarantee(0.7, 1e-5);
        let found = one_question(&like, total, &PROBLEM, 100);
        let Some(Mechanism::Objective {
            law: Law::Gaussian { sigma },
            ..
        }) = found
        else {
            panic!("{found:?}")
        };
        let spent = |sigma| {
            let law = Law::Gaussian { sigma };
            let mechanism = Mechanism::Objective {
                law,
                scale: Scaling::Fixed,
            };
            let mut ledger = Ledger::new(Budget::unlimited(1e-5).unwrap(), Bound::Tight);
            ledger
                .spend(mechanism.price(&ONE, &PROBLEM, 100).unwrap())
                .unwrap();
            ledger.spent().epsilon
        };
        assert!(spent(sigma) <= 0.7 && spent(sigma * 0.999) > 0.7);
    }

    #[test]
    fn what_the_hessian_alone_exceeds_cannot_be_had() {
        let like = Mechanism::Objective {
            law: Law::Gamma { rate: 1.0 },
            scale: Scaling::Fixed,
        };
        let weak = Problem {
            ridge: 1e-6,
            ..PROBLEM
        };
        assert_eq!(one_question(&like, guarantee(0.7, 0.0), &weak, 100), None);
    }

    #[test]
    fn without_noise_there_is_none_to_find() {
        let found = one_question(
            &Mechanism::None,
            guarantee(f64::INFINITY, 0.0),
            &PROBLEM,
            100,
        );
        assert_eq!(found, Some(Mechanism::None));
    }

    /// Three questions with penalties, by the paper's bound: `Σ S·(1.4c₁/m + α) = ε` in closed form.
    #[test]
    fn several_questions_spend_exactly_the_total_by_the_papers_bound() {
        let penalties = [2.0, 3.0, 5.0];
        let questions = penalties.map(|quadratic| Query::Minimise {
            quadratic,
            linear: vec![],
            near: vec![],
        });
        let asked = Asked {
            questions: &questions,
            problem: &PROBLEM,
            rows: 100,
            bound: Bound::Paper,
        };
        let like = Mechanism::Objective {
            law: Law::Gamma { rate: 1.0 },
            scale: Scaling::Fixed,
        };
        let Some(Mechanism::Objective {
            law: Law::Gamma { rate },
            ..
        }) = asked.calibrate(&like, guarantee(0.9, 0.0))
        else {
            panic!("nothing was found")
        };
        let hessians: f64 = penalties.iter().map(|a| 1.4 * 0.25 / (1.0 + a)).sum();
        // The grid costs a thousandth of what our bound says.
        let ours: f64 = penalties.iter().map(|a| (0.005 / (1.0 + a)).ln_1p()).sum();
        let exact = ((0.9 - ours / 1024.0) / 0.04 - hessians) / 3.0 / ON_GRID;
        assert!((rate / exact - 1.0).abs() < 1e-12, "{rate} {exact}");
        let mechanism = Mechanism::Objective {
            law: Law::Gamma { rate },
            scale: Scaling::Fixed,
        };
        let course = asked.totals(&mechanism, 0.0).unwrap();
        assert!(course[0] < course[1] && course[1] < course[2]);
        assert!(course[2] <= 0.9 && course[2] > 0.9 * (1.0 - 1e-12));
    }
}
