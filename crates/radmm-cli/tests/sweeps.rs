//! `--set` and `--seed`: keys in place of those of a study file, as a user gives them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/guide.rs"]
mod guide;
#[path = "support/small_study.rs"]
mod small_study;
mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;

use guide::{commands, shell};
use small_study::{STUDY, folder};
use support::{radmm, text};

const PAGE: &str = include_str!("../../../docs/sweeps.md");

fn json(folder: &Path, args: &[&str]) -> Value {
    let output = radmm(folder, &[args, &["--json", "-q"]].concat());
    assert!(
        output.status.success(),
        "{args:?}: {}",
        text(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_key_that_is_set_is_the_same_as_one_in_the_file() {
    let folder = folder(STUDY);
    let edited = STUDY
        .replace("penalty = 0.5", "penalty = 3")
        .replace("rate = 2.0", "epsilon = 0.5\nnoise = \"gamma\"")
        .replace("seed = 1", "seed = 7\nrepetitions = 2");
    fs::write(folder.path().join("edited.toml"), edited).unwrap();
    let without_rate = STUDY.replace("rate = 2.0\n", "");
    fs::write(folder.path().join("study.toml"), without_rate).unwrap();
    let set = json(
        folder.path(),
        &[
            "run",
            "study.toml",
            "--set",
            "algorithm.penalty=3",
            "--set",
            "privacy.epsilon=0.5",
            "--set",
            "privacy.noise=gamma",
            "--set",
            "run.repetitions=2",
            "--seed",
            "7",
        ],
    );
    assert_eq!(set, json(folder.path(), &["run", "edited.toml"]));
    assert_eq!(set["study"]["run"]["seed"], 7);
}

#[test]
fn the_study_beside_a_result_runs_again_with_the_same_bits() {
    let folder = folder(STUDY);
    let set = [
        "--set",
        "algorithm.penalty=3",
        "--set",
        "name=third",
        "--seed",
        "7",
    ];
    let first = ["run", "study.toml", "--out", "runs/7", "-q"];
    let output = radmm(folder.path(), &[&first[..], &set].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let written = fs::read_to_string(folder.path().join("runs/7/study.toml")).unwrap();
    for line in ["name = \"third\"", "penalty = 3.0", "seed = 7"] {
        assert!(
            written.lines().any(|found| found == line),
            "{line} in\n{written}"
        );
    }
    let statement = fs::read(folder.path().join("runs/7/privacy-statement.json")).unwrap();
    let statement: Value = serde_json::from_slice(&statement).unwrap();
    let edited = STUDY
        .replace("penalty = 0.5", "penalty = 3")
        .replace("seed = 1", "seed = 7")
        .replace("small", "third");
    fs::write(folder.path().join("edited.toml"), edited).unwrap();
    let shown = json(folder.path(), &["privacy", "edited.toml"]);
    assert_eq!(statement["study_sha256"], shown["study_sha256"]);
    let again = json(folder.path(), &["run", "runs/7/study.toml"]);
    let result = fs::read(folder.path().join("runs/7/result.json")).unwrap();
    let mut result: Value = serde_json::from_slice(&result).unwrap();
    // The rows have another path from there.
    result["study"]["data"]["path"] = "../../rows.csv".into();
    assert_eq!(again, result);
}

#[test]
fn every_command_on_studies_takes_keys() {
    let folder = folder(STUDY);
    let total = ["--set", "privacy={ epsilon = 0.25, delta = 1e-6 }"];
    let with = |args: &[&'static str]| json(folder.path(), &[args, &total].concat());
    assert_eq!(with(&["privacy", "study.toml"])["nodes"][0]["delta"], 1e-6);
    assert_eq!(with(&["privacy"])["study"], "adult");
    assert_eq!(with(&["compare", "study.toml"])["epsilon"], 0.25);
    assert_eq!(
        with(&["plan", "study.toml", "--epsilon", "1"])["own_epsilon"],
        0.25
    );
    let planned = with(&[
        "plan",
        "--rows",
        "900,800",
        "--columns",
        "20",
        "--epsilon",
        "1",
        "--set",
        "algorithm.name=r-admm",
    ]);
    assert_eq!(planned["algorithm"], "r-admm");
    let audited = json(
        folder.path(),
        &[
            "audit",
            "study.toml",
            "--runs",
            "200",
            "--set",
            "algorithm.penalty=3",
            "--seed",
            "4",
        ],
    );
    assert_eq!(audited["seed"], 4);
    let certified = json(
        folder.path(),
        &["certify", "study.toml", "--set", "network.nodes=4"],
    );
    assert_eq!(certified["network"]["nodes"], 4);
}

#[test]
fn mistakes_name_the_argument_and_have_exit_code_2() {
    let folder = folder(STUDY);
    let run = |args: &[&str]| {
        let output = radmm(folder.path(), &[&["run", "study.toml"], args].concat());
        assert_eq!(text(&output.stdout), "", "{args:?}");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        text(&output.stderr).to_owned()
    };
    for (args, said) in [
        (
            &["--set", "algorithm.penalti=3"][..],
            "--set algorithm.penalti=3: [algorithm] unknown key \"penalti\": did you mean \"penalty\"?",
        ),
        (
            &["--set", "algorithm.penalty=-1"],
            "--set algorithm.penalty=-1: [algorithm] penalty = -1: must be positive and finite",
        ),
        (
            &["--set", "algorithm.name=admn"],
            "--set algorithm.name=admn: [algorithm] name = \"admn\": did you mean \"admm\"?",
        ),
        (
            &["--set", "run.seed=3", "--seed", "4"],
            "--seed 4: --set run.seed=3 gives this key too; keep one of the two",
        ),
        (
            &[
                "--set",
                "algorithm.penalty=1",
                "--set",
                "algorithm.penalty=1",
            ],
            "--set algorithm.penalty=1: --set algorithm.penalty=1 gives this key too; keep one of the two",
        ),
        (
            &["--set", "network.nodes=1"],
            "--set network.nodes=1: [network] nodes = 1: must be an integer from 2 to 1000000",
        ),
    ] {
        assert_eq!(run(args), format!("error: {said}\n"));
    }
    // What is no key with a value is reported before any file is read.
    for (args, said) in [
        (
            &["--set", "algorithm.penalty"][..],
            "invalid value 'algorithm.penalty' for '--set <KEY=VALUE>': must be KEY=VALUE, such as algorithm.penalty=3",
        ),
        (
            &["--seed", "-1"],
            "invalid value '-1' for '--seed <N>': must be an integer from 0 to 9223372036854775807",
        ),
    ] {
        assert_eq!(
            run(args),
            format!("error: {said}\n\nFor more information, try '--help'.\n")
        );
    }
    let output = radmm(folder.path(), &["audit", "--set", "privacy.epsilon=1"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "error: --set: there is no study to set a key of; give one, as in radmm audit study.toml --set privacy.epsilon=1\n"
    );
}

#[test]
fn notes_on_keys_that_are_set_name_the_argument() {
    let folder = folder(STUDY);
    let args = [
        "privacy",
        "study.toml",
        "--set",
        "algorithm.step=1",
        "--json",
    ];
    let output = radmm(folder.path(), &args);
    assert_eq!(
        text(&output.stderr).lines().next().unwrap(),
        "note: --set algorithm.step=1: [algorithm] step is not used by r-admm"
    );
}

#[test]
fn the_page_on_sweeps_runs_word_for_word() {
    let folder = tempfile::tempdir().unwrap();
    let output = shell(folder.path(), &commands(PAGE));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    for words in [
        "9 runs below runs",
        "4 combinations of 1 study at equal total privacy",
        "tuning",
    ] {
        assert!(printed.contains(words), "{words} in\n{printed}");
    }
    assert!(folder.path().join("runs.parquet").is_file());

    // Tasks of the array, which a cluster would start on several machines.
    let task = |number: u32, threads: u32| {
        let variables = format!("SLURM_ARRAY_TASK_ID={number} SLURM_CPUS_PER_TASK={threads}");
        shell(folder.path(), &format!("{variables} bash sweep.sbatch"))
    };
    for number in 1..=6 {
        let output = task(number, 1);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let table = |out: &str| {
        let line = format!("radmm collect swept --require-all --quiet --out {out}");
        let output = shell(folder.path(), &line);
        assert!(output.status.success(), "{}", text(&output.stderr));
        fs::read(folder.path().join(out)).unwrap()
    };
    let first = table("swept.csv");
    let lines = text(&first).lines().count();
    assert_eq!(lines, 1 + 6 * 3, "a method and two baselines for each run");
    // One that is run again with other threads writes the same bytes, and a line that is wrong fails its task.
    assert!(task(2, 2).status.success());
    assert_eq!(table("again.csv"), first);
    fs::write(
        folder.path().join("sweep.txt"),
        "--set algorithm.penalti=3\n",
    )
    .unwrap();
    let failed = task(1, 1);
    assert!(!failed.status.success());
    assert!(
        text(&failed.stderr).contains("unknown key"),
        "{}",
        text(&failed.stderr)
    );
}
