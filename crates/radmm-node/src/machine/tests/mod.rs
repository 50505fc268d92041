//! Parties on wires in memory, with disks that lose power: whatever is cut, killed or delayed, in whatever order, the same bytes
//! are sent, and only once.

mod misbehaviour;
mod poisoning;
mod recovery;
mod world;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use radmm::curator::ChargedAnswer;
use radmm::graph::{Graph, NodeId};
use radmm::node::{Node, StopReason};
use radmm::privacy::{Budget, Ledger};
use radmm::protocol::message::Message;
use radmm::protocol::query::gram_width;
use radmm::protocol::release::{Release, SPACING};
use radmm_study::instantiate::{self, Instance};
use radmm_study::{NoiseOrigin, Study};

use super::frame::{Frame, Hello, PROTOCOL, SignedMessage};
use super::link::{Credit, Link, LinkEvent, Serial};
use super::party::{Party, PartyError, PartyParts, Peer, PeerState};
use crate::key::SecretKey;
use crate::public_key::PublicKey;
use crate::runtime::{Notice, Pacer};
use crate::store::faulty_storage::FaultyDisk;
use crate::store::{Store, StudyRecord};

use world::*;
pub(crate) use world::{STUDY, World, consensus, mechanism, on, wide_study};

#[test]
fn undisturbed_parties_compute_what_bare_nodes_compute() {
    for topology in ["ring", "star", "complete", "path", "random"] {
        for study in studies() {
            let mut world = World::of(&on(topology, &study), 1);
            world.run(0);
            assert_eq!(world.models(), world.undisturbed(), "{topology} {study}");
            world.assert_ledgers_are_the_plan();
        }
    }
}

/// On a complete graph every party recomputes its neighbours' recycled values, which the sizes of all parties enter.
#[test]
fn averaging_over_rows_is_recomputed_by_neighbours() {
    let average = on("complete", STUDY).replace("\"r-admm\"", "\"average\"");
    let mut world = World::of(&average, 6);
    world.run(60);
    assert_eq!(world.models(), world.undisturbed());
    let mut other = World::of(
        &average.replace("[problem]", "[problem]\ncount = \"parties\""),
        6,
    );
    other.run(0);
    assert_ne!(world.models(), other.models());
}

/// The charges of a disturbed run come from journals, where Laplace noise has a code of its own.
#[test]
fn disturbed_parties_with_laplace_noise_compute_what_bare_nodes_compute() {
    for (seed, privacy) in [
        (1, "noise = \"laplace\"\nrate = 0.3"),
        (2, "noise = \"laplace\"\nepsilon = 8"),
        (
            3,
            "noise = \"laplace\"\nepsilon = 8\nmechanism = \"output\"",
        ),
    ] {
        let mut world = World::of(&with_privacy(privacy), seed);
        world.run(60);
        assert_eq!(world.models(), world.undisturbed(), "{privacy}");
        world.assert_ledgers_are_the_plan();
        let spent = world.hosts[0].party.as_ref().unwrap().spent();
        assert!(spent.epsilon.is_finite() && spent.delta == 0.0, "{spent:?}");
    }
}

/// Returns the study on a ring with these lines in place of its noise.
pub(crate) fn with_privacy(lines: &str) -> String {
    let (before, after) = STUDY.split_once("noise = \"gaussian\"").unwrap();
    let (_, after) = after.split_once("delta = 1e-4").unwrap();
    let text = format!("{before}{lines}{after}").replace("TOPOLOGY", "ring");
    match lines.contains("mechanism") {
        true => text.replacen("mechanism = \"objective\"\n", "", 1),
        false => text,
    }
}

