//! Parties of very unequal sizes: where rows count alike, they look for what one party with all rows finds, and each of them pays
//! the same price for the same noise.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;

use radmm::graph::NodeId;
use radmm::privacy::NoiseDistribution;
use radmm_lab::report::{run_page, tables};
use radmm_lab::{Experiment, Repetition, StudyBill};
use radmm_study::Study;

const STUDY: &str = r#"
    [data]
    builtin = "clinic"
    [data.split]
    method = "sizes"
    sizes = [300, 60, 10, 1, 20]
    seed = 1
    [network]
    nodes = 5
    topology = "ring"
    [problem]
    weight = 20
    ridge = 0.5
    [algorithm]
    name = "r-admm"
    iterations = 6
    penalty = 3
    damping = 1
    extra_ridge = 2
    [run]
    seed = 1
"#;

const ROWS: [usize; 5] = [1519, 304, 51, 5, 101];

fn study(changes: &[(&str, &str)]) -> Study {
    support::study(STUDY, changes)
}

fn experiment(changes: &[(&str, &str)]) -> Experiment {
    let experiment = Experiment::prepare(study(changes), Path::new("")).unwrap();
    let rows: Vec<usize> = experiment
        .table()
        .parties
        .iter()
        .map(|p| p.shard.rows())
        .collect();
    assert_eq!(rows, ROWS);
    experiment
}

fn once(experiment: &Experiment) -> Repetition {
    let mut runs = experiment
        .repeat(&experiment.noise().unwrap(), None, &|_| ())
        .unwrap();
    runs.repetitions.remove(0)
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let squares = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b));
    squares.sum::<f64>().sqrt()
}

const BY_PARTY: (&str, &str) = ("[problem]", "[problem]\ncount = \"parties\"");

#[test]
fn every_row_has_the_same_weight_and_the_weights_have_the_mean_c() {
    let experiment = experiment(&[]);
    let instance = experiment.instance();
    let weights = ROWS.iter().enumerate().map(|(i, rows)| {
        let weight = instance.problem(NodeId(i as u32)).weight;
        // C·N/Σ_j B_j.
        assert!((weight / *rows as f64 / (20.0 * 5.0 / 1980.0) - 1.0).abs() < 1e-14);
        weight
    });
    assert!((weights.sum::<f64>() / 5.0 - 20.0).abs() < 1e-12);
}

#[test]
fn algorithms_converge_to_the_common_optimum() {
    for method in ["name = \"r-admm\"", "name = \"admm\"", "name = \"mr-admm\""] {
        let changes = [
            ("name = \"r-admm\"", method),
            ("iterations = 6", "iterations = 3000"),
            ("damping = 1\n", "damping = 20\n"),
        ];
        let experiment = experiment(&changes);
        let outcome = experiment.run(None, &|_| ()).unwrap();
        let optimum = outcome.centralised.unwrap();
        for node in &outcome.repetitions[0].nodes {
            let apart = distance(&node.model, &optimum.model);
            assert!(apart < 1e-6, "{method}, {}: {apart}", node.name);
        }
    }
}

#[test]
fn averaging_tends_to_the_mean_over_rows() {
    let alone = once(&experiment(&[("name = \"r-admm\"", "name = \"local\"")]));
    let mean = |weights: &[f64]| -> Vec<f64> {
        let models = alone.nodes.iter().zip(weights);
        let mut mean = vec![0.0; alone.nodes[0].model.len()];
        for (node, weight) in models {
            for (mean, value) in mean.iter_mut().zip(&node.model) {
                *mean += weight * value;
            }
        }
        mean
    };
    let average = ("name = \"r-admm\"", "name = \"average\"");
    let long = ("iterations = 6", "iterations = 60");
    let by_rows = mean(&ROWS.map(|rows| rows as f64 / 1980.0));
    for node in &once(&experiment(&[average, long])).nodes {
        assert!(distance(&node.model, &by_rows) < 1e-9, "{}", node.name);
    }
    // The models of the first iteration are the local ones, whatever the shares are.
    for (node, local) in once(&experiment(&[
        average,
        ("iterations = 6", "iterations = 1"),
    ]))
    .nodes
    .iter()
    .zip(&alone.nodes)
    {
        assert_eq!(node.model, local.model);
    }
    // Where parties count alike, the mean is theirs. (Local models differ, too: their weights do.)
    let alone = once(&experiment(&[
        ("name = \"r-admm\"", "name = \"local\""),
        BY_PARTY,
    ]));
    let columns = alone.nodes[0].model.len();
    let by_party: Vec<f64> = (0..columns)
        .map(|k| alone.nodes.iter().map(|node| node.model[k]).sum::<f64>() / 5.0)
        .collect();
    for node in &once(&experiment(&[average, long, BY_PARTY])).nodes {
        assert!(distance(&node.model, &by_party) < 1e-9, "{}", node.name);
    }
}

