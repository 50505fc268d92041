//! `radmm data inspect`, as a user runs it: the draft of a data section.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;
#[path = "support/table_formats.rs"]
mod table_formats;

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use support::{radmm, text};
use table_formats::{REST, error_of, folder, inspect, run, section};

/// Returns the section drafted for a CSV file with this text.
fn section_of(csv: &str, args: &[&str]) -> String {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("rows.csv"), csv).unwrap();
    section(folder.path(), &[&["rows.csv"], args].concat())
}

#[test]
fn a_column_of_dates_gets_bounds_that_are_dates() {
    let folder = TempDir::new().unwrap();
    let rows: String = (0..60)
        .map(|n| {
            format!(
                "20{:02}-{:02}-15 08:30,{}\n",
                11 + n % 9,
                1 + n % 12,
                ["no", "yes"][n % 2]
            )
        })
        .collect();
    fs::write(
        folder.path().join("rows.csv"),
        format!("seen,ill\n{rows},no\n"),
    )
    .unwrap();
    let drafted = radmm(folder.path(), &["data", "inspect", "rows.csv"]);
    let said = text(&drafted.stdout);
    let line = "seen = { bounds = [2011-01-01, 2020-01-01], splines = 8, missing = \"category\" } # from the rows; 1.6 % missing\n";
    assert!(said.contains(line), "{said}");
    fs::write(folder.path().join("study.toml"), said).unwrap();
    let ran = radmm(folder.path(), &["run", "study.toml", "--json"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
}

#[test]
fn numbers_categories_identifiers_and_constants_are_distinguished() {
    let mut csv = "name,age,ward,country,empty,outcome,sick\n".to_owned();
    for n in 0..150 {
        let age = if n == 7 {
            "NA".to_owned()
        } else {
            (18 + n % 70).to_string()
        };
        let (ward, sick) = (["b", "a", "b"][n % 3], ["no", "yes"][n % 2]);
        csv += &format!(
            "person {n},{age},{ward},NL,?,{},{sick}\n",
            ["x", "y"][n % 2]
        );
    }
    let drafted = section_of(&csv, &[]);
    let expected = r#"#
# 150 rows, 50.0 % of them positive

name = "rows"

[data]
path = "rows.csv" # relative to the study file
label = "outcome" # guessed; other columns with two values: "ward", "sick"
positive = "y" # guessed; the other value is "x"
missing = ["", "?", "NA"] # all but "" and "?" from the rows
rows = "unit"
intercept = false

[data.numeric]
age = { bounds = [10, 90], splines = 8, missing = "category" } # from the rows; 0.7 % missing

[data.categorical]
ward = ["b", "a"] # from the rows
sick = ["no", "yes"] # from the rows

# Not used:
# name: text with more than 100 different values, probably an identifier
# country: every value is the same
# empty: every value is missing

"#;
    assert!(drafted.ends_with(expected), "{drafted}");
}

#[test]
fn the_label_is_the_last_column_with_two_values_unless_one_has_a_usual_name() {
    let label = |csv: &str, args: &[&str]| {
        let section = section_of(csv, args);
        let line = section
            .lines()
            .find(|line| line.starts_with("label"))
            .unwrap()
            .to_owned();
        line.split(" #").next().unwrap().to_owned()
    };
    assert_eq!(label("a,b,c\n0,x,1\n1,y,2\n1,y,3\n", &[]), "label = \"b\"");
    assert_eq!(
        label("Class,b,c\n0,x,1\n1,y,2\n1,y,3\n", &[]),
        "label = \"Class\""
    );
    assert_eq!(
        label("a,b,c\n0,x,1\n1,y,2\n", &["--label", "a"]),
        "label = \"a\""
    );
    assert_eq!(
        label("a,b,c\n0,x,1\n1,y,2\n", &["--positive", "x"]),
        "label = \"b\""
    );
}

#[test]
fn given_label_and_class_are_not_guessed() {
    let section = section_of("a,b\n0,x\n1,y\n2,z\n", &["--label", "b", "--positive", "y"]);
    assert!(
        section.contains("label = \"b\"\npositive = \"y\"\n"),
        "{section}"
    );
}

#[test]
fn names_and_values_are_escaped_and_the_section_runs() {
    let folder = TempDir::new().unwrap();
    let mut csv = "\"say \"\"hi\"\"\",a.b,\"two\nlines\",#é\u{1b},,dup,dup,y\n".to_owned();
    for n in 0..40 {
        let odd = ["c:\\dir", "\"quoted\"", "tab\there", "line\nbreak"][n % 4].replace('"', "\"\"");
        csv += &format!(
            "\"{odd}\",{n},\"{odd}\",{},u,v,w,{}\n",
            n % 5,
            ["a#b", "c"][n % 3 % 2]
        );
    }
    fs::write(folder.path().join("rows.csv"), csv).unwrap();
    let section = section(folder.path(), &["rows.csv"]);
    let result = run(folder.path(), &section);
    let columns: Vec<&str> = result["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c.as_str().unwrap())
        .collect();
    for name in [
        "a.b≈0",
        "#é\u{1b}<0.5",
        "two\nlines=line\nbreak",
        "say \"hi\"=c:\\dir",
    ] {
        assert!(columns.contains(&name), "{name:?} in {columns:?}");
    }
    assert!(section.contains("# \"\": has no name\n"), "{section}");
    assert!(
        section.contains("# dup: appears more than once\n"),
        "{section}"
    );
}

#[test]
fn a_warning_and_a_table_are_printed_on_stderr() {
    let folder = folder();
    let output = inspect(folder.path(), &["rows.parquet"]);
    let said = text(&output.stderr);
    assert!(
        said.starts_with("warning: bounds and vocabularies read off private rows are not public.")
    );
    for part in ["60 rows", "label    label", "numeric   0 to 0.875", "0.0 %"] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    let said = inspect(folder.path(), &["rows.svm"]).stderr;
    assert!(text(&said).contains("60 rows, columns 1 to 2"));
}

#[test]
fn a_first_line_that_looks_like_a_row_is_noted() {
    let folder = TempDir::new().unwrap();
    let note = "note: some columns have numbers as names; does the first line name the columns?\n";
    for (csv, noted) in [("39,x\n40,y\n41,x\n", true), ("age,y\n40,y\n41,x\n", false)] {
        fs::write(folder.path().join("rows.csv"), csv).unwrap();
        let output = inspect(folder.path(), &["rows.csv"]);
        assert_eq!(text(&output.stderr).starts_with(note), noted, "{csv}");
    }
}

#[test]
fn json_has_the_findings() {
    let folder = folder();
    let output = inspect(folder.path(), &["rows.svm", "--json", "--positive", "1"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&found["format"], &found["rows"]),
        (&"libsvm".into(), &60.into())
    );
    assert_eq!(
        (&found["numbered"], &found["positive"]),
        (&2.into(), &"1".into())
    );
    assert!(found["warning"].as_str().unwrap().contains("not public"));
    let output = inspect(folder.path(), &["rows.parquet", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["label"], "label");
    assert_eq!(
        found["columns"][0]["range"],
        serde_json::json!([0.0, 0.875])
    );
}

#[test]
fn wrong_use_has_exit_code_2() {
    let folder = folder();
    fs::write(folder.path().join("one.csv"), "a,b\n1,2\n1,3\n1,4\n").unwrap();
    fs::write(folder.path().join("one.svm"), "1 1:1\n1 2:1\n").unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (args, says) in [
        (&["none.csv"][..], "error: none.csv: No such file"),
        (
            &["empty", "--format", "csv"],
            "error: empty: there is no file of rows; names that begin with . or _ are left out",
        ),
        (
            &["rows.csv", "--label", "lable"],
            "error: rows.csv: there is no column \"lable\"; the columns are \"1\", \"2\", \"label\"",
        ),
        (
            &["rows.csv", "--label", "2"],
            "error: rows.csv: column \"2\" has 5 values: \"0\", \"0.25\", \"0.5\", \"0.75\", \"1\"; choose the positive one with --positive",
        ),
        (
            &["rows.csv", "--positive", "yes"],
            "error: rows.csv: no column has two values, one of them \"yes\"; name the outcome with --label",
        ),
        (
            &["rows.csv", "--label", "label", "--positive", "yes"],
            "error: rows.csv: no row has \"yes\" in column \"label\"; its values are ",
        ),
        (
            &["rows.svm", "--label", "label"],
            "error: rows.svm: a LIBSVM file does not name its label; remove --label",
        ),
        (
            &["one.csv"],
            "error: one.csv: no column has two values; name the outcome with --label and its positive class with --positive",
        ),
        (
            &["one.csv", "--label", "a"],
            "error: one.csv: column \"a\" has fewer than two values: there is nothing to learn",
        ),
        (
            &["one.svm"],
            "error: one.svm: the label has fewer than two values: there is nothing to learn",
        ),
        (
            &["rows.csv", "--format", "excel"],
            "error: invalid value 'excel' for '--format <FORMAT>': must be csv, parquet or libsvm",
        ),
    ] {
        let (said, code) = error_of(folder.path(), args);
        assert!(said.starts_with(says), "{said}");
        assert_eq!(code, 2, "{said}");
    }
}

#[test]
fn the_table_fits_a_terminal_and_long_fields_are_cut() {
    let folder = TempDir::new().unwrap();
    let (name, digits) = ("n".repeat(60), format!("1{}", "0".repeat(300)));
    let mut csv = format!("{name},notes,huge,{},日本語,y\n", "m".repeat(300));
    for n in 0..20 {
        let (notes, y) = (["x".repeat(100_000), "short".into()][n % 2].clone(), n % 2);
        csv += &format!(
            "a value of some length {},{notes},{n}{digits},{n},日本語の値{n},{y}\n",
            n % 9
        );
    }
    fs::write(folder.path().join("rows.csv"), csv).unwrap();
    let output = inspect(folder.path(), &["rows.csv"]);
    let (said, drafted) = (text(&output.stderr), text(&output.stdout));
    let table = said.split_once("20 rows").unwrap().1;
    for line in table.lines().filter(|line| !line.starts_with("note: ")) {
        let wide = line
            .chars()
            .filter(|c| ('\u{3000}'..'\u{a000}').contains(c));
        assert!(line.chars().count() + wide.count() <= 80, "{line}");
    }
    assert!(table.contains("nnn…") && table.contains("…"), "{table}");
    assert!(table.contains(" 1e300 to 1.91e302"), "{table}");
    assert!(
        drafted.contains(&format!("{name} = [")),
        "the draft has the whole name"
    );
    assert!(
        drafted.contains("# notes: text of more than 200 characters, too long for a category\n"),
        "{drafted}"
    );
    assert!(drafted.contains("…\": its name is longer than 200 characters\n"));
    assert!(drafted.lines().all(|line| line.len() < 1000));
}

#[test]
fn row_numbers_are_not_used_like_other_identifiers() {
    let mut csv = "id,age,y\n".to_owned();
    for n in 0..60 {
        csv += &format!("{},{},{}\n", 5000 + n, 20 + n % 40, n % 2);
    }
    let drafted = section_of(&csv, &[]);
    let reason = "# id: whole numbers that seem never to repeat, probably an identifier\n";
    assert!(drafted.contains(reason), "{drafted}");
    assert!(drafted.contains("\nage = {"), "{drafted}");
}

#[test]
fn values_that_are_not_numbers_are_reported_with_their_line_on_the_terminal_alone() {
    let mut csv = "age,height,y\n".to_owned();
    for n in 0..60 {
        let age = if n == 7 {
            "inf".into()
        } else {
            (20 + n % 40).to_string()
        };
        let height = match n {
            11 | 12 => "\u{202e}abc".into(),
            _ => (150 + n % 40).to_string(),
        };
        csv += &format!("{age},{height},{}\n", n % 2);
    }
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("rows.csv"), &csv).unwrap();
    let output = inspect(folder.path(), &["rows.csv"]);
    let said = text(&output.stderr);
    for note in [
        "note: age: 1 value is not a number, the first \"inf\" on line 9; such values count as missing\n",
        "note: height: 2 values are not numbers, the first \"\\u202Eabc\" on line 13; such values count as missing\n",
    ] {
        assert!(said.contains(note), "{said}");
    }
    let drafted = text(&output.stdout);
    for line in [
        "missing = [\"\", \"?\"]\n",
        "age = { bounds = [20, 60], splines = 8, missing = \"category\", other = \"missing\" } # from the rows; 1 value is not a number; counted as missing: correct it in the rows if that is wrong\n",
        "height = { bounds = [150, 190], splines = 8, missing = \"category\", other = \"missing\" } # from the rows; 2 values are not numbers; counted as missing: correct it in the rows if that is wrong\n",
    ] {
        assert!(drafted.contains(line), "{drafted}");
    }
}

#[test]
fn categories_of_few_rows_are_left_out_and_count_as_missing() {
    let ward = |n: usize| match n {
        3 => "isolation",
        4..6 => "annexe",
        _ => ["north", "south"][n % 2],
    };
    let mut csv = "ward,bed,sick\n".to_owned();
    for n in 0..60 {
        csv += &format!("{},{},{}\n", ward(n), ["a", "b"][n / 3 % 2], n % 2);
    }
    let drafted = section_of(&csv, &["--label", "sick"]);
    assert!(!drafted.contains("isolation") && !drafted.contains("annexe"));
    for line in [
        "ward = { values = [\"north\", \"south\"], missing = \"category\", other = \"missing\" } # from the rows, without 2 values from fewer than 10 of them each\n",
        "bed = [\"a\", \"b\"] # from the rows\n",
    ] {
        assert!(drafted.contains(line), "{drafted}");
    }
}

#[test]
fn names_such_as_inf_and_nan_are_names() {
    let drafted = section_of("inf,nan\n1,0\n2,1\n3,1\n", &[]);
    assert!(drafted.contains("label = \"nan\""), "{drafted}");
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("rows.csv"), "inf,y\n1,0\n2,1\n").unwrap();
    let said = inspect(folder.path(), &["rows.csv"]).stderr;
    assert!(!text(&said).contains("numbers as names"));
}

#[test]
fn a_file_without_a_feature_is_an_error_with_reasons() {
    let folder = TempDir::new().unwrap();
    for (csv, says) in [
        (
            "a,b,y\n1,?,0\n1,?,1\n",
            "error: rows.csv: no column except the label, \"y\", can be learnt from (a: every value is the same, b: every value is missing)",
        ),
        (
            "y\n0\n1\n",
            "error: rows.csv: there is no column except the label, \"y\"",
        ),
    ] {
        fs::write(folder.path().join("rows.csv"), csv).unwrap();
        assert_eq!(error_of(folder.path(), &["rows.csv"]), (says.into(), 1));
    }
}

#[test]
fn a_missing_file_has_the_same_exit_code_in_a_study_and_on_the_command_line() {
    let folder = folder();
    let section = section(folder.path(), &["rows.csv"]);
    fs::remove_file(folder.path().join("rows.csv")).unwrap();
    fs::write(folder.path().join("study.toml"), section + REST).unwrap();
    let in_study = radmm(folder.path(), &["run", "study.toml"]);
    let typed = inspect(folder.path(), &["rows.csv"]);
    assert_eq!(
        (in_study.status.code(), typed.status.code()),
        (Some(2), Some(2))
    );
}
