//! The plan of one party is its part of the plan of all.

use radmm::graph::{Graph, NodeId};
use radmm::privacy::{Bound, Budget, IdealRelease, Ledger, NoiseDistribution, PrivacyEvent};
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

const SUMS: &str = r#"
[data]
builtin = "clinic"
[network]
nodes = 4
topology = "star"
[problem]
loss = "smooth-hinge"
width = 1.0
weight = 1
ridge = 1
[algorithm]
name = "consensus"
metric = "gram"
metric_share = 0.15
steps = 25
[privacy]
epsilon = 1
delta = 1e-5
[run]
seed = 1
"#;

/// `μ` of (1, 1e-5): Φ(μ/2 − 1/μ) − e·Φ(−μ/2 − 1/μ) = 1e-5, with 50 digits.
const MU: f64 = 0.268_051_123_211_294_2;

#[test]
fn the_first_question_and_the_gradients_of_a_calibrated_sum_compose_exactly_to_its_total() {
    let share = 0.15;
    let (study, _) = Study::parse(SUMS, "study.toml").expect("a study");
    plans(&study, |plan| {
        let noise = plan.noise().expect("noise");
        // Sums have one unit, however many rows a party has.
        assert!(noise.iter().all(|one| *one == noise[0]));
        let charges = plan.party(3).charges(&noise[3]).expect("charges");
        assert_eq!(charges.len(), 26);
        let ratio = |event: &PrivacyEvent| match event.ideal {
            IdealRelease::Additive {
                sensitivity,
                law: NoiseDistribution::Gaussian { sigma },
            } => sensitivity / sigma,
            other => panic!("{other:?}"),
        };
        let squares: Vec<f64> = charges.iter().map(|(_, e)| ratio(e).powi(2)).collect();
        let (first, gradients) = (squares[0], &squares[1..]);
        let whole: f64 = squares.iter().sum();
        // μ² = φμ² + K·(1 − φ)μ²/K. The Gram matrix's sensitivity has room for rounding, one part in 8192, and the grid takes a
        // thousandth of every price.
        assert!((first / (share * whole) - 1.0).abs() < 3e-4);
        assert!(gradients.iter().all(|one| *one == gradients[0]));
        assert!((25.0 * gradients[0] / ((1.0 - share) * whole) - 1.0).abs() < 3e-4);
        let mu = whole.sqrt();
        assert!(mu < MU && mu > 0.99 * MU, "{mu}");
        // The ledger's total is that of one answer with this μ, and of the grid: nothing is lost by composing.
        let total = |events: &[PrivacyEvent], delta: f64| {
            let budget = Budget::unlimited(delta).expect("a δ");
            let mut ledger = Ledger::new(budget, Bound::Tight);
            for event in events {
                ledger.spend(*event).expect("no limit");
            }
            ledger.spent().epsilon
        };
        let events: Vec<PrivacyEvent> = charges.iter().map(|(_, event)| *event).collect();
        let at_once = PrivacyEvent::from(IdealRelease::Additive {
            sensitivity: mu,
            law: NoiseDistribution::gaussian(1.0),
        });
        // Finite precision costs 2κ, and a factor e^κ on δ.
        let slack: f64 = events.iter().map(|event| event.slack).sum();
        let expected = 2.0 * slack + total(&[at_once], 1e-5 * libm::exp(-slack));
        let spent = total(&events, 1e-5);
        assert!((spent - expected).abs() < 1e-12, "{spent} {expected}");
        assert!(spent <= 1.0 && spent > 1.0 - 1e-9, "{spent}");
    });
}

#[test]
fn sums_over_rows_have_a_signal_of_their_own_size() {
    let text = "[data]\nbuiltin = \"clinic\"\n[network]\nnodes = 5\ntopology = \"ring\"\n[problem]\nweight = 1\nridge = 1\n\
                [algorithm]\nname = \"consensus\"\n[privacy]\nepsilon = EPS\ndelta = 1e-5\n[run]\nseed = 1\n";
    let warned = |epsilon: &str| {
        let (study, _) = Study::parse(&text.replace("EPS", epsilon), "study.toml").unwrap();
        let graph = Graph::new(&study.network.topology, 5).unwrap();
        let party = |i: usize| PartySize {
            name: format!("node {i}"),
            rows: 6000,
        };
        let plan = Plan::new(&study, &graph, (0..5).map(party).collect());
        // 30,000 rows in units of 1/16, a fifth of them each.
        assert!((plan.signal() - 30_000.0 / 16.0 / 5.0).abs() < 1e-9);
        let noise = plan.noise().unwrap();
        plan.excessive_noise(&noise).is_some()
    };
    assert!(!warned("1"));
    assert!(warned("0.001"));
}
