//! Networks for tests: rows as dense vectors, algorithms from a closure, no noise unless asked for.
#![allow(dead_code, reason = "each test uses its part")]

pub mod matrix;

use std::sync::Arc;

use radmm::algorithm::Algorithm;
use radmm::algorithm::baseline::Local;
use radmm::curator::{
    Curator, CuratorConfig, NoiseKey, NormPolicy, Shard, ShardBuilder, WarmStart,
};
use radmm::exec::Sequential;
use radmm::graph::{Graph, NodeId, Topology};
use radmm::node::{Node, NodeConfig};
use radmm::privacy::{Bound, Budget, Ledger, Mechanism};
use radmm::problem::{Loss, Problem};
use radmm::sim::{Simulation, Snapshot};

/// One party's rows, and their labels.
pub type Rows = (Vec<Vec<f64>>, Vec<bool>);

/// Everything that the parties of a test agree on.
pub struct Network {
    pub rows: Vec<Rows>,
    pub neighbours: Vec<Vec<u32>>,
    pub loss: Loss,
    pub weight: f64,
    pub ridge: f64,
    pub iterations: u32,
    pub mechanism: Mechanism,
    pub budget: Budget,
    pub tolerance: f64,
    pub seed: u64,
}

impl Network {
    pub fn new(rows: Vec<Rows>, neighbours: Vec<Vec<u32>>, iterations: u32) -> Self {
        Self {
            rows,
            neighbours,
            loss: Loss::Logistic,
            weight: 3.0,
            ridge: 0.2,
            iterations,
            mechanism: Mechanism::None,
            budget: Budget::unlimited(0.0).unwrap(),
            tolerance: 1e-12,
            seed: 1,
        }
    }

    pub fn columns(&self) -> usize {
        self.rows[0].0[0].len()
    }

    pub fn problem(&self) -> Problem {
        Problem {
            loss: self.loss,
            weight: self.weight,
            ridge: self.ridge,
            nodes: self.rows.len() as u32,
            tolerance: self.tolerance,
            shape: None,
        }
    }

    pub fn nodes(&self, algorithm: impl Fn(usize) -> Box<dyn Algorithm>) -> Vec<Node> {
        self.replica(&self.shards(), 0, algorithm)
    }

    pub fn shards(&self) -> Vec<Arc<Shard>> {
        self.rows.iter().map(|rows| shard(rows).into()).collect()
    }

    /// The nodes of one repetition, which share their rows with those of others.
    pub fn replica(
        &self,
        shards: &[Arc<Shard>],
        repetition: u32,
        algorithm: impl Fn(usize) -> Box<dyn Algorithm>,
    ) -> Vec<Node> {
        (0..self.rows.len())
            .map(|i| {
                let config = CuratorConfig {
                    problem: self.problem(),
                    mechanism: self.mechanism,
                    ledger: Ledger::new(self.budget, Bound::Tight),
                    noise: NoiseKey::repeating(self.seed, repetition, i as u32),
                };
                Node::new(NodeConfig {
                    id: NodeId(i as u32),
                    neighbours: self.neighbours[i].iter().map(|&j| NodeId(j)).collect(),
                    iterations: self.iterations,
                    start: vec![0.0; self.columns()],
                    algorithm: algorithm(i),
                    curator: Curator::simulated(shards[i].clone(), config)
                        .unwrap()
                        .with_warm_start(WarmStart::default()),
                })
                .unwrap()
            })
            .collect()
    }

    pub fn simulation(&self, algorithm: impl Fn(usize) -> Box<dyn Algorithm>) -> Simulation {
        Simulation::new(self.nodes(algorithm), self.iterations).unwrap()
    }
}

pub fn shard((rows, labels): &Rows) -> Shard {
    let mut builder = ShardBuilder::new(rows[0].len(), NormPolicy::Clip);
    for (row, &label) in rows.iter().zip(labels) {
        let entries: Vec<_> = row
            .iter()
            .enumerate()
            .map(|(k, &x)| (k as u32, x))
            .collect();
        builder.push(&entries, label).unwrap();
    }
    builder.finish().unwrap()
}

