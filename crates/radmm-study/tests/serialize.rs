//! A serialised study has the sections and keys of its file, with the defaults filled in.

use radmm_study::Study;
use serde_json::{Value, json};

const EXAMPLE: &str = include_str!("example.toml");

fn parse(text: &str) -> Study {
    match Study::parse(text, "study.toml") {
        Ok((study, _)) => study,
        Err(error) => panic!("{error} in\n{text}"),
    }
}

fn serialised(text: &str) -> Value {
    serde_json::to_value(parse(text)).expect("no map has keys other than strings")
}

/// JSON as TOML: all tables inline.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(toml).collect();
            format!("[{}]", elements.join(", "))
        }
        Value::Object(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(k, v)| format!("{k:?} = {}", toml(v)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

#[test]
fn the_example_has_the_keys_of_its_file() {
    let study = serialised(EXAMPLE);
    let sections: Vec<&String> = study.as_object().unwrap().keys().collect();
    assert_eq!(
        sections,
        [
            "name",
            "data",
            "network",
            "problem",
            "algorithm",
            "privacy",
            "run"
        ]
    );
    assert_eq!(
        study["data"],
        json!({
            "path": "rows.csv",
            "format": "csv",
            "label": "outcome",
            "positive": "yes",
            "missing": ["?", ""],
            "rows": "unit",
            "intercept": false,
            "numeric": { "age": [0.0, 90.0], "hours per week": [1.0, 99.0] },
            "categorical": {
                "sex": ["Female", "Male"],
                "clinic": ["north", "south", "east", "west", "centre"],
            },
            "split": { "method": "shuffled", "seed": 7 },
        })
    );
    assert_eq!(
        study["network"],
        json!({ "nodes": 5, "topology": "random", "probability": 0.6, "seed": 3 })
    );
    assert_eq!(
        study["problem"],
        json!({ "loss": "logistic", "count": "rows", "weight": 1750.0, "ridge": 0.00316 })
    );
    assert_eq!(
        study["algorithm"],
        json!({
            "name": "r-admm",
            "penalty": 0.5,
            "damping": { "start": 1.0, "growth": 1.01 },
            "recycle": 1,
            "iterations": 100,
            "start": "zeros",
            "tolerance": 1e-10,
        })
    );
    assert_eq!(
        study["privacy"],
        json!({
            "mechanism": "objective",
            "noise": "gamma",
            "rate": 2.0,
            "scale": "fixed",
            "bound": "tight",
            "precision": "grid",
        })
    );
    assert_eq!(study["run"], json!({ "repetitions": 10, "seed": 1 }));
}

#[test]
fn the_schema_of_a_built_in_table_is_written_out() {
    let text = r#"
        [data]
        builtin = "adult"
        [data.test]
        last = 15060
        [network]
        nodes = 5
        topology = "ring"
        [problem]
        weight = 1750
        ridge = 0.003
        [algorithm]
        name = "local"
        iterations = 1
    "#;
    returns(text);
    let data = &serialised(text)["data"];
    assert_eq!(data["label"], "income");
    assert_eq!(data["positive"], ">50K");
    assert_eq!(data["missing"], json!(["?"]));
    assert_eq!(data["numeric"]["capital-loss"], json!([0.0, 4356.0]));
    assert_eq!(data["categorical"]["sex"], json!(["Female", "Male"]));
    assert_eq!(data["test"], json!({ "last": 15060 }));
}

#[test]
fn bins_are_written_as_edges() {
    let text = EXAMPLE.replace("age = [0, 90]", "age = { bounds = [0, 90], bins = 3 }");
    let numeric = &serialised(&text)["data"]["numeric"];
    assert_eq!(numeric["age"], json!({ "bins": [30.0, 60.0] }));
}

#[test]
fn a_penalty_is_written_once_if_all_nodes_share_it() {
    let penalty = |penalty: &str| {
        let text = EXAMPLE
            .replace("r-admm", "m-admm")
            .replace("penalty = 0.5", penalty);
        serialised(&text)["algorithm"]["penalty"].clone()
    };
    assert_eq!(penalty("penalty = 0.5"), json!(0.5));
    assert_eq!(
        penalty("penalty = [1, 1, 1, 1, 2]"),
        json!([1.0, 1.0, 1.0, 1.0, 2.0])
    );
}

#[test]
fn a_study_written_as_toml_parses_to_the_same_study() {
    let changes = [
        ("", ""),
        ("path = \"rows.csv\"", "builtin = \"clinic\""),
        ("age = [0, 90]", "age = { bins = [25, 35.5] }"),
        ("age = [0, 90]", "age = { bounds = [0, 1], bins = 3 }"),
        (
            "age = [0, 90]",
            "age = { bins = [25], missing = \"category\", other = \"missing\" }",
        ),
        (
            "age = [0, 90]",
            "age = { bounds = [0, 90], missing = \"category\" }",
        ),
        (
            "age = [0, 90]",
            "age = { bounds = [1920-01-01, 2020-12-31], splines = 8, missing = \"category\" }",
        ),
        (
            "age = [0, 90]",
            "age = { bounds = [1920-01-01, 2020-12-31] }",
        ),
        (
            "age = [0, 90]",
            "age = { bounds = [1920-01-01, 2020-12-31], bins = 7 }",
        ),
        (
            "age = [0, 90]",
            "age = { bins = [1920-01-01, 2020-12-31], other = \"missing\" }",
        ),
        ("[\"Female\", \"Male\"]", "[false, true]"),
        (
            "[\"Female\", \"Male\"]",
            "{ values = [true, false], missing = \"category\" }",
        ),
        (
            "[\"Female\", \"Male\"]",
            "{ values = [\"Female\"], other = \"missing\" }",
        ),
        ("[data.split]", "[data.test]\nlast = 9\n[data.split]"),
        (
            "[data.split]",
            "[data.test]\nshare = 0.1\nseed = 2\n[data.split]",
        ),
        (
            "[data.split]",
            "[data.test]\npath = \"test.csv\"\n[data.split]",
        ),
        (
            "[data.split]",
            "[data.test]\npath = \"test.csv\"\nformat = \"parquet\"\n[data.split]",
        ),
        ("path = \"rows.csv\"", "path = \"rows.parquet\""),
        ("path = \"rows.csv\"", "path = \"a\"\nformat = \"parquet\""),
        ("path = \"rows.csv\"", "path = \"rows/\""),
        (
            "path = \"rows.csv\"",
            "path = \"rows.txt\"\nseparator = \"\\t\"\ndecimal = \",\"",
        ),
        (
            "[data.split]",
            "[data.test]\npath = \"test.csv\"\nseparator = \";\"\ndecimal = \",\"\n[data.split]",
        ),
        ("\"shuffled\"", "\"round-robin\""),
        ("\"shuffled\"", "\"sizes\"\nsizes = [5, 4, 3, 2, 1.5]"),
        ("\"shuffled\"", "\"column\"\nname = \"clinic\""),
        ("\"shuffled\"", "\"dirichlet\"\nalpha = 0.3"),
        ("\"random\"", "\"ring\""),
        ("\"random\"", "\"path\""),
        ("\"random\"", "\"star\""),
        ("\"random\"", "\"complete\""),
        ("\"random\"", "\"grid\"\nwidth = 5"),
        ("\"random\"", "\"random-regular\"\ndegree = 2"),
        ("\"random\"", "\"small-world\"\ndegree = 2\nrewire = 0.1"),
        ("topology = \"random\"", "edges = [[0, 1], [1, 2]]"),
        ("\"logistic\"", "\"smooth-hinge\""),
        ("\"r-admm\"", "\"admm\""),
        ("\"r-admm\"", "\"m-admm\""),
        ("\"r-admm\"", "\"mr-admm\"\nrecycle = 2\ndual_step = 0.1 #"),
        ("\"r-admm\"", "\"local\""),
        ("\"r-admm\"", "\"average\""),
        ("\"zeros\"", "{ normal = 0.1 }"),
        ("\"objective\"", "\"none\""),
        ("\"objective\"", "\"output\""),
        ("\"fixed\"", "\"penalty\""),
        ("\"tight\"", "\"paper\""),
        ("\"gamma\"", "\"laplace\""),
        (
            "noise = \"gamma\"\nrate = 2.0",
            "noise = \"laplace\"\nepsilon = 0.5",
        ),
        ("\"gamma\"", "\"gaussian\"\nsigma = 2\ndelta = 1e-6"),
        ("rate = 2.0", "epsilon = 0.5"),
        ("noise = \"gamma\"\nrate = 2.0", "epsilon = 1\ndelta = 1e-6"),
    ];
    for (old, new) in changes {
        assert!(EXAMPLE.contains(old), "{old}");
        // The example has a `recycle` of its own.
        let text = EXAMPLE.replace("recycle = 1\n", "").replacen(old, new, 1);
        returns(&text);
    }
    let end = EXAMPLE.split("[network]").nth(1).expect("a network");
    let libsvm = "path = \"a9a.svm\"\npositive = \"+1\"\ncolumns = 123";
    returns(&format!("[data]\n{libsvm}\n[network]{end}"));
    returns(&format!("[data]\n{libsvm}\nnonzeros = 14\n[network]{end}"));
    let gradient = EXAMPLE.replace("\"objective\"", "\"gradient\"");
    returns(&gradient.replace("r-admm", "dlm"));
    returns(&gradient.replace("r-admm", "r-dlm"));
    for step in [
        "0.1",
        "{ start = 1, growth = 0.99 }",
        "{ start = 1, power = 0.5 }",
    ] {
        returns(&gradient.replace("\"r-admm\"", &format!("\"dgd\"\nstep = {step}")));
    }
}

fn returns(text: &str) {
    let Value::Object(sections) = serialised(text) else {
        panic!("not a table");
    };
    let lines = sections
        .iter()
        .map(|(key, value)| format!("{key} = {}\n", toml(value)));
    let written: String = lines.collect();
    // What was chosen stands in the file now, and is no choice any more.
    let without_choices = |text: &str| radmm_study::Study {
        choices: Vec::new(),
        ..parse(text)
    };
    assert_eq!(
        without_choices(&written),
        without_choices(text),
        "written as\n{written}"
    );
}
