//! The curator's refusals, and the order of check, charge and answer.

use super::config::{MAX_CHUNKS, MAX_ROWS, check_size};
use super::*;
use crate::privacy::{Bound, Budget, Mechanism, NoiseDistribution, NoiseScaling};
use crate::problem::{Loss, Problem, RowShape};

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
            shape: None,
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

fn query(linear: Vec<f64>) -> Query {
    Query::Minimise {
        quadratic: 1.0,
        linear,
        near: vec![0.0; 2],
    }
}

#[test]
fn rows_with_more_non_zeros_than_agreed_are_rejected() {
    let shard = |rows: &[&[(u32, f64)]]| {
        let mut builder = ShardBuilder::new(4, NormPolicy::Unit);
        for row in rows {
            builder.push(row, true).unwrap();
        }
        builder.finish().unwrap()
    };
    let with = |shard: Shard, shape: Option<RowShape>| {
        let mut config = config(Budget::unlimited(0.0).unwrap());
        config.problem.shape = shape;
        Curator::new(shard, config).map(|curator| curator.config.problem.shape)
    };
    // The second row has three, one of which is written as a zero.
    let rows = || shard(&[&[(1, 1.0)], &[(0, 1.0), (1, 0.0), (3, 2.0)]]);
    let shape = |k| Some(RowShape::new(4, k));
    assert_eq!(with(rows(), shape(2)), Ok(shape(2)));
    assert_eq!(with(rows(), shape(3)), Ok(shape(3)));
    assert_eq!(
        with(rows(), shape(1)),
        Err(InvalidCuratorConfig::TooManyNonZeros { limit: 1 })
    );
    // One row of many is enough.
    let mut many: Vec<&[(u32, f64)]> = vec![&[(2, 1.0)]; 1000];
    many.insert(500, &[(0, 1.0), (1, 1.0), (2, 1.0)]);
    assert!(with(shard(&many), shape(2)).is_err());
    // Nothing was agreed on: every column may be filled.
    assert_eq!(with(rows(), None), Ok(Some(RowShape::dense(4))));
    let wrong = InvalidCuratorConfig::WrongColumns {
        found: 4,
        expected: 5,
    };
    assert_eq!(with(rows(), Some(RowShape::dense(5))), Err(wrong));
}

#[test]
fn no_iteration_is_answered_twice() {
    let mut curator = curator(Budget::unlimited(0.0).unwrap());
    curator.answer(3, &query(vec![0.0; 2])).unwrap();
    // A second query with the same noise would reveal the noise.
    for iteration in [1, 3] {
        let again = curator.answer(iteration, &query(vec![1.0, 0.0]));
        assert_eq!(again, Err(Refusal::AlreadyAnswered(iteration)));
    }
    assert_eq!(curator.ledger().charges(), 1);
}

