//! What a party has to say on a link, until it leaves.

use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::codec::Queue;
use super::{QUEUE, locked};
use crate::machine::link::Link;

/// Why a link is ended from this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The party wants it. What was queued still leaves.
    Close,
    /// The other side does not read.
    Overflow,
    /// Another link has taken its place.
    Replaced,
}

/// Where the party puts frames, as long as the link is open.
pub(super) struct Outbox(Mutex<Option<Open>>);

struct Open {
    queue: mpsc::Sender<Vec<u8>>,
    end: oneshot::Sender<End>,
}

impl Outbox {
    /// With what is to be sent, and with how it ends.
    pub(super) fn new() -> (Arc<Self>, Queue, oneshot::Receiver<End>) {
        let (queue, queued) = mpsc::channel(QUEUE);
        let (end, ended) = oneshot::channel();
        let outbox = Self(Mutex::new(Some(Open { queue, end })));
        (Arc::new(outbox), Queue(queued), ended)
    }

    /// Nothing more is queued.
    pub(super) fn end(&self, end: End) {
        if let Some(open) = locked(&self.0).take() {
            // The link may have gone by itself.
            let _ = open.end.send(end);
        }
    }

    fn send(&self, frame: Vec<u8>) -> bool {
        let open = locked(&self.0);
        match open.as_ref().map(|open| open.queue.try_send(frame)) {
            Some(Ok(())) => true,
            Some(Err(mpsc::error::TrySendError::Full(_))) => {
                drop(open);
                // Without the lost frame, the others would make no sense.
                self.end(End::Overflow);
                false
            }
            Some(Err(mpsc::error::TrySendError::Closed(_))) | None => false,
        }
    }
}

/// A link, in the hands of the party.
pub(super) struct Handle {
    outbox: Arc<Outbox>,
    _hold: OwnedSemaphorePermit,
}

impl Handle {
    /// `hold` is kept until the party lets go of the link.
    pub(super) fn new(outbox: Arc<Outbox>, hold: OwnedSemaphorePermit) -> Self {
        Self {
            outbox,
            _hold: hold,
        }
    }
}

impl Link for Handle {
    fn send(&self, frame: Vec<u8>) -> bool {
        self.outbox.send(frame)
    }

    fn close(&self) {
        self.outbox.end(End::Close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_ends_the_link_and_a_closed_one_takes_nothing() {
        let (outbox, _queue, mut ended) = Outbox::new();
        for _ in 0..QUEUE {
            assert!(outbox.send(vec![]));
        }
        assert!(!outbox.send(vec![]));
        assert_eq!(ended.try_recv(), Ok(End::Overflow));

        let (outbox, _queue, mut ended) = Outbox::new();
        outbox.end(End::Close);
        assert!(!outbox.send(vec![]));
        assert_eq!(ended.try_recv(), Ok(End::Close));
    }
}
