//! The shapes a graph can have, and how each is made.
//!
//! All parties of a study make the graph for themselves, from its topology alone. So the same seed
//! must give the same graph on every machine and in every release of this library: random numbers
//! come from one ChaCha20 stream, kept apart from all others by its key, and logarithms from `libm`.

use rand::distr::OpenClosed01;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use super::{Graph, GraphError, MAX_EDGES};

/// Attempts to draw a connected graph from a random topology.
const DRAWS: u32 = 100;

/// Tries to mend one bad pair of a random regular graph. Each typically succeeds with a probability
/// of a quarter or more, so that to run out of them is to be in a dead end.
const MENDS: u32 = 1000;

const DOMAIN: &[u8; 16] = b"radmm graph v1\0\0";

type Edge = [u32; 2];

/// The shape of a graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "topology", rename_all = "kebab-case")]
pub enum Topology {
    /// Each node talks to the next, the last to the first.
    Ring,
    /// Each node talks to the next.
    Path,
    /// Node 0 talks to all others.
    Star,
    /// Everyone talks to everyone.
    Complete,
    /// A rectangle of `width` columns; neighbours left, right, above and below.
    Grid {
        /// Nodes in a row; it divides their number.
        width: u32,
    },
    /// Each pair talks with this probability, given that the graph is connected.
    Random {
        /// The probability of an edge; above 0 and at most 1.
        probability: f64,
        /// The seed of the generator.
        seed: u64,
    },
    /// Every node has the same number of neighbours, otherwise at random.
    Regular {
        /// Neighbours of a node; fewer than there are nodes. Degree times nodes is even.
        degree: u32,
        /// The seed of the generator.
        seed: u64,
    },
    /// A ring lattice with some edges rewired at random (Watts and Strogatz 1998).
    SmallWorld {
        /// Neighbours of a node before rewiring; even, and fewer than there are nodes.
        degree: u32,
        /// Probability that an edge is rewired.
        rewire: f64,
        /// The seed of the generator.
        seed: u64,
    },
    /// Exactly these.
    Edges {
        /// Pairs of nodes, each pair once, in either order.
        edges: Vec<[u32; 2]>,
    },
}

impl Topology {
    /// The graph of this shape with `n >= 2` nodes.
    pub(super) fn graph(&self, n: u32) -> Result<Graph, GraphError> {
        let edges = match *self {
            Self::Ring => ring(n),
            Self::Path => path(n),
            Self::Star => (1..n).map(|i| [0, i]).collect(),
            Self::Complete => {
                room(n, pairs(n))?;
                complete(n)
            }
            Self::Grid { width } => grid(n, width)?,
            Self::Random { probability, seed } => return random(n, probability, seed),
            Self::Regular { degree, seed } => return regular(n, degree, seed),
            Self::SmallWorld {
                degree,
                rewire,
                seed,
            } => return small_world(n, degree, rewire, seed),
            Self::Edges { ref edges } => {
                simple(n, edges)?;
                return connected(n, edges);
            }
        };
        connected(n, &edges)
    }
}

fn connected(n: u32, edges: &[Edge]) -> Result<Graph, GraphError> {
    Graph::connected(n, edges).map_err(|components| GraphError::Disconnected { components })
}

fn room(n: u32, edges: u64) -> Result<(), GraphError> {
    if edges <= MAX_EDGES {
        return Ok(());
    }
    let nodes = n as usize;
    Err(GraphError::TooManyEdges { nodes, edges })
}

fn pairs(n: u32) -> u64 {
    u64::from(n) * u64::from(n - 1) / 2
}

fn path(n: u32) -> Vec<Edge> {
    (1..n).map(|i| [i - 1, i]).collect()
}

fn ring(n: u32) -> Vec<Edge> {
    let mut edges = path(n);
    // Between two nodes, the way back is the way there.
    if n > 2 {
        edges.push([0, n - 1]);
    }
    edges
}

fn complete(n: u32) -> Vec<Edge> {
    (0..n)
        .flat_map(|i| (i + 1..n).map(move |j| [i, j]))
        .collect()
}