#[test]
fn malformed_queries_are_neither_answered_nor_charged() {
    let mut curator = curator(Budget::unlimited(0.0).unwrap());
    for query in [
        query(vec![0.0]),
        query(vec![f64::NAN, 0.0]),
        query(vec![0.0, f64::INFINITY]),
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
fn rows_beyond_the_proved_limit_are_rejected() {
    assert_eq!(MAX_ROWS, 1 << 33);
    assert_eq!(check_size(MAX_ROWS, MAX_CHUNKS), Ok(()));
    for (rows, chunks) in [(MAX_ROWS + 1, MAX_CHUNKS), (MAX_CHUNKS, MAX_CHUNKS + 1)] {
        let many = InvalidCuratorConfig::TooManyRows { rows };
        assert_eq!(check_size(rows, chunks), Err(many));
    }
}

#[test]
fn a_refusal_comes_before_a_row_is_read() {
    let mut curator = curator(Budget::limited(0.5, 0.0).unwrap());
    curator.replace_rows(Shard::untouchable(2, 2));
    assert!(matches!(
        curator.answer(1, &query(vec![0.0; 2])),
        Err(Refusal::BudgetRefused(_))
    ));
}

#[test]
#[should_panic(expected = "out of range")]
fn an_answer_reads_rows() {
    // Shows that the test above can fail.
    let mut curator = curator(Budget::unlimited(0.0).unwrap());
    curator.replace_rows(Shard::untouchable(2, 2));
    let _ = curator.answer(1, &query(vec![0.0; 2]));
}

#[test]
fn a_query_too_large_to_be_certified_is_refused_without_reading_rows() {
    let mut curator = curator(Budget::unlimited(0.0).unwrap());
    curator.replace_rows(Shard::untouchable(2, 2));
    let far = Query::Minimise {
        quadratic: 1.0,
        linear: vec![0.0; 2],
        near: vec![1e7, 0.0],
    };
    let steep = Query::Gradient { at: vec![1e9, 0.0] };
    // A norm that overflows counts as too large.
    for large in [query(vec![0.0, 1e7]), query(vec![0.0, 1e300]), far, steep] {
        let refused = curator.answer(1, &large);
        assert!(
            matches!(refused, Err(Refusal::TooLarge { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(curator.ledger().charges(), 0);
}

#[test]
fn a_linear_term_with_too_small_a_penalty_is_refused() {
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
fn refusals_do_not_depend_on_rows() {
    // Fifty rows, a column that only the last one may have, and a neighbour whose coefficient there is as large as
    // allowed.
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
                curator.replace_rows(builder.finish().unwrap());
                for iteration in 1..=50 {
                    let mut linear = vec![0.0; 8];
                    linear[7] = sign * 10f64.powi(exponent);
                    let query = Query::Minimise {
                        quadratic: 2.0,
                        linear,
                        near: vec![0.0; 8],
                    };
                    let answered = curator.answer(iteration, &query);
                    assert!(answered.is_ok(), "{rare} {exponent}: {answered:?}");
                }
            }
        }
    }
}

#[test]
fn rows_with_tiny_entries_are_answered() {
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
                curator.replace_rows(builder.finish().unwrap());
                let query = Query::Minimise {
                    quadratic: 1.0,
                    linear: vec![0.1; 9],
                    near: vec![0.0; 9],
                };
                let answered = curator.answer(1, &query);
                assert!(answered.is_ok(), "{loss:?} {tiny}: {answered:?}");
            }
        }
    }
}

#[test]
fn answers_under_a_secret_key_do_not_depend_on_earlier_queries() {
    let ask = |before: bool| {
        // An answer replaces the key by the next one.
        let mut secret = NoiseSecret::copy_of(&[7; 32]);
        if !before {
            secret.advance();
        }
        let mut config = CuratorConfig {
            noise: NoiseKey::secret(secret),
            ..config(Budget::unlimited(0.0).unwrap())
        };
        // So loose that the answer shows where the solver started.
        config.problem.tolerance = 1e-3;
        let mut curator = Curator::new(rows(), config)
            .unwrap()
            // Handed by mistake, it must be ignored under a secret key.
            .with_warm_start(WarmStart::default());
        if before {
            curator.answer(1, &query(vec![3.0, -2.0])).unwrap();
        }
        curator.answer(2, &query(vec![0.5, 0.2])).unwrap()
    };
    assert_eq!(ask(false), ask(true));
}

#[test]
fn the_key_after_an_answer_does_not_draw_its_noise_again() {
    let curator = |secret| {
        let config = CuratorConfig {
            noise: NoiseKey::secret(secret),
            ..config(Budget::unlimited(0.0).unwrap())
        };
        Curator::new(rows(), config).unwrap()
    };
    let ask = |curator: &mut Curator| curator.answer(1, &query(vec![0.5, 0.2])).unwrap();
    let secret = || NoiseSecret::copy_of(&[7; 32]);
    let mut asked = curator(secret());
    let answer = ask(&mut asked);
    assert_eq!(ask(&mut curator(secret())), answer);
    // With what is left of the key, the same query at the same iteration has other noise.
    asked.last_answered = 0;
    let again = ask(&mut asked);
    assert_ne!(again, answer);
    let mut next = secret();
    next.advance();
    assert_eq!(again, ask(&mut curator(next)));
}

#[test]
fn a_replay_of_gradients_reads_rows_once_and_leads_to_the_same_answers() {
    let curator = || {
        let mut config = config(Budget::unlimited(0.0).unwrap());
        config.mechanism = Mechanism::Gradient {
            law: NoiseDistribution::Gamma { rate: 1.0 },
        };
        Curator::new(rows(), config).unwrap()
    };
    let query = |t: u32| Query::Gradient {
        at: vec![f64::from(t), 0.5],
    };
    let mut asked = curator();
    let mut ask = |t: u32| {
        let (event, answer) = asked.answer(t, &query(t)).unwrap();
        ChargedAnswer {
            iteration: t,
            event,
            answer: Some(answer),
        }
    };
    let journal: Vec<ChargedAnswer> = (1..=4).map(&mut ask).collect();
    let mut led = curator();
    led.replay(1, &query(1), &journal[0]).unwrap();
    led.replace_rows(Shard::untouchable(2, 2));
    for recorded in &journal[1..] {
        let t = recorded.iteration;
        led.replay(t, &query(t), recorded).unwrap();
    }
    led.replace_rows(rows());
    assert_eq!(led.answer(5, &query(5)), asked.answer(5, &query(5)));
    // Other rows show at the first answer.
    let mut others = curator();
    let mut builder = ShardBuilder::new(2, NormPolicy::Unit);
    builder.push(&[(0, 1.0)], true).unwrap();
    builder.push(&[(0, 1.0)], true).unwrap();
    others.replace_rows(builder.finish().unwrap());
    let refused = others.replay(1, &query(1), &journal[0]);
    assert_eq!(refused, Err(Refusal::RecordMismatch(1)));
}

#[test]
fn a_charged_query_is_not_answered_again_even_if_it_failed() {
    // Rows of another width make the solver fail after the charge; in a real party only an uncertified answer does.
    let mut curator = curator(Budget::unlimited(0.0).unwrap());
    curator.replace_rows(Shard::untouchable(2, 2));
    let paid = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        curator.answer(1, &query(vec![0.0; 2]))
    }));
    assert!(paid.is_err());
    let again = curator.answer(1, &query(vec![1.0; 2]));
    assert_eq!(again, Err(Refusal::AlreadyAnswered(1)));
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
    assert!(with(&|config| config.problem.nodes = 0).is_some());
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(with(&|config| config.problem.weight = bad).is_some());
        assert!(with(&|config| config.problem.ridge = bad).is_some());
        assert!(with(&|config| config.problem.tolerance = bad).is_some());
        assert!(with(&|config| config.problem.loss = hinge(bad)).is_some());
        assert!(with(&|config| config.mechanism = gaussian(bad)).is_some());
        assert!(with(&|config| config.mechanism = gamma(bad)).is_some());
    }
    let too_exact = with(&|config| config.problem.tolerance = 1e-16);
    assert!(matches!(
        too_exact,
        Some(InvalidCuratorConfig::ToleranceTooSmall { .. })
    ));
}

#[test]
fn shared_rows_require_repeating_noise() {
    let shared = Arc::new(rows());
    let config_with = |noise| CuratorConfig {
        noise,
        ..config(Budget::unlimited(0.0).unwrap())
    };
    let secret = Curator::simulated(
        shared.clone(),
        config_with(NoiseKey::secret(NoiseSecret::copy_of(&[1; 32]))),
    );
    assert_eq!(secret.err(), Some(InvalidCuratorConfig::SharedRows));
    let seeded = Curator::simulated(shared, config_with(NoiseKey::repeating(1, 0, 0)));
    assert!(seeded.is_ok());
}
