//! The local rate is the spectral radius of the algorithm near the optimum, and what simulations show there.
#![allow(
    clippy::disallowed_methods,
    reason = "tests compare with the platform's functions"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use radmm::algorithm::Algorithm;
use radmm::algorithm::admm::{Admm, Penalty};
use radmm::algorithm::dlm::Dlm;
use radmm::algorithm::recycled::Recycled;
use radmm::algorithm::schedule::Schedule;
use radmm::convergence::local_rate::LocalRate;
use radmm::exec::Sequential;
use radmm::graph::{NodeId, Topology};
use radmm::sim::Simulation;
use support::matrix::{Matrix, spectral_radius};
use support::{Network, distance, invented, neighbours};

const COLUMNS: usize = 3;
const ETA: f64 = 0.2;
const GAMMA: f64 = 0.3;

fn constant(value: f64) -> Schedule {
    Schedule::Constant(value)
}

/// ADMM (or DLM) with `recycle` recycled steps after each data step.
#[derive(Clone, Copy, Debug)]
struct AlgorithmKind {
    gradients: bool,
    recycle: u32,
}

const fn kind(gradients: bool, recycle: u32) -> AlgorithmKind {
    AlgorithmKind { gradients, recycle }
}

const ALGORITHMS: [AlgorithmKind; 5] = [
    kind(false, 0),
    kind(false, 1),
    kind(false, 3),
    kind(true, 0),
    kind(true, 1),
];

impl AlgorithmKind {
    fn make(self, lambda: Vec<f64>) -> Box<dyn Algorithm> {
        let penalty = Penalty::common(constant(ETA));
        match self.gradients {
            false => Box::new(Recycled::new(
                Admm::with_dual(penalty, lambda),
                constant(GAMMA),
                self.recycle,
            )),
            true => Box::new(Recycled::new(
                Dlm::with_dual(penalty, constant(GAMMA), lambda),
                constant(GAMMA),
                self.recycle,
            )),
        }
    }

    fn simulation(self, network: &Network) -> Simulation {
        network.simulation(|_| self.make(vec![0.0; COLUMNS]))
    }

    fn rate(self, simulation: &Simulation, at: &[f64]) -> LocalRate {
        let make = |_: NodeId, lambda| self.make(lambda);
        simulation.local_rate(at, self.recycle + 1, &make).unwrap()
    }
}

fn network(topology: &Topology, nodes: usize, iterations: u32) -> Network {
    Network::new(
        invented(nodes, 20, COLUMNS),
        neighbours(topology, nodes),
        iterations,
    )
}

fn shapes() -> Vec<(&'static str, usize, Topology)> {
    vec![
        ("ring of 5", 5, Topology::Ring),
        ("path of 4", 4, Topology::Path),
        ("star of 6", 6, Topology::Star),
        ("complete of 4", 4, Topology::Complete),
    ]
}

/// `∇²O_i(f) = (C/B) Σ L''(y fᵀx) x xᵀ + ρ/N I`, from the rows as the test made them.
fn hessian(network: &Network, party: usize, f: &[f64]) -> Matrix {
    let (rows, _) = &network.rows[party];
    let mut hessian = &Matrix::identity(COLUMNS) * (network.ridge / network.rows.len() as f64);
    for x in rows {
        let margin: f64 = x.iter().zip(f).map(|(x, f)| x * f).sum();
        let curvature = 1.0 / (2.0 + margin.exp() + (-margin).exp());
        for i in 0..COLUMNS {
            for j in 0..COLUMNS {
                hessian[(i, j)] += network.weight / rows.len() as f64 * curvature * x[i] * x[j];
            }
        }
    }
    hessian
}

fn times(matrix: &Matrix, vector: &[f64]) -> Vec<f64> {
    (0..vector.len())
        .map(|i| (0..vector.len()).map(|j| matrix[(i, j)] * vector[j]).sum())
        .collect()
}

/// The map of one period, column by column, from the formulas of docs/algorithm.md.
fn period(network: &Network, at: &[f64], kind: AlgorithmKind) -> Matrix {
    let (n, d) = (network.rows.len(), COLUMNS);
    let hessians: Vec<Matrix> = (0..n).map(|i| hessian(network, i, at)).collect();
    let degree = |i: usize| network.neighbours[i].len() as f64;
    let of = |f: &[Vec<f64>], i: usize, sign: f64| -> Vec<f64> {
        let terms = |k: usize| network.neighbours[i].iter().map(move |&j| (j as usize, k));
        (0..d)
            .map(|k| terms(k).map(|(j, k)| f[i][k] + sign * f[j][k]).sum())
            .collect()
    };
    let mut map = Matrix::zero(2 * n * d);
    for column in 0..2 * n * d {
        let entry = |half: usize, i: usize, k: usize| {
            f64::from(u8::from(half * n * d + i * d + k == column))
        };
        let mut f: Vec<Vec<f64>> = (0..n)
            .map(|i| (0..d).map(|k| entry(0, i, k)).collect())
            .collect();
        let mean = |k: usize| (0..n).map(|i| entry(1, i, k)).sum::<f64>() / n as f64;
        let mut lambda: Vec<Vec<f64>> = (0..n)
            .map(|i| (0..d).map(|k| entry(1, i, k) - mean(k)).collect())
            .collect();
        // The data step.
        let mut models = Vec::new();
        let step: Vec<Vec<f64>> = (0..n)
            .map(|i| {
                let a = 2.0 * ETA * degree(i);
                let sum = of(&f, i, 1.0);
                let b: Vec<f64> = (0..d).map(|k| 2.0 * lambda[i][k] - ETA * sum[k]).collect();
                if kind.gradients {
                    let g = times(&hessians[i], &f[i]);
                    models.push((f[i].clone(), g.clone()));
                    (0..d)
                        .map(|k| f[i][k] - (g[k] + b[k] + a * f[i][k]) / (a + GAMMA))
                        .collect()
                } else {
                    let shifted = &hessians[i] + &(&Matrix::identity(d) * a);
                    let answer: Vec<f64> = times(&shifted.pseudo_inverse(), &b)
                        .iter()
                        .map(|x| -x)
                        .collect();
                    models.push((answer.clone(), times(&hessians[i], &answer)));
                    answer
                }
            })
            .collect();
        f = step;
        for (i, lambda) in lambda.iter_mut().enumerate() {
            let apart = of(&f, i, -1.0);
            (0..d).for_each(|k| lambda[k] += ETA / 2.0 * apart[k]);
        }
        for _ in 0..kind.recycle {
            f = (0..n)
                .map(|i| {
                    let (apart, (p, g)) = (of(&f, i, -1.0), &models[i]);
                    let pull = |k: usize| {
                        g[k] + GAMMA * (f[i][k] - p[k]) + 2.0 * lambda[i][k] + ETA * apart[k]
                    };
                    let scale = 2.0 * ETA * degree(i) + GAMMA;
                    (0..d).map(|k| f[i][k] - pull(k) / scale).collect()
                })
                .collect();
        }
        for i in 0..n {
            for k in 0..d {
                map[(i * d + k, column)] = f[i][k];
                map[(n * d + i * d + k, column)] = lambda[i][k];
            }
        }
    }
    map
}

