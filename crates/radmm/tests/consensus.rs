//! Recycling to consensus: an independent implementation's iterates, exact sums on every graph, and steps that anyone can
//! compute again.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "purity is asked of the core, not of its tests"
)]

mod support;

use radmm::algorithm::consensus::{
    Consensus, ConsensusParameters, Preconditioner, StepSize, period,
};
use radmm::algorithm::{Algorithm, Step, StepInputs, View};
use radmm::exec::Sequential;
use radmm::graph::{Graph, NodeId, SpanningTree, Topology};
use radmm::node::StepKind;
use radmm::privacy::{Mechanism, NoiseDistribution};
use radmm::problem::Loss;
use radmm::protocol::metric::Metric;
use radmm::protocol::query::{gram_width, sum_scale};
use radmm::protocol::release::{Release, SPACING};
use radmm::step_verifier::{ExpectedStep, StepVerifier};
use serde_json::Value;
use support::{Network, Rows, invented, models, neighbours, topologies};

const AGREEMENT: f64 = 1e-9;

/// Adds given noise to the answers of an algorithm, one after the other.
struct Scripted {
    inner: Consensus,
    noise: std::vec::IntoIter<Vec<f64>>,
}

impl Algorithm for Scripted {
    fn observe(&mut self, view: &View<'_>) {
        self.inner.observe(view);
    }

    fn next_step(&mut self, view: &View<'_>) -> Step {
        self.inner.next_step(view)
    }

    fn absorb_answer(&mut self, view: &View<'_>, answer: &[f64]) -> Vec<f64> {
        let answer = self.inner.absorb_answer(view, answer);
        let noise = self.noise.next().unwrap_or(vec![0.0; answer.len()]);
        answer.iter().zip(noise).map(|(x, e)| x + e).collect()
    }

    fn width(&self, iteration: u32, columns: usize) -> usize {
        self.inner.width(iteration, columns)
    }

