//! Neighbours whose values are well formed and no honest work.

use radmm::algorithm::Summands;

use super::*;
use crate::runtime::Suspicion;

/// The messages with which parties stop, and what they suspect, each with the party.
type Reactions = (Vec<(u32, String)>, Vec<(u32, Suspicion)>);

/// Returns what became of a study in which birch idles.
fn reactions(text: &str, (coordinate, since): (f64, u32), is_covert: bool) -> Reactions {
    let mut world = World::of(text, 1);
    world.make_idle(Idler {
        party: 1,
        coordinate,
        since,
        is_covert,
    });
    let halted = world.run_until_halted().into_iter();
    let stopped = halted.map(|(who, error)| (who, error.to_string()));
    let mut suspected = Vec::new();
    for (who, host) in (0..).zip(&world.hosts) {
        let found = host.party.as_ref().unwrap().suspicions().iter();
        suspected.extend(found.map(|suspicion| (who, suspicion.clone())));
    }
    (stopped.collect(), suspected)
}

#[test]
fn a_neighbour_that_always_says_sixteen_is_refused_or_suspected() {
    for topology in ["ring", "star", "complete", "path"] {
        for (name, study) in all_kinds() {
            let (stopped, suspected) = reactions(&on(topology, &study), (16.0, 1), false);
            let is_birch = |(_, what): &(u32, String)| what.starts_with("birch misbehaves: ");
            assert!(
                stopped.iter().all(is_birch),
                "{topology} {name}: {stopped:?}"
            );
            assert!(
                suspected
                    .iter()
                    .all(|(_, suspicion)| suspicion.peer == "birch")
            );
            let noticed = !stopped.is_empty() || !suspected.is_empty();
            // The noise of a minimiser with hardly any ridge is as large, and mixed values follow from neighbours' neighbours.
            let is_unnoticed = name == "average" && ["ring", "path"].contains(&topology);
            assert_eq!(noticed, !is_unnoticed, "{topology} {name}");
        }
    }
}

#[test]
fn an_answer_beyond_its_limit_stops_all_neighbours_that_know_the_question() {
    let minimisers = |name: &str| ["r-admm", "admm", "output"].contains(&name);
    for (topology, around) in [
        ("ring", vec![0, 2]),
        ("star", vec![0]),
        ("complete", vec![0, 2, 3, 4]),
    ] {
        for (name, study) in all_kinds() {
            // A covert idler's gradient of sixteens is within the limit, and so are sums of rows.
            if !minimisers(name) {
                continue;
            }
            // The first question follows from public starts.
            let (stopped, _) = reactions(&on(topology, &study), (16.0, 1), true);
            let who: Vec<u32> = stopped.iter().map(|(who, _)| *who).collect();
            assert_eq!(who, around, "{topology} {name}");
            for (_, what) in &stopped {
                let expected = "birch misbehaves: its value of iteration 1 cannot be an honest party's: it lies ";
                assert!(
                    what.starts_with(expected) && !what.contains("neighbour of both"),
                    "{what}"
                );
            }
            // Later ones are known where all neighbours are.
            let (stopped, suspected) = reactions(&on(topology, &study), (16.0, 3), true);
            match topology {
                "ring" => {
                    assert!(stopped.is_empty());
                    // Two iterations later, those whom birch led astray lie far outside for their other neighbours.
                    let is_far =
                        |s: &Suspicion| s.iteration == 3 && s.why.contains("from the median");
                    let far = suspected.iter().filter(|(_, s)| is_far(s));
                    let by: Vec<(u32, &str)> =
                        far.map(|(who, s)| (*who, s.peer.as_str())).collect();
                    assert_eq!(by, [(0, "birch"), (2, "birch")], "{name}");
                }
                _ => {
                    assert_eq!(stopped.len(), around.len());
                    assert!(stopped[0].1.contains("its value of iteration 3 cannot be"));
                    assert_eq!(
                        stopped[0].1.contains("neighbour of both"),
                        topology == "complete"
                    );
                }
            }
        }
    }
    // A gradient that is read off a model.
    for name in ["r-dlm", "dlm", "dgd"] {
        let (_, study) = all_kinds()
            .into_iter()
            .find(|(kind, _)| *kind == name)
            .unwrap();
        let (stopped, _) = reactions(&on("complete", &study), (90.0, 1), true);
        assert_eq!(stopped.len(), 4, "{name}");
        let (stopped, _) = reactions(&on("ring", &study), (90.0, 1), true);
        assert_eq!(stopped.len(), 2, "{name}");
    }
    // Sums of gradients, rows, and products of rows.
    for metric in ["none", "mean", "gram"] {
        let (stopped, _) = reactions(&on("ring", &consensus(metric)), (400.0, 1), true);
        assert_eq!(stopped.len(), 2, "{metric}");
        let text = on("ring", &consensus(metric));
        let (stopped, _) = reactions(&text, (-400.0, 6), true);
        assert_eq!(stopped.len(), 2, "{metric}");
    }
}