#[test]
fn the_rate_is_the_spectral_radius_of_the_map_built_column_by_column() {
    for (name, nodes, topology) in shapes() {
        let network = network(&topology, nodes, 1);
        for kind in ALGORITHMS {
            let simulation = kind.simulation(&network);
            let at = simulation.centralised().unwrap().model;
            let rate = kind.rate(&simulation, &at);
            let dense = spectral_radius(&period(&network, &at, kind));
            assert!(
                (rate.per_data_step - dense).abs() < 1e-7,
                "{name}, {kind:?}: {rate:?} {dense}"
            );
            let again = rate.per_iteration.powi(kind.recycle as i32 + 1);
            assert!((again - dense).abs() < 1e-7, "{name}, {kind:?}");
            let digit = rate.per_iteration.powf(rate.iterations_per_digit.unwrap());
            assert!((digit - 0.1).abs() < 1e-9, "{name}, {kind:?}");
        }
    }
}

/// Of the straight line with the least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let mean =
        |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let up: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    up / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}

#[test]
fn near_the_optimum_simulations_contract_at_the_rate() {
    // Between distances of 10⁻⁵ and 10⁻¹⁰ the slower modes are left, and the solver is exact enough.
    let mut straight = 0;
    for (name, nodes, topology) in shapes() {
        let network = network(&topology, nodes, 6000);
        for kind in ALGORITHMS {
            let mut simulation = kind.simulation(&network);
            let at = simulation.centralised().unwrap().model;
            let predicted = kind.rate(&simulation, &at).per_iteration.ln();
            let step = kind.recycle as usize + 1;
            let mut seen = Vec::new();
            for _ in 0..=network.iterations {
                simulation.run(&Sequential).next().unwrap().unwrap();
                seen.push(distance(&simulation, &at));
                if seen[seen.len() - 1] < 1e-10 {
                    break;
                }
            }
            let from = seen.iter().position(|d| *d < 1e-5).unwrap();
            let points: Vec<(f64, f64)> = (from..seen.len())
                .step_by(step)
                .map(|t| (t as f64, seen[t].ln()))
                .collect();
            let observed = slope(&points);
            let ratio = observed / predicted;
            // A complex pair makes distances swing around the line, which hides a share of its slope.
            let (t, height) = points[points.len() / 2];
            let off = |p: &(f64, f64)| (p.1 - height - observed * (p.0 - t)).abs();
            let swings = points.iter().map(off).fold(0.0, f64::max) > 0.1;
            let allowed = if swings { 5e-2 } else { 1e-3 };
            assert!((ratio - 1.0).abs() < allowed, "{name}, {kind:?}: {ratio}");
            straight += u32::from(!swings);
        }
    }
    assert!(
        straight >= 19,
        "only {straight} runs of 20 came in along a straight line"
    );
}

#[test]
fn a_penalty_that_does_not_hold_the_linearised_algorithm_shows_as_a_rate_above_one() {
    let network = Network {
        weight: 100.0,
        ..network(&Topology::Ring, 5, 1)
    };
    let kind = kind(true, 0);
    let simulation = kind.simulation(&network);
    let rate = kind.rate(&simulation, &[0.0; COLUMNS]);
    assert!(rate.per_data_step > 1.0, "{rate:?}");
    assert_eq!(rate.iterations_per_digit, None);
}

#[test]
fn hessians_beyond_memory_are_refused_before_a_row_is_read() {
    let columns = 6000;
    let row = |k: usize| (0..columns).map(|c| f64::from(u8::from(c == k))).collect();
    let rows = (0..2).map(|i| (vec![row(i)], vec![true])).collect();
    let network = Network::new(rows, vec![vec![1], vec![0]], 1);
    let simulation = network.simulation(|_| ALGORITHMS[0].make(vec![0.0; columns]));
    let refused = simulation.local_rate(&vec![0.0; columns], 1, &|_, lambda| {
        ALGORITHMS[0].make(lambda)
    });
    assert_eq!(
        refused.unwrap_err().to_string(),
        "2 parties with 6000 columns have Hessians too large for a local rate"
    );
}
