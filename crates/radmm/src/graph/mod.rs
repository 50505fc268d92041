//! Communication graphs: undirected, simple, connected, with at least two nodes.
//!
//! In the symbols of the algorithms, node `i` has neighbours `𝒱ᵢ`, `Vᵢ` of them, and the Metropolis
//! weights `wᵢⱼ = 1 / (1 + max(Vᵢ, Vⱼ))` (Xiao, Boyd and Lall 2005).
//!
//! No other graph can be built, so nothing downstream checks again:
//!
//! ```
//! use radmm::graph::{Graph, GraphError, NodeId, Topology};
//!
//! let ring = Graph::new(&Topology::Ring, 5)?;
//! assert_eq!(ring.neighbours(NodeId(0)), [NodeId(1), NodeId(4)]);
//!
//! let split = Topology::Edges { edges: vec![[0, 1], [4, 1], [2, 3]] };
//! assert_eq!(
//!     Graph::new(&split, 5).unwrap_err().to_string(),
//!     "the edges leave 2 separate components: {0, 1, 4} and {2, 3}; add an edge between them",
//! );
//! # Ok::<(), GraphError>(())
//! ```

use std::fmt;

use serde::Serialize;
use thiserror::Error;

pub mod topology;
mod tree;
mod weights;

pub use topology::Topology;
pub use tree::{SpanningTree, TreePosition};

/// The largest number of edges. Building such a graph takes a few gigabytes; a larger one is refused rather than left to
/// exhaust the memory.
pub(super) const MAX_EDGES: u64 = 1 << 27;

/// A party's place in the graph, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl NodeId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// An undirected, simple, connected graph of at least two nodes, numbered from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The neighbours of node `i` are `adjacent[starts[i]..starts[i + 1]]`, ascending.
    starts: Vec<usize>,
    adjacent: Vec<NodeId>,
}

