//! A key that is given beside a study file takes the place of the file's, and is checked like it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use radmm_study::{GridAxis, Override, Study, StudyError};

const EXAMPLE: &str = include_str!("example.toml");
const MISTAKES: &str = include_str!("errors_study.txt");

/// Texts of the file and what is written in their place.
type Changes = &'static [(&'static str, &'static str)];

fn set(text: &str) -> Override {
    match Override::parse("--set", text) {
        Ok(one) => one,
        Err(error) => panic!("{text}: {error}"),
    }
}

fn parsed(file: &str, overrides: &[&str]) -> Result<Study, StudyError> {
    let overrides: Vec<Override> = overrides.iter().map(|text| set(text)).collect();
    Study::parse_with(file, "study.toml", &overrides).map(|(study, _)| study)
}

fn study(overrides: &[&str]) -> Study {
    match parsed(EXAMPLE, overrides) {
        Ok(study) => study,
        Err(error) => panic!("{error}"),
    }
}

fn message(overrides: &[&str]) -> String {
    match parsed(EXAMPLE, overrides) {
        Ok(study) => panic!("no mistake found in {overrides:?}\n{study:?}"),
        Err(error) => error.to_string(),
    }
}

/// Returns the study of the file in which a text is replaced by hand.
fn edited(changes: &[(&str, &str)]) -> Study {
    let text = changes.iter().fold(EXAMPLE.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old:?}");
        text.replace(old, new)
    });
    Study::parse(&text, "study.toml").unwrap().0
}

#[test]
fn an_override_is_the_same_as_an_edit_of_the_file() {
    let cases: &[(&[&str], Changes)] = &[
        (&[], &[]),
        (
            &["algorithm.penalty=3"],
            &[("penalty = 0.5", "penalty = 3")],
        ),
        // A bare word is a text, and so is what is no TOML.
        (&["name=night"], &[("\"visits\"", "\"night\"")]),
        (&["name=\"night\""], &[("\"visits\"", "\"night\"")]),
        (
            &["data.positive=>50K"],
            &[("positive = \"yes\"", "positive = \">50K\"")],
        ),
        (
            &["data.positive=007"],
            &[("positive = \"yes\"", "positive = \"007\"")],
        ),
        (
            &["name=a = \"b\" # c"],
            &[("\"visits\"", "\"a = \\\"b\\\" # c\"")],
        ),
        // Sections, inline tables, and a value in place of a table.
        (
            &["data.split={ method = \"round-robin\" }"],
            &[(
                "method = \"shuffled\"\nseed = 7",
                "method = \"round-robin\"",
            )],
        ),
        (
            &["algorithm.damping=1"],
            &[("{ start = 1.0, growth = 1.01 }", "1")],
        ),
        (
            &["algorithm.damping.growth=1.5"],
            &[("growth = 1.01", "growth = 1.5")],
        ),
        (
            &["algorithm.penalty.start=1", "algorithm.penalty.growth=1.1"],
            &[("penalty = 0.5", "penalty = { start = 1, growth = 1.1 }")],
        ),
        // Sections and keys that the file does not have.
        (
            &["data.test.last=9"],
            &[("[network]", "[data.test]\nlast = 9\n[network]")],
        ),
        (
            &["problem.width=2", "problem.loss=smooth-hinge"],
            &[("\"logistic\"", "\"smooth-hinge\"\nwidth = 2")],
        ),
        // Spaces and quotes around names.
        (
            &[" algorithm . penalty = 3 "],
            &[("penalty = 0.5", "penalty = 3")],
        ),
        (
            &["data.numeric.\"hours per week\"=[1, 50]"],
            &[("[1, 99]", "[1, 50]")],
        ),
        // A combining accent, and a character that TOML wants escaped.
        (
            &["data.numeric.\"e\u{301}\\u007F\"=[1, 50]"],
            &[("[1, 99]", "[1, 99]\n\"e\u{301}\\u007F\" = [1, 50]")],
        ),
        (
            &["data.numeric.'a=b'=[1, 50]"],
            &[("[1, 99]", "[1, 99]\n\"a=b\" = [1, 50]")],
        ),
    ];
    for (overrides, changes) in cases {
        assert_eq!(
            study(overrides).canonical(),
            edited(changes).canonical(),
            "{overrides:?}"
        );
    }
}

#[test]
fn an_overridden_column_keeps_its_place() {
    // The order of columns has a meaning: weights have it, and so has the digest.
    let overridden = study(&["data.numeric.age=[0, 80]"]);
    let names: Vec<&str> = overridden
        .data
        .schema
        .numeric
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(names, ["age", "hours per week"]);
    assert_eq!(
        overridden.sha256(),
        edited(&[("[0, 90]", "[0, 80]")]).sha256()
    );
}