fn grid(n: u32, width: u32) -> Result<Vec<Edge>, GraphError> {
    if width == 0 || !n.is_multiple_of(width) {
        return Err(GraphError::GridWidth { nodes: n, width });
    }
    let (edges_across, edges_down) = (n - n / width, n - width);
    room(n, u64::from(edges_across) + u64::from(edges_down))?;
    let across = (1..n).filter(|i| i % width != 0).map(|i| [i - 1, i]);
    let down = (width..n).map(|i| [i - width, i]);
    Ok(across.chain(down).collect())
}

/// Refuses edges to nodes that do not exist, self-loops and edges given twice.
fn simple(n: u32, edges: &[Edge]) -> Result<(), GraphError> {
    for &edge in edges {
        let [i, j] = edge;
        if let Some(node) = [i, j].into_iter().find(|&node| node >= n) {
            let nodes = n;
            return Err(GraphError::UnknownNode { edge, node, nodes });
        }
        if i == j {
            return Err(GraphError::SelfLoop { edge });
        }
    }
    let mut sorted: Vec<_> = edges
        .iter()
        .enumerate()
        .map(|(place, &[i, j])| (i.min(j), i.max(j), place))
        .collect();
    sorted.sort_unstable();
    let repeats = sorted
        .windows(2)
        .filter(|w| (w[0].0, w[0].1) == (w[1].0, w[1].1));
    match repeats.map(|w| (w[1].2, w[0].2)).min() {
        None => Ok(()),
        Some((again, first)) => Err(GraphError::DuplicateEdge {
            first: edges[first],
            again: edges[again],
        }),
    }
}

/// Draws from one stream until a graph is connected.
fn first_connected(
    n: u32,
    seed: u64,
    mut draw: impl FnMut(&mut ChaCha20Rng) -> Option<Vec<Edge>>,
) -> Option<Graph> {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[16..].copy_from_slice(DOMAIN);
    let mut rng = ChaCha20Rng::from_seed(key);
    (0..DRAWS).find_map(|_| Graph::connected(n, &draw(&mut rng)?).ok())
}

fn random(n: u32, probability: f64, seed: u64) -> Result<Graph, GraphError> {
    if !(probability > 0.0 && probability <= 1.0) {
        return Err(GraphError::Probability { probability });
    }
    // There are fewer than 2⁵³ pairs, so the product is right to the last edges.
    room(n, (pairs(n) as f64 * probability) as u64)?;
    first_connected(n, seed, |rng| Some(random_pairs(n, probability, rng))).ok_or(
        GraphError::RandomDisconnected {
            draws: DRAWS,
            nodes: n,
            probability,
        },
    )
}

/// Each pair with the same probability `p`, in time proportional to nodes and edges.
///
/// In a row of all pairs, the number passed over before the next edge is geometric: it is
/// `⌊ln u / ln(1 - p)⌋` for `u` uniform in `(0, 1]` (Batagelj and Brandes 2005).
fn random_pairs(n: u32, p: f64, rng: &mut ChaCha20Rng) -> Vec<Edge> {
    let ln_miss = libm::log1p(-p);
    let mut edges = Vec::new();
    // The pairs are (0,1), (0,2), (1,2), (0,3), …: `(i, j)` with `i < j`.
    let (mut i, mut j) = (0_u64, 1_u64);
    loop {
        let u: f64 = rng.sample(OpenClosed01);
        i = i.saturating_add((libm::log(u) / ln_miss) as u64);
        while i >= j {
            i -= j;
            j += 1;
            if j >= u64::from(n) {
                return edges;
            }
        }
        edges.push([i as u32, j as u32]);
        i += 1;
    }
}

