//! `radmm up`: real nodes compute the same bits as the simulator, resume after a stop, and do not start what cannot succeed.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/party_processes.rs"]
mod party_processes;
mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use party_processes::{PartyProcesses, clinic, consensus, replace_once, simulated, weights};
use radmm_node::key::SecretKey;
use radmm_study::Identity;
use serde_json::Value;
use support::{radmm, text};

/// Runs a study as processes and in simulation, and compares all bits.
fn assert_processes_agree_with_simulator(study: &str, nodes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("study.toml"), study).unwrap();
    let args = ["up", "study.toml", "--dir", "trial", "--seeded", "--json"];
    let ran = radmm(folder, &args);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let state: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let parties = state["parties"].as_array().unwrap().iter();
    let home = |party: &Value| {
        let results = folder.join(party["results"].as_str().unwrap());
        weights(results.parent().unwrap())
    };
    let real: Vec<Vec<u64>> = parties.map(home).collect();
    assert_eq!(real.len(), nodes);
    assert_eq!(real, simulated(folder, study));
    // The parties have learnt, and their models differ, unless sums make them the same.
    assert!(real[0].iter().any(|weight| *weight != 0));
    assert_eq!(real[0] == real[1], study.contains("\"consensus\""));
    assert_verified(folder, state["parties"].as_array().unwrap());
}

/// Asserts that everything that the parties wrote passes every check.
fn assert_verified(folder: &Path, parties: &[Value]) {
    let file = |party: &Value, name: &str| format!("{}/{name}", party["results"].as_str().unwrap());
    let mut args: Vec<String> = ["verify", "--study", "trial/study.toml", "--json"]
        .map(str::to_owned)
        .to_vec();
    args.extend(parties.iter().map(|party| file(party, "transcript.jsonl")));
    for party in parties {
        args.extend(["--model".to_owned(), file(party, "model.json")]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = radmm(folder, &args);
    assert!(output.status.success(), "{}", text(&output.stdout));
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    let models = verdict["models"].as_array().unwrap();
    assert_eq!(models.len(), parties.len());
    assert!(models.iter().all(|model| model["compared"] == true));
}

#[test]
fn five_processes_compute_the_bits_of_the_simulator() {
    assert_processes_agree_with_simulator(&clinic(30), 5);
}

#[test]
fn processes_with_gradient_queries_compute_the_bits_of_the_simulator() {
    let study = clinic(30);
    let study = replace_once(&study, "\"r-admm\"", "\"r-dlm\"");
    let study = replace_once(&study, "\"objective\"", "\"gradient\"");
    assert_processes_agree_with_simulator(&study, 5);
}

#[test]
fn processes_that_recycle_to_consensus_compute_the_bits_of_the_simulator() {
    for metric in ["none", "mean", "gram"] {
        assert_processes_agree_with_simulator(&consensus(metric, 4), 5);
    }
}

#[test]
fn twenty_processes_on_a_random_graph_compute_the_bits_of_the_simulator() {
    assert_processes_agree_with_simulator(&on_a_random_graph(&clinic(12)), 20);
    assert_processes_agree_with_simulator(&on_a_random_graph(&consensus("gram", 2)), 20);
}

/// Returns a study with twenty parties on a random graph.
fn on_a_random_graph(study: &str) -> String {
    let (data, rest) = study.split_once("[data.split]").unwrap();
    let (_, rest) = rest.split_once("[network]").unwrap();
    let study = format!("{data}[data.split]\nmethod = \"shuffled\"\nseed = 3\n\n[network]{rest}");
    let random = "nodes = 20\ntopology = \"random\"\nprobability = 0.2\nseed = 4";
    replace_once(&study, "nodes = 5\ntopology = \"ring\"", random)
}

#[test]
fn an_interrupted_party_resumes_where_it_stopped() {
    let study = clinic(200);
    let mut parties = PartyProcesses::new(&study);
    parties.start_all();
    parties.wait_until("the third is at 20", |parties| parties.iteration(2) >= 20);
    parties.interrupt(2);
    let exited = parties.wait(2);
    assert_eq!(exited.status.code(), Some(0), "{:?}", exited.log);
    let printed: Value = serde_json::from_str(&exited.stdout).unwrap();
    assert_eq!(printed["ending"], "stopped");
    let at = printed["iteration"].as_u64().unwrap();
    assert!((20..200).contains(&at), "{at}");
    let statement = parties.home(2).join("results/statement.html");
    let statement = fs::read_to_string(statement).unwrap();
    let so_far = format!("Its run has stopped before its end. {at} of 200 iterations are done");
    assert!(statement.contains(&so_far), "{statement}");
    let notices = exited.notices();
    let stopping = notices.iter().find(|notice| notice["event"] == "stopping");
    assert_eq!(stopping.unwrap()["iteration"], at);
    // Its neighbours learn why it has disconnected, and wait.
    for neighbour in [1, 3] {
        parties.wait_for(neighbour, "its neighbour's stop", |notice| {
            let reason = "it says \"its operator stopped it\"";
            notice["event"] == "disconnected" && notice["reason"] == reason
        });
        assert!(parties.is_alive(neighbour));
    }
    parties.start(2);
    parties.wait_for_event(2, "started", &[]);
    assert_eq!(parties.notices(2)[0]["iteration"], at);
    parties.assert_end_as_simulated();
}

#[test]
fn a_finished_party_that_restarts_waits_for_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("study.toml"), clinic(6)).unwrap();
    let args = ["up", "study.toml", "--dir", "trial", "--seeded", "--quiet"];
    let ran = radmm(folder, &args);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let birch = folder.join("trial/birch");
    let before = weights(&birch);
    fs::remove_file(birch.join("results/model.json")).unwrap();
    // No other party is running.
    let site = birch.join("site.toml");
    let again = ["node", "--study", "trial/study.toml", "--site"];
    let ran = radmm(folder, &[&again[..], &[site.to_str().unwrap()]].concat());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert_eq!(weights(&birch), before);
}