#[test]
fn cuts_kills_and_disk_failures_never_change_what_is_sent() {
    let mut faults = FaultCounts::default();
    for seed in 0..16 {
        let topology = ["ring", "complete", "star", "random"][seed as usize % 4];
        let study = &studies()[seed as usize / 4 % 4];
        let mut world = World::of(&on(topology, study), seed);
        world.run(60);
        assert_eq!(world.models(), world.undisturbed(), "seed {seed}");
        world.assert_ledgers_are_the_plan();
        faults += world.faults;
    }
    assert!(
        faults.kills > 100 && faults.cuts > 100 && faults.disks > 50,
        "{faults:?}"
    );
}

#[test]
fn a_party_that_leaves_with_confirmed_acks_leaves_nobody_waiting() {
    let mut unconfirmed = 0;
    for seed in 30..60 {
        let topology = ["ring", "star", "complete"][seed as usize % 3];
        let study = &studies()[seed as usize % 4];
        let mut world = World::of(&on(topology, study), seed);
        unconfirmed += world.all_leave();
        let values = 5 * (world.study.algorithm.iterations as usize + 1);
        assert_eq!(world.sent.len(), values, "everybody has sent all values");
    }
    // The sender of the last frame cannot know whether it arrived: that happened, and nobody waited for ever.
    assert!(unconfirmed > 0);
}

/// A link whose peer is gone.
struct DeadLink;

impl Link for DeadLink {
    fn send(&self, _: Vec<u8>) -> bool {
        false
    }

    fn close(&self) {}
}

#[test]
fn the_last_frames_are_read_although_nothing_can_be_sent() {
    let mut world = World::new("ring", 2);
    let serial = world.serials.next();
    let peer = NodeId(1);
    let hello = Frame::Hello(Hello {
        version: PROTOCOL,
        study: world.spoken(),
        from: peer,
        at: 0,
        persisted: None,
        received: None,
        probe: false,
    });
    let party = world.hosts[0].party.as_mut().unwrap();
    let link = Box::new(DeadLink);
    party.handle(LinkEvent::Up { peer, serial, link }).unwrap();
    for frame in [hello, Frame::Bye("its operator stopped it".to_owned())] {
        let event = LinkEvent::Frame {
            peer,
            serial,
            bytes: frame.encode(),
            credit: Credit::new(|| ()),
        };
        party.handle(event).unwrap();
    }
    let gone = Notice::Disconnected {
        peer: "birch".to_owned(),
        reason: "it says \"its operator stopped it\"".to_owned(),
    };
    let notices = party.take_notices();
    assert!(notices.contains(&gone), "{notices:?}");
}

#[test]
fn links_that_end_before_the_greeting_are_told_once_and_counted() {
    let mut world = World::new("ring", 2);
    let peer = NodeId(1);
    let link = |world: &mut World, greeting: Option<Frame>| {
        let serial = world.serials.next();
        let party = world.hosts[0].party.as_mut().unwrap();
        let link = Box::new(DeadLink);
        party.handle(LinkEvent::Up { peer, serial, link }).unwrap();
        if let Some(frame) = greeting {
            let event = LinkEvent::Frame {
                peer,
                serial,
                bytes: frame.encode(),
                credit: Credit::new(|| ()),
            };
            party.handle(event).unwrap();
        }
        let reason = "it closed the connection".to_owned();
        let down = LinkEvent::Down {
            peer,
            serial,
            reason,
        };
        party.handle(down).unwrap();
        party.take_notices()
    };
    let told = Notice::Unreachable {
        peer: "birch".to_owned(),
        reason: "its links end before its greeting: it closed the connection".to_owned(),
    };
    for _ in 0..2 {
        let notices: Vec<Notice> = (0..50).flat_map(|_| link(&mut world, None)).collect();
        assert_eq!((&notices[0], notices.len()), (&told, 1));
        let hello = Frame::Hello(Hello {
            version: PROTOCOL,
            study: world.study.spoken_digest(NoiseOrigin::Seeded),
            from: peer,
            at: 0,
            persisted: None,
            received: None,
            probe: false,
        });
        let notices = link(&mut world, Some(hello));
        assert!(
            matches!(notices[0], Notice::Connected { .. }),
            "{notices:?}"
        );
        assert!(
            matches!(notices[1], Notice::Disconnected { .. }),
            "{notices:?}"
        );
    }
    let party = world.hosts[0].party.as_ref().unwrap();
    assert_eq!(party.early_ends(), 100);
}

