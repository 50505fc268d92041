//! The bill that is printed before a run is what the run then spends, and the statement after it states the guarantee.
#![allow(
    clippy::disallowed_methods,
    reason = "tests compare with the platform's functions"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use radmm::node::StepKind;
use radmm_lab::{EXCESSIVE_SHARE, Experiment, PrivacyStatement, StudyBill};
use radmm_study::Study;
use serde_json::{Value, json};

const STUDY: &str = r#"
name = "billed"
[data]
builtin = "clinic"
intercept = true
[data.split]
method = "column"
name = "hospital"
values = ["Alder", "Birch", "Cedar", "Maple", "Rowan"]
[network]
nodes = 5
topology = "path"
[problem]
weight = 100
ridge = 0.5
[algorithm]
name = "r-admm"
iterations = 9
penalty = 3
damping = 1
[privacy]
mechanism = "objective"
rate = 2
[run]
seed = 1
repetitions = 2
"#;

fn study(changes: &[(&str, &str)]) -> Study {
    support::study(STUDY, changes)
}

fn experiment(changes: &[(&str, &str)]) -> Experiment {
    Experiment::prepare(study(changes), ".".as_ref()).unwrap()
}

const GIVEN: &str = "mechanism = \"objective\"\nrate = 2";

#[test]
fn a_run_spends_what_the_bill_says_to_the_bit() {
    let name = |new| ("name = \"r-admm\"", new);
    for changes in [
        vec![],
        vec![(GIVEN, "epsilon = 3")],
        vec![(GIVEN, "epsilon = 3\ndelta = 1e-5")],
        vec![(
            GIVEN,
            "mechanism = \"objective\"\nrate = 2\nbound = \"paper\"",
        )],
        vec![
            name("name = \"r-admm\"\nrecycle = 2"),
            ("penalty = 3", "penalty = { start = 3, growth = 1.1 }"),
        ],
        vec![name("name = \"dgd\"\nstep = 0.01"), (GIVEN, "epsilon = 3")],
        vec![
            name("name = \"average\"\nextra_ridge = 9"),
            (GIVEN, "epsilon = 3"),
        ],
        vec![(GIVEN, "mechanism = \"none\"")],
    ] {
        let experiment = experiment(&changes);
        let bill = experiment.bill().unwrap();
        let noise = experiment.noise().unwrap();
        let runs = experiment.repeat(&noise, None, &|_| ()).unwrap();
        let run = &runs.repetitions[0];
        for (billed, node) in bill.nodes.iter().zip(&run.nodes) {
            assert_eq!(billed.total, node.spent, "{changes:?}");
            assert_eq!(
                (&billed.name, billed.rows, billed.degree, billed.law),
                (&node.name, node.rows, node.degree, node.law)
            );
            assert_eq!(billed.data_steps, node.data_steps as usize);
        }
        let spent = run
            .iterations
            .iter()
            .map(|made| (made.iteration, made.kind, made.spent.epsilon));
        let foreseen = bill
            .by_iteration
            .iter()
            .map(|at| (at.t, at.kind, at.epsilon));
        assert!(foreseen.eq(spent), "{changes:?}");
        assert_eq!(bill.data_steps, run.count(StepKind::Data));
        assert_eq!(bill.recycled_steps, run.count(StepKind::Recycled));
    }
}

#[test]
fn the_bill_from_the_numbers_of_rows_is_the_same() {
    let experiment = experiment(&[(GIVEN, "epsilon = 3\ndelta = 1e-5")]);
    let parties = &experiment.table().parties;
    let rows: Vec<usize> = parties.iter().map(|party| party.shard.rows()).collect();
    let bill = StudyBill::for_rows(experiment.study(), &rows).unwrap();
    assert_eq!(bill.to_json(), experiment.bill().unwrap().to_json());
    // No file is opened: there is none.
    let nowhere = study(&[(
        "builtin = \"clinic\"",
        "path = \"nowhere.csv\"\nlabel = \"a\"\npositive = \"b\"",
    )]);
    assert_eq!(StudyBill::for_rows(&nowhere, &[400]).unwrap().columns, 1);
}

