//! The commands of the operator's guide, docs/node.md, run word for word, and their results can be verified and continued.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/guide.rs"]
mod guide;

use std::fs;
use std::path::Path;
use std::process::Output;

use guide::{commands, shell};

const GUIDE: &str = include_str!("../../../docs/node.md");

fn all_output(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Returns the output of a command and its exit code.
fn radmm(folder: &Path, arguments: &str) -> (String, i32) {
    let output = shell(folder, &format!("radmm {arguments}"));
    (all_output(&output), output.status.code().unwrap())
}

#[test]
fn the_guide_runs_word_for_word() {
    let folder = tempfile::tempdir().unwrap();
    let output = shell(folder.path(), &commands(GUIDE));
    assert!(output.status.success(), "{}", all_output(&output));
    let all = all_output(&output);
    for words in [
        "alder is party 0 of study readmission",
        "birch is connected",
        "every check passed",
        "the account is intact",
    ] {
        assert!(all.contains(words), "{words}\n{all}");
    }
    let trial = folder.path().join("trial");
    a_wrong_key_is_reported(&trial);
    odd_values_are_counted_for_the_operator_only(&trial);
    a_forged_transcript_is_rejected(&trial);
    a_finished_study_spends_nothing_more(&trial);
    studies_add_up_to_the_limit(&trial);
    changed_rows_are_rejected_until_declared(&trial);
}

fn a_wrong_key_is_reported(trial: &Path) {
    let check = "node --study study.toml --site alder/other.toml --check";
    let site = fs::read_to_string(trial.join("alder/site.toml")).unwrap();
    // Birch's key, and an empty state folder.
    let other = site
        .replace("\"key.pem\"", "\"../birch/key.pem\"")
        .replace("\"state\"", "\"elsewhere\"");
    let identity = fs::read_to_string(trial.join("birch/identity")).unwrap();
    let identity = identity.trim();
    fs::write(trial.join("alder/other.toml"), &other).unwrap();
    let (text, code) = radmm(trial, check);
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("party = \"alder\": key file alder/../birch/key.pem has the identity")
            && text.contains(&format!("{identity}, which is that of birch in the study")),
        "{text}"
    );
    // Without party in the site file, the check shows which party the key belongs to.
    fs::write(
        trial.join("alder/other.toml"),
        other.replace("party = \"alder\"", ""),
    )
    .unwrap();
    let (text, code) = radmm(trial, check);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("birch is party 1 of study readmission")
            && text.contains(&format!(
                "key: alder/../birch/key.pem is birch's, {identity}"
            ))
            && text.contains("so this site is birch: if it is not, the key file is wrong"),
        "{text}"
    );
}

fn odd_values_are_counted_for_the_operator_only(trial: &Path) {
    let rows = fs::read_to_string(trial.join("alder/rows.csv")).unwrap();
    let odd = format!("{rows}120,no,no\n7,yes,yes\n44,no,Yes\n");
    fs::write(trial.join("alder/odd.csv"), odd).unwrap();
    let site = fs::read_to_string(trial.join("alder/site.toml")).unwrap();
    let site = site
        .replace("\"rows.csv\"", "\"odd.csv\"")
        .replace("\"results\"", "\"odd-results\"")
        .replace("\"state\"", "\"elsewhere\"");
    fs::write(trial.join("alder/odd.toml"), site).unwrap();
    // There are more rows than declared.
    let (text, code) = radmm(
        trial,
        "node --study study.toml --site alder/odd.toml --check",
    );
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains(
            "alder/odd.csv: 503 training rows, and the study declares rows = 500 for alder"
        ),
        "{text}"
    );
    let study = fs::read_to_string(trial.join("study.toml")).unwrap();
    let study = study.replacen("rows = 500", "rows = 503", 1);
    fs::write(trial.join("odd.toml"), study).unwrap();
    let check = "radmm node --study odd.toml --site alder/odd.toml --check";
    let output = shell(trial, check);
    assert!(output.status.success(), "{}", all_output(&output));
    let page = String::from_utf8(output.stdout).unwrap();
    for words in [
        "private, not for sharing",
        "dropped for a missing field: 0 rows",
        "clipped to the nearer one: age in 2 rows, of 503",
        "\"Yes\" in 1 row; THESE ARE MORE THAN TWO VALUES, and all but \"yes\" count as negative",
    ] {
        assert!(page.contains(words), "{words}\n{page}");
    }
    // The counts are on stdout, and in no log.
    let output = shell(trial, &format!("{check} --json --log json"));
    let checked: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(checked["private"]["clipped"]["age"], 2);
    assert!(
        checked["private"]["note"]
            .as_str()
            .unwrap()
            .starts_with("not for sharing"),
        "{checked}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(!trial.join("alder/elsewhere").exists());
    // They are in no file or log of a node.
    let grep = shell(
        trial,
        "grep -rlE 'clipped|not for sharing|left_out' alder birch cedar",
    );
    assert_eq!(String::from_utf8_lossy(&grep.stdout), "");
}

