//! A link from when it is up until it has gone.

use std::sync::Arc;
use std::time::Duration;

use radmm::public::graph::NodeId;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tonic::Code;
use tonic::codec::Streaming;
use tonic::transport::Channel;

use super::connection::Grip;
use super::edge::Edge;
use super::outbox::{End, Outbox};
use super::{LINGER, PING, PONG};
use crate::machine::link::Serial;

/// A link that is silent for so long is dead: both sides ping, so that even an idle one never is.
const SILENCE: Duration = PING.saturating_add(PONG);

/// A stream in both directions, whose other end is a neighbour.
pub(super) struct Talk {
    pub(super) dialler: NodeId,
    pub(super) outbox: Arc<Outbox>,
    pub(super) ended: oneshot::Receiver<End>,
    pub(super) incoming: Streaming<Vec<u8>>,
    pub(super) grip: Arc<Grip>,
    /// What keeps a connection open that this side has dialled.
    pub(super) channel: Option<Channel>,
    /// Longest frame that is taken.
    pub(super) largest: usize,
}

impl Talk {
    /// Makes it the edge's link, unless another one stays.
    pub(super) fn begin(
        self,
        edge: Arc<Edge>,
        hold: OwnedSemaphorePermit,
        busy: &Arc<watch::Sender<usize>>,
    ) -> bool {
        match edge.up(self.dialler, &self.outbox, &self.grip, hold) {
            Some(serial) => {
                let busy = Busy::new(busy);
                tokio::spawn(async move {
                    self.carry(&edge, serial).await;
                    drop(busy);
                });
                true
            }
            // The connection stays for the answer to leave; whoever dialled closes it.
            None => false,
        }
    }

    async fn carry(mut self, edge: &Edge, serial: Serial) {
        let over = tokio::select! {
            biased;
            end = &mut self.ended => match end {
                Ok(End::Close) => Over::closed("this side has closed it"),
                Ok(End::Overflow) => Over::broken("it does not read what it is sent"),
                Ok(End::Replaced) | Err(_) => Over::broken("another connection takes its place"),
            },
            over = listen(edge, serial, &mut self.incoming, &self.grip, self.largest) => over,
            over = silence(&self.grip) => over,
        };
        let deadline = Instant::now() + LINGER;
        if over.gently {
            // The queue ends, once it is empty. What the other side still says is of no interest, only that it ends as well:
            // before that, it may not have read everything.
            self.outbox.end(End::Close);
            let rest = async { while let Ok(Some(_)) = self.incoming.message().await {} };
            let _ = timeout_at(deadline, rest).await;
        }
        self.outbox.end(End::Replaced);
        edge.down(serial, over.reason);
        if over.gently {
            drop(self.incoming);
            drop(self.channel);
            let _ = timeout_at(deadline, self.grip.gone()).await;
        }
        self.grip.cut();
    }
}

/// How a link ends.
struct Over {
    reason: String,
    /// What was queued still leaves.
    gently: bool,
}

impl Over {
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

/// Passes on what is said.
async fn listen(
    edge: &Edge,
    serial: Serial,
    incoming: &mut Streaming<Vec<u8>>,
    grip: &Grip,
    largest: usize,
) -> Over {
    loop {
        let Some(room) = edge.room().await else {
            return Over::broken("this side has stopped");
        };
        match incoming.message().await {
            Ok(Some(bytes)) => edge.frame(serial, bytes, room),
            Ok(None) => {
                return match broken(grip) {
                    None => Over::closed("it has closed the link"),
                    Some(words) => Over::broken(words),
                };
            }
            Err(status) if status.code() == Code::OutOfRange => {
                return Over::broken(format!(
                    "it sent a frame of more than {largest} bytes, which no message of the study needs"
                ));
            }
            Err(status) => {
                let words = || format!("the connection broke: {}", status.message());
                return Over::broken(broken(grip).unwrap_or_else(words));
            }
        }
    }
}

/// What is wrong with the connection, which tells more than what was spoken on it.
fn broken(grip: &Grip) -> Option<String> {
    let silent = grip.silent();
    // HTTP/2 may have noticed before this side did.
    match silent >= PONG {
        true => Some(format!(
            "nothing was heard from it for {} s",
            silent.as_secs()
        )),
        false => grip.fault(),
    }
}

/// Ends when nothing at all has arrived for long, although the other side pings.
async fn silence(grip: &Grip) -> Over {
    loop {
        match SILENCE.checked_sub(grip.silent()) {
            Some(left) if !left.is_zero() => sleep(left).await,
            _ => return Over::broken(broken(grip).unwrap_or_default()),
        }
    }
}

/// Counts the links that have not ended for good.
struct Busy(Arc<watch::Sender<usize>>);

impl Busy {
    fn new(count: &Arc<watch::Sender<usize>>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
