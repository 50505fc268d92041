//! `radmm predict`, as a user runs it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use radmm::privacy::Guarantee;
use radmm_study::{ModelFile, ModelGuarantee, Study, Trained};
use serde_json::{Value, json};
use tempfile::TempDir;

use support::{radmm, text};

/// The study without its data section.
const REST: &str = r#"
[network]
nodes = 2
topology = "path"
[problem]
weight = 4.0
ridge = 0.1
[algorithm]
name = "admm"
iterations = 3
penalty = 1.0
"#;

/// A number within [0, 100] and one of two values. With `clip`, rows of norm at most one are not scaled.
const DATA: &str = r#"
[data]
path = "train.csv"
label = "ill"
positive = "yes"
rows = "clip"
[data.numeric]
age = [0, 100]
[data.categorical]
smoker = ["no", "yes"]
"#;

const NUMBERED: &str = r#"
[data]
path = "train.svm"
positive = "+1"
columns = 2
rows = "clip"
"#;

fn study(data: &str) -> Study {
    Study::parse(&format!("{data}{REST}"), "visits.toml")
        .unwrap()
        .0
}

fn model(study: &Study, weights: &[f64]) -> String {
    let trained = Trained {
        party: "north".into(),
        iterations: 3,
        guarantee: Some(ModelGuarantee {
            total: Guarantee {
                epsilon: 0.5,
                delta: 1e-6,
            },
            protects: true,
            caveat: "only of this run".into(),
        }),
        weights: weights.into(),
    };
    ModelFile::new(study, trained).unwrap().to_json()
}

/// Returns a folder with a model and rows.
fn folder(rows: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    write(
        folder.path(),
        "model.json",
        &model(&study(DATA), &[4.0, -2.0, 1.0]),
    );
    write(folder.path(), "rows.csv", rows);
    folder
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

fn predict(folder: &Path, args: &[&str]) -> Output {
    let args: Vec<&str> = ["predict"].iter().chain(args).copied().collect();
    radmm(folder, &args)
}

/// Returns stdout and stderr.
fn predictions(rows: &str, args: &[&str]) -> (String, String) {
    let folder = folder(rows);
    let args: Vec<&str> = ["model.json", "rows.csv"]
        .iter()
        .chain(args)
        .copied()
        .collect();
    let output = predict(folder.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    (text(&output.stdout).into(), text(&output.stderr).into())
}

fn error_of(folder: &Path, args: &[&str]) -> (i32, String) {
    let output = predict(folder, args);
    let said = text(&output.stderr);
    let line = said.lines().last().unwrap_or_default();
    assert!(line.starts_with("error: "), "{said}");
    assert!(!said.contains("panic"), "{said}");
    (
        output.status.code().unwrap(),
        line["error: ".len()..].to_owned(),
    )
}

/// Returns the error in a table whose first row cannot be predicted. No header is printed before it.
fn error_of_rows(rows: &str) -> (i32, String) {
    for format in [&[][..], &["--json"]] {
        let args = [&["model.json", "rows.csv"], format].concat();
        let printed = predict(folder(rows).path(), &args).stdout;
        let first_row_is_valid = rows.contains("\n90,no\n");
        assert_eq!(printed.is_empty(), !first_row_is_valid, "{rows}");
    }
    error_of(folder(rows).path(), &["model.json", "rows.csv"])
}

/// Returns the value and prediction of every row.
fn values(csv: &str) -> Vec<(Option<f64>, Option<u8>)> {
    let cells = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect::<Vec<_>>());
    cells
        .map(|cells| (cells[1].parse().ok(), cells[2].parse().ok()))
        .collect()
}

/// Returns the probability by its definition, for rows of norm above one.
fn expected_probability(age: f64, smoker: bool) -> f64 {
    let (x, weight) = (age / 100.0, if smoker { 1.0 } else { -2.0 });
    let score = (4.0 * x + weight) / (x * x + 1.0).sqrt();
    1.0 / (1.0 + (-score).exp())
}

#[test]
fn every_row_has_its_number_its_probability_and_a_prediction() {
    let (csv, said) = predictions("age,smoker\n90,no\n10,no\n10,yes\n", &[]);
    assert_eq!(csv.lines().next(), Some("row,probability,predicted"));
    let rows: Vec<&str> = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap())
        .collect();
    assert_eq!(rows, ["1", "2", "3"]);
    let expected = [
        expected_probability(90.0, false),
        expected_probability(10.0, false),
        expected_probability(10.0, true),
    ];
    let values = values(&csv);
    for ((got, predicted), expected) in values.iter().zip(expected) {
        assert!(
            (got.unwrap() - expected).abs() < 1e-14,
            "{got:?} {expected}"
        );
        assert_eq!(*predicted, Some(u8::from(expected >= 0.5)));
    }
    assert_eq!(
        said,
        "1 means that ill is \"yes\": a probability of at least 0.5\n"
    );
}

