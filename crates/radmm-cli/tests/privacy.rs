//! `radmm privacy`, as a user runs it, and the privacy statement of a run.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use support::{radmm, text};

const STUDY: &str = r#"
name = "visits"
[data]
path = "rows.csv"
label = "outcome"
positive = "yes"
intercept = true
[data.numeric]
age = [0, 90]
[data.split]
method = "sizes"
sizes = [1, 2, 3]
seed = 1
[network]
nodes = 3
topology = "ring"
[problem]
weight = 4.0
ridge = 0.1
[algorithm]
name = "r-admm"
iterations = 6
penalty = 5.0
damping = 1.0
[privacy]
epsilon = 6
[run]
seed = 1
"#;

fn rows() -> String {
    let mut text = "age,outcome\n".to_owned();
    for n in 0..60 {
        let age = 20 + (n * 37) % 60;
        let outcome = if age + (n * 7) % 20 > 55 { "yes" } else { "no" };
        text += &format!("{age},{outcome}\n");
    }
    text
}

/// Returns the study with parties that count alike, so that small ones need more noise.
fn by_party() -> String {
    STUDY.replace("[problem]", "[problem]\ncount = \"parties\"")
}

/// Returns a folder with a study and its rows.
fn folder(study: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("study.toml"), study).unwrap();
    fs::write(folder.path().join("rows.csv"), rows()).unwrap();
    folder
}

