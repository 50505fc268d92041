//! `radmm compare` and `radmm reproduce`, as a user runs them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use support::{radmm, text};

const STUDY: &str = r#"
[data]
builtin = "clinic"
intercept = true
[data.split]
method = "column"
name = "hospital"
[data.test]
last = 300
[network]
nodes = 5
topology = "ring"
[problem]
weight = 100
ridge = 0.5
[algorithm]
name = "r-admm"
iterations = 10
penalty = 3
damping = 1
[privacy]
mechanism = "objective"
noise = "gaussian"
sigma = 5
delta = 1e-4
[run]
repetitions = 3
seed = 1
"#;

/// Returns a folder with `a.toml`, the study above, and `b.toml`, ADMM on the same rows.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.toml"), STUDY).unwrap();
    let admm = STUDY
        .replace("\"r-admm\"", "\"admm\"")
        .replace("damping = 1\n", "");
    fs::write(folder.path().join("b.toml"), admm).unwrap();
    folder
}

#[test]
fn studies_are_compared_at_equal_total_privacy() {
    let folder = folder();
    let args = [
        "compare",
        "a.toml",
        "b.toml",
        "--with",
        "pvp",
        "--epsilon",
        "1.5",
        "--json",
        "-q",
    ];
    let output = radmm(folder.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let compared: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(compared["epsilon"], 1.5);
    assert_eq!(compared["delta"], 1e-4);
    assert_eq!(compared["relation"], "one row of one party replaced");
    let all = compared["contenders"].as_array().unwrap();
    let names: Vec<&str> = all
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["a", "b", "pvp", "each party alone", "averaged once"]
    );
    for one in all {
        let spent = one["epsilon"].as_f64().unwrap();
        assert!((spent / 1.5 - 1.0).abs() < 1e-6, "{spent}");
        for key in ["loss", "accuracy", "auc"] {
            let spread = &one["held_out"][key];
            let [low, mean, high] = ["low", "mean", "high"].map(|of| spread[of].as_f64().unwrap());
            assert!(low <= mean && mean <= high, "{key}");
        }
    }
}

