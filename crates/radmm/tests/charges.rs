//! What is charged, when, and what a limit does.
#![allow(
    clippy::disallowed_methods,
    reason = "tests compare with the platform's functions"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use radmm::algorithm::Algorithm;
use radmm::algorithm::admm::{Admm, Penalty};
use radmm::algorithm::baseline::{Average, Local};
use radmm::algorithm::dgd::Dgd;
use radmm::algorithm::dlm::Dlm;
use radmm::algorithm::recycled::Recycled;
use radmm::algorithm::schedule::Schedule;
use radmm::curator::Refusal;
use radmm::exec::Sequential;
use radmm::graph::{Graph, NodeId, Topology};
use radmm::node::{StepKind, StopReason};
use radmm::privacy::{Budget, Mechanism, NoiseDistribution, NoiseScaling, SpendError};
use radmm::sim::SimError;
use support::{Network, invented, neighbours, run};

const GAMMA: Mechanism = Mechanism::Objective {
    law: NoiseDistribution::Gamma { rate: 2.0 },
    scale: NoiseScaling::Fixed,
};
const GRADIENT: Mechanism = Mechanism::Gradient {
    law: NoiseDistribution::Gamma { rate: 2.0 },
};
const OUTPUT: Mechanism = Mechanism::Output {
    law: NoiseDistribution::Gamma { rate: 2.0 },
};

type Make = Box<dyn Fn(usize) -> Box<dyn Algorithm>>;

fn network(mechanism: Mechanism, iterations: u32) -> Network {
    Network {
        mechanism,
        ..Network::new(
            invented(5, 20, 3),
            neighbours(&Topology::Ring, 5),
            iterations,
        )
    }
}

fn penalty() -> Penalty {
    Penalty::common(Schedule::Constant(0.5))
}

fn admm(_: usize) -> Box<dyn Algorithm> {
    Box::new(Admm::new(penalty(), 3))
}

fn recycled(m: u32) -> impl Fn(usize) -> Box<dyn Algorithm> {
    move |_| {
        let inner = Admm::new(penalty(), 3);
        Box::new(Recycled::new(inner, Schedule::Constant(0.2), m))
    }
}

/// The price of gamma noise in the objective of the logistic loss for `A = S·α` and `x`: with `s = (1 + t)/2` and a curvature of
/// `(1 − t²)/4`, the best `t` solves `A·x·t² + 8x·t = A(1 + x)`, or is 1. The grid costs a 1024th of slope and curvature apart.
fn objective_price(a: f64, x: f64) -> f64 {
    let root = (16.0 * x * x + a * a * x * (1.0 + x)).sqrt();
    let t = (a * (1.0 + x) / (root + 4.0 * x)).min(1.0);
    let exact = a / 2.0 * (1.0 + (1.0 + t) / 2.0) + (x * (1.0 - t * t)).ln_1p();
    exact + (a + x.ln_1p()) / 1024.0
}

fn weights(i: usize) -> Vec<f64> {
    Graph::new(&Topology::Ring, 5)
        .unwrap()
        .metropolis(NodeId(i as u32))
}

#[test]
fn r_admm_is_charged_for_exactly_half_of_its_iterations() {
    let network = network(GAMMA, 100);
    let mut simulation = network.simulation(recycled(1));
    let snapshots = run(&mut simulation);
    for node in simulation.nodes() {
        assert_eq!(node.curator().ledger().charges(), 50);
    }
    // C = 3, B = 20, ρ/N = 0.04, a = 2ηV = 2: S = 0.3, x = 3/4 / (20 · 2.04).
    let step = objective_price(0.3 * 2.0, 0.75 / (20.0 * 2.04));
    for (t, snapshot) in snapshots.iter().enumerate() {
        let data_steps = t.div_ceil(2);
        let exact = data_steps as f64 * step;
        assert!(
            (snapshot.spent.epsilon - exact).abs() < 1e-12 * (1.0 + exact),
            "t = {t}"
        );
        let kind = [StepKind::Recycled, StepKind::Data][t % 2];
        assert_eq!(snapshot.kind, if t == 0 { StepKind::Start } else { kind });
    }
}

#[test]
fn every_algorithm_is_charged_for_its_data_steps_and_no_others() {
    let cases: [(&str, Mechanism, Make, u32); 8] = [
        ("admm", GAMMA, Box::new(admm), 20),
        ("admm, output", OUTPUT, Box::new(admm), 20),
        ("r-admm, m = 3", GAMMA, Box::new(recycled(3)), 5),
        ("local", GAMMA, Box::new(|_| Box::new(Local::new(0.0))), 1),
        (
            "average",
            OUTPUT,
            Box::new(|i| Box::new(Average::new(0.5, weights(i)))),
            1,
        ),
        (
            "dlm",
            GRADIENT,
            Box::new(|_| Box::new(Dlm::new(penalty(), Schedule::Constant(1.0), 3))),
            20,
        ),
        (
            "r-dlm",
            GRADIENT,
            Box::new(|_| {
                let inner = Dlm::new(penalty(), Schedule::Constant(1.0), 3);
                Box::new(Recycled::new(inner, Schedule::Constant(1.0), 1))
            }),
            10,
        ),
        (
            "dgd",
            GRADIENT,
            Box::new(|i| Box::new(Dgd::new(weights(i), Schedule::Constant(0.1)))),
            20,
        ),
    ];
    for (name, mechanism, make, charges) in cases {
        let network = network(mechanism, 20);
        let mut simulation = network.simulation(make);
        let snapshots = run(&mut simulation);
        for node in simulation.nodes() {
            assert_eq!(node.curator().ledger().charges(), charges, "{name}");
        }
        for pair in snapshots.windows(2) {
            let rose = pair[1].spent.epsilon > pair[0].spent.epsilon;
            assert_eq!(
                rose,
                pair[1].kind == StepKind::Data,
                "{name} at {}",
                pair[1].iteration
            );
        }
        assert!(snapshots[20].spent.epsilon.is_finite());
    }
}

