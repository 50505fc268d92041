//! The first difference of two studies is named by its key, whatever the other side sends.

use proptest::prelude::*;
use radmm_study::{Difference, Study, first_difference};

const EXAMPLE: &str = include_str!("example.toml");
const PARTIES: &str = include_str!("parties.toml");

fn canonical(text: &str) -> String {
    match Study::parse(text, "study.toml") {
        Ok((study, _)) => study.canonical(),
        Err(error) => panic!("{error} in\n{text}"),
    }
}

/// The difference of a study that differs from an example in one place.
fn difference(example: &str, old: &str, new: &str) -> [String; 3] {
    assert!(example.contains(old), "{old:?}");
    let (mine, theirs) = (
        canonical(example),
        canonical(&example.replacen(old, new, 1)),
    );
    let Difference { key, mine, theirs } = first_difference(&mine, &theirs).expect("a difference");
    [key, mine, theirs]
}

#[test]
fn a_study_does_not_differ_from_itself() {
    for example in [EXAMPLE, PARTIES] {
        let commented = format!("# a comment\n{example}");
        assert_eq!(
            first_difference(&canonical(example), &canonical(&commented)),
            None
        );
    }
}

#[test]
fn the_digest_is_that_of_the_canonical_form() {
    let (study, _) = Study::parse(EXAMPLE, "study.toml").expect("a study");
    let json = serde_json::to_string(&study).expect("JSON");
    assert_eq!(study.canonical(), json);
    let hex: String = study.digest().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(study.sha256(), hex);
}

#[test]
fn a_key_is_named_with_its_section() {
    for (old, new, expected) in [
        (
            "\"visits\"",
            "\"visit\"",
            ["name", "\"visits\"", "\"visit\""],
        ),
        (
            "penalty = 0.5",
            "penalty = 0.6",
            ["[algorithm] penalty", "0.5", "0.6"],
        ),
        (
            "growth = 1.01",
            "growth = 1.02",
            ["[algorithm.damping] growth", "1.01", "1.02"],
        ),
        (
            "{ start = 1.0, growth = 1.01 }",
            "1",
            [
                "[algorithm] damping",
                "{\"start\":1.0,\"growth\":1.01}",
                "1.0",
            ],
        ),
        (
            "age = [0, 90]",
            "age = [0, 91]",
            ["[data.numeric] age[1]", "90.0", "91.0"],
        ),
        (
            "\"hours per week\" = [1, 99]",
            "\"hours per week\" = [1, 98]",
            ["[data.numeric] \"hours per week\"[1]", "99.0", "98.0"],
        ),
        (
            "age = [0, 90]\n",
            "",
            ["[data.numeric] age", "[0.0,90.0]", "absent"],
        ),
        (
            "age = [0, 90]",
            "weight = [1, 2]\nage = [0, 90]",
            ["[data.numeric] weight", "absent", "[1.0,2.0]"],
        ),
        (
            "age = [0, 90]\n\"hours per week\" = [1, 99]",
            "\"hours per week\" = [1, 99]\nage = [0, 90]",
            [
                "order of [data.numeric]",
                "age, \"hours per week\"",
                "\"hours per week\", age",
            ],
        ),
        (
            "\"west\", \"centre\"",
            "\"west\"",
            ["[data.categorical] clinic[4]", "\"centre\"", "absent"],
        ),
        (
            "rate = 2.0",
            "epsilon = 2.0",
            ["[privacy] rate", "2.0", "absent"],
        ),
        (
            "[data.split]",
            "[data.test]\nlast = 9\n[data.split]",
            ["[data] test", "absent", "{\"last\":9}"],
        ),
        // The last bit.
        (
            "ridge = 0.00316",
            "ridge = 0.0031600000000000005",
            ["[problem] ridge", "0.00316", "0.0031600000000000005"],
        ),
        ("seed = 1\n", "seed = 2\n", ["[run] seed", "1", "2"]),
    ] {
        assert_eq!(difference(EXAMPLE, old, new), expected, "{old} → {new}");
    }
}