#[test]
fn parties_of_any_size_pay_the_same_price_for_the_same_noise() {
    for noise in [
        "mechanism = \"objective\"\nnoise = \"gaussian\"\nsigma = 2\ndelta = 1e-5",
        "mechanism = \"objective\"\nrate = 3",
        "mechanism = \"output\"\nrate = 3",
    ] {
        let privacy = format!("[privacy]\n{noise}\n[run]");
        let bill = |count| {
            let study = study(&[("[run]", &privacy), count]);
            StudyBill::for_rows(&study, &ROWS).unwrap()
        };
        let rows = bill(("[problem]", "[problem]"));
        for node in &rows.nodes {
            for (own, first) in node.steps.iter().zip(&rows.nodes[0].steps) {
                // Up to the rounding of C·N·B_i/Σ_j B_j, divided by B_i again.
                assert!((own.price / first.price - 1.0).abs() < 1e-13, "{noise}");
            }
        }
        let parties = bill(BY_PARTY);
        assert!(parties.nodes[3].steps[0].price > 50.0 * parties.nodes[0].steps[0].price);
    }
}

#[test]
fn parties_of_any_size_need_the_same_noise_for_the_same_total() {
    for total in ["epsilon = 3", "epsilon = 3\ndelta = 1e-5"] {
        let privacy = format!("[privacy]\n{total}\n[run]");
        let study = study(&[("[run]", &privacy)]);
        let bill = StudyBill::for_rows(&study, &ROWS).unwrap();
        let amounts: Vec<f64> = bill
            .nodes
            .iter()
            .map(|node| node.law.unwrap().amount())
            .collect();
        for amount in &amounts {
            assert!((amount / amounts[0] - 1.0).abs() < 1e-9, "{amounts:?}");
        }
        for node in &bill.nodes {
            assert!(node.total.epsilon <= 3.0 && node.total.epsilon > 2.99);
        }
        // As much as one of five parties with a fifth of the rows each.
        let equal = StudyBill::for_rows(&study, &[396; 5]).unwrap();
        let ratio = equal.nodes[0].law.unwrap().amount() / amounts[0];
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
        assert!(matches!(
            (bill.nodes[0].law.unwrap(), total.contains("delta")),
            (NoiseDistribution::Gamma { .. }, false) | (NoiseDistribution::Gaussian { .. }, true)
        ));
    }
}

#[test]
fn the_optimum_is_called_pooled_only_where_rows_count_alike() {
    let titles = |changes: &[(&str, &str)]| {
        let experiment = experiment(changes);
        let outcome = experiment.run(None, &|_| ()).unwrap();
        let table = tables::comparison(&experiment, &outcome);
        let page = run_page(&experiment, &outcome).to_html();
        let above_the_majority = table.rows[table.rows.len() - 2][0].clone();
        (
            above_the_majority,
            page.contains("pooled, no noise"),
            page.contains("one party with all rows"),
        )
    };
    let (title, pooled, one_party) = titles(&[]);
    assert_eq!(title, "pooled, no noise");
    assert!(pooled && one_party);
    let (title, pooled, one_party) = titles(&[BY_PARTY]);
    assert_eq!(title, "optimum, no noise");
    assert!(!pooled && !one_party);
}
