//! Parties on wires in memory, with disks whose power fails: whatever is cut, killed or delayed, in whatever order, the same
//! bytes are said, and once.

mod misbehaviour;
mod recovery;
mod world;

use std::collections::VecDeque;
use std::path::Path;

use radmm::account::{Budget, Ledger};
use radmm::message::Message;
use radmm::node::{Node, Stop};
use radmm::private::Recorded;
use radmm::public::graph::{Graph, NodeId};
use radmm::public::release::{Release, SPACING};
use radmm_study::{Study, assemble};

use super::frame::{Frame, Hello, PROTOCOL, Signed};
use super::link::{Credit, Event, Link, Serial};
use super::party::{Halt, Opening, Party, Peer, PeerState};
use crate::key::SecretKey;
use crate::runtime::notice::Notice;
use crate::store::faulty_storage::Disk;
use crate::store::{Begun, Store};

use world::*;
pub(crate) use world::{STUDY, World, mechanisms};

#[test]
fn parties_that_are_left_alone_come_to_what_nodes_alone_do() {
    for topology in ["ring", "star", "complete", "path"] {
        let mut world = World::new(topology, 1);
        world.run(0);
        assert_eq!(world.models(), world.undisturbed(), "{topology}");
        world.assert_ledgers_are_the_plan();
    }
}

#[test]
fn whatever_is_cut_killed_or_fails_the_same_bytes_are_said_once() {
    let mut suffered = Suffered::default();
    for seed in 0..12 {
        let topology = ["ring", "complete", "star"][seed as usize % 3];
        let mut world = World::new(topology, seed);
        world.run(60);
        assert_eq!(world.models(), world.undisturbed(), "seed {seed}");
        world.assert_ledgers_are_the_plan();
        suffered += world.suffered;
    }
    assert!(
        suffered.kills > 100 && suffered.cuts > 100 && suffered.disks > 50,
        "{suffered:?}"
    );
}

#[test]
fn who_leaves_once_settled_leaves_nobody_waiting() {
    let mut unassured = 0;
    for seed in 30..60 {
        let mut world = World::new(["ring", "star", "complete"][seed as usize % 3], seed);
        unassured += world.all_leave();
        assert_eq!(world.said.len(), 5 * 10, "everybody has said everything");
    }
    // Who said the last word cannot know whether it was heard: it happened, and nobody waited for ever.
    assert!(unassured > 0);
}

/// A link whose other side has gone.
struct Gone;

impl Link for Gone {
    fn send(&self, _: Vec<u8>) -> bool {
        false
    }

    fn close(&self) {}
}

#[test]
fn what_was_said_last_is_heard_although_nothing_can_be_said_any_more() {
    let mut world = World::new("ring", 2);
    let serial = world.serials.next();
    let peer = NodeId(1);
    let hello = Frame::Hello(Hello {
        version: PROTOCOL,
        study: world.study.digest(),
        from: peer,
        at: 0,
        heard: None,
        seen: None,
        probe: false,
    });
    let party = world.seats[0].party.as_mut().unwrap();
    let link = Box::new(Gone);
    party.handle(Event::Up { peer, serial, link }).unwrap();
    for frame in [hello, Frame::Bye("its operator stopped it".to_owned())] {
        let event = Event::Frame {
            peer,
            serial,
            bytes: frame.encode(),
            credit: Credit::new(|| ()),
        };
        party.handle(event).unwrap();
    }
    let gone = Notice::Disconnected {
        peer: "birch".to_owned(),
        reason: "its operator stopped it".to_owned(),
    };
    let notices = party.take_notices();
    assert!(notices.contains(&gone), "{notices:?}");
}

#[test]
fn with_secret_noise_too_nothing_is_answered_twice() {
    // That no two contents are ever said is checked on the wires.
    for seed in 20..24 {
        let mut world = World::new("ring", seed);
        for i in 0..5 {
            world.seats[i as usize].party = None;
            world.seats[i as usize].disk = Disk::default();
        }
        world.secret = true;
        world.run(60);
        world.assert_ledgers_are_the_plan();
        // Another key, other noise.
        assert_ne!(world.models(), world.undisturbed());
    }
}

#[test]
fn a_full_disk_stops_a_party_before_anything_leaves() {
    let mut world = World::new("ring", 3);
    for (a, b) in world.edges() {
        world.connect(a, b).unwrap();
    }
    world.seats[0].disk.fill();
    let before = world.seats[0].party.as_ref().unwrap().iteration();
    let mut halted = None;
    'outer: for _ in 0..100 {
        for (a, b) in world.edges() {
            for (from, to) in [(a, b), (b, a)] {
                match world.deliver(from, to) {
                    Ok(_) => {}
                    Err(halt) => {
                        halted = Some(halt);
                        break 'outer;
                    }
                }
            }
        }
    }
    let (who, halt) = halted.unwrap();
    assert_eq!((who, before), (0, 0));
    let text = halt.to_string();
    assert!(text.contains("the disk is full"), "{text}");
    // Beyond its start it said nothing.
    let said: Vec<u32> = world
        .said
        .keys()
        .filter(|key| key.0 == 0)
        .map(|key| key.1)
        .collect();
    assert_eq!(said, [0]);
}

