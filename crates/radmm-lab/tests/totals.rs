//! Every party keeps a study's total, and the bill of a study is never understated.
#![allow(
    clippy::disallowed_methods,
    reason = "tests compare with the platform's functions"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use proptest::prelude::*;
use radmm::privacy::{NoiseDistribution, NoiseFamily};
use radmm::sim::Snapshot;
use radmm_lab::{BillError, Experiment, StudyBill, UnattainableBudget};
use radmm_study::{Method, Noise, Study};

const STUDY: &str = r#"
name = "totals"
[data]
builtin = "clinic"
intercept = true
[data.split]
method = "sizes"
sizes = [1, 2, 4, 8]
seed = 1
[network]
nodes = 4
topology = "star"
[problem]
weight = 50
ridge = 0.5
[algorithm]
name = "r-admm"
iterations = 8
penalty = 2
damping = 1
[privacy]
epsilon = 5
[run]
seed = 1
"#;

fn study(changes: &[(&str, &str)]) -> Study {
    support::study(STUDY, changes)
}

fn experiment(changes: &[(&str, &str)]) -> Experiment {
    Experiment::prepare(study(changes), ".".as_ref()).unwrap()
}

/// Replacements for `name = "r-admm"`.
const METHODS: [&str; 10] = [
    "name = \"r-admm\"",
    "name = \"r-admm\"\nrecycle = 3",
    "name = \"admm\"",
    "name = \"m-admm\"",
    "name = \"mr-admm\"",
    "name = \"dlm\"",
    "name = \"r-dlm\"",
    "name = \"dgd\"\nstep = 0.01",
    "name = \"local\"\nextra_ridge = 3",
    "name = \"average\"\nextra_ridge = 3",
];

/// A replacement with which parties count alike, as in the paper.
const BY_PARTY: (&str, &str) = ("[problem]", "[problem]\ncount = \"parties\"");

/// Replacements for `epsilon = 5`, for methods that ask for minimisers.
const MINIMISERS: [&str; 7] = [
    "epsilon = 5\nmechanism = \"output\"\nnoise = \"laplace\"",
    "epsilon = 5\nscale = \"penalty\"\nnoise = \"laplace\"",
    "epsilon = 5\nbound = \"paper\"",
    "epsilon = 5\nmechanism = \"output\"",
    "epsilon = 5\nmechanism = \"output\"\ndelta = 1e-5",
    "epsilon = 5\nscale = \"penalty\"",
    "epsilon = 5\nscale = \"penalty\"\ndelta = 1e-5",
];

