//! Accepts the connections of neighbours, and rejects all others.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::admission::{Admission, Evicted, MAX_SILENT, Stage, Ticket};
use super::connection::ConnectionHandle;
use super::edge::Edge;
use super::framing::write_frame;
use super::refusals::RefusalLog;
use super::session::{Answer, Session};
use super::tls::{PROTOCOL, key_in};
use super::{ANSWER_TIMEOUT, HANDSHAKE_TIMEOUT, lock, reason};

/// How long a neighbour's connection waits for this side's own dialling of the same neighbour, which may fail.
const OWN_DIAL_GRACE: Duration = Duration::from_secs(1);

/// How long a rejected client may take to read why.
const REJECTION_DRAIN: Duration = Duration::from_secs(1);

/// How long a connection waits until the party has let go of earlier links; shorter than the dialler's patience.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(3);

/// The listening side of a transport.
pub(super) struct Acceptor {
    tls: Arc<ServerConfig>,
    /// The edges, by the neighbour's key.
    edges: Vec<([u8; 32], Arc<Edge>)>,
    refusals: RefusalLog,
    largest: usize,
    busy: Arc<watch::Sender<usize>>,
    admission: Mutex<Admission<Arc<ConnectionHandle>>>,
}

impl Acceptor {
    /// Returns an acceptor of connections from neighbours, whose edges are given by their keys.
    pub(super) fn new(
        tls: Arc<ServerConfig>,
        edges: Vec<([u8; 32], Arc<Edge>)>,
        refusals: RefusalLog,
        largest: usize,
        busy: Arc<watch::Sender<usize>>,
    ) -> Self {
        let admission = Mutex::new(Admission::new(edges.len()));
        Self {
            tls,
            edges,
            refusals,
            largest,
            busy,
            admission,
        }
    }

    /// Accepts connections until it is aborted.
    pub(super) async fn run(self, listener: TcpListener) {
        let acceptor = Arc::new(self);
        loop {
            let Ok((stream, address)) = listener.accept().await else {
                // Most likely there are no file descriptors left; there may be some later.
                sleep(Duration::from_millis(100)).await;
                continue;
            };
            let handle = Arc::<ConnectionHandle>::default();
            let (ticket, evicted) = lock(&acceptor.admission).arrive(address, handle.clone());
            acceptor.close(evicted);
            let place = Place {
                acceptor: acceptor.clone(),
                ticket,
            };
            tokio::spawn(async move {
                tokio::select! {
                    biased;
                    () = handle.cut_requested() => {}
                    () = place.attend(stream, address, &handle) => {}
                }
            });
        }
    }

    /// Closes a connection that makes room for another one.
    fn close(&self, evicted: Option<Evicted<Arc<ConnectionHandle>>>) {
        let Some(evicted) = evicted else { return };
        evicted.connection.cut();
        let reason = match evicted.stage {
            Stage::Silent => {
                format!("it was silent, while more than {MAX_SILENT} silent connections waited")
            }
            Stage::Handshake => "too many connections were in the TLS handshake".to_owned(),
            // That is reported already.
            Stage::Rejected => return,
        };
        self.refusals.report(evicted.address, &reason);
    }

    /// Waits for a client's first byte, and until it has proved to be a neighbour, whose index is returned.
    async fn authenticate(
        &self,
        stream: TcpStream,
        ticket: Ticket,
    ) -> Result<(usize, TlsStream<TcpStream>), (String, Option<TcpStream>)> {
        let seconds = HANDSHAKE_TIMEOUT.as_secs();
        let first_byte = SilentClient(Some(stream)).first_byte();
        let stream = match timeout(HANDSHAKE_TIMEOUT, first_byte).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err((reason::of_connection(&error), None)),
            Err(_) => return Err((format!("it sent nothing within {seconds} s"), None)),
        };
        let evicted = lock(&self.admission).begin(ticket);
        self.close(evicted);
        let handshake = TlsAcceptor::from(self.tls.clone())
            .accept(stream)
            .into_fallible();
        match timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => match self.identify(&stream) {
                Ok(neighbour) => Ok((neighbour, stream)),
                Err(error) => Err((reason::of_connection(&error), None)),
            },
            Ok(Err((error, stream))) => Err((reason::of_connection(&error), Some(stream))),
            Err(_) => {
                let words = format!("it did not finish the TLS handshake within {seconds} s");
                Err((words, None))
            }
        }
    }

    /// Returns the index of the neighbour whose key a client has proved to hold.
    fn identify(&self, stream: &TlsStream<TcpStream>) -> io::Result<usize> {
        let session = stream.get_ref().1;
        if session.alpn_protocol() != Some(PROTOCOL) {
            return Err(io::Error::other(rustls::Error::NoApplicationProtocol));
        }
        // The handshake accepts neighbours' keys only.
        let key = match session.peer_certificates() {
            Some([certificate, ..]) => key_in(certificate).map_err(io::Error::other)?,
            _ => return Err(io::Error::other(rustls::Error::NoCertificatesPresented)),
        };
        let found = self
            .edges
            .iter()
            .position(|(neighbour, _)| *neighbour == key);
        found.ok_or(io::ErrorKind::PermissionDenied.into())
    }

    /// Offers a neighbour's connection to the party as the edge's link, and answers.
    async fn offer(
        &self,
        edge: Arc<Edge>,
        stream: TlsStream<TcpStream>,
        handle: Arc<ConnectionHandle>,
    ) {
        edge.add_connection(handle.clone());
        let permit = turn(&edge).await;
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

/// The place of a connection among those that wait, until it is dropped.
struct Place {
    acceptor: Arc<Acceptor>,
    ticket: Ticket,
}

impl Place {
    /// Attends to a client: to a neighbour until its connection is the edge's link, to anybody else until it is rejected.
    async fn attend(&self, stream: TcpStream, address: SocketAddr, handle: &Arc<ConnectionHandle>) {
        // Small frames should not wait for more of them. Without this option the link works, but is slow.
        let _ = stream.set_nodelay(true);
        let Self { acceptor, ticket } = self;
        match acceptor.authenticate(stream, *ticket).await {
            Ok((neighbour, stream)) => {
                lock(&acceptor.admission).authenticate(*ticket, neighbour);
                let edge = acceptor.edges[neighbour].1.clone();
                acceptor.offer(edge, stream, handle.clone()).await;
            }
            Err((reason, stream)) => {
                acceptor.refusals.report(address, &reason);
                let evicted = lock(&acceptor.admission).reject(*ticket);
                acceptor.close(evicted);
                if let Some(stream) = stream {
                    let _ = timeout(REJECTION_DRAIN, drain(stream)).await;
                }
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.acceptor.admission).close(self.ticket);
    }
}

/// A client that has sent nothing. When it is dropped, its connection is reset, so that the operating system forgets it too.
struct SilentClient(Option<TcpStream>);

impl SilentClient {
    /// Waits for the client's first byte, which is left to be read.
    async fn first_byte(mut self) -> io::Result<TcpStream> {
        let bytes = match &self.0 {
            Some(stream) => stream.peek(&mut [0]).await?,
            None => 0,
        };
        match self.0.take() {
            Some(stream) if bytes > 0 => Ok(stream),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Drop for SilentClient {
    fn drop(&mut self) {
        if let Some(stream) = &self.0 {
            let _ = stream.set_zero_linger();
        }
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