#[test]
fn with_secret_noise_nothing_is_answered_twice() {
    // `deliver` checks that no two values are sent for one iteration.
    for seed in 20..24 {
        let mut world = World::of(&on("ring", &studies()[seed as usize % 4]), seed);
        world.secret_from_the_start();
        world.run(60);
        world.assert_ledgers_are_the_plan();
        // The noise is another one.
        assert_ne!(world.models(), world.undisturbed());
    }
}

#[test]
fn lost_workers_never_change_what_is_sent_nor_what_it_costs() {
    // `deliver` checks that no two values are sent for one iteration, also with secret noise.
    let mut faults = FaultCounts::default();
    for seed in 60..72 {
        let mut world = World::of(&on("ring", &studies()[seed as usize % 4]), seed);
        let secret = seed % 3 == 0;
        if secret {
            world.secret_from_the_start();
        }
        world.hand_rows_to_workers(seed);
        world.run(30);
        if !secret {
            assert_eq!(world.models(), world.undisturbed(), "seed {seed}");
        }
        world.assert_ledgers_are_the_plan();
        faults += world.faults;
    }
    assert!(faults.workers > 40 && faults.kills > 20, "{faults:?}");
}

#[test]
fn a_full_disk_stops_a_party_before_anything_leaves() {
    let mut world = World::new("ring", 3);
    for (a, b) in world.edges() {
        world.connect(a, b).unwrap();
    }
    world.hosts[0].disk.fill();
    let before = world.hosts[0].party.as_ref().unwrap().iteration();
    let mut halted = None;
    'outer: for _ in 0..100 {
        for (a, b) in world.edges() {
            for (from, to) in [(a, b), (b, a)] {
                match world.deliver(from, to) {
                    Ok(_) => {}
                    Err(error) => {
                        halted = Some(error);
                        break 'outer;
                    }
                }
            }
        }
    }
    let (who, error) = halted.unwrap();
    assert_eq!((who, before), (0, 0));
    let text = error.to_string();
    assert!(text.contains("the disk is full"), "{text}");
    // It sent nothing beyond its start.
    let sent: Vec<u32> = world
        .sent
        .keys()
        .filter(|key| key.0 == 0)
        .map(|key| key.1)
        .collect();
    assert_eq!(sent, [0]);
}

/// Lets a dishonest birch send frames to alder, who is at the iteration after the start.
fn sent_by_dishonest_birch(
    study: &str,
    frames: impl FnOnce(&mut World) -> Vec<Vec<u8>>,
) -> (World, Option<PartyError>) {
    let mut world = World::of(&on("ring", study), 5);
    for (a, b) in world.edges() {
        world.connect(a, b).unwrap();
    }
    // Hellos and starts, and the first answers.
    for _ in 0..3 {
        for (a, b) in world.edges() {
            world.deliver(a, b).unwrap();
            world.deliver(b, a).unwrap();
        }
    }
    let frames = frames(&mut world);
    let (serial, _) = world.wires[&(0, 1)];
    let mut halted = None;
    for bytes in frames {
        let event = LinkEvent::Frame {
            peer: NodeId(1),
            serial,
            bytes,
            credit: Credit::new(|| ()),
        };
        let party = world.hosts[0].party.as_mut().unwrap();
        if let Err(error) = party.handle(event) {
            halted = Some(error);
        }
    }
    (world, halted)
}

