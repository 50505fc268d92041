//! The interface between a party and whatever carries its frames.
//!
//! Frames go out through a [`Link`]; what happens comes in as [`LinkEvent`]s. Over the network the carrier is the transport; in
//! tests it is a few queues in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use radmm::graph::NodeId;

/// A connection to one neighbour while it is up.
pub trait Link: Send {
    /// Queues a frame without waiting. Returns `false` if the link is down, or if its queue is full because the peer does not
    /// read: then the frame is lost, and the link goes down.
    fn send(&self, frame: Vec<u8>) -> bool;

    /// Closes the link once all queued frames have left. Frames that arrive later are dropped.
    fn close(&self);

    /// Returns the party that dialled, if that is known.
    fn dialler(&self) -> Option<NodeId> {
        None
    }
}

/// The serial number of a link, unique within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Serial(pub u64);

/// Something that happened to a link, or to the party as a whole.
pub enum LinkEvent {
    /// A link is up: the peer has proved that it holds the neighbour's key. A neighbour has one link at a time, and this one
    /// replaces any earlier one.
    Up {
        /// The neighbour.
        peer: NodeId,
        /// The serial number of this link.
        serial: Serial,
        /// The sending half.
        link: Box<dyn Link>,
    },
    /// A frame has arrived. While [`MAX_UNREAD_FRAMES`] frames are unread, no more are read from the network.
    Frame {
        /// The sender.
        peer: NodeId,
        /// The link.
        serial: Serial,
        /// The frame, no longer than the configured limit.
        bytes: Vec<u8>,
        /// Flow control: dropped when the frame has been read.
        credit: Credit,
    },
    /// A link is down.
    Down {
        /// The neighbour.
        peer: NodeId,
        /// The link.
        serial: Serial,
        /// The reason, for the operator.
        reason: String,
    },
    /// A neighbour could not be reached. The transport tries again.
    Unreachable {
        /// The neighbour.
        peer: NodeId,
        /// The reason, for the operator.
        reason: String,
    },
    /// An incoming connection was rejected.
    Refused {
        /// The remote address.
        address: String,
        /// The reason, for the operator.
        reason: String,
        /// The number of connections that were rejected since the last such event without one of their own.
        more: u64,
    },
    /// The operator asks the party to stop.
    Stop,
}

/// The number of frames of one neighbour that may be unread.
pub const MAX_UNREAD_FRAMES: usize = 4;

/// One unread frame's share of [`MAX_UNREAD_FRAMES`], returned when dropped.
pub struct Credit(Option<Box<dyn FnOnce() + Send>>);

impl Credit {
    /// Returns a credit that calls `on_read` when it is dropped.
    pub fn new(on_read: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(on_read)))
    }
}

impl Drop for Credit {
    fn drop(&mut self) {
        if let Some(on_read) = self.0.take() {
            on_read();
        }
    }
}

/// A source of serial numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Serials(Arc<AtomicUsize>);

impl Serials {
    /// Returns a number that no other link has.
    pub(crate) fn next(&self) -> Serial {
        Serial(self.0.fetch_add(1, Ordering::Relaxed) as u64)
    }
}