/// Runs to the end and returns what was seen on the way.
pub fn run(simulation: &mut Simulation) -> Vec<Snapshot> {
    simulation.run(&Sequential).map(Result::unwrap).collect()
}

pub fn models(simulation: &Simulation) -> Vec<Vec<f64>> {
    simulation
        .nodes()
        .map(|node| node.model().values().to_vec())
        .collect()
}

/// Invented rows with something to learn, the same on every call: nodes see different parts of the plane.
pub fn invented(nodes: usize, rows: usize, columns: usize) -> Vec<Rows> {
    let noise = |n: usize| {
        let x = ((n as f64) * 12.9898).sin() * 43758.5453;
        2.0 * (x - x.floor()) - 1.0
    };
    (0..nodes)
        .map(|i| {
            let row = |r: usize| -> Vec<f64> {
                let n = (i * rows + r) * (columns + 1) + 1;
                let raw: Vec<f64> = (0..columns)
                    .map(|k| noise(n + k) + if k == i % columns { 0.5 } else { 0.0 })
                    .collect();
                let norm = raw.iter().map(|x| x * x).sum::<f64>().sqrt().max(1.0);
                raw.iter().map(|x| x / norm).collect()
            };
            let all: Vec<Vec<f64>> = (0..rows).map(row).collect();
            let labels = all
                .iter()
                .enumerate()
                .map(|(r, x)| x[0] - 0.7 * x[1] + 0.3 * noise(7919 * (i * rows + r) + 3) > 0.1)
                .collect();
            (all, labels)
        })
        .collect()
}

/// The minimiser of `Σ_i O_i`, for parties with equally many rows: one solve over all rows, without any network.
pub fn centralised(network: &Network) -> Vec<f64> {
    let count = network.rows.len();
    let together: Rows = (
        network.rows.iter().flat_map(|r| r.0.clone()).collect(),
        network.rows.iter().flat_map(|r| r.1.clone()).collect(),
    );
    // Two copies, since a network has at least two parties: each minimises N·C/(N·B) Σ L + ½ρ‖f‖² for itself.
    let alone = Network {
        rows: vec![together.clone(), together],
        neighbours: vec![vec![1], vec![0]],
        weight: network.weight * count as f64,
        ridge: network.ridge * 2.0,
        iterations: 1,
        ..Network::new(Vec::new(), Vec::new(), 1)
    };
    let mut simulation = alone.simulation(|_| Box::new(Local::new(0.0)));
    run(&mut simulation);
    models(&simulation).swap_remove(0)
}

/// The largest distance of a model from `target`.
pub fn distance(simulation: &Simulation, target: &[f64]) -> f64 {
    let squares =
        |model: &Vec<f64>| -> f64 { model.iter().zip(target).map(|(a, b)| (a - b).powi(2)).sum() };
    models(simulation)
        .iter()
        .map(squares)
        .fold(0.0, f64::max)
        .sqrt()
}

pub fn neighbours(topology: &Topology, nodes: usize) -> Vec<Vec<u32>> {
    let graph = Graph::new(topology, nodes).unwrap();
    let of = |i| graph.neighbours(i).iter().map(|j| j.0).collect();
    graph.nodes().map(of).collect()
}

/// Every shape of graph that there is, on ten nodes.
pub fn topologies() -> Vec<(&'static str, Topology)> {
    let edges = vec![
        [0, 1],
        [1, 2],
        [2, 0],
        [2, 3],
        [3, 4],
        [4, 5],
        [5, 6],
        [6, 3],
        [6, 7],
        [7, 8],
        [7, 9],
    ];
    vec![
        ("ring", Topology::Ring),
        ("path", Topology::Path),
        ("star", Topology::Star),
        ("complete", Topology::Complete),
        ("grid 2 × 5", Topology::Grid { width: 5 }),
        (
            "random p = 0.3",
            Topology::Random {
                probability: 0.3,
                seed: 1,
            },
        ),
        (
            "random regular, degree 3",
            Topology::Regular { degree: 3, seed: 1 },
        ),
        (
            "small world",
            Topology::SmallWorld {
                degree: 4,
                rewire: 0.2,
                seed: 1,
            },
        ),
        ("explicit edges", Topology::Edges { edges }),
    ]
}
