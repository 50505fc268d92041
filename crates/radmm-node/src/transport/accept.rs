//! Takes the connections of neighbours, and turns everyone else away.

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

use super::codec::{Frames, PATH, Queue};
use super::connection::{Grip, Line};
use super::edge::Edge;
use super::outbox::Outbox;
use super::refusals::Refusals;
use super::session::Talk;
use super::tls::{PROTOCOL, key_in};
use super::{ANSWER, HANDSHAKE, HEADERS, PING, PONG, locked, reason, window};

/// So many may be about to prove who they are.
const WAITING: usize = 64;

/// So long a neighbour's call waits for this side's own to the same neighbour. Then this side may be dialling in vain.
const OWN_CALL: Duration = Duration::from_secs(1);

/// So long somebody who was turned away may take to notice.
const PARTING: Duration = Duration::from_secs(1);

/// A call is answered sooner than the caller gives up.
const READY: Duration = Duration::from_secs(3);

/// Who dialled, known from the key.
#[derive(Clone)]
pub(super) struct Caller {
    edge: Arc<Edge>,
    grip: Arc<Grip>,
    talks: Arc<AtomicBool>,
}

/// What a listening party needs.
pub(super) struct Porter {
    pub(super) tls: Arc<ServerConfig>,
    /// By key.
    pub(super) edges: Vec<([u8; 32], Arc<Edge>)>,
    pub(super) refusals: Refusals,
    pub(super) largest: usize,
    pub(super) busy: Arc<watch::Sender<usize>>,
}

impl Porter {
    /// Never ends by itself.
    pub(super) async fn run(self, listener: TcpListener) {
        let window = window(self.largest);
        let service = Door {
            largest: self.largest,
            busy: self.busy.clone(),
        };
        let (lines, known) = mpsc::channel(1);
        let serving = Server::builder()
            .initial_stream_window_size(window)
            .initial_connection_window_size(window)
            .max_concurrent_streams(2)
            .http2_keepalive_interval(Some(PING))
            .http2_keepalive_timeout(Some(PONG))
            .http2_max_header_list_size(HEADERS)
            .serve_with_incoming(service, Known(known));
        tokio::join!(Arc::new(self).accept(listener, lines), serving)
            .1
            .ok();
    }

    async fn accept(self: Arc<Self>, listener: TcpListener, lines: mpsc::Sender<Line>) {
        let waiting = Arc::<Mutex<Waiting<AbortHandle>>>::default();
        loop {
            let Ok((stream, address)) = listener.accept().await else {
                // Most likely there are no file descriptors left; in a while there may be.
                sleep(Duration::from_millis(100)).await;
                continue;
            };
            let mut queue = locked(&waiting);
            let ticket = queue.ticket();
            let (porter, lines, waiting) = (self.clone(), lines.clone(), waiting.clone());
            let task = tokio::spawn(async move {
                let line = porter.greet(stream, address).await;
                locked(&waiting).leave(ticket);
                if let Some(line) = line {
                    // It fails when nobody is served any more.
                    let _ = lines.send(line).await;
                }
            });
            if let Some((address, oldest)) = queue.enter(ticket, address, task.abort_handle()) {
                oldest.abort();
                drop(queue);
                let reason =
                    format!("more than {WAITING} connections are yet to prove who they are");
                self.refusals.tell(address.to_string(), &reason);
            }
        }
    }

    async fn greet(&self, stream: TcpStream, address: SocketAddr) -> Option<Line> {
        // Frames are small, and should not wait for more of them; without that, the link would be slow, but work.
        let _ = stream.set_nodelay(true);
        let handshake = TlsAcceptor::from(self.tls.clone())
            .accept(stream)
            .into_fallible();
        let (reason, stream) = match timeout(HANDSHAKE, handshake).await {
            Ok(Ok(stream)) => match self.identify(stream) {
                Ok(line) => return Some(line),
                Err(error) => (reason::of_connection(&error), None),
            },
            Ok(Err((error, stream))) => (reason::of_connection(&error), Some(stream)),
            Err(_) => {
                let words = format!(
                    "it did not prove within {} s who it is",
                    HANDSHAKE.as_secs()
                );
                (words, None)
            }
        };
        self.refusals.tell(address.to_string(), &reason);
        if let Some(stream) = stream {
            let _ = timeout(PARTING, part(stream)).await;
        }
        None
    }

