//! `radmm certify`, as a user runs it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use support::{radmm, text};

/// Returns a small study with the given network and algorithm.
fn study(network: &str, algorithm: &str) -> String {
    format!(
        r#"
name = "small"
[data]
path = "rows.csv"
label = "outcome"
positive = "yes"
intercept = true
[data.numeric]
age = [0, 90]
weight = [40, 120]
[network]
{network}
[problem]
weight = 4.0
ridge = 0.1
[algorithm]
{algorithm}
"#
    )
}

const RING: &str = "nodes = 3\ntopology = \"ring\"";

fn recycled(damping: &str) -> String {
    format!("name = \"r-admm\"\niterations = 40\npenalty = 0.5\ndamping = {damping}")
}

fn folder(study: &str) -> TempDir {
    let mut rows = "age,weight,outcome\n".to_owned();
    for n in 0..60 {
        let (age, weight) = (20 + (n * 37) % 60, 50 + (n * 23) % 50);
        let outcome = if age + (n * 7) % 20 > 55 { "yes" } else { "no" };
        rows += &format!("{age},{weight},{outcome}\n");
    }
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("study.toml"), study).unwrap();
    fs::write(folder.path().join("rows.csv"), rows).unwrap();
    folder
}

/// Returns the text printed for a study. The command always succeeds.
fn page(study: &str) -> String {
    let output = radmm(folder(study).path(), &["certify", "study.toml", "--quiet"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let page = text(&output.stdout).to_owned();
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    page
}

fn json(study: &str, args: &[&str]) -> Value {
    let args = [&["certify", "study.toml", "--json"], args].concat();
    let output = radmm(folder(study).path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn without_arguments_the_built_in_study_is_certified() {
    let output = radmm(Path::new("."), &["certify"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in [
        "adult-admm: r-admm, η = 10, γ = 2\n5 parties and 5 edges, not bipartite; M_i = C_i·c₁ + ρ/N = 243.2 to 677.1\n",
        "the condition of Theorem III.1 is not met",
        "admm, η = 10 ",
        "a digit: iterations until a distance is a tenth",
        "in the long run",
        "the theorem applies from γ = 2305",
        "At γ = 2 it does not, yet",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
}

#[test]
fn the_condition_is_met_from_the_least_damping_on() {
    let undamped = json(&study(RING, &recycled("0.0")), &[]);
    assert_eq!(undamped["theorem"]["verdict"], "not-met");
    let least = undamped["theorem"]["least"]["damping"].as_f64().unwrap();
    for (factor, verdict) in [(1.001, "met"), (0.999, "not-met")] {
        let certified = json(&study(RING, &recycled(&(least * factor).to_string())), &[]);
        assert_eq!(certified["theorem"]["verdict"], verdict);
        assert_eq!(certified["theorem"]["least"], undamped["theorem"]["least"]);
    }
    let page = page(&study(RING, &recycled("100.0")));
    assert!(
        page.contains("the condition of Theorem III.1 is met, with L = "),
        "{page}"
    );
    assert!(page.contains("At γ = 100 it does, and"), "{page}");
}

#[test]
fn json_holds_what_the_tables_show() {
    let certified = json(&study(RING, &recycled("1.0")), &[]);
    assert_eq!(certified["network"]["bipartite"], false);
    // C·c₁ + ρ/N = 4/4 + 0.1/3.
    let lipschitz = certified["lipschitz"].as_f64().unwrap();
    assert!((lipschitz - (1.0 + 0.1 / 3.0)).abs() < 1e-12);
    assert_eq!(certified["least_lipschitz"], lipschitz);
    let rates = certified["rates"].as_array().unwrap();
    let names: Vec<&str> = rates
        .iter()
        .map(|rated| rated["algorithm"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["r-admm", "admm", "r-admm"]);
    assert_eq!(
        rates[2]["algorithm"]["damping"],
        certified["theorem"]["least"]["damping"]
    );
    for rated in rates {
        let rate = rated["per_iteration"].as_f64().unwrap();
        assert!(rate > 0.0 && rate < 1.0, "{rated}");
    }
    let distance = certified["observed"]["distance"].as_array().unwrap();
    assert_eq!(distance.len(), 41, "the start and forty iterations");
    let (first, last) = (
        distance[0].as_f64().unwrap(),
        distance[40].as_f64().unwrap(),
    );
    let mean = certified["observed"]["per_iteration"].as_f64().unwrap();
    assert!((mean - (last / first).powf(1.0 / 40.0)).abs() < 1e-12);
    let late = certified["observed"]["per_iteration_late"]
        .as_f64()
        .unwrap();
    let half = distance[20].as_f64().unwrap();
    assert!((late - (last / half).powf(1.0 / 20.0)).abs() < 1e-12);
}

#[test]
fn a_long_run_contracts_at_the_true_rate() {
    let algorithm = recycled("1.0").replace("iterations = 40", "iterations = 2000");
    let certified = json(&study(RING, &algorithm), &[]);
    let seen = certified["observed"]["per_iteration_late"]
        .as_f64()
        .unwrap();
    let rate = certified["rates"][0]["per_iteration"].as_f64().unwrap();
    assert!((seen.ln() / rate.ln() - 1.0).abs() < 0.02, "{seen} {rate}");
}

#[test]
fn bipartite_graphs_cannot_meet_the_condition_and_still_have_rates() {
    for (network, reason) in [
        (
            "nodes = 4\ntopology = \"ring\"",
            "a ring of 4 parties is bipartite",
        ),
        ("nodes = 5\ntopology = \"star\"", "a star is bipartite"),
        ("nodes = 4\ntopology = \"path\"", "a path is bipartite"),
    ] {
        let study = study(network, &recycled("1.0"));
        let certified = json(&study, &[]);
        assert_eq!(certified["theorem"]["verdict"], "impossible");
        assert!(
            certified["theorem"]["reason"]
                .as_str()
                .unwrap()
                .starts_with(reason)
        );
        assert_eq!(certified["rates"].as_array().unwrap().len(), 2);
        assert!(page(&study).contains("cannot be met"));
    }
}

#[test]
fn algorithms_outside_the_theorem_are_reported() {
    let common = "iterations = 12\npenalty = 0.5\ndamping = 1.0";
    for (algorithm, reason, rates) in [
        ("name = \"admm\"\niterations = 12\npenalty = 0.5".to_owned(), "it is about r-admm, and this is admm", 1),
        (format!("name = \"r-admm\"\n{common}\nrecycle = 3"), "one recycled step a data step, and recycle is 3", 2),
        (format!("name = \"dlm\"\n{common}"), "it is about r-admm, and this is dlm", 2),
        (format!("name = \"mr-admm\"\n{common}"), "it is about r-admm, and this is mr-admm", 2),
        ("name = \"r-admm\"\niterations = 12\npenalty = { start = 0.5, growth = 1.01 }\ndamping = 1.0".to_owned(), "constant penalty and damping, and these vary", 0),
        ("name = \"dgd\"\niterations = 12\nstep = 0.1".to_owned(), "it is about r-admm, and this is dgd", 0),
        ("name = \"local\"\niterations = 2".to_owned(), "it is about r-admm, and this is local", 0),
    ] {
        let study = study(RING, &algorithm);
        let certified = json(&study, &[]);
        assert_eq!(certified["theorem"]["verdict"], "not-covered", "{algorithm}");
        let said = certified["theorem"]["reason"].as_str().unwrap();
        assert!(said.contains(reason), "{said}");
        assert_eq!(certified["rates"].as_array().unwrap().len(), rates, "{algorithm}");
        assert_eq!(certified.get("no_rate").is_some(), rates == 0, "{algorithm}");
        let page = page(&study);
        assert!(page.contains("Theorem III.1 does not apply"), "{page}");
        assert_eq!(page.contains("rate     none: "), rates == 0, "{page}");
    }
}

#[test]
fn a_diverging_algorithm_is_not_an_error() {
    let algorithm = "name = \"dlm\"\niterations = 4000\npenalty = 0.001\ndamping = 0.001";
    let certified = json(&study(RING, algorithm), &[]);
    assert!(certified["rates"][0]["per_iteration"].as_f64().unwrap() > 1.0);
    assert_eq!(certified["rates"][0]["iterations_per_digit"], Value::Null);
    assert!(page(&study(RING, algorithm)).contains("never"));
}

#[test]
fn noise_does_not_change_the_certification() {
    let quiet = study(RING, &recycled("1.0"));
    let noisy =
        quiet.clone() + "[privacy]\nmechanism = \"objective\"\nrate = 2.0\n[run]\nseed = 1\n";
    assert_eq!(json(&quiet, &[]), json(&noisy, &[]));
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let folder = folder(&study(RING, &recycled("1.0")));
    let of = |threads: &str| {
        radmm(
            folder.path(),
            &["certify", "study.toml", "--json", "--threads", threads],
        )
        .stdout
    };
    assert_eq!(text(&of("1")), text(&of("3")));
}

#[test]
fn wrong_use_has_exit_code_2() {
    let folder = folder("name = \"no data\"");
    for args in [["certify", "missing.toml"], ["certify", "study.toml"]] {
        let output = radmm(folder.path(), &args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(text(&output.stdout), "");
        assert!(text(&output.stderr).starts_with("error: "));
    }
}

#[test]
fn extreme_penalties_and_dampings_print_no_nan_or_inf() {
    let values = [
        "1e-300", "1e-150", "1e-100", "1e-17", "1e15", "1e16", "1e17", "1e20", "1e100", "1e150",
        "1e300", "1e308",
    ];
    let key = |key: &str, value: &str| format!("\n{key} = {value}");
    for name in ["r-admm", "dlm", "mr-admm"] {
        let algorithm = format!("name = \"{name}\"\niterations = 4");
        for value in values {
            let penalty = key("penalty", value) + &key("damping", "1.0");
            let damping = key("penalty", "0.5") + &key("damping", value);
            for parameters in [penalty, damping] {
                let page = page(&study(RING, &(algorithm.clone() + &parameters)));
                let wrong = |word: &str| word.contains("NaN") || word.trim_matches(',') == "inf";
                let words = page.split_whitespace();
                assert_eq!(words.filter(|word| wrong(word)).count(), 0, "{page}");
            }
        }
    }
}

#[test]
fn rates_below_rounding_are_undecided() {
    let with = |penalty: &str| {
        let algorithm = recycled("1.0").replace("penalty = 0.5", &format!("penalty = {penalty}"));
        study(RING, &algorithm)
    };
    // The rate of an iteration is 1 − h/4η, with h the curvature that all parties share.
    let gap = |penalty: &str| {
        1.0 - json(&with(penalty), &[])["rates"][1]["per_iteration"]
            .as_f64()
            .unwrap()
    };
    let ratio = gap("1e7") / gap("1e9");
    assert!((ratio / 100.0 - 1.0).abs() < 1e-3, "{ratio}");
    for penalty in ["1e-17", "1e15", "1e16", "1e17", "1e20", "1e100"] {
        let certified = json(&with(penalty), &[]);
        for rated in certified["rates"].as_array().unwrap() {
            assert_eq!(rated["per_iteration"], Value::Null, "{rated}");
            assert!(rated["untold"].as_str().unwrap().contains("rounding"));
        }
        let page = page(&with(penalty));
        assert!(
            page.contains("rate     undecided: it cannot be determined in double precision"),
            "{page}"
        );
        assert!(!page.contains("never"), "{page}");
    }
    let overflow = json(&with("1e308"), &[]);
    assert_eq!(overflow["theorem"]["verdict"], "untold");
}

#[test]
fn a_short_run_that_diverges_is_reported() {
    let algorithm =
        "name = \"r-admm\"\niterations = 30\nrecycle = 20\npenalty = 0.001\ndamping = 0";
    let study = study(RING, algorithm);
    let certified = json(&study, &[]);
    let distance = certified["observed"]["distance"].as_array().unwrap();
    let [first, last] = [0, 30].map(|t: usize| distance[t].as_f64().unwrap());
    let seen = certified["observed"]["per_iteration"].as_f64().unwrap();
    assert!((seen - (last / first).powf(1.0 / 30.0)).abs() < 1e-12);
    assert!(seen > 1.0, "{seen}");
    let page = page(&study);
    assert!(
        page.contains("result   this study diverges even without noise"),
        "{page}"
    );
}

#[test]
fn penalties_that_differ_between_parties_are_shown_as_a_range() {
    let algorithm = "name = \"mr-admm\"\niterations = 4\npenalty = [0.5, 2.0, 1.0]\ndamping = 1.0\ndual_step = 0.3";
    let page = page(&study(RING, algorithm));
    assert!(
        page.contains("mr-admm, η = 0.5 to 2, γ = 1, θ = 0.3"),
        "{page}"
    );
    assert!(page.contains("m-admm, η = 0.5 to 2, θ = 0.3 "), "{page}");
    let algorithm = algorithm.replace("[0.5, 2.0, 1.0]", "[2.0, 2.0, 2.0]");
    let page = self::page(&study(RING, &algorithm));
    assert!(page.contains("m-admm, η = 2, θ = 0.3 "), "{page}");
}
