//! The table of accuracies, on few synthetic patients and with few parameters: totals are kept, and the choice of parameters
//! sees neither the rows nor the noise of the reported numbers.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use radmm::algorithm::schedule::Schedule;
use radmm::privacy::Guarantee;
use radmm_data::Builtin;
use radmm_lab::Experiment;
use radmm_paper::accuracy::{
    AccuracyCell, AccuracyError, AccuracyExperiment, AccuracyMethod, AccuracySettings,
    AccuracyTable, ParameterSet,
};
use radmm_report::TextTable;
use radmm_study::{Method, NoiseFamily, Study};

const STUDY: &str = r#"
    [data]
    path = "train.csv"
    label = "readmitted"
    positive = "yes"
    missing = ["?"]
    intercept = true
    [data.numeric]
    age = [18, 95]
    bmi = [15, 50]
    systolic = [90, 200]
    [data.categorical]
    smoker = ["no", "yes"]
    [data.split]
    method = "shuffled"
    seed = 1
    [data.test]
    path = "test.csv"
    [network]
    nodes = 4
    topology = "ring"
    [problem]
    weight = 100
    ridge = 0.5
    [algorithm]
    name = "local"
    iterations = 1
"#;

const SKEWED: &str = "method = \"dirichlet\"\nalpha = 1";

/// Writes patients to train on, and others to test on with these labels.
fn write(folder: &Path, relabelled: fn(&str) -> String) {
    let mut lines = Builtin::Clinic.csv().lines();
    let header = lines.next().unwrap();
    let rows: Vec<&str> = lines.collect();
    let (train, test) = rows.split_at(1600);
    fs::write(
        folder.join("train.csv"),
        file(header, train.iter().map(|row| (*row).to_owned())),
    )
    .unwrap();
    fs::write(
        folder.join("test.csv"),
        file(header, test.iter().map(|row| relabelled(row))),
    )
    .unwrap();
}

fn file(header: &str, rows: impl Iterator<Item = String>) -> String {
    let mut text = format!("{header}\n");
    for row in rows {
        text += &row;
        text.push('\n');
    }
    text
}

fn unchanged(row: &str) -> String {
    row.to_owned()
}

/// Returns a row with the other label, which is the last column.
fn reversed(row: &str) -> String {
    let (rest, outcome) = row.rsplit_once(',').unwrap();
    let other = match outcome {
        "yes" => "no",
        "no" => "yes",
        other => panic!("{other}"),
    };
    format!("{rest},{other}")
}

/// Returns two to four parameter sets of each method.
fn few(method: AccuracyMethod, experiment: &Experiment, noise: NoiseFamily) -> Vec<ParameterSet> {
    let parameters = |method, iterations, ridge| ParameterSet {
        method,
        iterations,
        ridge,
    };
    let penalty = Schedule::Constant(5.0);
    match method {
        AccuracyMethod::Alone | AccuracyMethod::Averaged | AccuracyMethod::Centralised => {
            let mut all = method.parameter_sets(experiment, noise);
            all.truncate(6);
            all.drain(..2);
            all
        }
        AccuracyMethod::RecycledByRule | AccuracyMethod::Consensus => {
            method.parameter_sets(experiment, noise)
        }
        AccuracyMethod::Admm => [2, 4]
            .map(|iterations| parameters(Method::Admm { penalty }, iterations, 4.0))
            .into(),
        AccuracyMethod::Recycled => [1.0, 10.0]
            .map(|damping| {
                let damping = Schedule::Constant(damping);
                let method = Method::RecycledAdmm {
                    penalty,
                    damping,
                    recycle: 1,
                };
                parameters(method, 6, 4.0)
            })
            .into(),
        AccuracyMethod::Linearised => [5.0, 20.0]
            .map(|damping| {
                let damping = Schedule::Constant(damping);
                let method = Method::RecycledDlm {
                    penalty,
                    damping,
                    recycle: 1,
                };
                parameters(method, 6, 4.0)
            })
            .into(),
    }
}

fn settings() -> AccuracySettings {
    let total = |epsilon, delta| Guarantee { epsilon, delta };
    AccuracySettings {
        totals: vec![total(1.0, 0.0), total(1.0, 1e-4)],
        repetitions: 3,
        parameter_sets: few,
        ..AccuracySettings::standard(3)
    }
}

fn experiment(folder: &Path, settings: AccuracySettings) -> AccuracyExperiment {
    let studies = [
        STUDY.to_owned(),
        STUDY.replace("method = \"shuffled\"", SKEWED),
    ];
    let studies = studies.map(|text| Study::parse(&text, "patients.toml").unwrap().0);
    AccuracyExperiment::new(studies.into(), folder, settings).unwrap()
}

fn run(relabelled: fn(&str) -> String, settings: AccuracySettings) -> AccuracyTable {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), relabelled);
    experiment(folder.path(), settings).run(&|_| ()).unwrap()
}

fn cells(table: &AccuracyTable) -> Vec<&AccuracyCell> {
    table.splits.iter().flat_map(|split| &split.cells).collect()
}

