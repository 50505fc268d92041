//! Keys that have no effect are checked and noted, so that `name` can be switched back and forth.

use radmm_study::{KeyPlace, Note, Study};

const EXAMPLE: &str = include_str!("example.toml");

fn notes(changes: &[(&str, &str)]) -> Vec<Note> {
    let text = changes.iter().fold(EXAMPLE.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old:?}");
        text.replace(old, new)
    });
    match Study::parse(&text, "study.toml") {
        Ok((_, notes)) => notes,
        Err(error) => panic!("{error} in\n{text}"),
    }
}

fn said(changes: &[(&str, &str)]) -> Vec<String> {
    notes(changes).iter().map(ToString::to_string).collect()
}

const TO_DGD: [(&str, &str); 2] = [
    ("\"r-admm\"", "\"dgd\"\nstep = 0.1"),
    ("\"objective\"", "\"gradient\""),
];

#[test]
fn a_note_has_a_line_and_a_text() {
    let expected = Note {
        place: KeyPlace::Line {
            file: "study.toml".to_owned(),
            line: 38,
        },
        text: "[algorithm] recycle is not used by admm".to_owned(),
    };
    let notes = notes(&[("\"r-admm\"", "\"admm\"")]);
    assert_eq!(notes[0], expected);
    assert_eq!(
        notes[0].to_string(),
        "study.toml:38: [algorithm] recycle is not used by admm"
    );
}

#[test]
fn values_that_look_misspelt_are_noted() {
    let vocabulary = |values: &str| said(&[("[\"Female\", \"Male\"]", values)]);
    let key = "study.toml:16: [data.categorical] sex";
    assert_eq!(
        vocabulary("[\"Female\", \" Male\"]"),
        [format!(
            "{key} holds \" Male\", with white space around it: fields are compared without, so that no row has this value"
        )]
    );
    assert_eq!(
        vocabulary("{ values = [\"not  known\", \"Male\"] }"),
        [format!(
            "{key} holds \"not  known\", with several spaces or a line break in it: is that how rows have it?"
        )]
    );
    assert_eq!(
        vocabulary("[\"male\", \"Female\", \"Male\"]"),
        [format!(
            "{key} holds \"Male\" and \"male\", which differ only in spaces or case: are they two values?"
        )]
    );
    for fine in [
        "[\"not known\", \"Male\"]",
        "[\"\", \"Male\"]",
        "[true, false]",
    ] {
        let remarks = vocabulary(fine);
        assert!(
            remarks.iter().all(|remark| !remark.contains("white space")),
            "{remarks:?}"
        );
    }
}

#[test]
fn parameters_of_other_algorithms_are_noted() {
    assert_eq!(
        said(&[("\"r-admm\"", "\"admm\"")]),
        [
            "study.toml:38: [algorithm] recycle is not used by admm",
            "study.toml:40: [algorithm] damping is not used by admm",
        ]
    );
    assert_eq!(
        said(&[("\"r-admm\"", "\"average\"\nstep = 1\ndual_step = 9")]),
        [
            "study.toml:37: [algorithm] step is not used by average",
            "study.toml:38: [algorithm] dual_step is not used by average",
            "study.toml:40: [algorithm] recycle is not used by average",
            "study.toml:41: [algorithm] penalty is not used by average",
            "study.toml:42: [algorithm] damping is not used by average",
        ]
    );
    // One value a node, or falling, is in range for the algorithms that take it.
    assert_eq!(
        said(&[
            ("\"r-admm\"", "\"local\""),
            (
                "penalty = 0.5",
                "penalty = [1, 2, 3, 4, { start = 1, growth = 0.9 }]"
            ),
            ("recycle = 1\n", ""),
            ("damping = { start = 1.0, growth = 1.01 }\n", ""),
        ]),
        ["study.toml:38: [algorithm] penalty is not used by local"]
    );
}

#[test]
fn parameters_of_other_topologies_are_noted() {
    assert_eq!(
        said(&[("topology = \"random\"", "topology = \"ring\"\nwidth = 3")]),
        [
            "study.toml:26: [network] width is not used by ring",
            "study.toml:27: [network] probability is not used by ring",
            "study.toml:28: [network] seed is not used by ring",
        ]
    );
    assert_eq!(
        said(&[
            ("topology = \"random\"", "edges = [[0, 1]]"),
            ("seed = 3\n", "")
        ]),
        ["study.toml:26: [network] probability is not used by a list of edges"]
    );
}