fn a_forged_transcript_is_rejected(trial: &Path) {
    let path = trial.join("alder/results/transcript.jsonl");
    let transcript = fs::read_to_string(&path).unwrap();
    let verify = "verify --study study.toml alder/results/transcript.jsonl";
    assert_eq!(radmm(trial, verify).1, 0);
    // One digit of the last message.
    let last = transcript.trim_end().rfind("\"units\":[").unwrap() + 10;
    let digit = match &transcript[last..=last] {
        "1" => "2",
        _ => "1",
    };
    let forged = format!("{}{digit}{}", &transcript[..last], &transcript[last + 1..]);
    fs::write(&path, forged).unwrap();
    let (text, code) = radmm(trial, verify);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("alder") || text.contains("birch") || text.contains("cedar"),
        "{text}"
    );
    fs::write(&path, transcript).unwrap();
    // Another study.
    let study = fs::read_to_string(trial.join("study.toml")).unwrap();
    fs::write(
        trial.join("other.toml"),
        study.replace("penalty = 3.0", "penalty = 3.5"),
    )
    .unwrap();
    let (text, code) = radmm(
        trial,
        "verify --study other.toml alder/results/transcript.jsonl",
    );
    assert_ne!(code, 0, "{text}");
    assert_eq!(
        radmm(
            trial,
            "verify --study missing.toml alder/results/transcript.jsonl"
        )
        .1,
        2
    );
}

fn a_finished_study_spends_nothing_more(trial: &Path) {
    let before = radmm(trial, "ledger show --state alder/state --json").0;
    fs::remove_file(trial.join("alder/results/model.json")).unwrap();
    // It waits for no peer, and writes its results again.
    let output = shell(
        trial,
        "radmm node --study study.toml --site alder/site.toml",
    );
    assert!(output.status.success(), "{}", all_output(&output));
    assert!(trial.join("alder/results/model.json").exists());
    assert_eq!(
        radmm(trial, "ledger show --state alder/state --json").0,
        before
    );
}

fn studies_add_up_to_the_limit(trial: &Path) {
    let study = fs::read_to_string(trial.join("study.toml")).unwrap();
    let again = study.replace("name = \"readmission\"", "name = \"again\"");
    assert_ne!(again, study);
    fs::write(trial.join("again.toml"), &again).unwrap();
    // The first study's results are not overwritten.
    let check = "node --study again.toml --site alder/site.toml --check";
    let (text, code) = radmm(trial, check);
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("this folder holds the results of study readmission"),
        "{text}"
    );
    let site = fs::read_to_string(trial.join("alder/site.toml")).unwrap();
    let later = site.replace("out = \"results\"", "out = \"later\"");
    fs::write(trial.join("alder/site.toml"), later).unwrap();
    let (text, code) = radmm(
        trial,
        "node --study again.toml --site alder/site.toml --check --json 2> checked",
    );
    assert_eq!(code, 0, "{text}");
    let bill: serde_json::Value = serde_json::from_str(&text).unwrap();
    let epsilon = |of: &str| bill["bill"][of][0]["epsilon"].as_f64().unwrap();
    assert!(epsilon("before") > 2.0 && epsilon("after") > epsilon("before") + 0.5);
    assert!(epsilon("after") <= epsilon("limits"));
    // The ledger shows the same totals, and so did the node when it finished.
    let (text, _) = radmm(trial, "ledger show --site alder/site.toml --json");
    let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut before = bill["bill"]["before"].clone();
    before[0]["limit"] = 5.0.into();
    assert_eq!(shown["site"]["totals"], before);
    let ended = fs::read_to_string(trial.join("birch/ended.json")).unwrap();
    let ended: serde_json::Value = serde_json::from_str(&ended).unwrap();
    let (text, _) = radmm(trial, "ledger show --site birch/site.toml --json");
    let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown["site"]["totals"], ended["site"]["totals"]);
    assert_eq!(ended["site"]["totals"][0]["limit"], 5.0);
    // A study that does not fit is rejected before it starts, and leaves no trace.
    fs::write(
        trial.join("dear.toml"),
        again.replace("epsilon = 2.0", "epsilon = 4.5"),
    )
    .unwrap();
    let (text, code) = radmm(trial, "node --study dear.toml --site alder/site.toml");
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("[limit]") && text.contains("nothing was spent"),
        "{text}"
    );
    let (text, _) = radmm(trial, "ledger show --state alder/state");
    assert!(
        !text.contains("dear") && text.contains("readmission"),
        "{text}"
    );
}

fn changed_rows_are_rejected_until_declared(trial: &Path) {
    let rows = fs::read_to_string(trial.join("alder/rows.csv")).unwrap();
    let (others, _) = rows.trim_end().rsplit_once('\n').unwrap();
    fs::write(
        trial.join("alder/rows.csv"),
        format!("{others}\n33,no,no\n"),
    )
    .unwrap();
    let (text, code) = radmm(
        trial,
        "node --study again.toml --site alder/site.toml --check",
    );
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("continues = ["), "{text}");
    // Declaring that the rows continue the old ones continues their account.
    let start = text.find("continues = [\"").unwrap() + 14;
    let fingerprint = &text[start..start + 64];
    let site = fs::read_to_string(trial.join("alder/site.toml")).unwrap();
    let declared = format!("path = \"rows.csv\"\ncontinues = [\"{fingerprint}\"]");
    fs::write(
        trial.join("alder/site.toml"),
        site.replace("path = \"rows.csv\"", &declared),
    )
    .unwrap();
    let (text, code) = radmm(
        trial,
        "node --study again.toml --site alder/site.toml --check",
    );
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains("ε 0.0000 spent"), "{text}");
    // The study that was started on the old rows cannot be resumed.
    let (text, code) = radmm(
        trial,
        "node --study study.toml --site alder/site.toml --check",
    );
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("on other rows"), "{text}");
}
