//! All candidates of a comparison spend the same, as known beforehand, and baselines have their best ridge.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use radmm::algorithm::schedule::Schedule;
use radmm::privacy::{Bound, Guarantee, Mechanism, NoiseDistribution, NoiseScaling};
use radmm::sim::Snapshot;
use radmm_lab::{
    Candidate, CompareError, Comparison, ComparisonOptions, Experiment, FinalState, PriorMethod,
    Repetition,
};
use radmm_study::pricing::calibrate;
use radmm_study::{Method, Noise, NoiseKind, Study};

const STUDY: &str = r#"
name = "first"
[data]
builtin = "clinic"
intercept = true
[data.split]
method = "column"
name = "hospital"
values = ["Alder", "Birch", "Cedar", "Maple", "Rowan"]
[data.test]
share = 0.2
seed = 3
[network]
nodes = 5
topology = "ring"
[problem]
weight = 50
ridge = 0.5
[algorithm]
name = "r-admm"
iterations = 7
penalty = 2
damping = 1
[privacy]
mechanism = "objective"
noise = "gamma"
rate = 2
[run]
seed = 1
repetitions = 3
"#;

/// The study above with lines replaced.
fn study(changes: &[(&str, &str)]) -> Study {
    support::study(STUDY, changes)
}

fn experiment(changes: &[(&str, &str)]) -> Experiment {
    Experiment::prepare(study(changes), ".".as_ref()).unwrap()
}

const GAUSSIAN: (&str, &str) = (
    "noise = \"gamma\"\nrate = 2",
    "noise = \"gaussian\"\nsigma = 3\ndelta = 1e-5",
);
const GRADIENT: (&str, &str) = ("mechanism = \"objective\"", "mechanism = \"gradient\"");

/// Returns algorithms of every family, with noise in every place.
fn families() -> Vec<Vec<(&'static str, &'static str)>> {
    let name = |new| ("name = \"r-admm\"", new);
    vec![
        vec![],
        vec![GAUSSIAN],
        vec![name("name = \"r-admm\"\nrecycle = 3")],
        vec![
            name("name = \"admm\""),
            ("penalty = 2", "penalty = { start = 2, growth = 1.1 }"),
        ],
        vec![
            name("name = \"m-admm\""),
            ("penalty = 2", "penalty = [2, 3, 4, 5, 6]"),
            ("rate = 2", "rate = 2\nscale = \"penalty\""),
        ],
        vec![
            name("name = \"admm\""),
            ("rate = 2", "rate = 2\nbound = \"paper\""),
        ],
        vec![name("name = \"dlm\""), GRADIENT],
        vec![name("name = \"r-dlm\""), GRADIENT, GAUSSIAN],
        vec![name("name = \"dgd\"\nstep = 0.01"), GRADIENT],
        vec![name("name = \"average\"\nextra_ridge = 3")],
        vec![name("name = \"local\"")],
    ]
}

#[test]
fn the_cost_of_a_run_is_known_beforehand_to_the_bit() {
    for changes in families() {
        let experiment = experiment(&changes);
        let bound = experiment.study().privacy.bound;
        let expected = experiment
            .cumulative_epsilon(&experiment.noise().unwrap(), bound)
            .unwrap();
        let runs = experiment
            .repeat(&experiment.noise().unwrap(), None, &|_: &Snapshot| ())
            .unwrap();
        let spent = runs.repetitions[0]
            .iterations
            .iter()
            .map(|made| made.spent.epsilon);
        assert_eq!(expected, spent.collect::<Vec<_>>(), "{changes:?}");
    }
}

#[test]
fn with_calibrated_noise_every_party_spends_its_total_and_no_more() {
    for changes in families() {
        let experiment = experiment(&changes);
        let delta = experiment.study().privacy.delta;
        // Each party its own, all above what the Hessians cost however much noise there is.
        let totals: Vec<Guarantee> = (0..5)
            .map(|i| Guarantee {
                epsilon: 6.0 + f64::from(i),
                delta,
            })
            .collect();
        let noise = experiment
            .noise_for(&totals)
            .unwrap_or_else(|| panic!("{changes:?}"));
        let runs = experiment.repeat(&noise, None, &|_: &Snapshot| ()).unwrap();
        for (node, total) in runs.repetitions[0].nodes.iter().zip(&totals) {
            let share = node.spent.epsilon / total.epsilon;
            assert!(
                share <= 1.0 && share > 1.0 - 1e-9,
                "{} of its total, {changes:?}",
                share
            );
        }
    }
}

