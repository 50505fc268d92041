//! `radmm run`, as a user runs it: errors, notes and warnings.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/small_study.rs"]
mod small_study;
mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;

use small_study::{STUDY, folder, rows};
use support::{radmm, text};

/// Runs a command that fails, and returns stderr and the exit code.
fn error_of(folder: &Path, args: &[&str]) -> (String, i32) {
    let output = radmm(folder, args);
    assert_eq!(text(&output.stdout), "", "a failure has no data");
    (
        text(&output.stderr).to_owned(),
        output.status.code().unwrap(),
    )
}

#[test]
fn notes_go_to_stderr_and_quiet_silences_them() {
    let folder = folder(&STUDY.replace("\"r-admm\"", "\"admm\""));
    let loud = radmm(folder.path(), &["run", "study.toml", "--json"]);
    assert!(
        text(&loud.stderr).contains("note: study.toml:22: [algorithm] damping is not used by admm")
    );
    let quiet = radmm(folder.path(), &["run", "study.toml", "--json", "--quiet"]);
    assert_eq!(text(&quiet.stderr), "");
    assert_eq!(loud.stdout, quiet.stdout);
}

#[test]
fn more_than_a_tenth_of_dropped_rows_are_a_warning_that_names_their_columns() {
    let folder = folder(STUDY);
    let path = folder.path().join("rows.csv");
    let run = |lacking: usize| {
        // The last one lacks its sex, too.
        let more = "?,f,no\n".repeat(lacking) + "?,?,no\n";
        fs::write(&path, rows() + &more).unwrap();
        let output = radmm(folder.path(), &["run", "study.toml"]);
        assert!(output.status.success());
        text(&output.stderr).to_owned()
    };
    assert!(!run(4).contains("are dropped"));
    let said = run(5);
    let expected = "warning: 7 of 67 rows (10.4 %) are dropped, since they lack a value: \"age\" in 7, \"sex\" in 1; missing = \"category\" \
                    for a feature keeps such rows, as in age = { bounds = [0, 90], missing = \"category\" }\n";
    assert!(said.contains(expected), "{said}");
    let study = STUDY.replace(
        "age = [0, 90]",
        "age = { bounds = [0, 90], missing = \"category\" }",
    );
    fs::write(folder.path().join("study.toml"), study).unwrap();
    assert!(!run(5).contains("are dropped"));
}

#[test]
fn a_mistake_in_the_study_is_wrong_use() {
    let folder = folder(&STUDY.replace("penalty", "penalti"));
    let (said, code) = error_of(folder.path(), &["run", "study.toml"]);
    assert_eq!(
        said,
        "error: study.toml:21: [algorithm] unknown key \"penalti\": did you mean \"penalty\"?\n"
    );
    assert_eq!(code, 2);
}

#[test]
fn a_disconnected_graph_is_reported_with_its_components() {
    let study = STUDY.replace("topology = \"ring\"", "edges = [[0, 1]]");
    let (said, code) = error_of(folder(&study).path(), &["run", "study.toml"]);
    assert!(
        said.starts_with(
            "error: study.toml: [network] the edges leave 2 separate components: {0, 1} and {2}"
        ),
        "{said}"
    );
    assert_eq!(code, 2);
}

#[test]
fn a_missing_study_or_table_is_reported_with_its_file() {
    let folder = folder(&STUDY.replace("rows.csv", "elsewhere.csv"));
    let (said, code) = error_of(folder.path(), &["run", "nowhere.toml"]);
    assert!(said.starts_with("error: nowhere.toml: "), "{said}");
    assert_eq!(code, 2);
    let (said, code) = error_of(folder.path(), &["run", "study.toml"]);
    assert!(said.starts_with("error: elsewhere.csv: "), "{said}");
    assert_eq!(code, 2);
}

