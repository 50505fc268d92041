//! A party that is only a transport.

use std::iter;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use radmm::graph::NodeId;
use radmm_node::key::SecretKey;
use radmm_node::machine::{Credit, Link, LinkEvent, Serial};
use radmm_node::transport::{
    EventReceiver, PeerEndpoint, Transport, TransportConfig, TransportError, event_queue,
};

/// The timeout of a test.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The longest frame in bytes.
pub const MAX_FRAME: usize = 100_000;

/// The number and key of a party.
#[derive(Clone)]
pub struct KeyHolder {
    pub id: NodeId,
    pub key: Arc<SecretKey>,
}

pub fn key_holder(id: u32) -> KeyHolder {
    KeyHolder {
        id: NodeId(id),
        key: Arc::new(SecretKey::generate().unwrap()),
    }
}

impl KeyHolder {
    /// Returns the endpoint of this party at `address`.
    pub fn at(&self, address: SocketAddr) -> PeerEndpoint {
        PeerEndpoint {
            address: Some(address.to_string()),
            ..self.dialling()
        }
    }

    /// Returns the endpoint of this party without an address: it dials.
    pub fn dialling(&self) -> PeerEndpoint {
        PeerEndpoint {
            id: self.id,
            key: self.key.public(),
            address: None,
        }
    }

    pub fn config(&self, neighbours: Vec<PeerEndpoint>) -> TransportConfig {
        TransportConfig {
            me: self.id,
            key: self.key.clone(),
            listen: Some(([127, 0, 0, 1], 0).into()),
            neighbours,
            parties: Vec::new(),
            largest_frame: MAX_FRAME,
        }
    }

    pub fn start(&self, neighbours: Vec<PeerEndpoint>) -> TestParty {
        TestParty::start(self.config(neighbours)).unwrap()
    }
}

/// Returns an address whose port was free a moment ago. It is outside the range from which the operating system takes the ports
/// of outgoing connections, which might take it before a party listens on it.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // Tests that run at the same time in other processes use other ports.
        let offset = std::process::id() % 300 * 64 + NEXT.fetch_add(1, Ordering::Relaxed);
        let address = SocketAddr::from(([127, 0, 0, 1], 10_000 + (offset % 20_000) as u16));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// A transport with a log of its events.
pub struct TestParty {
    pub transport: Transport,
    pub events: EventReceiver,
    /// All events so far, in short.
    pub log: Vec<String>,
}

impl TestParty {
    pub fn start(config: TransportConfig) -> Result<Self, TransportError> {
        let (sender, events) = event_queue();
        let transport = Transport::start(config, sender)?;
        Ok(Self {
            transport,
            events,
            log: Vec::new(),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.transport.local_address().unwrap()
    }

    /// Waits for an event that `wanted` picks. All others are logged and dropped.
    pub fn until<T>(&mut self, wanted: impl Fn(LinkEvent) -> Option<T>) -> T {
        loop {
            let Some(event) = self.transport.next_event(&mut self.events, TIMEOUT) else {
                panic!("no such event; events so far: {:#?}", self.log);
            };
            self.log.push(short(&event));
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    }

    pub fn up(&mut self, peer: &KeyHolder) -> (Serial, Box<dyn Link>) {
        self.until(|event| match event {
            LinkEvent::Up {
                peer: who,
                serial,
                link,
            } if who == peer.id => Some((serial, link)),
            _ => None,
        })
    }

    pub fn down(&mut self, peer: &KeyHolder) -> String {
        self.until(|event| match event {
            LinkEvent::Down {
                peer: who, reason, ..
            } if who == peer.id => Some(reason),
            _ => None,
        })
    }

    /// Waits for a frame, and returns it with its credit.
    pub fn unread(&mut self, peer: &KeyHolder) -> (Vec<u8>, Credit) {
        self.until(|event| match event {
            LinkEvent::Frame {
                peer: who,
                bytes,
                credit,
                ..
            } if who == peer.id => Some((bytes, credit)),
            _ => None,
        })
    }

    pub fn receives(&mut self, peer: &KeyHolder, bytes: &[u8]) {
        assert_eq!(self.unread(peer).0, bytes);
    }

    pub fn refusal(&mut self) -> String {
        self.until(|event| match event {
            LinkEvent::Refused { reason, .. } => Some(reason),
            _ => None,
        })
    }

    pub fn unreachable(&mut self) -> String {
        self.until(|event| match event {
            LinkEvent::Unreachable { reason, .. } => Some(reason),
            _ => None,
        })
    }

    /// Counts the events of a kind so far.
    pub fn count(&mut self, what: &str) -> usize {
        let new = iter::from_fn(|| self.events.try_recv().ok());
        self.log.extend(new.map(|event| short(&event)));
        self.log
            .iter()
            .filter(|line| line.starts_with(what))
            .count()
    }
}

fn short(event: &LinkEvent) -> String {
    match event {
        LinkEvent::Up { peer, serial, .. } => format!("up: {peer}, {}", serial.0),
        LinkEvent::Down {
            peer,
            serial,
            reason,
        } => format!("down: {peer}, {}: {reason}", serial.0),
        LinkEvent::Frame { peer, bytes, .. } => format!("frame: {peer}: {} bytes", bytes.len()),
        LinkEvent::Unreachable { peer, reason } => format!("unreachable: {peer}: {reason}"),
        LinkEvent::Refused {
            address, reason, ..
        } => format!("refused: {address}: {reason}"),
        LinkEvent::Stop => "stop".into(),
    }
}