    fn identify(&self, stream: TlsStream<TcpStream>) -> io::Result<Line> {
        let session = stream.get_ref().1;
        if session.alpn_protocol() != Some(PROTOCOL) {
            return Err(io::Error::other(rustls::Error::NoApplicationProtocol));
        }
        // The handshake let nobody else through.
        let key = match session.peer_certificates() {
            Some([certificate, ..]) => key_in(certificate).map_err(io::Error::other)?,
            _ => return Err(io::Error::other(rustls::Error::NoCertificatesPresented)),
        };
        let edge = self.edges.iter().find(|(known, _)| *known == key);
        let (_, edge) = edge.ok_or(io::ErrorKind::PermissionDenied)?;
        let grip = Grip::new();
        edge.connected(grip.clone());
        let caller = Caller {
            edge: edge.clone(),
            grip: grip.clone(),
            talks: Arc::default(),
        };
        Ok(Line::accepted(stream.into(), grip, caller))
    }
}

/// Lets somebody who was turned away read why. If a connection is closed while something on it is unread, that gets lost.
async fn part(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut unread = [0; 1024];
    for _ in 0..64 {
        if stream.read(&mut unread).await? == 0 {
            break;
        }
    }
    Ok(())
}

/// Those who are about to prove who they are, in the order in which they came.
struct Waiting<T> {
    queue: VecDeque<(u64, SocketAddr, T)>,
    tickets: u64,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        let queue = VecDeque::new();
        Self { queue, tickets: 0 }
    }
}

impl<T> Waiting<T> {
    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// One more. If there are too many, the one that has waited longest has to go: neighbours take a few milliseconds.
    fn enter(&mut self, ticket: u64, address: SocketAddr, who: T) -> Option<(SocketAddr, T)> {
        self.queue.push_back((ticket, address, who));
        if self.queue.len() <= WAITING {
            return None;
        }
        self.queue
            .pop_front()
            .map(|(_, address, who)| (address, who))
    }

    fn leave(&mut self, ticket: u64) {
        self.queue.retain(|(other, _, _)| *other != ticket);
    }
}

/// Connections of neighbours.
struct Known(mpsc::Receiver<Line>);

impl Stream for Known {
    type Item = io::Result<Line>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|line| line.map(Ok))
    }
}

/// What a neighbour can call.
#[derive(Clone)]
struct Door {
    largest: usize,
    busy: Arc<watch::Sender<usize>>,
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Service<http::Request<Body>> for Door {
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
        let visit = match caller {
            Some(caller) if request.uri().path() == PATH => Visit {
                caller,
                door: self.clone(),
            },
            _ => {
                let response = Status::unimplemented("").into_http();
                return Box::pin(std::future::ready(Ok(response)));
            }
        };
        let mut grpc = tonic::server::Grpc::new(Frames).max_decoding_message_size(self.largest);
        Box::pin(async move { Ok(grpc.streaming(visit, request).await) })
    }
}

/// One call.
struct Visit {
    caller: Caller,
    door: Door,
}

impl Service<Request<Streaming<Vec<u8>>>> for Visit {
    type Response = Response<Queue>;
    type Error = Status;
    type Future = Boxed<Result<Response<Queue>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Streaming<Vec<u8>>>) -> Self::Future {
        let (caller, door) = (self.caller.clone(), self.door.clone());
        Box::pin(async move { door.talk(caller, request.into_inner()).await })
    }
}

impl Door {
    async fn talk(
        self,
        caller: Caller,
        incoming: Streaming<Vec<u8>>,
    ) -> Result<Response<Queue>, Status> {
        let Caller { edge, grip, talks } = caller;
        if talks.swap(true, Ordering::SeqCst) {
            return Err(Status::already_exists(""));
        }
        if edge.me() < edge.peer() {
            // If both have dialled at once, this side's link is the one to stay.
            let _ = timeout(OWN_CALL, edge.dialled()).await;
        }
        let hold = timeout(READY, edge.hold()).await.ok().flatten();
        let hold = hold.ok_or_else(|| Status::resource_exhausted(""))?;
        let (outbox, queue, ended) = Outbox::new();
        let talk = Talk {
            dialler: edge.peer(),
            outbox,
            ended,
            incoming,
            grip,
            channel: None,
            largest: self.largest,
        };
        match talk.begin(edge, hold, &self.busy) {
            true => Ok(Response::new(queue)),
            false => Err(Status::already_exists("")),
        }
    }
}

// READY and OWN_CALL together leave time for the answer to arrive.
const _: () = assert!(READY.as_secs() + OWN_CALL.as_secs() < ANSWER.as_secs());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_waited_longest_has_to_go() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut waiting = Waiting::default();
        for who in 0..WAITING {
            let ticket = waiting.ticket();
            assert!(waiting.enter(ticket, address, who).is_none());
        }
        let ticket = waiting.ticket();
        assert_eq!(waiting.enter(ticket, address, 99), Some((address, 0)));
        waiting.leave(ticket);
        let ticket = waiting.ticket();
        assert_eq!(waiting.enter(ticket, address, 100), None);
        assert_eq!(waiting.queue.len(), WAITING);
    }
}
