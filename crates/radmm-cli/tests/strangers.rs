//! Whoever is not a neighbour, or is one and means ill, is named and turned away; the run ends as if nobody had come.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod fleet;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use fleet::{Fleet, PATIENCE, Process};
use radmm::graph::NodeId;
use radmm::protocol::message::Message;
use radmm::protocol::release::Release;
use radmm_node::key::SecretKey;
use radmm_node::machine::{Frame, Hello, PROTOCOL, SignedMessage};
use radmm_node::machine::{Link, LinkEvent};
use radmm_node::transport::{PeerEndpoint, Transport, TransportConfig};
use radmm_study::instantiate;

const ALDER: usize = 0;
const CEDAR: usize = 2;
const MAPLE: usize = 3;
const ROWAN: usize = 4;

/// Somebody with a key who calls alder.
struct Caller {
    _network: Transport,
    events: Receiver<LinkEvent>,
}

impl Caller {
    fn new(fleet: &Fleet, me: usize, key: SecretKey) -> Self {
        let alder = PeerEndpoint {
            id: NodeId(ALDER as u32),
            key: fleet.key(ALDER).public(),
            address: Some(fleet.address(ALDER).to_string()),
        };
        let settings = TransportConfig {
            me: NodeId(me as u32),
            key: Arc::new(key),
            listen: None,
            neighbours: vec![alder],
            largest_frame: 1 << 17,
        };
        let (sender, events) = channel();
        Self {
            _network: Transport::start(settings, sender).unwrap(),
            events,
        }
    }

    /// Waits for what `wanted` picks.
    fn until<T>(&self, what: &str, wanted: impl Fn(LinkEvent) -> Option<T>) -> T {
        loop {
            match self.events.recv_timeout(PATIENCE) {
                Ok(event) => {
                    if let Some(found) = wanted(event) {
                        return found;
                    }
                }
                Err(_) => panic!("it did not happen: {what}"),
            }
        }
    }

    fn link(&self) -> Box<dyn Link> {
        self.until("a link", |event| match event {
            LinkEvent::Up { link, .. } => Some(link),
            _ => None,
        })
    }

    fn hears<T>(&self, what: &str, wanted: impl Fn(Frame) -> Option<T>) -> T {
        self.until(what, |event| match event {
            LinkEvent::Frame { bytes, .. } => wanted(Frame::decode(&bytes).unwrap()),
            _ => None,
        })
    }

    fn down(&self) {
        self.until("the end of the link", |event| {
            matches!(event, LinkEvent::Down { .. }).then_some(())
        });
    }
}

/// All but rowan, for whom everyone waits.
fn without_rowan(fleet: &Fleet) -> Vec<Process> {
    (0..ROWAN).map(|party| fleet.start(party)).collect()
}

fn hello(fleet: &Fleet) -> Hello {
    Hello {
        version: PROTOCOL,
        study: fleet.study().digest(),
        from: NodeId(ROWAN as u32),
        at: 0,
        persisted: None,
        received: None,
        probe: false,
    }
}

#[test]
fn strangers_are_named_and_nobody_else_notices() {
    let fleet = Fleet::new(6);
    let mut processes = without_rowan(&fleet);
    let alder = &processes[ALDER];
    alder.tells("connected", &["birch"]);

    let random: Vec<u8> = (0..2000_u32)
        .map(|k| ((k * k * 31) >> 3) as u8 | 0x80)
        .collect();
    let request = b"GET / HTTP/1.1\r\nHost: alder\r\n\r\n";
    for bytes in [&b"hello\r\n"[..], request, &random] {
        let mut stream = TcpStream::connect(fleet.address(ALDER)).unwrap();
        let mine = stream.local_addr().unwrap().to_string();
        // It may have been hung up on before everything was said.
        let _ = stream.write_all(bytes);
        alder.tells("refused", &[&mine, "it does not speak TLS"]);
        let _ = stream.read_to_end(&mut Vec::new());
    }

    let unknown = SecretKey::generate().unwrap();
    for (me, key) in [(ROWAN, unknown), (CEDAR, fleet.key(CEDAR))] {
        let shown = key.identity().to_string();
        let caller = Caller::new(&fleet, me, key);
        alder.tells("refused", &[&shown, "is not a neighbour's"]);
        let reason = caller.until("a refusal", |event| match event {
            LinkEvent::Unreachable { reason, .. } => Some(reason),
            _ => None,
        });
        assert!(reason.contains("does not take this side's key"), "{reason}");
    }

    let caller = Caller::new(&fleet, ROWAN, fleet.key(ROWAN));
    let link = caller.link();
    let later = Hello {
        version: PROTOCOL + 1,
        ..hello(&fleet)
    };
    // Which has more to say than this program knows of.
    let bytes = [Frame::Hello(later).encode(), vec![1, 2, 3]].concat();
    assert!(link.send(bytes));
    let words = format!("it speaks version {} of the protocol", PROTOCOL + 1);
    alder.tells("disagrees", &["rowan", &words]);
    let reason = caller.hears("a farewell", |frame| match frame {
        Frame::Bye(reason) => Some(reason),
        _ => None,
    });
    assert!(reason.contains(&words), "{reason}");
    drop(caller);

    assert_eq!(alder.times("lied"), 0);
    assert_eq!(alder.times("disconnected"), 0, "birch noticed");
    processes.push(fleet.start(ROWAN));
    fleet.ends_as_simulated(processes);
}