/// The reason why a graph cannot be built.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum GraphError {
    /// There are too few nodes for the topology.
    #[error("{nodes} nodes are too few; this topology needs at least {needed}")]
    TooFewNodes {
        /// The number of nodes.
        nodes: usize,
        /// The least number of nodes.
        needed: usize,
    },
    /// The graph would not fit in memory.
    #[error(
        "{nodes} nodes with {edges} edges are too large a graph, the limit is {} edges; \
         use fewer nodes or a sparser topology",
        MAX_EDGES
    )]
    TooManyEdges {
        /// The number of nodes.
        nodes: usize,
        /// The edges that the graph would have (for a random graph, on average; for too many
        /// nodes, at least).
        edges: u64,
    },
    /// The rows of a grid would not all be full.
    #[error(
        "a grid of width {width} does not hold {nodes} nodes; choose a width that divides them"
    )]
    GridWidth {
        /// The number of nodes.
        nodes: u32,
        /// Nodes in a row.
        width: u32,
    },
    /// The probability of an edge is invalid.
    #[error("invalid edge probability {probability}: must be above 0 and at most 1")]
    Probability {
        /// The probability of an edge.
        probability: f64,
    },
    /// A random graph is too sparse to be connected.
    #[error(
        "no connected graph in {draws} draws of {nodes} nodes with edge probability {probability}; \
         raise the probability (about ln(n)/n = {} is needed)",
        connectivity_threshold(*nodes)
    )]
    RandomDisconnected {
        /// The number of draws before giving up.
        draws: u32,
        /// The number of nodes.
        nodes: u32,
        /// The probability of an edge.
        probability: f64,
    },
    /// The degree of a regular graph is out of range.
    #[error("{nodes} nodes cannot have {degree} neighbours each; choose a degree from 1 to {}", nodes - 1)]
    RegularDegree {
        /// The number of nodes.
        nodes: u32,
        /// Neighbours of a node.
        degree: u32,
    },
    /// The degrees of a regular graph add up to an odd number.
    #[error(
        "{nodes} nodes cannot have {degree} neighbours each, since {nodes} times {degree} is odd; \
         make one of them even"
    )]
    RegularOdd {
        /// The number of nodes.
        nodes: u32,
        /// Neighbours of a node.
        degree: u32,
    },
    /// Nodes with one neighbour each form separate pairs.
    #[error("degree 1 leaves {nodes} nodes in separate pairs; choose a degree of at least 2")]
    RegularPairs {
        /// The number of nodes.
        nodes: u32,
    },
    /// No draw of a random regular graph was connected, though nearly all are.
    #[error(
        "no connected graph in {draws} draws of {nodes} nodes with {degree} neighbours each; \
         choose another seed or raise the degree"
    )]
    RegularDisconnected {
        /// The number of draws before giving up.
        draws: u32,
        /// The number of nodes.
        nodes: u32,
        /// Neighbours of a node.
        degree: u32,
    },
    /// The degree of a small world is not even, or out of range.
    #[error(
        "a small world of {nodes} nodes cannot start from {degree} neighbours each; \
         choose an even degree, at least 2 and below {nodes}"
    )]
    SmallWorldDegree {
        /// The number of nodes.
        nodes: u32,
        /// Neighbours of a node before rewiring.
        degree: u32,
    },
    /// The probability of rewiring is invalid.
    #[error("invalid rewiring probability {rewire}: must be at least 0 and at most 1")]
    Rewire {
        /// Probability that an edge is rewired.
        rewire: f64,
    },
    /// No draw of a small world was connected.
    #[error(
        "no connected graph in {draws} draws of a small world of {nodes} nodes with degree {degree} \
         and rewiring probability {rewire}; raise the degree (4 is nearly always enough) or lower \
         the rewiring probability"
    )]
    SmallWorldDisconnected {
        /// The number of draws before giving up.
        draws: u32,
        /// The number of nodes.
        nodes: u32,
        /// Neighbours of a node before rewiring.
        degree: u32,
        /// Probability that an edge is rewired.
        rewire: f64,
    },
    /// An edge leads to a node that does not exist.
    #[error(
        "edge {edge:?} names node {node}, but {nodes} nodes are numbered 0 to {}; \
         correct the edge or add nodes",
        nodes - 1
    )]
    UnknownNode {
        /// The edge as given.
        edge: [u32; 2],
        /// The end that does not exist.
        node: u32,
        /// The number of nodes.
        nodes: u32,
    },
    /// An edge leads from a node to itself.
    #[error("edge {edge:?} joins node {} to itself; remove it", edge[0])]
    SelfLoop {
        /// The edge as given.
        edge: [u32; 2],
    },
    /// An edge is given twice, in the same or the other direction.
    #[error("edge {again:?} repeats edge {first:?}; remove one of them")]
    DuplicateEdge {
        /// The first of the two, as given.
        first: [u32; 2],
        /// The second of the two, as given.
        again: [u32; 2],
    },
    /// Some nodes cannot reach some others.
    #[error(
        "the edges leave {} separate components: {}; add {} between them",
        .components.len(),
        listed(.components),
        if .components.len() == 2 { "an edge" } else { "edges" }
    )]
    Disconnected {
        /// The components, each ascending, in the order of their first nodes.
        components: Vec<Vec<NodeId>>,
    },
}

impl Graph {
    /// A graph of this shape, with nodes `0..nodes`.
    ///
    /// The same topology and number of nodes always give the same graph. A random topology is
    /// drawn again, at most 100 times in all, until it comes out connected.
    pub fn new(topology: &Topology, nodes: usize) -> Result<Self, GraphError> {
        if nodes < 2 {
            return Err(GraphError::TooFewNodes { nodes, needed: 2 });
        }
        match u32::try_from(nodes) {
            Ok(n) if u64::from(n) <= MAX_EDGES => topology.graph(n),
            // Connected graphs have at least this many edges.
            _ => Err(GraphError::TooManyEdges {
                nodes,
                edges: nodes as u64 - 1,
            }),
        }
    }

    /// The graph of one node, which has no neighbours.
    pub fn single() -> Self {
        Self {
            starts: vec![0, 0],
            adjacent: Vec::new(),
        }
    }