fn value_of_birch(world: &World, iteration: u32, values: Vec<f64>) -> Vec<u8> {
    let key = SecretKey::from_pem(&world.hosts[1].pem).unwrap();
    let message = Message {
        from: NodeId(1),
        iteration,
        release: Release::rounded(&values).unwrap(),
    };
    SignedMessage::new(message, &world.spoken(), &key).to_bytes()
}

fn misbehaviours(world: &mut World) -> Vec<String> {
    let notices = world.hosts[0].party.as_mut().unwrap().take_notices();
    let text = |notice| match notice {
        Notice::Misbehaved { peer, what } => Some(format!("{peer}: {what}")),
        _ => None,
    };
    notices.into_iter().filter_map(text).collect()
}

#[test]
fn invalid_frames_are_rejected_and_named() {
    let columns = |world: &World| world.hosts[0].shard.columns();
    let gram = move |world: &World| gram_width(columns(world));
    type Frames = Box<dyn Fn(&mut World) -> Vec<Vec<u8>>>;
    let wide: [(String, &str, Frames); 2] = [
        (
            consensus("gram"),
            "a vector of dimension 11 for iteration 2; expected 66",
            Box::new(move |world| vec![value_of_birch(world, 2, vec![1.0; columns(world)])]),
        ),
        (
            consensus("mean"),
            "a vector of dimension 66 for iteration 2; expected 11",
            Box::new(move |world| vec![value_of_birch(world, 2, vec![1.0; gram(world)])]),
        ),
    ];
    let narrow: Vec<(&str, Frames)> = vec![
        (
            "a vector of dimension 2 for iteration 2",
            Box::new(|world| vec![value_of_birch(world, 2, vec![1.0, 2.0])]),
        ),
        (
            "a value for iteration 7, while",
            Box::new(move |world| {
                let values = vec![0.0; columns(world)];
                vec![value_of_birch(world, 7, values)]
            }),
        ),
        (
            "without its signature",
            Box::new(move |world| {
                let mut bytes = value_of_birch(world, 2, vec![0.0; columns(world)]);
                *bytes.last_mut().unwrap() ^= 1;
                vec![bytes]
            }),
        ),
        (
            "beyond the grid",
            Box::new(move |world| {
                let mut bytes = value_of_birch(world, 2, vec![0.0; columns(world)]);
                bytes[14..22].copy_from_slice(&i64::MAX.to_le_bytes());
                vec![bytes]
            }),
        ),
        ("unknown kind 77", Box::new(|_| vec![vec![77, 1, 2]])),
        ("an empty frame", Box::new(|_| vec![Vec::new()])),
    ];
    let narrow = { narrow.into_iter() }.map(|(what, frames)| (STUDY.to_owned(), what, frames));
    for (study, what, frames) in narrow.chain(wide) {
        let (mut world, halted) = sent_by_dishonest_birch(&study, frames);
        assert!(halted.is_none(), "{what}");
        let reported = misbehaviours(&mut world);
        assert_eq!(reported.len(), 1, "{what}: {reported:?}");
        assert!(
            reported[0].starts_with("birch: ") && reported[0].contains(what),
            "{reported:?}"
        );
        // The link was closed; with a new one the study ends well.
        let (store, study_record) = world.hosts[0].party.as_ref().unwrap().store();
        assert_eq!(store.misbehaviours(study_record.number).unwrap().len(), 1);
        world.cut(0, 1);
        world.run(0);
        assert_eq!(world.models(), world.undisturbed());
    }
}

#[test]
fn two_values_for_one_iteration_are_kept_as_proof() {
    for (study, iteration) in [(STUDY.to_owned(), 0), (wide_study("gram"), 1)] {
        assert_two_values_are_kept(&study, iteration);
    }
}