#[test]
fn recycling_saves_the_additional_cost_of_a_query_in_every_iteration() {
    let bill = experiment(&[]).bill().unwrap();
    let saving = bill.saving.unwrap();
    assert_eq!((saving.conventional, saving.data_steps), ("admm", 9));
    // Nine steps in place of five, at the same price each.
    let ratio = saving.epsilon.unwrap() / bill.total.epsilon;
    assert!((ratio - 9.0 / 5.0).abs() < 1e-12, "{ratio}");
    // x = κ/(4·(0.1 + 6V)) is below S·α/8 with S = 2κ, κ = 500/Σ B_i, so that the bend of the logistic loss is free but on the
    // grid, which costs a 1024th of S·α + h, h = ln(1 + x): 5(1025·S·α + h) = 9(1025·S·α' + h). The ends have V = 1.
    let rows: usize = bill.nodes.iter().map(|node| node.rows).sum();
    let needed = bill.nodes.iter().map(|node| {
        let kappa = 500.0 / rows as f64;
        let (s, x) = (2.0 * kappa, kappa / 4.0 / (0.1 + 6.0 * node.degree as f64));
        assert!(x < s * 2.0 * 5.0 / 9.0 / 8.0);
        2.0 / ((s * 2.0 * 5.0 - 4.0 * x.ln_1p() / 1025.0) / (9.0 * s))
    });
    let (low, high) = needed.fold((f64::MAX, 0.0f64), |(low, high), x| {
        (low.min(x), high.max(x))
    });
    let [told_low, told_high] = saving.noise.unwrap();
    assert!((told_low / low - 1.0).abs() < 1e-9 && (told_high / high - 1.0).abs() < 1e-9);
    assert!(low > 1.8 && high < 1.801, "{low} {high}");
    for changes in [
        ("name = \"r-admm\"", "name = \"admm\""),
        ("name = \"r-admm\"", "name = \"r-admm\"\nrecycle = 0"),
        ("name = \"r-admm\"", "name = \"local\""),
        (GIVEN, "mechanism = \"none\""),
    ] {
        assert_eq!(
            experiment(&[changes]).bill().unwrap().saving,
            None,
            "{changes:?}"
        );
    }
}

#[test]
fn the_norm_of_noise_is_in_units_of_the_gradient() {
    let norm = |changes: &[(&str, &str)]| {
        let bill = StudyBill::for_rows(&study(changes), &[400]).unwrap();
        bill.nodes[1].noise_norm
    };
    // d = 12 columns; in the middle of the path a = 2·3·2 = 12, and m = 0.5/5 + 12.
    let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-12, "{a} {b}");
    close(norm(&[]), 12.0 / 2.0);
    close(
        norm(&[("rate = 2", "rate = 2\nscale = \"penalty\"")]),
        12.0 * 6.0,
    );
    close(norm(&[("\"objective\"", "\"output\"")]), 12.1 * 6.0);
    let gaussian = ("rate = 2", "noise = \"gaussian\"\nsigma = 5\ndelta = 1e-5");
    close(norm(&[gaussian]), 5.0 * 12f64.sqrt());
    let dgd = [
        ("name = \"r-admm\"", "name = \"dgd\"\nstep = 0.01"),
        ("\"objective\"", "\"gradient\""),
    ];
    close(norm(&dgd), 6.0);
    assert_eq!(norm(&[(GIVEN, "mechanism = \"none\"")]), 0.0);
    // Penalties that grow make the last step the noisiest.
    let growing = ("penalty = 3", "penalty = { start = 3, growth = 2 }");
    close(
        norm(&[growing, ("rate = 2", "rate = 2\nscale = \"penalty\"")]),
        12.0 * 512.0 * 6.0,
    );
}

