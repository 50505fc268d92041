//! Replicas of a study, run together: what comes of each is what comes of it alone, bit for bit.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "purity is asked of the core, not of its tests"
)]

mod support;

use radmm::algorithm::Algorithm;
use radmm::algorithm::admm::{Admm, Penalty};
use radmm::algorithm::baseline::Average;
use radmm::algorithm::dgd::Dgd;
use radmm::algorithm::recycled::Recycled;
use radmm::algorithm::schedule::Schedule;
use radmm::curator::HeldOutScore;
use radmm::exec::Sequential;
use radmm::graph::Topology;
use radmm::node::Node;
use radmm::privacy::{Budget, Mechanism, NoiseDistribution, NoiseScaling};
use radmm::sim::{
    InvalidSimulation, MeanModels, PartyExecutor, PartyReplicas, Replicas, SimError, Snapshot,
};
use support::{Network, invented, neighbours, shard};

const PARTIES: usize = 6;
const COLUMNS: usize = 3;
const ITERATIONS: u32 = 9;

type Make = fn(usize) -> Box<dyn Algorithm>;

fn admm() -> Admm {
    Admm::new(Penalty::common(Schedule::Constant(0.5)), COLUMNS)
}

/// Algorithms of every kind, with noise that goes with their questions.
fn algorithms() -> [(&'static str, Make, Mechanism); 4] {
    let law = NoiseDistribution::Gamma { rate: 1.0 };
    let objective = Mechanism::Objective {
        law,
        scale: NoiseScaling::Fixed,
    };
    [
        ("ADMM", |_| Box::new(admm()), Mechanism::Output { law }),
        (
            "R-ADMM",
            |_| Box::new(Recycled::new(admm(), Schedule::Constant(0.2), 1)),
            objective,
        ),
        (
            "DGD",
            |_| Box::new(Dgd::new(vec![0.3; 2], Schedule::Constant(0.05))),
            Mechanism::Gradient { law },
        ),
        (
            "averaging once",
            |_| Box::new(Average::new(1.0, vec![0.3; 2])),
            objective,
        ),
    ]
}

/// Every third repetition may spend anything, the others have limits that most algorithms reach, at different iterations.
fn network(mechanism: Mechanism, repetition: u32) -> Network {
    let budget = match repetition % 3 {
        0 => Budget::unlimited(0.0),
        _ => Budget::limited(0.35 * f64::from(repetition), 0.0),
    };
    Network {
        mechanism,
        budget: budget.unwrap(),
        ..Network::new(
            invented(PARTIES, 20, COLUMNS),
            neighbours(&Topology::Ring, PARTIES),
            ITERATIONS,
        )
    }
}

/// Everything that can be known of one repetition.
#[derive(Debug, PartialEq)]
struct Course {
    made: Vec<Result<Snapshot, SimError>>,
    models: Vec<Vec<u64>>,
    spent: Vec<(u32, u64)>,
    ends: [u64; 4],
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Runs these repetitions together.
fn courses(
    repetitions: &[u32],
    make: Make,
    mechanism: Mechanism,
    executor: &dyn PartyExecutor,
) -> Vec<Course> {
    let shards = network(mechanism, 0).shards();
    let nodes = |&r: &u32| network(mechanism, r).replica(&shards, r, make);
    let nodes = repetitions.iter().map(nodes).collect();
    let mut replicas = Replicas::new(nodes, ITERATIONS).unwrap();
    assert_eq!(replicas.count(), repetitions.len());
    let mut all: Vec<Vec<_>> = repetitions.iter().map(|_| Vec::new()).collect();
    for made in replicas.run(executor).flatten() {
        all[made.replica].push(made.result);
    }
    let global_fit = replicas.global_fit(executor).unwrap();
    let test = shard(&invented(1, 30, COLUMNS)[0]);
    let loss = network(mechanism, 0).loss;
    let scores: Vec<HeldOutScore> = replicas.held_out(executor, &test, loss).unwrap();
    let course = |(k, made): (usize, Vec<_>)| {
        let nodes = || replicas.nodes(k);
        let model = |node: &Node| {
            let dual = node.dual().unwrap_or_default();
            bits(&[node.model().values(), dual].concat())
        };
        let spent = |node: &Node| {
            let ledger = node.curator().ledger();
            (ledger.charges(), ledger.spent().epsilon.to_bits())
        };
        let ends = [
            global_fit[k].loss,
            global_fit[k].accuracy,
            scores[k].auc,
            replicas.largest_residual(k),
        ];
        Course {
            made,
            models: nodes().map(model).collect(),
            spent: nodes().map(spent).collect(),
            ends: ends.map(f64::to_bits),
        }
    };
    all.into_iter().enumerate().map(course).collect()
}

/// This many threads, each with every so-manieth party, the last ones first.
struct Threads(usize);

impl PartyExecutor for Threads {
    fn each(&self, parties: &mut [PartyReplicas], work: &(dyn Fn(&mut PartyReplicas) + Sync)) {
        let mut shares: Vec<Vec<&mut PartyReplicas>> = (0..self.0).map(|_| Vec::new()).collect();
        for (i, party) in parties.iter_mut().enumerate().rev() {
            shares[i % self.0].push(party);
        }
        std::thread::scope(|scope| {
            for share in shares {
                scope.spawn(|| share.into_iter().for_each(work));
            }
        });
    }
}

#[test]
fn every_replica_is_what_it_is_alone_on_any_threads() {
    for (name, make, mechanism) in algorithms() {
        let alone: Vec<Course> = (0..10)
            .flat_map(|r| courses(&[r], make, mechanism, &Sequential))
            .collect();
        for executor in [&Sequential as &dyn PartyExecutor, &Threads(2), &Threads(5)] {
            assert_eq!(
                courses(&[0], make, mechanism, executor)[..],
                alone[..1],
                "{name}"
            );
            assert_eq!(
                courses(&[0, 1, 2], make, mechanism, executor)[..],
                alone[..3],
                "{name}"
            );
            let all: Vec<u32> = (0..10).collect();
            assert_eq!(courses(&all, make, mechanism, executor), alone, "{name}");
        }
    }
}

#[test]
fn a_replica_that_stops_drops_out_alone() {
    // The test above would be hollow if none stopped, or all at once.
    let [_, (_, make, mechanism), ..] = algorithms();
    let all: Vec<u32> = (0..10).collect();
    let courses = courses(&all, make, mechanism, &Sequential);
    let stopped_at = |course: &Course| match course.made.last() {
        Some(Err(_)) => Some(course.made.len() - 1),
        _ => {
            assert_eq!(course.made.len(), ITERATIONS as usize + 1);
            None
        }
    };
    let stops: Vec<Option<usize>> = courses.iter().map(stopped_at).collect();
    assert!(stops.iter().step_by(3).all(Option::is_none), "{stops:?}");
    let mut different: Vec<usize> = stops.iter().copied().flatten().collect();
    different.dedup();
    assert!(different.len() > 2, "{stops:?}");
}

#[test]
fn what_differs_in_more_than_noise_is_no_replica() {
    let [(_, make, mechanism), ..] = algorithms();
    let network = network(mechanism, 0);
    let shards = network.shards();
    let replica = |r| network.replica(&shards, r, make);
    let error = |nodes| Replicas::new(nodes, ITERATIONS).err();
    assert_eq!(error(vec![replica(0), replica(1)]), None);
    assert_eq!(error(Vec::new()), Some(InvalidSimulation::Uneven));
    assert_eq!(error(vec![Vec::new()]), Some(InvalidSimulation::Uneven));
    let mut fewer = replica(1);
    fewer.pop();
    assert_eq!(
        error(vec![replica(0), fewer]),
        Some(InvalidSimulation::Uneven)
    );
    let copied = error(vec![replica(0), network.nodes(make)]);
    assert!(matches!(copied, Some(InvalidSimulation::NotAReplica(id)) if id.0 == 0));
    let other = Network {
        weight: 2.0,
        ..self::network(mechanism, 0)
    };
    let other = error(vec![replica(0), other.replica(&shards, 1, make)]);
    assert!(matches!(other, Some(InvalidSimulation::NotAReplica(_))));
}

#[test]
fn mean_models_that_are_not_measured_change_nothing_else() {
    for (name, make, mechanism) in algorithms() {
        let network = network(mechanism, 0);
        let shards = network.shards();
        let steps = |mean_models| {
            let nodes = (0..2).map(|r| network.replica(&shards, r, make));
            let replicas = Replicas::new(nodes.collect(), ITERATIONS).unwrap();
            let mut replicas = replicas.with_mean_models(mean_models);
            let made: Vec<_> = replicas.run(&Sequential).flatten().collect();
            made
        };
        let all = steps(MeanModels::All);
        for (mean_models, measured) in [(MeanModels::First, 1), (MeanModels::Unmeasured, 0)] {
            let mut expected = all.clone();
            for step in &mut expected {
                let snapshot = step.result.as_mut().unwrap();
                assert!(snapshot.mean_model.is_some());
                if step.replica >= measured {
                    snapshot.mean_model = None;
                }
            }
            assert_eq!(steps(mean_models), expected, "{name}");
        }
    }
}

#[test]
fn what_is_passed_over_changes_nothing_of_the_end() {
    for (name, make, mechanism) in algorithms() {
        let network = network(mechanism, 0);
        let shards = network.shards();
        let replicas = || {
            let nodes = (0..2).map(|r| network.replica(&shards, r, make));
            Replicas::new(nodes.collect(), ITERATIONS).unwrap()
        };
        let whole: Vec<_> = replicas().run(&Sequential).collect();
        let mut passing = replicas();
        // The first iteration cannot be passed over.
        assert_eq!(passing.skip_measuring(&Sequential), None);
        assert_eq!(passing.run(&Sequential).next().as_ref(), whole.first());
        let mut passed = 0;
        while let Some(out) = passing.skip_measuring(&Sequential) {
            assert_eq!(out, []);
            passed += 1;
        }
        assert_eq!(passed, ITERATIONS - 1);
        let rest: Vec<_> = passing.run(&Sequential).collect();
        assert_eq!(rest, whole[ITERATIONS as usize..], "{name}");
    }
}
