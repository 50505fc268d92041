//! Equal privacy: the noise at which one question costs a party what a whole run has cost it.

use radmm::account::{Bound, Budget, Guarantee, Ledger};
use radmm::private::{Law, Mechanism, Problem, Scaling};
use radmm::public::release::Query;

/// The mechanism with the least noise, of the kind of `like`, under which a party of `rows` rows may answer
/// `argmin O_i(f)` once and lose no more than `total`. `None` if no noise is enough: `ln(1 + x)` is charged for the
/// Hessian however much there is.
pub(crate) fn one_question(
    like: &Mechanism,
    total: Guarantee,
    problem: &Problem,
    rows: usize,
) -> Option<Mechanism> {
    let with: fn(Law) -> Mechanism = match like {
        Mechanism::None => return Some(Mechanism::None),
        Mechanism::Output { .. } => |law| Mechanism::Output { law },
        Mechanism::Objective { .. } | Mechanism::Gradient { .. } => |law| Mechanism::Objective {
            law,
            scale: Scaling::Fixed,
        },
    };
    // 2^k as a rate, or as one over sigma: large is little noise, and dear.
    let mechanism = |k: f64| match like {
        Mechanism::Objective { law, .. }
        | Mechanism::Output { law }
        | Mechanism::Gradient { law } => match law {
            Law::Gamma { .. } => with(Law::Gamma { rate: k.exp2() }),
            Law::Gaussian { .. } => with(Law::Gaussian { sigma: (-k).exp2() }),
        },
        Mechanism::None => Mechanism::None,
    };
    let question = Query::Minimise {
        quadratic: 0.0,
        linear: Vec::new(),
        near: Vec::new(),
    };
    let affordable = |k: f64| {
        let price = mechanism(k).price(&question, problem, rows).ok();
        let budget = Budget::limited(total.epsilon, total.delta).ok();
        price
            .zip(budget)
            .is_some_and(|(event, budget)| Ledger::new(budget, Bound::Tight).spend(event).is_ok())
    };
    let (mut low, mut high) = (-200.0, 200.0);
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
    Some(mechanism(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use radmm::private::Loss;

    const PROBLEM: Problem = Problem {
        loss: Loss::Logistic,
        weight: 2.0,
        ridge: 5.0,
        nodes: 5,
        tolerance: 1e-10,
    };

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
        // S·α + ln(1 + x) = ε with S = 0.04, x = 0.5/(100·1).
        let exact = (0.7 - 1.005f64.ln()) / 0.04;
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
            let question = Query::Minimise {
                quadratic: 0.0,
                linear: vec![],
                near: vec![],
            };
            let mechanism = Mechanism::Objective {
                law,
                scale: Scaling::Fixed,
            };
            let mut ledger = Ledger::new(Budget::unlimited(1e-5).unwrap(), Bound::Tight);
            ledger
                .spend(mechanism.price(&question, &PROBLEM, 100).unwrap())
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
}