#[test]
fn a_closed_stderr_does_not_stop_the_parties() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("study.toml"), clinic(6)).unwrap();
    let mut up = Command::new(env!("CARGO_BIN_EXE_radmm"))
        .current_dir(folder)
        .args(["up", "study.toml", "--dir", "trial", "--seeded"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(up.stderr.take());
    assert!(up.wait().unwrap().success());
    assert!(folder.join("trial/birch/results/model.json").exists());
}

#[test]
fn a_party_cannot_run_twice_at_once() {
    let mut parties = PartyProcesses::new(&clinic(5));
    parties.start(0);
    parties.wait_for_event(0, "started", &[]);
    let second = parties.command(0).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let message = text(&second.stderr);
    assert!(
        message.contains(
            "the state folder is in use by another process; a party runs once: stop the other one"
        ),
        "{message}"
    );
    assert!(parties.is_alive(0));
}

/// Changes the site file of a party, starts it, and returns its log, which ends with exit code 2.
fn rejected_log(parties: &mut PartyProcesses, change: impl FnOnce(&Path) -> String) -> String {
    let site = parties.site(0).to_owned();
    let written = fs::read_to_string(&site).unwrap();
    let changed = change(&parties.home(0));
    fs::write(&site, format!("{written}{changed}")).unwrap();
    parties.start(0);
    let exited = parties.wait(0);
    fs::write(&site, written).unwrap();
    let log = exited.log.join("\n");
    assert_eq!(exited.status.code(), Some(2), "{log}");
    assert_eq!(exited.stdout, "");
    log
}

#[test]
fn a_party_with_a_wrong_key_missing_rows_or_a_low_limit_does_not_start() {
    let mut parties = PartyProcesses::new(&clinic(30));
    let key = parties.home(0).join("key.pem");

    let own = fs::read_to_string(&key).unwrap();
    let log = rejected_log(&mut parties, |_| {
        fs::remove_file(&key).unwrap();
        SecretKey::generate().unwrap().write_new(&key).unwrap();
        String::new()
    });
    let identity = Identity::from(SecretKey::read(&key).unwrap().public());
    let named = format!("key file {}: its identity is {identity}", key.display());
    assert!(
        log.contains(&named) && log.contains("none of the study's [[parties]] has it"),
        "{log}"
    );
    // A neighbour's key, although the site file names this party.
    let birch = fs::read_to_string(parties.home(1).join("key.pem")).unwrap();
    let birch = SecretKey::from_pem(&birch).unwrap();
    fs::remove_file(&key).unwrap();
    birch.write_new(&key).unwrap();
    let site = parties.site(0).to_owned();
    let unnamed = fs::read_to_string(&site).unwrap();
    fs::write(&site, format!("party = \"alder\"\n{unnamed}")).unwrap();
    let log = rejected_log(&mut parties, |_| String::new());
    fs::write(&site, unnamed).unwrap();
    let identity = Identity::from(birch.public());
    assert!(
        log.contains("party = \"alder\": key file")
            && log.contains(&format!("{identity}, which is that of birch in the study")),
        "{log}"
    );
    let log = rejected_log(&mut parties, |_| {
        fs::remove_file(&key).unwrap();
        String::new()
    });
    assert!(log.contains("key.pem"), "{log}");
    SecretKey::from_pem(&own).unwrap().write_new(&key).unwrap();

    let with_rows = fs::read_to_string(&site).unwrap();
    let share = "share = true # the rows that the study's own table and split give this party";
    let missing = replace_once(&with_rows, share, "path = \"rows.csv\"");
    fs::write(&site, missing).unwrap();
    let log = rejected_log(&mut parties, |_| String::new());
    assert!(
        log.contains("rows.csv") && log.contains("[data] path is relative to the site file"),
        "{log}"
    );
    fs::write(&site, with_rows).unwrap();

    // None of these created a state folder.
    assert!(!parties.home(0).join("state").exists());

    let limit = |_: &Path| "\n[limit]\nepsilon = 0.5\ndelta = 1e-4\n".to_owned();
    let log = rejected_log(&mut parties, limit);
    assert!(
        log.contains("[limit] epsilon = 0.5 at delta = 0.0001")
            && log.contains("lower the study's epsilon")
            && log.contains("nothing was spent"),
        "{log}"
    );
    let store = parties.store(0);
    assert!(store.charges().unwrap().is_empty());
    assert!(store.studies().is_empty());
}