#[test]
fn a_total_below_the_cost_of_the_hessians_is_unattainable() {
    let experiment = experiment(&[("penalty = 2", "penalty = 0.01")]);
    let total = Guarantee {
        epsilon: 0.1,
        delta: 0.0,
    };
    assert_eq!(experiment.noise_for(&[total; 5]), None);
    let candidate = Candidate::at_total("expensive", experiment, total);
    assert!(candidate.measure(&|_: &Snapshot| ()).unwrap().is_none());
}

fn options(others: Vec<Study>) -> ComparisonOptions<'static> {
    ComparisonOptions {
        others,
        prior_methods: &PriorMethod::ALL,
        epsilon: Some(5.0),
        delta: None,
        repetitions: None,
    }
}

#[test]
fn all_candidates_spend_the_same_total() {
    let other = study(&[
        ("name = \"first\"", "name = \"other\""),
        ("name = \"r-admm\"", "name = \"dgd\"\nstep = 0.01"),
        GRADIENT,
    ]);
    let exact = study(&[(
        "mechanism = \"objective\"\nnoise = \"gamma\"\nrate = 2",
        "mechanism = \"none\"",
    )]);
    let comparison = Comparison::new(experiment(&[]), options(vec![other, exact])).unwrap();
    let compared = comparison.run(&|_: &Snapshot| ()).unwrap();
    let names: Vec<&str> = compared
        .candidates
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "first",
            "other",
            "first (2)",
            "dvp",
            "pp",
            "pvp",
            "each party alone",
            "averaged once"
        ]
    );
    for one in &compared.candidates {
        match one.name.as_str() {
            "first (2)" => assert_eq!(one.total.epsilon, f64::INFINITY),
            // Its price includes the solver's error, which depends on releases.
            "pvp" => assert!((one.total.epsilon / 5.0 - 1.0).abs() < 1e-8),
            _ => assert!(
                one.total.epsilon <= 5.0 && one.total.epsilon > 5.0 * (1.0 - 1e-9),
                "{}",
                one.name
            ),
        }
        assert!(one.held_out.is_some());
        assert_eq!(one.by_iteration.len() as u32, one.iterations + 1);
    }
    // Four queries in seven iterations of R-ADMM, seven of prior methods, one of the baselines.
    let data_steps: Vec<u32> = compared
        .candidates
        .iter()
        .map(|one| one.data_steps)
        .collect();
    assert_eq!(data_steps, [4, 7, 4, 7, 7, 7, 1, 1]);
    assert_eq!(compared.candidates[0].messages, 8 * 2 * 5);
    assert!(compared.unattainable.is_empty());
    let centralised = compared.centralised.unwrap();
    assert!(
        compared
            .candidates
            .iter()
            .all(|one| one.loss.mean > centralised.loss * 0.9)
    );
}

#[test]
fn a_study_with_a_total_sets_the_common_total() {
    let first = experiment(&[("rate = 2", "epsilon = 4")]);
    let own = first.noise().unwrap();
    let options = ComparisonOptions {
        epsilon: None,
        ..options(vec![study(&[("name = \"r-admm\"", "name = \"admm\"")])])
    };
    let comparison = Comparison::new(first, options).unwrap();
    assert_eq!(comparison.total().epsilon, 4.0);
    assert_eq!(comparison.candidates()[0].noise.as_ref(), Some(&own));
    let compared = comparison.run(&|_: &Snapshot| ()).unwrap();
    for one in &compared.candidates {
        let spent = one.total.epsilon;
        assert!(spent <= 4.0 && spent > 4.0 * 0.999, "{}: {spent}", one.name);
    }
}

#[test]
fn without_a_total_the_first_study_sets_it() {
    let first = experiment(&[]);
    let own = first
        .cumulative_epsilon(&first.noise().unwrap(), Bound::Tight)
        .unwrap()[7];
    let options = ComparisonOptions {
        epsilon: None,
        ..options(vec![])
    };
    let comparison = Comparison::new(first, options).unwrap();
    assert_eq!(
        comparison.total(),
        Guarantee {
            epsilon: own,
            delta: 0.0
        }
    );
    let found = comparison.candidates()[0].noise.as_ref().unwrap();
    // The smallest party's noise is the study's own: it is the one whose total was the largest.
    let Mechanism::Objective { law, .. } = found[4] else {
        panic!("{found:?}")
    };
    let NoiseDistribution::Gamma { rate } = law else {
        panic!("{law:?}")
    };
    assert!((rate / 2.0 - 1.0).abs() < 1e-9, "{rate}");
}

