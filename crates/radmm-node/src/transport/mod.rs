//! Links over the network: frames over TLS 1.3, between parties that know each other's keys.
//!
//! Either side of an edge may dial the other; one link stays. A stranger that holds no neighbour's key gets no further than the TLS
//! handshake. The memory that a neighbour can make this side use is bounded: a few frames in each direction, and a few
//! connections with their buffers in the operating system.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use radmm::graph::NodeId;
use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, yield_now};
use tokio::time::timeout;

use crate::key::SecretKey;
use crate::machine::{LinkEvent, Serials};

mod accept;
mod admission;
mod backoff;
mod connection;
mod dial;
mod edge;
mod framing;
mod outbox;
mod reason;
mod refusals;
mod runtime;
mod session;
mod tls;

use accept::Acceptor;
use dial::Dialler;
use edge::Edge;
use refusals::RefusalLog;
use runtime::CallerRuntime;
use tls::Credentials;

/// The longest that a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest that a neighbour may take to say whether it takes a connection as the link.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a side sends nothing before it sends a ping.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// A connection on which nothing arrives for this long is dead: both sides ping, so that even an idle one is never silent.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a link that is closed waits for queued frames to leave.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The number of connections that the operating system holds until they are accepted, as many as may arrive while no thread is free.
const MAX_BACKLOG: u32 = 1024;

/// The number of frames of a link that may wait to leave.
const MAX_QUEUED_FRAMES: usize = 8;

/// The configuration of a transport.
pub struct TransportConfig {
    /// This party.
    pub me: NodeId,
    /// This party's key.
    pub key: Arc<SecretKey>,
    /// The address to listen on; without one, this party only dials.
    pub listen: Option<SocketAddr>,
    /// The neighbours.
    pub neighbours: Vec<PeerEndpoint>,
    /// The names and keys of the study's parties, to name one that shows the wrong key.
    pub parties: Vec<(String, [u8; 32])>,
    /// The longest frame in bytes. A longer one ends the link that it came on.
    pub largest_frame: usize,
}

/// A neighbour, as the transport knows it.
#[derive(Clone, Debug)]
pub struct PeerEndpoint {
    /// The neighbour's number.
    pub id: NodeId,
    /// The neighbour's public key.
    pub key: [u8; 32],
    /// The address to dial, as `host:port`; without one, the neighbour dials.
    pub address: Option<String>,
}

/// A reason for which a transport cannot start.
#[derive(Debug, Error)]
pub enum TransportError {
    /// The address cannot be bound.
    #[error("listen = \"{address}\" in the site file: {}; choose another address or port", listen_error(.error))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Threads or sockets cannot be created.
    #[error("cannot start the network: {0}")]
    Threads(io::Error),
    /// The key cannot be used.
    #[error("cannot start TLS with this key: {0}")]
    Tls(String),
    /// A neighbour is this party itself.
    #[error("{0} is this party itself, or has its key: no party is its own neighbour")]
    SelfNeighbour(NodeId),
    /// Two neighbours have the same number or key.
    #[error("{0} and {1} are the same neighbour, or have the same key")]
    DuplicateNeighbour(NodeId, NodeId),
    /// Neither side can dial.
    #[error("{0} has no address, and this party does not listen: one of them must be reachable")]
    NoAddress(NodeId),
}

fn listen_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there".into(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".into(),
        io::ErrorKind::PermissionDenied => "permission denied; use a port above 1023".into(),
        _ => error.to_string(),
    }
}

/// The sending half of a queue of events.
pub type EventSender = mpsc::UnboundedSender<LinkEvent>;

/// The receiving half of a queue of events, for [`Transport::next_event`].
pub type EventReceiver = mpsc::UnboundedReceiver<LinkEvent>;

/// Returns an empty queue of events. Its length is bounded by the credits of frames, and by the rate at which links change.
pub fn event_queue() -> (EventSender, EventReceiver) {
    mpsc::unbounded_channel()
}

/// The transport of one party: all its links. They run on the thread that waits in [`Transport::next_event`], or on a thread of their
/// own while no thread waits.
pub struct Transport {
    /// `None` only after the shutdown.
    runtime: Option<CallerRuntime>,
    local_address: Option<SocketAddr>,
    edges: Vec<Arc<Edge>>,
    tasks: Vec<AbortHandle>,
    busy: Arc<watch::Sender<usize>>,
}

