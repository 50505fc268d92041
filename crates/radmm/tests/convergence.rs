//! Without noise, every algorithm reaches the centralised optimum on every topology, bipartite ones among them.
//!
//! docs/convergence.md holds the table that the first test makes. To write it anew: `RADMM_BLESS=1 cargo test convergence`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "purity is asked of the core, not of its tests"
)]

mod support;

use std::fmt::Write;

use radmm::algorithm::Algorithm;
use radmm::algorithm::admm::{Admm, Penalty};
use radmm::algorithm::dgd::Dgd;
use radmm::algorithm::dlm::Dlm;
use radmm::algorithm::recycled::Recycled;
use radmm::algorithm::schedule::Schedule;
use radmm::exec::Sequential;
use radmm::graph::{Graph, NodeId, Topology};
use support::{Network, centralised, distance, invented, neighbours, topologies};

const COLUMNS: usize = 4;
const CLOSE: f64 = 1e-6;

fn constant(value: f64) -> Schedule {
    Schedule::Constant(value)
}

fn growing(start: f64) -> Schedule {
    Schedule::Growth {
        start,
        growth: 1.0005,
    }
}

fn admm(penalty: Penalty) -> Admm {
    Admm::new(penalty, COLUMNS)
}

/// Penalties of the nodes' own, growing, with the common dual step θ.
fn private_penalty(i: usize) -> Penalty {
    Penalty {
        primal: growing(0.2 + 0.02 * (i % 4) as f64),
        dual: constant(0.2),
    }
}

type Make = fn(usize) -> Box<dyn Algorithm>;

/// Name, parameters, recycled steps per data step, and how a node makes it.
const ALGORITHMS: [(&str, &str, u32, Make); 9] = [
    ("admm", "η = 0.2", 0, |_| {
        Box::new(admm(Penalty::common(constant(0.2))))
    }),
    ("r-admm", "η = 0.2, γ = 0.3", 1, |_| {
        Box::new(Recycled::new(
            admm(Penalty::common(constant(0.2))),
            constant(0.3),
            1,
        ))
    }),
    ("r-admm", "η = 0.2, γ = 0.3, recycle = 3", 3, |_| {
        Box::new(Recycled::new(
            admm(Penalty::common(constant(0.2))),
            constant(0.3),
            3,
        ))
    }),
    ("admm", "η = 0.2·1.0005ᵗ", 0, |_| {
        Box::new(admm(Penalty::common(growing(0.2))))
    }),
    (
        "r-admm",
        "η = 0.2·1.0005ᵗ, γ = 0.3·1.0005ᵗ",
        1,
        |_| {
            Box::new(Recycled::new(
                admm(Penalty::common(growing(0.2))),
                growing(0.3),
                1,
            ))
        },
    ),
    (
        "m-admm",
        "η_i = (0.2 + 0.02 (i mod 4))·1.0005ᵗ, θ = 0.2",
        0,
        |i| Box::new(admm(private_penalty(i))),
    ),
    ("mr-admm", "η_i, θ as before, γ = 0.3", 1, |i| {
        Box::new(Recycled::new(admm(private_penalty(i)), constant(0.3), 1))
    }),
    ("dlm", "η = 0.2, γ = 0.5", 0, |_| {
        Box::new(Dlm::new(
            Penalty::common(constant(0.2)),
            constant(0.5),
            COLUMNS,
        ))
    }),
    ("r-dlm", "η = 0.2, γ = 0.5", 1, |_| {
        let dlm = Dlm::new(Penalty::common(constant(0.2)), constant(0.5), COLUMNS);
        Box::new(Recycled::new(dlm, constant(0.5), 1))
    }),
];

fn network(topology: &Topology, iterations: u32) -> Network {
    Network::new(
        invented(10, 30, COLUMNS),
        neighbours(topology, 10),
        iterations,
    )
}