#[test]
fn studies_on_different_rows_are_rejected() {
    let changes = [
        (("intercept = true", "intercept = false"), "[data]"),
        (("share = 0.2", "share = 0.3"), "[data.test]"),
        (
            (
                "method = \"column\"\nname = \"hospital\"\nvalues = [\"Alder\", \"Birch\", \"Cedar\", \"Maple\", \"Rowan\"]",
                "method = \"round-robin\"",
            ),
            "[data.split]",
        ),
    ];
    for (change, section) in changes {
        let other = study(&[("name = \"first\"", "name = \"other\""), change]);
        let error = Comparison::new(experiment(&[]), options(vec![other]))
            .err()
            .unwrap();
        assert!(
            matches!(error, CompareError::DifferentData { .. }),
            "{error}"
        );
        assert_eq!(
            error.to_string(),
            format!(
                "other: {section} differs from first’s; studies are compared on the same rows, split in the same way"
            )
        );
    }
}

#[test]
fn a_prior_method_needs_a_penalty_and_noise() {
    let gradient = [
        ("name = \"r-admm\"", "name = \"dgd\"\nstep = 0.01"),
        GRADIENT,
    ];
    let error = Comparison::new(experiment(&gradient), options(vec![]))
        .err()
        .unwrap();
    assert!(
        error
            .to_string()
            .starts_with("dvp cannot be made from first:"),
        "{error}"
    );
}

#[test]
fn a_baseline_takes_the_ridge_that_is_best() {
    check_ridges(&experiment(&[]));
}

/// It has ten repetitions of five large parties; three suffice.
#[test]
fn the_ridges_of_the_adult_study_are_the_best_of_all_eight() {
    let text = include_str!("../../../studies/adult.toml");
    let (mut study, _) = Study::parse(text, "adult.toml").unwrap();
    study.run.repetitions = 3;
    check_ridges(&Experiment::prepare(study, ".".as_ref()).unwrap());
}

/// Checks that no ridge is better than the one that a baseline has, and that a study with this ridge gives the same bits as the
/// baseline, which shares its runs with the other one.
fn check_ridges(experiment: &Experiment) {
    let outcome = experiment.run(None, &|_: &Snapshot| ()).unwrap();
    let study = experiment.study();
    let totals: Vec<Guarantee> = outcome.repetitions[0]
        .nodes
        .iter()
        .map(|node| Guarantee {
            epsilon: node.epsilon_tight,
            delta: study.privacy.delta,
        })
        .collect();
    let repetitions = study.run.repetitions as usize;
    for other in &outcome.baselines {
        assert_eq!(other.final_states.len(), repetitions);
        let accuracy = |ends: &[FinalState]| {
            let each = ends.iter().map(|end| end.everywhere.accuracy);
            each.sum::<f64>() / repetitions as f64
        };
        let best = accuracy(&other.final_states);
        let mut found = false;
        for share in [0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1] {
            let extra_ridge = share * study.problem.weight;
            let mut tried = study.clone();
            tried.algorithm.method = match other.name {
                "local" => Method::Local { extra_ridge },
                _ => Method::Average { extra_ridge },
            };
            tried.algorithm.iterations = other.final_states[0].last.iteration;
            let template = study.privacy.noise.template();
            tried.privacy.noise = Noise::Given(calibrate::for_one_answer(&template));
            let tried = experiment.on_same_network(tried);
            let Some(noise) = tried.noise_for(&totals) else {
                continue;
            };
            let runs = tried.repeat(&noise, None, &|_: &Snapshot| ()).unwrap();
            let ends = runs.repetitions.iter().map(Repetition::final_state);
            let ends: Vec<FinalState> = ends.collect();
            let this = accuracy(&ends);
            assert!(
                best >= this,
                "{}: {best} against {this} at {share}",
                other.name
            );
            if extra_ridge == other.extra_ridge {
                assert_eq!(ends, other.final_states);
                found = true;
            }
        }
        assert!(found, "{}: {}", other.name, other.extra_ridge);
    }
}

