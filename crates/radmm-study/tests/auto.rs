//! A study may leave everything but its rows, its parties and its total to public rules.

use radmm::graph::Topology;
use radmm::problem::Loss;
use radmm_study::algorithm::MetricKind;
use radmm_study::{Choice, Method, NoiseFamily, Study};

const COMPLETE: &str =
    "[data]\nbuiltin = \"adult\"\n[network]\nnodes = 5\n[privacy]\nepsilon = 1\ndelta = 1e-5\n";

fn parse(text: &str) -> Study {
    let (study, notes) = Study::parse(text, "study.toml").expect("a study");
    assert!(notes.is_empty(), "{notes:?}");
    study
}

fn chosen<'a>(study: &'a Study, key: &str) -> Option<&'a Choice> {
    study.choices.iter().find(|choice| choice.full_key() == key)
}

fn family(study: &Study) -> NoiseFamily {
    let noise = study.privacy.noise.template().noise();
    noise.expect("noise").family()
}

#[test]
fn rows_parties_and_a_total_are_a_complete_study() {
    let study = parse(COMPLETE);
    assert_eq!(study.algorithm.method.name(), "consensus");
    assert!(matches!(
        study.algorithm.method,
        Method::Consensus {
            metric: MetricKind::Gram,
            steps: 25,
            ..
        }
    ));
    assert_eq!(study.problem.loss, Loss::SmoothHinge { width: 1.0 });
    assert_eq!(study.network.topology, Topology::Ring);
    assert_eq!(family(&study), NoiseFamily::Gaussian);
    assert_eq!((study.problem.weight, study.problem.ridge), (1.0, 1e-4));
    assert_eq!((study.run.repetitions, study.run.seed), (1, 1));
}

#[test]
fn every_choice_has_a_value_and_a_reason_and_stands_in_the_study() {
    let study = parse(COMPLETE);
    let written = serde_json::to_value(&study).unwrap();
    let keys: Vec<String> = study.choices.iter().map(Choice::full_key).collect();
    assert_eq!(
        keys,
        [
            "[network] topology",
            "[problem] loss",
            "[problem] weight",
            "[problem] ridge",
            "[algorithm] name",
            "[algorithm] metric",
            "[algorithm] metric_share",
            "[algorithm] steps",
            "[privacy] noise",
            "[run] seed"
        ]
    );
    for choice in &study.choices {
        let value: serde_json::Value = serde_json::from_str(&choice.value).unwrap();
        assert_eq!(written[choice.section][choice.key], value, "{choice:?}");
        assert!(choice.reason.len() > 10, "{choice:?}");
    }
}

#[test]
fn a_study_that_gives_what_the_rules_choose_is_the_same_study() {
    for algorithm in [
        "consensus",
        "admm",
        "r-admm",
        "m-admm",
        "mr-admm",
        "dlm",
        "r-dlm",
    ] {
        let short = format!("{COMPLETE}[algorithm]\nname = \"{algorithm}\"\n[run]\nseed = 1\n");
        let study = parse(&short);
        let mut long = String::from("[data]\nbuiltin = \"adult\"\n");
        for section in ["network", "problem", "algorithm", "privacy", "run"] {
            long += &format!("[{section}]\n");
            long += match section {
                "network" => "nodes = 5\n",
                "privacy" => "epsilon = 1\ndelta = 1e-5\n",
                "run" => "seed = 1\n",
                _ => "",
            };
            if section == "algorithm" {
                long += &format!("name = \"{algorithm}\"\n");
            }
            let of_section = |choice: &&Choice| choice.section == section;
            for choice in study.choices.iter().filter(of_section) {
                long += &format!("{} = {}\n", choice.key, choice.value);
            }
        }
        let given = parse(&long);
        assert_eq!(given.canonical(), study.canonical(), "{long}");
        assert_eq!(given.choices, [], "{algorithm}");
    }
}

#[test]
fn auto_means_the_same_as_leaving_a_key_out() {
    let spelt = "[data]\nbuiltin = \"adult\"\n[network]\nnodes = 5\ntopology = \"auto\"\n[problem]\nloss = \"auto\"\nweight = \"auto\"\n\
                 ridge = \"auto\"\n[algorithm]\nname = \"auto\"\nmetric = \"auto\"\nmetric_share = \"auto\"\nmetric_ridge = \"auto\"\n\
                 steps = \"auto\"\nstep = \"auto\"\nmomentum = \"auto\"\niterations = \"auto\"\n[privacy]\nepsilon = 1\ndelta = 1e-5\n";
    assert_eq!(parse(spelt), parse(COMPLETE));
    let admm = |keys: &str| parse(&format!("{COMPLETE}[algorithm]\nname = \"r-admm\"\n{keys}"));
    let spelt = "penalty = \"auto\"\ndamping = \"auto\"\niterations = \"auto\"\n";
    assert_eq!(admm(spelt), admm(""));
}

