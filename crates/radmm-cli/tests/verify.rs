//! `radmm verify`, as a user runs it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/finished_study.rs"]
mod finished_study;
mod support;

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use finished_study::{PARTIES, file, run_study};
use support::{radmm, text};

fn verify(folder: &Path, parties: &[&str], more: &[&str]) -> Output {
    let files: Vec<String> = parties
        .iter()
        .map(|party| file(party, "transcript.jsonl"))
        .collect();
    let mut args = vec!["verify", "--study", "study.toml"];
    args.extend(files.iter().map(String::as_str));
    args.extend(more);
    radmm(folder, &args)
}

#[test]
fn honest_transcripts_and_statements_pass() {
    let folder = run_study(&[]);
    let stated = file("cedar", "privacy-statement.json");
    let output = verify(folder.path(), &PARTIES, &["--statement", &stated]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    // Undo line breaks.
    let page = text(&output.stdout).replace("\n         ", " ");
    let header = page.lines().next().unwrap();
    assert!(
        header.contains("recycled") && header.contains("ε"),
        "{page}"
    );
    // Seven messages of three parties each, three data steps.
    let alder = page.lines().find(|line| line.contains("alder")).unwrap();
    let numbers: Vec<&str> = alder.split_whitespace().skip(2).take(5).collect();
    assert_eq!(numbers, ["21", "21", "3", "3", "3"], "{page}");
    assert!(page.contains("at δ = 1e-4"), "{page}");
    assert!(page.contains("one row of one party replaced"), "{page}");
    assert!(
        page.contains("whether the noise was really drawn"),
        "{page}"
    );
    assert!(page.ends_with("every check passed\n"), "{page}");
    assert!(page.contains("cedar: signed by it, and compared"), "{page}");
    assert!(!page.contains("no transcript of"), "{page}");
    // Claims that cannot be checked are marked as such.
    let words = [
        "\"protects\" is each party's own claim",
        "\"site\" of a statement is its party's own claim",
        "alder claims that its noise protects, which no file can show",
        "its site was compared with this study, and is its own claim beyond that",
    ];
    for word in words {
        assert!(page.contains(word), "{word}: {page}");
    }

    let json = verify(
        folder.path(),
        &PARTIES[..2],
        &["--json", "--statement", &stated],
    );
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["holds"], true);
    assert_eq!(json["transcripts"][1]["party"], "birch");
    assert_eq!(json["transcripts"][1]["total"]["delta"], 1e-4);
    assert_eq!(json["statements"][0]["compared"], false);
    assert_eq!(json["statements"][0]["site"], true);
    let beyond = json["not_checked"].as_str().unwrap();
    assert!(beyond.contains("\"protects\" is each party's own claim"));
    assert!(beyond.contains("\"site\" of a statement is its party's own claim"));
}

#[test]
fn a_model_is_compared_with_its_transcript() {
    let folder = run_study(&[]);
    let model = file("birch", "model.json");
    let with = ["--model", &model];
    let output = verify(folder.path(), &PARTIES, &with);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = text(&output.stdout).replace("\n         ", " ");
    assert!(
        page.contains("birch: compared with the model that follows from its transcript"),
        "{page}"
    );
    let output = verify(folder.path(), &["alder"], &with);
    assert_eq!(output.status.code(), Some(0));
    let page = text(&output.stdout).replace("\n         ", " ");
    assert!(
        page.contains("birch: there is no transcript from which its model follows"),
        "{page}"
    );
    // Another party's weights under birch's name.
    let alders = fs::read_to_string(folder.path().join(file("alder", "model.json"))).unwrap();
    let renamed = alders.replace("\"party\": \"alder\"", "\"party\": \"birch\"");
    assert_ne!(alders, renamed);
    fs::write(folder.path().join(&model), renamed).unwrap();
    let output = verify(folder.path(), &PARTIES, &with);
    assert_eq!(output.status.code(), Some(1));
    let page = text(&output.stdout);
    let fault = "birch, iteration 6: the weights are not those that follow";
    assert!(page.contains(fault), "{page}");
}

#[test]
fn parties_without_a_transcript_are_named() {
    let folder = run_study(&[]);
    let some = &PARTIES[..2];
    let output = verify(folder.path(), some, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = text(&output.stdout).replace("\n         ", " ");
    assert!(
        page.contains("no transcript of cedar, maple, rowan: "),
        "{page}"
    );
    let result = "every check passed; 3 parties' transcripts are missing\n";
    assert!(page.ends_with(result), "{page}");
    let json = verify(folder.path(), some, &["--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let missing: Vec<&str> = json["missing"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(missing, ["cedar", "maple", "rowan"]);
}

#[test]
fn a_missing_charge_is_a_fault_and_fails() {
    let folder = run_study(&[]);
    let path = folder.path().join(file("birch", "transcript.jsonl"));
    let whole = fs::read_to_string(&path).unwrap();
    let without = whole
        .lines()
        .filter(|line| !line.starts_with("{\"charge\":{\"iteration\":3"));
    let changed: String = without.map(|line| format!("{line}\n")).collect();
    assert_ne!(whole, changed);
    fs::write(&path, changed).unwrap();
    let output = verify(folder.path(), &["alder", "birch"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let page = text(&output.stdout);
    let fault = "birch, iteration 3: the study charges here, and the transcript does not";
    assert!(page.contains(fault), "{page}");
    assert!(!page.contains("every check passed"), "{page}");
    assert_eq!(
        text(&output.stderr),
        "error: verification failed: 2 faults\n"
    );
    let json = verify(folder.path(), &["birch"], &["--json"]);
    assert_eq!(json.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["faults"][0]["iteration"], 3);
    assert_eq!(json["holds"], false);
}

#[test]
fn wrong_use_has_exit_code_2() {
    let folder = run_study(&[]);
    for args in [
        &["verify", "--study", "study.toml"][..],
        &["verify", "alder/transcript.jsonl"],
        &["verify", "--study", "study.toml", "nowhere.jsonl"],
        &["verify", "--study", "no.toml", "alder/transcript.jsonl"],
        &[
            "verify",
            "--study",
            "study.toml",
            "alder/transcript.jsonl",
            "--model",
            "no.json",
        ],
    ] {
        assert_eq!(
            radmm(folder.path(), args).status.code(),
            Some(2),
            "{args:?}"
        );
    }
    let output = verify(folder.path(), &["alder", "birch", "alder"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the same transcript as"));
    assert!(output.stdout.is_empty());
    // A study without parties has no keys to check signatures with.
    let text_of = fs::read_to_string(folder.path().join("study.toml")).unwrap();
    let alone = text_of.split("[[parties]]").next().unwrap();
    let alone = alone.replace("[network]", "[network]\nnodes = 5");
    fs::write(folder.path().join("alone.toml"), alone).unwrap();
    let args = ["verify", "--study", "alone.toml", "alder/transcript.jsonl"];
    let output = radmm(folder.path(), &args);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the study has no [[parties]]"));
}