#[test]
fn prior_methods_are_those_of_the_paper() {
    let first = study(&[]);
    let law = NoiseDistribution::Gamma { rate: 2.0 };
    let of = |prior: PriorMethod| {
        let study = prior.study_from(&first).unwrap();
        let Noise::Given(mechanism) = study.privacy.noise else {
            panic!("{:?}", study.privacy)
        };
        (study.algorithm.method, mechanism)
    };
    let admm = Method::Admm {
        penalty: Schedule::Constant(2.0),
    };
    let fixed = Mechanism::Objective {
        law,
        scale: NoiseScaling::Fixed,
    };
    assert_eq!(of(PriorMethod::Dvp), (admm.clone(), fixed));
    // From a study with a total, the prior method takes over the total.
    let with_total = study(&[("rate = 2", "epsilon = 3")]);
    let pvp = PriorMethod::Pvp
        .study_from(&with_total)
        .unwrap()
        .privacy
        .noise;
    assert!(
        matches!(pvp, Noise::Total(total) if total.epsilon == 3.0 && matches!(total.kind, NoiseKind::Output { .. })),
        "{pvp:?}"
    );
    assert_eq!(of(PriorMethod::Pvp), (admm, Mechanism::Output { law }));
    let eta = Schedule::Growth {
        start: 2.0,
        growth: 1.01,
    };
    let madmm = Method::MAdmm {
        penalty: vec![eta; 5],
        dual_step: 2.0,
    };
    let scaled = Mechanism::Objective {
        law,
        scale: NoiseScaling::Penalty,
    };
    assert_eq!(of(PriorMethod::Pp), (madmm, scaled));
}

const PAPER: (&str, &str) = ("rate = 2", "rate = 2\nbound = \"paper\"");

#[test]
fn the_baselines_of_a_study_by_the_papers_bound_spend_its_tight_total() {
    let outcome = experiment(&[PAPER]).run(None, &|_: &Snapshot| ()).unwrap();
    let nodes = outcome.repetitions[0].nodes.iter();
    let tight = nodes.map(|node| node.epsilon_tight).fold(0.0, f64::max);
    for other in &outcome.baselines {
        let spent = other.final_states[0].last.spent.epsilon;
        assert!(
            spent <= tight && spent > tight * (1.0 - 1e-9),
            "{spent} of {tight}"
        );
    }
}

#[test]
fn the_common_delta_is_the_largest() {
    let other = study(&[("name = \"first\"", "name = \"other\""), GAUSSIAN]);
    let comparison = Comparison::new(experiment(&[]), options(vec![other])).unwrap();
    assert_eq!(comparison.total().delta, 1e-5);
    let mut all = comparison.candidates().iter();
    assert!(all.all(|one| one.experiment.study().privacy.delta == 1e-5));
}

#[test]
fn the_first_studys_bound_applies_to_all_where_it_can() {
    let first = experiment(&[PAPER]);
    let own = first
        .cumulative_epsilon(&first.noise().unwrap(), Bound::Paper)
        .unwrap()[7];
    let tight = study(&[("name = \"first\"", "name = \"tight\"")]);
    let options = ComparisonOptions {
        epsilon: None,
        ..options(vec![tight])
    };
    let comparison = Comparison::new(first, options).unwrap();
    assert_eq!(comparison.total().epsilon, own);
    let bounds: Vec<Bound> = comparison
        .candidates()
        .iter()
        .map(|one| one.experiment.study().privacy.bound)
        .collect();
    // The study, its twin, DVP, PP, PVP.
    let paper = Bound::Paper;
    assert_eq!(bounds, [paper, paper, paper, paper, Bound::Tight]);
    let compared = comparison.run(&|_: &Snapshot| ()).unwrap();
    let baselines = compared
        .candidates
        .iter()
        .filter(|one| one.extra_ridge.is_some());
    let bounds: Vec<Bound> = baselines.map(|one| one.bound).collect();
    assert_eq!(bounds, [Bound::Tight; 2]);
}

#[test]
fn a_first_study_without_noise_does_not_set_the_total() {
    let exact = experiment(&[(
        "mechanism = \"objective\"\nnoise = \"gamma\"\nrate = 2",
        "mechanism = \"none\"",
    )]);
    let noisy = study(&[("name = \"first\"", "name = \"noisy\"")]);
    let options = ComparisonOptions {
        prior_methods: &[],
        epsilon: None,
        ..options(vec![noisy])
    };
    let comparison = Comparison::new(exact, options).unwrap();
    let total = comparison.total().epsilon;
    assert!(total.is_finite());
    let compared = comparison.run(&|_: &Snapshot| ()).unwrap();
    for one in &compared.candidates[1..] {
        let spent = one.total.epsilon;
        assert!(
            spent <= total && spent > total * (1.0 - 1e-9),
            "{}: {spent} of {total}",
            one.name
        );
    }
    assert_eq!(
        compared.exceptions(),
        ["first has no guarantee: no noise, or releases in doubles"]
    );
}