/// Returns stdout, stderr and the exit code.
fn run(folder: &Path, args: &[&str]) -> (String, String, i32) {
    let output = radmm(folder, args);
    (
        text(&output.stdout).to_owned(),
        text(&output.stderr).to_owned(),
        output.status.code().unwrap(),
    )
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let (stdout, stderr, code) = run(folder, args);
    assert_eq!(code, 0, "{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn the_bill_is_printed_before_anything_runs() {
    let folder = folder(STUDY);
    let (page, warned, code) = run(folder.path(), &["privacy", "study.toml"]);
    assert_eq!((warned.as_str(), code), ("", 0));
    for line in [
        "visits: r-admm with 3 parties and 3 edges, 6 iterations",
        "3 data steps, which cost privacy; 3 recycled steps, which are free",
        "noise in the objective, rate ",
        " party    rows   neighbours   steps    rate   a step   total ε   noise/C",
        " node 0     10            2       3",
        " node 2     30            2       3",
        " iteration       step   total ε so far",
        " 2           recycled           2.0000",
        " 5               data           6.0000",
        " 6           recycled           6.0000",
        "saved    admm queries the rows in every iteration, 6 times instead of 3. With",
        "privacy  ε = 6.0000 at δ = 0: the total over every message of the run, the",
    ] {
        assert!(page.contains(line), "{line:?} is not in\n{page}");
    }
    let unbroken = page.replace("\n         ", " ");
    assert!(unbroken.contains(" times the noise\n"), "{page}");
    assert!(
        page.lines().all(|line| line.chars().count() <= 80),
        "{page}"
    );
    assert!(!folder.path().join("result.json").exists());
    let again = run(folder.path(), &["privacy", "study.toml", "--threads", "1"]);
    assert_eq!(again.0, page, "the same on any number of threads");
}

#[test]
fn the_bill_has_the_total_at_other_deltas_and_mu_where_answers_are_gaussian() {
    let gradients = STUDY.replace("r-admm", "r-dlm").replace(
        "epsilon = 6",
        "mechanism = \"gradient\"\nepsilon = 6\ndelta = 1e-6",
    );
    let objective = STUDY.replace("epsilon = 6", "epsilon = 6\ndelta = 1e-6");
    for (study, gaussian) in [
        (&gradients, true),
        (&objective, false),
        (&STUDY.to_owned(), false),
    ] {
        let folder = folder(study);
        let (page, _, code) = run(folder.path(), &["privacy", "study.toml"]);
        assert_eq!(code, 0);
        let unbroken = page.replace("\n         ", " ");
        let pure = study == STUDY;
        assert_eq!(unbroken.contains("\nother δ  ε = "), !pure, "{page}");
        assert_eq!(
            unbroken.contains(", ε = 6.0000 at δ = 1e-6, ε = "),
            !pure,
            "{page}"
        );
        assert_eq!(
            unbroken.contains(
                "at δ = 1e-10: all of them hold, each a total over every message of the run"
            ),
            !pure,
            "{page}"
        );
        assert_eq!(
            unbroken.contains("\nμ        Gaussian DP μ = "),
            gaussian,
            "{page}"
        );
        assert!(
            page.lines().all(|line| line.chars().count() <= 80),
            "{page}"
        );
        let bill = json(folder.path(), &["privacy", "study.toml", "--json"]);
        assert_eq!(
            bill["epsilon_at"].as_array().map_or(0, Vec::len),
            if pure { 0 } else { 5 }
        );
    }
}

#[test]
fn the_bill_in_json_has_every_step_of_every_party() {
    let folder = folder(STUDY);
    let bill = json(folder.path(), &["privacy", "study.toml", "--json"]);
    let run = json(folder.path(), &["run", "study.toml", "--json", "-q"]);
    assert_eq!(bill["epsilon"], run["privacy"]["epsilon"]);
    assert_eq!(bill["relation"], run["privacy"]["relation"]);
    assert_eq!(bill["scope"], run["privacy"]["scope"]);
    assert_eq!(run["study"]["privacy"]["epsilon"], 6.0);
    let nodes = bill["nodes"].as_array().unwrap();
    for (billed, node) in nodes.iter().zip(run["nodes"].as_array().unwrap()) {
        for key in [
            "name",
            "rows",
            "degree",
            "data_steps",
            "noise",
            "rate",
            "epsilon",
            "delta",
        ] {
            assert_eq!(billed[key], node[key], "{key}");
            assert!(!billed[key].is_null(), "{key}");
        }
        let steps = billed["steps"].as_array().unwrap();
        let times: Vec<u64> = steps
            .iter()
            .map(|step| step["t"].as_u64().unwrap())
            .collect();
        assert_eq!(times, [1, 3, 5]);
        assert_eq!(steps[2]["total"], billed["epsilon"]);
    }
    assert_eq!(bill["course"].as_array().unwrap().len(), 7);
    assert_eq!(bill["saving"]["data_steps"], 6);
    assert!(bill["drowned"].is_null());
}

#[test]
fn with_rows_no_file_is_opened() {
    let folder = folder(STUDY);
    let counted = json(folder.path(), &["privacy", "study.toml", "--json"]);
    fs::remove_file(folder.path().join("rows.csv")).unwrap();
    let args = ["privacy", "study.toml", "--json", "--rows"];
    let given = json(folder.path(), &[&args[..], &["10,20,30"]].concat());
    assert_eq!(given, counted);
    let same = json(folder.path(), &[&args[..], &["500"]].concat());
    assert_eq!(same["nodes"][0]["rate"], same["nodes"][2]["rate"]);
    let (_, stderr, code) = run(folder.path(), &["privacy", "study.toml"]);
    assert!(stderr.contains("rows.csv") && code == 2, "{stderr}");
}

#[test]
fn row_counts_that_do_not_fit_are_wrong_use() {
    let folder = folder(STUDY);
    let fails = |rows: &str| {
        let (stdout, stderr, code) = run(folder.path(), &["privacy", "study.toml", "--rows", rows]);
        assert_eq!((stdout.as_str(), code), ("", 2), "{stderr}");
        stderr
    };
    assert_eq!(
        fails("10,20"),
        "error: --rows: 2 numbers of rows for 3 nodes: give one number for each node, or a single one for all\n"
    );
    for rows in ["0", "-5", "many", "1,,2", "99999999999"] {
        assert!(fails(rows).contains("--rows"), "{rows}");
    }
}

#[test]
fn noise_that_will_drown_the_signal_causes_a_warning_before_a_run() {
    let drowning = by_party().replace("epsilon = 6", "epsilon = 0.2");
    let folder = folder(&drowning);
    let warning = "warning: the noise is likely to drown the signal: at node 0, with 10 rows, its norm is about ";
    for command in ["privacy", "run"] {
        let (_, stderr, code) = run(folder.path(), &[command, "study.toml"]);
        assert!(stderr.contains(warning), "{command}: {stderr}");
        assert_eq!(code, 0);
        let (_, stderr, _) = run(folder.path(), &[command, "study.toml", "--quiet"]);
        assert_eq!(stderr, "");
    }
    let bill = json(folder.path(), &["privacy", "study.toml", "--json"]);
    assert_eq!(bill["drowned"]["party"], "node 0");
}

#[test]
fn an_unattainable_total_is_wrong_use_and_nothing_runs() {
    let folder = folder(&by_party().replace("epsilon = 6", "epsilon = 0.001"));
    for args in [
        &["privacy", "study.toml"][..],
        &["run", "study.toml", "--out", "results"],
    ] {
        let (stdout, stderr, code) = run(folder.path(), args);
        assert_eq!((stdout.as_str(), code), ("", 2));
        assert!(
            stderr.starts_with("error: study.toml: [privacy] epsilon = 0.001 is out of reach: node 0, with 10 rows, spends about 0.0"),
            "{stderr}"
        );
        assert!(
            stderr.contains(
                "raise epsilon, ridge or penalty, take fewer iterations, or recycle more"
            ),
            "{stderr}"
        );
    }
    assert!(!folder.path().join("results/result.json").exists());
    let folder = self::folder(
        &STUDY
            .replace("epsilon = 6", "epsilon = 6\nbound = \"paper\"")
            .replace("penalty = 5.0", "penalty = 0.001"),
    );
    let (_, stderr, code) = run(folder.path(), &["privacy", "study.toml"]);
    assert_eq!(code, 2);
    assert!(
        stderr.starts_with(
            "error: study.toml: [privacy] bound = \"paper\": the paper's theorem does not cover"
        ),
        "{stderr}"
    );
}

#[test]
fn a_run_writes_a_privacy_statement() {
    let folder = folder(STUDY);
    let (_, stderr, code) = run(folder.path(), &["run", "study.toml", "--out", "results"]);
    assert_eq!(code, 0);
    assert!(stderr.contains("privacy-statement.json"), "{stderr}");
    let read = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(folder.path().join("results").join(name)).unwrap())
            .unwrap()
    };
    let (statement, result) = (read("privacy-statement.json"), read("result.json"));
    assert_eq!(statement["epsilon"], result["privacy"]["epsilon"]);
    assert_eq!(statement["protects"], false);
    assert_eq!(statement["caveat"], result["privacy"]["caveat"]);
    for (stated, node) in statement["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .zip(result["nodes"].as_array().unwrap())
    {
        for key in [
            "name",
            "rows",
            "data_steps",
            "noise",
            "rate",
            "epsilon",
            "delta",
        ] {
            assert_eq!(stated[key], node[key], "{key}");
        }
    }
    // Comments and spacing do not change the digest of the study.
    let bill = json(folder.path(), &["privacy", "study.toml", "--json"]);
    assert_eq!(statement["study_sha256"], bill["study_sha256"]);
    let spaced = STUDY
        .replace(" = ", "   =   ")
        .replace("[run]", "# from here on\n[run]");
    fs::write(folder.path().join("study.toml"), spaced).unwrap();
    let same = json(folder.path(), &["privacy", "study.toml", "--json"]);
    assert_eq!(statement["study_sha256"], same["study_sha256"]);
}