#[test]
fn every_mistake_is_reported_as_in_a_file_with_the_argument_in_place_of_the_line() {
    let mut section = "";
    let mut sections = Vec::new();
    for line in EXAMPLE.lines() {
        if let Some(header) = line.strip_prefix('[') {
            section = header.split(']').next().unwrap();
        }
        sections.push((line.split(" #").next().unwrap().trim_end(), section));
    }
    let mut count = 0;
    for block in MISTAKES
        .split("\n\n")
        .filter(|block| !block.starts_with('#'))
    {
        let lines: Vec<(&str, &str)> = block
            .lines()
            .filter_map(|line| line.split_once("  "))
            .map(|(word, rest)| (word, rest.trim()))
            .collect();
        let [("replace", old), ("with", new), ("says", says)] = lines[..] else {
            continue;
        };
        let ((old_key, _), Some((key, value))) = (
            old.split_once(" = ").unwrap_or((old, "")),
            new.split_once(" = "),
        ) else {
            continue;
        };
        // A comment is no part of a value, and positions are those of a file.
        let Some((place, words)) = says.split_once(": ") else {
            continue;
        };
        if key != old_key || new.contains(" #") || place.split(':').count() != 2 {
            continue;
        }
        let (_, section) = sections.iter().find(|(line, _)| *line == old).unwrap();
        let path = match *section {
            "" => key.to_owned(),
            section => format!("{section}.{key}"),
        };
        let argument = format!("{path}={value}");
        let Ok(one) = Override::parse("--set", &argument) else {
            continue;
        };
        let said = match Study::parse_with(EXAMPLE, "study.toml", &[one]) {
            Ok(_) => panic!("no mistake found in {argument}"),
            Err(error) => error.to_string(),
        };
        // What is wrong may be another key of the file.
        if said.starts_with("--set ") {
            assert_eq!(said, format!("--set {argument}: {words}"));
            count += 1;
        } else {
            assert_eq!(said, says, "{argument}");
        }
    }
    assert!(count >= 100, "only {count} were tried");
}

#[test]
fn names_are_suggested_for_arguments_too() {
    for (argument, says) in [
        (
            "algorithm.penalti=3",
            "[algorithm] unknown key \"penalti\": did you mean \"penalty\"?",
        ),
        (
            "algoritm.penalty=3",
            "unknown section [algoritm]: did you mean [algorithm]?",
        ),
        (
            "penalty=3",
            "unknown key \"penalty\": only \"name\" is allowed before the first section",
        ),
        (
            "algorithm.name=admn",
            "[algorithm] name = \"admn\": did you mean \"admm\"?",
        ),
        (
            "algorithm.name=[\"admm\"]",
            "[algorithm] name = [\"admm\"]: must be a string, not an array",
        ),
        (
            "algorithm=3",
            "algorithm = 3: must be the section [algorithm], not an integer",
        ),
        (
            "algorithm.penalty=0,5",
            "[algorithm] penalty = \"0,5\": must be a number or a table such as { start = 1.0, growth = 1.01 }, not a string",
        ),
        (
            "data.numeric.age.0=3",
            "is in a list, of which no single element can be set; set the whole list",
        ),
    ] {
        assert_eq!(message(&[argument]), format!("--set {argument}: {says}"));
    }
}

#[test]
fn errors_elsewhere_in_the_file_have_their_line() {
    // The mechanism of the file does not fit the algorithm of the argument.
    let said = message(&["algorithm.name=dgd", "algorithm.step=1"]);
    assert!(
        said.starts_with("study.toml:45: [privacy] mechanism = \"objective\": "),
        "{said}"
    );
    let broken = EXAMPLE.replace("ridge = 0.00316", "ridge = -1");
    let error = parsed(&broken, &["algorithm.penalty=3"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "study.toml:33: [problem] ridge = -1: must be positive and finite"
    );
    let broken = EXAMPLE.replace("ridge = 0.00316", "ridge = ");
    let error = parsed(&broken, &["algorithm.penalty=3"]).unwrap_err();
    assert!(error.to_string().starts_with("study.toml:33:"), "{error}");
}

#[test]
fn a_key_that_is_set_twice_is_an_error() {
    assert_eq!(
        message(&["algorithm.penalty=3", "algorithm.penalty=4"]),
        "--set algorithm.penalty=4: --set algorithm.penalty=3 gives this key too; keep one of the two"
    );
    // Also if one is the section of the other, in either order.
    for pair in [
        [
            "data.split.seed=4",
            "data.split={ method = \"round-robin\" }",
        ],
        [
            "data.split={ method = \"round-robin\" }",
            "data.split.seed=4",
        ],
    ] {
        assert_eq!(
            message(&pair),
            format!(
                "--set {}: --set {} gives this key too; keep one of the two",
                pair[1], pair[0]
            )
        );
    }
}

#[test]
fn a_note_names_the_argument_after_those_on_lines() {
    let overrides = [set("algorithm.recycle=2"), set("algorithm.name=admm")];
    let (_, notes) = Study::parse_with(EXAMPLE, "study.toml", &overrides).unwrap();
    let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "study.toml:40: [algorithm] damping is not used by admm",
            "--set algorithm.recycle=2: [algorithm] recycle is not used by admm",
        ]
    );
}

