//! Iterates of an independent implementation, to nine digits.
#![allow(
    clippy::disallowed_methods,
    reason = "tests compare with the platform's functions"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use radmm::algorithm::admm::{Admm, Penalty};
use radmm::algorithm::recycled::Recycled;
use radmm::algorithm::schedule::Schedule;
use radmm::algorithm::{Algorithm, Step, View};
use radmm::exec::Sequential;
use radmm::protocol::query::Query;
use serde_json::Value;
use support::{Network, Rows, models};

const AGREEMENT: f64 = 1e-9;

/// Adds given noise to the questions of an algorithm, which is what objective perturbation does.
struct Scripted {
    inner: Box<dyn Algorithm>,
    noise: std::vec::IntoIter<Vec<f64>>,
}

impl Algorithm for Scripted {
    fn observe(&mut self, view: &View<'_>) {
        self.inner.observe(view);
    }

    fn next_step(&mut self, view: &View<'_>) -> Step {
        let mut step = self.inner.next_step(view);
        if let Step::Ask(Query::Minimise { linear, .. }) = &mut step {
            let noise = self.noise.next().unwrap();
            linear.iter_mut().zip(noise).for_each(|(b, e)| *b += e);
        }
        step
    }

    fn absorb_answer(&mut self, view: &View<'_>, answer: &[f64]) -> Vec<f64> {
        self.inner.absorb_answer(view, answer)
    }

    fn dual(&self) -> Option<&[f64]> {
        self.inner.dual()
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect()
}

fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

/// A number, or "start*growth^t".
fn schedule(value: &Value) -> Schedule {
    let Some(text) = value.as_str() else {
        return Schedule::Constant(value.as_f64().unwrap());
    };
    let (start, rest) = text.split_once('*').unwrap();
    Schedule::Growth {
        start: start.parse().unwrap(),
        growth: rest.strip_suffix("^t").unwrap().parse().unwrap(),
    }
}

fn assert_close(ours: &[f64], golden: &[f64], what: &str) {
    assert_eq!(ours.len(), golden.len(), "{what}");
    for (a, b) in ours.iter().zip(golden) {
        assert!((a - b).abs() <= AGREEMENT, "{what}: {a} against {b}");
    }
}

#[test]
fn every_iterate_dual_and_loss_agrees_with_the_independent_implementation() {
    let golden: Value = serde_json::from_str(include_str!("golden/tiny.json")).unwrap();
    let rows: Vec<Rows> = golden["rows"]
        .as_array()
        .unwrap()
        .iter()
        .zip(golden["labels"].as_array().unwrap())
        .map(|(rows, labels)| {
            (
                matrix(rows),
                numbers(labels).iter().map(|&y| y > 0.0).collect(),
            )
        })
        .collect();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 11);
    for (number, case) in cases.iter().enumerate() {
        let neighbours = matrix(&golden["graphs"][case["graph"].as_str().unwrap()])
            .iter()
            .map(|js| js.iter().map(|&j| j as u32).collect())
            .collect();
        let iterations = case["iterations"].as_u64().unwrap() as u32;
        let network = Network {
            weight: golden["C"].as_f64().unwrap(),
            ridge: golden["rho"].as_f64().unwrap(),
            ..Network::new(rows.clone(), neighbours, iterations)
        };
        let penalty = Penalty::common(schedule(&case["eta"]));
        let damping = schedule(&case["gamma"]);
        let mut simulation = network.simulation(|i| {
            let admm = Admm::new(penalty, network.columns());
            let inner: Box<dyn Algorithm> = match case["algorithm"].as_str().unwrap() {
                "admm" => Box::new(admm),
                "r-admm" => Box::new(Recycled::new(admm, damping, 1)),
                other => panic!("an algorithm that is not known: {other}"),
            };
            match case["noise"].as_array() {
                None => inner,
                Some(steps) => Box::new(Scripted {
                    inner,
                    noise: steps
                        .iter()
                        .map(|step| numbers(&step[i]))
                        .collect::<Vec<_>>()
                        .into_iter(),
                }),
            }
        });
        let mut losses = Vec::new();
        for t in 0..=iterations as usize {
            // One snapshot at a time, to see the models between them.
            losses.push(simulation.run(&Sequential).next().unwrap().unwrap().loss);
            for (i, model) in models(&simulation).iter().enumerate() {
                let golden = numbers(&case["models"][t][i]);
                assert_close(model, &golden, &format!("case {number}, f_{i}({t})"));
            }
        }
        assert_close(
            &losses,
            &numbers(&case["loss"]),
            &format!("case {number}, losses"),
        );
        for (i, node) in simulation.nodes().enumerate() {
            let golden = numbers(&case["dual"][i]);
            assert_close(
                node.dual().unwrap(),
                &golden,
                &format!("case {number}, dual {i}"),
            );
        }
    }
}