#[test]
fn each_number_can_be_given_instead() {
    let study = parse(&format!(
        "{COMPLETE}[problem]\nridge = 0.5\n[algorithm]\nname = \"r-admm\"\npenalty = 0.25\n"
    ));
    assert_eq!(study.problem.ridge, 0.5);
    assert!(chosen(&study, "[problem] ridge").is_none());
    let penalty = study.algorithm.method.penalty().unwrap();
    assert_eq!(penalty.at(1), 0.25);
    assert!(chosen(&study, "[algorithm] penalty").is_none());
    assert!(chosen(&study, "[algorithm] damping").is_some());
    // Whoever names an algorithm gets the loss of the paper unless it is asked for another.
    assert_eq!(study.problem.loss, Loss::Logistic);
}

#[test]
fn penalty_and_damping_are_in_units_of_the_weight_and_of_the_neighbours() {
    let study = |nodes: u32, topology: &str, weight: f64| {
        parse(&format!(
            "[data]\nbuiltin = \"adult\"\n[network]\nnodes = {nodes}\ntopology = \"{topology}\"\n[problem]\nweight = {weight:?}\n\
             [algorithm]\nname = \"r-admm\"\nrecycle = 3\n[privacy]\nepsilon = 1\ndelta = 1e-5\n"
        ))
    };
    let numbers = |study: &Study| {
        let method = &study.algorithm.method;
        let at = |schedule: Option<radmm::algorithm::schedule::Schedule>| schedule.unwrap().at(1);
        (at(method.penalty()), at(method.damping()))
    };
    let ring = study(5, "ring", 1.0);
    assert_eq!(numbers(&ring), (0.025, 0.01));
    assert_eq!(ring.algorithm.iterations, 160);
    // Four neighbours instead of two, twice the weight.
    assert_eq!(numbers(&study(5, "complete", 2.0)), (0.025, 0.02));
}

#[test]
fn a_pure_total_gets_laplace_noise_on_sparse_rows_and_gamma_noise_on_dense_ones() {
    let pure = "[network]\nnodes = 5\n[privacy]\nepsilon = 1\n";
    let sparse = parse(&format!("[data]\nbuiltin = \"adult\"\n{pure}"));
    assert_eq!(family(&sparse), NoiseFamily::Laplace);
    assert!(matches!(
        sparse.algorithm.method,
        Method::Consensus {
            metric: MetricKind::Mean,
            ..
        }
    ));
    assert_eq!(sparse.privacy.delta, 0.0);
    let dense = parse(&format!(
        "[data]\npath = \"rows.svm\"\nformat = \"libsvm\"\ncolumns = 20\npositive = \"1\"\n{pure}"
    ));
    assert_eq!(family(&dense), NoiseFamily::Gamma);
}

#[test]
fn many_columns_take_no_gram_matrix_and_many_parties_no_ring() {
    let study = parse(
        "[data]\npath = \"rows.svm\"\nformat = \"libsvm\"\ncolumns = 5000\npositive = \"1\"\n[network]\nnodes = 50\n\
         [privacy]\nepsilon = 1\ndelta = 1e-5\n",
    );
    assert!(matches!(
        study.algorithm.method,
        Method::Consensus {
            metric: MetricKind::None,
            steps: 120,
            ..
        }
    ));
    assert_eq!(
        study.network.topology,
        Topology::Regular { degree: 4, seed: 1 }
    );
}

#[test]
fn parties_with_rows_of_their_own_and_a_total_are_a_complete_study() {
    let party = |name: &str, digit: &str, rows: u32| {
        let key = digit.repeat(64);
        format!("[[parties]]\nname = \"{name}\"\nkey = \"ed25519:{key}\"\nrows = {rows}\n")
    };
    let study = parse(&format!(
        "name = \"visits\"\n[data]\nlabel = \"ill\"\npositive = \"yes\"\n[data.numeric]\nage = {{ bounds = [0, 90], splines = 8 }}\n\
         [privacy]\nepsilon = 1\ndelta = 1e-6\n{}{}{}",
        party("alder", "a", 500),
        party("birch", "b", 800),
        party("cedar", "c", 90)
    ));
    assert_eq!(study.network.nodes, 3);
    assert_eq!(study.network.topology, Topology::Ring);
    assert_eq!(study.algorithm.method.name(), "consensus");
    // Real parties draw secret noise, and need no seed.
    assert!(chosen(&study, "[run] seed").is_none());
}