#[test]
fn a_run_shows_the_noise_of_every_party_where_they_differ() {
    let folder = folder(&by_party());
    let (page, _, _) = run(folder.path(), &["run", "study.toml"]);
    assert!(
        page.contains("each party has its own noise: rate "),
        "{page}"
    );
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("data steps rate total ε"), "{page}");
    // It is the same for all where it is given, and where rows count alike.
    let given = by_party().replace("epsilon = 6", "mechanism = \"objective\"\nrate = 2");
    for same in [&given, STUDY] {
        fs::write(folder.path().join("study.toml"), same).unwrap();
        let (page, _, _) = run(folder.path(), &["run", "study.toml"]);
        assert!(
            !page.contains("its own noise") && !page.contains("rate"),
            "{page}"
        );
    }
}

#[test]
fn the_built_in_study_has_a_bill() {
    let folder = TempDir::new().unwrap();
    let (page, warned, code) = run(folder.path(), &["privacy"]);
    assert_eq!((warned.as_str(), code), ("", 0));
    assert!(
        page.starts_with("adult: consensus with 5 parties"),
        "{page}"
    );
}

/// Returns the study for three real parties, each with its own file of rows.
fn between_parties() -> String {
    let parties = [("alder", 10), ("birch", 20), ("cedar", 30)].map(|(name, rows)| {
        // Each of these letters is a hexadecimal digit.
        let key = name[..1].repeat(64);
        format!("[[parties]]\nname = \"{name}\"\nkey = \"ed25519:{key}\"\nrows = {rows}\n")
    });
    let idle = "[data.split]\nmethod = \"sizes\"\nsizes = [1, 2, 3]\nseed = 1\n";
    let text = STUDY.replace("path = \"rows.csv\"\n", "");
    text.replace(idle, "").replace("[run]\nseed = 1\n", "") + &parties.concat()
}

