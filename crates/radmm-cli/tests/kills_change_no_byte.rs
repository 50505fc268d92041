//! Processes are killed 200 times, at any point: the results have the same bytes, nothing is charged twice, and no party sends
//! two different messages for one iteration.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/party_processes.rs"]
mod party_processes;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use party_processes::{ExitedProcess, PartyProcesses, clinic, consensus, last_iteration};
use radmm::graph::NodeId;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// The target of a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Aim {
    /// A process that has just started: it reads files, opens its store, replays its journal, sends handshakes.
    Start,
    /// A write to the store.
    Commit,
    /// Any point of an iteration.
    Iteration,
}

/// The state of the party when it was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hit {
    /// The party was not ready yet.
    Starting,
    /// The last persisted iteration was not reported yet.
    PersistedUnreported,
    /// The last persisted iteration was reported; the one in progress has left nothing.
    Reported,
}

/// A kill whose effect shows when the party restarts.
struct PendingKill {
    aim: Aim,
    /// The last reported iteration.
    reported: u64,
}

#[derive(Default)]
struct KillTally {
    kills: usize,
    hits: BTreeMap<(Aim, Hit), usize>,
    pending: BTreeMap<usize, PendingKill>,
    last_reported: BTreeMap<usize, u64>,
}

impl KillTally {
    /// Classifies a party's last kill by the iteration at which the next process resumed.
    fn classify(&mut self, party: usize, resumed: Option<u64>) {
        let Some(resumed) = resumed else { return };
        // Privacy: what is visible is durable.
        let reported = self.last_reported.get(&party).copied().unwrap_or(0);
        assert!(
            resumed >= reported,
            "reported {reported}, resumed at {resumed}"
        );
        if let Some(PendingKill { aim, reported }) = self.pending.remove(&party) {
            let hit = match resumed > reported {
                true => Hit::PersistedUnreported,
                false => Hit::Reported,
            };
            *self.hits.entry((aim, hit)).or_default() += 1;
        }
    }

    fn add_kill(&mut self, party: usize, aim: Aim, exited: &ExitedProcess) {
        let notices = exited.notices();
        let started = notices.iter().find(|notice| notice["event"] == "started");
        let resumed = started.and_then(|notice| notice["iteration"].as_u64());
        self.classify(party, resumed);
        // The kill may have come too late.
        if exited.status.signal() != Some(9) {
            return;
        }
        self.kills += 1;
        match last_iteration(&notices) {
            None => *self.hits.entry((aim, Hit::Starting)).or_default() += 1,
            Some(reported) => {
                self.last_reported.insert(party, reported);
                self.pending.insert(party, PendingKill { aim, reported });
            }
        }
    }
}

