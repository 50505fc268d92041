//! A simulation needs at most twice the memory of its rows and of the vectors that its algorithm goes on from.
//!
//! The allocator counts what is asked for, so that the numbers are the same on every machine. It is the binary's only test,
//! for it counts every thread.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use peak_alloc::PeakAlloc;
use radmm::algorithm::Algorithm;
use radmm::algorithm::admm::{Admm, Penalty};
use radmm::algorithm::dgd::Dgd;
use radmm::algorithm::recycled::Recycled;
use radmm::algorithm::schedule::Schedule;
use radmm::curator::{Curator, CuratorConfig, NoiseKey, NormPolicy, Shard, ShardBuilder};
use radmm::exec::Sequential;
use radmm::graph::{Graph, NodeId, Topology};
use radmm::node::{Node, NodeConfig};
use radmm::privacy::{Bound, Budget, Ledger, Mechanism, NoiseDistribution, NoiseScaling};
use radmm::problem::{Loss, Problem};
use radmm::sim::Replicas;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const NODES: usize = 3000;
const ROWS: usize = 100;
const COLUMNS: usize = 105;
const ITERATIONS: u32 = 3;

/// What does not grow with the nodes: the solver's matrices, a table of orders.
const CONSTANT: usize = 1 << 19;

/// Thirteen non-zeros a row.
fn shard(node: usize) -> Shard {
    let mut builder = ShardBuilder::new(COLUMNS, NormPolicy::Unit);
    for row in 0..ROWS {
        let column = |k: usize| (8 * k + (7 * node + 3 * row + k) % 8) as u32;
        let entries: Vec<(u32, f64)> = (0..13).map(|k| (column(k), 1.0)).collect();
        builder
            .push(&entries, (node + row).is_multiple_of(3))
            .unwrap();
    }
    builder.finish().unwrap()
}

struct Case {
    name: &'static str,
    replicas: u32,
    mechanism: Mechanism,
    delta: f64,
    make: fn() -> Box<dyn Algorithm>,
    /// Vectors that a node goes on from.
    vectors: usize,
}

fn admm() -> Admm {
    Admm::new(Penalty::common(Schedule::Constant(0.5)), COLUMNS)
}

fn cases() -> [Case; 3] {
    let gaussian = NoiseDistribution::Gaussian { sigma: 1.0 };
    let recycled = Case {
        name: "R-ADMM",
        replicas: 1,
        mechanism: Mechanism::Objective {
            law: gaussian,
            scale: NoiseScaling::Fixed,
        },
        delta: 1e-5,
        make: || Box::new(Recycled::new(admm(), Schedule::Constant(0.2), 1)),
        // f, λ, and a gradient at a point.
        vectors: 4,
    };
    [
        Case {
            name: "DGD",
            mechanism: Mechanism::Gradient { law: gaussian },
            make: || Box::new(Dgd::new(vec![0.2; 4], Schedule::Constant(0.01))),
            vectors: 1,
            ..recycled
        },
        Case {
            name: "R-ADMM, twice",
            replicas: 2,
            ..recycled
        },
        recycled,
    ]
}

impl Case {
    fn node(
        &self,
        repetition: u32,
        place: (NodeId, &[NodeId]),
        shard: &Arc<Shard>,
        ledger: &Ledger,
    ) -> Node {
        let (id, neighbours) = place;
        let terms = CuratorConfig {
            problem: Problem {
                loss: Loss::Logistic,
                weight: 2.0,
                ridge: 1.0,
                nodes: NODES as u32,
                tolerance: 1e-8,
                shape: None,
            },
            mechanism: self.mechanism,
            ledger: ledger.clone(),
            noise: NoiseKey::repeating(1, repetition, id.0),
        };
        Node::new(NodeConfig {
            id,
            neighbours: neighbours.to_vec(),
            iterations: ITERATIONS,
            start: vec![0.0; COLUMNS],
            algorithm: (self.make)(),
            curator: Curator::simulated(shard.clone(), terms).unwrap(),
        })
        .unwrap()
    }
}

#[test]
fn at_most_twice_the_rows_and_the_state_are_held() {
    let topology = Topology::Regular { degree: 4, seed: 1 };
    let graph = Graph::new(&topology, NODES).unwrap();
    let before = ALLOCATOR.current_usage();
    let shards: Vec<Arc<Shard>> = (0..NODES).map(|node| shard(node).into()).collect();
    let rows = ALLOCATOR.current_usage() - before;
    for case in cases() {
        // The shards are there before and after: what is counted is them and one simulation.
        ALLOCATOR.reset_peak_usage();
        let replica = |repetition| {
            let budget = Budget::unlimited(case.delta).unwrap();
            let ledger = Ledger::new(budget, Bound::Tight);
            let node = |id: NodeId| {
                let place = (id, graph.neighbours(id));
                case.node(repetition, place, &shards[id.0 as usize], &ledger)
            };
            graph.nodes().map(node).collect()
        };
        let replicas = (0..case.replicas).map(replica).collect();
        let mut simulation = Replicas::new(replicas, ITERATIONS).unwrap();
        let made: Vec<_> = simulation.run(&Sequential).flatten().collect();
        assert!(made.iter().all(|made| made.result.is_ok()));
        let peak = ALLOCATOR.peak_usage() - before;
        let state = case.replicas as usize * NODES * case.vectors * COLUMNS * 8;
        let ratio = peak as f64 / (rows + state) as f64;
        assert!(
            peak <= 2 * (rows + state) + CONSTANT,
            "{}: {peak} bytes, {ratio:.2} times rows and state",
            case.name
        );
        let kept = ALLOCATOR.current_usage() - before;
        assert!(kept >= rows + state, "{}: hollow", case.name);
    }
}
