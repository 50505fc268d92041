//! The queue of frames that wait to leave on a link.

use std::sync::{Arc, Mutex};

use radmm::graph::NodeId;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::{MAX_QUEUED_FRAMES, lock};
use crate::machine::Link;

/// The reason for which this side ends a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndReason {
    /// The party closes it. Queued frames still leave.
    Close,
    /// The queue is full: the peer does not read.
    Overflow,
}

/// The queue of a link, while it is open.
pub(super) struct Outbox(Mutex<Option<OpenOutbox>>);

struct OpenOutbox {
    queue: mpsc::Sender<Vec<u8>>,
    end: oneshot::Sender<EndReason>,
}

/// The other end of an outbox.
pub(super) struct Outgoing {
    /// The frames that wait to leave. There are no more once the queue has ended and is empty.
    pub(super) frames: mpsc::Receiver<Vec<u8>>,
    /// The reason for which the queue has ended.
    pub(super) ended: oneshot::Receiver<EndReason>,
}

impl Outbox {
    /// Returns an outbox and its other end.
    pub(super) fn new() -> (Arc<Self>, Outgoing) {
        let (queue, frames) = mpsc::channel(MAX_QUEUED_FRAMES);
        let (end, ended) = oneshot::channel();
        let outbox = Self(Mutex::new(Some(OpenOutbox { queue, end })));
        (Arc::new(outbox), Outgoing { frames, ended })
    }

    /// Ends the queue.
    pub(super) fn end(&self, end: EndReason) {
        if let Some(open) = lock(&self.0).take() {
            // The link may be down already.
            let _ = open.end.send(end);
        }
    }

    /// Queues a frame; returns whether it will leave unless the link goes down.
    pub(super) fn send(&self, frame: Vec<u8>) -> bool {
        let open = lock(&self.0);
        match open.as_ref().map(|open| open.queue.try_send(frame)) {
            Some(Ok(())) => true,
            Some(Err(mpsc::error::TrySendError::Full(_))) => {
                drop(open);
                // A frame is lost, so the link cannot go on.
                self.end(EndReason::Overflow);
                false
            }
            Some(Err(mpsc::error::TrySendError::Closed(_))) | None => false,
        }
    }
}

/// The party's half of a link.
pub(super) struct OutboxLink {
    outbox: Arc<Outbox>,
    dialler: NodeId,
    _permit: OwnedSemaphorePermit,
}

impl OutboxLink {
    /// Returns a link that holds `permit` until the party drops it.
    pub(super) fn new(outbox: Arc<Outbox>, dialler: NodeId, permit: OwnedSemaphorePermit) -> Self {
        Self {
            outbox,
            dialler,
            _permit: permit,
        }
    }
}

impl Link for OutboxLink {
    fn send(&self, frame: Vec<u8>) -> bool {
        self.outbox.send(frame)
    }

    fn close(&self) {
        self.outbox.end(EndReason::Close);
    }

    fn dialler(&self) -> Option<NodeId> {
        Some(self.dialler)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_ends_the_link_and_a_closed_one_rejects_frames() {
        let (outbox, mut outgoing) = Outbox::new();
        for _ in 0..MAX_QUEUED_FRAMES {
            assert!(outbox.send(vec![]));
        }
        assert!(!outbox.send(vec![]));
        assert_eq!(outgoing.ended.try_recv(), Ok(EndReason::Overflow));

        let (outbox, mut outgoing) = Outbox::new();
        outbox.end(EndReason::Close);
        assert!(!outbox.send(vec![]));
        assert_eq!(outgoing.ended.try_recv(), Ok(EndReason::Close));
    }
}
