//! Everyone who is compared spends the same, knows beforehand what, and is as good as it can be.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use radmm::account::{Bound, Guarantee};
use radmm::private::{Law, Mechanism, Scaling};
use radmm::public::schedule::Schedule;
use radmm::sim::Snapshot;
use radmm_lab::{CompareError, Comparison, Contender, Experiment, Rival, Wanted};
use radmm_study::{Kind, Method, Noise, Study};

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

/// Algorithms of every family, and how their noise enters.
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
fn what_a_run_will_cost_is_known_before_it_to_the_bit() {
    for changes in families() {
        let experiment = experiment(&changes);
        let bound = experiment.study().privacy.bound;
        let foreseen = experiment
            .course(&experiment.noise().unwrap(), bound)
            .unwrap();
        let runs = experiment
            .repeat(&experiment.noise().unwrap(), None, &|_: &Snapshot| ())
            .unwrap();
        let spent = runs.repetitions[0]
            .iterations
            .iter()
            .map(|made| made.spent.epsilon);
        assert_eq!(foreseen, spent.collect::<Vec<_>>(), "{changes:?}");
    }
}

#[test]
fn with_the_noise_found_every_party_spends_its_total_and_no_more() {
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
fn a_total_below_what_the_hessians_cost_cannot_be_had() {
    let experiment = experiment(&[("penalty = 2", "penalty = 0.01")]);
    let total = Guarantee {
        epsilon: 0.1,
        delta: 0.0,
    };
    assert_eq!(experiment.noise_for(&[total; 5]), None);
    let contender = Contender::at("dear", experiment, total);
    assert!(contender.measure(&|_: &Snapshot| ()).unwrap().is_none());
}

fn wanted(others: Vec<Study>) -> Wanted<'static> {
    Wanted {
        others,
        rivals: &Rival::ALL,
        epsilon: Some(5.0),
        delta: None,
        repetitions: None,
    }
}

#[test]
fn everyone_compared_spends_the_same_total() {
    let other = study(&[
        ("name = \"first\"", "name = \"other\""),
        ("name = \"r-admm\"", "name = \"dgd\"\nstep = 0.01"),
        GRADIENT,
    ]);
    let exact = study(&[(
        "mechanism = \"objective\"\nnoise = \"gamma\"\nrate = 2",
        "mechanism = \"none\"",
    )]);
    let comparison = Comparison::new(experiment(&[]), wanted(vec![other, exact])).unwrap();
    let compared = comparison.run(&|_: &Snapshot| ()).unwrap();
    let names: Vec<&str> = compared
        .contenders
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
    for one in &compared.contenders {
        match one.name.as_str() {
            "first (2)" => assert_eq!(one.total.epsilon, f64::INFINITY),
            // Its price holds the solver's error, which depends on releases.
            "pvp" => assert!((one.total.epsilon / 5.0 - 1.0).abs() < 1e-8),
            _ => assert!(
                one.total.epsilon <= 5.0 && one.total.epsilon > 5.0 * (1.0 - 1e-9),
                "{}",
                one.name
            ),
        }
        assert!(one.held_out.is_some());
        assert_eq!(one.course.len() as u32, one.iterations + 1);
    }
    // Four questions in seven iterations of R-ADMM, seven of its rivals, one of the baselines.
    let touches: Vec<u32> = compared
        .contenders
        .iter()
        .map(|one| one.data_touches)
        .collect();
    assert_eq!(touches, [4, 7, 4, 7, 7, 7, 1, 1]);
    assert_eq!(compared.contenders[0].messages, 8 * 2 * 5);
    assert!(compared.too_dear.is_empty());
    let pooled = compared.pooled.unwrap();
    assert!(
        compared
            .contenders
            .iter()
            .all(|one| one.loss.mean > pooled.loss * 0.9)
    );
}

#[test]
fn a_study_with_a_total_sets_that_of_everyone() {
    let first = experiment(&[("rate = 2", "epsilon = 4")]);
    let own = first.noise().unwrap();
    let wanted = Wanted {
        epsilon: None,
        ..wanted(vec![study(&[("name = \"r-admm\"", "name = \"admm\"")])])
    };
    let comparison = Comparison::new(first, wanted).unwrap();
    assert_eq!(comparison.total().epsilon, 4.0);
    assert_eq!(comparison.contenders()[0].noise.as_ref(), Some(&own));
    let compared = comparison.run(&|_: &Snapshot| ()).unwrap();
    for one in &compared.contenders {
        let spent = one.total.epsilon;
        assert!(spent <= 4.0 && spent > 4.0 * 0.999, "{}: {spent}", one.name);
    }
}

#[test]
fn without_a_total_the_first_study_sets_it() {
    let first = experiment(&[]);
    let own = first.course(&first.noise().unwrap(), Bound::Tight).unwrap()[7];
    let wanted = Wanted {
        epsilon: None,
        ..wanted(vec![])
    };
    let comparison = Comparison::new(first, wanted).unwrap();
    assert_eq!(
        comparison.total(),
        Guarantee {
            epsilon: own,
            delta: 0.0
        }
    );
    let found = comparison.contenders()[0].noise.as_ref().unwrap();
    // The smallest party's noise is the study's own: it is the one whose total was the largest.
    let Mechanism::Objective { law, .. } = found[4] else {
        panic!("{found:?}")
    };
    let Law::Gamma { rate } = law else {
        panic!("{law:?}")
    };
    assert!((rate / 2.0 - 1.0).abs() < 1e-9, "{rate}");
}

