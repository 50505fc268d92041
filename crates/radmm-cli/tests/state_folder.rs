//! A state folder that somebody deletes, moves or replaces while its node runs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/party_processes.rs"]
mod party_processes;
mod support;

use std::fs;

use party_processes::{PartyProcesses, clinic};
use radmm::graph::NodeId;
use radmm_node::machine::SignedMessage;
use radmm_node::store::Store;

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
