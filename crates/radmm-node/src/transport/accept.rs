//! Accepts the connections of neighbours, and rejects all others.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::connection::ConnectionHandle;
use super::edge::Edge;
use super::framing::write_frame;
use super::refusals::RefusalLog;
use super::session::{Answer, Session};
use super::tls::{PROTOCOL, key_in};
use super::{ANSWER_TIMEOUT, HANDSHAKE_TIMEOUT, lock, reason};

/// The number of connections whose TLS handshake may be pending.
const MAX_PENDING: usize = 64;

/// How long a neighbour's connection waits for this side's own dialling of the same neighbour, which may fail.
const OWN_DIAL_GRACE: Duration = Duration::from_secs(1);

/// How long a rejected client may take to read why.
const REJECTION_DRAIN: Duration = Duration::from_secs(1);

/// How long a connection waits until the party has let go of earlier links; shorter than the dialler's patience.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(3);

/// The listening side of a transport.
pub(super) struct Acceptor {
    pub(super) tls: Arc<ServerConfig>,
    /// The edges, by the neighbour's key.
    pub(super) edges: Vec<([u8; 32], Arc<Edge>)>,
    pub(super) refusals: RefusalLog,
    pub(super) largest: usize,
    pub(super) busy: Arc<watch::Sender<usize>>,
}

impl Acceptor {
    /// Accepts connections until it is aborted.
    pub(super) async fn run(self, listener: TcpListener) {
        let acceptor = Arc::new(self);
        let pending = Arc::<Mutex<PendingHandshakes<AbortHandle>>>::default();
        loop {
            let Ok((stream, address)) = listener.accept().await else {
                // Most likely there are no file descriptors left; there may be some later.
                sleep(Duration::from_millis(100)).await;
                continue;
            };
            let mut queue = lock(&pending);
            let ticket = queue.ticket();
            let (task_acceptor, task_pending) = (acceptor.clone(), pending.clone());
            let task = tokio::spawn(async move {
                let neighbour = task_acceptor.handshake(stream, address).await;
                lock(&task_pending).leave(ticket);
                if let Some((edge, stream)) = neighbour {
                    task_acceptor.offer(edge, stream).await;
                }
            });
            if let Some((address, oldest)) = queue.enter(ticket, address, task.abort_handle()) {
                oldest.abort();
                drop(queue);
                let reason =
                    format!("more than {MAX_PENDING} connections are still in the TLS handshake");
                acceptor.refusals.report(address.to_string(), &reason);
            }
        }
    }