#[test]
fn paths_are_relative_to_the_study_file() {
    let folder = folder(STUDY);
    let study = folder.path().join("study.toml");
    let output = radmm(Path::new("/"), &["run", study.to_str().unwrap(), "-q"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn invalid_rows_are_reported_with_file_line_column_and_value() {
    for (row, expected) in [
        (
            "x,f,yes",
            "rows.csv:63: column \"age\": invalid number \"x\"",
        ),
        (
            "nan,f,yes",
            "rows.csv:63: column \"age\": invalid number \"nan\"",
        ),
        ("30,d,yes", "rows.csv:63: column \"sex\": \"d\""),
        ("30,f", "rows.csv:63: "),
    ] {
        let folder = folder(STUDY);
        fs::write(folder.path().join("rows.csv"), format!("{}{row}\n", rows())).unwrap();
        let (said, code) = error_of(folder.path(), &["run", "study.toml"]);
        assert!(said.starts_with(&format!("error: {expected}")), "{said}");
        assert_eq!(code, 1);
    }
    let folder = folder(STUDY);
    fs::write(folder.path().join("rows.csv"), "").unwrap();
    let (said, code) = error_of(folder.path(), &["run", "study.toml"]);
    assert!(said.starts_with("error: rows.csv"), "{said}");
    assert_eq!(code, 1);
}

#[test]
fn wrong_options_have_exit_code_2() {
    for args in [
        &["run", "--limit", "-1"][..],
        &["run", "--limit", "nan"],
        &["run", "--limit", "inf"],
        &["run", "--threads", "0"],
        &["run", "--colour"],
        &["walk"],
        &[],
    ] {
        let output = radmm(Path::new("."), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_diverging_run_is_an_error_and_no_panic() {
    let study = STUDY
        .replace("name = \"r-admm\"", "name = \"dgd\"\nstep = 1e200")
        .replace("objective", "none");
    let folder = folder(&study);
    let output = radmm(folder.path(), &["run", "study.toml", "-q"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("the algorithm diverges (lower the step"),
        "{said}"
    );
}

#[test]
fn an_unattainable_tolerance_is_rejected_with_the_least_valid_one() {
    let folder = folder(&STUDY.replace("penalty", "tolerance = 1e-300\npenalty"));
    let (said, code) = error_of(folder.path(), &["run", "study.toml"]);
    assert!(
        said.contains("[algorithm] tolerance = 1e-300: must be at least 2.2e-15"),
        "{said}"
    );
    assert_eq!(code, 2);
}

#[test]
fn likely_mistakes_are_noted() {
    let slips = [
        (
            STUDY.to_owned(),
            rows().replace("no\n", "No\n").replacen("No\n", "no\n", 5),
            "note: column \"outcome\" has more than two values (\"no\", \"yes\", \"No\", …): all but \"yes\" count as negative",
        ),
        (
            STUDY.replace("age = [0, 90]", "age = [0, 1]"),
            rows(),
            "note: column \"age\": 60 of 60 values are outside the bounds in [data.numeric] and were clipped",
        ),
        (
            STUDY.replace("rate = 2.0", "noise = \"gaussian\"\nsigma = 2\ndelta = 0.5"),
            rows(),
            "note: delta = 0.5 is not small: ",
        ),
    ];
    for (study, rows, note) in slips {
        let folder = folder(&study);
        fs::write(folder.path().join("rows.csv"), rows).unwrap();
        let output = radmm(folder.path(), &["run", "study.toml", "--json"]);
        assert!(output.status.success());
        assert!(
            text(&output.stderr).contains(note),
            "{}",
            text(&output.stderr)
        );
    }
    // With less noise than drowns the signal.
    let clean = folder(&STUDY.replace("rate = 2.0", "rate = 4.0"));
    assert_eq!(
        text(&radmm(clean.path(), &["run", "study.toml"]).stderr),
        ""
    );
}

#[test]
fn an_out_that_is_a_file_or_a_study_that_is_not_text_is_an_error() {
    let folder = folder(STUDY);
    let (said, code) = error_of(folder.path(), &["run", "study.toml", "--out", "rows.csv"]);
    assert!(
        said.contains("rows.csv: it is a file, not a folder"),
        "{said}"
    );
    assert_eq!(code, 1);
    fs::write(folder.path().join("study.toml"), b"\xff\xfen\0a\0").unwrap();
    let (said, code) = error_of(folder.path(), &["run", "study.toml"]);
    assert!(
        said.contains("study.toml: it is not text in UTF-8; save it as UTF-8"),
        "{said}"
    );
    assert_eq!(code, 2);
}

#[test]
fn semicolons_instead_of_commas_are_recognised() {
    let folder = folder(STUDY);
    fs::write(folder.path().join("rows.csv"), rows().replace(',', ";")).unwrap();
    let (said, code) = error_of(folder.path(), &["run", "study.toml"]);
    assert!(
        said.contains("seem to be separated by semicolons; set separator = \";\""),
        "{said}"
    );
    assert_eq!(code, 1);
}

#[test]
fn noise_that_overflows_releases_nothing() {
    // A valid rate times a valid penalty: the square overflows.
    for rate in ["1e-80", "1e-100"] {
        let noisy = format!("rate = {rate}\nscale = \"penalty\"");
        let study = STUDY.replace("rate = 2.0", &noisy);
        let folder = folder(&study.replace("penalty = 0.5", "penalty = 1e80"));
        let output = radmm(folder.path(), &["run", "study.toml", "-q", "--json"]);
        assert_eq!(output.status.code(), Some(1), "{rate}");
        let said = text(&output.stderr);
        assert!(said.contains("add less noise"), "{said}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["iterations"].as_array().unwrap().len(), 1, "{rate}");
    }
}

#[test]
fn releases_in_doubles_are_rejected() {
    let folder = folder(&STUDY.replace("[privacy]", "[privacy]\nprecision = \"float\""));
    let (message, code) = error_of(folder.path(), &["run", "study.toml"]);
    assert!(
        message.contains("releases in doubles are no longer supported"),
        "{message}"
    );
    assert_eq!(code, 2);
}

#[test]
fn another_study_does_not_overwrite_results() {
    let folder = folder(STUDY);
    let run = ["run", "study.toml", "--out", "results", "--quiet"];
    assert!(radmm(folder.path(), &run).status.success());
    let before = fs::read(folder.path().join("results/result.json")).unwrap();
    // The same study may be run again.
    assert!(radmm(folder.path(), &run).status.success());
    let other = STUDY.replace("seed = 1", "seed = 2");
    fs::write(folder.path().join("study.toml"), other).unwrap();
    let (said, code) = error_of(folder.path(), &run);
    assert_eq!(
        (said.as_str(), code),
        (
            "error: results: this folder holds the results of study small, which would be overwritten; choose another folder for --out, or move them\n",
            2
        )
    );
    assert_eq!(
        fs::read(folder.path().join("results/result.json")).unwrap(),
        before
    );
}

#[test]
fn a_run_that_ends_early_leaves_no_empty_folder() {
    let folder = folder(STUDY);
    fs::remove_file(folder.path().join("rows.csv")).unwrap();
    let run = ["run", "study.toml", "--out", "new/results"];
    let (said, _) = error_of(folder.path(), &run);
    assert!(said.contains("rows.csv"), "{said}");
    assert!(!folder.path().join("new").exists());
    // A folder that cannot be made is noticed before the rows are.
    fs::write(folder.path().join("new"), "").unwrap();
    let (said, code) = error_of(folder.path(), &run);
    assert!(said.starts_with("error: new/results: "), "{said}");
    assert_eq!(code, 1);
}
