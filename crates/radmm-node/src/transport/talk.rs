//! A link from when it is up until it has gone.

use std::sync::Arc;
use std::time::Duration;

use radmm::public::graph::NodeId;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tonic::codec::Streaming;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::edge::{Edge, End, Outbox};
use super::line::Grip;
use super::{LINGER, PING};
use crate::link::Serial;

/// So many times [`PING`] may pass in silence. Both sides ping, so that even an idle link is never silent for longer.
const SILENCES: u32 = 3;

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
            None => {
                self.grip.cut();
                false
            }
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
                return match grip.fault() {
                    None => Over::closed("it has closed the link"),
                    Some(fault) => Over::broken(fault),
                };
            }
            Err(status) => return Over::broken(said(&status, grip, largest)),
        }
    }
}

fn said(status: &Status, grip: &Grip, largest: usize) -> String {
    match (status.code(), grip.fault()) {
        (Code::OutOfRange, _) => {
            format!(
                "it sent a frame of more than {largest} bytes, which no message of the study needs"
            )
        }
        (_, Some(fault)) => fault,
        (_, None) => format!("the connection broke: {}", status.message()),
    }
}

/// Ends when nothing at all has arrived for long, although the other side pings.
async fn silence(grip: &Grip) -> Over {
    let mut heard = grip.reads();
    let mut silences = 0;
    while silences < SILENCES {
        sleep(PING).await;
        let reads = grip.reads();
        silences = if reads == heard { silences + 1 } else { 0 };
        heard = reads;
    }
    let passed: Duration = PING * SILENCES;
    Over::broken(format!(
        "nothing was heard from it for {} s",
        passed.as_secs()
    ))
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
