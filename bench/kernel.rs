//! The pieces of work whose instructions are counted, each on fixed input: the calls into the library are here alone.

use std::sync::Arc;

use radmm::message::Message;
use radmm::node::{Node, Output};
use radmm::private::{Law, Loss, Mechanism, Scaling, Shard};
use radmm::public::baseline::Local;
use radmm::sim::Simulation;

use crate::party::{Neighbourhood, Party, problem, recycled, shard};
use crate::rows::COLUMNS;

/// A piece of work that is done once what it needs is there.
pub struct Kernel {
    /// By which it is asked for.
    pub name: &'static str,
    /// Makes what it needs and does it; the work itself goes through the first argument, which counts it.
    pub run: fn(&dyn Fn(&mut dyn FnMut())),
}

/// All of them.
pub const KERNELS: [Kernel; 4] = [
    Kernel {
        name: "data-step",
        run: |count| step(3, count),
    },
    Kernel {
        name: "recycled-step",
        run: |count| step(4, count),
    },
    Kernel {
        name: "centralised",
        run: centralised,
    },
    Kernel {
        name: "scores",
        run: scores,
    },
];

const ROWS: usize = 2_000;

/// The private step that makes an iterate, of one party with four neighbours: odd ones are asked for, even ones recycled.
fn step(iteration: u32, count: &dyn Fn(&mut dyn FnMut())) {
    let gamma = Mechanism::Objective {
        law: Law::Gamma { rate: 2.0 },
        scale: Scaling::Fixed,
    };
    let mut parties = Neighbourhood::new(shard(ROWS, 1), iteration, gamma, &|| recycled(1.0, 0.2));
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
fn centralised(count: &dyn Fn(&mut dyn FnMut())) {
    let simulation = alone(shard(ROWS, 1));
    count(&mut || {
        simulation.centralised().unwrap();
    });
}

/// Margins, losses and the ranking of rows.
fn scores(count: &dyn Fn(&mut dyn FnMut())) {
    let rows = shard(ROWS, 1);
    let simulation = alone(rows.clone());
    let model: Vec<f64> = (0..COLUMNS).map(|k| (k as f64).sin()).collect();
    count(&mut || {
        simulation.held_out_of(&model, &rows, Loss::Logistic);
    });
}

fn alone(shard: Arc<Shard>) -> Simulation {
    let party = Party {
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
