//! Real nodes come to what the simulator does, stop and go on, and do not begin what cannot end well.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/parties.rs"]
mod parties;
mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use parties::{Parties, clinic, simulated, swap, weights};
use radmm_node::key::SecretKey;
use radmm_study::Identity;
use serde_json::Value;
use support::{radmm, text};

/// Runs a study as processes and in simulation, and compares all bits.
fn assert_processes_come_to_the_same(study: &str, nodes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("study.toml"), study).unwrap();
    let args = ["up", "study.toml", "--dir", "trial", "--seeded", "--json"];
    let ran = radmm(folder, &args);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let ended: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let parties = ended["parties"].as_array().unwrap().iter();
    let home = |party: &Value| {
        let results = folder.join(party["results"].as_str().unwrap());
        weights(results.parent().unwrap())
    };
    let real: Vec<Vec<u64>> = parties.map(home).collect();
    assert_eq!(real.len(), nodes);
    assert_eq!(real, simulated(folder, study));
    // Everyone learnt, and not all the same thing.
    assert_ne!(real[0], real[1]);
}

#[test]
fn five_processes_come_to_the_bits_of_the_simulator() {
    assert_processes_come_to_the_same(&clinic(30), 5);
}

#[test]
fn so_they_do_where_gradients_are_asked_for() {
    let study = clinic(30);
    let study = swap(&study, "\"r-admm\"", "\"r-dlm\"");
    let study = swap(&study, "\"objective\"", "\"gradient\"");
    assert_processes_come_to_the_same(&study, 5);
}

#[test]
fn twenty_processes_on_a_random_graph_come_to_the_bits_of_the_simulator() {
    let study = clinic(12);
    let (data, rest) = study.split_once("[data.split]").unwrap();
    let (_, rest) = rest.split_once("[network]").unwrap();
    let study = format!("{data}[data.split]\nmethod = \"shuffled\"\nseed = 3\n\n[network]{rest}");
    let random = "nodes = 20\ntopology = \"random\"\nprobability = 0.2\nseed = 4";
    let study = swap(&study, "nodes = 5\ntopology = \"ring\"", random);
    assert_processes_come_to_the_same(&study, 20);
}

#[test]
fn who_is_interrupted_goes_on_where_it_was() {
    let study = clinic(200);
    let mut parties = Parties::of(&study);
    parties.start_all();
    parties.until("the third is at 20", |parties| parties.iteration(2) >= 20);
    parties.interrupt(2);
    let end = parties.wait(2);
    assert_eq!(end.status.code(), Some(0), "{:?}", end.said);
    let printed: Value = serde_json::from_str(&end.printed).unwrap();
    assert_eq!(printed["ending"], "stopped");
    let at = printed["iteration"].as_u64().unwrap();
    assert!((20..200).contains(&at), "{at}");
    let events = end.events();
    let stopping = events.iter().find(|event| event["event"] == "stopping");
    assert_eq!(stopping.unwrap()["iteration"], at);
    // Its neighbours are told why it has gone, and wait.
    for neighbour in [1, 3] {
        parties.until("a neighbour says that it has gone", |parties| {
            let gone = |event: &Value| {
                let why = "its operator stopped it";
                event["event"] == "disconnected" && event["reason"] == why
            };
            parties.said(neighbour).iter().any(gone)
        });
        assert!(parties.is_alive(neighbour));
    }
    parties.start(2);
    parties.until("it goes on", |parties| parties.has_said(2, "started"));
    assert_eq!(parties.said(2)[0]["iteration"], at);
    parties.wait_all();
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(parties.weights(), simulated(folder.path(), &study));
}

#[test]
fn a_party_that_is_over_waits_for_nobody_when_it_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("study.toml"), clinic(6)).unwrap();
    let args = ["up", "study.toml", "--dir", "trial", "--seeded", "--quiet"];
    let ran = radmm(folder, &args);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let birch = folder.join("trial/birch");
    let before = weights(&birch);
    fs::remove_file(birch.join("results/model.json")).unwrap();
    // Nobody else is there: it would wait for ever.
    let site = birch.join("site.toml");
    let again = ["node", "--study", "trial/study.toml", "--site"];
    let ran = radmm(folder, &[&again[..], &[site.to_str().unwrap()]].concat());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert_eq!(weights(&birch), before);
}

