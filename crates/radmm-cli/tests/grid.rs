//! `radmm compare --grid`, as a user runs it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
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
epsilon = 2
delta = 1e-4
[run]
repetitions = 3
seed = 1
"#;

/// Returns a folder with `a.toml`, the study above.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.toml"), STUDY).unwrap();
    folder
}

/// Returns the JSON of a comparison, without the times.
fn compared(folder: &Path, args: &[&str]) -> Value {
    let output = radmm(folder, &[&["compare", "--json", "-q"], args].concat());
    assert!(
        output.status.success(),
        "{args:?}: {}",
        text(&output.stderr)
    );
    let mut value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let forget = |result: &mut Value| {
        for one in result["contenders"].as_array_mut().unwrap() {
            one["seconds"] = Value::Null;
        }
    };
    match value.get_mut("totals") {
        Some(totals) => totals.as_array_mut().unwrap().iter_mut().for_each(forget),
        None => forget(&mut value),
    }
    value
}

fn names(result: &Value) -> Vec<&str> {
    let all = result["contenders"].as_array().unwrap();
    all.iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect()
}

#[test]
fn a_grid_is_a_comparison_of_studies_with_these_keys() {
    let folder = folder();
    for penalty in ["1", "3"] {
        let study = STUDY.replace("penalty = 3", &format!("penalty = {penalty}"));
        let named = format!("name = \"penalty={penalty}\"\n{study}");
        fs::write(folder.path().join(format!("{penalty}.toml")), named).unwrap();
    }
    let mut grid = compared(
        folder.path(),
        &["a.toml", "--grid", "algorithm.penalty=1,3"],
    );
    assert_eq!(grid["combinations"], 2);
    assert_eq!(
        grid["grid"],
        json!([{ "key": "algorithm.penalty", "values": ["1", "3"] }])
    );
    assert_eq!(
        grid["cells"],
        json!({ "penalty=1": { "algorithm.penalty": "1" }, "penalty=3": { "algorithm.penalty": "3" } })
    );
    let totals = grid["totals"].as_array_mut().unwrap();
    assert_eq!(totals.len(), 1);
    totals[0]
        .as_object_mut()
        .unwrap()
        .shift_remove("best")
        .unwrap();
    assert_eq!(totals[0], compared(folder.path(), &["1.toml", "3.toml"]));
}