#[test]
fn a_sum_beyond_what_its_parties_can_answer_stops_parties_that_lack_a_summand() {
    // On a path of five the root is in the middle, at the second iteration of a sum. Alder's is a leaf; birch adds alder's to its own.
    // Cedar adds up both sides, and neither birch nor maple knows both.
    for (liar, at, accusers) in [(2, 3, vec![1, 3]), (1, 2, vec![0, 2])] {
        let text = on("path", &consensus("none"));
        let mut world = World::of(&text, 1);
        world.make_idle(Idler {
            party: liar,
            coordinate: 4000.0,
            since: at,
            is_covert: false,
        });
        let halted = world.run_until_halted();
        let limited = |(who, error): (&u32, &PartyError)| {
            let what = error.to_string();
            let expected = format!("its value of iteration {at} cannot be an honest party's");
            what.contains(&expected).then_some(*who)
        };
        let found: Vec<u32> = halted.iter().filter_map(limited).collect();
        // Alder knows what birch adds up, to the bit.
        let expected: Vec<u32> = accusers.into_iter().filter(|who| *who != 0).collect();
        assert_eq!(found, expected, "{halted:?}");
    }
}

#[test]
fn a_suspicion_is_reported_once_and_survives_a_restart() {
    let mut world = World::of(&on("ring", STUDY), 1);
    world.make_idle(Idler {
        party: 1,
        coordinate: 1.0,
        since: 1,
        is_covert: true,
    });
    assert!(world.run_until_halted().is_empty());
    let alder = world.hosts[0].party.as_mut().unwrap();
    let is_suspicion = |notice: &Notice| matches!(notice, Notice::Suspicious(_));
    let notices = alder.take_notices();
    assert_eq!(
        notices.iter().filter(|notice| is_suspicion(notice)).count(),
        1
    );
    let before = alder.suspicions().to_vec();
    assert_eq!((before.len(), before[0].iteration), (1, 3));
    assert!(
        before[0].why.contains("iterations 1 and 3 are 0.0e0 apart"),
        "{}",
        before[0].why
    );
    world.hosts[0].party = None;
    world.hosts[0].disk = world.hosts[0].disk.after_kill();
    world.open(0).unwrap();
    let alder = world.hosts[0].party.as_mut().unwrap();
    assert_eq!(alder.suspicions(), before);
    assert!(!alder.take_notices().iter().any(is_suspicion));
}

#[test]
fn a_party_that_stops_on_suspicion_asks_its_rows_no_more() {
    let mut world = World::of(&on("ring", STUDY), 1);
    world.stop_on_suspicion = true;
    for i in 0..5 {
        world.hosts[i as usize].party = None;
        world.hosts[i as usize].disk = FaultyDisk::default();
        world.open(i).unwrap();
    }
    world.make_idle(Idler {
        party: 1,
        coordinate: 1.0,
        since: 1,
        is_covert: true,
    });
    let halted = world.run_until_halted();
    let stopped = |error: &PartyError| matches!(error, PartyError::Suspicious(s) if s.peer == "birch" && s.iteration == 3);
    assert!(stopped(&halted[&0]) && stopped(&halted[&2]), "{halted:?}");
    let (store, record) = world.hosts[0].party.as_ref().unwrap().store();
    // The questions of iterations 1 and 3. The values of iteration 3 were all that the next one waits for.
    assert_eq!(store.charges().unwrap().len(), 2);
    assert_eq!(store.misbehaviours(record.number).unwrap().len(), 1);
    // Without the wish to stop it goes on.
    world.stop_on_suspicion = false;
    for i in [0, 2] {
        world.hosts[i as usize].party = None;
        world.hosts[i as usize].disk = world.hosts[i as usize].disk.after_kill();
        world.open(i).unwrap();
    }
    assert!(world.run_until_halted().is_empty() && world.all_acked());
    // With it, the suspicion on record is enough.
    world.stop_on_suspicion = true;
    world.hosts[0].party = None;
    world.hosts[0].disk = world.hosts[0].disk.after_kill();
    assert!(stopped(&world.open(0).unwrap_err()));
}

