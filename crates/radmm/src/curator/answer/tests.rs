//! Tests of prices against exact densities, of answers against their definitions, and of the effect of the grid on both.

use super::*;
use crate::curator::noise_key::{NoiseKey, SeedInputs};
use crate::curator::row_passes::LocalChunks;
use crate::curator::{NormPolicy, Shard, ShardBuilder};
use crate::privacy::{
    Bound, Budget, Ledger, Mechanism, NoiseDistribution, NoiseScaling, SlopeCurve,
};
use crate::privacy::{NoiseFamily, Unanswerable};
use crate::problem::{Loss, RowShape};
use crate::protocol::metric::Metric;

/// Rows `(x, label)` in two dimensions.
type PlaneRows = Vec<([f64; 2], bool)>;

fn shard(rows: &PlaneRows) -> Shard {
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
        shape: Some(RowShape::dense(2)),
    }
}

fn minimise(quadratic: f64, linear: [f64; 2]) -> Query {
    Query::Minimise {
        quadratic,
        linear: linear.to_vec(),
        near: vec![0.0; 2],
    }
}

/// The ε of the ideal release, without the slack for finite precision, which the tests of the grid cover.
fn pure_epsilon(event: PrivacyEvent) -> f64 {
    let mut ledger = Ledger::new(Budget::unlimited(0.0).unwrap(), Bound::Tight);
    ledger.spend(event.ideal.into()).unwrap();
    ledger.spent().epsilon
}

fn answer(rows: &PlaneRows, mechanism: Mechanism, query: &Query, key: u64) -> Vec<f64> {
    let (shard, problem) = (shard(rows), problem(Loss::Logistic));
    let event = mechanism.price(query, &problem, rows.len()).unwrap();
    let mut ledger = Ledger::new(Budget::unlimited(1e-5).unwrap(), Bound::Tight);
    let paid = ledger.spend(event).unwrap();
    let rows = Rows {
        passes: LocalChunks::in_test(&shard),
        problem: &problem,
    };
    let mut rng = generator(key, query, &event);
    let plan = AnswerPlan::new(query, &event, &problem, (shard.rows(), 2)).unwrap();
    let plan = without_grid_noise(plan);
    let answer = rows
        .noisy_answer(query, paid, &plan, &mut WarmStart::default(), &mut rng)
        .unwrap();
    answer.release.values().to_vec()
}

/// The same plan without the noise of the grid: the answer is only rounded to the nearest grid point.
fn without_grid_noise(plan: AnswerPlan) -> AnswerPlan {
    AnswerPlan {
        rounding: None,
        ..plan
    }
}

fn some_rows() -> PlaneRows {
    (0..8)
        .map(|n| {
            let angle = f64::from(n) * 2.1;
            ([0.9 * angle.cos(), 0.8 * angle.sin()], n % 3 != 0)
        })
        .collect()
}

/// Draws the noise in the answer to a query.
fn noise_of(mechanism: Mechanism, query: &Query, key: u64) -> Vec<f64> {
    let event = mechanism.price(query, &problem(Loss::Logistic), 8).unwrap();
    let (IdealRelease::Objective { law, .. } | IdealRelease::Additive { law, .. }) = event.ideal
    else {
        panic!("{mechanism:?} has noise")
    };
    law.sample(2, &mut generator(key, query, &event))
}

