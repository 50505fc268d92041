//! What the owner of rows signs before a study, and gets after it: `radmm study show`, `[study] sha256`, `statement.html` and
//! `report.html`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/party_processes.rs"]
mod party_processes;
mod support;

use std::fs;
use std::path::Path;

use party_processes::{PartyProcesses, clinic};
use radmm_study::Study;
use serde_json::Value;
use support::{radmm, text};

#[test]
fn a_study_is_shown_for_signing_off() {
    let parties = PartyProcesses::new(&clinic(30));
    let folder = parties.folder();
    let study = parties.study();
    let output = radmm(folder, &["study", "show", "study.toml"]);
    let page = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for part in [
        study.sha256().as_str(),
        &study.parties[2].key.to_string(),
        "alder, 530 rows, key",
        "loss logistic",
        "name r-admm",
        "15 answers from the rows of a party, each with noise; 31 messages to each of",
        "at δ = 1e-4: the total of every party over every message of the run, the largest of all parties, for one row of one party replaced",
    ] {
        assert!(one_line(page).contains(part), "{part} in\n{page}");
    }
    assert!(
        page.lines().all(|line| line.chars().count() < 100),
        "{page}"
    );
    // What is printed for the site file is what the site file takes.
    let (_, for_site) = page.split_once("[study]\n").unwrap();
    assert_eq!(for_site, format!("sha256 = \"{}\"\n", study.sha256()));

    let output = radmm(folder, &["study", "show", "study.toml", "--json"]);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["study_sha256"], study.sha256());
    assert_eq!(shown["parties"][2]["name"], "cedar");
    assert_eq!(shown["parties"][2]["releases"], 15);
    assert_eq!(shown["relation"], "one row of one party replaced");
    assert_eq!(shown["problem"]["loss"], "logistic");
    assert_eq!(shown["algorithm"]["iterations"], 30);
    assert!(shown["epsilon"].as_f64().unwrap() > 0.0);
    let output = radmm(folder, &["study", "show", "missing.toml"]);
    assert_eq!(output.status.code(), Some(2));
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_node_runs_the_study_that_its_owner_approved_and_no_other() {
    let parties = PartyProcesses::new(&clinic(5));
    let site = fs::read_to_string(parties.site(0)).unwrap();
    let approved = parties.study().sha256();
    // The file that is written for a trial has the digest already, as a comment.
    let line = format!("# [study]\n# sha256 = \"{approved}\"\n");
    assert!(site.contains(&line), "{site}");
    fs::write(parties.site(0), site.replace("# [study]\n# ", "[study]\n")).unwrap();
    let check = |study: &Path| {
        let site = parties.site(0).to_str().unwrap();
        let study = study.to_str().unwrap();
        let args = ["node", "--check", "--study", study, "--site", site];
        radmm(parties.folder(), &args)
    };
    let output = check(&parties.folder().join("study.toml"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let changed = parties.changed_study("iterations = 5", "iterations = 6");
    let (other, _) = Study::parse(&fs::read_to_string(&changed).unwrap(), "").unwrap();
    let output = check(&changed);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    for part in [
        approved.as_str(),
        &other.sha256(),
        "radmm study show",
        "nothing was spent",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

/// Returns the pages of alder after a run of all parties.
fn pages(folder: &Path, options: &[&str]) -> [String; 2] {
    fs::write(folder.join("study.toml"), clinic(6)).unwrap();
    let up = ["up", "study.toml", "--dir", "trial", "--quiet"];
    let ran = radmm(folder, &[&up[..], options].concat());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let results = folder.join("trial/alder/results");
    ["statement.html", "report.html"].map(|name| fs::read_to_string(results.join(name)).unwrap())
}

#[test]
fn a_run_ends_with_a_page_for_those_who_answer_for_the_rows_and_one_for_the_operator() {
    let folder = tempfile::tempdir().unwrap();
    let [statement, report] = pages(folder.path(), &[]);
    let results = folder.path().join("trial/alder/results");
    let signed = fs::read_to_string(results.join("privacy-statement.json")).unwrap();
    let signed: Value = serde_json::from_str(&signed).unwrap();
    let total = signed["statement"]["epsilon"].as_f64().unwrap();
    let total = format!("ε = {}", radmm_study::number_format::epsilon(total));
    for page in [&statement, &report] {
        for part in [
            total.as_str(),
            "at δ = 1e-4",
            "one row of one party replaced",
            "all studies on these rows",
        ] {
            assert!(page.contains(part), "{part} in\n{page}");
        }
        // It fetches nothing and runs nothing.
        assert!(page.contains("default-src 'none'"), "{page}");
        for foreign in ["http:", "https:", "<script", "<link", "@import", "url("] {
            let named = page
                .replace("http://www.w3.org/2000/svg", "")
                .replace("url(#", "");
            assert!(!named.contains(foreign), "{foreign} in\n{page}");
        }
        assert!(!page.contains("protects nobody"), "{page}");
    }
    for part in [
        // To whom, and how often.
        "birch",
        "rowan",
        "<td class=\"number\">7</td>",
        signed["statement"]["study_sha256"].as_str().unwrap(),
        signed["signed_by"].as_str().unwrap(),
        "The program deletes none of it",
        "To publish it, to use it, or to sell it adds nothing to the total",
    ] {
        assert!(statement.contains(part), "{part} in\n{statement}");
    }
    for part in [
        "No neighbour sent anything invalid",
        "transcript.jsonl",
        "weight",
    ] {
        assert!(report.contains(part), "{part} in\n{report}");
    }
    // The command that the page gives works where the study is beside the files.
    let study = folder.path().join("trial/study.toml");
    fs::copy(study, results.join("study.toml")).unwrap();
    let (_, from) = statement.split_once("radmm verify ").unwrap();
    let (command, _) = from.split_once("</code>").unwrap();
    let args: Vec<&str> = command
        .split_whitespace()
        .filter(|word| *word != "\\")
        .collect();
    let verified = radmm(&results, &[&["verify"], &args[..]].concat());
    assert!(verified.status.success(), "{}", text(&verified.stdout));
}

#[test]
fn a_rehearsal_says_on_its_pages_that_it_protects_nobody() {
    let folder = tempfile::tempdir().unwrap();
    for page in pages(folder.path(), &["--seeded"]) {
        assert!(
            page.contains("<strong>This protects nobody.</strong>"),
            "{page}"
        );
    }
}