    fn model(&self) -> Option<&[f64]> {
        self.inner.model()
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap();
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

fn assert_close(ours: &[f64], golden: &[f64], what: &str) {
    assert_eq!(ours.len(), golden.len(), "{what}");
    for (a, b) in ours.iter().zip(golden) {
        assert!((a - b).abs() <= AGREEMENT, "{what}: {a} against {b}");
    }
}

fn packed(matrix: &[Vec<f64>], factor: f64) -> Vec<f64> {
    let entries = (0..matrix.len()).flat_map(|a| (0..=a).map(move |b| (a, b)));
    let unit = |a, b| if a == b { 1.0 } else { 2f64.sqrt() };
    entries
        .map(|(a, b)| factor * unit(a, b) * matrix[a][b])
        .collect()
}

fn golden_rows() -> Vec<Rows> {
    let tiny: Value = serde_json::from_str(include_str!("golden/tiny.json")).unwrap();
    let (rows, labels) = (
        tiny["rows"].as_array().unwrap(),
        tiny["labels"].as_array().unwrap(),
    );
    let positive = |labels| numbers(labels).iter().map(|&y| y > 0.0).collect();
    let pairs = rows.iter().zip(labels);
    pairs
        .map(|(rows, labels)| (matrix(rows), positive(labels)))
        .collect()
}

fn node(graph: &Graph, i: usize, parameters: ConsensusParameters, columns: usize) -> Consensus {
    let tree = SpanningTree::of(graph);
    Consensus::new(parameters, tree.position(graph, NodeId(i as u32)), columns)
}

#[test]
fn released_values_sums_and_models_agree_with_the_independent_implementation() {
    let golden: Value = serde_json::from_str(include_str!("golden/consensus.json")).unwrap();
    let rows = golden_rows();
    let total_rows = golden["rows_total"].as_u64().unwrap() as usize;
    let unit = sum_scale(total_rows) * total_rows as f64;
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 9);
    for topology in [Topology::Ring, Topology::Path, Topology::Star] {
        let graph = Graph::new(&topology, 4).unwrap();
        let depth = SpanningTree::of(&graph).depth();
        for (number, case) in cases.iter().enumerate() {
            let gram = case["metric"] == "gram";
            let parameters = ConsensusParameters {
                steps: case["steps"].as_array().unwrap().len() as u32,
                total_rows,
                step: StepSize::Fixed(case["step"].as_f64().unwrap()),
                momentum: case["momentum"].as_f64().unwrap(),
                averaged: (case["steps"].as_array().unwrap().len() as u32).div_ceil(2),
                preconditioner: match gram {
                    true => Preconditioner::Gram {
                        noise: 1.0,
                        ridge: case["ridge"].as_f64().unwrap(),
                        cut: 0.0,
                    },
                    false => Preconditioner::None,
                },
            };
            let network = Network {
                loss: match case["loss"].as_str().unwrap() {
                    "logistic" => Loss::Logistic,
                    _ => Loss::SmoothHinge { width: 1.0 },
                },
                ..Network::new(
                    rows.clone(),
                    neighbours(&topology, 4),
                    parameters.iterations(depth),
                )
            };
            let mut simulation = network.simulation(|i| {
                let scale = |e: &Vec<f64>| e.iter().map(|e| e * unit).collect();
                let gram_noise =
                    gram.then(|| packed(&matrix(&case["gram_noise"][i]), sum_scale(total_rows)));
                let steps = case["noise"].as_array().cloned().unwrap_or_default();
                let steps = steps.iter().map(|step| scale(&numbers(&step[i])));
                let noise: Vec<Vec<f64>> = gram_noise.into_iter().chain(steps).collect();
                Box::new(Scripted {
                    inner: node(&graph, i, parameters, 3),
                    noise: noise.into_iter(),
                })
            });
            let first = u32::from(gram);
            let steps = case["steps"].as_array().unwrap();
            for t in 0..=network.iterations {
                simulation.run(&Sequential).next().unwrap().unwrap();
                let Some(sum) = t.checked_sub(1).map(|t| t / period(depth)) else {
                    continue;
                };
                let what = format!("{topology:?}, case {number}, t = {t}");
                let released: Vec<Vec<f64>> = simulation
                    .nodes()
                    .map(|node| node.released().values().iter().map(|x| x / unit).collect())
                    .collect();
                let asked = (t - 1) % period(depth) == 0;
                let summed = t % period(depth) == 0;
                if sum < first {
                    if summed {
                        let gram = packed(&matrix(&case["gram"]), 1.0);
                        released
                            .iter()
                            .for_each(|sum| assert_close(sum, &gram, &what));
                    }
                    continue;
                }
                let step = &steps[(sum - first) as usize];
                for (i, released) in released.iter().enumerate() {
                    if asked {
                        assert_close(released, &numbers(&step["released"][i]), &what);
                    }
                    if summed {
                        assert_close(released, &numbers(&step["sum"]), &what);
                    }
                }
            }
            let last = match gram {
                true => {
                    let ridge = case["ridge"].as_f64().unwrap();
                    let gram = packed(&matrix(&case["gram"]), 1.0);
                    let metric = Metric::from_gram(3, &gram, ridge).unwrap();
                    let length = metric.effective_dimension().sqrt();
                    let weights = numbers(&case["model_on_columns"]);
                    weights.iter().map(|weight| weight / length).collect()
                }
                false => numbers(&case["model"]),
            };
            for model in models(&simulation) {
                assert_close(&model, &last, &format!("case {number}, the last model"));
            }
        }
    }
}

fn parameters(
    steps: u32,
    total_rows: usize,
    preconditioner: Preconditioner,
) -> ConsensusParameters {
    ConsensusParameters {
        steps,
        total_rows,
        step: StepSize::Fixed(0.7),
        momentum: 0.3,
        averaged: steps.div_ceil(2),
        preconditioner,
    }
}

const KINDS: [Preconditioner; 3] = [
    Preconditioner::None,
    Preconditioner::MeanRow { noise: 2.0 },
    Preconditioner::Gram {
        noise: 0.5,
        ridge: 0.01,
        cut: 0.005,
    },
];

/// Ten parties on a graph, with noise. Returns everything that was released, by iteration and node, and the last models.
fn run(topology: &Topology, preconditioner: Preconditioner) -> (Vec<Vec<Release>>, Vec<Vec<f64>>) {
    let rows = invented(10, 12, 3);
    let graph = Graph::new(topology, 10).unwrap();
    let parameters = parameters(3, 120, preconditioner);
    let depth = SpanningTree::of(&graph).depth();
    let network = Network {
        mechanism: Mechanism::gradient(NoiseDistribution::gaussian(3.0)),
        ..Network::new(rows, neighbours(topology, 10), parameters.iterations(depth))
    };
    let mut simulation = network.simulation(|i| Box::new(node(&graph, i, parameters, 3)));
    let mut released = Vec::new();
    for _ in 0..=network.iterations {
        simulation.run(&Sequential).next().unwrap().unwrap();
        released.push(
            simulation
                .nodes()
                .map(|node| node.released().clone())
                .collect(),
        );
    }
    (released, models(&simulation))
}

#[test]
fn every_sum_is_exact_on_every_graph_and_all_parties_end_with_the_same_bits() {
    for (name, topology) in topologies() {
        let graph = Graph::new(&topology, 10).unwrap();
        let length = period(SpanningTree::of(&graph).depth()) as usize;
        for kind in KINDS {
            let (released, models) = run(&topology, kind);
            for asked in (1..released.len()).step_by(length) {
                let mut sum = vec![0i64; released[asked][0].values().len()];
                for answer in &released[asked] {
                    for (sum, unit) in sum.iter_mut().zip(answer.units()) {
                        *sum += unit;
                    }
                }
                for total in &released[asked + length - 1] {
                    assert_eq!(total.units(), sum, "{name}, {kind:?}, t = {asked}");
                }
            }
            assert!(models.iter().all(|model| *model == models[0]), "{name}");
        }
    }
}

#[test]
fn all_graphs_give_the_same_model() {
    // Noise depends on the party, the iteration and the question. Only graphs of one depth share their iterations.
    let of = |topology: &Topology| run(topology, KINDS[0]).1.swap_remove(0);
    let complete = of(&Topology::Complete);
    assert_eq!(complete, of(&Topology::Star));
}

#[test]
fn recycled_values_are_computed_again_from_the_messages_of_a_neighbourhood() {
    let topology = Topology::Grid { width: 5 };
    let graph = Graph::new(&topology, 10).unwrap();
    for kind in KINDS {
        let (released, models) = run(&topology, kind);
        for i in graph.nodes() {
            let (own, values) = (i.0 as usize, parameters(3, 120, kind));
            let fresh = Box::new(node(&graph, own, values, 3));
            let mut verifier = StepVerifier::new(fresh, released[0][own].clone());
            let received = |t: usize| -> Vec<Release> {
                let of = |j: &NodeId| released[t][j.0 as usize].clone();
                graph.neighbours(i).iter().map(of).collect()
            };
            let mut recycled = 0;
            for (t, all) in released.iter().enumerate().skip(1) {
                let next = &all[own];
                assert_eq!(next.values().len(), verifier.width(t as u32, 3));
                match verifier.expect(&received(t - 1)) {
                    ExpectedStep::Recycled(value) => {
                        assert_eq!(value.as_ref(), Some(next));
                        recycled += 1;
                    }
                    ExpectedStep::Asked(_) => {
                        let follows = verifier.answered(&received(t - 1), next);
                        assert_eq!(follows.as_ref(), Some(next));
                    }
                }
                verifier.advance(next.clone());
            }
            assert!(recycled > 0);
            verifier.expect(&received(released.len() - 1));
            let model = verifier.model().unwrap();
            assert_eq!(model.values(), models[own]);
        }
    }
}

#[test]
fn a_step_follows_from_the_inputs_that_it_names_and_from_no_others() {
    let topology = Topology::Grid { width: 5 };
    let graph = Graph::new(&topology, 10).unwrap();
    for kind in KINDS {
        let (released, _) = run(&topology, kind);
        let mut checked = [0; 3];
        for i in graph.nodes() {
            let own = i.0 as usize;
            let fresh = || Box::new(node(&graph, own, parameters(3, 120, kind), 3));
            let (mut whole, mut some, mut fewer) = (
                StepVerifier::new(fresh(), released[0][own].clone()),
                StepVerifier::new(fresh(), released[0][own].clone()),
                StepVerifier::new(fresh(), released[0][own].clone()),
            );
            for t in 1..released.len() {
                let of = |j: &NodeId| released[t - 1][j.0 as usize].clone();
                let all: Vec<Release> = graph.neighbours(i).iter().map(of).collect();
                let StepInputs::Last(inputs) = some.inputs() else {
                    panic!("sums along a tree name their inputs")
                };
                let with = |keep: &[usize]| -> Vec<Option<Release>> {
                    let value = |k: usize| keep.contains(&k).then(|| all[k].clone());
                    (0..all.len()).map(value).collect()
                };
                let expected = whole.expect(&all);
                assert_eq!(some.expect_from(&with(&inputs)), Some(expected));
                // Without one of them the step is unknown, and the next one is not.
                let step = fewer.expect_from(&with(inputs.get(1..).unwrap_or_default()));
                assert_eq!(step.is_none(), !inputs.is_empty());
                checked[inputs.len().min(2)] += 1;
                for verifier in [&mut whole, &mut some, &mut fewer] {
                    verifier.advance(released[t][own].clone());
                }
            }
            assert!(!fewer.is_lost());
        }
        // Steps without inputs, with a parent or an only child, and with several children.
        assert!(checked.iter().all(|count| *count > 5), "{checked:?}");
    }
}

#[test]
fn all_parties_release_the_same_value_where_that_is_said() {
    for (name, topology) in topologies() {
        let graph = Graph::new(&topology, 10).unwrap();
        for kind in KINDS {
            let (released, _) = run(&topology, kind);
            let any = node(&graph, 0, parameters(3, 120, kind), 3);
            let common = |t: &usize| any.is_common(*t as u32);
            let (same, other): (Vec<usize>, Vec<usize>) = (0..released.len()).partition(common);
            assert_eq!(same.len(), 3 + usize::from(kind != Preconditioner::None));
            let equal = |t: &usize| released[*t].iter().all(|value| *value == released[*t][0]);
            assert!(same.iter().all(equal), "{name}");
            // The start is common too, and is checked by itself.
            assert!(!other[1..].iter().any(equal), "{name}");
        }
    }
}

#[test]
fn only_questions_are_charged() {
    let graph = Graph::new(&Topology::Ring, 10).unwrap();
    for kind in KINDS {
        let parameters = parameters(3, 120, kind);
        let depth = SpanningTree::of(&graph).depth();
        let network = Network {
            mechanism: Mechanism::gradient(NoiseDistribution::gaussian(3.0)),
            ..Network::new(
                invented(10, 12, 3),
                neighbours(&Topology::Ring, 10),
                parameters.iterations(depth),
            )
        };
        let mut simulation = network.simulation(|i| Box::new(node(&graph, i, parameters, 3)));
        let snapshots = support::run(&mut simulation);
        let data = |s: &&radmm::sim::Snapshot| s.kind == StepKind::Data;
        let asked = snapshots.iter().filter(data).count() as u32;
        assert_eq!(asked, 3 + u32::from(kind != Preconditioner::None));
        for node in simulation.nodes() {
            assert_eq!(node.curator().ledger().charges(), asked);
        }
    }
}

#[test]
fn without_noise_the_gradient_of_the_mean_loss_vanishes() {
    let rows = invented(4, 30, 3);
    let graph = Graph::new(&Topology::Ring, 4).unwrap();
    let parameters = ConsensusParameters {
        step: StepSize::Fixed(4.0),
        momentum: 0.95,
        ..parameters(2000, 120, Preconditioner::None)
    };
    let depth = SpanningTree::of(&graph).depth();
    let network = Network::new(
        rows.clone(),
        neighbours(&Topology::Ring, 4),
        parameters.iterations(depth),
    );
    let mut simulation = network.simulation(|i| Box::new(node(&graph, i, parameters, 3)));
    support::run(&mut simulation);
    let model = &models(&simulation)[0];
    let mut gradient = [0.0; 3];
    for (x, positive) in rows
        .iter()
        .flat_map(|(rows, labels)| rows.iter().zip(labels))
    {
        let y = if *positive { 1.0 } else { -1.0 };
        let margin: f64 = x.iter().zip(model).map(|(x, f)| y * x * f).sum();
        for (g, x) in gradient.iter_mut().zip(x) {
            *g -= y * x / (1.0 + margin.exp()) / 120.0;
        }
    }
    assert!(gradient.iter().all(|g| g.abs() < 1e-9), "{gradient:?}");
}

#[test]
fn a_gram_matrix_has_its_own_width() {
    let (released, _) = run(&Topology::Complete, KINDS[2]);
    let widths: Vec<usize> = released.iter().map(|all| all[0].values().len()).collect();
    assert_eq!(
        widths[..5],
        [3, gram_width(3), gram_width(3), gram_width(3), 3]
    );
    assert!(
        released[1][0]
            .units()
            .iter()
            .any(|unit| *unit as f64 * SPACING > 1.0)
    );
}

#[test]
fn a_cut_is_taken_off_the_eigenvalues_of_the_released_gram_matrix() {
    let rows = invented(4, 30, 3);
    let graph = Graph::new(&Topology::Ring, 4).unwrap();
    let depth = SpanningTree::of(&graph).depth();
    let model = |preconditioner| {
        let parameters = ConsensusParameters {
            momentum: 0.0,
            ..parameters(1, 120, preconditioner)
        };
        let network = Network::new(
            rows.clone(),
            neighbours(&Topology::Ring, 4),
            parameters.iterations(depth),
        );
        let mut simulation = network.simulation(|i| Box::new(node(&graph, i, parameters, 3)));
        for step in simulation.run(&Sequential) {
            step.unwrap();
        }
        let first = simulation.nodes().next().unwrap();
        first.model().values().to_vec()
    };
    let gram = |cut| Preconditioner::Gram {
        noise: 1.0,
        ridge: 0.05,
        cut,
    };
    // Cuts beyond all eigenvalues leave nothing but the ridge, and are the same; a smaller cut is another metric.
    let (whole, some) = (model(gram(0.0)), model(gram(0.1)));
    let (nothing, less) = (model(gram(10.0)), model(gram(20.0)));
    assert!(
        whole
            .iter()
            .all(|weight| weight.is_finite() && *weight != 0.0)
    );
    assert_eq!(nothing, less);
    assert_ne!(whole, some);
    assert_ne!(some, nothing);
}