#[test]
fn every_party_comes_within_a_thousandth_of_the_total_and_never_above() {
    let mut seen = 0;
    for method in METHODS {
        let mut ways = vec![
            "epsilon = 5",
            "epsilon = 5\nnoise = \"laplace\"",
            "epsilon = 5\ndelta = 1e-5",
        ];
        let asks_for_gradients = study(&[("name = \"r-admm\"", method)])
            .algorithm
            .method
            .asks_for_gradients();
        if !asks_for_gradients {
            ways.extend(MINIMISERS);
        }
        for way in ways {
            let single_query = method.contains("local") || method.contains("average");
            if single_query && way.contains("penalty") {
                continue;
            }
            let experiment = experiment(&[("name = \"r-admm\"", method), ("epsilon = 5", way)]);
            let noise = experiment
                .noise()
                .unwrap_or_else(|error| panic!("{method} {way}: {error}"));
            let runs = experiment
                .repeat(&noise, Some(5.0), &|_: &Snapshot| ())
                .unwrap();
            let run = &runs.repetitions[0];
            assert_eq!(run.stopped, None, "{method} {way}");
            for node in &run.nodes {
                let spent = node.spent.epsilon;
                assert!(
                    spent <= 5.0 && spent > 5.0 * 0.999,
                    "{spent} {method} {way}"
                );
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 4 * (5 * 10 + 3 * 3 + 2 * 7));
}

#[test]
fn where_parties_count_alike_those_with_fewer_rows_have_more_noise_for_the_same_total() {
    for way in [
        "epsilon = 5",
        "epsilon = 5\nnoise = \"laplace\"",
        "epsilon = 5\ndelta = 1e-5",
    ] {
        let experiment = experiment(&[("epsilon = 5", way), ("\"star\"", "\"ring\""), BY_PARTY]);
        let runs = experiment
            .repeat(&experiment.noise().unwrap(), None, &|_: &Snapshot| ())
            .unwrap();
        let nodes = &runs.repetitions[0].nodes;
        let noise = |law: &Option<NoiseDistribution>| match law.unwrap() {
            NoiseDistribution::Gamma { rate } | NoiseDistribution::Laplace { rate } => 1.0 / rate,
            NoiseDistribution::Gaussian { sigma } => sigma,
        };
        for pair in nodes.windows(2) {
            assert!(pair[0].rows < pair[1].rows);
            // Twice the rows need half the noise, or less: the Hessians are cheaper too.
            assert!(noise(&pair[0].law) > 1.9 * noise(&pair[1].law), "{way}");
        }
    }
}

#[test]
fn a_party_is_billed_for_its_own_penalty() {
    let bill = |penalty: &str, noise: &str| {
        let changes = [
            ("name = \"r-admm\"", "name = \"mr-admm\""),
            ("\"star\"", "\"ring\""),
            ("penalty = 2", penalty),
            ("epsilon = 5", noise),
        ];
        StudyBill::for_rows(&study(&changes), &[1000]).unwrap()
    };
    for noise in ["epsilon = 5", "mechanism = \"objective\"\nrate = 0.1"] {
        let mixed = bill("penalty = [1, 2, 3, 4]", noise);
        for (i, node) in mixed.nodes.iter().enumerate() {
            let alone = bill(&format!("penalty = {}", i + 1), noise);
            assert_eq!(node.total, alone.nodes[i].total, "{noise} {i}");
            assert_eq!(node.law, alone.nodes[i].law, "{noise} {i}");
        }
    }
}

#[test]
fn a_run_keeps_the_total_as_a_limit() {
    let experiment = experiment(&[]);
    let outcome = experiment.run(None, &|_| ()).unwrap();
    assert_eq!(outcome.repetitions[0].stopped, None);
    // A party's own limit still counts.
    let stopped = experiment.run(Some(1.0), &|_| ()).unwrap();
    assert!(stopped.repetitions[0].stopped.is_some());
    let within = |node: &radmm_lab::NodeResult| node.spent.epsilon <= 1.0;
    assert!(stopped.repetitions[0].nodes.iter().all(within));
}

#[test]
fn an_unattainable_total_is_reported_with_the_party_and_the_least_total() {
    let study = study(&[("epsilon = 5", "epsilon = 0.01"), BY_PARTY]);
    let error = StudyBill::for_rows(&study, &[400, 20, 400, 400]).unwrap_err();
    let said = error.to_string();
    let BillError::Unattainable(UnattainableBudget::OutOfReach {
        least: reported, ..
    }) = error
    else {
        panic!("{error:?}")
    };
    // Four data steps at ln(1 + 50·¼/(20·(0.125 + 4))) each. A price may exceed its theorem a little, for rounding.
    let least = 4.0 * (50.0 * 0.25 / (20.0 * 4.125_f64)).ln_1p();
    assert!(
        reported >= least && reported < least * 1.005,
        "{reported} {least}"
    );
    assert_eq!(
        said,
        format!(
            "[privacy] epsilon = 0.01 is out of reach: node 1, with 20 rows, spends about {} over its 4 data steps however \
             much noise there is; raise epsilon, ridge or penalty, take fewer iterations, or recycle more",
            radmm_study::number_format::epsilon(reported)
        )
    );
    // Just above it, the total is attainable.
    for (share, reached) in [(0.99, false), (1.01, true)] {
        let epsilon = format!("epsilon = {}", least * share);
        let text = STUDY.replace("epsilon = 5", &epsilon);
        let text = text.replace(BY_PARTY.0, BY_PARTY.1);
        let (study, _) = Study::parse(&text, "totals.toml").unwrap();
        let bill = StudyBill::for_rows(&study, &[400, 20, 400, 400]);
        assert_eq!(bill.is_ok(), reached, "{share}");
    }
}

#[test]
fn queries_that_the_papers_theorem_does_not_cover_are_rejected() {
    let study = study(&[
        ("epsilon = 5", "epsilon = 5\nbound = \"paper\""),
        ("penalty = 2", "penalty = 0.001"),
    ]);
    let error = StudyBill::for_rows(&study, &[20]).unwrap_err().to_string();
    assert!(
        error.contains("bound = \"paper\"") && error.contains("side condition"),
        "{error}"
    );
}

#[test]
fn the_numbers_of_rows_must_match_the_parties() {
    let error = StudyBill::for_rows(&study(&[]), &[10, 20]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "2 numbers of rows for 4 nodes: give one number for each node, or a single one for all"
    );
}

/// Numbers of all magnitudes from `2^low` to `2^high`.
fn magnitude(low: i32, high: i32) -> impl Strategy<Value = f64> {
    (low..=high, 1.0..2.0f64).prop_map(|(k, x)| x * f64::from(k).exp2())
}

/// A study of random size, method and privacy, with its number of rows.
fn any_study(privacy: impl Strategy<Value = String>) -> impl Strategy<Value = (Study, usize)> {
    (
        (0..METHODS.len(), 1..12u32, 1usize..10_000_000),
        (magnitude(-20, 16), magnitude(-60, 20), magnitude(-40, 40)),
        privacy,
    )
        .prop_map(
            |((method, iterations, rows), (weight, ridge, penalty), privacy)| {
                let text = STUDY
                    .replace("name = \"r-admm\"", METHODS[method])
                    .replace("iterations = 8", &format!("iterations = {iterations}"))
                    .replace("penalty = 2", &format!("penalty = {penalty:?}"))
                    .replace("weight = 50", &format!("weight = {weight:?}"))
                    .replace("ridge = 0.5", &format!("ridge = {ridge:?}"))
                    .replace("epsilon = 5", &privacy);
                let mechanism =
                    match METHODS[method].contains("dlm") || METHODS[method].contains("dgd") {
                        true => "gradient",
                        false => "objective",
                    };
                let text = text.replace("PLACE", mechanism);
                let study = Study::parse(&text, "any.toml");
                (
                    study.unwrap_or_else(|error| panic!("{error}\n{text}")).0,
                    rows,
                )
            },
        )
}

fn delta() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(f64::MIN_POSITIVE),
        Just(1.0 - f64::EPSILON),
        magnitude(-1000, -1),
        magnitude(-40, -1),
    ]
}