#[test]
fn over_the_total_there_is_a_comparison_at_each_total_with_baselines_once() {
    let folder = folder();
    let mut grid = compared(
        folder.path(),
        &[
            "a.toml",
            "--grid",
            "algorithm.penalty=1,3",
            "--grid",
            "privacy.epsilon=0.5,2",
            "--with",
            "pvp",
        ],
    );
    assert_eq!(grid["combinations"], 4);
    for (total, epsilon) in grid["totals"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .zip(["0.5", "2"])
    {
        let wanted: f64 = epsilon.parse().unwrap();
        assert_eq!(total["epsilon"], wanted);
        assert_eq!(
            names(total),
            [
                "penalty=1",
                "penalty=3",
                "pvp",
                "each party alone",
                "averaged once"
            ]
        );
        for one in total["contenders"].as_array().unwrap() {
            let spent = one["epsilon"].as_f64().unwrap();
            assert!((spent / wanted - 1.0).abs() < 1e-6, "{spent}");
        }
        // It is what the comparison at this total shows.
        let args = [
            "a.toml",
            "--grid",
            "algorithm.penalty=1,3",
            "--with",
            "pvp",
            "--epsilon",
            epsilon,
        ];
        assert_eq!(total, &mut compared(folder.path(), &args)["totals"][0]);
    }
    // Also over δ alone.
    let grid = compared(
        folder.path(),
        &["a.toml", "--grid", "privacy.delta=1e-5,1e-4"],
    );
    let deltas: Vec<&Value> = grid["totals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|total| &total["delta"])
        .collect();
    assert_eq!(deltas, [&json!(1e-5), &json!(1e-4)]);
    assert_eq!(
        names(&grid["totals"][0]),
        ["a", "each party alone", "averaged once"]
    );
}

#[test]
fn the_best_combination_is_marked_with_its_standard_error_and_the_price_of_the_choice_is_named() {
    let folder = folder();
    let args = ["a.toml", "--grid", "algorithm.penalty=0.3,1,3"];
    let grid = compared(folder.path(), &args);
    let total = &grid["totals"][0];
    let accuracy = |name: &str| {
        let mut all = total["contenders"].as_array().unwrap().iter();
        let accuracy = &all.find(|one| one["name"] == name).unwrap()["held_out"]["accuracy"];
        ["mean", "deviation"].map(|of| accuracy[of].as_f64().unwrap())
    };
    let combinations = ["penalty=0.3", "penalty=1", "penalty=3"];
    let best = combinations
        .into_iter()
        .max_by(|a, b| accuracy(a)[0].total_cmp(&accuracy(b)[0]))
        .unwrap();
    assert_eq!(total["best"]["name"], best);
    assert_eq!(total["best"]["accuracy"], accuracy(best)[0]);
    let error = accuracy(best)[1] / 3f64.sqrt();
    assert!((total["best"]["standard_error"].as_f64().unwrap() - error).abs() < 1e-15);
    let mut as_good: Vec<&str> = total["best"]["as_good"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    as_good.sort_unstable();
    let near = |name: &&str| {
        let [[high, one], [low, other]] = [accuracy(best), accuracy(name)];
        *name != best && high - low <= 2.0 * ((one * one + other * other) / 3.0).sqrt()
    };
    assert_eq!(
        as_good,
        combinations.into_iter().filter(near).collect::<Vec<_>>()
    );
    assert!(!as_good.is_empty(), "the test needs one that is as good");

    let output = radmm(folder.path(), &[&["compare", "-q"], &args[..]].concat());
    let shown = text(&output.stdout);
    assert!(shown.contains(&format!("\n {best} *  ")), "{shown}");
    let line = shown
        .lines()
        .find(|line| line.starts_with(" * best  "))
        .unwrap();
    assert!(
        line.contains("with a standard error of ") && line.contains(" %"),
        "{line}"
    );
    let text: Vec<&str> = shown.split_whitespace().collect();
    assert!(
        text.join(" ").contains(
            "tuning the best of 3 combinations is chosen by what all of them show on these rows: that is tuning, whose price is in no \
             ε here. Between real parties each of them would be charged in full. What is chosen for its accuracy is on average less \
             accurate on new rows. Where rows are to be protected, choose on public ones, or leave the keys to the rules"
        ),
        "{shown}"
    );
    assert_eq!(
        text.join(" ")
            .matches("3 combinations of 1 study at equal total privacy")
            .count(),
        1
    );
    // A single run has no standard error, and a single combination is no choice.
    let grid = compared(
        folder.path(),
        &[&args[..], &["--repetitions", "1"]].concat(),
    );
    assert_eq!(grid["totals"][0]["best"]["standard_error"], Value::Null);
    assert_eq!(grid["totals"][0]["best"]["as_good"], json!([]));
    let output = radmm(
        folder.path(),
        &[
            "compare",
            "-q",
            "a.toml",
            "--grid",
            "algorithm.penalty=1",
            "--repetitions",
            "1",
        ],
    );
    let shown = support::text(&output.stdout);
    assert!(
        shown.contains("in a single run; --repetitions tells its standard error"),
        "{shown}"
    );
    assert!(!shown.contains("tuning"), "{shown}");
}

#[test]
fn combinations_that_are_the_same_study_are_one() {
    let folder = folder();
    let grid = compared(
        folder.path(),
        &[
            "a.toml",
            "--grid",
            "algorithm.name=r-admm,admm",
            "--grid",
            "algorithm.damping=1,2",
        ],
    );
    // admm has no damping.
    assert_eq!(grid["combinations"], 3);
    assert_eq!(
        names(&grid["totals"][0]),
        [
            "name=r-admm, damping=1",
            "name=r-admm, damping=2",
            "name=admm",
            "each party alone",
            "averaged once"
        ]
    );
    assert_eq!(
        grid["cells"]["name=admm"],
        json!({ "algorithm.name": "\"admm\"" })
    );
    // What has no effect is noted once, however many combinations have it.
    let args = [
        "compare",
        "a.toml",
        "--grid",
        "algorithm.penalty=1,2,3",
        "--grid",
        "algorithm.step=1,2",
    ];
    let output = radmm(folder.path(), &args);
    assert_eq!(
        text(&output.stderr),
        "note: --grid algorithm.step=1: [algorithm] step is not used by r-admm\n\
         note: --grid algorithm.step=2: [algorithm] step is not used by r-admm\n"
    );
    assert!(text(&output.stdout).starts_with("3 combinations of 1 study"));
}

#[test]
fn several_studies_are_compared_with_every_combination() {
    let folder = folder();
    let other = STUDY
        .replace("\"r-admm\"", "\"dgd\"\nstep = 0.01")
        .replace("\"objective\"", "\"gradient\"");
    fs::write(folder.path().join("dgd.toml"), other).unwrap();
    let grid = compared(
        folder.path(),
        &[
            "a.toml",
            "dgd.toml",
            "--grid",
            "algorithm.iterations=4,10",
            "--grid",
            "privacy.epsilon=1,2",
        ],
    );
    assert_eq!(grid["combinations"], 8);
    assert_eq!(
        names(&grid["totals"][1]),
        [
            "a, iterations=4",
            "a, iterations=10",
            "dgd, iterations=4",
            "dgd, iterations=10",
            "each party alone",
            "averaged once"
        ]
    );
}

#[test]
fn results_are_printed_in_eighty_columns_and_written_to_out() {
    let folder = folder();
    let output = radmm(
        folder.path(),
        &[
            "compare",
            "a.toml",
            "--grid",
            "algorithm.penalty=0.3,0.5,1,2,3",
            "--grid",
            "algorithm.damping=1,2",
            "--grid",
            "privacy.epsilon=0.5,2",
            "--repetitions",
            "2",
            "--out",
            "deep/er",
        ],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    for line in text(&output.stdout).lines() {
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
    let read = |name: &str| fs::read_to_string(folder.path().join("deep/er").join(name)).unwrap();
    let page = read("report.html");
    for part in [
        "20 combinations at equal privacy",
        "Accuracy at ε = 0.5000 at δ = 1e-4",
        "Cost at ε = 2.0000 at δ = 1e-4",
        "best combination at ε = 0.5000",
        "The best of 20 combinations is chosen by what all of them show on these rows",
        "Drawn are the eight most accurate.",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // No two parts of the page have the same anchor, and no panel has more lines than colours.
    for id in ["accuracy-1", "accuracy-2", "compare"] {
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
    }
    let csv = read("compare.csv");
    let mut series: Vec<(&str, &str)> = csv
        .lines()
        .skip(1)
        .filter_map(|line| line.strip_prefix("\"By iteration, ε = 0.5000 at δ = 1e-4\","))
        .map(|line| {
            (
                "",
                line.split_once("\",")
                    .map_or_else(|| line.split(',').next().unwrap(), |(name, _)| name),
            )
        })
        .collect();
    series.sort_unstable();
    series.dedup();
    assert_eq!(series.len(), 8, "{series:?}");
}

#[test]
fn wrong_grids_have_exit_code_2() {
    let folder = folder();
    let common = "studies are compared on the same rows, with the same parties, loss and seed; run each value with radmm run --set, and make one table with radmm collect";
    let noise = "compare finds the noise for a total itself; give totals, as in --grid privacy.epsilon=0.5,1,2, or run each value with radmm run --set and make one table with radmm collect";
    let error = |args: &[&str]| {
        let output = radmm(folder.path(), &[&["compare", "a.toml"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
        text(&output.stderr)
            .strip_prefix("error: ")
            .unwrap()
            .to_owned()
    };
    for (args, says) in [
        (&["--grid", "data.split.seed=1,2"][..], format!("--grid data.split.seed=1: {common}")),
        (&["--grid", "network.nodes=3,5"], format!("--grid network.nodes=3: {common}")),
        (&["--grid", "problem.loss=logistic,smooth-hinge"], format!("--grid problem.loss=logistic: {common}")),
        (&["--grid", "run.seed=1,2"], format!("--grid run.seed=1: {common}")),
        (&["--grid", "name=a,b"], format!("--grid name=a: {common}")),
        (&["--grid", "network={ nodes = 3 }"], format!("--grid network={{ nodes = 3 }}: {common}")),
        (&["--grid", "privacy.sigma=1,2"], format!("--grid privacy.sigma=1: {noise}")),
        (&["--grid", "privacy.bound=tight"], format!("--grid privacy.bound=tight: {noise}")),
        (
            &["--grid", "privacy.epsilon=1,2", "--epsilon", "1"],
            "--grid privacy.epsilon=1: --epsilon gives one value for all; keep one of the two".to_owned(),
        ),
        (
            &["--grid", "privacy.delta=1e-5,1e-4", "--delta", "1e-5"],
            "--grid privacy.delta=1e-5: --delta gives one value for all; keep one of the two".to_owned(),
        ),
        (
            &["--grid", "algorithm.penalty=1,2", "--set", "algorithm.penalty=3"],
            "--grid algorithm.penalty=1: --set algorithm.penalty=3 gives this key too; keep one of the two".to_owned(),
        ),
        (
            &["--grid", "algorithm.penalty=1,2", "--grid", "algorithm.penalty=3"],
            "--grid algorithm.penalty=3: --grid algorithm.penalty=1 gives this key too; keep one of the two".to_owned(),
        ),
        (
            &["--grid", "algorithm.penalty=1,-2"],
            "--grid algorithm.penalty=-2: [algorithm] penalty = -2: must be positive and finite".to_owned(),
        ),
        (
            &["--grid", "algorithm.penalti=1,2"],
            "--grid algorithm.penalti=1: [algorithm] unknown key \"penalti\": did you mean \"penalty\"?".to_owned(),
        ),
    ] {
        assert_eq!(error(args), says + "\n", "{args:?}");
    }
    let many: Vec<String> = (1..=32).map(|penalty| penalty.to_string()).collect();
    let many = many.join(",");
    let [penalties, dampings] = ["penalty", "damping"].map(|key| format!("algorithm.{key}={many}"));
    assert_eq!(
        error(&["--grid", &penalties, "--grid", &dampings]),
        "--grid: 1024 combinations are too many, the limit is 1000; run them with radmm run --set, and make one table with radmm collect\n"
    );
    for (grid, says) in [
        (
            "algorithm.penalty",
            "must be KEY=VALUE, such as algorithm.penalty=3",
        ),
        (
            "algorithm.penalty=1,,2",
            "must be KEY=VALUE,VALUE,…, such as algorithm.penalty=0.3,1,3",
        ),
        ("algorithm.penalty=1,1", "1 is listed twice"),
    ] {
        assert_eq!(
            error(&["--grid", grid]),
            format!(
                "invalid value '{grid}' for '--grid <KEY=V1,V2,...>': {says}\n\nFor more information, try '--help'.\n"
            )
        );
    }
}
