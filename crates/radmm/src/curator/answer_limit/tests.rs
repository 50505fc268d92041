//! Honest answers, with rows and noise at their worst, are within the limit; the worst of them reach it.

use proptest::prelude::*;

use super::*;
use crate::curator::{Curator, CuratorConfig, NoiseKey, NormPolicy, Shard, ShardBuilder};
use crate::privacy::{Bound, Budget, Ledger, NoiseScaling};
use crate::problem::Loss;
use crate::protocol::metric::Metric;
use crate::protocol::query::sum_scale;

const LOSSES: [Loss; 3] = [
    Loss::Logistic,
    Loss::SmoothHinge { width: 0.5 },
    Loss::CutLogistic,
];

/// Returns rows that are alike (`spread = 0`) or different, of norm one.
fn shard(columns: usize, rows: usize, spread: f64, seed: u64) -> Shard {
    let mut builder = ShardBuilder::new(columns, NormPolicy::Unit);
    for n in 0..rows {
        let entry = |k: usize| {
            let phase = seed as f64 + 13.0 * k as f64;
            libm::sin(phase) + spread * libm::sin(phase + 7.1 * n as f64)
        };
        let row: Vec<(u32, f64)> = (0..columns).map(|k| (k as u32, entry(k))).collect();
        builder.push(&row, spread == 0.0 || n % 3 != 0).unwrap();
    }
    builder.finish().unwrap()
}

fn problem(loss: Loss, weight: f64) -> Problem {
    Problem {
        tolerance: 1e-9,
        ..Problem::new(loss, 3).with_weight(weight).with_ridge(0.3)
    }
}

/// Returns the answer of a curator on these rows.
fn answer(
    shard: Shard,
    mechanism: Mechanism,
    problem: Problem,
    query: &Query,
    key: u64,
) -> Vec<f64> {
    let config = CuratorConfig {
        problem,
        mechanism,
        ledger: Ledger::new(Budget::unlimited(1e-5).unwrap(), Bound::Tight),
        noise: NoiseKey::repeating(key, 0, 0),
    };
    let mut curator = Curator::simulated(shard.into(), config).unwrap();
    curator.answer(1, query).unwrap().1.values().to_vec()
}

/// Returns the direction of rows that are alike.
fn row(columns: usize, seed: u64) -> Vec<f64> {
    let raw: Vec<f64> = (0..columns)
        .map(|k| libm::sin(seed as f64 + 13.0 * k as f64))
        .collect();
    let length = norm(&raw);
    raw.iter().map(|x| x / length).collect()
}

fn plus(one: &[f64], factor: f64, other: &[f64]) -> Vec<f64> {
    let pairs = one.iter().zip(other);
    pairs.map(|(one, other)| one + factor * other).collect()
}

fn law(family: u32, size: f64) -> NoiseDistribution {
    match family {
        0 => NoiseDistribution::gaussian(size),
        1 => NoiseDistribution::gamma(1.0 / size),
        _ => NoiseDistribution::laplace(1.0 / size),
    }
}

fn minimise(quadratic: f64, linear: Vec<f64>) -> Query {
    Query::Minimise {
        quadratic,
        near: vec![0.0; linear.len()],
        linear,
    }
}