#[test]
fn who_reads_messages_may_leave() {
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
fn a_party_runs_once() {
    let mut parties = Parties::of(&clinic(5));
    parties.start(0);
    parties.until("it runs", |parties| parties.has_said(0, "started"));
    let second = parties.command(0).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let said = text(&second.stderr);
    assert!(
        said.contains(
            "the state folder is in use by another process; a party runs once: stop the other one"
        ),
        "{said}"
    );
    assert!(parties.is_alive(0));
}

/// Changes a party's site, starts it, and says what it said before it ended with exit code 2.
fn turned_away(parties: &mut Parties, change: impl FnOnce(&Path) -> String) -> String {
    let site = parties.site(0).to_owned();
    let written = fs::read_to_string(&site).unwrap();
    let changed = change(&parties.home(0));
    fs::write(&site, format!("{written}{changed}")).unwrap();
    parties.start(0);
    let end = parties.wait(0);
    fs::write(&site, written).unwrap();
    let said = end.said.join("\n");
    assert_eq!(end.status.code(), Some(2), "{said}");
    assert_eq!(end.printed, "");
    said
}

#[test]
fn what_cannot_end_well_does_not_begin() {
    let mut parties = Parties::of(&clinic(30));
    let key = parties.home(0).join("key.pem");

    let own = fs::read_to_string(&key).unwrap();
    let said = turned_away(&mut parties, |_| {
        fs::remove_file(&key).unwrap();
        SecretKey::generate().unwrap().write_new(&key).unwrap();
        String::new()
    });
    let identity = Identity::from(SecretKey::read(&key).unwrap().public());
    let named = format!("key file {}: its identity is {identity}", key.display());
    assert!(
        said.contains(&named) && said.contains("none of the study's [[parties]] has it"),
        "{said}"
    );
    // A neighbour's key: the site file says whose it should be.
    let birch = fs::read_to_string(parties.home(1).join("key.pem")).unwrap();
    let birch = SecretKey::from_pem(&birch).unwrap();
    fs::remove_file(&key).unwrap();
    birch.write_new(&key).unwrap();
    let site = parties.site(0).to_owned();
    let unnamed = fs::read_to_string(&site).unwrap();
    fs::write(&site, format!("party = \"alder\"\n{unnamed}")).unwrap();
    let said = turned_away(&mut parties, |_| String::new());
    fs::write(&site, unnamed).unwrap();
    let identity = Identity::from(birch.public());
    assert!(
        said.contains("party = \"alder\": key file")
            && said.contains(&format!("{identity}, which is that of birch in the study")),
        "{said}"
    );
    let said = turned_away(&mut parties, |_| {
        fs::remove_file(&key).unwrap();
        String::new()
    });
    assert!(said.contains("key.pem"), "{said}");
    SecretKey::from_pem(&own).unwrap().write_new(&key).unwrap();

    let with_rows = fs::read_to_string(&site).unwrap();
    let share = "share = true # the rows that the study's own table and split give this party";
    let missing = swap(&with_rows, share, "path = \"rows.csv\"");
    fs::write(&site, missing).unwrap();
    let said = turned_away(&mut parties, |_| String::new());
    assert!(
        said.contains("rows.csv") && said.contains("[data] path is relative to the site file"),
        "{said}"
    );
    fs::write(&site, with_rows).unwrap();

    // None of these even made a state.
    assert!(!parties.home(0).join("state").exists());

    let limit = |_: &Path| "\n[limit]\nepsilon = 0.5\ndelta = 1e-4\n".to_owned();
    let said = turned_away(&mut parties, limit);
    assert!(
        said.contains("[limit] epsilon = 0.5 at delta = 0.0001")
            && said.contains("lower the study's epsilon")
            && said.contains("nothing was spent"),
        "{said}"
    );
    let store = parties.store(0);
    assert!(store.charges().unwrap().is_empty());
    assert!(store.studies().is_empty());
}
