//! `radmm collect`: one table of many runs, as a user makes it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/small_study.rs"]
mod small_study;
mod support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};
use tempfile::TempDir;

use small_study::{STUDY, folder};
use support::{radmm, text};

fn run(folder: &Path, out: &str, args: &[&str]) {
    let all = ["run", "study.toml", "-q", "--out", out];
    let output = radmm(folder, &[&all, args].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Returns a folder with six runs in `runs`: three penalties, one of them a schedule, with two seeds each.
fn sweep() -> TempDir {
    let folder = folder(&STUDY.replace("seed = 1", "seed = 1\nrepetitions = 3"));
    for penalty in ["0.5", "2", "{ start = 0.5, growth = 1.1 }"] {
        let set = format!("algorithm.penalty={penalty}");
        for seed in ["1", "2"] {
            let out = format!("runs/{}/{seed}", penalty.len());
            run(folder.path(), &out, &["--set", &set, "--seed", seed]);
        }
    }
    folder
}

fn collected(folder: &Path, args: &[&str]) -> Value {
    let output = radmm(folder, &[&["collect", "--json"], args].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn result(folder: &Path, run: &str) -> Value {
    let text = fs::read(folder.join("runs").join(run).join("result.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn there_is_a_row_for_each_method_of_each_run_and_a_column_for_each_key_that_differs() {
    let folder = sweep();
    let table = collected(folder.path(), &["runs"]);
    assert_eq!(
        (&table["runs"], &table["left_out"]),
        (&json!(6), &json!([]))
    );
    let rows = table["rows"].as_array().unwrap();
    let named: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| {
            (
                row["run"].as_str().unwrap(),
                row["method"].as_str().unwrap(),
            )
        })
        .collect();
    // In the order of the paths; 29 is the length of the schedule.
    let runs = ["1/1", "1/2", "29/1", "29/2", "3/1", "3/2"];
    let methods = ["r-admm", "local", "average"];
    let expected: Vec<(&str, &str)> = runs
        .into_iter()
        .flat_map(|run| methods.map(|method| (run, method)))
        .collect();
    assert_eq!(named, expected);
    // Keys that are in one study only have no value in the others, and those that do not differ have no column.
    let keys = |row: &Value| {
        ["", ".growth", ".start"].map(|key| row[format!("algorithm.penalty{key}")].clone())
    };
    assert_eq!(keys(&rows[0]), [json!(2.0), Value::Null, Value::Null]);
    assert_eq!(keys(&rows[6]), [Value::Null, json!(1.1), json!(0.5)]);
    assert!(rows[0].get("algorithm.damping").is_none());
    assert!(rows[0].get("run.seed").is_none());
    for (row, (run, method)) in rows.iter().zip(named) {
        let result = result(folder.path(), run);
        assert_eq!(row["seed"], result["study"]["run"]["seed"]);
        let statement = fs::read(
            folder
                .path()
                .join("runs")
                .join(run)
                .join("privacy-statement.json"),
        )
        .unwrap();
        let statement: Value = serde_json::from_slice(&statement).unwrap();
        assert_eq!(row["study_sha256"], statement["study_sha256"]);
        assert_eq!(
            (&row["rows"], &row["parties"], &row["repetitions"]),
            (&json!(60), &json!(3), &json!(3))
        );
        assert_eq!(
            (&row["study"], &row["algorithm"]),
            (&json!("small"), &json!("r-admm"))
        );
        assert_eq!(
            (&row["version"], &row["relation"]),
            (
                &result["program"]["version"],
                &result["privacy"]["relation"]
            )
        );
        assert_eq!(
            row["majority_train_accuracy"],
            result["majority"]["accuracy"]
        );
        assert_eq!(row["held_out_accuracy"], Value::Null);
        let ends: Vec<Value> = match method {
            "r-admm" => result["repetitions"].as_array().unwrap().clone(),
            name => {
                let mut beside = result["beside"].as_array().unwrap().iter();
                let baseline = beside.find(|one| one["name"] == name).unwrap();
                baseline["ends"].as_array().unwrap().clone()
            }
        };
        let total = match method {
            "r-admm" => result["privacy"]["epsilon"].clone(),
            _ => ends[0]["epsilon"].clone(),
        };
        assert_eq!(
            (&row["total_epsilon"], &row["delta"]),
            (&total, &json!(0.0))
        );
        let loss = |end: &Value| match end["iterations"].as_array() {
            Some(iterations) => iterations.last().unwrap()["loss"].as_f64().unwrap(),
            None => end["loss"].as_f64().unwrap(),
        };
        let accuracy = |end: &Value| end["everywhere"]["accuracy"].as_f64().unwrap();
        let mean = |of: &dyn Fn(&Value) -> f64| ends.iter().map(of).sum::<f64>() / 3.0;
        assert_eq!(row["train_loss"].as_f64().unwrap(), mean(&loss));
        assert_eq!(row["train_accuracy"].as_f64().unwrap(), mean(&accuracy));
        let squares: f64 = ends
            .iter()
            .map(|end| (accuracy(end) - mean(&accuracy)).powi(2))
            .sum();
        let deviation = row["train_accuracy_deviation"].as_f64().unwrap();
        assert!(
            (deviation - (squares / 2.0).sqrt()).abs() < 1e-15,
            "{deviation}"
        );
    }
}

#[test]
fn every_epsilon_has_its_scope_its_delta_and_its_relation_beside_it() {
    let folder = folder(&STUDY.replace("rate = 2.0", "epsilon = 1\ndelta = 1e-4"));
    run(folder.path(), "runs/a", &[]);
    run(folder.path(), "runs/b", &["--set", "privacy.epsilon=2"]);
    let table = collected(folder.path(), &["runs"]);
    let columns = table["columns"].as_array().unwrap();
    let mut epsilons = 0;
    for (column, next) in columns.iter().zip(&columns[1..]) {
        let [name, meaning] = ["name", "meaning"].map(|of| column[of].as_str().unwrap());
        if name.contains("epsilon") {
            assert!(
                meaning.contains("the total ε") && meaning.contains("at delta and for relation"),
                "{meaning}"
            );
            epsilons += 1;
        }
        if name == "total_epsilon" {
            assert_eq!(next["name"], "delta");
        }
    }
    assert_eq!(epsilons, 2);
    let output = radmm(folder.path(), &["collect", "runs"]);
    let shown = text(&output.stdout);
    assert!(
        shown.contains("total ε: over every message of the run, the largest of the parties',\n          at δ = 1e-4, for one row of one party replaced\n"),
        "{shown}"
    );
    // With different δ, each stands in its row.
    run(folder.path(), "runs/c", &["--set", "privacy.delta=1e-3"]);
    let output = radmm(folder.path(), &["collect", "runs"]);
    let shown = text(&output.stdout);
    assert!(
        shown
            .lines()
            .nth(2)
            .unwrap()
            .trim_end()
            .ends_with("total ε      δ"),
        "{shown}"
    );
    assert!(
        shown.contains("1e-3") && shown.contains(" at δ, for one row of one party replaced"),
        "{shown}"
    );
}

#[test]
fn parquet_csv_and_json_hold_the_same_values() {
    let folder = sweep();
    let table = collected(folder.path(), &["runs"]);
    for name in ["deep/table.parquet", "table.csv"] {
        let output = radmm(folder.path(), &["collect", "runs", "--out", name]);
        assert!(output.status.success());
        assert_eq!(
            (text(&output.stdout), text(&output.stderr)),
            ("", format!("wrote {name}\n").as_str())
        );
    }
    let names: Vec<&str> = table["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    let rows = table["rows"].as_array().unwrap();

    let csv = fs::read_to_string(folder.path().join("table.csv")).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next().unwrap(), names.join(","));
    for (line, row) in lines.by_ref().zip(rows) {
        for (field, name) in line.split(',').zip(&names) {
            match &row[*name] {
                Value::Null => assert_eq!(field, ""),
                Value::String(text) => assert_eq!(field, text),
                number => assert_eq!(
                    field.parse::<f64>().unwrap(),
                    number.as_f64().unwrap(),
                    "{name}"
                ),
            }
        }
    }
    assert_eq!(lines.next(), None);

    let file = File::open(folder.path().join("deep/table.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let metadata = reader.metadata().file_metadata();
    let meanings: BTreeMap<&str, &str> = metadata
        .key_value_metadata()
        .unwrap()
        .iter()
        .map(|note| (note.key.as_str(), note.value.as_deref().unwrap()))
        .collect();
    for column in table["columns"].as_array().unwrap() {
        assert_eq!(
            meanings[column["name"].as_str().unwrap()],
            column["meaning"]
        );
    }
    let mut count = 0;
    for (record, row) in reader.get_row_iter(None).unwrap().zip(rows) {
        for (name, field) in record.unwrap().get_column_iter() {
            match (field, &row[name]) {
                (Field::Null, value) => assert_eq!(value, &Value::Null, "{name}"),
                (Field::Str(text), value) => assert_eq!(value, text, "{name}"),
                (Field::Long(integer), value) => assert_eq!(value, integer, "{name}"),
                (Field::Double(number), value) => assert_eq!(value, number, "{name}"),
                (other, value) => panic!("{name}: {other:?}, {value}"),
            }
        }
        count += 1;
    }
    assert_eq!(count, rows.len());
}

#[test]
fn the_terminal_shows_what_tells_the_runs_apart() {
    let folder = folder(&STUDY.replace("seed = 1", "seed = 1\nrepetitions = 2"));
    for (out, penalty) in [("a", "1"), ("b", "2")] {
        let set = format!("algorithm.penalty={penalty}");
        run(
            folder.path(),
            &format!("runs/{out}"),
            &["--set", &set, "--no-baselines"],
        );
    }
    let output = radmm(folder.path(), &["collect", "runs"]);
    let shown = text(&output.stdout);
    let mut lines = shown.lines();
    assert_eq!(lines.next(), Some("2 runs below runs"));
    assert_eq!(
        lines.nth(1).unwrap().split_whitespace().collect::<Vec<_>>(),
        ["run", "penalty", "method", "accuracy", "AUC", "total", "ε"]
    );
    let first: Vec<&str> = lines.nth(1).unwrap().split_whitespace().collect();
    assert_eq!(first[..3], ["a", "1.0", "r-admm"]);
    assert!(
        shown
            .contains("a choice among runs by what they show is tuning: its price is in no ε here")
    );
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // One run is no choice.
    let output = radmm(folder.path(), &["collect", "runs/a"]);
    let shown = text(&output.stdout);
    assert!(
        shown.starts_with("1 run below runs/a\n") && !shown.contains("tuning"),
        "{shown}"
    );
    assert!(shown.contains("\n .  "), "{shown}");
}

#[test]
fn runs_that_stopped_or_cannot_be_read_are_named_and_counted() {
    let folder = sweep();
    run(
        folder.path(),
        "runs/exact",
        &["--set", "privacy={ mechanism = \"none\" }"],
    );
    // This one stops early, at a limit.
    let output = radmm(
        folder.path(),
        &[
            "run",
            "study.toml",
            "--limit",
            "0.6",
            "--out",
            "runs/limited",
            "-q",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    let write = |run: &str, name: &str, text: &str| {
        let path = folder.path().join("runs").join(run);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(name), text).unwrap();
    };
    write("killed", "result.json.new", "{");
    write("model", "result.json", "{\"format\": 3}");
    let cut = fs::read_to_string(folder.path().join("runs/1/1/result.json")).unwrap();
    write("cut", "result.json", &cut[..cut.len() / 2]);
    let other = cut.replace(
        "\"relation\": \"one row of one party replaced\"",
        "\"relation\": \"one row added\"",
    );
    write("other", "result.json", &other);

    let output = radmm(folder.path(), &["collect", "runs"]);
    assert!(output.status.success());
    assert!(
        text(&output.stdout).starts_with("7 runs below runs, 5 left out\n"),
        "{}",
        text(&output.stdout)
    );
    let said: Vec<&str> = text(&output.stderr).lines().collect();
    assert_eq!(said.len(), 5, "{said:?}");
    assert!(
        said[0].starts_with(
            "warning: runs/cut/result.json is left out: not the result of a run: EOF while parsing"
        ),
        "{said:?}"
    );
    assert_eq!(
        said[1],
        "warning: runs/killed/result.json.new is left out: the run ended while it wrote its result; run it again"
    );
    assert!(
        said[2]
            .starts_with("warning: runs/limited/result.json is left out: the run stopped early: "),
        "{said:?}"
    );
    assert_eq!(
        said[3],
        "warning: runs/model/result.json is left out: not the result of a run: missing field `program` at line 1 column 13"
    );
    assert_eq!(
        said[4],
        "warning: runs/other/result.json is left out: its total is for one row added, and those of the others are for one row of one party replaced"
    );
    let table = collected(folder.path(), &["runs"]);
    assert_eq!(table["left_out"][1]["path"], "runs/killed/result.json.new");
    // Without noise the total is infinite: null in JSON, as in result.json, and inf in CSV.
    let exact = table["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["run"] == "exact")
        .unwrap();
    assert_eq!(exact["total_epsilon"], Value::Null);
    let output = radmm(
        folder.path(),
        &["collect", "runs", "--out", "t.csv", "-q", "--require-all"],
    );
    assert_eq!(
        (text(&output.stderr), output.status.code()),
        (
            "error: 5 runs were left out, and --require-all was given\n",
            Some(1)
        )
    );
    let csv = fs::read_to_string(folder.path().join("t.csv")).unwrap();
    assert!(
        csv.lines()
            .any(|line| line.starts_with("exact,") && line.contains(",inf,")),
        "{csv}"
    );
}

#[test]
fn wrong_use_and_failures_have_their_exit_codes() {
    let folder = folder(STUDY);
    fs::create_dir_all(folder.path().join("empty/deep")).unwrap();
    fs::create_dir_all(folder.path().join("bad")).unwrap();
    fs::write(folder.path().join("bad/result.json"), "").unwrap();
    for (args, said, code) in [
        (
            &["collect", "empty"][..],
            "error: empty: there is no result.json in this folder or below; radmm run --out writes one\n",
            1,
        ),
        (
            &["collect", "bad", "-q"],
            "error: bad: no run could be collected of 1 result found\n",
            1,
        ),
        (
            &["collect", "nowhere"],
            "error: nowhere: No such file or directory (os error 2)\n",
            2,
        ),
        (
            &["collect", "study.toml"],
            "error: study.toml: Not a directory (os error 20)\n",
            2,
        ),
        (
            &["collect", "bad", "--out", "table.xlsx"],
            "error: invalid value 'table.xlsx' for '--out <FILE>': must end in .csv or .parquet\n\nFor more information, try '--help'.\n",
            2,
        ),
    ] {
        let output = radmm(folder.path(), args);
        assert_eq!(
            (text(&output.stderr), output.status.code()),
            (said, Some(code)),
            "{args:?}"
        );
        assert_eq!(text(&output.stdout), "");
    }
}

#[cfg(unix)]
#[test]
fn links_to_folders_are_not_followed() {
    let folder = folder(STUDY);
    run(folder.path(), "runs/a", &["--no-baselines"]);
    std::os::unix::fs::symlink(folder.path().join("runs"), folder.path().join("runs/loop"))
        .unwrap();
    let table = collected(folder.path(), &["runs"]);
    assert_eq!(table["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn the_table_does_not_depend_on_threads() {
    let folder = sweep();
    let table = |threads: &str| collected(folder.path(), &["runs", "--threads", threads]);
    assert_eq!(table("1"), table("3"));
}
