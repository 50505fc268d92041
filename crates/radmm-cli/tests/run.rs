//! `radmm run`, as a user runs it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use support::{radmm, text};

const STUDY: &str = r#"
name = "small"
[data]
path = "rows.csv"
label = "outcome"
positive = "yes"
intercept = true
[data.numeric]
age = [0, 90]
[data.categorical]
sex = ["f", "m"]
[network]
nodes = 3
topology = "ring"
[problem]
weight = 4.0
ridge = 0.1
[algorithm]
name = "r-admm"
iterations = 10
penalty = 0.5
damping = 1.0
[privacy]
mechanism = "objective"
rate = 2.0
[run]
seed = 1
"#;

fn rows() -> String {
    let mut text = "age,sex,outcome\n".to_owned();
    for n in 0..60 {
        let age = 20 + (n * 37) % 60;
        let sex = if n % 3 == 0 { "f" } else { "m" };
        let outcome = if age + (n * 7) % 20 > 55 { "yes" } else { "no" };
        text += &format!("{age},{sex},{outcome}\n");
    }
    text + "?,f,no\n"
}

/// A folder with a study and its rows.
fn folder(study: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("study.toml"), study).unwrap();
    fs::write(folder.path().join("rows.csv"), rows()).unwrap();
    folder
}