impl Transport {
    /// Starts to listen and dial, and reports what happens to `events`.
    pub fn start(config: TransportConfig, events: EventSender) -> Result<Self, TransportError> {
        check(&config)?;
        let credentials =
            Credentials::new(&config.key, config.parties.into()).map_err(TransportError::Tls)?;
        let keys = config
            .neighbours
            .iter()
            .map(|neighbour| neighbour.key)
            .collect();
        let server = credentials.server(keys).map_err(TransportError::Tls)?;
        let runtime = CallerRuntime::new().map_err(TransportError::Threads)?;
        let entered = runtime.enter();
        let listener = config.listen.map(listen).transpose()?;
        let local = listener.as_ref().map(TcpListener::local_addr).transpose();
        let serials = Serials::default();
        let mut network = Self {
            local_address: local.map_err(TransportError::Threads)?,
            edges: Vec::new(),
            tasks: Vec::new(),
            busy: Arc::default(),
            runtime: None,
        };
        let mut edges = Vec::new();
        for neighbour in config.neighbours {
            let edge = Edge::new(config.me, neighbour.id, events.clone(), serials.clone());
            let edge = Arc::new(edge);
            edges.push((neighbour.key, edge.clone()));
            network.edges.push(edge.clone());
            if let Some(address) = neighbour.address {
                let dialler = Dialler {
                    edge,
                    address,
                    tls: credentials
                        .client(neighbour.key)
                        .map_err(TransportError::Tls)?,
                    largest: config.largest_frame,
                    busy: network.busy.clone(),
                };
                network
                    .tasks
                    .push(tokio::spawn(dialler.run()).abort_handle());
            }
        }
        if let Some(listener) = listener {
            let acceptor = Acceptor::new(
                server,
                edges,
                RefusalLog::new(events),
                config.largest_frame,
                network.busy.clone(),
            );
            network
                .tasks
                .push(tokio::spawn(acceptor.run(listener)).abort_handle());
        }
        drop(entered);
        network.runtime = Some(runtime);
        Ok(network)
    }

    /// Returns the address on which the transport listens.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.local_address
    }

    /// Waits for the next event; returns `None` if there is none within `patience`. Must not be called from an async context.
    pub fn next_event(&self, events: &mut EventReceiver, patience: Duration) -> Option<LinkEvent> {
        let next = async { timeout(patience, events.recv()).await.ok().flatten() };
        self.runtime.as_ref()?.run_until(next)
    }

    /// Lets queued frames leave, as far as that needs no waiting. Must not be called from an async context.
    pub fn flush(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.run_until(yield_now());
        }
    }

    /// Lets queued frames leave, for a while, and closes everything. Must not be called from an async context.
    pub fn shutdown(mut self) {
        for task in &self.tasks {
            task.abort();
        }
        for edge in &self.edges {
            edge.finish();
        }
        if let Some(runtime) = self.runtime.take() {
            let mut busy = self.busy.subscribe();
            runtime.run_until(async {
                let quiet = busy.wait_for(|links| *links == 0);
                let _ = timeout(DRAIN_TIMEOUT, quiet).await.map(drop);
            });
            // Ports are free again afterwards, unless a thread is still looking up a name.
            runtime.shutdown(DRAIN_TIMEOUT);
        }
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        // Waiting for threads that look up names could take long.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown(Duration::ZERO);
        }
    }
}

fn check(config: &TransportConfig) -> Result<(), TransportError> {
    let mine = config.key.public();
    for (index, one) in config.neighbours.iter().enumerate() {
        if one.id == config.me || one.key == mine {
            return Err(TransportError::SelfNeighbour(one.id));
        }
        if one.address.is_none() && config.listen.is_none() {
            return Err(TransportError::NoAddress(one.id));
        }
        let before = &config.neighbours[..index];
        if let Some(other) = before
            .iter()
            .find(|other| other.id == one.id || other.key == one.key)
        {
            return Err(TransportError::DuplicateNeighbour(other.id, one.id));
        }
    }
    Ok(())
}

fn listen(address: SocketAddr) -> Result<TcpListener, TransportError> {
    let listen = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // The port of a party that was killed is free for its next start.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(MAX_BACKLOG)
    };
    listen().map_err(|error| TransportError::Listen { address, error })
}

/// Locks a mutex. A poisoned one is used all the same: none is held over anything that could leave half a change behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
