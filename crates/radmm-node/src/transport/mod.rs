//! Links over the network: HTTP/2 over TLS 1.3, between parties that know each other's keys.
//!
//! Either side of an edge may dial the other; one link stays. Whoever does not hold a neighbour's key gets no further than
//! the handshake of TLS. What a neighbour can make this side keep in memory is bounded: a few frames in each direction, and
//! a few connections.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use radmm::public::graph::NodeId;
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::key::SecretKey;
use crate::machine::link::{Event, Serials};

mod accept;
mod backoff;
mod codec;
mod connection;
mod dial;
mod edge;
mod outbox;
mod reason;
mod refusals;
mod session;
mod tls;

use accept::Porter;
use dial::Dialler;
use edge::Edge;
use refusals::Refusals;
use tls::Credentials;

/// So long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// So long a neighbour may take to answer a call.
const ANSWER: Duration = Duration::from_secs(5);

/// Both sides ask that often whether the other is alive.
const PING: Duration = Duration::from_secs(5);

/// Without an answer for so long, it is not.
const PONG: Duration = Duration::from_secs(10);

/// So long a link that ends waits for what was queued to leave.
const LINGER: Duration = Duration::from_secs(2);

/// So many frames may wait to leave.
const QUEUE: usize = 8;

/// So many bytes of headers are taken.
const HEADERS: u32 = 4096;

/// So many bytes may be on their way to this side: two frames, so that one can leave while another is read, within reason.
fn window(largest: usize) -> u32 {
    const LEAST: u32 = 1 << 16;
    const MOST: u32 = 1 << 22;
    let frames = u32::try_from(largest.saturating_mul(2)).unwrap_or(MOST);
    frames.clamp(LEAST, MOST)
}

/// What is whose, on the network.
pub struct Settings {
    /// This party.
    pub me: NodeId,
    /// Its key.
    pub key: Arc<SecretKey>,
    /// Where it is to be reached; with none, it only dials.
    pub listen: Option<SocketAddr>,
    /// The others of its edges.
    pub neighbours: Vec<Neighbour>,
    /// How many bytes a frame may have. Longer ones end the link that they came on.
    pub largest_frame: usize,
}

/// The other party of an edge.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Who.
    pub id: NodeId,
    /// Its public key.
    pub key: [u8; 32],
    /// Where to reach it, as `host:port`; with none, it dials.
    pub address: Option<String>,
}

/// Why there is no network.
#[derive(Debug, Error)]
pub enum TransportError {
    /// The address cannot be had.
    #[error("listen = \"{address}\" in the site file: {}; choose another address or port", listening(.error))]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the operating system says.
        error: io::Error,
    },
    /// No threads, or no sockets.
    #[error("cannot start the network: {0}")]
    Threads(io::Error),
    /// The key cannot be used.
    #[error("cannot start TLS with this key: {0}")]
    Tls(String),
    /// A neighbour is this party itself.
    #[error("{0} is this party itself, or has its key: no party is its own neighbour")]
    Myself(NodeId),
    /// Two neighbours are one.
    #[error("{0} and {1} are the same neighbour, or have the same key")]
    Twice(NodeId, NodeId),
    /// No side can dial.
    #[error("{0} has no address, and this party does not listen: one of them must be reachable")]
    Apart(NodeId),
}

fn listening(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there".into(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".into(),
        io::ErrorKind::PermissionDenied => {
            "this user may not; ports above 1023 are for everyone".into()
        }
        _ => error.to_string(),
    }
}

/// All links of one party, on threads of their own.
pub struct Network {
    /// Nothing only after the shutdown.
    runtime: Option<Runtime>,
    local: Option<SocketAddr>,
    edges: Vec<Arc<Edge>>,
    tasks: Vec<AbortHandle>,
    busy: Arc<watch::Sender<usize>>,
}

impl Network {
    /// Listens and dials from now on, and tells `events` what happens.
    pub fn start(settings: Settings, events: Sender<Event>) -> Result<Self, TransportError> {
        check(&settings)?;
        let credentials = Credentials::new(&settings.key).map_err(TransportError::Tls)?;
        let keys = settings
            .neighbours
            .iter()
            .map(|neighbour| neighbour.key)
            .collect();
        let server = credentials.server(keys).map_err(TransportError::Tls)?;
        let listener = settings.listen.map(listen).transpose()?;
        let local = listener.as_ref().map(TcpListener::local_addr).transpose();
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("radmm-network")
            .enable_all()
            .build()
            .map_err(TransportError::Threads)?;
        let serials = Serials::default();
        let mut network = Self {
            local: local.map_err(TransportError::Threads)?,
            edges: Vec::new(),
            tasks: Vec::new(),
            busy: Arc::default(),
            runtime: None,
        };
        let entered = runtime.enter();
        let mut edges = Vec::new();
        for neighbour in settings.neighbours {
            let edge = Edge::new(settings.me, neighbour.id, events.clone(), serials.clone());
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
                    largest: settings.largest_frame,
                    busy: network.busy.clone(),
                };
                network
                    .tasks
                    .push(tokio::spawn(dialler.run()).abort_handle());
            }
        }
        if let Some(listener) = listener {
            let listener =
                tokio::net::TcpListener::from_std(listener).map_err(TransportError::Threads)?;
            let porter = Porter {
                tls: server,
                edges,
                refusals: Refusals::new(events),
                largest: settings.largest_frame,
                busy: network.busy.clone(),
            };
            network
                .tasks
                .push(tokio::spawn(porter.run(listener)).abort_handle());
        }
        drop(entered);
        network.runtime = Some(runtime);
        Ok(network)
    }

    /// Where it listens.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.local
    }

    /// Lets what was queued leave, for a while, and ends everything. Not to be called on the threads of an asynchronous program.
    pub fn shutdown(mut self) {
        for task in &self.tasks {
            task.abort();
        }
        for edge in &self.edges {
            edge.finish();
        }
        if let Some(runtime) = self.runtime.take() {
            let mut busy = self.busy.subscribe();
            runtime.block_on(async {
                let quiet = busy.wait_for(|links| *links == 0);
                let _ = timeout(LINGER, quiet).await.map(drop);
            });
            // Ports are free again afterwards, unless a thread is busy looking up a name.
            runtime.shutdown_timeout(LINGER);
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Waiting for threads that look up names could take long.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn check(settings: &Settings) -> Result<(), TransportError> {
    let mine = settings.key.public();
    for (index, one) in settings.neighbours.iter().enumerate() {
        if one.id == settings.me || one.key == mine {
            return Err(TransportError::Myself(one.id));
        }
        if one.address.is_none() && settings.listen.is_none() {
            return Err(TransportError::Apart(one.id));
        }
        let before = &settings.neighbours[..index];
        if let Some(other) = before
            .iter()
            .find(|other| other.id == one.id || other.key == one.key)
        {
            return Err(TransportError::Twice(other.id, one.id));
        }
    }
    Ok(())
}

fn listen(address: SocketAddr) -> Result<TcpListener, TransportError> {
    TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| TransportError::Listen { address, error })
}

/// What a mutex guards. None of them is held over anything that could leave half a change behind.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_two_frames_within_reason() {
        assert_eq!(window(1000), 1 << 16);
        assert_eq!(window(80_000), 160_000);
        assert_eq!(window(usize::MAX), 1 << 22);
    }
}
