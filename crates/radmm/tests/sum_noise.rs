//! Every party of a sum adds noise of its own, of the size that it is charged for.
#![allow(
    clippy::disallowed_methods,
    reason = "purity is asked of the core, not of its tests"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use radmm::algorithm::consensus::{Consensus, ConsensusParameters, Preconditioner, StepSize};
use radmm::exec::Sequential;
use radmm::graph::{Graph, NodeId, SpanningTree, Topology};
use radmm::privacy::{Mechanism, NoiseDistribution};
use support::{Network, invented, neighbours};

const PARTIES: usize = 5;
const COLUMNS: usize = 3;
const SIGMA: f64 = 700.0;
/// The noise of the first question, in units of `SIGMA`.
const FIRST: f64 = 2.0;
const RUNS: u64 = 1500;

/// What the parties release first, and the total that they end with.
fn first_sum(kind: Preconditioner, mechanism: Mechanism, seed: u64) -> (Vec<Vec<f64>>, Vec<f64>) {
    let topology = Topology::Path;
    let graph = Graph::new(&topology, PARTIES).unwrap();
    let tree = SpanningTree::of(&graph);
    let network = Network {
        mechanism,
        seed,
        ..Network::new(
            invented(PARTIES, 4, COLUMNS),
            neighbours(&topology, PARTIES),
            1 + 2 * tree.depth(),
        )
    };
    let parameters = ConsensusParameters {
        steps: 1,
        total_rows: 4 * PARTIES,
        step: StepSize::Fixed(1.0),
        momentum: 0.0,
        averaged: 1,
        preconditioner: kind,
    };
    let mut simulation = network.simulation(|i| {
        let position = tree.position(&graph, NodeId(i as u32));
        Box::new(Consensus::new(parameters, position, COLUMNS))
    });
    let mut released = Vec::new();
    for _ in 0..=network.iterations {
        simulation.run(&Sequential).next().unwrap().unwrap();
        let all = simulation
            .nodes()
            .map(|node| node.released().values().to_vec());
        released.push(all.collect::<Vec<_>>());
    }
    let total = released.last().unwrap()[0].clone();
    (released[1].clone(), total)
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn mean_product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / a.len() as f64
}

#[test]
fn the_noise_of_a_sum_is_that_of_all_parties_together() {
    for (kind, deviation) in [
        (Preconditioner::None, SIGMA),
        (Preconditioner::MeanRow { noise: FIRST }, FIRST * SIGMA),
        (
            Preconditioner::Gram {
                noise: FIRST,
                ridge: 1.0,
                cut: 0.0,
            },
            FIRST * SIGMA,
        ),
    ] {
        let (exact, exact_total) = first_sum(kind, Mechanism::None, 0);
        let (mut noise, mut total_noise) = (vec![Vec::new(); PARTIES], Vec::new());
        for seed in 0..RUNS {
            let mechanism = Mechanism::gradient(NoiseDistribution::gaussian(SIGMA));
            let (released, total) = first_sum(kind, mechanism, seed);
            for ((noise, released), exact) in noise.iter_mut().zip(&released).zip(&exact) {
                noise.extend(difference(released, exact));
            }
            total_noise.extend(difference(&total, &exact_total));
        }
        // Six standard errors of a mean of n products of normal variables: 2e-9 for each comparison.
        let error = 6.0 * f64::sqrt(2.0 / total_noise.len() as f64);
        let variance = deviation * deviation;
        for (i, own) in noise.iter().enumerate() {
            let ratio = mean_product(own, own) / variance;
            assert!((ratio - 1.0).abs() < error, "{kind:?}, party {i}: {ratio}");
            for other in &noise[..i] {
                let correlation = mean_product(own, other) / variance;
                assert!(correlation.abs() < error, "{kind:?}: {correlation}");
            }
        }
        // One party's noise would give one fifth, and the same noise of all five parties five times as much.
        let ratio = mean_product(&total_noise, &total_noise) / (PARTIES as f64 * variance);
        assert!((ratio - 1.0).abs() < error, "{kind:?}: {ratio}");
    }
}
