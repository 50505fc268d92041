//! Parties to measure: nodes through the public interface, as whoever drives them makes them.

use std::sync::Arc;

use radmm::algorithm::Algorithm;
use radmm::algorithm::admm::{Admm, Penalty};
use radmm::algorithm::recycled::Recycled;
use radmm::algorithm::schedule::Schedule;
use radmm::curator::{
    Curator, CuratorConfig, NoiseKey, NormPolicy, Shard, ShardBuilder, WarmStart,
};
use radmm::graph::NodeId;
use radmm::node::{Node, NodeConfig, Output};
use radmm::privacy::{Bound, Budget, Ledger, Mechanism};
use radmm::problem::{Loss, Problem};
use radmm::protocol::message::Message;

use crate::rows::{COLUMNS, Source};

/// One party to be.
pub struct BenchParty {
    /// Its number.
    pub id: u32,
    /// In ascending order.
    pub neighbours: Vec<u32>,
    /// How many.
    pub iterations: u32,
    /// What it runs.
    pub algorithm: Box<dyn Algorithm>,
    /// What is minimised.
    pub problem: Problem,
    /// How its answers are protected.
    pub mechanism: Mechanism,
    /// Its rows.
    pub shard: Arc<Shard>,
}

impl BenchParty {
    /// As a node whose noise repeats.
    pub fn node(self) -> Node {
        let budget = Budget::unlimited(0.0).unwrap();
        let columns = self.shard.columns();
        let config = CuratorConfig {
            problem: self.problem,
            mechanism: self.mechanism,
            ledger: Ledger::new(budget, Bound::Tight),
            noise: NoiseKey::repeating(1, 0, self.id),
        };
        Node::new(NodeConfig {
            id: NodeId(self.id),
            neighbours: self.neighbours.into_iter().map(NodeId).collect(),
            iterations: self.iterations,
            start: vec![0.0; columns],
            algorithm: self.algorithm,
            curator: Curator::simulated(self.shard, config)
                .unwrap()
                .with_warm_start(WarmStart::default()),
        })
        .unwrap()
    }
}

/// Logistic loss, answers on the grid, certified to 10⁻⁸.
pub fn problem(weight: f64, ridge: f64, nodes: u32) -> Problem {
    Problem {
        loss: Loss::Logistic,
        weight,
        ridge,
        nodes,
        tolerance: 1e-8,
        shape: None,
    }
}

/// R-ADMM with one recycled step a data step.
pub fn recycled(penalty: f64, damping: f64) -> Box<dyn Algorithm> {
    let admm = Admm::new(Penalty::common(Schedule::Constant(penalty)), COLUMNS);
    Box::new(Recycled::new(admm, Schedule::Constant(damping), 1))
}

/// The first rows of a source.
pub fn shard(rows: usize, seed: u64) -> Shard {
    let mut builder = ShardBuilder::new(COLUMNS, NormPolicy::Unit);
    for (entries, label) in Source::new(seed).take(rows) {
        builder.push(&entries, label).unwrap();
    }
    builder.finish().unwrap()
}

/// Five parties that all hear one another. Node 0 has the rows to measure, its neighbours have few, so that it alone is slow.
pub struct Neighbourhood {
    nodes: Vec<Node>,
    said: Vec<Message>,
}

impl Neighbourhood {
    /// `C`.
    pub const WEIGHT: f64 = 1750.0;
    /// `ρ`.
    pub const RIDGE: f64 = 5.0;
    /// Of node 0.
    pub const NEIGHBOURS: u32 = 4;

    /// Parties that have not said anything yet.
    pub fn new(
        rows: Arc<Shard>,
        iterations: u32,
        mechanism: Mechanism,
        algorithm: &dyn Fn() -> Box<dyn Algorithm>,
    ) -> Self {
        let few = Arc::new(shard(50, 1));
        let nodes = 0..=Self::NEIGHBOURS;
        let party = |id: u32| BenchParty {
            id,
            neighbours: nodes.clone().filter(|&j| j != id).collect(),
            iterations,
            algorithm: algorithm(),
            problem: problem(Self::WEIGHT, Self::RIDGE, Self::NEIGHBOURS + 1),
            mechanism,
            shard: if id == 0 { rows.clone() } else { few.clone() },
        };
        let mut nodes: Vec<Node> = nodes.clone().map(|id| party(id).node()).collect();
        let said = nodes.iter_mut().flat_map(Node::start);
        Self {
            said: messages(said),
            nodes,
        }
    }

    /// Everyone hears what the others said last, and goes on; `receive` hands a message over to node 0.
    pub fn iterate(&mut self, receive: &mut dyn FnMut(&mut Node, Message) -> Vec<Output>) {
        let mut outputs = Vec::new();
        for message in &self.said {
            for node in self.nodes.iter_mut().filter(|n| n.id() != message.from) {
                outputs.extend(match node.id() {
                    NodeId(0) => receive(node, message.clone()),
                    _ => node.receive(message.clone()).unwrap(),
                });
            }
        }
        self.said = messages(outputs);
    }

    /// The party with the rows.
    pub fn first(&self) -> &Node {
        &self.nodes[0]
    }
}

fn messages(outputs: impl IntoIterator<Item = Output>) -> Vec<Message> {
    let said = outputs.into_iter().filter_map(|output| match output {
        Output::Broadcast(message) => Some(message),
        _ => None,
    });
    said.collect()
}
