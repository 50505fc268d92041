//! Dials a neighbour for as long as the edge has no link.

use std::future::{Ready, ready};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::rt::TokioIo;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::{TlsConnector, TlsStream};
use tonic::body::Body;
use tonic::codec::{EncodeBody, Streaming};
use tonic::transport::Endpoint;
use tonic::{Code, Status};
use tower_service::Service;

use super::backoff::Backoff;
use super::codec::{PATH, RawFrameCodec};
use super::connection::{Connection, ConnectionHandle};
use super::edge::Edge;
use super::outbox::Outbox;
use super::session::Session;
use super::tls::PROTOCOL;
use super::{
    CALL_TIMEOUT, HANDSHAKE_TIMEOUT, MAX_HEADER_BYTES, PING_INTERVAL, PING_TIMEOUT, reason, window,
};

/// Dials one neighbour.
pub(super) struct Dialler {
    pub(super) edge: Arc<Edge>,
    pub(super) address: String,
    pub(super) tls: Arc<ClientConfig>,
    pub(super) largest: usize,
    pub(super) busy: Arc<watch::Sender<usize>>,
}

impl Dialler {
    /// Dials until it is aborted.
    pub(super) async fn run(self) {
        let mut backoff = Backoff::new();
        let mut reported = None;
        loop {
            self.edge.set_dialling(true);
            let outcome = tokio::select! {
                biased;
                () = self.edge.linked() => Ok(()),
                outcome = self.attempt() => outcome,
            };
            self.edge.set_dialling(false);
            match outcome {
                Ok(()) => {
                    reported = None;
                    let since = Instant::now();
                    self.edge.unlinked().await;
                    backoff.linked(since.elapsed());
                }
                Err(reason) if reported.as_ref() != Some(&reason) => {
                    self.edge.unreachable(reason.clone());
                    reported = Some(reason);
                }
                Err(_) => {}
            }
            tokio::select! {
                () = sleep(backoff.pause(random())) => {}
                () = self.edge.linked() => {}
            }
        }
    }

    async fn attempt(&self) -> Result<(), String> {
        let timed_out = |_| {
            format!(
                "no answer from {} within {} s",
                self.address,
                HANDSHAKE_TIMEOUT.as_secs()
            )
        };
        let stream = timeout(HANDSHAKE_TIMEOUT, self.connect())
            .await
            .map_err(timed_out)??;
        let handle = ConnectionHandle::new();
        let connection = Connection::dialled(stream, handle.clone());
        let outcome = timeout(CALL_TIMEOUT, self.call(connection, &handle)).await;
        // The error of the connection tells more than that of HTTP/2 on it.
        let outcome = outcome.unwrap_or_else(|_| Err(CallError::TimedOut));
        let session = outcome.map_err(|failure| {
            handle.cut();
            match failure {
                CallError::Refused(code) => refusal(code),
                CallError::TimedOut => handle
                    .fault()
                    .unwrap_or_else(|| "it does not answer".into()),
                CallError::Broken(words) => handle.fault().unwrap_or(words),
            }
        })?;
        let Some(permit) = self.edge.acquire_link().await else {
            return Ok(());
        };
        // If the session is not used, the edge has another link already.
        session.begin(self.edge.clone(), permit, &self.busy);
        Ok(())
    }

    async fn connect(&self) -> Result<TlsStream<TcpStream>, String> {
        let found = lookup_host(&self.address).await;
        let mut failed = format!("name not found: {}", self.address);
        for address in found.map_err(|_| failed.clone())? {
            match self.secure(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = reason::of_connection(&error),
            }
        }
        Err(failed)
    }

    async fn secure(&self, address: std::net::SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        // On one machine, the port that is dialled may be the one that is dialled from: TCP then connects to itself.
        if stream.local_addr()? == stream.peer_addr()? {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        stream.set_nodelay(true)?;
        // The name is neither sent nor checked.
        let name = ServerName::IpAddress(address.ip().into());
        let stream = TlsConnector::from(self.tls.clone())
            .connect(name, stream)
            .await?;
        match stream.get_ref().1.alpn_protocol() {
            Some(PROTOCOL) => Ok(stream.into()),
            _ => Err(io::Error::other(rustls::Error::NoApplicationProtocol)),
        }
    }

    async fn call(
        &self,
        connection: Connection,
        handle: &Arc<ConnectionHandle>,
    ) -> Result<Session, CallError> {
        let window = window(self.largest);
        let mut channel = Endpoint::from_static("http://radmm")
            .initial_stream_window_size(window)
            .initial_connection_window_size(window)
            .http2_keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .http2_max_header_list_size(MAX_HEADER_BYTES)
            .connect_with_connector(ReadyConnector(Some(connection)))
            .await
            .map_err(|error| CallError::Broken(error.to_string()))?;
        let (outbox, queue, ended) = Outbox::new();
        let request = http::Request::post(PATH)
            .version(http::Version::HTTP_2)
            .header(http::header::TE, "trailers")
            .header(http::header::CONTENT_TYPE, "application/grpc")
            .body(Body::new(EncodeBody::new_client(
                RawFrameCodec,
                queue,
                None,
                None,
            )))
            .map_err(|error| CallError::Broken(error.to_string()))?;
        std::future::poll_fn(|context| channel.poll_ready(context))
            .await
            .map_err(|error| CallError::Broken(error.to_string()))?;
        let response = channel.call(request).await;
        let response = response.map_err(|error| CallError::Broken(error.to_string()))?;
        if response.status() != http::StatusCode::OK {
            return Err(CallError::Refused(Code::Unimplemented));
        }
        if let Some(code) = response.headers().get(Status::GRPC_STATUS) {
            return Err(CallError::Refused(Code::from_bytes(code.as_bytes())));
        }
        // Read as a request: the trailers of a response are of no use here, and reading them fails on invalid headers.
        let body = response.into_body();
        let incoming = Streaming::new_request(RawFrameCodec, body, None, Some(self.largest));
        Ok(Session {
            dialler: self.edge.me(),
            outbox,
            ended,
            incoming,
            handle: handle.clone(),
            channel: Some(channel),
            largest: self.largest,
        })
    }
}

/// The failure of a call.
enum CallError {
    Refused(Code),
    Broken(String),
    TimedOut,
}

/// Returns why a neighbour rejected a call.
fn refusal(code: Code) -> String {
    let words = match code {
        Code::AlreadyExists => {
            "it still has an older link to this side, and will notice that the link is dead"
        }
        Code::ResourceExhausted => "it is not ready for another link",
        Code::Unimplemented => "it does not know this version of the protocol",
        _ => return format!("it rejects the link: {code}"),
    };
    words.into()
}

/// Returns a random number, uniform from 0 to 1; 1 if the operating system gives no random bytes.
fn random() -> f64 {
    let mut bytes = [0; 4];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 1.0,
    }
}

/// A connector that returns one existing connection.
struct ReadyConnector(Option<Connection>);

impl Service<Uri> for ReadyConnector {
    type Response = TokioIo<Connection>;
    type Error = io::Error;
    type Future = Ready<io::Result<TokioIo<Connection>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connection = self.0.take().map(TokioIo::new);
        ready(connection.ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}