#[test]
fn a_row_with_a_missing_field_has_empty_cells_and_is_counted() {
    let (csv, said) = predictions("age,smoker\n90,no\n?,no\n90,\n10,no\n", &[]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines[2], lines[3]), ("2,,", "3,,"));
    assert!(lines[1].starts_with("1,0.") && lines[4].starts_with("4,0."));
    assert!(
        said.contains("note: 2 of 4 rows lack a field and have no prediction\n"),
        "{said}"
    );
}

#[test]
fn carriage_returns_and_other_columns_make_no_difference() {
    let plain = predictions("age,smoker\n90,no\n10,no\n", &[]);
    assert_eq!(plain, predictions("age,smoker\r\n90,no\r\n10,no\r\n", &[]));
    assert_eq!(plain, predictions("id,smoker,age\n7,no,90\n8,no,10", &[]));
}

#[test]
fn labelled_rows_give_accuracy_auc_and_a_confusion_matrix() {
    // Rows 2 and 3 are misclassified; the last has no label, and is not counted.
    let rows = "age,smoker,ill\n90,no,yes\n10,no,yes\n10,yes,no\n10,no,no\n20,no,no\n30,no,?\n";
    let (csv, said) = predictions(rows, &[]);
    assert_eq!(values(&csv).len(), 6);
    // Of six pairs of a positive and a negative row, two are in order and one is a tie: 2.5/6.
    let table: Vec<Vec<&str>> = said
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert!(
        table.contains(&vec!["label", "predicted", "1", "predicted", "0"]),
        "{said}"
    );
    assert!(table.contains(&vec!["yes", "1", "1"]), "{said}");
    assert!(table.contains(&vec!["not", "yes", "1", "2"]), "{said}");
    assert!(
        said.ends_with("accuracy 60.0 %, AUC 0.4167, on 5 rows with a label\n"),
        "{said}"
    );
}

#[test]
fn labels_of_one_class_are_noted() {
    let (_, said) = predictions("age,smoker,ill\n90,no,Yes\n10,no,No\n", &[]);
    assert!(
        said.contains("note: no row has \"yes\" for ill; is it written differently there?"),
        "{said}"
    );
    assert!(
        said.contains("no AUC, since all rows are of one class"),
        "{said}"
    );
}

#[test]
fn json_has_the_rows_and_a_summary() {
    let rows = "age,smoker,ill\n90,no,yes\n,no,yes\n10,no,yes\n10,no,no\n";
    let (output, said) = predictions(rows, &["--json"]);
    let output: Value = serde_json::from_str(&output).unwrap();
    let rows = output["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(
        rows[1],
        json!({ "row": 2, "probability": null, "predicted": null })
    );
    assert_eq!(
        (&rows[0]["row"], &rows[0]["predicted"]),
        (&json!(1), &json!(1))
    );
    let (csv, _) = predictions("age,smoker\n90,no\n", &[]);
    assert_eq!(rows[0]["probability"].as_f64(), values(&csv)[0].0);
    let expected = json!({
        "model": {
            "study": "visits",
            "study_sha256": study(DATA).sha256(),
            "party": "north",
            "iterations": 3,
            "guarantee": {
                "epsilon": 0.5,
                "delta": 1e-6,
                "relation": "one row of one party replaced",
                "protects": true,
                "caveat": "only of this run",
            },
        },
        "label": "ill",
        "positive": "yes",
        "threshold": 0.5,
        "rows": 4,
        "incomplete": 1,
        "labelled": 3,
        "quality": {
            "accuracy": 2.0 / 3.0,
            "auc": 0.75,
            "confusion": { "true_positive": 1, "false_positive": 0, "false_negative": 1, "true_negative": 1 },
        },
    });
    assert_eq!(output["summary"], expected);
    assert_eq!(
        said,
        "note: 1 of 4 rows lack a field and have no prediction\n"
    );
    let (output, _) = predictions("age,smoker\n", &["--json"]);
    let output: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(output["rows"], json!([]));
    assert!(output["summary"].get("quality").is_none());
}