#[test]
fn noise_beyond_a_share_of_the_gradient_is_warned_of() {
    let warning = |rate: f64| {
        let text = STUDY.replace("rate = 2", &format!("rate = {rate}"));
        let (study, _) = Study::parse(&text, "billed.toml").unwrap();
        StudyBill::for_rows(&study, &[400]).unwrap().noise_warning
    };
    // d/α against DROWNING·C = 30.
    assert_eq!(EXCESSIVE_SHARE, 0.3);
    assert_eq!(warning(12.0 / 29.9), None);
    assert_eq!(warning(12.0 / 30.1).unwrap().parties, 5);
    // At one total, small parties have most noise, and the smallest is named.
    let study = study(&[
        (GIVEN, "epsilon = 3\ndelta = 1e-5"),
        ("[problem]", "[problem]\ncount = \"parties\""),
    ]);
    let bill = StudyBill::for_rows(&study, &[4000, 400, 40, 50, 4000]).unwrap();
    let warning = bill.noise_warning.unwrap();
    assert_eq!(
        (warning.party.as_str(), warning.rows, warning.parties),
        ("Cedar", 40, 2)
    );
    let said = warning.to_string();
    assert!(
        said.starts_with(
            "the noise is likely to drown the signal: at Cedar, with 40 rows, its norm is about "
        ),
        "{said}"
    );
    assert!(said.ends_with("this applies to 2 parties; more rows, fewer columns, a larger total or fewer data steps would help"), "{said}");
}

#[test]
fn the_projects_own_studies_have_no_noise_warning() {
    for (file, text) in [
        (
            "adult-admm.toml",
            include_str!("../../../studies/adult-admm.toml"),
        ),
        (
            "adult-bins.toml",
            include_str!("../../../studies/adult-bins.toml"),
        ),
        ("clinic.toml", include_str!("../../../studies/clinic.toml")),
        ("fig1.toml", include_str!("../../../studies/fig1.toml")),
        ("fig2.toml", include_str!("../../../studies/fig2.toml")),
        ("fig3.toml", include_str!("../../../studies/fig3.toml")),
    ] {
        let (study, _) = Study::parse(text, file).unwrap();
        // About as many rows as their parties have.
        let rows = if file == "clinic.toml" { 400 } else { 6000 };
        assert_eq!(
            StudyBill::for_rows(&study, &[rows]).unwrap().noise_warning,
            None,
            "{file}"
        );
    }
}

