//! The two forms of a recycled step: from the model that an answer left, and from messages alone.
#![allow(
    clippy::disallowed_methods,
    reason = "tests compare with the platform's functions"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use radmm::algorithm::admm::{Admm, Penalty};
use radmm::algorithm::dlm::Dlm;
use radmm::algorithm::recycled::{Recycled, closed_form};
use radmm::algorithm::schedule::Schedule;
use radmm::algorithm::{Algorithm, View};
use radmm::exec::Sequential;
use radmm::protocol::release::Release;
use support::{Network, invented, neighbours, topologies};

const ETA: f64 = 0.4;
const GAMMA: f64 = 0.3;

fn r_admm(_: usize) -> Box<dyn Algorithm> {
    let admm = Admm::new(Penalty::common(Schedule::Constant(ETA)), 4);
    Box::new(Recycled::new(admm, Schedule::Constant(GAMMA), 1))
}

fn r_dlm(_: usize) -> Box<dyn Algorithm> {
    let dlm = Dlm::new(
        Penalty::common(Schedule::Constant(ETA)),
        Schedule::Constant(GAMMA),
        4,
    );
    Box::new(Recycled::new(dlm, Schedule::Constant(GAMMA), 1))
}

#[test]
fn both_forms_agree_at_constant_penalty_for_every_algorithm_and_topology() {
    for (place, topology) in topologies() {
        for make in [r_admm, r_dlm] {
            let network = Network::new(invented(10, 12, 4), neighbours(&topology, 10), 20);
            let mut simulation = network.simulation(make);
            let mut said: Vec<Vec<Release>> = Vec::new();
            for t in 0..=20 {
                simulation.run(&Sequential).next().unwrap().unwrap();
                said.push(
                    simulation
                        .nodes()
                        .map(|node| node.model().clone())
                        .collect(),
                );
                if t == 0 || t % 2 == 1 {
                    continue;
                }
                for (i, node) in simulation.nodes().enumerate() {
                    let heard = |t: usize| -> Vec<Release> {
                        let of = |j: &radmm::graph::NodeId| said[t][j.0 as usize].clone();
                        node.neighbours().iter().map(of).collect()
                    };
                    let (before, data) = (heard(t - 2), heard(t - 1));
                    let view = |t: usize, neighbours| View {
                        iteration: t as u32,
                        own: said[t][i].values(),
                        neighbours,
                    };
                    let closed =
                        closed_form(&view(t - 2, &before), &view(t - 1, &data), ETA, GAMMA);
                    for (a, b) in closed.iter().zip(node.model().values()) {
                        assert!(
                            (a - b).abs() <= 1e-12,
                            "{place}, f_{i}({t}): {a} against {b}"
                        );
                    }
                }
            }
        }
    }
}
