//! What pipes, signals and folders of an operator can do to a party: a log that nobody reads, a parent that is killed, a folder that
//! cannot be written.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/party_processes.rs"]
mod party_processes;
mod support;

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use party_processes::{PartyProcesses, clinic};
use radmm_node::store::Store;
use serde_json::Value;
use support::text;

const ALDER: usize = 0;
const BIRCH: usize = 1;

/// More iterations than lines that fit into a pipe and the queue of messages.
const ITERATIONS: u32 = 1800;

#[test]
fn a_log_that_nobody_reads_stops_no_party() {
    let mut parties = PartyProcesses::new(&clinic(ITERATIONS));
    // Nobody ever reads what alder writes, to stdout and stderr alike, and birch's reader comes late.
    let (unread, pipe) = io::pipe().unwrap();
    let mut command = parties.command(ALDER);
    command.stdout(pipe.try_clone().unwrap()).stderr(pipe);
    let mut alder = command.spawn().unwrap();
    let mut birch = parties.command(BIRCH).spawn().unwrap();
    for party in 2..parties.count() {
        parties.start(party);
    }
    let late = u64::from(ITERATIONS) - 50;
    parties.wait_until("cedar is near the end", |parties| {
        parties.iteration(2) >= late
    });
    let lines: Vec<String> = BufReader::new(birch.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .collect();
    for party in 2..parties.count() {
        assert!(parties.wait(party).status.success());
    }
    assert!(birch.wait().unwrap().success());
    // Its study is done, but the final state was not printed.
    assert_eq!(alder.wait().unwrap().code(), Some(1));
    drop(unread);
    for party in [ALDER, BIRCH] {
        assert!(parties.home(party).join("results/model.json").exists());
    }
    // What birch's reader missed is counted.
    let notices: Vec<Value> = { lines.iter() }
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let dropped = { notices.iter() }.filter(|notice| notice["event"] == "dropped");
    let dropped: u64 = dropped
        .map(|notice| notice["messages"].as_u64().unwrap())
        .sum();
    assert!(dropped > 0, "{} lines", lines.len());
    assert!(dropped + notices.len() as u64 > u64::from(ITERATIONS));
    // Times are whole seconds in UTC.
    let time = notices[0]["time"].as_str().unwrap();
    assert!(time.len() == 20 && time.ends_with('Z'), "{time}");
}

#[test]
fn levels_choose_what_is_logged() {
    let mut parties = PartyProcesses::new(&clinic(8));
    let quieter = |party: usize, level: &str| -> Child {
        let mut command = parties.command(party);
        command.args(["--log-level", level]).spawn().unwrap()
    };
    let (alder, birch) = (quieter(ALDER, "info"), quieter(BIRCH, "error"));
    for party in 2..parties.count() {
        parties.start(party);
    }
    let alder = alder.wait_with_output().unwrap();
    let log = text(&alder.stderr);
    assert!(alder.status.success(), "{log}");
    assert!(log.contains("\"level\":\"info\""), "{log}");
    assert!(log.contains("\"event\":\"finished\""), "{log}");
    assert!(!log.contains("\"event\":\"iterated\""), "{log}");
    let birch = birch.wait_with_output().unwrap();
    assert_eq!(text(&birch.stderr), "");
    for party in 2..parties.count() {
        let exited = parties.wait(party);
        let iterated = |notice: &&Value| notice["event"] == "iterated";
        assert!(exited.notices().iter().filter(iterated).count() > 0);
    }
    let odd = parties
        .command(ALDER)
        .args(["--log-level", "loud"])
        .output()
        .unwrap();
    assert_eq!(odd.status.code(), Some(2));
    assert!(text(&odd.stderr).contains("must be error, warning, info or debug"));
}

/// Starts `radmm up`, and waits until all five parties listen. Its study takes much longer than it takes to stop.
fn long_network(folder: &std::path::Path) -> Child {
    fs::write(folder.join("study.toml"), clinic(20_000)).unwrap();
    let mut up = Command::new(env!("CARGO_BIN_EXE_radmm"))
        .current_dir(folder)
        .args(["up", "study.toml", "--dir", "trial", "--seeded"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(up.stderr.take().unwrap()).lines();
    let mut listening = 0;
    while listening < 5 {
        let line = lines.next().unwrap().unwrap();
        listening += usize::from(line.contains(" listens on "));
    }
    up
}

/// Waits until no process holds the state folder of a party, and asserts that none has finished its study.
fn assert_all_stop(folder: &std::path::Path) {
    for party in ["alder", "birch", "cedar", "maple", "rowan"] {
        let state = folder.join("trial").join(party).join("state");
        let mut tries = 0;
        let store = loop {
            match Store::open(&state) {
                Ok(store) => break store,
                Err(_) => tries += 1,
            }
            assert!(tries < 6000, "{party} goes on without its parent");
            thread::sleep(Duration::from_millis(20));
        };
        assert!(
            store.studies().iter().all(|study| !study.finished),
            "{party} went on without its parent"
        );
    }
}

#[test]
fn parties_end_with_the_process_that_started_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut up = long_network(folder.path());
    up.kill().unwrap();
    up.wait().unwrap();
    assert_all_stop(folder.path());
}

#[cfg(unix)]
#[test]
fn a_signal_to_the_parent_alone_stops_the_parties() {
    let folder = tempfile::tempdir().unwrap();
    let mut up = long_network(folder.path());
    let kill = format!("kill -TERM {}", up.id());
    let sent = Command::new("sh").arg("-c").arg(kill).status().unwrap();
    assert!(sent.success());
    assert!(up.wait().unwrap().success());
    assert_all_stop(folder.path());
}

#[cfg(target_os = "linux")]
#[test]
fn a_check_tries_to_write() {
    let parties = PartyProcesses::new(&clinic(5));
    let site = fs::read_to_string(parties.site(ALDER)).unwrap();
    let check = |changed: &str| {
        fs::write(parties.site(ALDER), changed).unwrap();
        let mut command = parties.command(ALDER);
        let output = command.args(["--check", "--quiet"]).output().unwrap();
        (output.status.code(), text(&output.stderr).to_owned())
    };
    let (code, said) = check(&site);
    assert_eq!(code, Some(0), "{said}");
    // It leaves nothing behind.
    assert!(!parties.home(ALDER).join("state").exists());
    assert!(!parties.home(ALDER).join("results").exists());
    // Nobody can create a file there, not even an administrator.
    for (key, usual) in [("state", "state = \"state\""), ("out", "out = \"results\"")] {
        let (code, said) = check(&site.replace(usual, &format!("{key} = \"/proc/self\"")));
        assert_eq!(code, Some(2), "{said}");
        let remedy = format!("choose another folder for {key} in the site file");
        assert!(said.contains(&remedy), "{said}");
    }
}