#[test]
fn what_is_not_a_key_with_a_value_is_an_error() {
    const FORM: &str = "must be KEY=VALUE, such as algorithm.penalty=3";
    let key = |key: &str| {
        format!(
            "{key} is not a key: its names have dots between them, as in algorithm.penalty, and quotes around them if they have other characters than letters, digits, - and _"
        )
    };
    for (text, says) in [
        ("algorithm.penalty", FORM.to_owned()),
        ("", FORM.to_owned()),
        ("=3", FORM.to_owned()),
        ("algorithm.penalty=", FORM.to_owned()),
        ("\"a=3", FORM.to_owned()),
        ("algorithm penalty=3", key("algorithm penalty")),
        ("algorithm.=3", key("algorithm.")),
        ("#a=3", key("#a")),
        ("[run]\nseed=3", key("[run]\nseed")),
        (
            "network.edges=[[0, 1], [1, 2]",
            "[[0, 1], [1, 2] is not a value of TOML: unclosed array, expected `]`; close its brackets and quotes, or put all of it in quotes".to_owned(),
        ),
    ] {
        let error = Override::parse("--set", text).unwrap_err();
        assert_eq!(error.to_string(), says, "{text:?}");
    }
}

#[test]
fn values_of_json_keep_their_type() {
    let of = |key: &str, value: serde_json::Value| {
        Override::of_json(format!("set[{key:?}]"), key, &value)
    };
    let overrides = [
        of("data.positive", "1".into()).unwrap(),
        of("algorithm.penalty", 3.into()).unwrap(),
        of("data.split", serde_json::json!({ "method": "round-robin" })).unwrap(),
    ];
    let (study, _) = Study::parse_with(EXAMPLE, "study.toml", &overrides).unwrap();
    let by_hand = edited(&[
        ("positive = \"yes\"", "positive = \"1\""),
        ("penalty = 0.5", "penalty = 3"),
        (
            "method = \"shuffled\"\nseed = 7",
            "method = \"round-robin\"",
        ),
    ]);
    assert_eq!(study.canonical(), by_hand.canonical());
    let error = of("algorithm.penalty", serde_json::Value::Null).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("null is not a value of TOML: "),
        "{error}"
    );
}

#[test]
fn a_grid_has_every_combination_with_the_last_axis_fastest() {
    let axes = [
        "algorithm.penalty=0.3, 1",
        "algorithm.name=admm,r-admm,\"m-admm\"",
    ]
    .map(|text| GridAxis::parse("--grid", text).unwrap());
    let combinations = GridAxis::combinations(&axes);
    let given: Vec<Vec<(String, &str)>> = combinations
        .iter()
        .map(|cell| cell.iter().map(|one| (one.key(), one.value())).collect())
        .collect();
    let cell = |penalty, name| {
        vec![
            ("algorithm.penalty".to_owned(), penalty),
            ("algorithm.name".to_owned(), name),
        ]
    };
    assert_eq!(
        given,
        [
            cell("0.3", "\"admm\""),
            cell("0.3", "\"r-admm\""),
            cell("0.3", "\"m-admm\""),
            cell("1", "\"admm\""),
            cell("1", "\"r-admm\""),
            cell("1", "\"m-admm\""),
        ]
    );
    assert_eq!(combinations[3][0].given(), "--grid algorithm.penalty=1");
    assert_eq!(GridAxis::combinations(&[]), [Vec::<&Override>::new()]);
    // Commas in brackets, braces and quotes separate nothing.
    let axis = GridAxis::parse(
        "--grid",
        "data.numeric.age=[0, 90],{ bounds = [0, 80], bins = 4 }, \"a,b\",'c,'",
    )
    .unwrap();
    let values: Vec<&str> = axis.values().iter().map(Override::value).collect();
    assert_eq!(
        values,
        [
            "[0, 90]",
            "{ bounds = [0, 80], bins = 4 }",
            "\"a,b\"",
            "'c,'"
        ]
    );
}

#[test]
fn mistakes_in_an_axis_are_errors() {
    for (text, says) in [
        (
            "algorithm.penalty",
            "must be KEY=VALUE, such as algorithm.penalty=3",
        ),
        (
            "algorithm.penalty=1,,3",
            "must be KEY=VALUE,VALUE,…, such as algorithm.penalty=0.3,1,3",
        ),
        (
            "algorithm.penalty=1,3,",
            "must be KEY=VALUE,VALUE,…, such as algorithm.penalty=0.3,1,3",
        ),
        ("algorithm.penalty=1,3,1", "1 is listed twice"),
        ("algorithm.name=admm,\"admm\"", "\"admm\" is listed twice"),
        (
            "network.edges=[[0, 1],3",
            "[[0, 1],3 is not a value of TOML: unclosed array, expected `]`; close its brackets and quotes, or put all of it in quotes",
        ),
    ] {
        let error = GridAxis::parse("--grid", text).unwrap_err();
        assert_eq!(error.to_string(), says, "{text:?}");
    }
}