fn total() -> impl Strategy<Value = String> {
    let epsilon = prop_oneof![Just(1000.0), Just(5e-324), Just(1e-300), magnitude(-30, 8)];
    let pure = prop_oneof![Just("gamma"), Just("laplace")];
    (epsilon, proptest::option::of(delta()), pure).prop_map(|(epsilon, delta, pure)| match delta {
        None => format!("epsilon = {epsilon:?}\nnoise = {pure:?}"),
        Some(delta) => format!("epsilon = {epsilon:?}\ndelta = {delta:?}"),
    })
}

fn amount() -> impl Strategy<Value = String> {
    let rate = prop_oneof![Just(1e-100), Just(f64::MAX), magnitude(-300, 1000)];
    let pure = prop_oneof![Just("gamma"), Just("laplace")];
    let rate = (rate, pure).prop_map(|(rate, pure)| {
        format!("mechanism = \"PLACE\"\nnoise = {pure:?}\nrate = {rate:?}")
    });
    let sigma = prop_oneof![Just(5e-324), Just(1e100), magnitude(-1000, 300)];
    let gaussian = (sigma, delta()).prop_map(|(sigma, delta)| {
        format!("mechanism = \"PLACE\"\nnoise = \"gaussian\"\nsigma = {sigma:?}\ndelta = {delta:?}")
    });
    prop_oneof![rate, gaussian]
}

/// Asserts that nothing in a bill is negative, NaN or decreasing.
fn assert_consistent(bill: &StudyBill) {
    for node in &bill.nodes {
        let mut before = 0.0;
        for step in &node.steps {
            // A large δ may cover a step alone.
            assert!(step.price >= 0.0 && step.total >= before, "{step:?}");
            before = step.total;
        }
        assert!(node.total.epsilon == before, "{node:?}");
        assert!(node.noise_norm >= 0.0, "{node:?}");
        assert!(node.total.epsilon <= bill.total.epsilon);
    }
    let rises = bill
        .by_iteration
        .windows(2)
        .all(|pair| pair[0].epsilon <= pair[1].epsilon);
    assert!(rises && bill.by_iteration[0].epsilon == 0.0);
    if let Some(saving) = &bill.saving {
        let costs_more = saving
            .epsilon
            .is_none_or(|total| total >= bill.total.epsilon);
        assert!(costs_more, "{saving:?}");
        let needs_more = saving
            .noise
            .is_none_or(|[low, high]| low >= 1.0 - 1e-9 && high >= low);
        assert!(needs_more, "{saving:?}");
    }
}