#[test]
fn parameters_of_other_splits_and_losses_are_noted() {
    assert_eq!(
        said(&[("\"shuffled\"", "\"round-robin\"")]),
        ["study.toml:21: [data.split] seed is not used by round-robin"]
    );
    assert_eq!(
        said(&[("\"shuffled\"", "\"column\"\nname = \"clinic\"\nalpha = 1")]),
        [
            "study.toml:22: [data.split] alpha is not used by column",
            "study.toml:23: [data.split] seed is not used by column",
        ]
    );
    assert_eq!(
        said(&[(
            "\"shuffled\"",
            "\"sizes\"\nsizes = [1, 2, 3, 4, 5]\nalpha = 1"
        )]),
        ["study.toml:22: [data.split] alpha is not used by sizes"]
    );
    assert_eq!(
        said(&[("\"shuffled\"", "\"shuffled\"\nsizes = [1, 2]")]),
        ["study.toml:21: [data.split] sizes is not used by shuffled"]
    );
    assert_eq!(
        said(&[(
            "[data.split]",
            "[data.test]\nlast = 9\nseed = 1\n[data.split]"
        )]),
        ["study.toml:21: [data.test] seed is not used by last"]
    );
    assert_eq!(
        said(&[(
            "[data.split]",
            "[data.test]\npath = \"test.csv\"\nseed = 1\n[data.split]"
        )]),
        ["study.toml:21: [data.test] seed is not used by path"]
    );
    assert_eq!(
        said(&[(
            "[data.split]",
            "[data.test]\nshare = 0.1\nseed = 1\nformat = \"csv\"\n[data.split]"
        )]),
        ["study.toml:22: [data.test] format is not used by share"]
    );
    assert_eq!(
        said(&[("\"logistic\"", "\"logistic\"\nwidth = 1")]),
        ["study.toml:31: [problem] width is not used by logistic"]
    );
    assert_eq!(
        said(&[("\"logistic\"", "\"cut-logistic\"\nwidth = 1")]),
        ["study.toml:31: [problem] width is not used by cut-logistic"]
    );
}

#[test]
fn parameters_of_other_mechanisms_are_noted() {
    assert_eq!(
        said(&[("\"objective\"", "\"none\"")]),
        [
            "study.toml:46: [privacy] noise is not used by mechanism none",
            "study.toml:47: [privacy] rate is not used by mechanism none",
            "study.toml:48: [privacy] scale is not used by mechanism none",
            "study.toml:49: [privacy] bound is not used by mechanism none",
        ]
    );
    assert_eq!(
        said(&[("rate = 2.0", "rate = 2.0\nsigma = 1\ndelta = 1e-5")]),
        [
            "study.toml:48: [privacy] sigma is not used by gamma noise",
            "study.toml:49: [privacy] delta is not used by gamma noise",
        ]
    );
    assert_eq!(
        said(&[
            ("\"gamma\"", "\"gaussian\"\nsigma = 1\ndelta = 1e-5"),
            ("bound = \"tight\"\n", "")
        ]),
        ["study.toml:49: [privacy] rate is not used by gaussian noise"]
    );
    assert_eq!(
        said(&[("rate = 2.0", "epsilon = 1\ndelta = 1e-5")]),
        ["study.toml:48: [privacy] delta is not used by gamma noise"]
    );
}

#[test]
fn defaults_without_an_effect_are_noted() {
    assert_eq!(
        said(&[("\"objective\"", "\"output\"")]),
        [
            "study.toml:48: [privacy] scale is used by mechanism objective only",
            "study.toml:49: [privacy] bound is used by mechanism objective with gamma noise only",
        ]
    );
}

#[test]
fn notes_come_in_the_order_of_the_file() {
    let mut changes = vec![
        ("\"shuffled\"", "\"round-robin\""),
        ("\"random\"", "\"star\""),
    ];
    changes.extend(TO_DGD);
    let lines: Vec<usize> = notes(&changes)
        .iter()
        .filter_map(|note| note.place.line())
        .collect();
    assert_eq!(lines, [21, 26, 27, 39, 40, 41, 49, 50]);
}

#[test]
fn a_value_that_is_dropped_as_missing_is_noted() {
    let unknown = ("\"Male\"]", "\"Male\", \"?\"]");
    assert_eq!(
        said(&[unknown]),
        [
            "study.toml:16: [data.categorical] sex holds \"?\", which is also in missing: rows with it are dropped"
        ]
    );
    assert!(said(&[unknown, ("[\"?\", \"\"]", "[\"\"]")]).is_empty());
}

#[test]
fn testing_on_the_rows_that_are_trained_on_is_noted() {
    let test = |path: &str| {
        let section = format!("[data.test]\npath = \"{path}\"\n\n[network]");
        said(&[("[network]", &section)])
    };
    let note = "study.toml:24: [data.test] path is the file that is trained on: the test says nothing about new rows";
    assert_eq!(test("rows.csv"), [note]);
    assert_eq!(test("./rows.csv").len(), 1);
    assert!(test("other.csv").is_empty());
}