/// Returns the size and time of a file, which change when it is written.
fn file_version(file: &Path) -> Option<(u64, SystemTime)> {
    let metadata = fs::metadata(file).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

/// Waits for the moment of a random target, at most 400 ms.
fn aim(parties: &PartyProcesses, victim: usize, rng: &mut ChaCha20Rng) -> Aim {
    let started = Instant::now();
    let keep_waiting = |reached: bool| !reached && started.elapsed() < Duration::from_millis(400);
    let mut micros = |most: u64| Duration::from_micros(rng.random_range(0..most));
    let (target, short) = (micros(3).as_micros(), micros(400));
    match target {
        0 => {
            thread::sleep(micros(60_000));
            Aim::Start
        }
        1 => {
            let file = parties.state_file(victim);
            let before = file_version(&file);
            while keep_waiting(file_version(&file) != before) {
                thread::sleep(Duration::from_micros(30));
            }
            thread::sleep(short);
            Aim::Commit
        }
        _ => {
            let before = parties.iteration(victim);
            while keep_waiting(parties.iteration(victim) > before) {
                thread::sleep(Duration::from_micros(500));
            }
            thread::sleep(micros(5_000));
            Aim::Iteration
        }
    }
}

/// Returns the bytes of all models.
fn models(parties: &PartyProcesses) -> Vec<Vec<u8>> {
    let model = |party| fs::read(parties.home(party).join("results/model.json")).unwrap();
    (0..parties.count()).map(model).collect()
}

/// Asserts that all sent and received messages agree, to the byte, and that rows were asked once in every `period` iterations.
fn assert_records_agree(parties: &PartyProcesses, period: usize) {
    let count = parties.count();
    let stores: Vec<_> = (0..count).map(|party| parties.store(party)).collect();
    let iterations = parties.study().algorithm.iterations;
    let schedule: Vec<u32> = (1..=iterations).step_by(period).collect();
    for (party, store) in stores.iter().enumerate() {
        let studies = store.studies();
        assert_eq!(studies.len(), 1);
        assert!(studies[0].finished);
        let charges = store.charges().unwrap();
        let times: Vec<u32> = charges.iter().map(|charge| charge.iteration).collect();
        assert_eq!(times, schedule, "{}", parties.name(party));
        assert!(store.misbehaviours(0).unwrap().is_empty());
        let mut said = Vec::new();
        let each = |signed: radmm_node::machine::SignedMessage| {
            said.push(signed.to_bytes());
            Ok(())
        };
        store.for_each_sent(0, each).unwrap();
        assert_eq!(said.len() as u32, iterations + 1);
        for neighbour in parties.neighbours(party) {
            for (t, said) in (0..).zip(&said) {
                let heard = stores[neighbour].received(0, t, NodeId(party as u32));
                let heard = heard.unwrap().map(|signed| signed.to_bytes());
                assert_eq!(heard.as_ref(), Some(said), "{party} at {t} by {neighbour}");
            }
        }
    }
}

#[test]
fn two_hundred_kills_change_no_byte_and_charge_nothing_twice() {
    // Enough iterations for the run to outlast the kills.
    assert_kills_change_nothing(&clinic(1500), 200, 2);
}

#[test]
fn kills_change_no_byte_of_sums_along_a_tree() {
    // On a ring of five a sum takes five iterations.
    assert_kills_change_nothing(&consensus("gram", 120), 60, 5);
}

/// Kills processes so many times, in a study that asks rows once in every `period` iterations.
fn assert_kills_change_nothing(study: &str, kills: usize, period: usize) {
    let mut parties = PartyProcesses::new(study);
    // First undisturbed, with the same keys.
    parties.start_all();
    parties.wait_all();
    let undisturbed = models(&parties);
    assert_records_agree(&parties, period);
    for party in 0..parties.count() {
        fs::remove_dir_all(parties.home(party).join("state")).unwrap();
        fs::remove_dir_all(parties.home(party).join("results")).unwrap();
    }

    parties.start_all();
    let mut rng = ChaCha20Rng::seed_from_u64(200);
    let mut tally = KillTally::default();
    while tally.kills < kills {
        let victim = rng.random_range(0..parties.count());
        let aim = aim(&parties, victim, &mut rng);
        if parties.count_notices(victim, "finished") > 0 {
            parties.fail("the run ended before all kills; give it more iterations");
        }
        let exited = parties.kill(victim);
        if exited.status.signal() != Some(9) {
            parties.fail(&format!("{} ended by itself", parties.name(victim)));
        }
        tally.add_kill(victim, aim, &exited);
        parties.start(victim);
    }
    for party in 0..parties.count() {
        let exited = parties.wait(party);
        if !exited.status.success() {
            let name = parties.name(party);
            parties.fail(&format!("{name} ended with {}", exited.status));
        }
        let resumed = exited.notices()[0]["iteration"].as_u64();
        tally.classify(party, resumed);
    }
    for ((aim, hit), count) in &tally.hits {
        println!("{count:4} kills aimed at {aim:?}, hit {hit:?}");
    }
    assert_eq!(tally.kills, kills);
    assert_eq!(tally.hits.values().sum::<usize>(), kills);
    assert_eq!(models(&parties), undisturbed);
    assert_records_agree(&parties, period);
    for party in 0..parties.count() {
        assert_eq!(parties.count_all_notices(party, "lied"), 0);
    }
}

#[test]
fn a_finished_party_that_restarts_exits_without_waiting_for_peers() {
    let mut parties = PartyProcesses::new(&clinic(4));
    parties.start_all();
    parties.wait_all();
    let before = models(&parties);
    for party in 0..5 {
        parties.start(party);
        assert!(parties.wait(party).status.success());
    }
    assert_eq!(models(&parties), before);
    assert_records_agree(&parties, 2);
}