#[test]
fn results_are_printed_in_eighty_columns_and_written_to_out() {
    let folder = folder();
    let output = radmm(
        folder.path(),
        &["compare", "a.toml", "b.toml", "--out", "deep/er"],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in [
        "2 studies and 2 baselines at equal total privacy",
        "every party may spend a total ε of",
        "for one row of one party replaced",
        "train loss",
        "AUC",
        "queries",
        "messages",
        "pooled, no noise",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    for line in shown.lines() {
        assert!(
            line.chars().count() <= 80,
            "{} columns: {line}",
            line.chars().count()
        );
    }
    for name in ["compare.json", "compare.svg", "compare.csv", "report.html"] {
        let written = fs::read_to_string(folder.path().join("deep/er").join(name)).unwrap();
        assert!(written.len() > 1000, "{name}");
        assert!(text(&output.stderr).contains(&format!("wrote deep/er/{name}")));
    }
}

#[test]
fn studies_that_stop_early_or_have_no_noise_are_reported() {
    let folder = folder();
    let diverging = STUDY
        .replace("\"r-admm\"", "\"dgd\"\nstep = 1000")
        .replace("\"objective\"", "\"gradient\"")
        .replace("iterations = 10", "iterations = 200");
    fs::write(folder.path().join("far.toml"), diverging).unwrap();
    let exact = STUDY.replace(
        "mechanism = \"objective\"\nnoise = \"gaussian\"\nsigma = 5\ndelta = 1e-4",
        "mechanism = \"none\"",
    );
    fs::write(folder.path().join("exact.toml"), exact).unwrap();
    let output = radmm(
        folder.path(),
        &["compare", "a.toml", "far.toml", "exact.toml", "-q"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("error: the run stopped early: far: "));
    let shown = text(&output.stdout);
    for part in [
        "far stopped early: ",
        "exact has no guarantee: no noise, or releases in doubles",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    // Without noise no total is shared, whatever --epsilon is.
    let output = radmm(
        folder.path(),
        &["compare", "exact.toml", "--epsilon", "1", "-q"],
    );
    assert!(
        text(&output.stdout)
            .contains("no study has noise and releases on the grid: there is no guarantee")
    );
}

#[test]
fn an_unattainable_epsilon_is_reported_with_a_remedy() {
    let folder = folder();
    let output = radmm(
        folder.path(),
        &["compare", "a.toml", "--epsilon", "1e-9", "-q"],
    );
    let shown = text(&output.stdout);
    assert!(shown.contains("a total ε of 1.0e-9 at"), "{shown}");
    assert!(
        shown.contains("too dear: no noise brings the cost of a"),
        "{shown}"
    );
    assert!(shown.contains("raise --epsilon"), "{shown}");
}

#[test]
fn studies_with_the_same_name_are_called_by_their_files() {
    let folder = folder();
    let named = format!("name = \"same\"\n{STUDY}");
    fs::write(folder.path().join("one.toml"), &named).unwrap();
    fs::write(folder.path().join("two.toml"), &named).unwrap();
    let output = radmm(folder.path(), &["compare", "one.toml", "two.toml", "-q"]);
    let shown = text(&output.stdout);
    assert!(
        shown.contains("one.toml") && shown.contains("two.toml"),
        "{shown}"
    );
}

#[test]
fn at_its_own_total_a_study_has_the_loss_of_its_run() {
    // All parties have equally many rows, so that the calibrated noise is the study's own.
    let folder = folder();
    let alike = STUDY.replace(
        "method = \"column\"\nname = \"hospital\"",
        "method = \"shuffled\"\nseed = 2",
    );
    fs::write(folder.path().join("alike.toml"), alike).unwrap();
    let json = |args: &[&str]| -> Value {
        let output = radmm(folder.path(), &[args, &["--json", "-q"][..]].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let run = json(&["run", "alike.toml"]);
    let compared = json(&["compare", "alike.toml"]);
    let runs = run["repetitions"].as_array().unwrap();
    let last = |run: &Value| {
        run["iterations"].as_array().unwrap().last().unwrap()["loss"]
            .as_f64()
            .unwrap()
    };
    let mean = runs.iter().map(last).sum::<f64>() / runs.len() as f64;
    assert_eq!(compared["contenders"][0]["loss"]["mean"], mean);
}

#[test]
fn results_do_not_depend_on_threads() {
    let folder = folder();
    let without_time = |threads: &str| {
        let output = radmm(
            folder.path(),
            &[
                "compare",
                "a.toml",
                "--with",
                "dvp",
                "--json",
                "-q",
                "--threads",
                threads,
            ],
        );
        let mut compared: Value = serde_json::from_slice(&output.stdout).unwrap();
        for one in compared["contenders"].as_array_mut().unwrap() {
            one["seconds"] = Value::Null;
        }
        compared
    };
    assert_eq!(without_time("1"), without_time("3"));
}

#[test]
fn wrong_use_has_exit_code_2() {
    let folder = folder();
    let other = STUDY.replace("last = 300", "last = 200");
    fs::write(folder.path().join("other.toml"), other).unwrap();
    let cases = [
        (
            &["compare", "a.toml", "other.toml"][..],
            "other: [data.test] differs from a’s",
        ),
        (
            &["compare", "a.toml", "--with", "sgd"],
            "must be dvp, pp or pvp",
        ),
        (
            &["compare", "a.toml", "--epsilon", "0"],
            "must be a positive, finite number",
        ),
        (
            &["compare", "a.toml", "--delta", "1"],
            "must be at least 0 and below 1",
        ),
        (&["compare"], "<STUDY>..."),
        (&["compare", "nowhere.toml"], "nowhere.toml: "),
        (&["reproduce", "fig4"], "invalid value 'fig4'"),
        (&["reproduce", "--repetitions", "0"], "0 is not in 1..=1000"),
        (
            &["reproduce", "accuracy", "fig1"],
            "accuracy is not one of the paper's figures: run it alone",
        ),
    ];
    for (args, message) in cases {
        let output = radmm(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            text(&output.stderr).contains(message),
            "{args:?}: {}",
            text(&output.stderr)
        );
        assert_eq!(text(&output.stdout), "");
    }
}

#[test]
fn a_folder_that_cannot_be_created_fails_before_the_computation() {
    let folder = folder();
    for args in [
        &["compare", "a.toml", "--out", "b.toml"][..],
        &["reproduce", "--out", "b.toml"],
    ] {
        let output = radmm(folder.path(), args);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            text(&output.stderr),
            "error: b.toml: it is a file, not a folder; choose another folder for --out\n"
        );
    }
}

#[test]
fn a_figure_is_reproduced_into_files() {
    let folder = folder();
    let output = radmm(
        folder.path(),
        &["reproduce", "fig1", "--out", "paper", "--json"],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let claims: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        claims["privacy"],
        Value::Null,
        "there is no noise in this figure"
    );
    let claims = claims["claims"].as_array().unwrap();
    assert!(
        claims.iter().all(|claim| claim["holds"] == true),
        "{claims:?}"
    );
    let read = |name: &str| fs::read_to_string(folder.path().join("paper").join(name)).unwrap();
    assert!(read("fig1.svg").starts_with("<svg"));
    assert!(read("fig1.csv").starts_with("panel,series,x,y,low,high\n"));
    let page = read("report.html");
    for claim in claims {
        assert!(page.contains(claim["expected"].as_str().unwrap()));
    }
    assert!(!folder.path().join("paper/fig2.svg").exists());
}