    /// The graph of these edges if it is connected, or else its components.
    ///
    /// The one place where a graph with edges is made. The caller sees to it that the edges are simple and
    /// that their nodes exist.
    pub(super) fn connected(nodes: u32, edges: &[[u32; 2]]) -> Result<Self, Vec<Vec<NodeId>>> {
        let n = nodes as usize;
        let mut starts = vec![0; n + 1];
        for &i in edges.as_flattened() {
            starts[i as usize + 1] += 1;
        }
        for i in 0..n {
            starts[i + 1] += starts[i];
        }
        let mut free = starts.clone();
        let mut adjacent = vec![NodeId(0); starts[n]];
        for &[i, j] in edges {
            for (from, to) in [(i as usize, j), (j as usize, i)] {
                adjacent[free[from]] = NodeId(to);
                free[from] += 1;
            }
        }
        for i in 0..n {
            adjacent[starts[i]..starts[i + 1]].sort_unstable();
        }
        let graph = Self { starts, adjacent };
        let components = graph.components();
        if components.len() == 1 {
            Ok(graph)
        } else {
            Err(components)
        }
    }

    fn components(&self) -> Vec<Vec<NodeId>> {
        let mut seen = vec![false; self.len()];
        let mut components = Vec::new();
        for start in self.nodes() {
            if seen[start.index()] {
                continue;
            }
            seen[start.index()] = true;
            let mut members = vec![start];
            let mut visited = 0;
            while visited < members.len() {
                for &j in self.neighbours(members[visited]) {
                    if !seen[j.index()] {
                        seen[j.index()] = true;
                        members.push(j);
                    }
                }
                visited += 1;
            }
            members.sort_unstable();
            components.push(members);
        }
        components
    }

    /// The number of nodes, at least two.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Never: a graph has at least two nodes.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// All nodes, ascending.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        // There are at most `MAX_EDGES` nodes, so their number fits.
        (0..self.len() as u32).map(NodeId)
    }

    /// The neighbours `𝒱ᵢ` of a node of this graph, ascending.
    ///
    /// # Panics
    ///
    /// If the graph has no such node.
    pub fn neighbours(&self, node: NodeId) -> &[NodeId] {
        let i = node.index();
        &self.adjacent[self.starts[i]..self.starts[i + 1]]
    }

    /// The number `Vᵢ` of neighbours of a node of this graph, at least one.
    ///
    /// # Panics
    ///
    /// If the graph has no such node.
    pub fn degree(&self, node: NodeId) -> usize {
        self.neighbours(node).len()
    }

    /// All edges `(i, j)` with `i < j`, ascending.
    pub fn edges(&self) -> impl Iterator<Item = (NodeId, NodeId)> {
        self.nodes().flat_map(|i| {
            let neighbours = self.neighbours(i);
            let above = neighbours.partition_point(|&j| j < i);
            neighbours[above..].iter().map(move |&j| (i, j))
        })
    }

    /// The number of edges.
    pub fn edge_count(&self) -> usize {
        self.adjacent.len() / 2
    }

    /// Whether the nodes fall into two sides with no edge within a side.
    pub fn is_bipartite(&self) -> bool {
        let mut side = vec![None; self.len()];
        side[0] = Some(false);
        let mut reached = vec![NodeId(0)];
        while let Some(i) = reached.pop() {
            // A node is given its side before it is reached.
            let other = side[i.index()].map(|s: bool| !s);
            for &j in self.neighbours(i) {
                if side[j.index()].is_none() {
                    side[j.index()] = other;
                    reached.push(j);
                } else if side[j.index()] != other {
                    return false;
                }
            }
        }
        true
    }
}

/// `ln(n)/n`, the edge probability around which random graphs become connected (Erdős and Rényi
/// 1960), to two significant digits.
fn connectivity_threshold(nodes: u32) -> String {
    let n = f64::from(nodes);
    let p = libm::log(n) / n;
    let decimals = 1.0 - libm::floor(libm::log10(p));
    format!("{p:.0$}", decimals as usize)
}

fn listed(components: &[Vec<NodeId>]) -> String {
    let shown: Vec<String> = components.iter().take(5).map(|c| members(c)).collect();
    match (components.len() - shown.len(), shown.split_last()) {
        (0, Some((last, others))) => format!("{} and {last}", others.join(", ")),
        (hidden, _) => format!("{}, … and {hidden} more", shown.join(", ")),
    }
}

