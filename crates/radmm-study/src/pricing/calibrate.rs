//! Calibration: the least noise at which a whole run costs a party no more than a given total.

use radmm::privacy::{Bound, Budget, Guarantee, Ledger, Mechanism, NoiseFamily, SpendError};
use radmm::problem::Problem;
use radmm::protocol::query::Query;

/// The queries of one party over a whole run, and what their price depends on.
pub struct PartyQueries<'a> {
    /// The queries in their order.
    pub queries: &'a [Query],
    /// The objective.
    pub problem: &'a Problem,
    /// The number of rows, `B`.
    pub rows: usize,
    /// The bound by which the total is stated.
    pub bound: Bound,
}

impl PartyQueries<'_> {
    /// Returns the mechanism with the least noise, of the kind of `template`, under which the party may answer everything
    /// and lose no more than `total`.
    ///
    /// Returns `None` if no noise is enough: objective perturbation charges for the Hessian however much noise there is, and
    /// the paper's bound does not cover every query.
    pub fn calibrate(&self, template: &Mechanism, total: Guarantee) -> Option<Mechanism> {
        if matches!(template, Mechanism::None) {
            return Some(Mechanism::None);
        }
        let budget = Budget::limited(total.epsilon, total.delta).ok()?;
        let runs = self.runs();
        let affordable = |k: f64| {
            let mechanism = with_noise(template, k);
            match self.approximate_total(&mechanism, &runs, budget) {
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
        // Sixty halvings of 400 reach the spacing of doubles near 200.
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if affordable(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        // The template's own amount, where that is what was found: the same noise gives the same draws.
        let found = with_noise(template, low);
        let own = amount(template).zip(amount(&found));
        let same = own.is_some_and(|(own, found)| (own / found - 1.0).abs() < 1e-9);
        match same && self.ledger(template, &runs, budget).is_some() {
            true => Some(*template),
            false => Some(found),
        }
    }

    /// Returns the total with as much noise as double precision can work with.
    pub fn least_total(&self, template: &Mechanism, delta: f64) -> Result<f64, PricingError> {
        self.totals(&with_noise(template, MOST_NOISE), delta)
            .map(|totals| totals.last().copied().unwrap_or(0.0))
    }

    /// The queries, with how often each is asked in a row: most algorithms always ask the same, as far as the price is
    /// concerned.
    fn runs(&self) -> Vec<(&Query, u32)> {
        let same = self.queries.chunk_by(|a, b| a == b);
        same.map(|run| (&run[0], run.len() as u32)).collect()
    }

    /// The total but for a few roundings; `None` if something would be refused whatever the limit.
    fn approximate_total(
        &self,
        mechanism: &Mechanism,
        runs: &[(&Query, u32)],
        budget: Budget,
    ) -> Option<f64> {
        let charge = |&(query, count): &(&Query, u32)| {
            let event = mechanism.price(query, self.problem, self.rows).ok()?;
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
        for (query, count) in runs {
            let event = mechanism.price(query, self.problem, self.rows).ok()?;
            for _ in 0..*count {
                ledger.spend(event).ok()?;
            }
        }
        Some(ledger)
    }

    /// Returns the total after each query, by the bound in force.
    pub fn totals(&self, mechanism: &Mechanism, delta: f64) -> Result<Vec<f64>, PricingError> {
        Ok(self.totals_and_ledger(mechanism, delta)?.0)
    }

    /// Returns the total after each query, and the ledger after all of them.
    pub fn totals_and_ledger(
        &self,
        mechanism: &Mechanism,
        delta: f64,
    ) -> Result<(Vec<f64>, Ledger), PricingError> {
        let budget = Budget::unlimited(delta).map_err(PricingError::invalid)?;
        let mut ledger = Ledger::new(budget, self.bound);
        let mut totals = Vec::with_capacity(self.queries.len());
        for (query, count) in self.runs() {
            let event = mechanism.price(query, self.problem, self.rows);
            let event = event.map_err(PricingError::invalid)?;
            for _ in 0..count {
                ledger.spend(event).map_err(PricingError::of)?;
                totals.push(ledger.spent().epsilon);
            }
        }
        Ok((totals, ledger))
    }

    /// Returns what each query would cost if it were the only one.
    pub fn prices(&self, mechanism: &Mechanism, delta: f64) -> Result<Vec<f64>, PricingError> {
        let budget = Budget::unlimited(delta).map_err(PricingError::invalid)?;
        let mut prices = Vec::with_capacity(self.queries.len());
        for (query, count) in self.runs() {
            let event = mechanism.price(query, self.problem, self.rows);
            let once = (event.map_err(PricingError::invalid)?, 1);
            let total = Ledger::total_of(budget, self.bound, [once]).map_err(PricingError::of)?;
            prices.extend(std::iter::repeat_n(total.epsilon, count as usize));
        }
        Ok(prices)
    }
}

/// The relative distance of a total to its limit below which a ledger decides that is charged one query after the other.
const ROUNDINGS: f64 = 1e-12;

/// The reason why there is no total.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PricingError {
    /// The condition of the paper's theorem that fails.
    PaperSilent(&'static str),
    /// Noise that does not suit the queries: no study file can say so, but a study made in a program.
    Invalid(String),
}

impl PricingError {
    fn of(error: SpendError) -> Self {
        match error {
            SpendError::PaperSilent { reason } => Self::PaperSilent(reason),
            error => Self::invalid(error),
        }
    }

    fn invalid(error: impl ToString) -> Self {
        Self::Invalid(error.to_string())
    }
}

/// The binary logarithm of the smallest rate, or of one over the largest σ, that is tried: its square is far from
/// overflowing.
const MOST_NOISE: f64 = -200.0;

/// Returns the rate or σ of a mechanism's noise.
pub(crate) fn amount(mechanism: &Mechanism) -> Option<f64> {
    mechanism.noise().map(|noise| noise.amount())
}

/// The kind of `template` with `2^k` as a rate, or as one over sigma: large is little noise, and expensive.
fn with_noise(template: &Mechanism, k: f64) -> Mechanism {
    let Some(noise) = template.noise() else {
        return Mechanism::None;
    };
    let amount = match noise.family() {
        NoiseFamily::Gamma | NoiseFamily::Laplace => libm::exp2(k),
        NoiseFamily::Gaussian => libm::exp2(-k),
    };
    template.with_noise(noise.family().with_amount(amount))
}

/// Returns a mechanism with the noise of `template` for one minimisation without a penalty, as the baselines ask it: there
/// are no gradients to perturb, and no penalty to scale noise by.
pub fn for_one_answer(template: &Mechanism) -> Mechanism {
    match *template {
        Mechanism::None | Mechanism::Output { .. } => *template,
        Mechanism::Objective { law, .. } | Mechanism::Gradient { law } => Mechanism::objective(law),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radmm::privacy::{NoiseDistribution, NoiseScaling};
    use radmm::problem::{Loss, RowShape};

    fn problem(ridge: f64) -> Problem {
        Problem {
            loss: Loss::Logistic,
            weight: 2.0,
            ridge,
            nodes: 5,
            tolerance: 1e-10,
            shape: None,
        }
    }

    /// The price of an answer on the grid, relative to that in exact arithmetic.
    const ON_GRID: f64 = 1.0 + 1.0 / 1024.0;

    const QUERY: Query = Query::Minimise {
        quadratic: 0.0,
        linear: Vec::new(),
        near: Vec::new(),
    };

    fn one_query(
        template: &Mechanism,
        total: Guarantee,
        problem: &Problem,
        rows: usize,
    ) -> Option<Mechanism> {
        let queries = PartyQueries {
            queries: &[QUERY],
            problem,
            rows,
            bound: Bound::Tight,
        };
        queries.calibrate(&for_one_answer(template), total)
    }

    fn guarantee(epsilon: f64, delta: f64) -> Guarantee {
        Guarantee { epsilon, delta }
    }

    #[test]
    fn calibrated_gamma_noise_spends_exactly_the_total() {
        let template = Mechanism::Objective {
            law: NoiseDistribution::Gamma { rate: 1.0 },
            scale: NoiseScaling::Penalty,
        };
        let found = one_query(&template, guarantee(0.7, 0.0), &problem(5.0), 100);
        let Some(Mechanism::Objective {
            law: NoiseDistribution::Gamma { rate },
            scale: NoiseScaling::Fixed,
        }) = found
        else {
            panic!("{found:?}")
        };
        // S = 0.04 and x = 0.5/(100·1), below S·α/8: the bend of the logistic loss is free, but for its part in the price of
        // the grid, a 1024th of S·α + ln(1 + x).
        let exact = (0.7 - libm::log(1.005) / 1024.0) / ON_GRID / 0.04;
        assert!((rate / exact - 1.0).abs() < 1e-12, "{rate} {exact}");
    }

    /// Rows have at most 9 non-zeros in 25 columns.
    #[test]
    fn calibrated_laplace_noise_spends_exactly_the_total() {
        let problem = problem(5.0).with_shape(RowShape::new(25, 9));
        let law = NoiseDistribution::laplace(1.0);
        // S·√k·α for objectives, where the bend is free as above, and S/m·√d·α for outputs, with m = 1.
        for (template, exact) in [
            (
                Mechanism::objective(law),
                (0.7 - libm::log(1.005) / 1024.0) / ON_GRID / (0.04 * 3.0),
            ),
            (Mechanism::output(law), 0.7 / ON_GRID / (0.04 * 5.0)),
        ] {
            let found = one_query(&template, guarantee(0.7, 0.0), &problem, 100);
            let noise = found.and_then(|found| found.noise()).expect("noise");
            assert_eq!(noise.family(), NoiseFamily::Laplace);
            let rate = noise.amount();
            assert!((rate / exact - 1.0).abs() < 1e-12, "{rate} {exact}");
        }
    }

    #[test]
    fn laplace_noise_on_rows_of_unknown_shape_is_not_calibrated() {
        let template = Mechanism::objective(NoiseDistribution::laplace(1.0));
        let found = one_query(&template, guarantee(0.7, 0.0), &problem(5.0), 100);
        assert_eq!(found, None);
    }

    #[test]
    fn calibrated_gaussian_noise_is_the_least_that_fits() {
        let template = Mechanism::Gradient {
            law: NoiseDistribution::Gaussian { sigma: 1.0 },
        };
        let total = guarantee(0.7, 1e-5);
        let found = one_query(&template, total, &problem(5.0), 100);
        let Some(Mechanism::Objective {
            law: NoiseDistribution::Gaussian { sigma },
            ..
        }) = found
        else {
            panic!("{found:?}")
        };
        let spent = |sigma| {
            let law = NoiseDistribution::Gaussian { sigma };
            let mechanism = Mechanism::Objective {
                law,
                scale: NoiseScaling::Fixed,
            };
            let mut ledger = Ledger::new(Budget::unlimited(1e-5).unwrap(), Bound::Tight);
            ledger
                .spend(mechanism.price(&QUERY, &problem(5.0), 100).unwrap())
                .unwrap();
            ledger.spent().epsilon
        };
        assert!(spent(sigma) <= 0.7 && spent(sigma * 0.999) > 0.7);
    }

    #[test]
    fn a_total_that_the_hessian_alone_exceeds_is_unattainable() {
        let template = Mechanism::Objective {
            law: NoiseDistribution::Gamma { rate: 1.0 },
            scale: NoiseScaling::Fixed,
        };
        assert_eq!(
            one_query(&template, guarantee(0.7, 0.0), &problem(1e-6), 100),
            None
        );
    }

    #[test]
    fn without_noise_nothing_is_calibrated() {
        let found = one_query(
            &Mechanism::None,
            guarantee(f64::INFINITY, 0.0),
            &problem(5.0),
            100,
        );
        assert_eq!(found, Some(Mechanism::None));
    }

    /// Three queries with penalties, by the paper's bound: `Σ S·(1.4c₁/m + α) = ε` in closed form.
    #[test]
    fn several_queries_spend_exactly_the_total_by_the_papers_bound() {
        let penalties = [2.0, 3.0, 5.0];
        let queries = penalties.map(|quadratic| Query::Minimise {
            quadratic,
            linear: vec![],
            near: vec![],
        });
        let queries = PartyQueries {
            queries: &queries,
            problem: &problem(5.0),
            rows: 100,
            bound: Bound::Paper,
        };
        let template = Mechanism::Objective {
            law: NoiseDistribution::Gamma { rate: 1.0 },
            scale: NoiseScaling::Fixed,
        };
        let Some(Mechanism::Objective {
            law: NoiseDistribution::Gamma { rate },
            ..
        }) = queries.calibrate(&template, guarantee(0.9, 0.0))
        else {
            panic!("nothing was found")
        };
        let hessians: f64 = penalties.iter().map(|a| 1.4 * 0.25 / (1.0 + a)).sum();
        // The grid costs a thousandth of what our bound says.
        let ours: f64 = penalties
            .iter()
            .map(|a| libm::log1p(0.005 / (1.0 + a)))
            .sum();
        let exact = ((0.9 - ours / 1024.0) / 0.04 - hessians) / 3.0 / ON_GRID;
        assert!((rate / exact - 1.0).abs() < 1e-12, "{rate} {exact}");
        let mechanism = Mechanism::Objective {
            law: NoiseDistribution::Gamma { rate },
            scale: NoiseScaling::Fixed,
        };
        let totals = queries.totals(&mechanism, 0.0).unwrap();
        assert!(totals[0] < totals[1] && totals[1] < totals[2]);
        assert!(totals[2] <= 0.9 && totals[2] > 0.9 * (1.0 - 1e-12));
    }
}
