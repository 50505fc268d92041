//! The registry of algorithms and the reference in docs/study.md list the same.

use radmm_study::Method;
use radmm_study::algorithm::{Asks, REGISTRY};

const REFERENCE: &str = include_str!("../../../docs/study.md");

/// The names in the first cells of the table that follows `header`, with the second cells.
fn table(header: &str) -> Vec<(&'static str, &'static str)> {
    let start = REFERENCE.find(header).expect("the table of algorithms");
    let rows = REFERENCE[start..].lines().skip(2);
    rows.take_while(|row| row.starts_with('|'))
        .map(|row| {
            let cells = row.trim_matches(['|', ' ']).split_once(" | ");
            let (name, iteration) = cells.expect("two cells");
            (name.trim_matches('`'), iteration)
        })
        .collect()
}

#[test]
fn the_reference_lists_the_algorithms_of_the_registry() {
    let listed: Vec<_> = REGISTRY
        .iter()
        .map(|info| (info.name, info.iteration))
        .collect();
    assert_eq!(table("| name | iteration |"), listed);
}

#[test]
fn the_reference_lists_what_algorithms_ask_for() {
    let names = |asks| -> String {
        let names = REGISTRY.iter().filter(|info| info.asks == asks);
        let names: Vec<String> = names.map(|info| format!("`{}`", info.name)).collect();
        names.join(", ")
    };
    for asks in [Asks::Minimisers, Asks::Gradients] {
        let listed = format!("(with {})", names(asks));
        assert!(REFERENCE.contains(&listed), "{listed}");
    }
}

#[test]
fn every_algorithm_is_parsed_under_its_name_with_its_parameters() {
    for info in REGISTRY {
        let parameters: String = info
            .parameters
            .iter()
            .map(|parameter| match parameter.key {
                "metric" => "metric = \"gram\"\n".to_owned(),
                "metric_share" | "momentum" => format!("{} = 0.5\n", parameter.key),
                key => format!("{key} = 1\n"),
            })
            .collect();
        let iterations = match info.counts_iterations {
            true => "",
            false => "iterations = 4\n",
        };
        let text = format!(
            "[data]\nbuiltin = \"clinic\"\n[network]\nnodes = 5\ntopology = \"ring\"\n[problem]\nweight = 1\nridge = 1\n\
             [algorithm]\nname = \"{}\"\n{iterations}{parameters}",
            info.name
        );
        let (study, notes) = radmm_study::Study::parse(&text, "study.toml").expect("a study");
        assert!(notes.is_empty(), "{notes:?}");
        let method: &Method = &study.algorithm.method;
        assert_eq!(method.name(), info.name);
        let keys: Vec<&str> = method.parameters().iter().map(|(key, _)| *key).collect();
        let expected: Vec<&str> = info
            .parameters
            .iter()
            .map(|parameter| parameter.key)
            .collect();
        assert_eq!(keys, expected);
        // Only an algorithm with recycled steps has a form without them.
        assert_eq!(
            method.unrecycled().is_some(),
            method.period() > 1,
            "{}",
            info.name
        );
    }
}
