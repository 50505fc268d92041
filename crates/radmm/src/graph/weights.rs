//! Mixing weights of gossip averaging.

use super::{Graph, NodeId};

impl Graph {
    /// The Metropolis weights `wᵢⱼ = 1 / (1 + max(Vᵢ, Vⱼ))` of the neighbours `j`, in their order.
    ///
    /// They sum to less than one; the rest is the node's own weight.
    ///
    /// # Panics
    ///
    /// If the graph has no such node.
    pub fn metropolis(&self, node: NodeId) -> Vec<f64> {
        let own = self.degree(node);
        self.neighbours(node)
            .iter()
            .map(|&j| 1.0 / (1 + own.max(self.degree(j))) as f64)
            .collect()
    }
}
