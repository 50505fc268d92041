//! The pieces of work whose instructions are counted, each on fixed input: the calls into the library are here alone.

use std::hint::black_box;
use std::sync::Arc;

use radmm::algorithm::baseline::Local;
use radmm::curator::Shard;
use radmm::curator::bench_hooks::MeasuredRows;
use radmm::curator::bench_hooks::VectorUnits::{self, Best, Plain};
use radmm::node::{Node, Output};
use radmm::privacy::{Mechanism, NoiseDistribution, NoiseScaling};
use radmm::problem::Loss;
use radmm::protocol::message::Message;
use radmm::sim::Simulation;

use crate::adult::{adult_party, adult_rows};
use crate::party::{BenchParty, Neighbourhood, problem, recycled, shard};
use crate::rows::COLUMNS;

/// A piece of work that is done once what it needs is there.
pub struct Kernel {
    /// By which it is asked for.
    pub name: &'static str,
    /// Makes what it needs and does it; the work itself goes through the argument, which counts it.
    pub run: fn(Count<'_>),
}

/// Counts what is done by its argument.
pub type Count<'a> = &'a dyn Fn(&mut dyn FnMut());

/// All of them.
pub const KERNELS: [Kernel; 18] = [
    kernel("gradient", |count| {
        pass(Best, MeasuredRows::gradient, count)
    }),
    kernel("gradient-plain", |count| {
        pass(Plain, MeasuredRows::gradient, count)
    }),
    kernel("exact-gradient", |count| {
        pass(Best, MeasuredRows::exact_gradient, count)
    }),
    kernel("exact-gradient-plain", |count| {
        pass(Plain, MeasuredRows::exact_gradient, count)
    }),
    kernel("losses", |count| pass(Best, MeasuredRows::losses, count)),
    kernel("losses-plain", |count| {
        pass(Plain, MeasuredRows::losses, count)
    }),
    kernel("hessian", |count| pass(Best, MeasuredRows::hessian, count)),
    kernel("hessian-plain", |count| {
        pass(Plain, MeasuredRows::hessian, count)
    }),
    kernel("gram", |count| pass(Best, MeasuredRows::gram, count)),
    kernel("gram-plain", |count| pass(Plain, MeasuredRows::gram, count)),
    kernel("adult-gradient", |count| {
        adult_pass(MeasuredRows::gradient, count)
    }),
    kernel("adult-losses", |count| {
        adult_pass(MeasuredRows::losses, count)
    }),
    kernel("adult-hessian", |count| {
        adult_pass(MeasuredRows::hessian, count)
    }),
    kernel("adult-gram", |count| adult_pass(MeasuredRows::gram, count)),
    kernel("data-step", |count| step(3, count)),
    kernel("recycled-step", |count| step(4, count)),
    kernel("centralised", centralised),
    kernel("scores", scores),
];

const fn kernel(name: &'static str, run: fn(Count<'_>)) -> Kernel {
    Kernel { name, run }
}

const ROWS: usize = 2_000;

/// A sum over rows, at a model.
type Pass = fn(&MeasuredRows, &[f64]) -> f64;

/// Counts one pass over rows whose categories are evenly spread.
fn pass(units: VectorUnits, of: Pass, count: Count<'_>) {
    pass_over(MeasuredRows::new(shard(ROWS, 1), units), of, count);
}

/// Counts one pass over the rows of a party of the Adult table.
fn adult_pass(of: Pass, count: Count<'_>) {
    pass_over(
        MeasuredRows::new(adult_party(&adult_rows()), Best),
        of,
        count,
    );
}

fn pass_over(rows: MeasuredRows, of: Pass, count: Count<'_>) {
    let model = model();
    count(&mut || {
        black_box(of(&rows, &model));
    });
}

/// Weights that are not all alike.
pub fn model() -> Vec<f64> {
    (0..COLUMNS).map(|k| (k as f64).sin()).collect()
}

/// The private step that makes an iterate, of one party with four neighbours: odd ones are asked for, even ones recycled.
fn step(iteration: u32, count: Count<'_>) {
    let gamma = Mechanism::Objective {
        law: NoiseDistribution::Gamma { rate: 2.0 },
        scale: NoiseScaling::Fixed,
    };
    let mut parties = Neighbourhood::new(shard(ROWS, 1).into(), iteration, gamma, &|| {
        recycled(1.0, 0.2)
    });
    let mut receive = |node: &mut Node, message: Message| -> Vec<Output> {
        let mut outputs = Vec::new();
        let mut work = || outputs = node.receive(message.clone()).unwrap();
        match message.iteration + 1 == iteration {
            true => count(&mut work),
            false => work(),
        }
        outputs
    };
    for _ in 0..iteration {
        parties.iterate(&mut receive);
    }
}

/// The minimiser of one party's objective from a cold start, without noise.
fn centralised(count: Count<'_>) {
    let simulation = alone(shard(ROWS, 1).into());
    count(&mut || {
        black_box(simulation.centralised().unwrap());
    });
}

/// Margins, losses and the ranking of rows.
fn scores(count: Count<'_>) {
    let rows: Arc<Shard> = shard(ROWS, 1).into();
    let simulation = alone(rows.clone());
    let model = model();
    count(&mut || {
        black_box(
            simulation
                .evaluate_held_out(&model, &rows, Loss::Logistic)
                .unwrap(),
        );
    });
}

fn alone(shard: Arc<Shard>) -> Simulation {
    let party = BenchParty {
        id: 0,
        neighbours: vec![0],
        iterations: 1,
        algorithm: Box::new(Local::new(0.0)),
        problem: problem(Neighbourhood::WEIGHT, Neighbourhood::RIDGE, 1),
        mechanism: Mechanism::None,
        shard,
    };
    Simulation::new(vec![party.node()], 1).unwrap()
}
