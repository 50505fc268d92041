//! `radmm audit`, as a user runs it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;

use serde_json::Value;

use support::{radmm, text};

const STUDY: &str = r#"
[data]
builtin = "clinic"
intercept = true
[network]
nodes = 4
topology = "ring"
[problem]
weight = 100
ridge = 0.5
[algorithm]
name = "r-admm"
iterations = 6
penalty = 3
damping = 1
[privacy]
mechanism = "objective"
rate = 2
[run]
seed = 1
"#;

#[test]
fn without_a_study_every_mechanism_is_attacked() {
    let folder = tempfile::tempdir().unwrap();
    let output = radmm(folder.path(), &["audit", "--runs", "500", "--out", "made"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for part in [
        "objective gamma",
        "penalty-scaled gaussian",
        "output gamma",
        "gradient gaussian",
        "two answers",
        "the same bits",
        "one row of one party replaced",
    ] {
        assert!(table.contains(part), "{part} is missing:\n{table}");
    }
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    // Noise of a release that is drawn afresh shows little to so few victims.
    assert!(table.contains("nothing shown"), "{table}");
    let json = fs::read_to_string(folder.path().join("made/audit.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let zero = |one: &Value| one["at_least"].as_f64().unwrap() < 1e-4;
    let zeros = json["attacked"].as_array().unwrap().iter();
    let zeros = zeros.filter(|one| zero(one)).count();
    assert_eq!(table.matches("nothing shown").count(), zeros);
    for file in ["report.html", "audit.json", "audit.svg", "audit-scores.csv"] {
        assert!(folder.path().join("made").join(file).is_file(), "{file}");
    }
    let page = fs::read_to_string(folder.path().join("made/report.html")).unwrap();
    assert!(
        page.contains("<svg")
            && !page.contains("<script")
            && !page.contains("http-equiv=\"refresh")
    );
}

#[test]
fn the_audit_of_a_study_repeats_from_its_seed_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), STUDY).unwrap();
    let run = |threads: &str, seed: &str| {
        let args = [
            "audit",
            "study.toml",
            "--runs",
            "2000",
            "--json",
            "--threads",
            threads,
            "--seed",
            seed,
        ];
        let output = radmm(folder.path(), &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let first = run("1", "7");
    assert_eq!(first, run("3", "7"));
    assert_ne!(first, run("1", "8"));
    let json: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(
        (&json["study"], &json["seed"], &json["runs"]),
        (&"study".into(), &7.into(), &2000.into())
    );
    let attacked = json["attacked"].as_array().unwrap();
    assert_eq!(attacked.len(), 2);
    for one in attacked {
        assert_eq!(one["mechanism"], "objective gamma");
        assert!(one["at_least"].as_f64().unwrap() <= one["epsilon"].as_f64().unwrap());
    }
    let retraced = &json["retraced"][0];
    assert_eq!(
        (&retraced["data"], &retraced["recycled"]),
        (&12.into(), &12.into())
    );
}

#[test]
fn wrong_use_has_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    for (args, message) in [
        (&["audit", "--runs", "10"][..], "100..=10000000"),
        (&["audit", "--seed", "-1"], "--seed"),
        (&["audit", "nowhere.toml"], "nowhere.toml"),
    ] {
        let output = radmm(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            text(&output.stderr).contains(message),
            "{}",
            text(&output.stderr)
        );
    }
}