#[test]
fn the_threshold_moves_predictions_and_not_probabilities() {
    let rows = "age,smoker\n90,no\n30,no\n";
    let at = |threshold| values(&predictions(rows, &["--threshold", threshold]).0);
    let of = |threshold| {
        at(threshold)
            .iter()
            .map(|row| row.1.unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("0.5"), [1, 0]);
    assert_eq!(of("0.1"), [1, 1]);
    assert_eq!(of("1"), [0, 0]);
    assert_eq!(at("0.1")[1].0, at("1")[1].0);
    for (threshold, said) in [
        ("1.5", "--threshold: must be a probability, from 0 to 1"),
        ("-0.1", "--threshold: must be a probability, from 0 to 1"),
    ] {
        let args = ["model.json", "rows.csv", "--threshold", threshold];
        assert_eq!(error_of(folder(rows).path(), &args), (2, said.to_owned()));
    }
    let output = predict(
        folder(rows).path(),
        &["model.json", "rows.csv", "--threshold", "NaN"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("must be a finite number"));
}

#[test]
fn a_smooth_hinge_model_predicts_scores() {
    let folder = folder("age,smoker,ill\n90,no,yes\n10,no,no\n");
    let hinge = REST.replace("weight", "loss = \"smooth-hinge\"\nweight");
    let study = Study::parse(&format!("{DATA}{hinge}"), "visits.toml")
        .unwrap()
        .0;
    write(
        folder.path(),
        "model.json",
        &model(&study, &[4.0, -2.0, 1.0]),
    );
    let output = predict(folder.path(), &["model.json", "rows.csv"]);
    let csv = text(&output.stdout);
    assert_eq!(csv.lines().next(), Some("row,score,predicted"));
    let values = values(csv);
    assert!((values[0].0.unwrap() - 1.6 / 1.81_f64.sqrt()).abs() < 1e-14);
    assert_eq!([values[0].1, values[1].1], [Some(1), Some(0)]);
    assert!(text(&output.stderr).contains("a score of at least 0\n"));
    let output = predict(
        folder.path(),
        &["model.json", "rows.csv", "--threshold", "-3.5"],
    );
    assert!(
        text(&output.stdout)
            .lines()
            .skip(1)
            .all(|line| line.ends_with(",1"))
    );
}

#[test]
fn a_cut_logistic_model_predicts_the_probabilities_of_its_loss() {
    let folder =
        folder("age,smoker,ill\n90,no,yes\n10,no,no\n50,yes,yes\n20,no,no\n80,yes,yes\n70,no,no\n");
    let data = DATA.replace("train.csv", "rows.csv");
    let with = |loss: &str| {
        let rest = REST.replace("weight", &format!("loss = \"{loss}\"\nweight"));
        format!("{data}{rest}")
    };
    // Trained by the program itself.
    write(folder.path(), "visits.toml", &with("cut-logistic"));
    let output = radmm(folder.path(), &["run", "visits.toml", "--json", "--quiet"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["study"]["problem"]["loss"], "cut-logistic");
    let trained = result["centralised"]["model"].clone();
    let weights: Vec<f64> = serde_json::from_value(trained).unwrap();
    let of = |text: &str| model(&Study::parse(text, "visits.toml").unwrap().0, &weights);
    write(folder.path(), "model.json", &of(&with("cut-logistic")));
    let output = predict(folder.path(), &["model.json", "rows.csv"]);
    let csv = text(&output.stdout);
    assert_eq!(csv.lines().next(), Some("row,probability,predicted"));
    assert!(text(&output.stderr).contains("a probability of at least 0.5\n"));
    // The same weights with a loss without probabilities show the scores.
    write(folder.path(), "model.json", &of(&with("smooth-hinge")));
    let scores = predict(folder.path(), &["model.json", "rows.csv"]);
    let pairs = values(csv).into_iter().zip(values(text(&scores.stdout)));
    for ((probability, predicted), (score, same)) in pairs {
        let (probability, score) = (probability.unwrap(), score.unwrap());
        let slope = |z: f64| (1.0 / (1.0 + z.exp())).min(0.5);
        let expected = slope(-score) / (slope(score) + slope(-score));
        assert!(
            (probability - expected).abs() < 1e-12,
            "{probability} {expected}"
        );
        assert_eq!(predicted, same);
        // Nearer to a half than the logistic loss has it: scores grow where the slope is cut.
        assert!((probability - 0.5).abs() <= (1.0 / (1.0 + (-score).exp()) - 0.5_f64).abs());
    }
}

#[test]
fn an_output_file_is_written_completely_or_not_at_all() {
    let folder = folder("age,smoker\n90,no\n10,no\n");
    let out = folder.path().join("out.csv");
    let args = ["model.json", "rows.csv", "--out", "out.csv"];
    let output = predict(folder.path(), &args);
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(text(&output.stderr).starts_with("wrote out.csv\n"));
    let printed = predict(folder.path(), &["model.json", "rows.csv"]).stdout;
    assert_eq!(fs::read(&out).unwrap(), printed);
    // A row is invalid: the old file stays.
    write(folder.path(), "rows.csv", "age,smoker\n90,no\n10,perhaps\n");
    let (code, said) = error_of(folder.path(), &args);
    assert_eq!(code, 1);
    assert!(said.starts_with("rows.csv:3: column \"smoker\":"), "{said}");
    assert_eq!(fs::read(&out).unwrap(), printed);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    for input in ["rows.csv", "./model.json"] {
        let (code, said) = error_of(folder.path(), &["model.json", "rows.csv", "--out", input]);
        assert_eq!(
            (code, said),
            (
                2,
                format!("--out: {input} is an input of this command; choose another file")
            )
        );
    }
    let (code, said) = error_of(
        folder.path(),
        &["model.json", "rows.csv", "--out", "no/out.csv"],
    );
    assert_eq!(code, 1);
    assert!(said.starts_with("no/out.csv: "), "{said}");
}

#[test]
fn a_table_for_another_model_is_wrong_use() {
    assert_eq!(
        error_of_rows("age,ill\n90,yes\n"),
        (
            2,
            "rows.csv:1: there is no column \"smoker\"; the header has \"age\", \"ill\"".to_owned()
        )
    );
    let folder = folder("age,smoker\n90,no\n");
    write(folder.path(), "rows.svm", "+1 1:1\n");
    let (code, said) = error_of(folder.path(), &["model.json", "rows.svm"]);
    assert_eq!(code, 2);
    assert!(
        said.contains("those of the model have names; give a CSV or Parquet file"),
        "{said}"
    );
    write(folder.path(), "rows.txt", "age,smoker\n90,no\n");
    let (code, said) = error_of(folder.path(), &["model.json", "rows.txt"]);
    assert_eq!(code, 2);
    assert!(
        said.contains("give --format csv, parquet or libsvm"),
        "{said}"
    );
    let (code, said) = error_of(folder.path(), &["model.json", "none.csv"]);
    assert_eq!(code, 2);
    assert!(said.starts_with("none.csv: "), "{said}");
    let (code, said) = error_of(folder.path(), &["none.json", "rows.csv"]);
    assert_eq!(code, 2);
    assert!(said.starts_with("none.json: "), "{said}");
}

#[test]
fn an_invalid_row_is_a_failure_with_its_line() {
    assert_eq!(
        error_of_rows("age,smoker\n90,no\n10,no,yes\n"),
        (1, "rows.csv:3: expected 2 fields as in the header, got 3; look for a stray comma or quote".to_owned())
    );
    assert_eq!(
        error_of_rows("age,smoker\n90,perhaps\n"),
        (
            1,
            "rows.csv:2: column \"smoker\": \"perhaps\" is not among the values that the model knows, \"no\", \"yes\"; \
             correct it, or remove the row"
                .to_owned()
        )
    );
    assert_eq!(
        error_of_rows(""),
        (
            1,
            "rows.csv is empty: its first line must name the columns".to_owned()
        )
    );
    let (code, said) = error_of_rows("age,smoker\nold,no\n");
    assert_eq!(code, 1);
    assert!(
        said.starts_with("rows.csv:2: column \"age\": invalid number \"old\""),
        "{said}"
    );
}

#[test]
fn a_damaged_model_is_wrong_use() {
    let folder = folder("age,smoker\n90,no\n");
    let sound = fs::read_to_string(folder.path().join("model.json")).unwrap();
    let cases = [
        (
            sound.replace("    4.0,", "    NaN,"),
            "NaN is not a finite number",
        ),
        (
            sound.replace("    4.0,", "    null,"),
            "weights[0], of column \"age\", is not a finite number",
        ),
        (
            sound.replace("    4.0,", ""),
            "there are 2 weights for 3 columns",
        ),
        (
            sound.replace("\"version\": \"", "\"version\": \"9"),
            "was made by radmm 9",
        ),
        (
            sound[..sound.len() / 2].to_owned(),
            "the text ends before the model does",
        ),
        ("age,smoker\n".to_owned(), "a model file is JSON"),
        ("{}".to_owned(), "model.json is not a model file"),
    ];
    for (damaged, expected) in cases {
        write(folder.path(), "model.json", &damaged);
        let (code, said) = error_of(folder.path(), &["model.json", "rows.csv"]);
        assert_eq!(code, 2, "{said}");
        assert!(
            said.contains(expected) && said.starts_with("model.json"),
            "{said}"
        );
    }
    fs::write(folder.path().join("model.json"), b"\xff\xfe").unwrap();
    let (code, said) = error_of(folder.path(), &["model.json", "rows.csv"]);
    assert_eq!(code, 2);
    assert!(said.contains("it is not text in UTF-8"), "{said}");
}

#[test]
fn numbered_columns_need_neither_labels_nor_an_extension() {
    let folder = TempDir::new().unwrap();
    write(
        folder.path(),
        "model.json",
        &model(&study(NUMBERED), &[1.0, -2.0]),
    );
    write(folder.path(), "rows", "+1 1:0.5\n2:0.25\n-1\n");
    let output = predict(folder.path(), &["model.json", "rows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let probability = |score: f64| 1.0 / (1.0 + (-score).exp());
    let expected = [probability(0.5), probability(-0.5), 0.5];
    let values = values(text(&output.stdout));
    assert!(
        values
            .iter()
            .zip(expected)
            .all(|(got, expected)| (got.0.unwrap() - expected).abs() < 1e-15)
    );
    assert!(text(&output.stderr).contains("on 2 rows with a label"));
    let (code, said) = error_of(folder.path(), &["model.json", "rows", "--format", "csv"]);
    assert_eq!(code, 2);
    assert!(
        said.contains("have numbers and no names; give a LIBSVM file"),
        "{said}"
    );
}

/// Compares row by row: the loss of a file of one row determines its margin in the simulator.
#[test]
fn a_row_has_the_same_margin_as_in_training() {
    let folder = TempDir::new().unwrap();
    let train: String = (0..40)
        .map(|n| {
            format!(
                "{},{},{}\n",
                n * 37 % 101,
                ["no", "yes"][n % 2],
                ["no", "yes"][n * 7 % 5 % 2]
            )
        })
        .collect();
    write(
        folder.path(),
        "train.csv",
        &format!("age,smoker,ill\n{train}"),
    );
    let rows = ["0,no,no", "100,yes,yes", "33.3,no,yes", "250,yes,no"];
    for (scale, age) in [
        ("unit", "[0, 100]"),
        ("clip", "[-7, 90]"),
        ("unit", "{ bins = [20, 50] }"),
    ] {
        let data = DATA.replace(
            "clip",
            &format!("{scale}\"\nintercept = {} #\"", scale == "unit"),
        );
        let data = data.replace("[0, 100]", age);
        for row in rows {
            let test = "[data.test]\npath = \"test.csv\"\n";
            write(
                folder.path(),
                "test.csv",
                &format!("age,smoker,ill\n{row}\n"),
            );
            write(folder.path(), "visits.toml", &format!("{data}{test}{REST}"));
            let output = radmm(folder.path(), &["run", "visits.toml", "--json", "--quiet"]);
            assert!(output.status.success(), "{}", text(&output.stderr));
            let result: Value = serde_json::from_slice(&output.stdout).unwrap();
            let pooled = &result["centralised"];
            let weights: Vec<f64> = serde_json::from_value(pooled["model"].clone()).unwrap();
            write(folder.path(), "model.json", &model(&study(&data), &weights));
            let output = predict(folder.path(), &["model.json", "test.csv", "--json"]);
            let predicted: Value = serde_json::from_slice(&output.stdout).unwrap();
            let probability = predicted["rows"][0]["probability"].as_f64().unwrap();
            let right = if row.ends_with("yes") {
                probability
            } else {
                1.0 - probability
            };
            let loss = pooled["held_out"]["loss"].as_f64().unwrap();
            assert!(
                (-right.ln() - loss).abs() < 1e-12,
                "{row} {scale} {age}: {right} {loss}"
            );
            let quality = &predicted["summary"]["quality"];
            assert_eq!(quality["accuracy"], pooled["held_out"]["accuracy"], "{row}");
        }
    }
}

#[test]
fn a_closed_stdout_is_not_an_error() {
    let rows: String = (0..100_000).map(|n| format!("{},no\n", n % 100)).collect();
    let folder = folder(&format!("age,smoker\n{rows}"));
    for json in [&[][..], &["--json"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_radmm"))
            .current_dir(folder.path())
            .args(["predict", "model.json", "rows.csv"])
            .args(json)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut first).unwrap();
        drop(stdout);
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(child.wait().unwrap().success(), "{said}");
        assert_eq!(said, "");
    }
}

#[test]
fn help_has_examples() {
    let output = predict(Path::new("."), &["--help"]);
    assert!(text(&output.stdout).contains("radmm predict model.json rows.csv > predictions.csv"));
}