/// Returns a study of every kind.
fn all_kinds() -> Vec<(&'static str, String)> {
    let gradient = |name: &str| {
        STUDY
            .replace("\"r-admm\"", name)
            .replace("\"objective\"", "\"gradient\"")
    };
    let undamped = |text: &str| text.replace("damping = 1\n", "");
    vec![
        ("r-admm", STUDY.to_owned()),
        ("admm", undamped(&STUDY.replace("\"r-admm\"", "\"admm\""))),
        (
            "output",
            STUDY
                .replace("\"objective\"", "\"output\"")
                .replace("sigma = 5", "sigma = 0.5"),
        ),
        ("r-dlm", gradient("\"r-dlm\"")),
        ("dlm", gradient("\"dlm\"")),
        (
            "dgd",
            undamped(&gradient("\"dgd\"")).replace("penalty = 3", "step = 0.01"),
        ),
        (
            "average",
            undamped(&STUDY.replace("\"r-admm\"", "\"average\"")).replace("penalty = 3\n", ""),
        ),
        ("none", consensus("none")),
        ("mean", consensus("mean")),
        ("gram", consensus("gram")),
    ]
}

#[test]
fn honest_parties_are_neither_accused_nor_suspected() {
    for topology in ["ring", "star", "complete", "path"] {
        for (name, study) in all_kinds() {
            let mut world = World::of(&on(topology, &study), 1);
            world.stop_on_suspicion = true;
            let halted = world.run_until_halted();
            assert!(halted.is_empty(), "{topology} {name}: {halted:?}");
            assert!(world.all_acked());
        }
    }
}

/// Five parties of very different sizes, and of very different shares of the positive class, on a part of the Adult table.
#[test]
fn honest_parties_that_differ_much_are_neither_accused_nor_suspected() {
    let adult = include_str!("../../../../../studies/adult.toml");
    let excerpt = adult.replace("last = 15060", "last = 40000");
    assert_ne!(adult, excerpt);
    for algorithm in [
        "name = \"consensus\"\nsteps = 5",
        "name = \"r-admm\"",
        "name = \"r-dlm\"\niterations = 20",
    ] {
        let study = format!("{excerpt}\n[algorithm]\n{algorithm}\n");
        let mut world = World::of(&study, 1);
        world.stop_on_suspicion = true;
        let halted = world.run_until_halted();
        assert!(halted.is_empty(), "{algorithm}: {halted:?}");
        assert!(world.all_acked());
    }
}

#[test]
fn values_are_the_sums_of_answers_that_they_are_taken_for() {
    let mut checked = 0;
    for topology in ["ring", "star", "path", "random"] {
        let mut world = World::of(&on(topology, &consensus("mean")), 1);
        world.run(0);
        let columns = world.hosts[0].shard.columns();
        let instance = Instance::declared(&world.study, &world.graph);
        let tree = radmm::graph::SpanningTree::of(&world.graph);
        let answers = |id: NodeId| {
            let (store, record) = world.hosts[id.0 as usize].party.as_ref().unwrap().store();
            store.charged_answers(record.number).unwrap()
        };
        for id in world.graph.nodes() {
            let algorithm = instance.algorithm(id, vec![0.0; columns]);
            let (store, record) = world.hosts[id.0 as usize].party.as_ref().unwrap().store();
            for t in 1..=world.study.algorithm.iterations {
                let nodes = match algorithm.summands(t).unwrap() {
                    Summands::Own => vec![id],
                    Summands::Subtree => tree.subtree(id),
                    Summands::All => world.graph.nodes().collect(),
                };
                let mut sum = vec![0.0; columns];
                for node in nodes {
                    let answers = answers(node);
                    let last = answers
                        .iter()
                        .rfind(|answer| answer.iteration <= t)
                        .unwrap();
                    let values = last.answer.as_ref().unwrap().values();
                    sum.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
                }
                let sent = store.sent(record.number, t).unwrap().unwrap();
                assert_eq!(
                    sent.message.release,
                    Release::rounded(&sum).unwrap(),
                    "{topology} {id:?} {t}"
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 100);
}