    /// Lets a client prove which neighbour it is; returns the neighbour's edge.
    async fn handshake(
        &self,
        stream: TcpStream,
        address: SocketAddr,
    ) -> Option<(Arc<Edge>, TlsStream<TcpStream>)> {
        // Small frames should not wait for more of them. Without this option the link works, but is slow.
        let _ = stream.set_nodelay(true);
        let handshake = TlsAcceptor::from(self.tls.clone())
            .accept(stream)
            .into_fallible();
        let (reason, stream) = match timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => match self.identify(&stream) {
                Ok(edge) => return Some((edge, stream)),
                Err(error) => (reason::of_connection(&error), None),
            },
            Ok(Err((error, stream))) => (reason::of_connection(&error), Some(stream)),
            Err(_) => {
                let words = format!(
                    "it did not finish the TLS handshake within {} s",
                    HANDSHAKE_TIMEOUT.as_secs()
                );
                (words, None)
            }
        };
        self.refusals.report(address.to_string(), &reason);
        if let Some(stream) = stream {
            let _ = timeout(REJECTION_DRAIN, drain(stream)).await;
        }
        None
    }

    fn identify(&self, stream: &TlsStream<TcpStream>) -> io::Result<Arc<Edge>> {
        let session = stream.get_ref().1;
        if session.alpn_protocol() != Some(PROTOCOL) {
            return Err(io::Error::other(rustls::Error::NoApplicationProtocol));
        }
        // The handshake accepts neighbours' keys only.
        let key = match session.peer_certificates() {
            Some([certificate, ..]) => key_in(certificate).map_err(io::Error::other)?,
            _ => return Err(io::Error::other(rustls::Error::NoCertificatesPresented)),
        };
        let edge = self.edges.iter().find(|(neighbour, _)| *neighbour == key);
        let (_, edge) = edge.ok_or(io::ErrorKind::PermissionDenied)?;
        Ok(edge.clone())
    }

    /// Offers a neighbour's connection to the party as the edge's link, and answers.
    async fn offer(&self, edge: Arc<Edge>, stream: TlsStream<TcpStream>) {
        let handle = Arc::<ConnectionHandle>::default();
        edge.add_connection(handle.clone());
        let permit = tokio::select! {
            biased;
            () = handle.cut_requested() => return,
            permit = turn(&edge) => permit,
        };
        let session = Session {
            dialler: edge.peer(),
            edge,
            stream,
            handle,
            largest: self.largest,
        };
        let (mut stream, answer) = match permit {
            None => (session.stream, Answer::NotReady),
            Some(permit) => match session.begin(permit, &self.busy) {
                Ok(()) => return,
                Err(stream) => (stream, Answer::HasLink),
            },
        };
        let refuse = async {
            write_frame(&mut stream, &answer.to_frame()).await?;
            stream.shutdown().await
        };
        let _ = timeout(REJECTION_DRAIN, refuse).await;
    }
}

/// Waits until a neighbour's connection may become the edge's link.
async fn turn(edge: &Edge) -> Option<OwnedSemaphorePermit> {
    if edge.me() < edge.peer() {
        // If both have dialled at once, this side's link stays.
        let _ = timeout(OWN_DIAL_GRACE, edge.dialled()).await;
    }
    let permit = timeout(ACCEPT_TIMEOUT, edge.acquire_link()).await;
    permit.ok().flatten()
}

// The answer must arrive before the dialler gives up.
const _: () =
    assert!(ACCEPT_TIMEOUT.as_secs() + OWN_DIAL_GRACE.as_secs() < ANSWER_TIMEOUT.as_secs());

/// Lets a rejected client read the TLS alert, which is lost if the connection is closed while something on it is unread.
async fn drain(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut unread = [0; 1024];
    for _ in 0..64 {
        if stream.read(&mut unread).await? == 0 {
            break;
        }
    }
    Ok(())
}

/// The connections whose handshake is pending, oldest first.
struct PendingHandshakes<T> {
    queue: VecDeque<(u64, SocketAddr, T)>,
    tickets: u64,
}

impl<T> Default for PendingHandshakes<T> {
    fn default() -> Self {
        let queue = VecDeque::new();
        Self { queue, tickets: 0 }
    }
}

impl<T> PendingHandshakes<T> {
    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Adds a connection. If there are too many, returns the oldest one, which must go: a neighbour's handshake takes milliseconds.
    fn enter(&mut self, ticket: u64, address: SocketAddr, task: T) -> Option<(SocketAddr, T)> {
        self.queue.push_back((ticket, address, task));
        if self.queue.len() <= MAX_PENDING {
            return None;
        }
        self.queue
            .pop_front()
            .map(|(_, address, task)| (address, task))
    }

    fn leave(&mut self, ticket: u64) {
        self.queue.retain(|(other, _, _)| *other != ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_pending_handshake_is_dropped() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut pending = PendingHandshakes::default();
        for task in 0..MAX_PENDING {
            let ticket = pending.ticket();
            assert!(pending.enter(ticket, address, task).is_none());
        }
        let ticket = pending.ticket();
        assert_eq!(pending.enter(ticket, address, 99), Some((address, 0)));
        pending.leave(ticket);
        let ticket = pending.ticket();
        assert_eq!(pending.enter(ticket, address, 100), None);
        assert_eq!(pending.queue.len(), MAX_PENDING);
    }
}
