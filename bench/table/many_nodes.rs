//! Many small parties: time for a node and an iteration, and memory, at a hundred thousand nodes and at a thousand.

use radmm::algorithm::consensus::{Consensus, ConsensusParameters, Preconditioner, StepSize};
use radmm::curator::bench_hooks::{MeasuredRows, VectorUnits};
use radmm::graph::{Graph, SpanningTree, Topology};
use radmm::privacy::{Mechanism, NoiseDistribution, NoiseScaling};
use radmm::sim::{PartyExecutor, PartyReplicas, Simulation};
use radmm_bench::{BenchParty, COLUMNS, FILLED, problem, recycled, shard};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::clock::{child, median, peak, timed};
use radmm_bench::report::{Detail, Found, Ratio, Target, duration, thousands, times};

const ROWS: usize = 100;
const DEGREE: u32 = 4;
const ITERATIONS: u32 = 4;
/// Of consensus: the questions, each with its sum along the tree.
const QUESTIONS: u32 = 2;

/// Of a party, whatever the program: its model and the next one, its dual, and the gradient that a recycled step uses. What
/// neighbours said is their model, and is there once in a process.
const STATE_BYTES: usize = 4 * 8 * COLUMNS;

/// A hundred thousand nodes against a thousand.
pub fn many_nodes() -> Found {
    let (mut few, mut many) = (Vec::new(), Vec::new());
    // In turns; the larger one takes long enough to be measured once.
    few.extend((0..8).map(|_| Run::of("r-admm", 1_000)));
    many.push(Run::of("r-admm", 100_000));
    few.extend((0..7).map(|_| Run::of("r-admm", 1_000)));
    let (mut few_sums, mut many_sums) = (Vec::new(), Vec::new());
    few_sums.extend((0..4).map(|_| Run::of("consensus", 1_000)));
    many_sums.push(Run::of("consensus", 100_000));
    few_sums.extend((0..3).map(|_| Run::of("consensus", 1_000)));
    let time = |runs: &[Run]| median(runs.iter().map(|run| run.seconds).collect());
    let (small, large) = (time(&few), time(&many));
    let (small_sums, large_sums) = (time(&few_sums), time(&many_sums));
    // Every party's rows have the same shape.
    let rows = MeasuredRows::new(shard(ROWS, 1), VectorUnits::Best).bytes();
    let needed = |nodes: usize| (nodes * (rows + STATE_BYTES)) as f64;
    let gigabytes = |bytes: f64| format!("{:.2} GB", bytes / 1e9);
    let mut found = Found {
        ratios: vec![
            Ratio {
                work: "time per node and iteration, 10⁵ nodes against 10³".to_owned(),
                ours: duration(large),
                other: format!("{}, 10³ nodes", duration(small)),
                ratio: large / small,
                target: Target::AtMost(1.3),
            },
            Ratio {
                work: "consensus: time per node and iteration, 10⁵ nodes against 10³".to_owned(),
                ours: duration(large_sums),
                other: format!("{}, 10³ nodes", duration(small_sums)),
                ratio: large_sums / small_sums,
                target: Target::AtMost(1.3),
            },
        ],
        ..Found::default()
    };
    match many[0].peak {
        Some(peak) => found.ratios.push(Ratio {
            work: "peak memory at 10⁵ nodes against rows plus state".to_owned(),
            ours: gigabytes(peak),
            other: format!("{}, rows plus state", gigabytes(needed(100_000))),
            ratio: peak / needed(100_000),
            target: Target::AtMost(2.0),
        }),
        None => found
            .left_out
            .push("peak memory: this operating system does not report it".to_owned()),
    }
    let line = |nodes: usize, seconds: f64, peak: Option<f64>| {
        vec![
            thousands(nodes),
            duration(seconds),
            gigabytes(needed(nodes)),
            peak.map_or("?".to_owned(), gigabytes),
            peak.map_or("?".to_owned(), |peak| times(peak / needed(nodes))),
        ]
    };
    found.details.push(Detail {
        title: "Many nodes".to_owned(),
        head: vec!["nodes", "time per node and iteration", "rows plus state", "peak memory", "ratio"],
        lines: vec![line(1_000, small, few[0].peak), line(100_000, large, many[0].peak)],
        notes: vec![format!(
            "{ROWS} rows of {COLUMNS} columns and {FILLED} non-zeros per node, random graph of degree {DEGREE}, R-ADMM with \
             {ITERATIONS} iterations, gamma noise, all cores. The time is wall time over nodes and iterations. Every run is a process of its \
             own. Rows plus state: {} bytes of rows per node, as they are stored (sparse rows of 12 bytes per non-zero and 9 per row would take {}), \
             and {} bytes of state per node (its model, the next one, its dual and its gradient, 8 bytes per number). The peak is the largest \
             memory of the process.",
            thousands(rows),
            thousands(ROWS * (9 + 12 * FILLED)),
            thousands(STATE_BYTES),
        )],
    });
    found
}