#[test]
fn without_noise_the_loss_is_infinite_from_the_first_data_step_on() {
    let snapshots = run(&mut network(Mechanism::None, 3).simulation(admm));
    let epsilons: Vec<f64> = snapshots.iter().map(|s| s.spent.epsilon).collect();
    assert_eq!(epsilons, [0.0, f64::INFINITY, f64::INFINITY, f64::INFINITY]);
}

#[test]
fn a_limit_stops_the_node_before_the_release_that_would_exceed_it() {
    let network = Network {
        budget: Budget::limited(2.0, 0.0).unwrap(),
        ..network(GAMMA, 20)
    };
    let mut simulation = network.simulation(recycled(1));
    let seen: Vec<_> = simulation.run(&Sequential).collect();
    // 0.618 a data step: three fit, at iterations 1, 3 and 5; the fourth, at 7, does not.
    assert_eq!(seen.len(), 8);
    assert!(seen[..7].iter().all(Result::is_ok));
    let Err(SimError::Stopped(StopReason::Refused {
        node,
        iteration,
        refusal,
    })) = &seen[7]
    else {
        panic!("{:?}", seen[7]);
    };
    assert_eq!((*node, *iteration), (NodeId(0), 7));
    assert!(matches!(
        refusal,
        Refusal::BudgetRefused(SpendError::OverBudget { limit: 2.0, .. })
    ));
    for node in simulation.nodes() {
        assert_eq!(node.iteration(), 6, "nothing was released");
        assert!(node.curator().ledger().spent().epsilon <= 2.0);
    }
}

#[test]
fn a_question_that_the_mechanism_does_not_protect_is_refused_and_not_charged() {
    for (mechanism, make) in [
        (GRADIENT, admm as fn(usize) -> Box<dyn Algorithm>),
        (GAMMA, |_| {
            Box::new(Dlm::new(penalty(), Schedule::Constant(1.0), 3))
        }),
        (
            Mechanism::Objective {
                law: NoiseDistribution::Gamma { rate: 2.0 },
                scale: NoiseScaling::Penalty,
            },
            |_| Box::new(Local::new(0.0)),
        ),
    ] {
        let mut simulation = network(mechanism, 2).simulation(make);
        let error = simulation.run(&Sequential).find_map(Result::err).unwrap();
        assert!(
            matches!(
                error,
                SimError::Stopped(StopReason::Refused {
                    refusal: Refusal::Unanswerable(_),
                    ..
                })
            ),
            "{error}"
        );
        assert!(
            simulation
                .nodes()
                .all(|node| node.curator().ledger().charges() == 0)
        );
    }
}

#[test]
fn noise_that_grows_with_the_penalty_costs_less_where_the_penalty_is_larger() {
    let spent = |eta| {
        let network = network(
            Mechanism::Objective {
                law: NoiseDistribution::Gamma { rate: 2.0 },
                scale: NoiseScaling::Penalty,
            },
            1,
        );
        let make = |_| -> Box<dyn Algorithm> {
            Box::new(Admm::new(Penalty::common(Schedule::Constant(eta)), 3))
        };
        run(&mut network.simulation(make))[1].spent.epsilon
    };
    // A = S·α/(2ηV), with S = 0.3, V = 2.
    let exact =
        |eta: f64| objective_price(0.3 * 2.0 / (4.0 * eta), 0.75 / (20.0 * (0.04 + 4.0 * eta)));
    for eta in [0.5, 2.0, 9.0] {
        assert!((spent(eta) - exact(eta)).abs() < 1e-14);
    }
}

#[test]
fn the_networks_loss_is_that_of_the_party_with_the_fewest_rows() {
    let mut rows = invented(5, 20, 3);
    rows[3].0.truncate(10);
    rows[3].1.truncate(10);
    let network = Network {
        rows,
        ..network(GAMMA, 4)
    };
    let mut simulation = network.simulation(recycled(1));
    let snapshots = run(&mut simulation);
    let spent: Vec<f64> = simulation
        .nodes()
        .map(|node| node.curator().ledger().spent().epsilon)
        .collect();
    assert!(spent[3] > spent[0]);
    assert_eq!(snapshots[4].spent.epsilon, spent[3]);
}