fn regular(n: u32, degree: u32, seed: u64) -> Result<Graph, GraphError> {
    let nodes = n;
    if !(1..n).contains(&degree) {
        return Err(GraphError::RegularDegree { nodes, degree });
    }
    let ends = u64::from(n) * u64::from(degree);
    if !ends.is_multiple_of(2) {
        return Err(GraphError::RegularOdd { nodes, degree });
    }
    if degree == 1 && n > 2 {
        return Err(GraphError::RegularPairs { nodes });
    }
    room(n, ends / 2)?;
    first_connected(n, seed, |rng| regular_pairs(n, degree, rng)).ok_or(
        GraphError::RegularDisconnected {
            draws: DRAWS,
            nodes,
            degree,
        },
    )
}

/// `degree` neighbours for every node; `None` in a dead end.
///
/// By symmetry every pair is as likely as any other. Every regular graph can come out, though small
/// ones not all equally often: what is mended is not drawn afresh, which at high degrees would never
/// end.
fn regular_pairs(n: u32, degree: u32, rng: &mut ChaCha20Rng) -> Option<Vec<Edge>> {
    // Two neighbours each make rings, and of many nodes seldom a single one: rather than draw again
    // and again, draw the ring.
    if degree == 2 {
        let mut order: Vec<u32> = (0..n).collect();
        order.shuffle(rng);
        let around = |[i, j]: Edge| [order[i as usize], order[j as usize]];
        return Some(ring(n).into_iter().map(around).collect());
    }
    // Pairing is easy as long as most nodes are strangers. Where most are neighbours, the strangers
    // make a sparse regular graph.
    let strangers = n - 1 - degree;
    if strangers < degree {
        Some(paired(n, strangers, rng)?.missing())
    } else {
        Some(paired(n, degree, rng)?.edges())
    }
}

/// Joins the ends of edges at random (Bollobás 1980), then mends each pair that would be a
/// self-loop or a double edge by switching ends with a good one (McKay and Wormald 1990).
fn paired(n: u32, degree: u32, rng: &mut ChaCha20Rng) -> Option<Neighbourhoods> {
    let mut ends: Vec<u32> = (0..n)
        .flat_map(|i| std::iter::repeat_n(i, degree as usize))
        .collect();
    ends.shuffle(rng);
    let mut near = Neighbourhoods::new(n, degree);
    let (pairs, _) = ends.as_chunks::<2>();
    let (mut good, bad): (Vec<Edge>, Vec<Edge>) =
        pairs.iter().partition(|&&[a, b]| near.join(a, b));
    for [a, b] in bad {
        let mut tries = MENDS;
        loop {
            tries = tries.checked_sub(1).filter(|_| !good.is_empty())?;
            let place = rng.random_range(0..good.len());
            let [mut c, mut d] = good[place];
            if rng.random() {
                (c, d) = (d, c);
            }
            // The two new pairs cannot be the same: that would take the bad pair to be the good
            // one over again, and then they are joined already.
            if near.joined(a, c) || near.joined(b, d) {
                continue;
            }
            near.part(c, d);
            near.join(a, c);
            near.join(b, d);
            good[place] = [a, c];
            good.push([b, d]);
            break;
        }
    }
    Some(near)
}

fn small_world(n: u32, degree: u32, rewire: f64, seed: u64) -> Result<Graph, GraphError> {
    let nodes = n;
    if n < 3 {
        return Err(GraphError::TooFewNodes {
            nodes: n as usize,
            needed: 3,
        });
    }
    if !(2..n).contains(&degree) || degree % 2 == 1 {
        return Err(GraphError::SmallWorldDegree { nodes, degree });
    }
    if !(0.0..=1.0).contains(&rewire) {
        return Err(GraphError::Rewire { rewire });
    }
    room(n, u64::from(n) * u64::from(degree / 2))?;
    first_connected(n, seed, |rng| Some(rewired(n, degree, rewire, rng))).ok_or(
        GraphError::SmallWorldDisconnected {
            draws: DRAWS,
            nodes,
            degree,
            rewire,
        },
    )
}

