//! What a data step and a recycled step cost, and what a general-purpose library would take for the data step's problem.
//!
//! `cargo bench` prints a table of medians. Times are for one thread.
#![allow(clippy::unwrap_used, reason = "a measurement may panic")]

use std::hint::black_box;
use std::time::Instant;

use linfa::prelude::*;
use linfa_logistic::LogisticRegression;
use ndarray::{Array1, Array2};
use radmm::account::{Bound, Budget, Ledger};
use radmm::node::{Kind, Node, Output, Setup};
use radmm::private::{
    Curator, Law, Loss, Mechanism, NoiseKey, NormPolicy, Problem, Scaling, Shard, ShardBuilder,
    Terms,
};
use radmm::public::admm::{Admm, Penalty};
use radmm::public::baseline::Local;
use radmm::public::graph::NodeId;
use radmm::public::recycled::Recycled;
use radmm::public::release::{Algorithm, Precision};
use radmm::public::schedule::Schedule;
use radmm_bench::{COLUMNS, FILLED, Rows};

const WEIGHT: f64 = 1750.0;
const RIDGE: f64 = 5.0;
const ITERATIONS: u32 = 40;
const NEIGHBOURS: u32 = 4;

fn shard(rows: &Rows) -> Shard {
    let mut builder = ShardBuilder::new(COLUMNS, NormPolicy::Unit);
    for (entries, &label) in rows.entries.iter().zip(&rows.labels) {
        builder.push(entries, label).unwrap();
    }
    builder.finish().unwrap()
}

fn node(id: u32, rows: &Rows, algorithm: Box<dyn Algorithm>, mechanism: Mechanism) -> Node {
    let terms = Terms {
        problem: Problem {
            loss: Loss::Logistic,
            weight: WEIGHT,
            ridge: RIDGE,
            nodes: NEIGHBOURS + 1,
            tolerance: 1e-8,
            precision: Precision::Grid,
        },
        mechanism,
        ledger: Ledger::new(Budget::unlimited(0.0).unwrap(), Bound::Tight),
        noise: NoiseKey::repeating(1, 0, id),
    };
    Node::new(Setup {
        id: NodeId(id),
        neighbours: (0..=NEIGHBOURS).filter(|&j| j != id).map(NodeId).collect(),
        iterations: ITERATIONS,
        start: vec![0.0; COLUMNS],
        algorithm,
        curator: Curator::new(shard(rows), terms).unwrap(),
    })
    .unwrap()
}

fn recycled() -> Box<dyn Algorithm> {
    let admm = Admm::new(Penalty::common(Schedule::Constant(1.0)), COLUMNS);
    Box::new(Recycled::new(admm, Schedule::Constant(0.2), 1))
}

