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
use super::codec::{Frames, PATH};
use super::connection::{Grip, Line};
use super::edge::Edge;
use super::outbox::Outbox;
use super::session::Talk;
use super::tls::PROTOCOL;
use super::{ANSWER, HANDSHAKE, HEADERS, PING, PONG, reason, window};

/// Dials one neighbour.
pub(super) struct Dialler {
    pub(super) edge: Arc<Edge>,
    pub(super) address: String,
    pub(super) tls: Arc<ClientConfig>,
    pub(super) largest: usize,
    pub(super) busy: Arc<watch::Sender<usize>>,
}

impl Dialler {
    /// Never ends by itself.
    pub(super) async fn run(self) {
        let mut backoff = Backoff::new();
        let mut told = None;
        loop {
            self.edge.dials(true);
            let outcome = tokio::select! {
                biased;
                () = self.edge.linked() => Ok(()),
                outcome = self.attempt() => outcome,
            };
            self.edge.dials(false);
            match outcome {
                Ok(()) => {
                    told = None;
                    let since = Instant::now();
                    self.edge.unlinked().await;
                    backoff.linked(since.elapsed());
                }
                Err(reason) if told.as_ref() != Some(&reason) => {
                    self.edge.unreachable(reason.clone());
                    told = Some(reason);
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
        let late = |_| {
            format!(
                "no answer from {} within {} s",
                self.address,
                HANDSHAKE.as_secs()
            )
        };
        let stream = timeout(HANDSHAKE, self.connect()).await.map_err(late)??;
        let grip = Grip::new();
        let line = Line::dialled(stream, grip.clone());
        let outcome = timeout(ANSWER, self.call(line, &grip)).await;
        // Whatever the reason is, the connection tells more than what was spoken on it.
        let outcome = outcome.unwrap_or_else(|_| Err(Failure::Late));
        let talk = outcome.map_err(|failure| {
            grip.cut();
            match failure {
                Failure::Refused(code) => refusal(code),
                Failure::Late => grip.fault().unwrap_or_else(|| "it does not answer".into()),
                Failure::Broken(words) => grip.fault().unwrap_or(words),
            }
        })?;
        let Some(hold) = self.edge.hold().await else {
            return Ok(());
        };
        // If it is not taken, the edge has another link, and that is well.
        talk.begin(self.edge.clone(), hold, &self.busy);
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
        // On one machine, a port where nobody listens may be the one that is dialled from: that reaches oneself.
        if stream.local_addr()? == stream.peer_addr()? {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        stream.set_nodelay(true)?;
        // It is not sent, and not looked at.
        let name = ServerName::IpAddress(address.ip().into());
        let stream = TlsConnector::from(self.tls.clone())
            .connect(name, stream)
            .await?;
        match stream.get_ref().1.alpn_protocol() {
            Some(PROTOCOL) => Ok(stream.into()),
            _ => Err(io::Error::other(rustls::Error::NoApplicationProtocol)),
        }
    }

    async fn call(&self, line: Line, grip: &Arc<Grip>) -> Result<Talk, Failure> {
        let window = window(self.largest);
        let mut channel = Endpoint::from_static("http://radmm")
            .initial_stream_window_size(window)
            .initial_connection_window_size(window)
            .http2_keep_alive_interval(PING)
            .keep_alive_timeout(PONG)
            .keep_alive_while_idle(true)
            .http2_max_header_list_size(HEADERS)
            .connect_with_connector(Once(Some(line)))
            .await
            .map_err(|error| Failure::Broken(error.to_string()))?;
        let (outbox, queue, ended) = Outbox::new();
        let request = http::Request::post(PATH)
            .version(http::Version::HTTP_2)
            .header(http::header::TE, "trailers")
            .header(http::header::CONTENT_TYPE, "application/grpc")
            .body(Body::new(EncodeBody::new_client(Frames, queue, None, None)))
            .map_err(|error| Failure::Broken(error.to_string()))?;
        std::future::poll_fn(|context| channel.poll_ready(context))
            .await
            .map_err(|error| Failure::Broken(error.to_string()))?;
        let response = channel.call(request).await;
        let response = response.map_err(|error| Failure::Broken(error.to_string()))?;
        if response.status() != http::StatusCode::OK {
            return Err(Failure::Refused(Code::Unimplemented));
        }
        if let Some(code) = response.headers().get(Status::GRPC_STATUS) {
            return Err(Failure::Refused(Code::from_bytes(code.as_bytes())));
        }
        // As a request is read: what the other side says of how the call went is of no use, and reading that aborts
        // on headers which are not as they should be.
        let body = response.into_body();
        let incoming = Streaming::new_request(Frames, body, None, Some(self.largest));
        Ok(Talk {
            dialler: self.edge.me(),
            outbox,
            ended,
            incoming,
            grip: grip.clone(),
            channel: Some(channel),
            largest: self.largest,
        })
    }
}

enum Failure {
    Refused(Code),
    Broken(String),
    Late,
}

/// Why a neighbour that knows us does not take a link.
fn refusal(code: Code) -> String {
    let words = match code {
        Code::AlreadyExists => {
            "it still has an older link to this side, and will find out that it is dead"
        }
        Code::ResourceExhausted => "it is not ready for another link",
        Code::Unimplemented => "it does not know this version's way of talking",
        _ => return format!("it takes no link: {code}"),
    };
    words.into()
}

/// Uniform from 0 to 1. Without randomness everyone waits as long as they may.
fn random() -> f64 {
    let mut bytes = [0; 4];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 1.0,
    }
}

/// A connection that there is already, for once.
struct Once(Option<Line>);

impl Service<Uri> for Once {
    type Response = TokioIo<Line>;
    type Error = io::Error;
    type Future = Ready<io::Result<TokioIo<Line>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let line = self.0.take().map(TokioIo::new);
        ready(line.ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}
