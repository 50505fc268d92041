//! Strangers and malicious neighbours are rejected and logged; the run ends as if they had not connected.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/party_processes.rs"]
mod party_processes;
mod support;

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use party_processes::{PartyProcesses, TIMEOUT, clinic, consensus};
use radmm::graph::NodeId;
use radmm::protocol::message::Message;
use radmm::protocol::query::gram_width;
use radmm::protocol::release::Release;
use radmm_node::key::SecretKey;
use radmm_node::machine::{Frame, Hello, Link, LinkEvent, PROTOCOL, SignedMessage};
use radmm_node::transport::{EventReceiver, PeerEndpoint, Transport, TransportConfig, event_queue};
use radmm_study::{NoiseOrigin, instantiate};

const ALDER: usize = 0;
const CEDAR: usize = 2;
const MAPLE: usize = 3;
const ROWAN: usize = 4;

/// A connection to alder with an arbitrary key.
struct Caller {
    transport: Transport,
    events: RefCell<EventReceiver>,
}

impl Caller {
    fn new(parties: &PartyProcesses, me: usize, key: SecretKey) -> Self {
        let alder = PeerEndpoint {
            id: NodeId(ALDER as u32),
            key: parties.key(ALDER).public(),
            address: Some(parties.address(ALDER).to_string()),
        };
        let config = TransportConfig {
            me: NodeId(me as u32),
            key: Arc::new(key),
            listen: None,
            neighbours: vec![alder],
            parties: Vec::new(),
            largest_frame: 1 << 17,
        };
        let (sender, events) = event_queue();
        Self {
            transport: Transport::start(config, sender).unwrap(),
            events: events.into(),
        }
    }

    /// Waits for an event from which `wanted` returns something.
    fn wait_for<T>(&self, what: &str, wanted: impl Fn(LinkEvent) -> Option<T>) -> T {
        let mut events = self.events.borrow_mut();
        loop {
            match self.transport.next_event(&mut events, TIMEOUT) {
                Some(event) => {
                    if let Some(found) = wanted(event) {
                        return found;
                    }
                }
                None => panic!("timeout: waited for {what}"),
            }
        }
    }

    fn link(&self) -> Box<dyn Link> {
        self.wait_for("a link", |event| match event {
            LinkEvent::Up { link, .. } => Some(link),
            _ => None,
        })
    }

    fn receive<T>(&self, what: &str, wanted: impl Fn(Frame) -> Option<T>) -> T {
        self.wait_for(what, |event| match event {
            LinkEvent::Frame { bytes, .. } => wanted(Frame::decode(&bytes).unwrap()),
            _ => None,
        })
    }

    fn wait_for_disconnect(&self) {
        self.wait_for("the end of the link", |event| {
            matches!(event, LinkEvent::Down { .. }).then_some(())
        });
    }
}

/// Starts all parties but rowan, for whom they wait.
fn without_rowan() -> PartyProcesses {
    without_rowan_in(&clinic(6))
}

fn without_rowan_in(study: &str) -> PartyProcesses {
    let mut parties = PartyProcesses::with_limit(study, Some(1000.0));
    (0..ROWAN).for_each(|party| parties.start(party));
    parties
}

fn hello(parties: &PartyProcesses) -> Hello {
    Hello {
        version: PROTOCOL,
        study: parties.study().spoken_digest(NoiseOrigin::Seeded),
        from: NodeId(ROWAN as u32),
        at: 0,
        persisted: None,
        received: None,
        probe: false,
    }
}