fn generator(key: u64, query: &Query, event: &PrivacyEvent) -> ChaCha20Rng {
    NoiseKey::repeating(key, 0, 0).generator(&SeedInputs {
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

const LAWS: [NoiseDistribution; 3] = [
    NoiseDistribution::Gamma { rate: 1.5 },
    NoiseDistribution::Laplace { rate: 1.5 },
    NoiseDistribution::Gaussian { sigma: 0.7 },
];

#[test]
fn objective_perturbation_is_the_exact_answer_to_a_query_with_a_noisy_linear_term() {
    for law in LAWS {
        for scale in [NoiseScaling::Fixed, NoiseScaling::Penalty] {
            let noisy = Mechanism::Objective { law, scale };
            let query = minimise(3.0, [0.3, -0.2]);
            let e = noise_of(noisy, &query, 5);
            let linear = [0.3 + e[0], -0.2 + e[1]];
            let by_hand = answer(&some_rows(), Mechanism::None, &minimise(3.0, linear), 9);
            let ours = answer(&some_rows(), noisy, &query, 5);
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
            add(&mut by_hand, &noise_of(mechanism, &query, 5));
            assert!(close(&answer(&some_rows(), mechanism, &query, 5), &by_hand));
        }
    }
}

#[test]
fn prices_follow_their_formulas() {
    let law = NoiseDistribution::Gamma { rate: 1.5 };
    // C = 2, B = 50, ρ/N = ¼, a = 3: S = 0.08, m = 3.25, x = 0.5/(50·3.25).
    let price_of = |loss: Loss, mechanism: Mechanism, query| {
        pure_epsilon(mechanism.price(&query, &problem(loss), 50).unwrap())
    };
    let price = |mechanism: Mechanism, query| price_of(Loss::Logistic, mechanism, query);
    let query = || minimise(3.0, [0.0; 2]);
    let scale = NoiseScaling::Fixed;
    let mechanism = Mechanism::Objective { law, scale };
    // Where x is at most S·α/8, the logistic loss costs no more than its noise.
    let objective = price(mechanism, query());
    assert!((objective - 0.08 * 1.5).abs() < 1e-15);
    // Half the slope, and all of the curvature with it.
    let objective = price_of(Loss::CutLogistic, mechanism, query());
    assert!((objective - (0.04 * 1.5 + (1.0f64 + 0.5 / 162.5).ln())).abs() < 1e-15);
    let output = price(Mechanism::Output { law }, query());
    assert!((output - 1.5 * 0.08 / 3.25).abs() < 1e-15);
    let gradient = price(
        Mechanism::Gradient { law },
        Query::Gradient { at: vec![0.0; 2] },
    );
    assert!((gradient - 1.5 * 0.08).abs() < 1e-15);
}

/// Rows have at most 9 non-zeros in 25 columns, so that `‖x‖₁ ≤ 3`, and minimisers move by at most `5·S/m` in ℓ₁.
#[test]
fn laplace_noise_is_priced_by_the_l1_norm() {
    let law = NoiseDistribution::Laplace { rate: 1.5 };
    let sparse = problem(Loss::Logistic).with_shape(RowShape::new(25, 9));
    let price = |mechanism: Mechanism, query, problem: &Problem| {
        pure_epsilon(mechanism.price(&query, problem, 50).unwrap())
    };
    let minimise = || minimise(3.0, [0.0; 2]);
    let gradient = || Query::Gradient { at: vec![0.0; 2] };
    // As above: S = 0.08, m = 3.25, and x is small enough for curvature to cost nothing.
    let cut = Problem {
        loss: Loss::CutLogistic,
        ..sparse
    };
    for (found, by_hand) in [
        (
            price(Mechanism::objective(law), minimise(), &sparse),
            0.08 * 3.0 * 1.5,
        ),
        (
            price(Mechanism::objective(law), minimise(), &cut),
            0.04 * 3.0 * 1.5 + (1.0f64 + 0.5 / 162.5).ln(),
        ),
        (
            price(Mechanism::output(law), minimise(), &sparse),
            0.08 / 3.25 * 5.0 * 1.5,
        ),
        (
            price(Mechanism::gradient(law), gradient(), &sparse),
            0.08 * 3.0 * 1.5,
        ),
    ] {
        assert!(found >= by_hand && found < by_hand * (1.0 + 1e-14));
    }
    // Sums over rows, in units of ½, and with twice the noise.
    let (scale, noise) = (0.5, 2.0);
    let at = vec![0.0; 2];
    let sums = [
        Query::GradientSum {
            at,
            scale,
            metric: None,
        },
        Query::RowSum { scale, noise },
    ];
    for (query, by_hand) in sums.into_iter().zip([3.0 * 1.5, 3.0 * 1.5 / 2.0]) {
        let found = price(Mechanism::gradient(law), query, &sparse);
        assert!(found >= by_hand && found < by_hand * (1.0 + 1e-14));
    }
    // In every column.
    let dense = sparse.with_shape(RowShape::dense(25));
    let found = price(Mechanism::gradient(law), gradient(), &dense);
    assert!((found - 0.08 * 5.0 * 1.5).abs() < 1e-15);
    // A shape that nobody knows has no price, rather than a low one.
    let unknown = Problem {
        shape: None,
        ..sparse
    };
    for (mechanism, query) in [
        (Mechanism::objective(law), minimise()),
        (Mechanism::output(law), minimise()),
        (Mechanism::gradient(law), gradient()),
    ] {
        let refused = mechanism.price(&query, &unknown, 50);
        assert_eq!(refused, Err(Unanswerable::UnknownShape));
    }
    // Rows in a metric are dense, and a dry run does not know the metric.
    let metric = Metric::from_gram(2, &[1.0, 0.0, 1.0], 0.1).unwrap();
    for query in [
        Query::GramSum { scale, noise },
        Query::GradientSum {
            at: vec![0.0; 2],
            scale,
            metric: Some(metric.into()),
        },
    ] {
        let refused = Mechanism::gradient(law).price(&query, &sparse, 50);
        assert_eq!(refused, Err(Unanswerable::DenseRows));
    }
}

/// The largest possible change of a gradient: two rows of 9 equal entries, with slopes of −1 and opposite signs.
#[test]
fn the_l1_sensitivity_of_a_gradient_is_attained_and_that_of_a_minimiser_is_not_sparse() {
    let entry = 1.0 / 3.0;
    let row = |sign: f64, from: u32| -> Vec<(u32, f64)> {
        (from..from + 9).map(|k| (k, sign * entry)).collect()
    };
    let shard = |row: &[(u32, f64)]| {
        let mut builder = ShardBuilder::new(25, NormPolicy::Clip);
        builder.push(row, true).unwrap();
        builder.push(&[(0, 0.1), (24, 0.1)], true).unwrap();
        builder.finish().unwrap()
    };
    let problem = problem(Loss::Logistic).with_shape(RowShape::new(25, 9));
    let l1 = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>();
    let answers = |query: &Query, others: [&[(u32, f64)]; 2]| {
        others.map(|row| {
            let shard = shard(row);
            let rows = Rows {
                passes: LocalChunks::in_test(&shard),
                problem: &problem,
            };
            exact_answer(&rows, query)
        })
    };
    // Far out along a direction in which both rows have a large negative margin: disjoint rows.
    let (one, other) = (row(1.0, 0), row(1.0, 12));
    let at: Vec<f64> = vec![-1e4; 25];
    let [a, b] = answers(&Query::Gradient { at }, [&one, &other]);
    // C/B·(3 + 3) = S·√k with S = 2C/B = 2.
    let moved = l1(&a, &b);
    assert!((moved / 6.0 - 1.0).abs() < 1e-9, "{moved}");
    let query = Query::Minimise {
        quadratic: 0.05,
        linear: vec![0.2; 25],
        near: vec![0.0; 25],
    };
    let [a, b] = answers(&query, [&one, &other]);
    let (l1, l2) = (l1(&a, &b), norm_of_difference(&a, &b));
    assert!(l1 <= 5.0 * l2 && l1 > 3.0 * l2, "{l1} {l2}");
}

fn exact_answer(rows: &Rows<'_>, query: &Query) -> Vec<f64> {
    match query {
        Query::Gradient { at } => rows
            .objective(0.0, &vec![0.0; at.len()])
            .gradient(at, false)
            .unwrap(),
        Query::Minimise {
            quadratic,
            linear,
            near,
        } => {
            let target = Target {
                tolerance: 1e-12,
                doubled: true,
            };
            let objective = rows.objective(*quadratic, linear);
            let found = solver::minimise(&objective, near, &target, &mut WarmStart::default());
            found.unwrap().point
        }
        _ => panic!("{query:?}"),
    }
}

fn norm_of_difference(a: &[f64], b: &[f64]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
    squares.sum::<f64>().sqrt()
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
                scale: NoiseScaling::Fixed,
            };
            let query = minimise(quadratic, [0.0; 2]);
            let event = mechanism.price(&query, &problem, rows).unwrap();
            let IdealRelease::Objective { spread, curve, .. } = event.ideal else {
                panic!("{event:?}")
            };
            assert_eq!(curve, SlopeCurve::Logistic);
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
fn a_large_query_is_certified_to_a_larger_residual() {
    let problem = problem(Loss::Logistic);
    let small = problem.required_residual(&[0.0, 0.0]);
    let large = problem.required_residual(&[0.0, 1e6]);
    assert_eq!(small, problem.tolerance);
    assert!((128e6 * f64::EPSILON..1e-6).contains(&large), "{large}");
}

/// Returns `∇F(f)` and `det ∇²F(f)` of a query, written out in two dimensions, independently of the solver.
fn derivatives(rows: &PlaneRows, loss: Loss, a: f64, b: [f64; 2], f: [f64; 2]) -> ([f64; 2], f64) {
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

/// Returns the log density of releasing `f`, up to a constant: the density of the noise that makes `f` optimal, which is
/// −∇F(f), times the Jacobian of that map.
fn log_density(
    rows: &PlaneRows,
    loss: Loss,
    law: NoiseDistribution,
    b: [f64; 2],
    f: [f64; 2],
) -> f64 {
    let (g, determinant) = derivatives(rows, loss, 0.2, b, f);
    let of_noise = match law {
        NoiseDistribution::Gamma { rate } => -rate * g[0].hypot(g[1]),
        NoiseDistribution::Laplace { rate } => -rate * (g[0].abs() + g[1].abs()),
        NoiseDistribution::Gaussian { sigma } => -(g[0].hypot(g[1]) / sigma).powi(2) / 2.0,
    };
    determinant.ln() + of_noise
}

/// Returns eight rows, and the same rows with the last one replaced.
fn neighbours(last: [f64; 2], other: [f64; 2], label: bool) -> (PlaneRows, PlaneRows) {
    let mut one = some_rows();
    one.truncate(7);
    let mut two = one.clone();
    one.push((last, label));
    two.push((other, true));
    (one, two)
}

#[test]
fn no_release_is_more_likely_under_a_neighbour_than_the_price_allows() {
    let hinge = Loss::SmoothHinge { width: 0.5 };
    for (loss, family) in [
        (Loss::Logistic, NoiseFamily::Gamma),
        (Loss::Logistic, NoiseFamily::Laplace),
        (hinge, NoiseFamily::Gamma),
        (hinge, NoiseFamily::Laplace),
    ] {
        let mut largest: f64 = 0.0;
        for (rate, b) in [(0.3, [0.0, 0.0]), (1.5, [0.5, -2.0]), (4.0, [0.0, 9.0])] {
            let law = family.with_amount(rate);
            let mechanism = Mechanism::objective(law);
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
                        let loss_here =
                            log_density(&one, loss, law, b, f) - log_density(&two, loss, law, b, f);
                        assert!(loss_here.abs() <= epsilon, "{loss:?} {law:?} {b:?} {f:?}");
                        largest = largest.max(loss_here.abs() / epsilon);
                    }
                }
            }
        }
        // Shows that the bound is not vacuous.
        assert!(largest > 0.5, "{loss:?} {family:?}: {largest}");
    }
}

#[test]
fn the_worst_case_comes_close_to_the_price() {
    // Two nearly opposite rows, and a linear term that moves f to where both slopes are −1. Laplace noise costs most along the
    // diagonal, where ‖x‖₁ is largest.
    let (phi, turned) = (0.05f64, std::f64::consts::FRAC_PI_4);
    close_to_the_price(NoiseDistribution::Gamma { rate: 6.0 }, phi, 0.0);
    close_to_the_price(NoiseDistribution::Laplace { rate: 6.0 }, phi, turned);
}

/// Compares the largest loss for rows at an angle of `±phi` to a direction with the price.
fn close_to_the_price(law: NoiseDistribution, phi: f64, turn: f64) {
    let turned = |x: f64, y: f64| {
        let (sine, cosine) = turn.sin_cos();
        [cosine * x - sine * y, sine * x + cosine * y]
    };
    let one = vec![(turned(phi.cos(), phi.sin()), true)];
    let two = vec![(turned(-phi.cos(), phi.sin()), true)];
    let mechanism = Mechanism::objective(law);
    let event = mechanism
        .price(&minimise(0.2, [0.0; 2]), &problem(Loss::Logistic), 1)
        .unwrap();
    let epsilon = pure_epsilon(event);
    let f = turned(0.0, -200.0);
    // b such that the noise-free optimum of the first data set lies at f: the noise needed there is zero.
    let (g, _) = derivatives(&one, Loss::Logistic, 0.2, [0.0; 2], f);
    let b = [-g[0], -g[1]];
    let privacy_loss =
        log_density(&one, Loss::Logistic, law, b, f) - log_density(&two, Loss::Logistic, law, b, f);
    assert!(
        privacy_loss <= epsilon && privacy_loss > 0.9 * epsilon,
        "{privacy_loss} of {epsilon}"
    );
}

#[test]
fn gaussian_noise_keeps_what_its_price_promises_at_every_delta() {
    // One dimension, by quadrature: the exact hockey-stick divergence at the ε that is charged must be below δ.
    let loss = Loss::Logistic;
    for (sigma, b) in [(0.3, 0.0), (0.7, 2.0), (2.0, -5.0)] {
        let (one, two) = neighbours([1.0, 0.0], [-1.0, 0.0], true);
        let mechanism = Mechanism::Objective {
            law: NoiseDistribution::Gaussian { sigma },
            scale: NoiseScaling::Fixed,
        };
        let event = mechanism
            .price(&minimise(0.2, [b, 0.0]), &problem(loss), 8)
            .unwrap();
        for delta in [1e-2, 1e-4, 1e-6] {
            let mut ledger = Ledger::new(Budget::unlimited(delta).unwrap(), Bound::Tight);
            ledger.spend(event.ideal.into()).unwrap();
            let epsilon = ledger.spent().epsilon;
            for (p, q) in [(&one, &two), (&two, &one)] {
                let density = |rows: &PlaneRows, f: f64| {
                    // The second coordinate is left out: its contribution is the same for both.
                    let flat: PlaneRows = rows.iter().map(|(x, y)| ([x[0], 0.0], *y)).collect();
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

/// Answers one query on the same rows and generator, with and without the noise of the grid.
fn with_and_without_grid_noise(mechanism: Mechanism, query: &Query, seed: u64) -> [Vec<f64>; 2] {
    let rows = some_rows();
    let shard = shard(&rows);
    let problem = problem(Loss::Logistic);
    let event = mechanism.price(query, &problem, rows.len()).unwrap();
    let plan = AnswerPlan::new(query, &event, &problem, (rows.len(), 2)).unwrap();
    [plan, without_grid_noise(plan)].map(|plan| {
        let rows = Rows {
            passes: LocalChunks::in_test(&shard),
            problem: &problem,
        };
        let mut ledger = Ledger::new(Budget::unlimited(1e-5).unwrap(), Bound::Tight);
        let paid = ledger.spend(event).unwrap();
        let mut rng = generator(seed, query, &event);
        let answer = rows
            .noisy_answer(query, paid, &plan, &mut WarmStart::default(), &mut rng)
            .unwrap();
        answer.release.values().to_vec()
    })
}

fn all_mechanisms() -> Vec<(Mechanism, Query)> {
    let at = || Query::Gradient {
        at: vec![0.4, -1.0],
    };
    let mut all = Vec::new();
    for law in LAWS {
        for scale in [NoiseScaling::Fixed, NoiseScaling::Penalty] {
            all.push((
                Mechanism::Objective { law, scale },
                minimise(3.0, [0.3, -0.2]),
            ));
        }
        all.push((Mechanism::Output { law }, minimise(3.0, [0.3, -0.2])));
        all.push((Mechanism::Gradient { law }, at()));
    }
    all
}

#[test]
fn grid_noise_has_the_scale_that_the_slack_requires() {
    for (mechanism, query) in all_mechanisms() {
        let problem = problem(Loss::Logistic);
        let event = mechanism.price(&query, &problem, 8).unwrap();
        let plan = AnswerPlan::new(&query, &event, &problem, (8, 2)).unwrap();
        let scale = plan.rounding.unwrap().noise_scale();
        let runs = 2000;
        let mean = (0..runs)
            .map(|seed| {
                let [grid, double] = with_and_without_grid_noise(mechanism, &query, seed);
                (grid[0] - double[0]).abs() + (grid[1] - double[1]).abs()
            })
            .sum::<f64>()
            / runs as f64;
        // The absolute value of a Laplace variate has mean s and variance s². The tolerance is five standard errors.
        assert!(
            (mean / (2.0 * scale) - 1.0).abs() < 5.0 / (2.0 * runs as f64).sqrt(),
            "{mechanism:?}: {mean} of {}",
            2.0 * scale
        );
        // The noise hides at least the rounding of each coordinate to the grid: s ≥ d/κ.
        assert!(scale >= 2.0 / event.slack * crate::protocol::release::SPACING);
    }
}

#[test]
fn the_grid_costs_less_than_two_thousandths_of_a_steps_price() {
    for (mechanism, query) in all_mechanisms() {
        let event = mechanism
            .price(&query, &problem(Loss::Logistic), 50)
            .unwrap();
        let spent = |charged| {
            let mut ledger = Ledger::new(Budget::unlimited(1e-5).unwrap(), Bound::Tight);
            ledger.spend(charged).unwrap();
            ledger.spent().epsilon
        };
        let more = spent(event) / spent(event.ideal.into()) - 1.0;
        assert!(more > 0.0 && more <= 0.002, "{mechanism:?}: {more}");
    }
}

#[test]
fn in_a_real_study_grid_noise_is_negligible() {
    // Adult among five parties: C = 100 and σ = 12 as in the built-in study, C = 1750 and α = 2 or 4 as in the paper's
    // figures, and totals of one half in twenty steps. Grid noise is at most a thousandth of the mechanism's own noise
    // per coordinate.
    let laws = [
        (100.0, NoiseDistribution::Gaussian { sigma: 12.0 }),
        (1750.0, NoiseDistribution::Gamma { rate: 2.0 }),
        (1750.0, NoiseDistribution::Gamma { rate: 4.0 }),
        (100.0, NoiseDistribution::Gamma { rate: 0.5 }),
        (100.0, NoiseDistribution::Gaussian { sigma: 60.0 }),
        (100.0, NoiseDistribution::Laplace { rate: 1.0 }),
        (1750.0, NoiseDistribution::Laplace { rate: 4.0 }),
    ];
    for (weight, law) in laws {
        let problem = Problem {
            weight,
            ridge: 1.0,
            nodes: 5,
            tolerance: 1e-10,
            shape: Some(RowShape::new(105, 14)),
            ..problem(Loss::Logistic)
        };
        let at = vec![0.5; 105];
        let query = |quadratic| Query::Minimise {
            quadratic,
            linear: vec![10.0; 105],
            near: at.clone(),
        };
        let scale = NoiseScaling::Fixed;
        let cases = [
            (Mechanism::Objective { law, scale }, query(4.0), 4.2),
            (Mechanism::Objective { law, scale }, query(0.0), 0.2),
            (Mechanism::Output { law }, query(4.0), 1.0),
            (
                Mechanism::Gradient { law },
                Query::Gradient { at: at.clone() },
                1.0,
            ),
        ];
        for (mechanism, query, m) in cases {
            let event = mechanism.price(&query, &problem, 6000).unwrap();
            let plan = AnswerPlan::new(&query, &event, &problem, (6000, 105)).unwrap();
            // Per coordinate: gamma noise has a mean norm of d/α, so √d/α in one of d coordinates.
            let own_noise = match law {
                NoiseDistribution::Gaussian { sigma } => sigma,
                NoiseDistribution::Gamma { rate } => 105f64.sqrt() / rate,
                NoiseDistribution::Laplace { rate } => 2f64.sqrt() / rate,
            } / m;
            let grid_noise = 2f64.sqrt() * plan.rounding.unwrap().noise_scale();
            assert!(
                grid_noise <= 1e-3 * own_noise,
                "{mechanism:?}: {grid_noise} against {own_noise}"
            );
        }
    }
}

#[test]
fn a_computed_minimiser_is_within_its_error_bound() {
    use crate::curator::error_model::{ErrorModel, NoisePlacement};
    // A loose tolerance and a bad start make the error visible. The reference is accurate to 1e-12.
    let law = NoiseDistribution::Gamma { rate: 1e9 };
    for n in 0..200usize {
        let angle = n as f64;
        let problem = Problem {
            tolerance: 1e-3,
            ..problem(LOSSES[n % 2])
        };
        let query = Query::Minimise {
            quadratic: 0.1 + angle % 3.0,
            linear: vec![angle.sin(), angle.cos()],
            near: vec![(3.0 * angle).sin(), (2.0 * angle).cos()],
        };
        let shard = shard(&some_rows());
        let found = |tolerance: f64, doubled: bool| {
            let Query::Minimise {
                quadratic,
                linear,
                near,
            } = &query
            else {
                panic!("a minimiser")
            };
            let rows = Rows {
                passes: LocalChunks::in_test(&shard),
                problem: &problem,
            };
            let target = Target { tolerance, doubled };
            let objective = rows.objective(*quadratic, linear);
            solver::minimise(&objective, near, &target, &mut WarmStart::default())
                .unwrap()
                .point
        };
        let (ours, exact) = (found(problem.tolerance, false), found(1e-12, true));
        let model = ErrorModel {
            problem: &problem,
            rows: 8,
            columns: 2,
            doubled: false,
        };
        let bound = model.error_bound(&query, NoisePlacement::Objective, &law);
        let distance = crate::linalg::dot::norm(&[ours[0] - exact[0], ours[1] - exact[1]]);
        let allowed = bound.absolute + bound.relative * crate::linalg::dot::norm(&exact);
        assert!(distance <= allowed, "{n}: {distance} of {allowed}");
        assert!(crate::linalg::dot::norm(&exact) <= bound.radius);
    }
}

/// Computes an answer without noise, before it is rounded to the grid.
fn exact(problem: &Problem, shard: &Shard, query: &Query, doubled: bool) -> Solution {
    let mut ledger = Ledger::new(Budget::unlimited(0.0).unwrap(), Bound::Tight);
    let paid = ledger.spend(IdealRelease::Exact.into()).unwrap();
    let plan = AnswerPlan {
        doubled,
        rounding: None,
    };
    let mut rng = generator(1, query, &IdealRelease::Exact.into());
    let rows = Rows {
        passes: LocalChunks::in_test(shard),
        problem,
    };
    rows.perturbed_answer(query, paid, &plan, &mut WarmStart::default(), &mut rng)
        .unwrap()
}

#[test]
fn a_plan_with_doubled_margins_computes_them() {
    // Far out and with almost no ridge, the rounding of plain margins is visible. The tolerance is loose, so that it
    // may stay.
    let shard = shard(&vec![([0.6, -0.6], true), ([0.0, 0.3], false)]);
    let problem = Problem {
        ridge: 1e-12,
        tolerance: 1e-2,
        ..problem(Loss::Logistic)
    };
    let rows = Rows {
        passes: LocalChunks::in_test(&shard),
        problem: &problem,
    };
    let at = vec![1e12 + 3.0, 1e12];
    let objective = rows.objective(0.0, &[0.0; 2]);
    let slope = |doubled| objective.gradient(&at, doubled).unwrap();
    assert_ne!(
        slope(true),
        slope(false),
        "plain margins are precise enough here"
    );
    let gradient = Query::Gradient { at: at.clone() };
    let minimiser = Query::Minimise {
        quadratic: 0.0,
        linear: slope(true).iter().map(|g| -g).collect(),
        near: at.clone(),
    };
    let residual = |doubled| exact(&problem, &shard, &minimiser, doubled).residual;
    for doubled in [false, true] {
        let answer = exact(&problem, &shard, &gradient, doubled);
        assert_eq!(answer.point, slope(doubled));
    }
    // The solver starts at the minimiser. With doubled margins the residual vanishes; with plain ones it is their
    // rounding error.
    assert!(residual(true) < 1e-12 && residual(false) > 1e-6);
}

#[test]
fn every_minimiser_meets_the_required_residual() {
    // A loose tolerance, so that the solver stops early.
    let problem = Problem {
        tolerance: 1e-3,
        ..problem(Loss::Logistic)
    };
    let shard = shard(&some_rows());
    let mut largest: f64 = 0.0;
    for n in 0..200usize {
        let angle = n as f64;
        let query = Query::Minimise {
            quadratic: 0.1 + angle % 3.0,
            linear: vec![angle.sin(), angle.cos()],
            near: vec![(3.0 * angle).sin(), (2.0 * angle).cos()],
        };
        largest = largest.max(exact(&problem, &shard, &query, false).residual);
    }
    assert!(largest <= 1e-3 && largest > 1e-4, "{largest}");
}

const LOSSES: [Loss; 2] = [Loss::Logistic, Loss::SmoothHinge { width: 0.5 }];