#[test]
fn parties_with_their_own_files_are_billed_for_the_rows_that_they_declare() {
    let folder = folder(&between_parties());
    let bill = json(folder.path(), &["privacy", "study.toml", "--json"]);
    let args = ["privacy", "study.toml", "--json", "--rows"];
    let given = json(folder.path(), &[&args[..], &["10,20,30"]].concat());
    assert_eq!(given, bill);
    let others = json(folder.path(), &[&args[..], &["30,20,10"]].concat());
    assert_eq!(others["nodes"][0]["rows"], 30);
    let nodes = bill["nodes"].as_array().unwrap();
    let parties: Vec<(&str, u64)> = nodes
        .iter()
        .map(|node| {
            (
                node["name"].as_str().unwrap(),
                node["rows"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(parties, [("alder", 10), ("birch", 20), ("cedar", 30)]);
    fs::write(folder.path().join("simulated.toml"), STUDY).unwrap();
    let simulated = json(folder.path(), &["privacy", "simulated.toml", "--json"]);
    assert_eq!(bill["nodes"][2]["rate"], simulated["nodes"][2]["rate"]);
    assert_eq!(bill["epsilon"], simulated["epsilon"]);
}

#[test]
fn a_study_without_rows_is_not_simulated() {
    // Where parties count alike, they need not declare their rows.
    let text = between_parties().replace("[problem]", "[problem]\ncount = \"parties\"");
    let undeclared: String = text
        .lines()
        .filter(|line| !line.starts_with("rows = "))
        .map(|line| format!("{line}\n"))
        .collect();
    let folder = folder(&undeclared);
    for command in ["privacy", "run", "certify", "audit", "compare"] {
        let mut args = vec![command, "study.toml"];
        if command == "compare" {
            args.push("study.toml");
        }
        let (stdout, stderr, code) = run(folder.path(), &args);
        assert_eq!(
            (stdout.as_str(), stderr.as_str(), code),
            (
                "",
                "error: study.toml: [data] has neither path nor builtin: every party has its own rows; run it with \"radmm node\", or give path or builtin to simulate it\n",
                2
            ),
            "{command}"
        );
    }
}

#[test]
fn a_study_for_real_parties_can_be_simulated_with_a_table() {
    let text = between_parties()
        .replace("label", "path = \"rows.csv\"\nlabel")
        .replace("rows = 10\n", "rows = 20\n")
        .replace("rows = 30\n", "rows = 20\n")
        .replace(
            "[[parties]]\nname = \"alder\"",
            "[run]\nseed = 1\n[[parties]]\nname = \"alder\"",
        );
    let folder = folder(&text);
    let bill = json(folder.path(), &["privacy", "study.toml", "--json"]);
    assert_eq!(bill["nodes"][1]["name"], "birch");
    assert_eq!(bill["nodes"][1]["rows"], 20);
}
