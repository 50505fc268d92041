//! `radmm init`, as a new user runs it: from a file to a study that runs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use support::{command, radmm, text};

/// Returns a table of patients: a number, a skewed number, a year, a category, missing values, and whose a row is.
fn patients(rows: u32) -> String {
    let mut csv = "id,age,charge,year,ward,hospital,ill\n".to_owned();
    for n in 0..rows {
        // A fixed sequence without a pattern that a column could follow.
        let noise = n.wrapping_mul(2_654_435_761) >> 16;
        let age = 20 + noise % 60;
        let charge = match noise % 5 {
            0 => 0,
            k => 10_u32.pow(k) + noise % 9,
        };
        let ward = match noise % 11 {
            0 => "",
            k if k % 2 == 0 => "A",
            _ => "B",
        };
        let ill = if age + (noise >> 4) % 20 > 60 {
            "yes"
        } else {
            "no"
        };
        let hospital = ["north", "south", "west"][(noise >> 3) as usize % 3];
        let year = 1990 + noise % 30;
        let _ = writeln!(csv, "p{n},{age},{charge},{year},{ward},{hospital},{ill}");
    }
    csv
}

fn folder(csv: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("rows.csv"), csv).unwrap();
    folder
}

/// Runs a command that succeeds, and returns stdout and stderr.
fn succeed(folder: &Path, args: &[&str]) -> (String, String) {
    let output = radmm(folder, args);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{args:?}: {stderr}");
    (stdout.to_owned(), stderr.to_owned())
}

