//! No text makes the reader panic, and every error is one line that begins with the file.

use proptest::prelude::*;
use radmm::privacy::{Mechanism, NoiseDistribution};
use radmm_study::{Noise, SiteFile, Study};

const EXAMPLE: &str = include_str!("example.toml");
const PARTIES: &str = include_str!("parties.toml");
const SITE: &str = include_str!("site.toml");
const ALL: [&str; 3] = [EXAMPLE, PARTIES, SITE];

/// Parses a text as a study and as a site file.
fn survives(text: &str) {
    let errors = [
        Study::parse(text, "study.toml").err(),
        SiteFile::parse(text, "study.toml").err(),
    ];
    for error in errors.into_iter().flatten() {
        let message = error.to_string();
        assert!(message.starts_with("study.toml:"), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn a_file_may_be_cut_off_anywhere() {
    for example in ALL {
        for end in 0..=example.len() {
            survives(&example[..end]);
        }
    }
}

#[test]
fn a_file_may_begin_anywhere() {
    for example in ALL {
        for start in 0..=example.len() {
            survives(&example[start..]);
        }
    }
}

#[test]
fn any_line_may_be_lost_or_doubled() {
    for example in ALL {
        let lines: Vec<&str> = example.lines().collect();
        for n in 0..lines.len() {
            let without = [&lines[..n], &lines[n + 1..]].concat();
            let twice = [&lines[..=n], &lines[n..]].concat();
            survives(&without.join("\n"));
            survives(&twice.join("\n"));
        }
    }
}

#[test]
fn any_two_lines_may_change_places() {
    for example in ALL {
        let mut lines: Vec<&str> = example.lines().collect();
        for n in 0..lines.len() {
            for m in 0..n {
                lines.swap(n, m);
                survives(&lines.join("\n"));
                lines.swap(n, m);
            }
        }
    }
}

#[test]
fn any_byte_may_be_another() {
    for example in ALL {
        for (n, _) in example.char_indices() {
            for other in [
                "", "\"", "[", "]", "{", "=", ".", "-", "9", "\n", "\r", "\0", "é", "\u{feff}",
            ] {
                survives(&format!("{}{other}{}", &example[..n], &example[n + 1..]));
            }
        }
    }
}

#[test]
fn deep_nesting_is_rejected_without_recursion() {
    survives(&format!("name = {}", "[".repeat(100_000)));
    survives(&format!(
        "name = {}1{}",
        "{ a = ".repeat(5_000),
        " }".repeat(5_000)
    ));
    survives(&format!("{} = 1", vec!["a"; 100_000].join(".")));
    survives(&format!("[{}]", vec!["data"; 100_000].join(".")));
}

/// A number as somebody may type it, the extremes included.
fn number() -> impl Strategy<Value = String> {
    let special = [
        "0",
        "-0.0",
        "nan",
        "-nan",
        "inf",
        "-inf",
        "5e-324",
        "1e-400",
        "1e400",
        "1e-100",
        "1e100",
        "1000",
        "1000.0000000001",
        "1.0",
        "0.9999999999999999",
        "-1",
        "0x10",
        "1_0",
        "9223372036854775808",
        "true",
        "\"1\"",
        "[1]",
    ];
    prop_oneof![
        proptest::sample::select(special.to_vec()).prop_map(str::to_owned),
        any::<f64>().prop_map(|x| format!("{x:?}")),
        any::<i64>().prop_map(|x| x.to_string()),
        (-8..8i32).prop_map(|k| format!("1e{k}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// A study that is accepted has noise and totals that can be worked with.
    #[test]
    fn amounts_and_totals_are_in_range_or_refused(
        keys in proptest::collection::vec((0..4usize, number()), 0..4),
        mechanism in proptest::sample::select(vec!["mechanism = \"objective\"", "mechanism = \"output\"", "mechanism = \"none\"", ""]),
        noise in proptest::sample::select(vec!["noise = \"gamma\"", "noise = \"laplace\"", "noise = \"gaussian\"", ""]),
    ) {
        let mut lines = vec![mechanism.to_owned(), noise.to_owned()];
        for (key, value) in &keys {
            lines.push(format!("{} = {value}", ["epsilon", "delta", "rate", "sigma"][*key]));
        }
        let text = EXAMPLE.replace(
            "mechanism = \"objective\"\nnoise = \"gamma\"\nrate = 2.0\nscale = \"fixed\"\nbound = \"tight\"",
            &lines.join("\n"),
        );
        survives(&text);
        if let Ok((study, _)) = Study::parse(&text, "study.toml") {
            let privacy = &study.privacy;
            prop_assert!((0.0..1.0).contains(&privacy.delta));
            match privacy.noise {
                Noise::Total(total) => prop_assert!(total.epsilon > 0.0 && total.epsilon <= 1000.0),
                Noise::Given(
                    Mechanism::Objective { law, .. } | Mechanism::Output { law } | Mechanism::Gradient { law },
                ) => match law {
                    NoiseDistribution::Gamma { rate } | NoiseDistribution::Laplace { rate } => {
                        prop_assert!((1e-100..f64::INFINITY).contains(&rate));
                    }
                    NoiseDistribution::Gaussian { sigma } => {
                        prop_assert!(sigma > 0.0 && sigma <= 1e100 && privacy.delta > 0.0);
                    }
                },
                Noise::Given(Mechanism::None) => {
                    let none = mechanism.contains("none") || lines.iter().all(String::is_empty);
                    prop_assert!(none, "{}", text);
                }
            }
            let given = |key: &str| lines.iter().any(|line| line.starts_with(key));
            let both = given("epsilon") && (given("rate") || given("sigma"));
            prop_assert!(!both || mechanism.contains("none"));
        }
    }

    /// Any text, and any text in place of a value.
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*", line in 0..64usize) {
        survives(&text);
        for example in ALL {
            let lines = example.lines().enumerate().map(|(n, old)| match old.split_once('=') {
                Some((key, _)) if n == line % example.lines().count() => format!("{key}= {text}\n"),
                _ => format!("{old}\n"),
            });
            survives(&lines.collect::<String>());
        }
    }

    /// A limit that is accepted is positive and finite.
    #[test]
    fn limits_are_in_range_or_refused(keys in proptest::collection::vec((0..3usize, number()), 0..4)) {
        let lines = keys.iter().map(|(key, value)| format!("{} = {value}\n", ["epsilon", "delta", "pure"][*key]));
        let text = SITE.replace("epsilon = 2.0\ndelta = 1e-5\npure = 8.0\n", &lines.collect::<String>());
        prop_assert!(text != SITE || keys.len() == 3);
        survives(&text);
        if let Ok((site, _)) = SiteFile::parse(&text, "site.toml") {
            let limit = site.limit.expect("required with secret noise");
            let positive = |epsilon: f64| epsilon > 0.0 && epsilon.is_finite();
            prop_assert!(limit.pure.is_some() || limit.relaxed.is_some());
            prop_assert!(limit.pure.is_none_or(positive));
            prop_assert!(limit.relaxed.is_none_or(|(epsilon, delta)| positive(epsilon) && delta > 0.0 && delta < 1.0));
        }
    }
}