/// Returns queries that are answered in one pass.
fn sums(columns: usize, rows: usize, at: &[f64], family: u32) -> Vec<Query> {
    let (scale, noise, at) = (sum_scale(3 * rows), 0.5, at.to_vec());
    let mut queries = vec![
        Query::Gradient { at: at.clone() },
        Query::GradientSum {
            at: at.clone(),
            scale,
            metric: None,
        },
        Query::RowSum { scale, noise },
    ];
    // Laplace noise is for sparse rows.
    if family < 2 {
        let gram: Vec<f64> = (0..gram_width(columns))
            .map(|k| 0.01 * (k % 3) as f64)
            .collect();
        queries.push(Query::GradientSum {
            at,
            scale,
            metric: Metric::shared(columns, &gram, 0.1),
        });
        queries.push(Query::GramSum { scale, noise });
    }
    queries
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Minimisers, for rows that are all alike and for others, with drawn noise and with noise as long as its reach.
    #[test]
    fn honest_minimisers_are_within_the_limit(
        columns in 1usize..9, rows in 1usize..30, spread in prop_oneof![Just(0.0), 0.1f64..3.0],
        loss in 0usize..3, weight in -1f64..3.0, quadratic in -1.5f64..2.0, linear in -2f64..3.0,
        size in -2f64..2.0, family in 0u32..3, seed in any::<u32>(),
    ) {
        let seed = u64::from(seed % 1000);
        let problem = problem(LOSSES[loss], 10f64.powf(weight));
        let (law, along) = (law(family, 10f64.powf(size)), row(columns, seed));
        let any: Vec<f64> = (0..columns).map(|k| libm::sin((seed + 3 * k as u64) as f64)).collect();
        for (toward, direction) in [(-1.0, &along), (1.0, &along), (1.0, &any)] {
            let linear = plus(&vec![0.0; columns], toward * 10f64.powf(linear), direction);
            let query = minimise(10f64.powf(quadratic), linear.clone());
            for mechanism in [
                Mechanism::None,
                Mechanism::objective(law),
                Mechanism::Objective { law, scale: NoiseScaling::Penalty },
                Mechanism::output(law),
            ] {
                let shape = crate::problem::RowShape::dense(columns as u32);
                let problem = problem.with_shape(shape);
                let Some(limit) = AnswerLimit::new(&query, &mechanism, &problem, (rows, columns)) else {
                    continue;
                };
                let ask = |query: &Query, mechanism| {
                    answer(shard(columns, rows, spread, seed), mechanism, problem, query, seed)
                };
                prop_assert_eq!(limit.check(&ask(&query, mechanism), 0.0), Ok(()));
                let event = mechanism.price(&query, &problem, rows).unwrap();
                let worst = match event.ideal {
                    IdealRelease::Exact => continue,
                    IdealRelease::Objective { law, .. } => {
                        let noise = plus(&linear, -law.reach(columns), &along);
                        ask(&minimise(10f64.powf(quadratic), noise), Mechanism::None)
                    }
                    IdealRelease::Additive { law, .. } => {
                        let exact = ask(&query, Mechanism::None);
                        let outwards = plus(&exact, -1.0, &limit.centre);
                        let length = norm(&outwards).max(1e-300);
                        plus(&exact, law.reach(columns) / length, &outwards)
                    }
                };
                prop_assert_eq!(limit.check(&worst, 0.0), Ok(()));
            }
        }
    }

    /// Gradients and sums likewise.
    #[test]
    fn honest_sums_are_within_the_limit(
        columns in 1usize..9, rows in 1usize..30, spread in prop_oneof![Just(0.0), 0.1f64..3.0],
        loss in 0usize..3, weight in -1f64..3.0, far in -2f64..2.0, size in -2f64..3.0,
        family in 0u32..3, seed in any::<u32>(),
    ) {
        let seed = u64::from(seed % 1000);
        let shape = crate::problem::RowShape::dense(columns as u32);
        let problem = problem(LOSSES[loss], 10f64.powf(weight)).with_shape(shape);
        let mechanism = Mechanism::gradient(law(family, 10f64.powf(size)));
        let at = plus(&vec![0.0; columns], -10f64.powf(far), &row(columns, seed));
        for query in sums(columns, rows, &at, family) {
            let ask = |mechanism| {
                answer(shard(columns, rows, spread, seed), mechanism, problem, &query, seed)
            };
            let limit = AnswerLimit::new(&query, &mechanism, &problem, (rows, columns)).unwrap();
            prop_assert_eq!(limit.check(&ask(mechanism), 0.0), Ok(()));
            let exact = ask(Mechanism::None);
            let alone = AnswerLimit::new(&query, &Mechanism::None, &problem, (rows, columns)).unwrap();
            prop_assert_eq!(alone.check(&exact, 0.0), Ok(()));
            let IdealRelease::Additive { law, .. } = mechanism.price(&query, &problem, rows).unwrap().ideal else {
                panic!("noise is added");
            };
            // Noise along a Gram matrix would move its trace further than Gaussian noise does.
            if limit.gram.is_none() {
                let outwards = plus(&exact, -1.0, &limit.centre);
                let length = norm(&outwards).max(1e-300);
                let worst = plus(&exact, law.reach(exact.len()) / length, &outwards);
                prop_assert_eq!(limit.check(&worst, 0.0), Ok(()));
            }
        }
    }
}