#[test]
fn other_rows_are_not_compared() {
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
        let error = Comparison::new(experiment(&[]), wanted(vec![other]))
            .err()
            .unwrap();
        assert!(matches!(error, CompareError::OtherRows { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            format!(
                "other: {section} differs from first’s; studies are compared on the same rows, dealt out in the same way"
            )
        );
    }
}

#[test]
fn a_rival_needs_a_penalty_and_noise() {
    let gradient = [
        ("name = \"r-admm\"", "name = \"dgd\"\nstep = 0.01"),
        GRADIENT,
    ];
    let error = Comparison::new(experiment(&gradient), wanted(vec![]))
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
    let experiment = experiment(&[]);
    let outcome = experiment.run(None, &|_: &Snapshot| ()).unwrap();
    let totals: Vec<Guarantee> = outcome.repetitions[0]
        .nodes
        .iter()
        .map(|node| Guarantee {
            epsilon: node.epsilon_tight,
            delta: 0.0,
        })
        .collect();
    for other in &outcome.beside {
        assert_eq!(other.ends.len(), 3);
        // Any of the ridges that are tried, in the first repetition.
        for share in [0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1] {
            let method = format!("name = \"{}\"\nextra_ridge = {}", other.name, share * 50.0);
            let iterations = format!("iterations = {}", other.ends[0].last.iteration);
            let tried = self::experiment(&[
                ("name = \"r-admm\"", &method),
                ("iterations = 7", &iterations),
            ]);
            let Some(noise) = tried.noise_for(&totals) else {
                continue;
            };
            let runs = tried.repeat(&noise, None, &|_: &Snapshot| ()).unwrap();
            let (best, this) = (
                other.ends[0].everywhere.accuracy,
                runs.repetitions[0].everywhere.accuracy,
            );
            assert!(
                best >= this,
                "{}: {best} against {this} at {share}",
                other.name
            );
        }
    }
}

#[test]
fn rivals_are_what_the_paper_compares_with() {
    let first = study(&[]);
    let law = Law::Gamma { rate: 2.0 };
    let of = |rival: Rival| {
        let study = rival.of(&first).unwrap();
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
        scale: Scaling::Fixed,
    };
    assert_eq!(of(Rival::Dvp), (admm.clone(), fixed));
    // Of a study with a total the rival has the same one.
    let with_total = study(&[("rate = 2", "epsilon = 3")]);
    let pvp = Rival::Pvp.of(&with_total).unwrap().privacy.noise;
    assert!(
        matches!(pvp, Noise::Total(total) if total.epsilon == 3.0 && matches!(total.kind, Kind::Output { .. })),
        "{pvp:?}"
    );
    assert_eq!(of(Rival::Pvp), (admm, Mechanism::Output { law }));
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
        scale: Scaling::Penalty,
    };
    assert_eq!(of(Rival::Pp), (madmm, scaled));
}

const PAPER: (&str, &str) = ("rate = 2", "rate = 2\nbound = \"paper\"");

#[test]
fn beside_a_study_by_the_papers_bound_baselines_spend_its_tight_total() {
    let outcome = experiment(&[PAPER]).run(None, &|_: &Snapshot| ()).unwrap();
    let nodes = outcome.repetitions[0].nodes.iter();
    let tight = nodes.map(|node| node.epsilon_tight).fold(0.0, f64::max);
    for other in &outcome.beside {
        let spent = other.ends[0].last.spent.epsilon;
        assert!(
            spent <= tight && spent > tight * (1.0 - 1e-9),
            "{spent} of {tight}"
        );
    }
}

#[test]
fn delta_is_the_largest_and_everyones() {
    let other = study(&[("name = \"first\"", "name = \"other\""), GAUSSIAN]);
    let comparison = Comparison::new(experiment(&[]), wanted(vec![other])).unwrap();
    assert_eq!(comparison.total().delta, 1e-5);
    let mut all = comparison.contenders().iter();
    assert!(all.all(|one| one.experiment.study().privacy.delta == 1e-5));
}

#[test]
fn the_first_studys_bound_is_everyones_where_it_applies() {
    let first = experiment(&[PAPER]);
    let own = first.course(&first.noise().unwrap(), Bound::Paper).unwrap()[7];
    let tight = study(&[("name = \"first\"", "name = \"tight\"")]);
    let wanted = Wanted {
        epsilon: None,
        ..wanted(vec![tight])
    };
    let comparison = Comparison::new(first, wanted).unwrap();
    assert_eq!(comparison.total().epsilon, own);
    let bounds: Vec<Bound> = comparison
        .contenders()
        .iter()
        .map(|one| one.experiment.study().privacy.bound)
        .collect();
    // The study, its twin, DVP, PP, PVP.
    let paper = Bound::Paper;
    assert_eq!(bounds, [paper, paper, paper, paper, Bound::Tight]);
    let compared = comparison.run(&|_: &Snapshot| ()).unwrap();
    let baselines = compared
        .contenders
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
    let wanted = Wanted {
        rivals: &[],
        epsilon: None,
        ..wanted(vec![noisy])
    };
    let comparison = Comparison::new(exact, wanted).unwrap();
    let total = comparison.total().epsilon;
    assert!(total.is_finite());
    let compared = comparison.run(&|_: &Snapshot| ()).unwrap();
    for one in &compared.contenders[1..] {
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
