//! The message that a node sends to its neighbours.

use crate::graph::NodeId;
use crate::protocol::release::Release;

/// `f_i(t)`, sent to every neighbour.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// `i`.
    pub from: NodeId,
    /// `t`.
    pub iteration: u32,
    /// `f_i(t)`.
    pub release: Release,
}
