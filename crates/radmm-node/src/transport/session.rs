//! The task that carries a link from when it is up until it is down.

use std::sync::Arc;
use std::time::Duration;

use radmm::graph::NodeId;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tonic::Code;
use tonic::codec::Streaming;
use tonic::transport::Channel;

use super::connection::ConnectionHandle;
use super::edge::Edge;
use super::outbox::{EndReason, Outbox};
use super::{DRAIN_TIMEOUT, PING_INTERVAL, PING_TIMEOUT};
use crate::machine::Serial;

/// A link that is silent for this long is dead: both sides ping, so that even an idle link is never silent.
const SILENCE_TIMEOUT: Duration = PING_INTERVAL.saturating_add(PING_TIMEOUT);

/// A stream in both directions between this side and a neighbour.
pub(super) struct Session {
    pub(super) dialler: NodeId,
    pub(super) outbox: Arc<Outbox>,
    pub(super) ended: oneshot::Receiver<EndReason>,
    pub(super) incoming: Streaming<Vec<u8>>,
    pub(super) handle: Arc<ConnectionHandle>,
    /// Keeps a connection open that this side dialled.
    pub(super) channel: Option<Channel>,
    /// The longest frame that is accepted.
    pub(super) largest: usize,
}

impl Session {
    /// Makes the session the edge's link, and carries it. Returns `false` if another link stays.
    pub(super) fn begin(
        self,
        edge: Arc<Edge>,
        permit: OwnedSemaphorePermit,
        busy: &Arc<watch::Sender<usize>>,
    ) -> bool {
        match edge.up(self.dialler, &self.outbox, &self.handle, permit) {
            Some(serial) => {
                let busy = SessionCount::new(busy);
                tokio::spawn(async move {
                    self.carry(&edge, serial).await;
                    drop(busy);
                });
                true
            }
            // The connection stays for the answer to leave; the dialler closes it.
            None => false,
        }
    }

    async fn carry(mut self, edge: &Edge, serial: Serial) {
        let end = tokio::select! {
            biased;
            reason = &mut self.ended => match reason {
                Ok(EndReason::Close) => SessionEnd::closed("this side has closed it"),
                Ok(EndReason::Overflow) => SessionEnd::broken("it does not read what it is sent"),
                Ok(EndReason::Replaced) | Err(_) => SessionEnd::broken("another connection takes its place"),
            },
            end = listen(edge, serial, &mut self.incoming, &self.handle, self.largest) => end,
            end = silence(&self.handle) => end,
        };
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        if end.gently {
            // The queue ends once it is empty. Further frames of the peer are dropped until its stream ends: before that, it may not
            // have read everything.
            self.outbox.end(EndReason::Close);
            let rest = async { while let Ok(Some(_)) = self.incoming.message().await {} };
            let _ = timeout_at(deadline, rest).await;
        }
        self.outbox.end(EndReason::Replaced);
        edge.down(serial, end.reason);
        if end.gently {
            drop(self.incoming);
            drop(self.channel);
            let _ = timeout_at(deadline, self.handle.dropped()).await;
        }
        self.handle.cut();
    }
}

/// The end of a session.
struct SessionEnd {
    reason: String,
    /// Whether queued frames still leave.
    gently: bool,
}

impl SessionEnd {
    fn closed(reason: &str) -> Self {
        Self {
            reason: reason.into(),
            gently: true,
        }
    }

    fn broken(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            gently: false,
        }
    }
}

/// Reports the frames of the peer.
async fn listen(
    edge: &Edge,
    serial: Serial,
    incoming: &mut Streaming<Vec<u8>>,
    handle: &ConnectionHandle,
    largest: usize,
) -> SessionEnd {
    loop {
        let Some(permit) = edge.acquire_frame().await else {
            return SessionEnd::broken("this side has stopped");
        };
        match incoming.message().await {
            Ok(Some(bytes)) => edge.frame(serial, bytes, permit),
            Ok(None) => {
                return match connection_error(handle) {
                    None => SessionEnd::closed("it has closed the link"),
                    Some(words) => SessionEnd::broken(words),
                };
            }
            Err(status) if status.code() == Code::OutOfRange => {
                return SessionEnd::broken(format!(
                    "it sent a frame of more than {largest} bytes, which no message of the study needs"
                ));
            }
            Err(status) => {
                let words = || format!("the connection broke: {}", status.message());
                return SessionEnd::broken(connection_error(handle).unwrap_or_else(words));
            }
        }
    }
}

/// Returns the error of the connection, which tells more than that of HTTP/2 on it.
fn connection_error(handle: &ConnectionHandle) -> Option<String> {
    let silence = handle.silence();
    // HTTP/2 may have noticed before this side did.
    match silence >= PING_TIMEOUT {
        true => Some(format!(
            "nothing was received from it for {} s",
            silence.as_secs()
        )),
        false => handle.fault(),
    }
}

/// Waits until nothing has arrived for [`SILENCE_TIMEOUT`], although the peer pings.
async fn silence(handle: &ConnectionHandle) -> SessionEnd {
    loop {
        match SILENCE_TIMEOUT.checked_sub(handle.silence()) {
            Some(left) if !left.is_zero() => sleep(left).await,
            _ => return SessionEnd::broken(connection_error(handle).unwrap_or_default()),
        }
    }
}

/// Counts a session until it is dropped.
struct SessionCount(Arc<watch::Sender<usize>>);

impl SessionCount {
    fn new(count: &Arc<watch::Sender<usize>>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }
}

impl Drop for SessionCount {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
