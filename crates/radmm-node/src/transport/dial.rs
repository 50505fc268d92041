//! Dials a neighbour for as long as the edge has no link.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::backoff::Backoff;
use super::edge::Edge;
use super::framing::{ReadError, read_frame};
use super::session::{Answer, Session};
use super::tls::PROTOCOL;
use super::{ANSWER_TIMEOUT, HANDSHAKE_TIMEOUT, reason};

/// How long a link lasts after which reasons for which there was none before are told again.
const LASTING: Duration = Duration::from_secs(60);

/// The number of reasons that are remembered.
const MAX_COMPLAINTS: usize = 8;

/// The reasons for which there was no link, each of which is told once.
#[derive(Default)]
struct Complaints(VecDeque<String>);

impl Complaints {
    /// Adds a reason; returns whether it is to be told.
    fn is_new(&mut self, reason: &str) -> bool {
        if self.0.iter().any(|told| told == reason) {
            return false;
        }
        if self.0.len() == MAX_COMPLAINTS {
            self.0.pop_front();
        }
        self.0.push_back(reason.to_owned());
        true
    }
}

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
        let mut complaints = Complaints::default();
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
                    let since = Instant::now();
                    self.edge.unlinked().await;
                    backoff.linked(since.elapsed());
                    if since.elapsed() >= LASTING {
                        complaints = Complaints::default();
                    }
                }
                Err(reason) if complaints.is_new(&reason) => self.edge.unreachable(reason),
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
        let mut stream = timeout(HANDSHAKE_TIMEOUT, self.connect())
            .await
            .map_err(timed_out)??;
        let answer = timeout(ANSWER_TIMEOUT, read_frame(&mut stream, 1)).await;
        let answer = answer.map_err(|_| "it does not answer".to_owned())?;
        accepted(answer)?;
        let Some(permit) = self.edge.acquire_link().await else {
            return Ok(());
        };
        let session = Session {
            edge: self.edge.clone(),
            dialler: self.edge.me(),
            stream,
            handle: Arc::default(),
            largest: self.largest,
        };
        // If the session is not used, the edge has another link already.
        let _ = session.begin(permit, &self.busy);
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
            Some(PROTOCOL) => Ok(stream),
            _ => Err(io::Error::other(rustls::Error::NoApplicationProtocol)),
        }
    }
}

/// Returns whether a neighbour takes this connection as the link, or why it does not.
fn accepted(answer: Result<Option<Vec<u8>>, ReadError>) -> Result<(), String> {
    let words = match answer {
        Ok(Some(frame)) => match Answer::from_frame(&frame) {
            Some(Answer::Accepted) => return Ok(()),
            Some(Answer::HasLink) => {
                "it still has an older link to this side, and will notice that the link is dead"
            }
            Some(Answer::NotReady) => "it is not ready for another link",
            None => "its answer is not one of this version of the protocol",
        },
        Ok(None) => "it closed the connection",
        Err(ReadError::TooLong { .. }) => "its answer is not one of this version of the protocol",
        Err(error) => return Err(error.describe()),
    };
    Err(words.to_owned())
}

/// Returns a random number, uniform from 0 to 1; 1 if the operating system gives no random bytes.
fn random() -> f64 {
    let mut bytes = [0; 4];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_alternate_are_told_once() {
        let mut complaints = Complaints::default();
        let told: Vec<&str> = ["refused", "no answer", "refused", "no answer", "reset"]
            .into_iter()
            .filter(|reason| complaints.is_new(reason))
            .collect();
        assert_eq!(told, ["refused", "no answer", "reset"]);
        (0..100).for_each(|number| assert!(complaints.is_new(&number.to_string())));
        assert_eq!(complaints.0.len(), MAX_COMPLAINTS);
    }
}
