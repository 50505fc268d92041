//! The Adult study through the whole pipeline (study text, built-in table, simulated parties), against the numbers of an
//! independent implementation.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use radmm_lab::Experiment;
use radmm_study::Study;
use serde_json::Value;

/// The columns of the golden models: as declared, in the order of the file.
const COLUMNS: &str = include_str!("../../radmm-data/tests/adult/columns.txt");

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/adult-ring5.json")).unwrap()
}

fn prepare(text: &str) -> Experiment {
    let (study, notes) = Study::parse(text, "adult-admm.toml").unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    Experiment::prepare(study, Path::new("")).unwrap()
}

fn numbers(list: &Value) -> Vec<f64> {
    let list = list.as_array().unwrap().iter();
    list.map(|number| number.as_f64().unwrap()).collect()
}

fn largest_difference(ours: impl IntoIterator<Item = f64>, golden: &[f64]) -> f64 {
    let ours: Vec<f64> = ours.into_iter().collect();
    assert_eq!(ours.len(), golden.len());
    let pairs = ours.iter().zip(golden);
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn the_adult_study_agrees_with_the_independent_implementation() {
    let golden = golden();
    for case in golden["cases"].as_array().unwrap() {
        let damping = match case["algorithm"].as_str() {
            Some("admm") => String::new(),
            _ => format!("damping = {}", case["gamma"]),
        };
        let experiment = prepare(&format!(
            r#"
            [data]
            builtin = "adult"
            [network]
            nodes = 5
            topology = "ring"
            [problem]
            count = "parties"
            weight = {}
            ridge = {}
            [algorithm]
            name = {}
            iterations = {}
            penalty = {}
            {damping}
            tolerance = 1e-12
            "#,
            golden["C"], golden["rho"], case["algorithm"], case["iterations"], case["eta"],
        ));
        assert_eq!(experiment.table().rows(), 45_222);
        let outcome = experiment.run(None, &|_| ()).unwrap();
        let run = &outcome.repetitions[0];

        // Both solve to a gradient of 10⁻¹² or so; errors grow from step to step, most of all without damping.
        let losses = run.iterations.iter().map(|made| made.loss);
        let difference = largest_difference(losses, &numbers(&case["loss"]));
        assert!(difference <= 1e-11, "losses differ by {difference}");

        let columns = &experiment.table().columns;
        let models = case["final_models"].as_array().unwrap();
        assert_eq!(models.len(), run.nodes.len());
        for (node, model) in run.nodes.iter().zip(models) {
            let place = |name| columns.iter().position(|column| column == name).unwrap();
            let ours = COLUMNS.lines().map(|name| node.model[place(name)]);
            let difference = largest_difference(ours, &numbers(model));
            assert!(
                difference <= 1e-10,
                "{}: models differ by {difference}",
                node.name
            );
        }
    }
}

#[test]
fn the_adult_study_trains_on_the_conventional_rows_and_tests_on_the_others() {
    let experiment = prepare(include_str!("../../../studies/adult-admm.toml"));
    let table = experiment.table();
    assert_eq!(table.columns.len(), 105);
    assert_eq!((table.rows(), table.counts.held_out), (30_162, 15_060));
    let sizes: Vec<usize> = table
        .parties
        .iter()
        .map(|party| party.shard.rows())
        .collect();
    assert_eq!(sizes, [4463, 6650, 6359, 3354, 9336]);
    assert_eq!(table.test.as_ref().map(|shard| shard.rows()), Some(15_060));
}

#[test]
fn bins_are_columns_of_their_own() {
    let experiment = prepare(include_str!("../../../studies/adult-bins.toml"));
    // 99 values of categories; 10 + 8 + 7 + 6 + 7 bins.
    assert_eq!(experiment.table().columns.len(), 99 + 38);
    assert_eq!(experiment.table().rows(), 30_162);
    let has = |name: &str| {
        experiment
            .table()
            .columns
            .iter()
            .any(|column| column == name)
    };
    assert!(has("age<25") && has("40≤hours-per-week<45") && !has("fnlwgt"));
}