#[test]
fn strangers_are_rejected_by_name_and_disturb_no_connection() {
    let mut parties = without_rowan();
    parties.wait_for_event(ALDER, "connected", &["birch"]);

    let random: Vec<u8> = (0..2000_u32)
        .map(|k| ((k * k * 31) >> 3) as u8 | 0x80)
        .collect();
    let request = b"GET / HTTP/1.1\r\nHost: alder\r\n\r\n";
    for bytes in [&b"hello\r\n"[..], request, &random] {
        let mut stream = TcpStream::connect(parties.address(ALDER)).unwrap();
        // The connection may be closed before everything is sent.
        let _ = stream.write_all(bytes);
        parties.wait_for_event(ALDER, "refused", &["127.0.0.1", "it does not speak TLS"]);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    // They came from one address for one reason.
    assert_eq!(parties.count_notices(ALDER, "refused"), 1);

    let unknown = SecretKey::generate().unwrap();
    let not_neighbour = "is that of party cedar, which is not a neighbour";
    for (me, key, words) in [
        (ROWAN, unknown, "is not a neighbour's"),
        (CEDAR, parties.key(CEDAR), not_neighbour),
    ] {
        let shown = key.identity().to_string();
        let caller = Caller::new(&parties, me, key);
        parties.wait_for_event(ALDER, "refused", &[&shown, words]);
        let reason = caller.wait_for("a refusal", |event| match event {
            LinkEvent::Unreachable { reason, .. } => Some(reason),
            _ => None,
        });
        assert!(reason.contains("it rejects this side's key"), "{reason}");
    }

    let caller = Caller::new(&parties, ROWAN, parties.key(ROWAN));
    let link = caller.link();
    let later = Hello {
        version: PROTOCOL + 1,
        ..hello(&parties)
    };
    // A later version may have more fields.
    let bytes = [Frame::Hello(later).encode(), vec![1, 2, 3]].concat();
    assert!(link.send(bytes));
    let words = format!("it speaks version {} of the protocol", PROTOCOL + 1);
    parties.wait_for_event(ALDER, "disagrees", &["rowan", &words]);
    let reason = caller.receive("a farewell", |frame| match frame {
        Frame::Bye(reason) => Some(reason),
        _ => None,
    });
    assert!(reason.contains(&words), "{reason}");
    drop(caller);

    assert_eq!(parties.count_notices(ALDER, "lied"), 0);
    assert_eq!(parties.count_notices(ALDER, "disconnected"), 0);
    parties.start(ROWAN);
    parties.assert_end_as_simulated();
}

#[test]
fn both_sides_report_a_different_study_until_it_is_corrected() {
    let mut parties = without_rowan();
    let changed = parties.changed_study("penalty = 3.0", "penalty = 4.0");
    parties.start_with(ROWAN, &changed);
    for neighbour in [ALDER, MAPLE] {
        let here = ["rowan", "[algorithm] penalty: 3.0 here, 4.0 there"];
        parties.wait_for_event(neighbour, "disagrees", &here);
        let name = parties.name(neighbour).to_owned();
        let there = [name.as_str(), "[algorithm] penalty: 4.0 here, 3.0 there"];
        parties.wait_for_event(ROWAN, "disagrees", &there);
    }
    // Parties that do not need rowan's value continue.
    parties.wait_for(CEDAR, "iteration 1", |notice| notice["iteration"] == 1);
    for party in 0..parties.count() {
        assert!(parties.is_alive(party), "{}", parties.name(party));
    }
    for party in 0..ROWAN {
        let name = parties.name(party);
        assert_eq!(parties.count_notices(party, "lied"), 0, "{name}");
    }
    parties.kill(ROWAN);
    parties.start(ROWAN);
    parties.assert_end_as_simulated();
}

/// A linear congruential generator.
struct Lcg(u64);

impl Lcg {
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
fn mutated_frames_of_a_neighbour_are_rejected_and_leak_no_memory() {
    const CONNECTIONS: usize = 60;
    let mut parties = without_rowan();
    parties.wait_for_event(ALDER, "connected", &["birch"]);
    let before = parties.memory(ALDER);

    let (study, key) = (parties.study(), parties.key(ROWAN));
    let hello = Frame::Hello(hello(&parties)).encode();
    let mut rng = Lcg(1);
    let mut frames = vec![
        hello.clone(),
        Frame::Study(study.canonical()).encode(),
        Frame::Ack { through: 6 }.encode(),
        Frame::Bye("a reason".to_owned()).encode(),
    ];
    for connection in 0..CONNECTIONS {
        let caller = Caller::new(&parties, ROWAN, parties.key(ROWAN));
        let link = caller.link();
        assert!(link.send(hello.clone()));
        let theirs = caller.receive("a value", |frame| match frame {
            Frame::Value(signed) => Some(signed),
            _ => None,
        });
        if connection == 0 {
            // A valid message of rowan, which is invalid once mutated.
            let columns = theirs.message.release.values().len();
            let start = instantiate::start(&study, NodeId(ROWAN as u32), columns);
            let message = Message {
                from: NodeId(ROWAN as u32),
                iteration: 0,
                release: Release::rounded(&start).unwrap(),
            };
            let mine = SignedMessage::new(message, &study.spoken_digest(NoiseOrigin::Seeded), &key);
            frames.extend([theirs.to_bytes(), mine.to_bytes()]);
        }
        for _ in 0..6 {
            let which = rng.below(frames.len());
            // An earlier frame may have closed the link.
            let _ = link.send(rng.mutated(&frames[which]));
        }
        // An invalid frame, in case the others were accepted.
        let _ = link.send(vec![0x99]);
        caller.wait_for_disconnect();
    }

    parties.wait_for_event(ALDER, "lied", &["rowan"]);
    assert!(
        parties.count_notices(ALDER, "lied") <= 20,
        "the log is flooded"
    );
    assert_eq!(parties.count_notices(ALDER, "refused"), 0);
    if let (Some(before), Some(after)) = (before, parties.memory(ALDER)) {
        assert!(
            after < before + (16 << 20),
            "from {before} to {after} bytes"
        );
    }
    parties.start(ROWAN);
    parties.assert_end_as_simulated();
}

#[test]
fn a_neighbour_that_lies_in_a_sum_is_named_by_the_party_that_stops() {
    // Rowan is a leaf of the tree. It asks its rows in iteration 1, and must keep its value in iteration 2.
    let mut parties = without_rowan_in(&consensus("gram", 2));
    parties.wait_for_event(ALDER, "connected", &["birch"]);
    let (study, key) = (parties.study(), parties.key(ROWAN));
    let caller = Caller::new(&parties, ROWAN, parties.key(ROWAN));
    let link = caller.link();
    assert!(link.send(Frame::Hello(hello(&parties)).encode()));
    let columns = study.data.schema.width();
    for (iteration, width, value) in [
        (0, columns, 0.0),
        (1, gram_width(columns), 5.0),
        (2, gram_width(columns), 6.0),
    ] {
        caller.receive("alder's value", |frame| match frame {
            Frame::Value(signed) => (signed.message.iteration == iteration).then_some(()),
            _ => None,
        });
        let message = Message {
            from: NodeId(ROWAN as u32),
            iteration,
            release: Release::rounded(&vec![value; width]).unwrap(),
        };
        let signed = SignedMessage::new(message, &study.spoken_digest(NoiseOrigin::Seeded), &key);
        assert!(link.send(signed.to_bytes()));
    }
    let exited = parties.wait(ALDER);
    assert_eq!(exited.status.code(), Some(1), "{:?}", exited.log);
    let log = exited.log.join("\n");
    let lie =
        "rowan misbehaves: its value of iteration 2 does not follow from the messages before it;";
    assert!(log.contains(lie), "{log}");
    // Alder's transcript shows it to everybody, and there is no model.
    let results = parties.home(ALDER).join("results");
    assert!(!results.join("model.json").exists());
    let transcript = results.join("transcript.jsonl");
    let args = [
        "verify",
        "--study",
        "study.toml",
        transcript.to_str().unwrap(),
    ];
    let output = support::radmm(parties.folder(), &args);
    assert_eq!(output.status.code(), Some(1));
    let page = support::text(&output.stdout);
    let fault =
        "rowan, iteration 2: the recycled value does not follow from the messages before it\n";
    assert!(page.contains(fault), "{page}");
    assert_eq!(page.matches("fault ").count(), 1, "{page}");
}
