//! Nodes over an unruly network: any order of delivery, and neighbours that lie.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "purity is asked of the core, not of its tests"
)]

mod support;

use std::collections::VecDeque;

use radmm::algorithm::Algorithm;
use radmm::algorithm::admm::{Admm, Penalty};
use radmm::algorithm::recycled::Recycled;
use radmm::algorithm::schedule::Schedule;
use radmm::exec::Sequential;
use radmm::graph::{NodeId, Topology};
use radmm::node::{Node, Output, ProtocolError};
use radmm::privacy::{Mechanism, NoiseDistribution, NoiseScaling};
use radmm::protocol::message::Message;
use radmm::sim::{PartyExecutor, PartyReplicas};
use support::{Network, invented, models, neighbours, run};

fn network() -> Network {
    Network {
        mechanism: Mechanism::Objective {
            law: NoiseDistribution::Gamma { rate: 1.0 },
            scale: NoiseScaling::Fixed,
        },
        ..Network::new(
            invented(6, 20, 3),
            neighbours(
                &Topology::Random {
                    probability: 0.5,
                    seed: 3,
                },
                6,
            ),
            21,
        )
    }
}

fn recycled(_: usize) -> Box<dyn Algorithm> {
    let admm = Admm::new(Penalty::common(Schedule::Constant(0.5)), 3);
    Box::new(Recycled::new(admm, Schedule::Constant(0.2), 1))
}

fn said(outputs: Vec<Output>) -> Vec<Message> {
    let message = |output| match output {
        Output::Broadcast(message) => Some(message),
        _ => None,
    };
    outputs.into_iter().filter_map(message).collect()
}

fn started() -> (Vec<Node>, Vec<Message>) {
    let mut nodes = network().nodes(recycled);
    let first = nodes
        .iter_mut()
        .flat_map(|node| said(node.start()))
        .collect();
    (nodes, first)
}

/// Delivers messages one at a time; `choose` picks the edge. Messages on one edge keep their order, as on any stream.
fn deliver(mut choose: impl FnMut(usize) -> usize) -> Vec<Node> {
    let (mut nodes, first) = started();
    let mut edges: Vec<(usize, usize, VecDeque<Message>)> = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        let edge = |j: &NodeId| (i, j.0 as usize, VecDeque::new());
        edges.extend(node.neighbours().iter().map(edge));
    }
    let mut fresh = first;
    loop {
        for message in fresh.drain(..) {
            for (from, _, queue) in &mut edges {
                if *from == message.from.0 as usize {
                    queue.push_back(message.clone());
                }
            }
        }
        let waiting: Vec<usize> = (0..edges.len())
            .filter(|&e| !edges[e].2.is_empty())
            .collect();
        if waiting.is_empty() {
            return nodes;
        }
        let (_, to, queue) = &mut edges[waiting[choose(waiting.len())]];
        let message = queue.pop_front().unwrap();
        fresh = said(nodes[*to].receive(message).unwrap());
    }
}

fn bits(nodes: &[Node]) -> Vec<Vec<u64>> {
    let node_bits = |node: &Node| {
        let values = node.model().values().iter().chain(node.dual().unwrap());
        values.map(|x| x.to_bits()).collect()
    };
    nodes.iter().map(node_bits).collect()
}

#[test]
fn any_order_of_delivery_gives_the_same_bits() {
    let in_order = bits(&deliver(|_| 0));
    assert_eq!(bits(&deliver(|count| count - 1)), in_order);
    for seed in 1..50u64 {
        let mut state = seed;
        let shuffled = deliver(|count| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % count
        });
        assert_eq!(bits(&shuffled), in_order, "seed {seed}");
    }
}

/// Every party on a thread of its own, started in reverse.
struct Threads;

impl PartyExecutor for Threads {
    fn each(&self, parties: &mut [PartyReplicas], work: &(dyn Fn(&mut PartyReplicas) + Sync)) {
        std::thread::scope(|scope| {
            for party in parties.iter_mut().rev() {
                scope.spawn(|| work(party));
            }
        });
    }
}

#[test]
fn the_simulator_gives_the_bits_of_the_messages_on_any_threads() {
    let by_message = bits(&deliver(|_| 0));
    for executor in [&Sequential as &dyn PartyExecutor, &Threads] {
        let mut simulation = network().simulation(recycled);
        let snapshots: Vec<_> = simulation.run(executor).map(Result::unwrap).collect();
        let of_node = |node: &Node| -> Vec<u64> {
            let values = node.model().values().iter().chain(node.dual().unwrap());
            values.map(|x| x.to_bits()).collect()
        };
        assert_eq!(
            simulation.nodes().map(of_node).collect::<Vec<_>>(),
            by_message
        );
        assert_eq!(snapshots, run(&mut network().simulation(recycled)));
    }
}