fn statement(changes: &[(&str, &str)], limit: Option<f64>) -> Value {
    let experiment = experiment(changes);
    let outcome = experiment.run(limit, &|_| ()).unwrap();
    let text = PrivacyStatement::new(&experiment, &outcome).to_json();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_statement_has_the_guarantee_and_says_that_a_simulation_protects_nobody() {
    let changes = [(GIVEN, "epsilon = 3\ndelta = 1e-5")];
    let said = statement(&changes, None);
    assert_eq!(said["program"]["name"], "radmm");
    assert_eq!(said["program"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(said["study"], "billed");
    assert_eq!(said["study_sha256"], study(&changes).sha256());
    assert_eq!(said["relation"], "one row of one party replaced");
    assert_eq!(
        said["scope"],
        "total over every message of the run, the largest of the parties'"
    );
    assert!(
        said["adversary"]
            .as_str()
            .unwrap()
            .starts_with("sees every message on every edge")
    );
    assert_eq!(said["protects"], false);
    assert!(
        said["caveat"]
            .as_str()
            .unwrap()
            .starts_with("a simulation: ")
    );
    assert_eq!(
        (&said["mechanism"], &said["scale"], &said["bound"]),
        (&json!("objective"), &json!("fixed"), &json!("tight"))
    );
    assert!(
        said["composition"]
            .as_str()
            .unwrap()
            .starts_with("Rényi losses")
    );
    assert_eq!(
        (&said["data_steps"], &said["recycled_steps"]),
        (&json!(5), &json!(4))
    );
    let nodes = said["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 5);
    let mut largest = 0.0f64;
    for node in nodes {
        let epsilon = node["epsilon"].as_f64().unwrap();
        assert!(epsilon <= 3.0 && epsilon > 3.0 * 0.999);
        assert_eq!(
            (&node["delta"], &node["noise"]),
            (&json!(1e-5), &json!("gaussian"))
        );
        assert!(node["sigma"].as_f64().unwrap() > 0.0 && node["rows"].as_u64().unwrap() > 0);
        largest = largest.max(epsilon);
    }
    assert_eq!(said["epsilon"].as_f64(), Some(largest));
    assert_eq!(said["delta"], 1e-5);
}

/// Changes that make the study ask for gradients.
const GRADIENTS: [(&str, &str); 2] = [
    ("name = \"r-admm\"", "name = \"r-dlm\""),
    (GIVEN, "mechanism = \"gradient\"\nepsilon = 3\ndelta = 3e-7"),
];

#[test]
fn bills_and_statements_have_the_total_at_several_deltas() {
    let objective = [(GIVEN, "epsilon = 3\ndelta = 3e-7")];
    for changes in [&GRADIENTS[..], &objective[..]] {
        let bill: Value =
            serde_json::from_str(&experiment(changes).bill().unwrap().to_json()).unwrap();
        let said = statement(changes, None);
        assert_eq!(bill["epsilon_at"], said["epsilon_at"]);
        let totals = said["epsilon_at"].as_array().unwrap();
        let deltas: Vec<f64> = totals
            .iter()
            .map(|total| total["delta"].as_f64().unwrap())
            .collect();
        assert_eq!(deltas, [1e-4, 1e-5, 1e-6, 3e-7, 1e-8, 1e-10]);
        assert!(totals.iter().all(|one| one["relation"] == said["relation"]));
        assert_eq!(totals[3]["epsilon"], said["epsilon"]);
        let epsilons: Vec<f64> = totals
            .iter()
            .map(|total| total["epsilon"].as_f64().unwrap())
            .collect();
        assert!(epsilons.is_sorted_by(|a, b| a < b), "{epsilons:?}");
        let gradients = changes.len() == 2;
        for document in [&bill, &said] {
            assert_eq!(document.get("mu").is_some(), gradients);
        }
        if gradients {
            // The largest of the parties' roots of the sum of (S/σ)², with S = 1000/Σ B_i.
            let nodes = said["nodes"].as_array().unwrap();
            let rows: u64 = nodes
                .iter()
                .map(|node| node["rows"].as_u64().unwrap())
                .sum();
            let mu = nodes.iter().map(|node| {
                let sigma = node["sigma"].as_f64().unwrap();
                5f64.sqrt() * 1000.0 / rows as f64 / sigma
            });
            let mu = mu.fold(0.0, f64::max);
            assert!((said["mu"].as_f64().unwrap() / mu - 1.0).abs() < 1e-12);
        }
    }
    for changes in [&[][..], &[(GIVEN, "mechanism = \"none\"")][..]] {
        let said = statement(changes, None);
        assert!(said.get("epsilon_at").is_none() && said.get("mu").is_none());
    }
}

#[test]
fn a_statement_without_noise_has_no_epsilon_and_one_that_stopped_early_has_what_was_spent() {
    let none = statement(&[(GIVEN, "mechanism = \"none\"")], None);
    assert!(none["epsilon"].is_null());
    assert_eq!(none["mechanism"], "none");
    assert_eq!(
        none["composition"],
        "none: answers without noise have no finite loss"
    );
    let pure = statement(&[], None);
    let stopped = statement(&[], Some(pure["epsilon"].as_f64().unwrap() / 2.0));
    assert_eq!(pure["composition"], "pure losses, added up");
    assert!(stopped["epsilon"].as_f64().unwrap() <= pure["epsilon"].as_f64().unwrap() / 2.0);
    assert!(stopped["data_steps"].as_u64() < pure["data_steps"].as_u64());
}