#[test]
fn a_party_is_named_by_its_name() {
    assert_eq!(
        difference(PARTIES, "10.1.2.3:7411", "10.1.2.4:7411"),
        [
            "[[parties]] birch: address",
            "\"10.1.2.3:7411\"",
            "\"10.1.2.4:7411\""
        ]
    );
    assert_eq!(
        difference(PARTIES, "address = \"10.1.2.3:7411\"\n", ""),
        ["[[parties]] birch: address", "\"10.1.2.3:7411\"", "absent"]
    );
    assert_eq!(
        difference(PARTIES, "rows = 4463", "rows = 4464"),
        ["[[parties]] birch: rows", "4463", "4464"]
    );
    let [key, mine, theirs] = difference(PARTIES, "ed25519:bf", "ed25519:be");
    assert_eq!(key, "[[parties]] alder: key");
    assert!(mine.starts_with("\"ed25519:bf") && theirs.starts_with("\"ed25519:be"));
    assert_eq!(
        difference(PARTIES, "\"birch\"", "\"beech\""),
        ["[[parties]] node 1: name", "\"birch\"", "\"beech\""]
    );
    let fourth = format!(
        "[[parties]]\nname = \"fir\"\nkey = \"ed25519:{}\"\nrows = 1\n[problem]",
        "0".repeat(64)
    );
    // Nodes are counted first.
    assert_eq!(
        difference(PARTIES, "[problem]", &fourth),
        ["[network] nodes", "3", "4"]
    );
    let (mine, theirs) = (
        canonical(PARTIES),
        canonical(&PARTIES.replace("[problem]", &fourth)),
    );
    let difference = first_difference(&mine.replace("\"nodes\":3", "\"nodes\":4"), &theirs);
    let difference = difference.expect("another party");
    assert_eq!(difference.key, "[[parties]] node 3");
    assert_eq!(difference.mine, "absent");
    assert!(difference.theirs.starts_with("{\"name\":\"fir\""));
}

#[test]
fn a_difference_is_a_sentence() {
    let mine = canonical(EXAMPLE);
    let theirs = mine.replace("\"penalty\":0.5", "\"penalty\":0.7");
    let difference = first_difference(&mine, &theirs).expect("a difference");
    assert_eq!(
        difference.to_string(),
        "[algorithm] penalty: 0.5 here, 0.7 there"
    );
}

#[test]
fn a_text_that_is_not_a_study_is_reported_as_such() {
    let mine = canonical(EXAMPLE);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = format!("{}1{}", "{\"data\":".repeat(200), "}".repeat(200));
    for theirs in [
        "",
        "{",
        "[]",
        "3",
        "null",
        &deep,
        &nested,
        "{\"a\":1e999}",
        &mine[1..],
    ] {
        let difference = first_difference(&mine, theirs).expect("a difference");
        assert_eq!(difference.theirs, "is not a study");
    }
}

#[test]
fn the_same_study_in_another_form_is_a_difference() {
    let mine = canonical(EXAMPLE);
    for theirs in [
        format!(" {mine}"),
        mine.replacen("\"name\"", "\"name\":\"x\",\"name\"", 1),
        mine.replacen("visits", "\\u0076isits", 1),
    ] {
        let difference = first_difference(&mine, &theirs).expect("a difference");
        assert_eq!(difference.key, "study");
        assert_eq!(difference.theirs, "the same in another form");
    }
}

#[test]
fn a_difference_is_short_and_has_no_control_characters() {
    let mine = canonical(EXAMPLE);
    let with = |theirs: &str| first_difference(&mine, theirs).expect("a difference");
    let hostile = "\\u001b[2J\\u202e\u{9b}31m\u{200b}\\n";
    let difference = with(&mine.replace("visits", hostile));
    assert_eq!(
        difference.theirs,
        "\"\\u001b[2J\\u{202e}\\u{9b}31m\\u{200b}\\n\""
    );
    let difference = with(&mine.replace("visits", &"long ".repeat(100_000)));
    assert_eq!(difference.theirs.chars().count(), 60);
    assert!(difference.theirs.ends_with('…'));
    let name = "x\u{7}".repeat(100_000).replace('\u{7}', "\\u0007");
    let difference = with(&mine.replacen("{", &format!("{{\"{name}\":1,"), 1));
    assert_eq!(difference.key.chars().count(), 120);
    assert!(visible(&difference));
}

/// Returns whether a difference may go to a terminal.
fn visible(difference: &Difference) -> bool {
    let Difference { key, mine, theirs } = difference;
    let printable = |text: &String| text.chars().all(|c| !c.is_control());
    [key, mine, theirs].into_iter().all(printable)
        && key.chars().count() <= 120
        && mine.chars().count() <= 60
        && theirs.chars().count() <= 60
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_compared(theirs in any::<String>(), json in "[\\[\\]{}\":,0-9ae.\\\\ -]{0,60}") {
        let mine = canonical(EXAMPLE);
        for text in [&theirs, &json] {
            prop_assert!(visible(&first_difference(&mine, text).expect("a difference")));
            prop_assert!(visible(&first_difference(text, &mine).expect("a difference")));
        }
        prop_assert_eq!(first_difference(&theirs, &theirs), None);
    }

    /// Damage in any place is reported, unless it changes nothing.
    #[test]
    fn any_piece_may_be_replaced(start in 0..4000usize, length in 0..20usize, new in "\\PC{0,8}", which in 0..2usize) {
        let mine = canonical([EXAMPLE, PARTIES][which]);
        let start = start % mine.len();
        let end = (start + length).min(mine.len());
        let theirs = format!("{}{new}{}", &mine[..start], &mine[end..]);
        match first_difference(&mine, &theirs) {
            None => prop_assert_eq!(mine, theirs),
            Some(difference) => {
                prop_assert!(visible(&difference));
                prop_assert!(mine != theirs);
            }
        }
    }
}