fn result(folder: &Path, study: &str) -> Value {
    let (stdout, _) = succeed(folder, &["run", study, "--json", "-q", "--no-baselines"]);
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn a_file_a_label_parties_and_a_total_are_enough() {
    let folder = folder(&patients(4000));
    let args = [
        "init",
        "rows.csv",
        "--label",
        "ill",
        "--parties",
        "4",
        "--epsilon",
        "2",
    ];
    let (stdout, stderr) = succeed(folder.path(), &args);
    assert!(
        stdout.starts_with("wrote study.toml: 4,000 rows"),
        "{stdout}"
    );
    assert!(stdout.contains("one row of one party replaced"), "{stdout}");
    assert!(stderr.contains("not public"), "{stderr}");
    assert!(stderr.contains("rows are complete"), "{stderr}");

    let study = fs::read_to_string(folder.path().join("study.toml")).unwrap();
    for line in [
        "positive = \"yes\"",
        "age = { bounds = [20, 80], splines = 8 }",
        "spacing = \"geometric\"",
        "year = { bounds = [1990, 2020], splines = 8 }",
        "ward = { values = [\"A\", \"B\"], missing = \"category\" }",
        "# id: text with more than 100 different values",
        "nodes = 4",
        "epsilon = 2 ",
        "delta = 1e-6 ",
    ] {
        assert!(study.contains(line), "{line} in\n{study}");
    }
    assert!(!study.contains("[algorithm]"), "{study}");

    let result = result(folder.path(), "study.toml");
    assert_eq!(result["data"]["dropped"], 0);
    assert_eq!(result["privacy"]["delta"], 1e-6);
    let accuracy = result["held_out"]["accuracy"].as_f64().unwrap();
    let majority = result["majority"]["held_out"].as_f64();
    assert!(
        accuracy > majority.unwrap() + 0.1,
        "{accuracy} {majority:?}"
    );
    // What rules chose is part of the result, with reasons.
    let choices = result["choices"].as_array().unwrap();
    let chosen: Vec<&str> = choices
        .iter()
        .filter_map(|one| one["key"].as_str())
        .collect();
    for key in ["name", "loss", "steps", "step", "metric_ridge"] {
        assert!(chosen.contains(&key), "{key} in {chosen:?}");
    }
}

#[test]
fn few_rows_are_said_to_be_too_few_and_how_many_would_do() {
    let folder = folder(&patients(420));
    let strict = ["init", "rows.csv", "--label", "ill", "--epsilon", "0.1"];
    let (stdout, _) = succeed(folder.path(), &strict);
    assert!(
        stdout.contains("expect   nothing better than the majority class with 420 rows at this ε"),
        "{stdout}"
    );
    assert!(
        stdout.contains("rows; more rows, a larger ε or"),
        "{stdout}"
    );
    let many = [
        "init",
        "rows.csv",
        "--label",
        "ill",
        "--epsilon",
        "8",
        "--force",
    ];
    let (stdout, _) = succeed(folder.path(), &many);
    assert!(
        stdout.contains("of the way from the majority class"),
        "{stdout}"
    );
}

#[test]
fn the_study_beside_a_result_runs_again_with_the_same_numbers() {
    let folder = folder(&patients(1500));
    succeed(folder.path(), &["init", "rows.csv", "--label", "ill"]);
    let run = |study: &str, out: &str| {
        succeed(
            folder.path(),
            &["run", study, "--out", out, "-q", "--no-baselines"],
        );
        let result = fs::read_to_string(folder.path().join(out).join("result.json")).unwrap();
        serde_json::from_str::<Value>(&result).unwrap()
    };
    let first = run("study.toml", "results");
    let again = run("results/study.toml", "again");
    assert_eq!(first["nodes"], again["nodes"]);
    let written = fs::read_to_string(folder.path().join("results/study.toml")).unwrap();
    assert!(written.contains("path = \"../rows.csv\""), "{written}");
    assert!(written.contains("# chosen: "), "{written}");
    // And the model of the run predicts.
    let predict = ["predict", "results/model.json", "rows.csv", "--json"];
    let (predictions, _) = succeed(folder.path(), &predict);
    let predictions: Value = serde_json::from_str(&predictions).unwrap();
    assert_eq!(predictions["summary"]["rows"], 1500);
}

#[test]
fn parties_may_be_the_values_of_a_column_which_is_not_learnt_from() {
    let folder = folder(&patients(900));
    let args = ["init", "rows.csv", "--label", "ill", "--by", "hospital"];
    succeed(folder.path(), &args);
    let result = result(folder.path(), "study.toml");
    let names = result["nodes"].as_array().unwrap().iter();
    let mut names: Vec<&str> = names.map(|node| node["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["north", "south", "west"]);
    let columns = result["columns"].to_string();
    assert!(!columns.contains("hospital"), "{columns}");
}

#[test]
fn a_study_is_not_overwritten_unless_asked_for() {
    let folder = folder(&patients(300));
    succeed(folder.path(), &["init", "rows.csv"]);
    let output = radmm(folder.path(), &["init", "rows.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "error: study.toml: this file exists; choose another with --out, or overwrite it with --force\n"
    );
    succeed(folder.path(), &["init", "rows.csv", "--force"]);
    let elsewhere = ["init", "rows.csv", "--out", "trial/study.toml"];
    let output = radmm(folder.path(), &elsewhere);
    assert_eq!(output.status.code(), Some(1), "the folder does not exist");
    fs::create_dir(folder.path().join("trial")).unwrap();
    succeed(folder.path(), &elsewhere);
    let study = fs::read_to_string(folder.path().join("trial/study.toml")).unwrap();
    assert!(study.contains("path = \"../rows.csv\""), "{study}");
}

#[test]
fn public_bounds_and_vocabularies_may_be_asked_for() {
    let folder = folder(&patients(600));
    let mut child = command(
        folder.path(),
        &["init", "rows.csv", "--label", "ill", "--ask"],
    )
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    // Bounds, a mistake and its correction, a column that is left out; the rest is kept at the end of the input.
    let answers = "0,120\n1000,0\n1,100000\n-\n";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), answers.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("two numbers, the lower first"), "{said}");
    let study = fs::read_to_string(folder.path().join("study.toml")).unwrap();
    for line in [
        "age = { bounds = [0, 120], splines = 8 } # public",
        "charge = { bounds = [1, 100000], splines = 8, spacing = \"geometric\" } # public",
        "# year: left out",
        "ward = { values = [\"A\", \"B\"], missing = \"category\" } # from the rows",
    ] {
        assert!(study.contains(line), "{line} in\n{study}");
    }
}

#[test]
fn a_pure_total_is_drafted_with_bins_and_without_delta() {
    let folder = folder(&patients(2000));
    let args = ["init", "rows.csv", "--label", "ill", "--delta", "0"];
    succeed(folder.path(), &args);
    let study = fs::read_to_string(folder.path().join("study.toml")).unwrap();
    assert!(!study.contains("\ndelta ="), "{study}");
    assert!(study.contains("bins = 8 }"), "{study}");
    let result = result(folder.path(), "study.toml");
    assert_eq!(result["privacy"]["delta"], 0.0);
    assert_eq!(result["study"]["privacy"]["noise"], "laplace");
}

/// Rows that tell something unusual, and what `init` or `run` says about it.
#[test]
fn unusual_and_hopeless_rows_are_named_with_what_would_help() {
    let table = |header: &str, rows: u32, row: &dyn Fn(u32) -> String| {
        let lines: String = (0..rows).map(|n| row(n) + "\n").collect();
        format!("{header}\n{lines}")
    };
    let cases: [(String, &str, i32); 10] = [
        (
            table("packs,smoker,y", 600, &|n| {
                let packs = if n % 40 == 0 {
                    "no".to_owned()
                } else {
                    (n % 97).to_string()
                };
                format!("{packs},{},{}", ["no", "yes"][n as usize % 2], n / 7 % 2)
            }),
            "packs: 15 values are not numbers, the first \"no\" on line 2; such values count as missing",
            0,
        ),
        (
            table("bmi,smoker,y", 600, &|n| {
                let bmi = if n % 40 == 0 {
                    "unknown".to_owned()
                } else {
                    (n % 97).to_string()
                };
                format!(
                    "{bmi},{},{}",
                    ["no", "yes", "unknown"][n as usize % 3],
                    n / 7 % 2
                )
            }),
            "bmi: 15 values are not numbers, the first \"unknown\" on line 2; such values count as missing",
            0,
        ),
        (
            table("x,y", 30, &|n| format!("{},{}", n % 17, n % 2)),
            "30 rows are too few for 5 parties: each needs at least 10; choose fewer with --parties",
            2,
        ),
        (
            table("x,flag,y", 2000, &|n| {
                format!("{},{},{}", n % 97, u32::from(n % 500 == 0), n % 2)
            }),
            "flag is left out: 99.8 % of the rows have the same value",
            0,
        ),
        (
            table("x,lab,y", 2000, &|n| {
                let lab = ["3", "4"][n as usize / 20 % 2];
                let lab = if n % 20 == 0 { lab } else { "" };
                format!("{},{lab},{}", n % 97, n % 2)
            }),
            "lab: 95.0 % of the values are missing; leave it out if whether it is missing is not known beforehand",
            0,
        ),
        (
            table("x,y", 2000, &|n| {
                format!("{},{}", n % 97, u32::from(n % 50 == 0))
            }),
            "only 2.0 % of the rows are of the rarer class: accuracy will say little, look at the AUC",
            0,
        ),
        (
            table("x,y", 300, &|n| format!("{},0", n % 97)),
            "no column has two values; name the outcome with --label and its positive class with --positive",
            2,
        ),
        (
            table("x,y", 300, &|n| format!("{},{}", n % 97, n % 3)),
            "no column has two values",
            2,
        ),
        (
            table("id,y", 300, &|n| format!("{n},{}", n % 2)),
            "no column except the label, \"y\", can be learnt from (id: whole numbers that seem never to repeat",
            1,
        ),
        (
            "1,0\n2,1\n".to_owned(),
            "add a line above it that names the columns",
            1,
        ),
    ];
    for (csv, says, code) in cases {
        let folder = folder(&csv);
        let output = radmm(folder.path(), &["init", "rows.csv"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(says), "{says} in\n{said}");
        assert_eq!(folder.path().join("study.toml").exists(), code == 0);
    }
}
