//! The plan of one party is its part of the plan of all.

use radmm::graph::{Graph, NodeId};
use radmm_study::Study;
use radmm_study::pricing::{PartyPlan, PartySize, Plan, UnattainableBudget};

const STUDY: &str = r#"
[data]
builtin = "clinic"
[network]
nodes = 4
topology = "star"
[problem]
weight = 100
ridge = 1
[algorithm]
name = "mr-admm"
iterations = 6
penalty = [1, 2, 3, 4]
damping = 1
[privacy]
epsilon = 3
[run]
seed = 1
"#;

const ROWS: [usize; 4] = [120, 80, 80, 200];

fn plans(study: &Study, check: impl Fn(Plan<'_>)) {
    let graph = Graph::new(&study.network.topology, study.network.nodes as usize).expect("a graph");
    let party = |(i, &rows): (usize, &usize)| PartySize {
        name: format!("node {i}"),
        rows,
    };
    let parties = ROWS.iter().enumerate().map(party).collect();
    check(Plan::new(study, &graph, parties));
}

#[test]
fn one_party_finds_the_noise_that_a_plan_of_all_finds_for_it() {
    let (study, _) = Study::parse(STUDY, "study.toml").expect("a study");
    plans(&study, |plan| {
        let noise = plan.noise().expect("noise");
        for (i, party) in plan.parties().iter().enumerate() {
            let alone = PartyPlan {
                instance: plan.instance(),
                node: NodeId(i as u32),
                party,
            };
            assert_eq!(alone.noise().expect("noise"), noise[i]);
            let charges = alone.charges(&noise[i]).expect("charges");
            let iterations: Vec<u32> = charges.iter().map(|(t, _)| *t).collect();
            assert_eq!(iterations, [1, 3, 5]);
        }
    });
}

#[test]
fn an_unattainable_total_is_reported_alike_for_one_party_and_for_all() {
    let text = STUDY.replace("epsilon = 3", "epsilon = 0.001");
    let (study, _) = Study::parse(&text, "study.toml").expect("a study");
    plans(&study, |plan| {
        let error = plan.noise().expect_err("too little");
        let UnattainableBudget::OutOfReach { party, .. } = &error else {
            panic!("{error}");
        };
        let i = plan.parties().iter().position(|size| size.name == *party);
        let alone = plan.party(i.expect("a party")).noise();
        assert_eq!(alone.expect_err("too little"), error);
    });
}