fn assert_two_values_are_kept(study: &str, iteration: u32) {
    let (mut world, halted) = sent_by_dishonest_birch(study, |world| {
        // Alder has birch's value, or gets the first one now.
        let width = world.hosts[0]
            .party
            .as_ref()
            .unwrap()
            .node()
            .width(iteration);
        let [one, other] =
            [1.0, 2.0].map(|k| value_of_birch(world, iteration, vec![k * SPACING; width]));
        match iteration {
            0 => vec![one],
            _ => vec![one, other],
        }
    });
    let text = halted.unwrap().to_string();
    let expected =
        format!("birch misbehaves: it sent two different values for iteration {iteration}");
    assert!(text.starts_with(&expected), "{text}");
    assert_eq!(misbehaviours(&mut world).len(), 1);
    let (store, study_record) = world.hosts[0].party.as_ref().unwrap().store();
    let evidence = store.misbehaviours(study_record.number).unwrap();
    assert_eq!(evidence[0].frames.len(), 2);
    // Both are signed by birch: it cannot deny them.
    let key = SecretKey::from_pem(&world.hosts[1].pem).unwrap();
    let key = PublicKey::new(&key.public());
    for frame in &evidence[0].frames {
        let digit = |k: usize| u8::from_str_radix(&frame[k..k + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..frame.len()).step_by(2).map(digit).collect();
        let signed = SignedMessage::from_bytes(&bytes).unwrap();
        assert!(signed.is_signed_by(&key, &world.spoken()));
    }
}

#[test]
fn a_wrong_recycled_value_is_caught_where_the_neighbourhood_is_known() {
    // On a complete graph everyone receives all values.
    let mut world = World::new("complete", 5);
    for (a, b) in world.edges() {
        world.connect(a, b).unwrap();
    }
    let alder_at = |world: &World| world.hosts[0].party.as_ref().unwrap().iteration();
    while alder_at(&world) < 2 {
        for (a, b) in world.edges() {
            for (from, to) in [(a, b), (b, a)] {
                if alder_at(&world) < 2 {
                    world.deliver(from, to).unwrap();
                }
            }
        }
    }
    let columns = world.hosts[0].shard.columns();
    let bytes = value_of_birch(&world, 2, vec![0.25; columns]);
    let (serial, _) = world.wires[&(0, 1)];
    let event = LinkEvent::Frame {
        peer: NodeId(1),
        serial,
        bytes,
        credit: Credit::new(|| ()),
    };
    let halted = world.hosts[0].party.as_mut().unwrap().handle(event);
    let text = halted.unwrap_err().to_string();
    assert!(
        text.contains("birch misbehaves: its value of iteration 2 does not follow"),
        "{text}"
    );
}

#[test]
fn parties_that_recycle_to_consensus_report_no_distance() {
    for metric in ["none", "gram"] {
        let mut world = World::of(&on("ring", &consensus(metric)), 1);
        world.run(0);
        for host in &mut world.hosts {
            let party = host.party.as_mut().unwrap();
            let mut reported = 0;
            for notice in party.take_notices() {
                if let Notice::Iterated { consensus, .. } = notice {
                    // Partial sums differ, and are not models.
                    assert_eq!(consensus, 0.0);
                    reported += 1;
                }
            }
            assert!(reported > 10 && party.consensus() == 0.0);
        }
        assert!(
            world
                .models()
                .iter()
                .all(|model| *model == world.models()[0])
        );
    }
}

/// The calls that a test's pacer saw, with the number of alder's frames on its wires at every start and at every wait.
type Seen = Arc<Mutex<Vec<(&'static str, usize)>>>;

/// A pacer that notes what has been sent before it is asked.
struct Clock {
    wires: Vec<Queue>,
    seen: Seen,
    ticks: u32,
}

impl Clock {
    /// Becomes alder's pacer, in a world on a ring.
    fn watch_alder(world: &mut World, ticks: u32) -> Seen {
        let seen = Seen::default();
        let clock = Self {
            wires: [1, 4].map(|to| world.wires[&(0, to)].1.clone()).into(),
            seen: seen.clone(),
            ticks,
        };
        let alder = world.hosts[0].party.as_mut().unwrap();
        alder.set_pacer(Box::new(clock));
        seen
    }

    fn note(&self, what: &'static str) {
        let frames = self.wires.iter().map(|wire| wire.lock().unwrap().len());
        self.seen.lock().unwrap().push((what, frames.sum()));
    }
}

impl Pacer for Clock {
    fn start(&mut self) {
        self.note("start");
    }

    fn wait(&mut self) -> u32 {
        self.note("wait");
        self.ticks
    }
}

#[test]
fn answers_leave_after_their_tick_and_recycled_values_at_once() {
    for ticks in [1, 3] {
        let mut world = World::of(&on("ring", STUDY), 1);
        for (a, b) in world.edges() {
            world.connect(a, b).unwrap();
        }
        let seen = Clock::watch_alder(&mut world, ticks);
        let mut before = 0;
        for round in 0.. {
            assert!(round < 100);
            let iteration = |world: &World| world.hosts[0].party.as_ref().unwrap().iteration();
            for (a, b) in world.edges() {
                for (from, to) in [(a, b), (b, a)] {
                    let at = iteration(&world);
                    world.deliver(from, to).unwrap();
                    let calls = seen.lock().unwrap().split_off(0);
                    if iteration(&world) == at {
                        assert!(calls.is_empty());
                        continue;
                    }
                    before += 1;
                    // Data steps are odd. Between the last value that arrived and the tick, nothing is sent.
                    match (&calls[..], before % 2) {
                        ([("start", sent), ("wait", same)], 1) => assert_eq!(sent, same),
                        ([("start", _)], 0) => {}
                        _ => panic!("iteration {before}: {calls:?}"),
                    }
                }
            }
            if before == 9 {
                break;
            }
        }
        let notices = world.hosts[0].party.as_mut().unwrap().take_notices();
        let late = |notice: &&Notice| matches!(notice, Notice::Late { ticks: 3, .. });
        assert_eq!(
            notices.iter().filter(late).count(),
            if ticks == 3 { 5 } else { 0 }
        );
    }
}

/// Runs parties until one of them halts; returns it, why, and what alder's pacer saw.
fn first_halt(mut world: World) -> (u32, PartyError, Vec<(&'static str, usize)>) {
    for (a, b) in world.edges() {
        world.connect(a, b).unwrap();
    }
    let seen = Clock::watch_alder(&mut world, 1);
    loop {
        for (a, b) in world.edges() {
            for (from, to) in [(a, b), (b, a)] {
                if let Err((who, error)) = world.deliver(from, to) {
                    return (who, error, seen.lock().unwrap().clone());
                }
            }
        }
    }
}

#[test]
fn a_party_whose_disk_or_worker_fails_at_an_answer_stops_after_its_tick() {
    let disk = |_| {
        let world = World::of(&on("ring", STUDY), 1);
        world.hosts[0].disk.fail_after(0);
        world
    };
    let worker = |seed| {
        let mut world = World::of(&on("ring", STUDY), 1);
        world.hand_rows_to_workers(seed);
        (0..5).for_each(|i| world.open(i).unwrap());
        world
    };
    let worlds: [&dyn Fn(u64) -> World; 2] = [&disk, &worker];
    for (case, world) in worlds.into_iter().enumerate() {
        // Everybody's workers may be lost.
        let mut halts = (0..).map(|seed| first_halt(world(seed)));
        let (_, error, calls) = halts.find(|(who, _, _)| *who == 0).unwrap();
        match error {
            PartyError::Store(_) => assert_eq!(case, 0),
            PartyError::Stopped(stop) => {
                assert!(matches!(*stop, StopReason::PassFailed { .. }));
                assert_eq!(case, 1);
            }
            error => panic!("{error}"),
        }
        let [.., ("start", sent), ("wait", same)] = calls[..] else {
            panic!("{case}: {calls:?}");
        };
        assert_eq!(sent, same);
    }
}