/// The result of a study, from `--json`.
fn result(study: &str, args: &[&str]) -> Value {
    let folder = folder(study);
    let output = radmm(
        folder.path(),
        &[&["run", "study.toml", "--json"], args].concat(),
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What is said on stderr, and the exit code, of a run that fails.
fn failure(folder: &Path, args: &[&str]) -> (String, i32) {
    let output = radmm(folder, args);
    assert_eq!(text(&output.stdout), "", "a failure has no data");
    (
        text(&output.stderr).to_owned(),
        output.status.code().unwrap(),
    )
}

#[test]
fn the_readme_shows_what_the_first_command_prints() {
    let readme = include_str!("../../../README.md");
    let printed = radmm(Path::new("."), &["run", "--quiet"]).stdout;
    let block = format!("```text\n{}```\n", text(&printed));
    assert!(readme.contains(&block), "put this into README.md:\n{block}");
}

#[test]
fn result_json_holds_what_is_documented() {
    let result = result(STUDY, &[]);
    assert_eq!(
        result["columns"],
        serde_json::json!(["age", "sex=f", "sex=m", "(intercept)"])
    );
    assert_eq!(result["data"]["read"], 61);
    assert_eq!(result["data"]["dropped"], 1);
    let nodes = result["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 3);
    for (i, node) in nodes.iter().enumerate() {
        assert_eq!(node["name"], format!("node {i}"));
        assert_eq!((&node["rows"], &node["degree"]), (&20.into(), &2.into()));
        assert_eq!(node["model"].as_array().unwrap().len(), 4);
        assert_eq!(node["dual"].as_array().unwrap().len(), 4);
        assert_eq!(node["data_steps"], 5);
        assert!(node["epsilon"].as_f64().unwrap() > 0.0);
    }
    let iterations = result["iterations"].as_array().unwrap();
    assert_eq!(iterations.len(), 11);
    for (t, made) in iterations.iter().enumerate() {
        assert_eq!(made["t"], t);
        let kind = if t == 0 {
            "start"
        } else {
            ["recycled", "data"][t % 2]
        };
        assert_eq!(made["kind"], kind);
        for key in ["loss", "objective", "consensus", "epsilon"] {
            assert!(made[key].as_f64().is_some(), "{key} at {t}");
        }
    }
    assert_eq!(iterations[10]["epsilon"], result["privacy"]["epsilon"]);
    assert_eq!(
        result["privacy"]["relation"],
        "one row of one party replaced"
    );
    assert_eq!(result["privacy"]["protects"], false);
    assert_eq!(result["study"]["algorithm"]["name"], "r-admm");
    assert_eq!(result["study"]["algorithm"]["tolerance"], 1e-10);
    assert_eq!(
        result["steps"],
        serde_json::json!({"data": 5, "recycled": 5, "messages": 66})
    );
    assert!(result.get("repetitions").is_none());
}

#[test]
fn the_total_is_what_the_formula_says() {
    // C = 4, B = 20, ρ/N = 1/30, a = 2ηV = 2: five data steps of S·α + ln(1 + x).
    let step = 0.4 * 2.0 + (1.0f64 + 1.0 / (20.0 * (2.0 + 0.1 / 3.0))).ln();
    // What the grid adds.
    let rounding = step / 1024.0;
    let result = result(STUDY, &[]);
    let total = result["privacy"]["epsilon"].as_f64().unwrap();
    assert!((total - 5.0 * (step + rounding)).abs() < 1e-12);
    // The paper's: 2.8x for ln(1 + x).
    let paper = 5.0 * (0.8 + 2.8 / (20.0 * (2.0 + 0.1 / 3.0)) + rounding);
    assert!((result["privacy"]["epsilon_paper"].as_f64().unwrap() - paper).abs() < 1e-12);
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let study = STUDY.replace("[run]", "[run]\nrepetitions = 3");
    let run = |threads| result(&study, &["--threads", threads]).to_string();
    let one = run("1");
    assert_eq!(one, run("2"));
    assert_eq!(one, run("5"));
    let other = result(&study.replace("seed = 1", "seed = 2"), &[]).to_string();
    assert_ne!(one, other);
}

#[test]
fn repetitions_differ_in_their_noise_and_are_all_there() {
    let study = STUDY.replace("[run]", "[run]\nrepetitions = 3");
    let result = result(&study, &[]);
    let repetitions = result["repetitions"].as_array().unwrap();
    assert_eq!(repetitions.len(), 3);
    let model = |r: usize| &repetitions[r]["nodes"][0]["model"];
    assert_ne!(model(0), model(1));
    assert_ne!(model(1), model(2));
    assert_eq!(
        model(0),
        &result["nodes"][0]["model"],
        "the first stands above"
    );
    for repetition in repetitions {
        assert_eq!(repetition["iterations"].as_array().unwrap().len(), 11);
    }
}

#[test]
fn without_noise_every_epsilon_is_null_and_nothing_is_called_private() {
    let study = STUDY.replace("objective", "none");
    let result = result(&study, &[]);
    assert!(result["privacy"]["epsilon"].is_null());
    let folder = folder(&study);
    let shown = radmm(folder.path(), &["run", "study.toml", "-q"]).stdout;
    assert!(text(&shown).contains("privacy  none: answers were released without noise"));
}

#[test]
fn a_run_that_stops_in_the_middle_of_an_iteration_states_every_charge_everywhere() {
    // Its first answer takes the models beyond the grid: charged, and nothing comes of it.
    let study = STUDY
        .replace("name = \"r-admm\"", "name = \"dgd\"\nstep = 1e30")
        .replace("\"objective\"", "\"gradient\"");
    let folder = folder(&study);
    let output = radmm(folder.path(), &["run", "study.toml", "-q", "--out", "out"]);
    assert_eq!(output.status.code(), Some(1));
    let read = |file: &str| fs::read_to_string(folder.path().join("out").join(file)).unwrap();
    let result: Value = serde_json::from_str(&read("result.json")).unwrap();
    let statement: Value = serde_json::from_str(&read("privacy-statement.json")).unwrap();
    let spent = result["nodes"][0]["epsilon"].as_f64().unwrap();
    assert!(spent > 0.5, "{spent}");
    assert_eq!(result["privacy"]["epsilon"].as_f64(), Some(spent));
    assert_eq!(statement["epsilon"].as_f64(), Some(spent));
    let shown = format!("ε = {:.4}", (spent * 1e4).ceil() / 1e4);
    assert!(text(&output.stdout).contains(&shown), "{shown}");
    assert!(read("report.html").contains(&shown), "{shown}");
}

#[test]
fn in_doubles_every_epsilon_is_null_and_nothing_is_called_private() {
    let study = STUDY.replace("[privacy]", "[privacy]\nprecision = \"float\"");
    let folder = folder(&study);
    let path = folder.path();
    let shown = radmm(path, &["run", "study.toml", "--out", "out"]);
    assert!(
        text(&shown.stdout).contains("privacy  none: answers were released as doubles"),
        "{}",
        text(&shown.stdout)
    );
    let bill = radmm(path, &["privacy", "study.toml"]);
    let compared = radmm(path, &["compare", "study.toml"]);
    let mut said = vec![shown, bill, compared]
        .into_iter()
        .flat_map(|output| {
            [
                text(&output.stdout).to_owned(),
                text(&output.stderr).to_owned(),
            ]
        })
        .collect::<Vec<_>>();
    for file in ["result.json", "report.html", "privacy-statement.json"] {
        said.push(fs::read_to_string(path.join("out").join(file)).unwrap());
    }
    for said in &said {
        assert!(!said.to_lowercase().contains("private"), "{said}");
        // Neither is there a number that could be taken for a guarantee.
        assert!(!said.contains("ε = 0") && !said.contains("ε = 1"), "{said}");
    }
    let result: Value = serde_json::from_str(&said[6]).unwrap();
    assert!(result["privacy"]["epsilon"].is_null());
    for node in result["nodes"].as_array().unwrap() {
        assert!(node["epsilon"].is_null() && node["epsilon_paper"].is_null());
    }
}

#[test]
fn every_algorithm_runs_from_a_study_file() {
    for (name, more, mechanism) in [
        ("admm", "", "objective"),
        ("r-admm", "recycle = 2", "output"),
        ("m-admm", "dual_step = 0.4", "objective"),
        ("mr-admm", "", "objective"),
        ("dlm", "", "gradient"),
        ("r-dlm", "", "gradient"),
        ("dgd", "step = { start = 0.1, power = 0.5 }", "gradient"),
        ("local", "", "objective"),
        ("average", "", "output"),
    ] {
        let study = STUDY
            .replace("name = \"r-admm\"", &format!("name = \"{name}\"\n{more}"))
            .replace("objective", mechanism);
        let result = result(&study, &["--quiet"]);
        assert!(
            result["iterations"][10]["loss"]
                .as_f64()
                .unwrap()
                .is_finite(),
            "{name}"
        );
        assert!(result["privacy"]["epsilon"].as_f64().is_some(), "{name}");
        let beside = result["beside"].as_array().unwrap();
        let expected = if ["local", "average"].contains(&name) {
            1
        } else {
            2
        };
        assert_eq!(beside.len(), expected, "{name}");
    }
}

#[test]
fn what_stands_beside_spends_as_much() {
    let result = result(STUDY, &[]);
    let total = result["privacy"]["epsilon"].as_f64().unwrap();
    for other in result["beside"].as_array().unwrap() {
        let spent = other["ends"][0]["epsilon"].as_f64().unwrap();
        assert!(spent <= total && spent > total * (1.0 - 1e-9), "{other}");
    }
}

#[test]
fn out_makes_the_folder_and_writes_the_same_json() {
    let folder = folder(STUDY);
    let output = radmm(
        folder.path(),
        &["run", "study.toml", "--out", "deep/er", "--json"],
    );
    assert!(output.status.success());
    let written = fs::read(folder.path().join("deep/er/result.json")).unwrap();
    assert_eq!(written, output.stdout);
    assert!(text(&output.stderr).contains("wrote deep/er/result.json"));
    let left: Vec<_> = fs::read_dir(folder.path().join("deep/er"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 3, "nothing half-written stays");
}

#[test]
fn out_writes_a_report_with_the_numbers_of_the_terminal() {
    let folder = folder(&(STUDY.to_owned() + "repetitions = 3\n"));
    let output = radmm(folder.path(), &["run", "study.toml", "--out", "out"]);
    assert!(text(&output.stderr).contains("wrote out/report.html"));
    let report = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    let shown = text(&output.stdout);
    let comparison = shown.lines().skip_while(|line| !line.contains("─"));
    let mut compared = 0;
    // Cells are at least two columns apart.
    for line in comparison.skip(1).take(4) {
        for cell in line
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
        {
            assert!(
                report.contains(&format!(">{cell}</td>")),
                "{cell} of {line}"
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 4 * 6);
    for part in [
        "at δ = 0, over every message of the run",
        "one row of one party replaced",
        "This is a simulation: it holds all rows",
        "Bars: the range over 3 repetitions",
    ] {
        assert!(report.contains(part), "{part}");
    }
    let again = radmm(
        folder.path(),
        &[
            "run",
            "study.toml",
            "--out",
            "again",
            "--quiet",
            "--threads",
            "1",
        ],
    );
    assert_eq!(text(&again.stderr), "");
    let same = fs::read_to_string(folder.path().join("again/report.html")).unwrap();
    assert!(
        report == same,
        "the same study gives the same bytes on any number of threads"
    );
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
fn a_limit_stops_the_run_and_what_was_done_is_kept() {
    let folder = folder(STUDY);
    let output = radmm(
        folder.path(),
        &["run", "study.toml", "--json", "--limit", "2", "--out", "."],
    );
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("error: the run stopped early: node 0 refused the question of iteration 5"),
        "{said}"
    );
    assert!(
        said.contains("the privacy limit epsilon = 2 would be exceeded"),
        "{said}"
    );
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["iterations"].as_array().unwrap().len(), 5);
    assert!(result["privacy"]["epsilon"].as_f64().unwrap() <= 2.0);
    assert!(result["stopped"].as_str().unwrap().contains("iteration 5"));
    assert!(folder.path().join("result.json").exists());
    let report = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(report.contains("<strong>The run stopped early</strong>: node 0 refused"));
}

#[test]
fn a_mistake_in_the_study_is_wrong_use() {
    let folder = folder(&STUDY.replace("penalty", "penalti"));
    let (said, code) = failure(folder.path(), &["run", "study.toml"]);
    assert_eq!(
        said,
        "error: study.toml:21: [algorithm] unknown key \"penalti\": did you mean \"penalty\"?\n"
    );
    assert_eq!(code, 2);
}

#[test]
fn a_disconnected_graph_names_its_components() {
    let study = STUDY.replace("topology = \"ring\"", "edges = [[0, 1]]");
    let (said, code) = failure(folder(&study).path(), &["run", "study.toml"]);
    assert!(
        said.starts_with(
            "error: study.toml: [network] the edges leave 2 separate components: {0, 1} and {2}"
        ),
        "{said}"
    );
    assert_eq!(code, 2);
}

#[test]
fn a_missing_study_and_missing_rows_name_the_file() {
    let folder = folder(&STUDY.replace("rows.csv", "elsewhere.csv"));
    let (said, code) = failure(folder.path(), &["run", "nowhere.toml"]);
    assert!(said.starts_with("error: nowhere.toml: "), "{said}");
    assert_eq!(code, 2);
    let (said, code) = failure(folder.path(), &["run", "study.toml"]);
    assert!(said.starts_with("error: elsewhere.csv: "), "{said}");
    assert_eq!(code, 2);
}

#[test]
fn rows_are_found_beside_the_study_from_anywhere() {
    let folder = folder(STUDY);
    let study = folder.path().join("study.toml");
    let output = radmm(Path::new("/"), &["run", study.to_str().unwrap(), "-q"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn bad_rows_name_file_line_column_and_value() {
    for (row, expected) in [
        (
            "x,f,yes",
            "rows.csv:63: column \"age\": invalid number \"x\"",
        ),
        ("nan,f,yes", "rows.csv:63: column \"age\": \"nan\" is not"),
        ("30,d,yes", "rows.csv:63: column \"sex\": \"d\""),
        ("30,f", "rows.csv:63: "),
    ] {
        let folder = folder(STUDY);
        fs::write(folder.path().join("rows.csv"), format!("{}{row}\n", rows())).unwrap();
        let (said, code) = failure(folder.path(), &["run", "study.toml"]);
        assert!(said.starts_with(&format!("error: {expected}")), "{said}");
        assert_eq!(code, 1);
    }
    let folder = folder(STUDY);
    fs::write(folder.path().join("rows.csv"), "").unwrap();
    let (said, code) = failure(folder.path(), &["run", "study.toml"]);
    assert!(said.starts_with("error: rows.csv"), "{said}");
    assert_eq!(code, 1);
}

#[test]
fn wrong_options_are_wrong_use() {
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
fn a_diverging_run_says_so_and_does_not_panic() {
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
fn an_unattainable_tolerance_is_refused_with_one_that_would_do() {
    let folder = folder(&STUDY.replace("penalty", "tolerance = 1e-300\npenalty"));
    let (said, code) = failure(folder.path(), &["run", "study.toml"]);
    assert!(
        said.contains("[algorithm] tolerance = 1e-300: must be at least 2.2e-15"),
        "{said}"
    );
    assert_eq!(code, 2);
}

#[test]
fn what_looks_like_a_slip_is_noted() {
    let slips = [
        (
            STUDY.to_owned(),
            rows().replace("no\n", "No\n").replacen("No\n", "no\n", 5),
            "note: column \"outcome\" has more than two values (\"no\", \"yes\", \"No\", …): all but \"yes\" count as negative",
        ),
        (
            STUDY.replace("age = [0, 90]", "age = [0, 1]"),
            rows(),
            "note: column \"age\": 60 of 60 values are beyond the bounds in [data.numeric] and were clipped",
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
    // With less noise than drowns the rows.
    let clean = folder(&STUDY.replace("rate = 2.0", "rate = 4.0"));
    assert_eq!(
        text(&radmm(clean.path(), &["run", "study.toml"]).stderr),
        ""
    );
}

#[test]
fn an_out_that_is_a_file_and_a_study_that_is_not_text_say_so() {
    let folder = folder(STUDY);
    let (said, code) = failure(folder.path(), &["run", "study.toml", "--out", "rows.csv"]);
    assert!(
        said.contains("rows.csv: it is a file, not a folder"),
        "{said}"
    );
    assert_eq!(code, 1);
    fs::write(folder.path().join("study.toml"), b"\xff\xfen\0a\0").unwrap();
    let (said, code) = failure(folder.path(), &["run", "study.toml"]);
    assert!(
        said.contains("study.toml: it is not text in UTF-8; save it as UTF-8"),
        "{said}"
    );
    assert_eq!(code, 2);
}

#[test]
fn semicolons_for_commas_are_recognised() {
    let folder = folder(STUDY);
    fs::write(folder.path().join("rows.csv"), rows().replace(',', ";")).unwrap();
    let (said, code) = failure(folder.path(), &["run", "study.toml"]);
    assert!(
        said.contains("separated by semicolons, save the file with commas"),
        "{said}"
    );
    assert_eq!(code, 1);
}

#[test]
fn noise_beyond_all_numbers_releases_nothing() {
    // What a study file may say, times a penalty: its square overflows.
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
fn the_papers_bound_is_stated_for_objective_perturbation_alone() {
    let paper = |mechanism| {
        result(&STUDY.replace("objective", mechanism), &[])["privacy"]["epsilon_paper"].clone()
    };
    assert!(paper("objective").is_f64());
    assert!(paper("output").is_null());
    assert!(paper("none").is_null());
}
