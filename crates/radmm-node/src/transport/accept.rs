//! Accepts the connections of neighbours, and rejects all others.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::Stream;
use tonic::body::Body;
use tonic::codec::Streaming;
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tower_service::Service;

use super::codec::{FrameQueue, PATH, RawFrameCodec};
use super::connection::{Connection, ConnectionHandle};
use super::edge::Edge;
use super::outbox::Outbox;
use super::refusals::RefusalLog;
use super::session::Session;
use super::tls::{PROTOCOL, key_in};
use super::{
    CALL_TIMEOUT, HANDSHAKE_TIMEOUT, MAX_HEADER_BYTES, PING_INTERVAL, PING_TIMEOUT, lock, reason,
    window,
};

/// The number of connections whose TLS handshake may be pending.
const MAX_PENDING: usize = 64;

/// How long a neighbour's call waits for this side's own call to the same neighbour, which may fail.
const OWN_DIAL_GRACE: Duration = Duration::from_secs(1);

/// How long a rejected client may take to read why.
const REJECTION_DRAIN: Duration = Duration::from_secs(1);

/// How long a call waits until the party has let go of earlier links; shorter than the caller's patience.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(3);

/// The neighbour that dialled, known from its key.
#[derive(Clone)]
pub(super) struct Caller {
    edge: Arc<Edge>,
    handle: Arc<ConnectionHandle>,
    in_session: Arc<AtomicBool>,
}

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
        let window = window(self.largest);
        let service = LinkService {
            largest: self.largest,
            busy: self.busy.clone(),
        };
        let (connections, incoming) = mpsc::channel(1);
        let serving = Server::builder()
            .initial_stream_window_size(window)
            .initial_connection_window_size(window)
            .max_concurrent_streams(2)
            .http2_keepalive_interval(Some(PING_INTERVAL))
            .http2_keepalive_timeout(Some(PING_TIMEOUT))
            .http2_max_header_list_size(MAX_HEADER_BYTES)
            .serve_with_incoming(service, Incoming(incoming));
        tokio::join!(Arc::new(self).accept(listener, connections), serving)
            .1
            .ok();
    }

    async fn accept(self: Arc<Self>, listener: TcpListener, connections: mpsc::Sender<Connection>) {
        let pending = Arc::<Mutex<PendingHandshakes<AbortHandle>>>::default();
        loop {
            let Ok((stream, address)) = listener.accept().await else {
                // Most likely there are no file descriptors left; there may be some later.
                sleep(Duration::from_millis(100)).await;
                continue;
            };
            let mut queue = lock(&pending);
            let ticket = queue.ticket();
            let (acceptor, connections, pending) =
                (self.clone(), connections.clone(), pending.clone());
            let task = tokio::spawn(async move {
                let connection = acceptor.handshake(stream, address).await;
                lock(&pending).leave(ticket);
                if let Some(connection) = connection {
                    // It fails when the server has stopped.
                    let _ = connections.send(connection).await;
                }
            });
            if let Some((address, oldest)) = queue.enter(ticket, address, task.abort_handle()) {
                oldest.abort();
                drop(queue);
                let reason =
                    format!("more than {MAX_PENDING} connections are still in the TLS handshake");
                self.refusals.report(address.to_string(), &reason);
            }
        }
    }

    async fn handshake(&self, stream: TcpStream, address: SocketAddr) -> Option<Connection> {
        // Small frames should not wait for more of them. Without this option the link works, but is slow.
        let _ = stream.set_nodelay(true);
        let handshake = TlsAcceptor::from(self.tls.clone())
            .accept(stream)
            .into_fallible();
        let (reason, stream) = match timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => match self.identify(stream) {
                Ok(connection) => return Some(connection),
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

    fn identify(&self, stream: TlsStream<TcpStream>) -> io::Result<Connection> {
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
        let handle = ConnectionHandle::new();
        edge.add_connection(handle.clone());
        let caller = Caller {
            edge: edge.clone(),
            handle: handle.clone(),
            in_session: Arc::default(),
        };
        Ok(Connection::accepted(stream.into(), handle, caller))
    }
}

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

/// The stream of neighbours' connections.
struct Incoming(mpsc::Receiver<Connection>);

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0
            .poll_recv(context)
            .map(|connection| connection.map(Ok))
    }
}

/// The HTTP service that a neighbour can call.
#[derive(Clone)]
struct LinkService {
    largest: usize,
    busy: Arc<watch::Sender<usize>>,
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Service<http::Request<Body>> for LinkService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Boxed<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let caller = request
            .extensions()
            .get::<Option<Caller>>()
            .cloned()
            .flatten();
        let call = match caller {
            Some(caller) if request.uri().path() == PATH => Call {
                caller,
                service: self.clone(),
            },
            _ => {
                let response = Status::unimplemented("").into_http();
                return Box::pin(std::future::ready(Ok(response)));
            }
        };
        let mut grpc =
            tonic::server::Grpc::new(RawFrameCodec).max_decoding_message_size(self.largest);
        Box::pin(async move { Ok(grpc.streaming(call, request).await) })
    }
}

/// One call of a neighbour.
struct Call {
    caller: Caller,
    service: LinkService,
}

impl Service<Request<Streaming<Vec<u8>>>> for Call {
    type Response = Response<FrameQueue>;
    type Error = Status;
    type Future = Boxed<Result<Response<FrameQueue>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Streaming<Vec<u8>>>) -> Self::Future {
        let (caller, service) = (self.caller.clone(), self.service.clone());
        Box::pin(async move { service.open(caller, request.into_inner()).await })
    }
}

impl LinkService {
    async fn open(
        self,
        caller: Caller,
        incoming: Streaming<Vec<u8>>,
    ) -> Result<Response<FrameQueue>, Status> {
        let Caller {
            edge,
            handle,
            in_session,
        } = caller;
        if in_session.swap(true, Ordering::SeqCst) {
            return Err(Status::already_exists(""));
        }
        if edge.me() < edge.peer() {
            // If both have dialled at once, this side's link stays.
            let _ = timeout(OWN_DIAL_GRACE, edge.dialled()).await;
        }
        let permit = timeout(ACCEPT_TIMEOUT, edge.acquire_link())
            .await
            .ok()
            .flatten();
        let permit = permit.ok_or_else(|| Status::resource_exhausted(""))?;
        let (outbox, queue, ended) = Outbox::new();
        let session = Session {
            dialler: edge.peer(),
            outbox,
            ended,
            incoming,
            handle,
            channel: None,
            largest: self.largest,
        };
        match session.begin(edge, permit, &self.busy) {
            true => Ok(Response::new(queue)),
            false => Err(Status::already_exists("")),
        }
    }
}

// The answer must arrive before the caller gives up.
const _: () = assert!(ACCEPT_TIMEOUT.as_secs() + OWN_DIAL_GRACE.as_secs() < CALL_TIMEOUT.as_secs());

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