#[test]
fn another_study_is_named_by_both_sides_until_it_is_put_right() {
    let fleet = Fleet::new(6);
    let mut processes = without_rowan(&fleet);
    let changed = fleet.changed("penalty = 3.0", "penalty = 4.0");
    let mut mistaken = fleet.start_with(ROWAN, &changed);
    for neighbour in [ALDER, MAPLE] {
        let here = ["rowan", "[algorithm] penalty: 3.0 here, 4.0 there"];
        processes[neighbour].tells("disagrees", &here);
        let name = fleet.name(neighbour).to_owned();
        let there = [name.as_str(), "[algorithm] penalty: 4.0 here, 3.0 there"];
        mistaken.tells("disagrees", &there);
    }
    // Those who do not need rowan's value have gone on.
    processes[CEDAR].says("iteration 1", |line| line["iteration"] == 1);
    assert!(mistaken.is_alive());
    for process in &mut processes {
        assert!(process.is_alive(), "{}", process.name);
        assert_eq!(process.times("lied"), 0, "{}", process.name);
    }
    drop(mistaken);
    processes.push(fleet.start(ROWAN));
    fleet.ends_as_simulated(processes);
}

/// Numbers that look like any.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn mutated(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut bytes = frame.to_vec();
        let at = self.below(bytes.len());
        match self.below(4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, self.below(256) as u8),
            2 => bytes[at] ^= 1 << self.below(8),
            _ => bytes.extend_from_within(at..),
        }
        bytes
    }
}

#[test]
fn mutated_frames_of_a_neighbour_are_refused_and_leave_nothing_behind() {
    const CONNECTIONS: usize = 60;
    let fleet = Fleet::new(6);
    let mut processes = without_rowan(&fleet);
    let alder = &processes[ALDER];
    alder.tells("connected", &["birch"]);
    let before = alder.memory();

    let (study, key) = (fleet.study(), fleet.key(ROWAN));
    let hello = Frame::Hello(hello(&fleet)).encode();
    let mut dice = Dice(1);
    let mut frames = vec![
        hello.clone(),
        Frame::Study(study.canonical()).encode(),
        Frame::Ack { through: 6 }.encode(),
        Frame::Bye("a reason".to_owned()).encode(),
    ];
    for connection in 0..CONNECTIONS {
        let caller = Caller::new(&fleet, ROWAN, fleet.key(ROWAN));
        let link = caller.link();
        assert!(link.send(hello.clone()));
        let theirs = caller.hears("a value", |frame| match frame {
            Frame::Value(signed) => Some(signed),
            _ => None,
        });
        if connection == 0 {
            // What rowan would say, which is only true as it is.
            let release = &theirs.message.release;
            let start = instantiate::start(&study, NodeId(ROWAN as u32), release.values().len());
            let message = Message {
                from: NodeId(ROWAN as u32),
                iteration: 0,
                release: Release::rounded(&start).unwrap(),
            };
            let mine = SignedMessage::new(message, &study.digest(), &key);
            frames.extend([theirs.to_bytes(), mine.to_bytes()]);
        }
        for _ in 0..6 {
            let which = dice.below(frames.len());
            // The link may have ended at an earlier one.
            let _ = link.send(dice.mutated(&frames[which]));
        }
        // Whatever became of those.
        let _ = link.send(vec![0x99]);
        caller.down();
    }

    alder.tells("lied", &["rowan"]);
    assert!(alder.times("lied") <= 20, "it fills the log");
    assert_eq!(alder.times("refused"), 0);
    if let (Some(before), Some(after)) = (before, alder.memory()) {
        assert!(
            after < before + (16 << 20),
            "from {before} to {after} bytes"
        );
    }
    processes.push(fleet.start(ROWAN));
    fleet.ends_as_simulated(processes);
}