/// Seconds of every step of node 0, by kind; its neighbours have few rows, so that it alone is slow.
fn steps(
    rows: &Rows,
    algorithm: fn() -> Box<dyn Algorithm>,
    mechanism: Mechanism,
) -> (Vec<f64>, Vec<f64>) {
    let few = Rows::new(50);
    let mut nodes: Vec<Node> = (0..=NEIGHBOURS)
        .map(|i| node(i, if i == 0 { rows } else { &few }, algorithm(), mechanism))
        .collect();
    let mut said: Vec<Output> = nodes.iter_mut().flat_map(Node::start).collect();
    let (mut data, mut free) = (Vec::new(), Vec::new());
    for _ in 0..ITERATIONS {
        let mut next = Vec::new();
        for output in &said {
            let Output::Broadcast(message) = output else {
                continue;
            };
            for node in nodes.iter_mut().filter(|node| node.id() != message.from) {
                let before = node.iteration();
                let clock = Instant::now();
                let outputs = node.receive(message.clone()).unwrap();
                let seconds = clock.elapsed().as_secs_f64();
                if node.id() == NodeId(0) && node.iteration() > before {
                    match node.kind() {
                        Kind::Data => data.push(seconds),
                        _ => free.push(seconds),
                    }
                }
                next.extend(outputs);
            }
        }
        said = next;
    }
    (data, free)
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// The norm of the gradient of `(C/B) Σ L + (m/2)‖f‖²`, to compare the two solvers at equal accuracy.
fn gradient_norm(rows: &Rows, f: &[f64], modulus: f64) -> f64 {
    let mut gradient: Vec<f64> = f.iter().map(|f| modulus * f).collect();
    let scale = WEIGHT / rows.entries.len() as f64;
    for (entries, &label) in rows.entries.iter().zip(&rows.labels) {
        let y = if label { 1.0 } else { -1.0 };
        let margin: f64 = y * entries.iter().map(|e| e.1 * f[e.0 as usize]).sum::<f64>();
        let slope = -1.0 / (1.0 + margin.exp());
        for e in entries {
            gradient[e.0 as usize] += scale * slope * y * e.1;
        }
    }
    gradient.iter().map(|g| g * g).sum::<f64>().sqrt()
}

/// One party alone from a cold start, ours and linfa-logistic's L-BFGS on the same problem and rows.
fn alone(rows: &Rows) -> (f64, f64, f64, f64) {
    let modulus = RIDGE / f64::from(NEIGHBOURS + 1);
    let few = Rows::new(50);
    let ours = |_: usize| {
        let mut first = node(0, rows, Box::new(Local::new(0.0)), Mechanism::None);
        let said: Vec<Output> = (1..=NEIGHBOURS)
            .flat_map(|i| node(i, &few, Box::new(Local::new(0.0)), Mechanism::None).start())
            .collect();
        let clock = Instant::now();
        for output in said {
            if let Output::Broadcast(message) = output {
                first.receive(message).unwrap();
            }
        }
        (
            clock.elapsed().as_secs_f64(),
            first.model().values().to_vec(),
        )
    };
    let dense = Array2::from_shape_fn((rows.entries.len(), COLUMNS), |_| 0.0);
    let mut dense = dense;
    for (n, entries) in rows.entries.iter().enumerate() {
        for &(column, value) in entries {
            dense[[n, column as usize]] = value;
        }
    }
    let dataset = Dataset::new(dense, Array1::from(rows.labels.clone()));
    let scale = WEIGHT / rows.entries.len() as f64;
    let theirs = |_: usize| {
        let clock = Instant::now();
        let fitted = LogisticRegression::default()
            .with_intercept(false)
            .alpha(modulus / scale)
            .gradient_tolerance(1e-8 / scale)
            .max_iterations(10_000)
            .fit(&dataset)
            .unwrap();
        let seconds = clock.elapsed().as_secs_f64();
        // Whichever label the library takes for positive.
        let sign = if fitted.labels().pos.class { 1.0 } else { -1.0 };
        (seconds, fitted.params().iter().map(|f| sign * f).collect())
    };
    let measure = |run: &dyn Fn(usize) -> (f64, Vec<f64>)| {
        let runs: Vec<_> = (0..5).map(run).collect();
        let norm = gradient_norm(rows, &runs[0].1, modulus);
        (median(runs.iter().map(|run| run.0).collect()), norm)
    };
    let ((our_time, our_norm), (their_time, their_norm)) = (measure(&ours), measure(&theirs));
    (our_time, our_norm, their_time, their_norm)
}

fn main() {
    // Cargo asks every benchmark for its list in test mode; there is nothing to list.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    println!(
        "{COLUMNS} columns, {FILLED} non-zeros a row, {NEIGHBOURS} neighbours, residual 1e-8, one thread, medians\n"
    );
    println!("| rows | data step | recycled step | data / recycled |");
    println!("|---|---|---|---|");
    let gamma = Mechanism::Objective {
        law: Law::Gamma { rate: 2.0 },
        scale: Scaling::Fixed,
    };
    for count in [10_000, 100_000] {
        let rows = Rows::new(count);
        let (data, free) = black_box(steps(&rows, recycled, gamma));
        let (data, free) = (median(data), median(free));
        println!(
            "| {count} | {:.2} ms | {:.2} µs | {:.0} |",
            data * 1e3,
            free * 1e6,
            data / free
        );
    }
    println!("\nargmin O(f) from a cold start, one party alone\n");
    println!(
        "| rows | radmm (gradient norm) | linfa-logistic 0.8, L-BFGS on dense rows (gradient norm) | ratio |"
    );
    println!("|---|---|---|---|");
    for count in [10_000, 100_000] {
        let rows = Rows::new(count);
        let (ours, our_norm, theirs, their_norm) = alone(&rows);
        println!(
            "| {count} | {:.1} ms ({our_norm:.0e}) | {:.1} ms ({their_norm:.0e}) | {:.1} |",
            ours * 1e3,
            theirs * 1e3,
            theirs / ours
        );
    }
}
