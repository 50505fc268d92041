//! The whole program, from a CSV and a study file to result.json, reproduces the numbers of an independent implementation.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::process::Command;

use serde_json::Value;

fn assert_close(ours: &Value, golden: &Value, what: &str) {
    match (ours, golden) {
        (Value::Array(ours), Value::Array(golden)) => {
            assert_eq!(ours.len(), golden.len(), "{what}");
            for (a, b) in ours.iter().zip(golden) {
                assert_close(a, b, what);
            }
        }
        _ => {
            let (a, b) = (ours.as_f64().unwrap(), golden.as_f64().unwrap());
            assert!((a - b).abs() <= 1e-9, "{what}: {a} against {b}");
        }
    }
}

/// Formats a number or "start*growth^t" as a schedule of a study file.
fn schedule(value: &Value) -> String {
    match value.as_str() {
        None => value.to_string(),
        Some(text) => {
            let (start, rest) = text.split_once('*').unwrap();
            let growth = rest.strip_suffix("^t").unwrap();
            format!("{{ start = {start}, growth = {growth} }}")
        }
    }
}

#[test]
fn a_study_file_gives_the_numbers_of_the_independent_implementation() {
    let text = include_str!("../../radmm/tests/golden/tiny.json");
    let golden: Value = serde_json::from_str(text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut rows = "x,y,z,site,label\n".to_owned();
    for (i, node) in golden["rows"].as_array().unwrap().iter().enumerate() {
        for (n, row) in node.as_array().unwrap().iter().enumerate() {
            let label = golden["labels"][i][n].as_f64().unwrap();
            rows += &format!("{},{},{},s{i},{label}\n", row[0], row[1], row[2]);
        }
    }
    fs::write(folder.path().join("rows.csv"), rows).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    let noiseless: Vec<&Value> = cases
        .iter()
        .filter(|case| case["noise"].is_null())
        .collect();
    assert_eq!(noiseless.len(), 7);
    for case in noiseless {
        let graph = golden["graphs"][case["graph"].as_str().unwrap()]
            .as_array()
            .unwrap();
        let edges: Vec<String> = graph
            .iter()
            .enumerate()
            .flat_map(|(i, js)| {
                let js = js
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|j| j.as_u64().unwrap() as usize);
                js.filter(move |&j| i < j)
                    .map(move |j| format!("[{i}, {j}]"))
            })
            .collect();
        let study = format!(
            r#"
            [data]
            path = "rows.csv"
            label = "label"
            positive = "1"
            rows = "clip"
            [data.numeric]
            x = [-1, 1]
            y = [-1, 1]
            z = [-1, 1]
            [data.split]
            method = "column"
            name = "site"
            [network]
            nodes = 4
            edges = [{}]
            [problem]
            count = "parties"
            weight = {}
            ridge = {}
            [algorithm]
            name = {}
            iterations = {}
            penalty = {}
            damping = {}
            tolerance = 1e-12
            "#,
            edges.join(", "),
            golden["C"],
            golden["rho"],
            case["algorithm"],
            case["iterations"],
            schedule(&case["eta"]),
            schedule(&case["gamma"]),
        );
        fs::write(folder.path().join("study.toml"), &study).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_radmm"))
            .args(["run", "study.toml", "--json", "--quiet"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = |list: &Value, key: &str| -> Value {
            list.as_array()
                .unwrap()
                .iter()
                .map(|item| item[key].clone())
                .collect()
        };
        assert_close(&of(&result["iterations"], "loss"), &case["loss"], "losses");
        let last = case["models"].as_array().unwrap().last().unwrap();
        assert_close(&of(&result["nodes"], "model"), last, "models");
        assert_close(&of(&result["nodes"], "dual"), &case["dual"], "duals");
    }
}
