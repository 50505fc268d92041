//! A party that only talks.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use radmm::public::graph::NodeId;
use radmm_node::key::SecretKey;
use radmm_node::machine::link::{Credit, Event, Link, Serial};
use radmm_node::transport::{Neighbour, Network, Settings, TransportError};

/// Nothing takes that long; a test that waits for longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Frames of tests are no longer than this, unless they are meant to be too long.
pub const LARGEST: usize = 100_000;

/// Who somebody is.
#[derive(Clone)]
pub struct Person {
    pub id: NodeId,
    pub key: Arc<SecretKey>,
}

pub fn person(id: u32) -> Person {
    Person {
        id: NodeId(id),
        key: Arc::new(SecretKey::generate().unwrap()),
    }
}

impl Person {
    /// As others know them, at `address`.
    pub fn at(&self, address: SocketAddr) -> Neighbour {
        Neighbour {
            address: Some(address.to_string()),
            ..self.dialling()
        }
    }

    /// As others know them who are dialled by them.
    pub fn dialling(&self) -> Neighbour {
        Neighbour {
            id: self.id,
            key: self.key.public(),
            address: None,
        }
    }

    pub fn settings(&self, neighbours: Vec<Neighbour>) -> Settings {
        Settings {
            me: self.id,
            key: self.key.clone(),
            listen: Some(([127, 0, 0, 1], 0).into()),
            neighbours,
            largest_frame: LARGEST,
        }
    }

    pub fn start(&self, neighbours: Vec<Neighbour>) -> Party {
        Party::start(self.settings(neighbours)).unwrap()
    }
}

/// A port that was free a moment ago. Not one that the operating system gives to whoever dials: by the time that a
/// party listens on it, it might be taken.
pub fn free() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // Tests that run at the same time in other processes look elsewhere.
        let offset = std::process::id() % 300 * 64 + NEXT.fetch_add(1, Ordering::Relaxed);
        let address = SocketAddr::from(([127, 0, 0, 1], 10_000 + (offset % 20_000) as u16));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

pub struct Party {
    pub network: Network,
    pub events: Receiver<Event>,
    /// What happened, in short.
    pub log: Vec<String>,
}

impl Party {
    pub fn start(settings: Settings) -> Result<Self, TransportError> {
        let (sender, events) = channel();
        let network = Network::start(settings, sender)?;
        Ok(Self {
            network,
            events,
            log: Vec::new(),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.network.local_address().unwrap()
    }

    /// Waits for what `wanted` picks. Everything else is read, noted and forgotten.
    pub fn until<T>(&mut self, wanted: impl Fn(Event) -> Option<T>) -> T {
        loop {
            let Ok(event) = self.events.recv_timeout(PATIENCE) else {
                panic!("it did not happen; what did: {:#?}", self.log);
            };
            self.log.push(short(&event));
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    }

    pub fn up(&mut self, peer: &Person) -> (Serial, Box<dyn Link>) {
        self.until(|event| match event {
            Event::Up {
                peer: who,
                serial,
                link,
            } if who == peer.id => Some((serial, link)),
            _ => None,
        })
    }

    pub fn down(&mut self, peer: &Person) -> String {
        self.until(|event| match event {
            Event::Down {
                peer: who, reason, ..
            } if who == peer.id => Some(reason),
            _ => None,
        })
    }

    /// A frame, and that it has not been read yet.
    pub fn unread(&mut self, peer: &Person) -> (Vec<u8>, Credit) {
        self.until(|event| match event {
            Event::Frame {
                peer: who,
                bytes,
                credit,
                ..
            } if who == peer.id => Some((bytes, credit)),
            _ => None,
        })
    }

    pub fn hears(&mut self, peer: &Person, bytes: &[u8]) {
        assert_eq!(self.unread(peer).0, bytes);
    }

    pub fn refused(&mut self) -> String {
        self.until(|event| match event {
            Event::Refused { reason, .. } => Some(reason),
            _ => None,
        })
    }

    pub fn unreachable(&mut self) -> String {
        self.until(|event| match event {
            Event::Unreachable { reason, .. } => Some(reason),
            _ => None,
        })
    }

    /// How often something is in the log, and in what has happened since.
    pub fn times(&mut self, what: &str) -> usize {
        let new = self.events.try_iter().map(|event| short(&event));
        self.log.extend(new);
        self.log
            .iter()
            .filter(|line| line.starts_with(what))
            .count()
    }
}

fn short(event: &Event) -> String {
    match event {
        Event::Up { peer, serial, .. } => format!("up: {peer}, {}", serial.0),
        Event::Down {
            peer,
            serial,
            reason,
        } => format!("down: {peer}, {}: {reason}", serial.0),
        Event::Frame { peer, bytes, .. } => format!("frame: {peer}: {} bytes", bytes.len()),
        Event::Unreachable { peer, reason } => format!("unreachable: {peer}: {reason}"),
        Event::Refused { address, reason } => format!("refused: {address}: {reason}"),
        Event::Stop => "stop".into(),
    }
}