/// A ring lattice, of whose edges some keep one end and move the other to any stranger.
fn rewired(n: u32, degree: u32, rewire: f64, rng: &mut ChaCha20Rng) -> Vec<Edge> {
    let mut near = Neighbourhoods::new(n, degree);
    let ahead = |i: u32, hops: u32| ((u64::from(i) + u64::from(hops)) % u64::from(n)) as u32;
    for hops in 1..=degree / 2 {
        for i in 0..n {
            near.join(i, ahead(i, hops));
        }
    }
    for hops in 1..=degree / 2 {
        for i in 0..n {
            if !rng.random_bool(rewire) {
                continue;
            }
            let strangers = n - near.0[i as usize].len() as u32;
            if strangers > 0 {
                let to = near.stranger(i, rng.random_range(0..strangers));
                near.part(i, ahead(i, hops));
                near.join(i, to);
            }
        }
    }
    near.edges()
}

/// A simple graph that can change: for every node its neighbours and itself, ascending. Since it
/// counts among its own neighbours, a self-loop is refused for the same reason as a double edge.
struct Neighbourhoods(Vec<Vec<u32>>);

impl Neighbourhoods {
    /// Nobody joined, with room for `degree` neighbours each.
    fn new(n: u32, degree: u32) -> Self {
        let alone = |i| {
            let mut near = Vec::with_capacity(degree as usize + 1);
            near.push(i);
            near
        };
        Self((0..n).map(alone).collect())
    }

    fn joined(&self, i: u32, j: u32) -> bool {
        self.0[i as usize].binary_search(&j).is_ok()
    }

    /// Joins two strangers; `false` if they are none.
    fn join(&mut self, i: u32, j: u32) -> bool {
        let strangers = !self.joined(i, j);
        if strangers {
            for (of, new) in [(i, j), (j, i)] {
                let near = &mut self.0[of as usize];
                let place = near.partition_point(|&k| k < new);
                near.insert(place, new);
            }
        }
        strangers
    }

    fn part(&mut self, i: u32, j: u32) {
        for (of, old) in [(i, j), (j, i)] {
            self.0[of as usize].retain(|&k| k != old);
        }
    }

    /// The node with `rank` strangers of `i` before it.
    fn stranger(&self, i: u32, rank: u32) -> u32 {
        let mut node = rank;
        for &near in &self.0[i as usize] {
            if near > node {
                break;
            }
            node += 1;
        }
        node
    }

    fn edges(&self) -> Vec<Edge> {
        let above = |(near, i): (&Vec<u32>, u32)| {
            let place = near.partition_point(|&j| j <= i);
            near[place..].iter().map(|&j| [i, j]).collect::<Vec<_>>()
        };
        self.0.iter().zip(0..).flat_map(above).collect()
    }

