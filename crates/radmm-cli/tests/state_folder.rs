//! A state folder that somebody deletes, moves or replaces while its node runs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/party_processes.rs"]
mod party_processes;
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use party_processes::{PartyProcesses, clinic};
use radmm::graph::NodeId;
use radmm_node::machine::SignedMessage;
use radmm_node::store::Store;
use support::{radmm, text};

#[test]
fn a_node_whose_state_folder_is_taken_away_stops_before_its_next_message() {
    let mut parties = PartyProcesses::new(&clinic(1500));
    parties.start_all();
    parties.wait_until("the parties are on their way", |parties| {
        (0..5).all(|party| parties.iteration(party) > 20)
    });
    let state = parties.home(0).join("state");
    let aside = parties.home(0).join("aside");
    fs::rename(&state, &aside).unwrap();
    // An empty folder in its place changes nothing.
    drop(Store::open(&state).unwrap());
    let exited = parties.wait(0);
    assert_eq!(exited.status.code(), Some(1));
    let log = exited.log.join("\n");
    assert!(
        log.contains("the state was deleted, moved or replaced while this party was running"),
        "{log}"
    );
    // Everything that a neighbour has received is on record in the folder that was taken away.
    let mut sent = Vec::new();
    let each = |signed| {
        sent.push(signed);
        Ok(())
    };
    let record = Store::open_read_only(&aside).unwrap();
    record.for_each_sent(0, each).unwrap();
    assert!(sent.len() > 20 && sent.len() < 1500, "{}", sent.len());
    for neighbour in parties.neighbours(0) {
        let store = parties.store(neighbour);
        let mut received = Vec::new();
        let each = |signed: SignedMessage| {
            if signed.message.from == NodeId(0) {
                received.push(signed);
            }
            Ok(())
        };
        store.for_each_received(0, each).unwrap();
        assert!(received.len() > 20, "{}", received.len());
        assert_eq!(received, sent[..received.len()]);
    }
    // With the folder back, the study goes on.
    fs::remove_dir_all(&state).unwrap();
    fs::rename(&aside, &state).unwrap();
    parties.start(0);
    parties.wait_all();
}

#[test]
fn a_restored_copy_runs_only_after_it_was_adopted() {
    let mut parties = PartyProcesses::new(&clinic(200));
    parties.start_all();
    parties.wait_until("a party is on its way", |parties| parties.iteration(0) > 20);
    parties.kill(0);
    // The disk was replaced, and the files come from a copy of it.
    let (state, copy) = (parties.home(0).join("state"), parties.home(0).join("copy"));
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(&state).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    fs::rename(&state, parties.home(0).join("lost")).unwrap();
    fs::rename(&copy, &state).unwrap();
    parties.start(0);
    let exited = parties.wait(0);
    assert_eq!(exited.status.code(), Some(1));
    let log = exited.log.join("\n");
    assert!(log.contains("this state folder lives elsewhere"), "{log}");

    let site = parties.site(0).display().to_string();
    let adopt = |more: &[&str]| {
        let args = [&["state", "adopt", "--site", &site], more].concat();
        radmm(parties.folder(), &args)
    };
    let before = files(&state);
    let asked = adopt(&[]);
    assert_eq!(asked.status.code(), Some(2));
    assert!(text(&asked.stderr).contains("--the-other-copy-is-gone"));
    assert!(text(&asked.stdout).contains("The copy that is not adopted"));
    assert!(files(&state) == before, "it changed something");
    let adopted = adopt(&["--the-other-copy-is-gone"]);
    assert_eq!(adopted.status.code(), Some(0), "{}", text(&adopted.stderr));
    parties.start(0);
    parties.wait_all();
}

/// Reads the files of a state folder.
fn files(state: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(state).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

#[test]
fn a_disk_that_goes_back_to_a_snapshot_is_noticed_by_a_witness() {
    let mut parties = PartyProcesses::new(&clinic(1500));
    let site = fs::read_to_string(parties.site(0)).unwrap();
    fs::write(parties.site(0), format!("witness = \"../witness\"\n{site}")).unwrap();
    parties.start_all();
    parties.wait_until("a party is on its way", |parties| parties.iteration(0) > 20);
    let further = parties.iteration(0) + 20;
    parties.kill(0);
    let state = parties.home(0).join("state");
    let snapshot = files(&state);
    parties.start(0);
    parties.wait_until("it has gone on", |parties| parties.iteration(0) > further);
    parties.kill(0);
    let last = files(&state);
    for (path, bytes) in &snapshot {
        fs::write(path, bytes).unwrap();
    }
    parties.start(0);
    let exited = parties.wait(0);
    assert_eq!(exited.status.code(), Some(1));
    let log = exited.log.join("\n");
    assert!(
        log.contains("has seen a newer state than this one"),
        "{log}"
    );
    for (path, bytes) in &last {
        fs::write(path, bytes).unwrap();
    }
    parties.start(0);
    parties.wait_all();
}

#[test]
fn a_running_party_is_backed_up_and_the_copy_is_no_state() {
    let mut parties = PartyProcesses::new(&clinic(1500));
    parties.start_all();
    parties.wait_until("a party is on its way", |parties| parties.iteration(0) > 20);
    let site = parties.site(0).display().to_string();
    let run = |args: &[&str]| radmm(parties.folder(), args);
    let backup = ["state", "backup", "--site", &site, "backup"];
    let made = run(&backup);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    assert_eq!(run(&backup).status.code(), Some(1), "it overwrites nothing");
    let shown = run(&["ledger", "verify", "--state", "backup"]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    assert!(text(&shown.stdout).contains("the account is intact"));
    let adopted = run(&[
        "state",
        "adopt",
        "--state",
        "backup",
        "--the-other-copy-is-gone",
    ]);
    assert_eq!(adopted.status.code(), Some(2));
    assert!(text(&adopted.stderr).contains("--the-limit-is-lowered"));
    parties.wait_all();
}

#[test]
fn a_check_beside_its_running_party_disturbs_nothing() {
    let mut parties = PartyProcesses::new(&clinic(1500));
    let site = fs::read_to_string(parties.site(0)).unwrap();
    fs::write(parties.site(0), format!("witness = \"../witness\"\n{site}")).unwrap();
    parties.start_all();
    parties.wait_until("a party is on its way", |parties| parties.iteration(0) > 20);
    let (mut checks, last) = (0, 1400);
    while checks < 20 && parties.iteration(0) < last {
        let checked = parties.command(0).arg("--check").output().unwrap();
        if parties.iteration(0) < last {
            let said = text(&checked.stderr);
            assert_eq!(checked.status.code(), Some(0), "{said}");
            assert!(text(&checked.stdout).contains("\"running\": true"));
            checks += 1;
        }
    }
    assert!(checks > 2, "{checks}");
    let ended = |party: usize| parties.count_notices(party, "disconnected");
    assert_eq!((0..5).map(ended).sum::<usize>(), 0);
    parties.wait_all();
    let checked = parties.command(0).arg("--check").output().unwrap();
    assert!(!text(&checked.stdout).contains("\"running\""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_node_leaves_no_core_dump() {
    let mut parties = PartyProcesses::new(&clinic(4));
    parties.start(0);
    parties.wait_for_event(0, "started", &[]);
    let limits = fs::read_to_string(format!("/proc/{}/limits", parties.pid(0))).unwrap();
    let cores = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let words: Vec<&str> = cores.unwrap().split_whitespace().skip(4).take(2).collect();
    assert_eq!(words, ["0", "0"]);
    parties.kill(0);
}