#[test]
fn the_worst_honest_answers_reach_the_limit() {
    // Rows that are alike and badly misclassified all have the largest slope.
    let (columns, rows, seed) = (4, 10, 5);
    let along = row(columns, seed);
    for loss in LOSSES {
        let problem = problem(loss, 20.0);
        let law = NoiseDistribution::gaussian(3.0);
        let far = plus(&vec![0.0; columns], 1e4, &along);
        let query = minimise(2.0, far.clone());
        let mechanism = Mechanism::objective(law);
        let limit = AnswerLimit::new(&query, &mechanism, &problem, (rows, columns)).unwrap();
        let noisy = minimise(2.0, plus(&far, -law.reach(columns), &along));
        let rows = shard(columns, rows, 0.0, seed);
        let worst = answer(rows, Mechanism::None, problem, &noisy, 1);
        let apart = norm(&plus(&worst, -1.0, &limit.centre));
        assert!(apart > 0.99 * limit.radius() && apart <= limit.radius());
    }
}

#[test]
fn what_is_beyond_a_limit_is_named() {
    let (columns, rows) = (3, 10);
    let problem = problem(Loss::CutLogistic, 20.0);
    let mechanism = Mechanism::gradient(NoiseDistribution::gaussian(2.0));
    let size = (rows, columns);
    let query = minimise(2.0, vec![4.2, 0.0, 0.0]);
    let limit = AnswerLimit::new(&query, &Mechanism::None, &problem, size).unwrap();
    // m = 2.1, s = ½ and C = 20: 10/2.1 around −2.
    assert!(limit.check(&[2.7, 0.0, 0.0], 0.0).is_ok());
    let far = limit.check(&[2.8, 0.0, 0.0], 0.0);
    assert!(matches!(far, Err(BeyondLimit::Distance { .. })), "{far:?}");
    assert!(limit.check(&[2.8, 0.0, 0.0], 0.1).is_ok());
    assert!(limit.check(&[f64::NAN, 0.0, 0.0], 0.0).is_err());
    let sum = limit.clone().plus(&limit);
    assert!(sum.check(&[5.4, 0.0, 0.0], 0.0).is_ok() && sum.check(&[5.6, 0.0, 0.0], 0.0).is_err());

    let query = Query::GramSum {
        scale: 128.0,
        noise: 1.0,
    };
    let limit = AnswerLimit::new(&query, &mechanism, &problem, size).unwrap();
    let diagonal = |entries: [f64; 3]| {
        let mut packed = vec![0.0; 6];
        for (a, entry) in entries.into_iter().enumerate() {
            packed[gram_width(a + 1) - 1] = entry;
        }
        packed
    };
    // The trace is 1280 at most, with a noise of 9.8·2·√3 = 34; an eigenvalue is above −2·(√6 + 9.8) = −24.5.
    assert_eq!(limit.check(&diagonal([400.0, 400.0, 470.0]), 0.0), Ok(()));
    assert_eq!(limit.check(&diagonal([1280.0, -24.0, 0.0]), 0.0), Ok(()));
    let wide = limit.check(&diagonal([450.0, 450.0, 450.0]), 0.0);
    assert!(matches!(wide, Err(BeyondLimit::Trace { .. })), "{wide:?}");
    let narrow = limit.check(&diagonal([-12.0, -12.0, -12.0]), 0.0);
    assert!(
        matches!(narrow, Err(BeyondLimit::Trace { .. })),
        "{narrow:?}"
    );
    let tilted = limit.check(&diagonal([1000.0, -26.0, 0.0]), 0.0);
    assert!(
        matches!(tilted, Err(BeyondLimit::Eigenvalue { .. })),
        "{tilted:?}"
    );
    // √2·G_ab of an off-diagonal entry beyond the diagonal.
    let mut skewed = diagonal([100.0, 100.0, 0.0]);
    skewed[1] = 2f64.sqrt() * 130.0;
    assert!(matches!(
        limit.check(&skewed, 0.0),
        Err(BeyondLimit::Eigenvalue { .. })
    ));
    skewed[1] = 2f64.sqrt() * 120.0;
    assert_eq!(limit.check(&skewed, 0.0), Ok(()));
}