/// A liar with birch's key says this to alder, who is at the iteration after the start.
fn told_by_a_liar(
    topology: &str,
    lie: impl FnOnce(&mut World) -> Vec<Vec<u8>>,
) -> (World, Option<Halt>) {
    let mut world = World::new(topology, 5);
    for (a, b) in world.edges() {
        world.connect(a, b).unwrap();
    }
    // Greetings and starts, and the first answers.
    for _ in 0..3 {
        for (a, b) in world.edges() {
            world.deliver(a, b).unwrap();
            world.deliver(b, a).unwrap();
        }
    }
    let frames = lie(&mut world);
    let (serial, _) = world.wires[&(0, 1)];
    let mut halted = None;
    for bytes in frames {
        let event = Event::Frame {
            peer: NodeId(1),
            serial,
            bytes,
            credit: Credit::new(|| ()),
        };
        let party = world.seats[0].party.as_mut().unwrap();
        if let Err(halt) = party.handle(event) {
            halted = Some(halt);
        }
    }
    (world, halted)
}

fn said_by_birch(world: &World, iteration: u32, values: Vec<f64>) -> Vec<u8> {
    let key = SecretKey::from_pem(&world.seats[1].pem).unwrap();
    let message = Message {
        from: NodeId(1),
        iteration,
        release: Release::of(values, radmm::public::release::Precision::Grid).unwrap(),
    };
    Signed::new(message, &world.study.digest(), &key).to_bytes()
}

fn lies(world: &mut World) -> Vec<String> {
    let notices = world.seats[0].party.as_mut().unwrap().take_notices();
    let lie = |notice| match notice {
        Notice::Lied { peer, what } => Some(format!("{peer}: {what}")),
        _ => None,
    };
    notices.into_iter().filter_map(lie).collect()
}

#[test]
fn lies_are_caught_and_named() {
    let columns = |world: &World| world.seats[0].shard.columns();
    type Lie = Box<dyn Fn(&mut World) -> Vec<Vec<u8>>>;
    let cases: Vec<(&str, Lie)> = vec![
        (
            "a vector of dimension 2 for iteration 2",
            Box::new(|world| vec![said_by_birch(world, 2, vec![1.0, 2.0])]),
        ),
        (
            "a value for iteration 7, while",
            Box::new(move |world| {
                let values = vec![0.0; columns(world)];
                vec![said_by_birch(world, 7, values)]
            }),
        ),
        (
            "without its signature",
            Box::new(move |world| {
                let mut bytes = said_by_birch(world, 2, vec![0.0; columns(world)]);
                *bytes.last_mut().unwrap() ^= 1;
                vec![bytes]
            }),
        ),
        (
            "beyond the grid",
            Box::new(move |world| {
                let mut bytes = said_by_birch(world, 2, vec![0.0; columns(world)]);
                bytes[14..22].copy_from_slice(&i64::MAX.to_le_bytes());
                vec![bytes]
            }),
        ),
        ("unknown kind 77", Box::new(|_| vec![vec![77, 1, 2]])),
        ("an empty frame", Box::new(|_| vec![Vec::new()])),
    ];
    for (what, lie) in cases {
        let (mut world, halted) = told_by_a_liar("ring", lie);
        assert!(halted.is_none(), "{what}");
        let told = lies(&mut world);
        assert_eq!(told.len(), 1, "{what}: {told:?}");
        assert!(
            told[0].starts_with("birch: ") && told[0].contains(what),
            "{told:?}"
        );
        // The link has ended; a new one may begin, and everything ends well.
        let (store, begun) = world.seats[0].party.as_ref().unwrap().store();
        assert_eq!(store.evidence(begun.number).unwrap().len(), 1);
        world.cut(0, 1);
        world.run(0);
        assert_eq!(world.models(), world.undisturbed());
    }
}

#[test]
fn two_values_for_one_iteration_are_kept_as_evidence() {
    let (mut world, halted) = told_by_a_liar("ring", |world| {
        let columns = world.seats[0].shard.columns();
        // The start is public, and everyone has it; another one is a second value.
        vec![said_by_birch(world, 0, vec![SPACING; columns])]
    });
    let text = halted.unwrap().to_string();
    assert!(
        text.starts_with("birch lies: it sent two different values for iteration 0"),
        "{text}"
    );
    assert_eq!(lies(&mut world).len(), 1);
    let (store, begun) = world.seats[0].party.as_ref().unwrap().store();
    let evidence = store.evidence(begun.number).unwrap();
    assert_eq!(evidence[0].frames.len(), 2);
    // Both are signed by birch: it cannot deny them.
    let key = SecretKey::from_pem(&world.seats[1].pem).unwrap().public();
    for frame in &evidence[0].frames {
        let digit = |k: usize| u8::from_str_radix(&frame[k..k + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..frame.len()).step_by(2).map(digit).collect();
        let signed = Signed::from_bytes(&bytes).unwrap();
        assert!(signed.is_by(&key, &world.study.digest()));
    }
}

#[test]
fn a_recycled_value_that_does_not_follow_is_caught_where_the_neighbourhood_is_known() {
    // On a complete graph everyone hears everyone.
    let mut world = World::new("complete", 5);
    for (a, b) in world.edges() {
        world.connect(a, b).unwrap();
    }
    let alder_at = |world: &World| world.seats[0].party.as_ref().unwrap().iteration();
    while alder_at(&world) < 2 {
        for (a, b) in world.edges() {
            for (from, to) in [(a, b), (b, a)] {
                if alder_at(&world) < 2 {
                    world.deliver(from, to).unwrap();
                }
            }
        }
    }
    let columns = world.seats[0].shard.columns();
    let bytes = said_by_birch(&world, 2, vec![0.25; columns]);
    let (serial, _) = world.wires[&(0, 1)];
    let event = Event::Frame {
        peer: NodeId(1),
        serial,
        bytes,
        credit: Credit::new(|| ()),
    };
    let halted = world.seats[0].party.as_mut().unwrap().handle(event);
    let text = halted.unwrap_err().to_string();
    assert!(
        text.contains("birch lies: its value of iteration 2 does not follow"),
        "{text}"
    );
}
