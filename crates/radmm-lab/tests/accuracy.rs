//! The table of accuracies, on few invented patients and with few parameters: totals are kept, and the choice of parameters
//! sees neither the rows that are reported on nor the noise.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use radmm::account::Guarantee;
use radmm::public::schedule::Schedule;
use radmm_data::Builtin;
use radmm_lab::Experiment;
use radmm_lab::accuracy::{Candidate, Cell, Contest, ContestError, Contested, Entrant, Terms};
use radmm_report::TextTable;
use radmm_study::{Method, Study};

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

/// Patients to train on, and others to test on with these labels.
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

fn as_it_is(row: &str) -> String {
    row.to_owned()
}

/// The outcome is the last column.
fn reversed(row: &str) -> String {
    let (rest, outcome) = row.rsplit_once(',').unwrap();
    let other = match outcome {
        "yes" => "no",
        "no" => "yes",
        other => panic!("{other}"),
    };
    format!("{rest},{other}")
}

/// Two or three of each.
fn few(entrant: Entrant, experiment: &Experiment) -> Vec<Candidate> {
    let candidate = |method, iterations, ridge| Candidate {
        method,
        iterations,
        ridge,
    };
    let penalty = Schedule::Constant(5.0);
    match entrant {
        Entrant::Alone | Entrant::Averaged | Entrant::Centralised => {
            let mut all = entrant.candidates(experiment.study(), experiment.graph());
            all.truncate(6);
            all.drain(..2);
            all
        }
        Entrant::Admm => [2, 4]
            .map(|iterations| candidate(Method::Admm { penalty }, iterations, 4.0))
            .into(),
        Entrant::Recycled => [1.0, 10.0]
            .map(|damping| {
                let damping = Schedule::Constant(damping);
                let method = Method::RecycledAdmm {
                    penalty,
                    damping,
                    recycle: 1,
                };
                candidate(method, 6, 4.0)
            })
            .into(),
        Entrant::Linearised => [5.0, 20.0]
            .map(|damping| {
                let damping = Schedule::Constant(damping);
                let method = Method::RecycledDlm {
                    penalty,
                    damping,
                    recycle: 1,
                };
                candidate(method, 6, 4.0)
            })
            .into(),
    }
}

fn terms() -> Terms {
    let total = |epsilon, delta| Guarantee { epsilon, delta };
    Terms {
        totals: vec![total(1.0, 0.0), total(1.0, 1e-4)],
        repetitions: 3,
        candidates: few,
        ..Terms::usual(3)
    }
}

fn contest(folder: &Path, terms: Terms) -> Contest {
    let studies = [
        STUDY.to_owned(),
        STUDY.replace("method = \"shuffled\"", SKEWED),
    ];
    let studies = studies.map(|text| Study::parse(&text, "patients.toml").unwrap().0);
    Contest::new(studies.into(), folder, terms).unwrap()
}

fn run(relabelled: fn(&str) -> String, terms: Terms) -> Contested {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), relabelled);
    contest(folder.path(), terms).run(&|_| ()).unwrap()
}

fn cells(contested: &Contested) -> Vec<&Cell> {
    contested
        .splits
        .iter()
        .flat_map(|split| &split.cells)
        .collect()
}

#[test]
fn every_party_of_every_cell_spends_its_total_and_no_more() {
    let contested = run(as_it_is, terms());
    assert_eq!(cells(&contested).len(), 2 * 2 * Entrant::ALL.len());
    for cell in cells(&contested) {
        let chosen = cell.chosen.as_ref().unwrap();
        let [least, greatest] = chosen.spent;
        let total = cell.total.epsilon;
        assert!(greatest <= total && least > 0.995 * total, "{cell:?}");
        assert_eq!(chosen.stopped, 0);
        let asked = match cell.entrant {
            Entrant::Alone | Entrant::Averaged | Entrant::Centralised => 1,
            Entrant::Admm => chosen.candidate.iterations,
            Entrant::Recycled | Entrant::Linearised => 3,
        };
        assert_eq!(chosen.data_steps, asked, "{cell:?}");
    }
}

