//! Processes that are killed, again and again, wherever they are: the same bytes come out, nothing is charged twice, and
//! nobody ever says two things.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/parties.rs"]
mod parties;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use parties::{End, Parties, clinic, iteration};
use radmm::graph::NodeId;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

const KILLS: usize = 200;

/// So many that the run outlasts the kills.
const ITERATIONS: u32 = 1500;

/// Where a kill is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Aim {
    /// A process that has just begun: it reads, opens its store, goes through its journal, greets.
    Start,
    /// A store that is being written to.
    Commit,
    /// Anywhere in the course of iterations.
    Course,
}

/// Where it hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hit {
    /// Before the party was ready.
    Opening,
    /// After an iteration was on record, and before anybody was told.
    KeptUntold,
    /// The last iteration on record had been told; what was under way has left nothing.
    Told,
}

/// A kill that hit, until it is known what it left behind.
struct Open {
    aim: Aim,
    /// The last iteration that was told.
    told: u64,
}

#[derive(Default)]
struct Tally {
    kills: usize,
    hits: BTreeMap<(Aim, Hit), usize>,
    open: BTreeMap<usize, Open>,
    last_told: BTreeMap<usize, u64>,
}

impl Tally {
    /// A process of a party has ended, or is about to be left alone: what it found when it began says what the kill before it
    /// left behind.
    fn settle(&mut self, party: usize, found: Option<u64>) {
        let Some(found) = found else { return };
        // Privacy: what is visible is durable.
        let told = self.last_told.get(&party).copied().unwrap_or(0);
        assert!(found >= told, "told of {told}, and is at {found} again");
        if let Some(Open { aim, told }) = self.open.remove(&party) {
            let hit = match found > told {
                true => Hit::KeptUntold,
                false => Hit::Told,
            };
            *self.hits.entry((aim, hit)).or_default() += 1;
        }
    }

    fn killed(&mut self, party: usize, aim: Aim, end: &End) {
        let events = end.events();
        let started = events.iter().find(|event| event["event"] == "started");
        let found = started.and_then(|event| event["iteration"].as_u64());
        self.settle(party, found);
        // It may have come too late.
        if end.status.signal() != Some(9) {
            return;
        }
        self.kills += 1;
        match iteration(&events) {
            None => *self.hits.entry((aim, Hit::Opening)).or_default() += 1,
            Some(told) => {
                self.last_told.insert(party, told);
                self.open.insert(party, Open { aim, told });
            }
        }
    }
}

/// What shows that a file is written to.
fn touched(file: &Path) -> Option<(u64, SystemTime)> {
    let about = fs::metadata(file).ok()?;
    Some((about.len(), about.modified().ok()?))
}

/// Waits for the right moment, or as long as nothing comes of waiting.
fn approach(parties: &Parties, victim: usize, rng: &mut ChaCha20Rng) -> Aim {
    let began = Instant::now();
    let goes_on = |so: bool| !so && began.elapsed() < Duration::from_millis(400);
    let mut micros = |most: u64| Duration::from_micros(rng.random_range(0..most));
    let (aim, short) = (micros(3).as_micros(), micros(400));
    match aim {
        0 => {
            thread::sleep(micros(60_000));
            Aim::Start
        }
        1 => {
            let file = parties.state_file(victim);
            let before = touched(&file);
            while goes_on(touched(&file) != before) {
                thread::sleep(Duration::from_micros(30));
            }
            thread::sleep(short);
            Aim::Commit
        }
        _ => {
            let before = parties.iteration(victim);
            while goes_on(parties.iteration(victim) > before) {
                thread::sleep(Duration::from_micros(500));
            }
            thread::sleep(micros(5_000));
            Aim::Course
        }
    }
}

/// The bytes of everyone's model.
fn models(parties: &Parties) -> Vec<Vec<u8>> {
    let model = |party| fs::read(parties.home(party).join("results/model.json")).unwrap();
    (0..parties.count()).map(model).collect()
}

/// What everyone said and heard: the same, to the byte, and all of it; and what was charged is the plan.
fn assert_records_agree(parties: &Parties, iterations: u32) {
    let count = parties.count();
    let stores: Vec<_> = (0..count).map(|party| parties.store(party)).collect();
    let plan: Vec<u32> = (1..=iterations).step_by(2).collect();
    for (party, store) in stores.iter().enumerate() {
        let studies = store.studies();
        assert_eq!(studies.len(), 1);
        assert!(studies[0].finished);
        let charges = store.charges().unwrap();
        let times: Vec<u32> = charges.iter().map(|charge| charge.iteration).collect();
        assert_eq!(times, plan, "{}", parties.name(party));
        assert!(store.misbehaviours(0).unwrap().is_empty());
        let mut said = Vec::new();
        let each = |signed: radmm_node::machine::SignedMessage| {
            said.push(signed.to_bytes());
            Ok(())
        };
        store.for_each_sent(0, each).unwrap();
        assert_eq!(said.len() as u32, iterations + 1);
        // On a ring everyone has two neighbours.
        for neighbour in [(party + 1) % count, (party + count - 1) % count] {
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
    let mut parties = Parties::of(&clinic(ITERATIONS));
    // Undisturbed, with the same keys.
    parties.start_all();
    parties.wait_all();
    let undisturbed = models(&parties);
    assert_records_agree(&parties, ITERATIONS);
    for party in 0..parties.count() {
        fs::remove_dir_all(parties.home(party).join("state")).unwrap();
        fs::remove_dir_all(parties.home(party).join("results")).unwrap();
    }

    parties.start_all();
    let mut rng = ChaCha20Rng::seed_from_u64(200);
    let mut tally = Tally::default();
    while tally.kills < KILLS {
        let victim = rng.random_range(0..parties.count());
        let aim = approach(&parties, victim, &mut rng);
        if parties.has_said(victim, "finished") {
            parties.fail("the run ended before all kills; give it more iterations");
        }
        let end = parties.kill(victim);
        if end.status.signal() != Some(9) {
            parties.fail(&format!("{} ended by itself", parties.name(victim)));
        }
        tally.killed(victim, aim, &end);
        parties.start(victim);
    }
    for party in 0..parties.count() {
        let end = parties.wait(party);
        if !end.status.success() {
            parties.fail(&format!(
                "{} ended with {}",
                parties.name(party),
                end.status
            ));
        }
        let found = end.events()[0]["iteration"].as_u64();
        tally.settle(party, found);
    }
    for ((aim, hit), count) in &tally.hits {
        println!("{count:4} kills aimed at {aim:?}, hit {hit:?}");
    }
    assert_eq!(tally.kills, KILLS);
    assert_eq!(tally.hits.values().sum::<usize>(), KILLS);
    assert_eq!(models(&parties), undisturbed);
    assert_records_agree(&parties, ITERATIONS);
    for party in 0..parties.count() {
        assert_eq!(parties.ever_said(party, "lied"), 0);
    }
}

#[test]
fn who_comes_back_after_the_end_ends_although_nobody_is_there() {
    let mut parties = Parties::of(&clinic(4));
    parties.start_all();
    parties.wait_all();
    let before = models(&parties);
    for party in 0..5 {
        parties.start(party);
        assert!(parties.wait(party).status.success());
    }
    assert_eq!(models(&parties), before);
    assert_records_agree(&parties, 4);
}
