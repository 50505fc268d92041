//! `radmm plan`, as a user runs it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/small_study.rs"]
mod small_study;
mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;

use small_study::folder;
use support::{radmm, text};

/// A study with everything but columns, parties and a total left to public rules.
const STUDY: &str = r#"
name = "visits"
[data]
path = "rows.csv"
label = "outcome"
positive = "yes"
[data.numeric]
age = { bounds = [0, 90], bins = 9 }
[data.categorical]
sex = ["f", "m"]
[network]
nodes = 3
[privacy]
epsilon = 0.7
delta = 1e-6
[run]
seed = 1
"#;

fn plan(folder: &Path, args: &[&str]) -> Value {
    let output = radmm(folder, &[&["plan", "--json", "-q"], args].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn numbers(plan: &Value, of: impl Fn(&Value) -> &Value) -> Vec<f64> {
    let all = plan["epsilons"].as_array().unwrap().iter();
    all.map(|one| of(one).as_f64().unwrap()).collect()
}

#[test]
fn without_a_study_rows_and_columns_are_enough() {
    let here = Path::new(".");
    let args = ["plan", "--rows", "5000,800,1200", "--columns", "60"];
    let output = radmm(here, &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in [
        "3 parties by consensus",
        "7,000 rows of 60 columns",
        "every ε is the total over every message of the whole run, at δ =",
        "1e-6, for one row of one party replaced",
        "synthetic populations drawn from the schema",
    ] {
        assert!(shown.contains(part), "{part} is missing:\n{shown}");
    }
    assert!(
        shown.lines().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
    let json = plan(here, &args[1..]);
    let epsilons = numbers(&json, |one| &one["epsilon"]);
    assert_eq!(epsilons, [0.25, 0.5, 1.0, 2.0, 4.0]);
    let shares = numbers(&json, |one| &one["share"]["mean"]);
    assert!(shares.is_sorted_by(|a, b| a < b), "{shares:?}");
    assert!(shares[2] > 0.7, "{shares:?}");
    for k in 0..3 {
        let rows = numbers(&json, |one| &one["rows_needed"][k]["rows"]);
        assert!(rows.is_sorted_by(|a, b| a > b), "{rows:?}");
    }
    assert_eq!(
        (&json["columns"], &json["delta"]),
        (&60.into(), &1e-6.into())
    );
    assert_eq!(json["relation"], "one row of one party replaced");
}

#[test]
fn a_study_is_planned_without_its_rows_if_their_number_is_given() {
    let folder = folder(STUDY);
    fs::remove_file(folder.path().join("rows.csv")).unwrap();
    let each = plan(folder.path(), &["study.toml", "--rows", "300,200,100"]);
    assert_eq!((&each["rows"], &each["columns"]), (&600.into(), &11.into()));
    let epsilons = numbers(&each, |one| &one["epsilon"]);
    assert_eq!(
        epsilons,
        [0.25, 0.5, 0.7, 1.0, 2.0, 4.0],
        "with the study's own"
    );
    assert_eq!(each["own_epsilon"], 0.7);
    let all = plan(
        folder.path(),
        &["study.toml", "--rows", "200", "--epsilon", "1"],
    );
    assert_eq!(all["rows"], 600);
    assert_eq!(numbers(&all, |one| &one["epsilon"]), [1.0]);
}

#[test]
fn the_studys_rows_are_counted_and_nothing_else() {
    let folder = folder(STUDY);
    let counted = radmm(folder.path(), &["plan", "study.toml", "--json"]);
    assert!(
        text(&counted.stderr).contains("rows were counted, and nothing else about them is used")
    );
    // Other rows, as many as before, give the same plan to the bit.
    let rows = fs::read_to_string(folder.path().join("rows.csv")).unwrap();
    let other = rows
        .replace(",m,", ",f,")
        .replace(",yes", ",nope")
        .replace(",no\n", ",yes\n");
    assert_ne!(rows, other);
    fs::write(folder.path().join("rows.csv"), other).unwrap();
    let again = radmm(
        folder.path(),
        &["plan", "study.toml", "--json", "--threads", "1"],
    );
    assert_eq!(text(&counted.stdout), text(&again.stdout));
    let json: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(json["rows"], 60);
}

#[test]
fn public_rows_of_the_same_kind_take_the_place_of_drawn_ones() {
    let folder = folder(STUDY);
    let mut public = "age,sex,outcome\n".to_owned();
    for n in 0..3000 {
        let age = (n * 37) % 90;
        let outcome = if age + (n * 7) % 20 > 60 { "yes" } else { "no" };
        public += &format!("{age},{},{outcome}\n", if n % 2 == 0 { "f" } else { "m" });
    }
    fs::write(folder.path().join("public.csv"), public).unwrap();
    let args = ["study.toml", "--rows", "700", "--like", "public.csv"];
    let like = plan(folder.path(), &args);
    assert_eq!(
        (&like["source_rows"], &like["different_rows"]),
        (&3000.into(), &2100.into())
    );
    assert!(like["no_noise"].as_f64().unwrap() > 0.9, "{like}");
    let shares = numbers(&like, |one| &one["share"]["mean"]);
    assert!(shares.last().unwrap() > &0.8, "{shares:?}");
    let output = radmm(folder.path(), &[&["plan", "-q"], &args[..]].concat());
    assert!(text(&output.stdout).contains("3,000 public rows of the same kind"));
}

#[test]
fn nothing_to_expect_is_said_plainly_with_what_would_help() {
    let args = [
        "plan",
        "-q",
        "--rows",
        "60,60",
        "--columns",
        "60",
        "--epsilon",
        "0.01",
    ];
    let shown = radmm(Path::new("."), &args).stdout;
    let shown = text(&shown).replace("\n         ", " ");
    assert!(
        shown.contains(
            "With 120 rows nothing better than the majority class is to be expected at any of these ε. More rows, a larger ε or fewer \
             columns would help."
        ),
        "{shown}"
    );
}

#[test]
fn out_writes_a_page_with_the_numbers_of_the_terminal() {
    let folder = folder(STUDY);
    let args = [
        "plan",
        "study.toml",
        "--rows",
        "900",
        "--epsilon",
        "1,2",
        "--out",
        "made",
    ];
    let output = radmm(folder.path(), &args);
    assert!(text(&output.stderr).contains("wrote made/plan.html"));
    for file in ["plan.html", "plan.json", "plan.svg", "plan.csv"] {
        assert!(folder.path().join("made").join(file).is_file(), "{file}");
    }
    let page = fs::read_to_string(folder.path().join("made/plan.html")).unwrap();
    let rows = text(&output.stdout)
        .lines()
        .skip_while(|line| !line.contains('─'));
    for line in rows.skip(1).take(2) {
        for cell in line
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
        {
            assert!(page.contains(&format!(">{cell}</td>")), "{cell} of {line}");
        }
    }
    for part in [
        "<svg",
        "for one row of one party replaced",
        "the whole run, at δ = 1e-6",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<script"));
}

#[test]
fn a_pure_total_is_planned_for_with_delta_zero() {
    let folder = folder(&STUDY.replace("delta = 1e-6\n", ""));
    let args = ["study.toml", "--rows", "2000", "--epsilon", "1,4"];
    let json = plan(folder.path(), &args);
    assert_eq!(json["delta"], 0.0);
    let wrong = radmm(folder.path(), &["plan", "study.toml", "--delta", "1e-5"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("--delta: the study's noise is pure"));
}

#[test]
fn wrong_use_has_exit_code_2() {
    let folder = folder(STUDY);
    for (args, message) in [
        (&["plan"][..], "give a study file, or --rows and --columns"),
        (
            &["plan", "--rows", "500", "--columns", "60"],
            "at least two parties",
        ),
        (&["plan", "--columns", "60"], "at least two parties"),
        (
            &["plan", "study.toml", "--columns", "60"],
            "cannot be used with",
        ),
        (
            &[
                "plan",
                "--rows",
                "9,9",
                "--columns",
                "6",
                "--like",
                "rows.csv",
            ],
            "cannot be used with",
        ),
        (
            &["plan", "study.toml", "--rows", "10,20"],
            "2 sizes for 3 parties",
        ),
        (
            &["plan", "study.toml", "--epsilon", "0"],
            "positive, finite",
        ),
        (
            &["plan", "study.toml", "--like", "nowhere.csv"],
            "nowhere.csv",
        ),
        (
            &["plan", "study.toml", "--like", "rows.csv"],
            "60 complete rows",
        ),
        (&["plan", "nowhere.toml"], "nowhere.toml"),
    ] {
        let output = radmm(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            text(&output.stderr).contains(message),
            "{args:?}: {}",
            text(&output.stderr)
        );
    }
}