fn members(component: &[NodeId]) -> String {
    let shown: Vec<String> = component.iter().take(8).map(|i| i.0.to_string()).collect();
    match component.len() - shown.len() {
        0 => format!("{{{}}}", shown.join(", ")),
        hidden => format!("{{{}, … and {hidden} more}}", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_edges(nodes: usize, edges: &[[u32; 2]]) -> Result<Graph, GraphError> {
        let edges = edges.to_vec();
        Graph::new(&Topology::Edges { edges }, nodes)
    }

    fn refusal(nodes: usize, edges: &[[u32; 2]]) -> String {
        of_edges(nodes, edges).unwrap_err().to_string()
    }

    #[test]
    fn a_node_is_shown_by_its_number() {
        assert_eq!(NodeId(3).to_string(), "node 3");
    }

    #[test]
    fn edges_in_any_order_and_direction_give_the_same_graph() {
        let graph = of_edges(4, &[[3, 2], [0, 2], [1, 0]]).unwrap();
        assert_eq!(graph, of_edges(4, &[[0, 1], [2, 0], [2, 3]]).unwrap());
        assert_eq!(graph.len(), 4);
        assert!(!graph.is_empty());
        assert_eq!(graph.nodes().collect::<Vec<_>>(), [0, 1, 2, 3].map(NodeId));
        assert_eq!(graph.neighbours(NodeId(2)), [NodeId(0), NodeId(3)]);
        assert_eq!(graph.degree(NodeId(1)), 1);
        assert_eq!(graph.edge_count(), 3);
        assert_eq!(
            graph.edges().collect::<Vec<_>>(),
            [(0, 1), (0, 2), (2, 3)].map(|(i, j)| (NodeId(i), NodeId(j)))
        );
    }

    #[test]
    fn a_graph_has_two_nodes_or_more() {
        for nodes in [0, 1] {
            assert_eq!(
                refusal(nodes, &[]),
                format!("{nodes} nodes are too few; this topology needs at least 2")
            );
        }
        assert!(of_edges(2, &[[1, 0]]).is_ok());
    }

    #[test]
    fn a_graph_that_would_exhaust_the_memory_is_refused() {
        assert_eq!(
            refusal(usize::MAX, &[]),
            format!(
                "{} nodes with {} edges are too large a graph, the limit is 134217728 edges; \
                 use fewer nodes or a sparser topology",
                usize::MAX,
                usize::MAX - 1
            )
        );
    }

    #[test]
    fn a_bad_edge_is_named() {
        assert_eq!(
            refusal(3, &[[0, 1], [1, 3]]),
            "edge [1, 3] names node 3, but 3 nodes are numbered 0 to 2; \
             correct the edge or add nodes"
        );
        assert_eq!(
            refusal(3, &[[7, 7]]),
            "edge [7, 7] names node 7, but 3 nodes are numbered 0 to 2; \
             correct the edge or add nodes"
        );
        assert_eq!(
            refusal(3, &[[0, 1], [2, 2]]),
            "edge [2, 2] joins node 2 to itself; remove it"
        );
        assert_eq!(
            refusal(3, &[[1, 2], [0, 1], [2, 1]]),
            "edge [2, 1] repeats edge [1, 2]; remove one of them"
        );
        assert_eq!(
            refusal(3, &[[1, 2], [0, 1], [0, 1], [2, 1]]),
            "edge [0, 1] repeats edge [0, 1]; remove one of them"
        );
    }

    #[test]
    fn a_disconnected_graph_is_refused_with_its_components() {
        assert_eq!(
            refusal(5, &[[0, 1], [4, 1], [2, 3]]),
            "the edges leave 2 separate components: {0, 1, 4} and {2, 3}; add an edge between them"
        );
        assert_eq!(
            refusal(4, &[[3, 1]]),
            "the edges leave 3 separate components: {0}, {1, 3} and {2}; add edges between them"
        );
    }

    #[test]
    fn many_and_large_components_are_abbreviated() {
        let path: Vec<_> = (0..44).map(|i| [i, i + 1]).collect();
        assert_eq!(
            refusal(46, &path),
            "the edges leave 2 separate components: {0, 1, 2, 3, 4, 5, 6, 7, … and 37 more} \
             and {45}; add an edge between them"
        );
        assert_eq!(
            refusal(42, &[]),
            "the edges leave 42 separate components: {0}, {1}, {2}, {3}, {4}, … and 37 more; \
             add edges between them"
        );
    }

    #[test]
    fn only_odd_cycles_spoil_a_bipartition() {
        assert!(
            of_edges(4, &[[0, 1], [1, 2], [2, 3], [3, 0]])
                .unwrap()
                .is_bipartite()
        );
        assert!(
            !of_edges(4, &[[0, 1], [1, 2], [2, 0], [3, 0]])
                .unwrap()
                .is_bipartite()
        );
    }

    #[test]
    fn metropolis_weights_are_one_over_one_more_than_the_larger_degree() {
        let star_with_tail = of_edges(5, &[[0, 1], [0, 2], [0, 3], [3, 4]]).unwrap();
        assert_eq!(star_with_tail.metropolis(NodeId(0)), [0.25; 3]);
        assert_eq!(star_with_tail.metropolis(NodeId(3)), [0.25, 1.0 / 3.0]);
        assert_eq!(star_with_tail.metropolis(NodeId(4)), [1.0 / 3.0]);
    }

    proptest! {
        #[test]
        fn an_edge_list_gives_a_connected_graph_or_an_error(
            nodes in 2_u32..9,
            edges in prop::collection::vec([0_u32..9, 0_u32..9], 0..14),
        ) {
            let simple = edges.iter().enumerate().all(|(k, &[i, j])| {
                i != j
                    && i.max(j) < nodes
                    && edges[..k].iter().all(|&e| e != [i, j] && e != [j, i])
            });
            match of_edges(nodes as usize, &edges) {
                Ok(graph) => {
                    prop_assert!(simple);
                    prop_assert_eq!(parts(nodes, &edges), 1);
                    let mut expected: Vec<_> = edges
                        .iter()
                        .map(|&[i, j]| (NodeId(i.min(j)), NodeId(i.max(j))))
                        .collect();
                    expected.sort_unstable();
                    prop_assert_eq!(graph.edges().collect::<Vec<_>>(), expected);
                }
                Err(GraphError::Disconnected { components }) => {
                    prop_assert!(simple);
                    prop_assert!(components.len() > 1);
                    prop_assert_eq!(parts(nodes, &edges), components.len());
                    let mut all = components.concat();
                    all.sort_unstable();
                    prop_assert_eq!(all, (0..nodes).map(NodeId).collect::<Vec<_>>());
                }
                Err(_) => prop_assert!(!simple),
            }
        }

        #[test]
        fn every_simple_connected_edge_list_is_accepted(
            parents in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
            chords in prop::collection::btree_set((0_u32..12, 0_u32..12), 0..12),
        ) {
            // Random edge lists are seldom trees, so here each node hangs on an earlier one.
            let nodes = parents.len() as u32 + 1;
            let mut edges: Vec<_> = parents
                .iter()
                .zip(1_u32..)
                .map(|(parent, i)| [i, parent.index(i as usize) as u32])
                .collect();
            for (i, j) in chords {
                if i < j && j < nodes && !edges.contains(&[j, i]) {
                    edges.push([i, j]);
                }
            }
            let graph = of_edges(nodes as usize, &edges).unwrap();
            prop_assert_eq!(graph.edge_count(), edges.len());
        }
    }

    /// The number of components, by union-find.
    fn parts(nodes: u32, edges: &[[u32; 2]]) -> usize {
        let mut parent: Vec<u32> = (0..nodes).collect();
        let root = |parent: &[u32], mut i: u32| {
            while parent[i as usize] != i {
                i = parent[i as usize];
            }
            i
        };
        for &[i, j] in edges {
            let (i, j) = (root(&parent, i), root(&parent, j));
            parent[i as usize] = j;
        }
        (0..nodes).filter(|&i| root(&parent, i) == i).count()
    }
}