/// The price of gamma noise in the objective of the logistic loss for `A = S·α` and `x`: with `s = (1 + t)/2` and a curvature of
/// `(1 − t²)/4`, the best `t` solves `A·x·t² + 8x·t = A(1 + x)`, or is 1.
fn logistic_price(a: f64, x: f64) -> f64 {
    let root = (16.0 * x * x + a * a * x * (1.0 + x)).sqrt();
    let t = (a * (1.0 + x) / (root + 4.0 * x)).min(1.0);
    a / 2.0 * (1.0 + (1.0 + t) / 2.0) + (x * (1.0 - t * t)).ln_1p()
}

/// Asserts that the total is no less than that of the theorems, computed in another way: pure losses by their formula, Gaussian
/// noise on answers by the exact privacy profile of one Gaussian mechanism, to which it composes.
fn assert_not_understated(study: &Study, rows: usize, bill: &StudyBill) {
    let (weight, rows) = (study.problem.weight, rows as f64);
    let s = 2.0 * weight / rows;
    for node in &bill.nodes {
        let stated = node.total.epsilon;
        let gradients = study.algorithm.method.asks_for_gradients();
        match node.law.unwrap() {
            law @ (NoiseDistribution::Gamma { rate } | NoiseDistribution::Laplace { rate }) => {
                // In the norm of the noise: a row fills one column for each of the file's 7, and the intercept.
                let s = match law.family() {
                    NoiseFamily::Laplace => s * 8f64.sqrt(),
                    _ => s,
                };
                let spread = |quadratic: f64| {
                    let m = study.problem.ridge / 4.0 + quadratic;
                    weight * 0.25 / (rows * m)
                };
                let degree = node.degree as f64;
                let spread = match &study.algorithm.method {
                    Method::Local { extra_ridge } | Method::Average { extra_ridge } => {
                        spread(*extra_ridge)
                    }
                    Method::Admm { penalty } | Method::RecycledAdmm { penalty, .. } => {
                        spread(2.0 * penalty.at(1) * degree)
                    }
                    Method::MAdmm { penalty, .. } | Method::MRecycledAdmm { penalty, .. } => {
                        spread(2.0 * penalty[0].at(1) * degree)
                    }
                    _ => 0.0,
                };
                let loss = node.data_steps as f64 * logistic_price(s * rate, spread);
                // A few roundings of the check itself.
                assert!(stated >= loss * (1.0 - 1e-12), "{stated} {loss}");
            }
            NoiseDistribution::Gaussian { sigma } if gradients => {
                let mu = s * (node.data_steps as f64).sqrt() / sigma;
                if stated.is_finite() && mu > 1e-6 && mu < 1e3 {
                    let phi = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
                    let gone = match mu / 2.0 + stated / mu {
                        // There one factor overflows and the other vanishes: e^ε·Φ(−t) = φ(x)·R(t) with x = ε/μ − μ/2, and
                        // 1/t − 1/t³ + 3/t⁵ is above R(t) by at most 15/t⁷.
                        t if t > 30.0 => {
                            let x = stated / mu - mu / 2.0;
                            let density = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
                            density * (1.0 - 1.0 / (t * t) + 3.0 / t.powi(4)) / t
                        }
                        t => stated.exp() * phi(-t),
                    };
                    let delta = phi(mu / 2.0 - stated / mu) - gone;
                    assert!(
                        delta <= study.privacy.delta * (1.0 + 1e-6) + 1e-13,
                        "{delta} {stated} {mu}"
                    );
                }
            }
            NoiseDistribution::Gaussian { .. } => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn any_total_is_kept_or_rejected_with_a_reason((study, rows) in any_study(total())) {
        let Noise::Total(wanted) = study.privacy.noise else {
            panic!("{:?}", study.privacy)
        };
        match StudyBill::for_rows(&study, &[rows]) {
            Ok(bill) => {
                assert_consistent(&bill);
                assert_not_understated(&study, rows, &bill);
                prop_assert!(bill.total.epsilon <= wanted.epsilon);
            }
            Err(BillError::Unattainable(UnattainableBudget::OutOfReach { least, .. })) => {
                prop_assert!(least > wanted.epsilon, "{} {}", least, wanted.epsilon);
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn any_amount_of_noise_has_a_bill((study, rows) in any_study(amount())) {
        let bill = StudyBill::for_rows(&study, &[rows]).unwrap();
        assert_consistent(&bill);
        assert_not_understated(&study, rows, &bill);
        prop_assert!(bill.total.epsilon >= 0.0);
    }
}
