//! Held-out rows, from the data files to result.json.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Eleven rows, one of which has a missing field.
const ROWS: &str = "\
age,ill
20,no
70,yes
30,no
?,no
80,yes
40,no
60,yes
35,no
75,yes
25,no
65,yes
";

fn study(test: &str) -> String {
    format!(
        r#"
        [data]
        path = "rows.csv"
        label = "ill"
        positive = "yes"
        [data.numeric]
        age = {{ bins = [30, 50, 70] }}
        [data.split]
        method = "sizes"
        sizes = [3, 1]
        seed = 1
        [data.test]
        {test}
        [network]
        nodes = 2
        topology = "path"
        [problem]
        weight = 1
        ridge = 0.1
        [algorithm]
        name = "admm"
        iterations = 2
        penalty = 1
        "#
    )
}

fn run(folder: &Path, test: &str) -> Output {
    fs::write(folder.join("rows.csv"), ROWS).unwrap();
    fs::write(folder.join("study.toml"), study(test)).unwrap();
    Command::new(env!("CARGO_BIN_EXE_radmm"))
        .args(["run", "study.toml", "--json"])
        .current_dir(folder)
        .output()
        .unwrap()
}

fn result(folder: &Path, test: &str) -> (Value, String) {
    let output = run(folder, test);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{notes}");
    (serde_json::from_slice(&output.stdout).unwrap(), notes)
}

fn counts(result: &Value) -> [u64; 4] {
    ["read", "dropped", "positive", "held_out"].map(|key| result["data"][key].as_u64().unwrap())
}

#[test]
fn held_out_rows_are_counted_separately() {
    let folder = tempfile::tempdir().unwrap();
    let (result, _) = result(folder.path(), "last = 2");
    assert_eq!(counts(&result), [9, 1, 4, 2]);
    assert_eq!(
        result["columns"],
        serde_json::json!(["age<30", "30≤age<50", "50≤age<70", "age≥70"])
    );
    let rows = |k: usize| result["nodes"][k]["rows"].as_u64().unwrap();
    assert_eq!((rows(0), rows(1)), (6, 2));
}

#[test]
fn a_test_file_leaves_all_rows_for_training() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("test.csv"), "ill,age\nno,33\nno,44\n").unwrap();
    let (result, notes) = result(folder.path(), "path = \"test.csv\"");
    assert_eq!(counts(&result), [11, 1, 5, 2]);
    assert!(!notes.contains("more than two values"), "{notes}");
}

#[test]
fn labels_spelt_differently_in_a_test_file_are_noted() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("test.csv"), "ill,age\nno.,33\nyes.,44\n").unwrap();
    let (_, notes) = result(folder.path(), "path = \"test.csv\"");
    assert!(
        notes.contains(r#"column "ill" has more than two values ("no", "yes", "no.", "yes.", …)"#),
        "{notes}"
    );
}

#[test]
fn a_missing_test_file_is_reported_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), "path = \"tset.csv\"");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("tset.csv"), "{message}");
    assert!(
        message.contains("[data.test] path is relative to the study file"),
        "{message}"
    );
}
