//! Edges of the graph, as a party sees them: frames go out through a [`Link`], and what happens comes in as [`Event`]s.
//!
//! A party does not know what carries its frames. Over the network that is the transport; in tests it is a
//! few queues in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use radmm::public::graph::NodeId;

/// One edge while it is up.
pub trait Link: Send {
    /// Queues a frame without waiting. `false` if the link has gone, or if so much is queued already that the other side
    /// cannot be reading: then the frame is lost, and the link is as good as gone.
    fn send(&self, frame: Vec<u8>) -> bool;

    /// Ends the link once everything that was queued has left. Frames that arrive later are not passed on.
    fn close(&self);
}

/// Which of the links that an edge has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Serial(pub u64);

/// What happens on edges.
pub enum Event {
    /// The other side has proved that it holds the neighbour's key. An edge has one link: this one takes the place of any that
    /// was there.
    Up {
        /// The neighbour.
        peer: NodeId,
        /// Of this link.
        serial: Serial,
        /// For what is to be said.
        link: Box<dyn Link>,
    },
    /// Something was said. While a few frames of a link are unread, no more are taken from the network.
    Frame {
        /// Who said it.
        peer: NodeId,
        /// On which link.
        serial: Serial,
        /// What; no longer than was agreed on.
        bytes: Vec<u8>,
        /// Held until the frame has been read.
        credit: Credit,
    },
    /// A link has gone.
    Down {
        /// The neighbour.
        peer: NodeId,
        /// Which link.
        serial: Serial,
        /// Why, in words.
        reason: String,
    },
    /// A neighbour could not be reached. It will be tried again.
    Unreachable {
        /// The neighbour.
        peer: NodeId,
        /// Why, in words.
        reason: String,
    },
    /// Somebody was turned away.
    Refused {
        /// From where.
        address: String,
        /// Why, in words.
        reason: String,
    },
    /// The operator wants the party to stop.
    Stop,
}

/// How many frames of one link may be unread.
pub const UNREAD: usize = 4;

/// One of a link's unread frames, as long as it lives.
pub struct Credit(Option<Box<dyn FnOnce() + Send>>);

impl Credit {
    /// Calls `read` when the frame has been read.
    pub fn new(read: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(read)))
    }
}

impl Drop for Credit {
    fn drop(&mut self) {
        if let Some(read) = self.0.take() {
            read();
        }
    }
}

/// Numbers links.
#[derive(Clone, Debug, Default)]
pub struct Serials(Arc<AtomicUsize>);

impl Serials {
    /// A number that no other link has.
    pub fn next(&self) -> Serial {
        Serial(self.0.fetch_add(1, Ordering::Relaxed) as u64)
    }
}