#[test]
fn another_seed_gives_other_noise() {
    let model = |seed| {
        let network = Network { seed, ..network() };
        let mut simulation = network.simulation(recycled);
        run(&mut simulation);
        models(&simulation)
    };
    assert_eq!(model(1), model(1));
    assert_ne!(model(1), model(2));
}

/// Node 0 after its start, and what its neighbours said at theirs.
fn node_0() -> (Node, Vec<Message>) {
    let (mut nodes, first) = started();
    let node = nodes.remove(0);
    let of_neighbours = first
        .into_iter()
        .filter(|message| node.neighbours().contains(&message.from))
        .collect();
    (node, of_neighbours)
}

/// A release of node `from`'s at iteration `t`, from a run of its own.
fn release_of(from: usize, t: usize) -> Message {
    let mut simulation = network().simulation(recycled);
    for _ in 0..=t {
        simulation.run(&Sequential).next();
    }
    let node = simulation.nodes().nth(from).unwrap();
    Message {
        from: node.id(),
        iteration: t as u32,
        release: node.model().clone(),
    }
}

fn rejected(node: &mut Node, message: Message) -> ProtocolError {
    node.receive(message).unwrap_err()
}

#[test]
fn a_stranger_is_not_heard() {
    let (mut node, of_neighbours) = node_0();
    let from = NodeId(77);
    let lie = Message {
        from,
        ..of_neighbours[0].clone()
    };
    assert_eq!(
        rejected(&mut node, lie),
        ProtocolError::NotANeighbour { from }
    );
}

#[test]
fn a_vector_of_the_wrong_dimension_is_rejected_by_name() {
    let (mut node, of_neighbours) = node_0();
    let narrow = Network::new(invented(2, 5, 2), vec![vec![1], vec![0]], 1).nodes(recycled);
    let lie = Message {
        release: narrow[0].model().clone(),
        ..of_neighbours[0].clone()
    };
    let error = rejected(&mut node, lie);
    assert_eq!(
        error.to_string(),
        format!(
            "{} sent a vector of dimension 2 for iteration 0; expected 3",
            of_neighbours[0].from
        )
    );
}

#[test]
fn the_past_and_the_far_future_are_rejected() {
    let (mut node, of_neighbours) = node_0();
    let from = of_neighbours[0].from;
    let early = Message {
        iteration: 2,
        ..of_neighbours[0].clone()
    };
    let expected = ProtocolError::OutOfTurn {
        from,
        expected: 0,
        got: 2,
    };
    assert_eq!(rejected(&mut node, early), expected);
    for message in &of_neighbours {
        node.receive(message.clone()).unwrap();
    }
    assert_eq!(node.iteration(), 1);
    let expected = ProtocolError::OutOfTurn {
        from,
        expected: 1,
        got: 0,
    };
    assert_eq!(rejected(&mut node, of_neighbours[0].clone()), expected);
}

#[test]
fn two_values_for_one_iteration_are_caught_and_the_same_value_twice_is_not() {
    let (mut node, of_neighbours) = node_0();
    let honest = of_neighbours[0].clone();
    assert_eq!(node.receive(honest.clone()).unwrap(), vec![]);
    assert_eq!(node.receive(honest.clone()).unwrap(), vec![]);
    let other = Message {
        iteration: 0,
        ..release_of(honest.from.0 as usize, 1)
    };
    let expected = ProtocolError::Equivocation {
        from: honest.from,
        iteration: 0,
    };
    assert_eq!(rejected(&mut node, other), expected);
}

#[test]
fn a_lie_does_not_stop_an_honest_run() {
    let (mut node, of_neighbours) = node_0();
    let lie = Message {
        from: NodeId(77),
        ..of_neighbours[0].clone()
    };
    for message in of_neighbours {
        assert!(node.receive(lie.clone()).is_err());
        node.receive(message).unwrap();
    }
    assert_eq!(node.iteration(), 1);
}

#[test]
fn a_finished_node_hears_its_last_neighbour_again_and_does_nothing() {
    let nodes = deliver(|_| 0);
    let before = bits(&nodes);
    let mut nodes = nodes;
    let last = release_of(nodes[0].neighbours()[0].0 as usize, 21);
    assert_eq!(nodes[0].receive(last).unwrap(), vec![]);
    assert_eq!(bits(&nodes), before);
}
