//! A breadth-first spanning tree, along which exact sums are taken.

use std::collections::VecDeque;

use super::{Graph, NodeId};

/// A breadth-first spanning tree of a graph, rooted near its centre.
///
/// It is a function of the graph alone, so all parties of a study know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanningTree {
    root: NodeId,
    parents: Vec<Option<NodeId>>,
    levels: Vec<u32>,
    depth: u32,
}

/// A node's place in a [`SpanningTree`], in positions among its neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreePosition {
    /// The parent's position among the node's neighbours; `None` for the root.
    pub parent: Option<usize>,
    /// The children's positions among the node's neighbours, ascending.
    pub children: Vec<usize>,
    /// The distance from the root.
    pub level: u32,
    /// The largest level of the tree.
    pub depth: u32,
}

impl SpanningTree {
    /// Returns the tree of a graph.
    ///
    /// The root is the middle of a longest shortest path, as far as two searches find one: exactly so in a tree, nearly so
    /// in other graphs. Among equals the node with the smallest number is taken.
    pub fn of(graph: &Graph) -> Self {
        let end = Self::rooted(graph, NodeId(0)).farthest();
        let across = Self::rooted(graph, end);
        let mut root = across.farthest();
        for _ in 0..across.depth / 2 {
            root = across.parents[root.index()].unwrap_or(root);
        }
        Self::rooted(graph, root)
    }

    /// Searches breadth-first from a root. A node's parent is the neighbour nearer to the root with the smallest number.
    fn rooted(graph: &Graph, root: NodeId) -> Self {
        let mut parents = vec![None; graph.len()];
        let mut levels = vec![u32::MAX; graph.len()];
        levels[root.index()] = 0;
        let mut queue = VecDeque::from([root]);
        let mut depth = 0;
        while let Some(node) = queue.pop_front() {
            depth = levels[node.index()];
            for &next in graph.neighbours(node) {
                if levels[next.index()] == u32::MAX {
                    levels[next.index()] = depth + 1;
                    queue.push_back(next);
                }
            }
        }
        for node in graph.nodes().filter(|node| *node != root) {
            let nearer = |next: &&NodeId| levels[next.index()] + 1 == levels[node.index()];
            parents[node.index()] = graph.neighbours(node).iter().find(nearer).copied();
        }
        Self {
            root,
            parents,
            levels,
            depth,
        }
    }

    /// Returns the node of the largest level with the smallest number.
    fn farthest(&self) -> NodeId {
        let found = self.levels.iter().position(|level| *level == self.depth);
        NodeId(found.unwrap_or(0) as u32)
    }

    /// Returns the root.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// Returns the parent of a node; `None` for the root.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.parents[node.index()]
    }

    /// Returns a node and everybody below it.
    pub fn subtree(&self, node: NodeId) -> Vec<NodeId> {
        let mut found = vec![node];
        let mut next = 0;
        while let Some(&parent) = found.get(next) {
            let ids = (0..self.parents.len() as u32).map(NodeId);
            found.extend(ids.filter(|id| self.parent(*id) == Some(parent)));
            next += 1;
        }
        found
    }

    /// Returns the largest distance of a node from the root.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns a node's place.
    pub fn position(&self, graph: &Graph, node: NodeId) -> TreePosition {
        let neighbours = graph.neighbours(node);
        let parent = self.parent(node);
        let is_child = |k: &usize| self.parent(neighbours[*k]) == Some(node);
        TreePosition {
            parent: neighbours.iter().position(|next| Some(*next) == parent),
            children: (0..neighbours.len()).filter(is_child).collect(),
            level: self.levels[node.index()],
            depth: self.depth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Topology;

    fn tree(topology: &Topology, nodes: usize) -> (Graph, SpanningTree) {
        let graph = Graph::new(topology, nodes).unwrap();
        let tree = SpanningTree::of(&graph);
        (graph, tree)
    }

    #[test]
    fn depths_of_known_graphs_are_half_their_diameters() {
        for (topology, nodes, depth) in [
            (Topology::Ring, 5, 2),
            (Topology::Ring, 20, 10),
            (Topology::Path, 7, 3),
            (Topology::Path, 2, 1),
            (Topology::Star, 9, 1),
            (Topology::Complete, 6, 1),
        ] {
            assert_eq!(tree(&topology, nodes).1.depth(), depth, "{topology:?}");
        }
    }

    #[test]
    fn a_subtree_holds_the_subtrees_of_its_children() {
        let (graph, tree) = tree(&Topology::Grid { width: 6 }, 30);
        assert_eq!(tree.subtree(tree.root()).len(), 30);
        for node in graph.nodes() {
            let children = graph.neighbours(node).iter();
            let children = children.filter(|child| tree.parent(**child) == Some(node));
            let below: usize = children.map(|child| tree.subtree(*child).len()).sum();
            assert_eq!(tree.subtree(node).len(), 1 + below);
        }
    }

    #[test]
    fn every_node_but_the_root_has_one_parent_a_level_nearer() {
        let (graph, tree) = tree(&Topology::Grid { width: 6 }, 30);
        let mut edges = 0;
        for node in graph.nodes() {
            let position = tree.position(&graph, node);
            assert_eq!(position.parent.is_none(), node == tree.root());
            for &child in &position.children {
                let child = graph.neighbours(node)[child];
                assert_eq!(tree.parent(child), Some(node));
                assert_eq!(tree.position(&graph, child).level, position.level + 1);
                edges += 1;
            }
        }
        assert_eq!(edges, graph.len() - 1);
    }
}