    /// The edges between all strangers.
    fn missing(&self) -> Vec<Edge> {
        let mut edges = complete(self.0.len() as u32);
        edges.retain(|&[i, j]| !self.joined(i, j));
        edges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::NodeId;

    fn build(topology: Topology, nodes: usize) -> Graph {
        Graph::new(&topology, nodes).unwrap()
    }

    fn refusal(topology: Topology, nodes: usize) -> String {
        Graph::new(&topology, nodes).unwrap_err().to_string()
    }

    fn random(probability: f64, seed: u64) -> Topology {
        Topology::Random { probability, seed }
    }

    fn regular(degree: u32, seed: u64) -> Topology {
        Topology::Regular { degree, seed }
    }

    fn small_world(degree: u32, rewire: f64, seed: u64) -> Topology {
        Topology::SmallWorld {
            degree,
            rewire,
            seed,
        }
    }

    fn edges(graph: &Graph) -> Vec<Edge> {
        graph.edges().map(|(i, j)| [i.0, j.0]).collect()
    }

    fn degrees(graph: &Graph) -> Vec<usize> {
        graph.nodes().map(|i| graph.degree(i)).collect()
    }

    /// Reads the graph only through its accessors, and takes none of its invariants for granted.
    fn assert_sound(graph: &Graph, nodes: usize) {
        assert_eq!(graph.len(), nodes);
        for i in graph.nodes() {
            let neighbours = graph.neighbours(i);
            assert!(
                neighbours.windows(2).all(|w| w[0] < w[1]),
                "sorted, no double edges"
            );
            assert!(!neighbours.contains(&i), "no self-loops");
            for &j in neighbours {
                assert!(graph.neighbours(j).binary_search(&i).is_ok(), "symmetric");
            }
        }
        let listed = edges(graph);
        assert!(listed.is_sorted() && listed.iter().all(|[i, j]| i < j));
        assert_eq!(listed.len(), graph.edge_count());
        assert_eq!(degrees(graph).iter().sum::<usize>(), 2 * listed.len());

        let mut reached = vec![false; nodes];
        reached[0] = true;
        let mut stack = vec![NodeId(0)];
        while let Some(i) = stack.pop() {
            for &j in graph.neighbours(i) {
                if !std::mem::replace(&mut reached[j.0 as usize], true) {
                    stack.push(j);
                }
            }
        }
        assert!(reached.into_iter().all(|r| r), "connected");
    }

    /// One of each, with sizes that suit it.
    fn zoo() -> Vec<(Topology, usize)> {
        let mut zoo = Vec::new();
        for n in [2, 3, 4, 7, 50] {
            let fixed = [
                Topology::Ring,
                Topology::Path,
                Topology::Star,
                Topology::Complete,
            ];
            zoo.extend(fixed.map(|topology| (topology, n)));
            zoo.extend([0.3, 1.0].map(|p| (random(p, 1), n)));
        }
        for (width, n) in [(1, 5), (5, 5), (2, 4), (3, 12), (7, 63)] {
            zoo.push((Topology::Grid { width }, n));
        }
        for (degree, n) in [
            (1, 2),
            (2, 3),
            (2, 50),
            (3, 8),
            (5, 8),
            (4, 9),
            (9, 50),
            (40, 50),
        ] {
            zoo.push((regular(degree, 1), n));
        }
        for (degree, n) in [(2, 3), (2, 4), (4, 5), (4, 50), (48, 50)] {
            zoo.extend([0.0, 0.1, 1.0].map(|rewire| (small_world(degree, rewire, 1), n)));
        }
        zoo
    }

    #[test]
    fn every_graph_is_simple_symmetric_and_connected() {
        for (topology, n) in zoo() {
            assert_sound(&build(topology, n), n);
        }
    }

    #[test]
    fn fixed_shapes_have_their_edges() {
        assert_eq!(edges(&build(Topology::Ring, 2)), [[0, 1]]);
        assert_eq!(
            edges(&build(Topology::Ring, 4)),
            [[0, 1], [0, 3], [1, 2], [2, 3]]
        );
        assert_eq!(edges(&build(Topology::Path, 4)), [[0, 1], [1, 2], [2, 3]]);
        assert_eq!(edges(&build(Topology::Star, 4)), [[0, 1], [0, 2], [0, 3]]);
        assert_eq!(
            edges(&build(Topology::Complete, 3)),
            [[0, 1], [0, 2], [1, 2]]
        );
        assert_eq!(
            edges(&build(Topology::Grid { width: 3 }, 6)),
            [[0, 1], [0, 3], [1, 2], [1, 4], [2, 5], [3, 4], [4, 5]]
        );
        for n in [2, 3, 10, 51] {
            assert_eq!(
                build(Topology::Ring, n).edge_count(),
                if n == 2 { 1 } else { n }
            );
            assert_eq!(build(Topology::Path, n).edge_count(), n - 1);
            assert_eq!(build(Topology::Star, n).edge_count(), n - 1);
            assert_eq!(build(Topology::Complete, n).edge_count(), n * (n - 1) / 2);
        }
    }

    #[test]
    fn a_grid_one_wide_or_one_high_is_a_path() {
        let path = build(Topology::Path, 6);
        assert_eq!(build(Topology::Grid { width: 1 }, 6), path);
        assert_eq!(build(Topology::Grid { width: 6 }, 6), path);
    }

    #[test]
    fn certain_edges_make_a_complete_graph() {
        assert_eq!(build(random(1.0, 3), 9), build(Topology::Complete, 9));
    }

    #[test]
    fn regular_graphs_are_regular_at_every_degree() {
        for n in 3..=14 {
            for degree in (2..n).filter(|degree| n * degree % 2 == 0) {
                for seed in 0..20 {
                    let graph = build(regular(degree, seed), n as usize);
                    assert_sound(&graph, n as usize);
                    assert_eq!(degrees(&graph), vec![degree as usize; n as usize]);
                }
            }
        }
    }

    #[test]
    fn rewiring_keeps_the_number_of_edges() {
        for (degree, n) in [(4, 6), (4, 100), (10, 11), (10, 100), (98, 100)] {
            for rewire in [0.0, 0.2, 1.0] {
                let graph = build(small_world(degree, rewire, 5), n);
                assert_sound(&graph, n);
                assert_eq!(graph.edge_count(), n * degree as usize / 2);
            }
        }
    }

    #[test]
    fn a_small_world_without_rewiring_is_a_ring_lattice() {
        assert_eq!(build(small_world(2, 0.0, 5), 9), build(Topology::Ring, 9));
        let lattice = build(small_world(4, 0.0, 5), 9);
        assert_eq!(lattice.neighbours(NodeId(0)), [1, 2, 7, 8].map(NodeId));
        assert_eq!(lattice.neighbours(NodeId(4)), [2, 3, 5, 6].map(NodeId));
    }

    #[test]
    fn as_many_edges_are_rewired_as_asked() {
        let lattice = edges(&build(small_world(6, 0.0, 0), 3000));
        let world = edges(&build(small_world(6, 0.1, 8), 3000));
        let moved = world
            .iter()
            .filter(|e| lattice.binary_search(e).is_err())
            .count() as f64;
        // Binomial, but for about two edges that move to a place that another has left. Five
        // standard deviations: fails for fewer than one seed in a million.
        let (mean, sd) = (900.0, (900.0_f64 * 0.9).sqrt());
        assert!((moved - mean).abs() < 5.0 * sd, "{moved}");
    }

    #[test]
    fn a_random_graph_has_as_many_edges_as_it_should() {
        // Dense enough that all draws are connected, so that the number is binomial. At five
        // standard deviations, one seed in 1.7 million fails, so this test one time in 80,000.
        let (n, p) = (2000, 0.01);
        let pairs = (n * (n - 1) / 2) as f64;
        let sd = (pairs * p * (1.0 - p)).sqrt();
        for seed in 0..20 {
            let count = build(random(p, seed), n).edge_count() as f64;
            assert!((count - pairs * p).abs() < 5.0 * sd, "seed {seed}: {count}");
        }
    }

    #[test]
    fn every_pair_is_as_likely_in_a_random_graph() {
        let (n, seeds) = (6, 4000);
        let mut counts = vec![0_u32; n * n];
        for seed in 0..seeds {
            for [i, j] in edges(&build(random(0.4, seed), n)) {
                counts[i as usize * n + j as usize] += 1;
            }
        }
        counts.retain(|&count| count > 0);
        assert_eq!(counts.len(), 15);
        let q = f64::from(counts.iter().sum::<u32>()) / 15.0 / seeds as f64;
        let sd = (seeds as f64 * q * (1.0 - q)).sqrt();
        // Five standard deviations for each of 15 pairs: a false failure in 100,000.
        for count in counts {
            assert!(
                (f64::from(count) - q * seeds as f64).abs() < 5.0 * sd,
                "{count}"
            );
        }
    }

    #[test]
    fn every_pair_is_as_likely_in_a_regular_graph() {
        // Sparse (pairing), dense (the strangers are paired) and the ring.
        for (degree, n) in [(3, 8), (5, 8), (2, 8)] {
            let seeds = 4000;
            let mut counts = vec![0_u32; n * n];
            for seed in 0..seeds {
                for [i, j] in edges(&build(regular(degree, seed), n)) {
                    counts[i as usize * n + j as usize] += 1;
                }
            }
            counts.retain(|&count| count > 0);
            assert_eq!(counts.len(), 28);
            let q = f64::from(degree) / 7.0;
            let sd = (seeds as f64 * q * (1.0 - q)).sqrt();
            // Five standard deviations for each of 28 pairs, three times: a false failure in 20,000.
            for count in counts {
                assert!(
                    (f64::from(count) - q * seeds as f64).abs() < 5.0 * sd,
                    "{count}"
                );
            }
        }
    }

    #[test]
    fn the_seed_decides_the_graph() {
        let kinds: [fn(u64) -> Topology; 5] = [
            |seed| random(0.2, seed),
            |seed| regular(2, seed),
            |seed| regular(4, seed),
            |seed| regular(36, seed),
            |seed| small_world(4, 0.3, seed),
        ];
        for kind in kinds {
            assert_eq!(build(kind(7), 40), build(kind(7), 40));
            assert_ne!(build(kind(7), 40), build(kind(8), 40));
            // The high half of the seed counts too.
            assert_ne!(build(kind(7), 40), build(kind(7 + (1 << 32)), 40));
        }
    }

    #[test]
    fn a_seed_means_the_same_graph_in_every_release() {
        // Parties with different releases must agree on the graph. If a dependency breaks this,
        // mend the generator; if it must change, so must its domain and the study format.
        assert_eq!(
            edges(&build(random(0.4, 1), 6)),
            [
                [0, 1],
                [0, 2],
                [0, 3],
                [1, 2],
                [1, 3],
                [1, 4],
                [1, 5],
                [2, 5],
                [4, 5]
            ]
        );
        assert_eq!(
            edges(&build(regular(2, 1), 6)),
            [[0, 3], [0, 5], [1, 2], [1, 5], [2, 4], [3, 4]]
        );
        assert_eq!(
            edges(&build(regular(3, 1), 8)).concat(),
            [
                0, 2, 0, 3, 0, 4, 1, 4, 1, 5, 1, 7, 2, 6, 2, 7, 3, 5, 3, 6, 4, 6, 5, 7
            ]
        );
        assert_eq!(
            edges(&build(small_world(2, 0.5, 1), 7)),
            [[0, 1], [0, 5], [0, 6], [1, 2], [2, 3], [3, 4], [4, 5]]
        );
    }

    #[test]
    fn bipartite_are_the_graphs_without_odd_cycles() {
        for n in 2..20 {
            assert!(build(Topology::Path, n).is_bipartite());
            assert!(build(Topology::Star, n).is_bipartite());
            assert!(build(Topology::Grid { width: 3 }, 3 * n).is_bipartite());
            assert_eq!(build(Topology::Ring, n).is_bipartite(), n % 2 == 0);
            assert_eq!(build(Topology::Complete, n).is_bipartite(), n == 2);
        }
    }

    #[test]
    fn metropolis_weights_are_symmetric_and_leave_something_for_the_node() {
        for (topology, n) in zoo() {
            let graph = build(topology, n);
            for i in graph.nodes() {
                let weights = graph.metropolis(i);
                assert_eq!(weights.len(), graph.degree(i));
                // A node's own weight is at least `1 / (1 + Vᵢ)`, rounding apart.
                let own = 1.0 - weights.iter().sum::<f64>();
                assert!(own > 0.99 / (1 + graph.degree(i)) as f64);
                for (&j, w) in graph.neighbours(i).iter().zip(weights) {
                    let back = graph.neighbours(j).binary_search(&i).unwrap();
                    assert_eq!(graph.metropolis(j)[back], w);
                }
            }
        }
    }

    #[test]
    fn a_ragged_grid_is_refused() {
        for width in [0, 4, 11] {
            assert_eq!(
                refusal(Topology::Grid { width }, 10),
                format!(
                    "a grid of width {width} does not hold 10 nodes; \
                     choose a width that divides them"
                )
            );
        }
    }

    #[test]
    fn invalid_probabilities_are_rejected() {
        for p in [0.0, -0.1, 1.5, f64::NAN, f64::INFINITY] {
            assert_eq!(
                refusal(random(p, 1), 10),
                format!("invalid edge probability {p}: must be above 0 and at most 1")
            );
        }
        for p in [-0.1, 1.5, f64::NAN, f64::INFINITY] {
            assert_eq!(
                refusal(small_world(4, p, 1), 10),
                format!("invalid rewiring probability {p}: must be at least 0 and at most 1")
            );
        }
    }

    #[test]
    fn too_sparse_a_random_graph_is_refused_with_what_would_do() {
        assert_eq!(
            refusal(random(0.01, 1), 50),
            "no connected graph in 100 draws of 50 nodes with edge probability 0.01; \
             raise the probability (about ln(n)/n = 0.078 is needed)"
        );
        assert!(Graph::new(&random(0.078, 1), 50).is_ok());
        assert!(refusal(random(1e-300, 1), 100_000).ends_with("ln(n)/n = 0.00012 is needed)"));
    }

    #[test]
    fn impossible_degrees_are_refused() {
        for degree in [0, 10, u32::MAX] {
            assert_eq!(
                refusal(regular(degree, 1), 10),
                format!(
                    "10 nodes cannot have {degree} neighbours each; choose a degree from 1 to 9"
                )
            );
        }
        assert_eq!(
            refusal(regular(3, 1), 9),
            "9 nodes cannot have 3 neighbours each, since 9 times 3 is odd; make one of them even"
        );
        assert_eq!(
            refusal(regular(1, 1), 10),
            "degree 1 leaves 10 nodes in separate pairs; choose a degree of at least 2"
        );
        for degree in [0, 3, 10, u32::MAX] {
            assert_eq!(
                refusal(small_world(degree, 0.1, 1), 10),
                format!(
                    "a small world of 10 nodes cannot start from {degree} neighbours each; \
                     choose an even degree, at least 2 and below 10"
                )
            );
        }
        assert_eq!(
            refusal(small_world(2, 0.1, 1), 2),
            "2 nodes are too few; this topology needs at least 3"
        );
    }

    #[test]
    fn unlucky_draws_are_refused_with_what_would_do() {
        // No seed is known to get here, so the messages are read off the errors themselves.
        let regular = GraphError::RegularDisconnected {
            draws: DRAWS,
            nodes: 8,
            degree: 3,
        };
        assert_eq!(
            regular.to_string(),
            "no connected graph in 100 draws of 8 nodes with 3 neighbours each; \
             choose another seed or raise the degree"
        );
        let small_world = GraphError::SmallWorldDisconnected {
            draws: DRAWS,
            nodes: 1000,
            degree: 2,
            rewire: 1.0,
        };
        assert_eq!(
            small_world.to_string(),
            "no connected graph in 100 draws of a small world of 1000 nodes with degree 2 \
             and rewiring probability 1; raise the degree (4 is nearly always enough) or lower \
             the rewiring probability"
        );
    }

    #[test]
    fn too_many_edges_are_refused_before_they_are_made() {
        let n = 100_000;
        for (topology, edges) in [
            (Topology::Complete, 4_999_950_000_u64),
            (random(0.5, 1), 2_499_975_000),
            (regular(50_000, 1), 2_500_000_000),
            (small_world(50_000, 0.1, 1), 2_500_000_000),
        ] {
            let error = Graph::new(&topology, n).unwrap_err();
            assert_eq!(error, GraphError::TooManyEdges { nodes: n, edges });
        }
        let grid = Graph::new(&Topology::Grid { width: 1 << 13 }, 1 << 27);
        assert!(matches!(grid, Err(GraphError::TooManyEdges { .. })));
    }

    #[test]
    fn a_hundred_thousand_nodes_are_no_trouble() {
        let n = 100_000;
        assert_eq!(build(Topology::Ring, n).edge_count(), n);
        assert_eq!(build(Topology::Star, n).edge_count(), n - 1);
        assert_eq!(build(regular(2, 1), n).edge_count(), n);
        assert_eq!(build(regular(4, 1), n).edge_count(), 2 * n);
        assert_eq!(build(small_world(4, 1.0, 1), n).edge_count(), 2 * n);
        assert_sound(&build(random(2e-4, 1), n), n);
    }
}