/// The first iteration from which on every model stays within `CLOSE` of the optimum.
fn iterations_needed(network: &Network, optimum: &[f64], make: Make) -> Option<u32> {
    let mut simulation = network.simulation(make);
    let mut needed = 0;
    for t in 0..=network.iterations {
        simulation.run(&Sequential).next().unwrap().unwrap();
        if distance(&simulation, optimum) > CLOSE {
            needed = t + 1;
        }
    }
    (needed <= network.iterations).then_some(needed)
}

#[test]
fn every_algorithm_reaches_the_centralised_optimum_on_every_topology() {
    let optimum = centralised(&network(&Topology::Ring, 1));
    let mut table = String::from("| algorithm | parameters |");
    for (name, topology) in topologies() {
        let bipartite = Graph::new(&topology, 10).unwrap().is_bipartite();
        write!(
            table,
            " {name}{} |",
            if bipartite { " (bipartite)" } else { "" }
        )
        .unwrap();
    }
    table += "\n|---|---|";
    table += &"---|".repeat(topologies().len());
    table += "\n";
    for (name, parameters, recycle, make) in ALGORITHMS {
        write!(table, "| {name} | {parameters} |").unwrap();
        for (place, topology) in topologies() {
            let needed = iterations_needed(&network(&topology, 2500), &optimum, make);
            let needed = needed.unwrap_or_else(|| panic!("{name} ({parameters}) on {place}"));
            write!(table, " {needed} ({}) |", needed.div_ceil(recycle + 1)).unwrap();
        }
        table += "\n";
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/convergence.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once("<!-- table -->\n").unwrap();
    let (written, after) = rest.split_once("<!-- end -->\n").unwrap();
    if std::env::var_os("RADMM_BLESS").is_some() {
        std::fs::write(
            path,
            format!("{before}<!-- table -->\n{table}<!-- end -->\n{after}"),
        )
        .unwrap();
    } else {
        assert_eq!(written, table, "docs/convergence.md is out of date");
    }
}

#[test]
fn the_simulators_centralised_optimum_is_that_of_one_party_with_all_rows() {
    let network = network(&Topology::Ring, 1);
    let simulation = network.simulation(ALGORITHMS[0].3);
    let ours = simulation.centralised().unwrap().model;
    for (a, b) in ours.iter().zip(centralised(&network)) {
        assert!((a - b).abs() < 1e-10);
    }
}

/// DGD's error on a problem with a strong ridge, where what the start left behind is soon forgotten.
fn dgd_error(topology: &Topology, step: Schedule, iterations: u32) -> f64 {
    let graph = Graph::new(topology, 10).unwrap();
    let network = Network {
        ridge: 5.0,
        ..network(topology, iterations)
    };
    let optimum = centralised(&network);
    let mut simulation =
        network.simulation(|i| Box::new(Dgd::new(graph.metropolis(NodeId(i as u32)), step)));
    support::run(&mut simulation);
    distance(&simulation, &optimum)
}

#[test]
fn with_a_constant_step_dgd_stops_at_a_distance_in_proportion_to_the_step() {
    // Yuan, Ling and Yin 2016: a neighbourhood of radius O(s). Halving s halves the error, up to O(s²).
    for (name, topology) in topologies() {
        let error = |step| dgd_error(&topology, constant(step), 5_000);
        let (coarse, fine) = (error(0.01), error(0.005));
        let ratio = coarse / fine;
        assert!((1.8..=2.1).contains(&ratio), "{name}: ratio {ratio}");
        assert!(fine > CLOSE, "{name}: a constant step does not get there");
    }
}

#[test]
fn with_a_diminishing_step_dgd_approaches_the_optimum_as_fast_as_the_step_falls() {
    // The error follows s(t) = 0.2/√t: at four times the iterations it is half.
    let step = Schedule::Decay {
        start: 0.2,
        power: 0.5,
    };
    for (name, topology) in topologies() {
        let error = |iterations| dgd_error(&topology, step, iterations);
        let ratio = error(5_000) / error(20_000);
        assert!((1.9..=2.1).contains(&ratio), "{name}: ratio {ratio}");
    }
}