struct Run {
    seconds: f64,
    peak: Option<f64>,
}

impl Run {
    fn of(algorithm: &str, nodes: u32) -> Self {
        let printed = child(&["nodes", algorithm, &nodes.to_string()]);
        let said: Value = serde_json::from_str(&printed).unwrap();
        Self {
            seconds: said["seconds"].as_f64().unwrap(),
            peak: said["peak"].as_f64(),
        }
    }
}

/// One run in this process, whose time and peak are printed.
pub fn run(algorithm: &str, nodes: u32) {
    let topology = Topology::Regular {
        degree: DEGREE,
        seed: 1,
    };
    let graph = Graph::new(&topology, nodes as usize).unwrap();
    let tree = SpanningTree::of(&graph);
    let parameters = ConsensusParameters {
        steps: QUESTIONS,
        total_rows: ROWS * nodes as usize,
        step: StepSize::Fixed(1.0),
        momentum: 0.0,
        averaged: 1,
        preconditioner: Preconditioner::None,
    };
    let sums = algorithm == "consensus";
    let (iterations, mechanism) = match sums {
        true => (
            parameters.iterations(tree.depth()),
            Mechanism::gradient(NoiseDistribution::gaussian(1.0)),
        ),
        false => (
            ITERATIONS,
            Mechanism::Objective {
                law: NoiseDistribution::Gamma { rate: 50.0 },
                scale: NoiseScaling::Fixed,
            },
        ),
    };
    let party = |id: radmm::graph::NodeId| BenchParty {
        id: id.0,
        neighbours: graph.neighbours(id).iter().map(|j| j.0).collect(),
        iterations,
        algorithm: match sums {
            true => Box::new(Consensus::new(
                parameters,
                tree.position(&graph, id),
                COLUMNS,
            )),
            false => recycled(1.0, 0.2),
        },
        // Each party's share of the ridge is the same for any number of them, and so is its work.
        problem: problem(ROWS as f64, 0.05 * f64::from(nodes), nodes),
        mechanism,
        shard: shard(ROWS, u64::from(id.0)).into(),
    };
    let nodes_made = graph.nodes().map(|id| party(id).node()).collect();
    let mut simulation = Simulation::new(nodes_made, iterations).unwrap();
    let (seconds, ()) = timed(|| {
        for made in simulation.run(&Pool) {
            made.unwrap();
        }
    });
    let each = seconds / f64::from(nodes) / f64::from(iterations);
    println!("{}", json!({ "seconds": each, "peak": peak() }));
}

/// All cores.
struct Pool;

impl PartyExecutor for Pool {
    fn each(&self, parties: &mut [PartyReplicas], work: &(dyn Fn(&mut PartyReplicas) + Sync)) {
        parties.par_iter_mut().for_each(work);
    }
}