#[test]
fn every_party_of_every_cell_spends_its_total_and_no_more() {
    let table = run(unchanged, settings());
    assert_eq!(cells(&table).len(), 2 * 2 * AccuracyMethod::ALL.len());
    for cell in cells(&table) {
        let chosen = cell.chosen.as_ref().unwrap();
        let [least, greatest] = chosen.spent;
        let total = cell.total.epsilon;
        assert!(greatest <= total && least > 0.995 * total, "{cell:?}");
        assert_eq!(chosen.stopped, 0);
        let expected = match cell.method {
            AccuracyMethod::Alone | AccuracyMethod::Averaged | AccuracyMethod::Centralised => 1,
            AccuracyMethod::Admm => chosen.parameters.iterations,
            AccuracyMethod::Recycled | AccuracyMethod::Linearised => 3,
            AccuracyMethod::RecycledByRule if cell.total.delta > 0.0 => 40,
            AccuracyMethod::RecycledByRule => 8,
            AccuracyMethod::Consensus if cell.total.delta > 0.0 => 26,
            AccuracyMethod::Consensus => 5,
        };
        assert_eq!(chosen.data_steps, expected, "{cell:?}");
    }
}

#[test]
fn the_choice_does_not_depend_on_held_out_rows() {
    let (right, wrong) = (run(unchanged, settings()), run(reversed, settings()));
    for (a, b) in cells(&right).into_iter().zip(cells(&wrong)) {
        assert_eq!(a.tried, b.tried);
        let (a, b) = (a.chosen.as_ref().unwrap(), b.chosen.as_ref().unwrap());
        assert_eq!(a.parameters, b.parameters);
        assert_eq!(a.training, b.training);
        // The same models: what was correct is wrong now.
        let sum = a.held_out.accuracy.mean + b.held_out.accuracy.mean;
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }
}

#[test]
fn the_best_on_training_rows_is_chosen_and_run_with_other_noise() {
    let table = run(unchanged, settings());
    for cell in cells(&table) {
        let chosen = cell.chosen.as_ref().unwrap();
        let most = cell
            .tried
            .iter()
            .filter_map(|one| one.accuracy)
            .fold(0.0, f64::max);
        let of_it = cell
            .tried
            .iter()
            .find(|one| one.parameters == chosen.parameters);
        assert_eq!(of_it.unwrap().accuracy, Some(most), "{cell:?}");
    }
    // With the seed of the choice, a single run is the one that decided the choice; with the standard one it is another.
    let once = |seed| {
        run(
            unchanged,
            AccuracySettings {
                repetitions: 1,
                seed,
                ..settings()
            },
        )
    };
    assert_ne!(settings().seed, settings().choosing_seed);
    let (same, other) = (once(settings().choosing_seed), once(settings().seed));
    for (same, other) in cells(&same).into_iter().zip(cells(&other)) {
        let right = same.tried.iter().filter_map(|one| one.accuracy);
        let chosen = same.chosen.as_ref().unwrap();
        assert_eq!(chosen.training.mean, right.fold(0.0, f64::max));
        let other = other.chosen.as_ref().unwrap();
        assert_eq!(chosen.parameters, other.parameters);
        assert_ne!(chosen.held_out.loss, other.held_out.loss);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), unchanged);
    let made = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let experiment = experiment(folder.path(), settings());
        let table = pool.install(|| experiment.run(&|_| ())).unwrap();
        (
            serde_json::to_string(&table).unwrap(),
            table.page().to_html(),
        )
    };
    assert_eq!(made(1), made(3));
}

#[test]
fn tables_have_a_row_for_every_method_and_a_column_for_every_total() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), unchanged);
    // This total is out of reach for a query with so little convexity.
    let unreachable = AccuracySettings {
        totals: vec![Guarantee {
            epsilon: 1e-6,
            delta: 0.0,
        }],
        ..settings()
    };
    let calls = std::sync::atomic::AtomicU64::new(0);
    let experiment = experiment(folder.path(), unreachable);
    let count = |_: &AccuracyCell| {
        calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let table = experiment.run(&count).unwrap();
    assert_eq!(calls.into_inner(), experiment.cell_count());
    let grids: Vec<TextTable> = table.accuracy_tables();
    assert_eq!(grids.len(), 2);
    for grid in &grids {
        assert_eq!(grid.header, ["", "ε 1e-6, δ 0"]);
        assert_eq!(grid.rows.len(), AccuracyMethod::ALL.len() + 1);
        assert_eq!(grid.rows[0], ["each party alone", "unattainable"]);
        // Noise in gradients has no Hessian to pay for.
        assert_ne!(grid.rows[4][1], "unattainable");
        let last = grid.rows.last().unwrap();
        let centralised: f64 = last[1].parse().unwrap();
        assert!((60.0..90.0).contains(&centralised), "{last:?}");
    }
    let parties = &table.splits[1].parties;
    let positive: usize = parties.iter().map(|party| party.positive).sum();
    let alike: usize = table.splits[0]
        .parties
        .iter()
        .map(|party| party.positive)
        .sum();
    assert_eq!(positive, alike);
    assert!(
        table
            .page()
            .to_html()
            .contains("the totals do not cover that")
    );
}

#[test]
fn without_rows_to_test_on_there_is_no_table() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), unchanged);
    let text = STUDY.replace("[data.test]\n    path = \"test.csv\"\n", "");
    let (study, _) = Study::parse(&text, "patients.toml").unwrap();
    let error = AccuracyExperiment::new(vec![study], folder.path(), settings())
        .err()
        .unwrap();
    assert!(matches!(error, AccuracyError::NoTest { .. }), "{error}");
}
