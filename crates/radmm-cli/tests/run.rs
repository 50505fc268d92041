//! `radmm run`, as a user runs it: results and files.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/small_study.rs"]
mod small_study;
mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;

use small_study::{STUDY, folder};
use support::{radmm, text};

/// Runs a study with `--json`, and returns its result.
fn result(study: &str, args: &[&str]) -> Value {
    let folder = folder(study);
    let output = radmm(
        folder.path(),
        &[&["run", "study.toml", "--json"], args].concat(),
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
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
        assert!((1..20).contains(&node["positive"].as_u64().unwrap()));
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
    let of_nodes = nodes.iter().map(|node| node["positive"].as_u64().unwrap());
    assert_eq!(result["data"]["positive"], of_nodes.sum::<u64>());
}

#[test]
fn the_majority_class_stands_below_the_models() {
    let study = STUDY.replace("[network]", "[data.test]\nlast = 15\n[network]");
    let result = result(&study, &[]);
    let (data, majority) = (&result["data"], &result["majority"]);
    let count = |key: &str| data[key].as_u64().unwrap();
    let trained = count("read") - count("dropped");
    assert_eq!(count("held_out"), 15);
    let positive = 2 * count("positive") > trained;
    assert_eq!(majority["positive"], positive);
    let share = |of: u64, rows: u64| {
        let right = if positive { of } else { rows - of };
        right as f64 / rows as f64
    };
    assert_eq!(majority["accuracy"], share(count("positive"), trained));
    let held_out = share(count("held_out_positive"), 15);
    assert_eq!(majority["held_out"], held_out);
    let folder = folder(&study);
    let shown = radmm(folder.path(), &["run", "study.toml", "-q", "--out", "out"]).stdout;
    let line = text(&shown)
        .lines()
        .find(|line| line.starts_with(" majority class "));
    let cells: Vec<&str> = line.unwrap().split_whitespace().skip(2).collect();
    let held_out = format!("{:.1}", 100.0 * held_out);
    assert_eq!(cells[..3], [held_out.as_str(), "%", "0.5000"]);
    assert_eq!(cells[5..], ["–", "–"], "neither loss nor ε");
    let report = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(report.contains("for the majority class in answer to every row"));
}

#[test]
fn a_result_no_better_than_the_majority_says_how_many_rows_it_would_take() {
    let average = STUDY.replace("\"r-admm\"", "\"average\"");
    let study = average.replace("rate = 2.0", "rate = 0.0001");
    let folder = folder(&study);
    let run = radmm(folder.path(), &["run", "study.toml", "-q", "--out", "out"]);
    let shown = text(&run.stdout);
    // On the terminal it is broken into lines of eighty columns.
    let said = shown.split_once("\nresult   ").map(|(_, rest)| rest);
    let said = said.and_then(|rest| rest.split_once("\n\n"));
    let (said, _) = said.unwrap_or_else(|| panic!("{shown}"));
    let said: Vec<&str> = said.split_whitespace().collect();
    let sentence = said.join(" ");
    assert!(
        sentence.starts_with("no better than always saying "),
        "{sentence}"
    );
    assert!(sentence.ends_with(" rows would be needed"), "{sentence}");
    let read = |file: &str| fs::read_to_string(folder.path().join("out").join(file)).unwrap();
    let result: Value = serde_json::from_str(&read("result.json")).unwrap();
    let below = &result["below_majority"];
    assert_eq!(below["sentence"], sentence);
    let rows = below["rows_needed"]["rows"].as_u64().unwrap();
    assert!(rows > 60, "{below}");
    let report = read("report.html");
    assert!(report.contains(&sentence[1..]), "{sentence}");
    // With little noise nothing of the kind is said.
    let better = self::result(&average.replace("rate = 2.0", "rate = 1e6"), &[]);
    assert!(better.get("below_majority").is_none(), "{better}");
}

#[test]
fn an_algorithm_that_stops_too_soon_is_not_helped_by_rows() {
    let below = &result(&STUDY.replace("iterations = 10", "iterations = 1"), &[])["below_majority"];
    let sentence = below["sentence"].as_str().unwrap();
    assert!(
        sentence.ends_with("with or without noise: more iterations or other parameters would help"),
        "{sentence}"
    );
    assert!(below.get("rows_needed").is_none());
}

#[test]
fn where_no_noise_is_no_better_than_the_majority_other_columns_are_advised() {
    // The sex tells nothing about the outcome.
    let study = STUDY.replace("[data.numeric]\nage = [0, 90]\n", "");
    let below = &result(&study, &[])["below_majority"];
    let sentence = below["sentence"].as_str().unwrap();
    assert!(sentence.ends_with("nor is the optimum without noise: other columns would help"));
    assert!(below.get("rows_needed").is_none());
}

#[test]
fn without_baselines_the_study_runs_alone() {
    let with = result(STUDY, &[]);
    let without = result(STUDY, &["--no-baselines"]);
    assert_eq!(without["beside"], serde_json::json!([]));
    assert_eq!(without["nodes"], with["nodes"]);
    let folder = folder(STUDY);
    let shown = radmm(
        folder.path(),
        &["run", "study.toml", "-q", "--no-baselines"],
    )
    .stdout;
    assert!(!text(&shown).contains("averaged"), "{}", text(&shown));
}

#[test]
fn the_model_of_a_run_predicts_and_is_not_called_protected() {
    let folder = folder(STUDY);
    let path = folder.path();
    let run = radmm(path, &["run", "study.toml", "--out", "out", "--json"]);
    assert!(text(&run.stderr).contains("wrote out/model.json"));
    let result: Value = serde_json::from_slice(&run.stdout).unwrap();
    let read = fs::read_to_string(path.join("out/model.json")).unwrap();
    let model: Value = serde_json::from_str(&read).unwrap();
    assert_eq!(model["guarantee"]["protects"], false);
    let caveat = model["guarantee"]["caveat"].as_str().unwrap();
    assert!(caveat.contains("its noise repeats from a seed"));
    assert_eq!(model["guarantee"]["epsilon"], result["privacy"]["epsilon"]);
    // All parties have twenty rows: the mean over rows is that over parties.
    for (k, weight) in model["weights"].as_array().unwrap().iter().enumerate() {
        let of_node = |node: &Value| node["model"][k].as_f64().unwrap();
        let nodes = result["nodes"].as_array().unwrap().iter().map(of_node);
        let mean = nodes.sum::<f64>() / 3.0;
        assert!((weight.as_f64().unwrap() - mean).abs() < 1e-12);
    }
    let predicted = radmm(path, &["predict", "out/model.json", "rows.csv", "--json"]);
    assert!(predicted.status.success(), "{}", text(&predicted.stderr));
    let predicted: Value = serde_json::from_slice(&predicted.stdout).unwrap();
    assert_eq!(predicted["summary"]["rows"], 61);
    let accuracy = predicted["summary"]["quality"]["accuracy"]
        .as_f64()
        .unwrap();
    let everywhere = result["everywhere"]["accuracy"].as_f64().unwrap();
    assert!(
        (accuracy - everywhere).abs() < 0.3,
        "{accuracy} {everywhere}"
    );
}

#[test]
fn a_run_that_stops_early_has_no_model() {
    let folder = folder(STUDY);
    radmm(
        folder.path(),
        &["run", "study.toml", "-q", "--limit", "2", "--out", "out"],
    );
    assert!(folder.path().join("out/result.json").exists());
    assert!(!folder.path().join("out/model.json").exists());
}

#[test]
fn the_total_epsilon_follows_the_formula() {
    // C = 4, B = 20, ρ/N = 1/30, a = 2ηV = 2: five data steps. x is below S·α/8, so that curvature is free and a step costs S·α.
    let x: f64 = 1.0 / (20.0 * (2.0 + 0.1 / 3.0));
    let step = 0.4 * 2.0;
    assert!(x < step / 8.0);
    // The rounding to the grid adds, in proportion to S·α + ln(1 + x).
    let rounding = (step + x.ln_1p()) / 1024.0;
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
fn every_repetition_is_in_the_result_with_its_own_noise() {
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
fn a_run_that_stops_within_an_iteration_states_every_charge() {
    // Its first answer is charged, and then takes the models beyond the grid.
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
fn without_noise_epsilon_is_null_and_nothing_is_called_private() {
    let study = STUDY.replace("objective", "none");
    let folder = folder(&study);
    let path = folder.path();
    let shown = radmm(path, &["run", "study.toml", "--out", "out"]);
    assert!(
        text(&shown.stdout).contains("privacy  none: answers were released without noise"),
        "{}",
        text(&shown.stdout)
    );
    let bill = radmm(path, &["privacy", "study.toml"]);
    let compared = radmm(path, &["compare", "study.toml"]);
    let mut outputs = vec![shown, bill, compared]
        .into_iter()
        .flat_map(|output| {
            [
                text(&output.stdout).to_owned(),
                text(&output.stderr).to_owned(),
            ]
        })
        .collect::<Vec<_>>();
    for file in ["result.json", "report.html", "privacy-statement.json"] {
        outputs.push(fs::read_to_string(path.join("out").join(file)).unwrap());
    }
    for output in &outputs {
        assert!(!output.to_lowercase().contains("private"), "{output}");
        // No number looks like a guarantee, either.
        assert!(
            !output.contains("ε = 0") && !output.contains("ε = 1"),
            "{output}"
        );
    }
    let result: Value = serde_json::from_str(&outputs[6]).unwrap();
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
        (
            "consensus",
            "metric = \"gram\"\nsteps = 2\nmetric_share = 0.3",
            "gradient",
        ),
        ("consensus", "metric = \"none\"\nsteps = 2", "gradient"),
        ("local", "", "objective"),
        ("average", "", "output"),
    ] {
        let study = match name {
            // Its number of iterations follows from its steps.
            "consensus" => STUDY.replace("iterations = 10\n", ""),
            _ => STUDY.to_owned(),
        };
        let study = study
            .replace("name = \"r-admm\"", &format!("name = \"{name}\"\n{more}"))
            .replace("objective", mechanism);
        let result = result(&study, &["--quiet"]);
        assert!(
            result["iterations"]
                .as_array()
                .and_then(|made| made.last()?["loss"].as_f64())
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
fn baselines_spend_the_same_total() {
    let result = result(STUDY, &[]);
    let total = result["privacy"]["epsilon"].as_f64().unwrap();
    for other in result["beside"].as_array().unwrap() {
        let spent = other["ends"][0]["epsilon"].as_f64().unwrap();
        assert!(spent <= total && spent > total * (1.0 - 1e-9), "{other}");
    }
}

#[test]
fn out_creates_the_folder_and_writes_the_same_json() {
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
    assert_eq!(left.len(), 5, "no temporary file stays");
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
    for line in comparison.skip(1).take(5) {
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
    assert_eq!(compared, 5 * 6);
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
fn a_limit_stops_the_run_and_keeps_the_results_so_far() {
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
fn the_papers_bound_is_stated_for_objective_perturbation_only() {
    let paper = |mechanism| {
        result(&STUDY.replace("objective", mechanism), &[])["privacy"]["epsilon_paper"].clone()
    };
    assert!(paper("objective").is_f64());
    assert!(paper("output").is_null());
    assert!(paper("none").is_null());
}