#[test]
fn the_choice_does_not_see_the_rows_held_out() {
    let (right, wrong) = (run(as_it_is, terms()), run(reversed, terms()));
    for (a, b) in cells(&right).into_iter().zip(cells(&wrong)) {
        assert_eq!(a.tried, b.tried);
        let (a, b) = (a.chosen.as_ref().unwrap(), b.chosen.as_ref().unwrap());
        assert_eq!(a.candidate, b.candidate);
        assert_eq!(a.training, b.training);
        // The same models: what was right is wrong now.
        let sum = a.held_out.accuracy.mean + b.held_out.accuracy.mean;
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }
}

#[test]
fn the_best_on_training_rows_is_chosen_and_run_with_other_noise() {
    let contested = run(as_it_is, terms());
    for cell in cells(&contested) {
        let chosen = cell.chosen.as_ref().unwrap();
        let most = cell
            .tried
            .iter()
            .filter_map(|one| one.right)
            .fold(0.0, f64::max);
        let of_it = cell
            .tried
            .iter()
            .find(|one| one.candidate == chosen.candidate);
        assert_eq!(of_it.unwrap().right, Some(most), "{cell:?}");
    }
    // With the seed of the choice, a single run is the one that was chosen by; with the usual one it is another.
    let once = |seed| {
        run(
            as_it_is,
            Terms {
                repetitions: 1,
                seed,
                ..terms()
            },
        )
    };
    assert_ne!(terms().seed, terms().choosing_seed);
    let (same, other) = (once(terms().choosing_seed), once(terms().seed));
    for (same, other) in cells(&same).into_iter().zip(cells(&other)) {
        let right = same.tried.iter().filter_map(|one| one.right);
        let chosen = same.chosen.as_ref().unwrap();
        assert_eq!(chosen.training.mean, right.fold(0.0, f64::max));
        let other = other.chosen.as_ref().unwrap();
        assert_eq!(chosen.candidate, other.candidate);
        assert_ne!(chosen.held_out.loss, other.held_out.loss);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), as_it_is);
    let made = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let contest = contest(folder.path(), terms());
        let contested = pool.install(|| contest.run(&|_| ())).unwrap();
        (
            serde_json::to_string(&contested).unwrap(),
            contested.page().to_html(),
        )
    };
    assert_eq!(made(1), made(3));
}

#[test]
fn tables_have_a_row_for_everyone_and_a_column_for_every_total() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), as_it_is);
    // The least total is beyond reach of a question with so little convexity.
    let unreachable = Terms {
        totals: vec![Guarantee {
            epsilon: 1e-6,
            delta: 0.0,
        }],
        ..terms()
    };
    let calls = std::sync::atomic::AtomicU64::new(0);
    let contest = contest(folder.path(), unreachable);
    let count = |_: &Cell| {
        calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let contested = contest.run(&count).unwrap();
    assert_eq!(calls.into_inner(), contest.cells());
    let grids: Vec<TextTable> = contested.accuracy();
    assert_eq!(grids.len(), 2);
    for grid in &grids {
        assert_eq!(grid.header, ["", "ε 0.000001, δ 0"]);
        assert_eq!(grid.rows.len(), Entrant::ALL.len() + 1);
        assert_eq!(grid.rows[0], ["each party alone", "too dear"]);
        // Noise in gradients has no Hessian to pay for.
        assert_ne!(grid.rows[4][1], "too dear");
        let pooled: f64 = grid.rows[6][1].parse().unwrap();
        assert!((60.0..90.0).contains(&pooled), "{:?}", grid.rows[6]);
    }
    let parties = &contested.splits[1].parties;
    let positive: usize = parties.iter().map(|party| party.positive).sum();
    let alike: usize = contested.splits[0]
        .parties
        .iter()
        .map(|party| party.positive)
        .sum();
    assert_eq!(positive, alike);
    assert!(
        contested
            .page()
            .to_html()
            .contains("the totals do not cover that")
    );
}

#[test]
fn without_rows_to_test_on_there_is_no_table() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), as_it_is);
    let text = STUDY.replace("[data.test]\n    path = \"test.csv\"\n", "");
    let (study, _) = Study::parse(&text, "patients.toml").unwrap();
    let error = Contest::new(vec![study], folder.path(), terms())
        .err()
        .unwrap();
    assert!(matches!(error, ContestError::NoTest { .. }), "{error}");
}
