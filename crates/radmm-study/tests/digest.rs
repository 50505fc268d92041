//! The digest of a study depends on the meaning of every key, and on nothing else.

use radmm_study::{NoiseOrigin, Override, Study, dotted_keys, hex, sha256_of_json};

const EXAMPLE: &str = include_str!("example.toml");

fn digest(text: &str) -> String {
    match Study::parse(text, "study.toml") {
        Ok((study, _)) => study.sha256(),
        Err(error) => panic!("{error}\n{text}"),
    }
}

#[test]
fn the_digest_is_that_of_the_serialised_study() {
    // By `sha256sum` of the study in result.json, put on one line.
    let text = r#"
        [data]
        path = "rows.csv"
        label = "outcome"
        positive = "yes"
        intercept = true
        [network]
        nodes = 2
        topology = "path"
        [problem]
        weight = 1
        ridge = 1
        [algorithm]
        name = "local"
        iterations = 1
    "#;
    let (study, _) = Study::parse(text, "study.toml").expect("a study");
    let json = serde_json::to_string(&study).expect("JSON");
    assert_eq!(
        json,
        "{\"name\":\"study\",\"data\":{\"path\":\"rows.csv\",\"format\":\"csv\",\"label\":\"outcome\",\
         \"positive\":\"yes\",\"missing\":[\"?\",\"\"],\"rows\":\"unit\",\"intercept\":true,\"numeric\":{},\
         \"categorical\":{},\"split\":{\"method\":\"round-robin\"}},\"network\":{\"nodes\":2,\"topology\":\"path\"},\
         \"problem\":{\"loss\":\"logistic\",\"count\":\"rows\",\"weight\":1.0,\"ridge\":1.0},\"algorithm\":{\"name\":\"local\",\
         \"extra_ridge\":0.0,\"iterations\":1,\"start\":\"zeros\",\"tolerance\":1e-10},\"privacy\":\
         {\"mechanism\":\"none\",\"bound\":\"tight\",\"precision\":\"grid\"},\"run\":{\"repetitions\":1,\"seed\":0}}"
    );
    assert_eq!(
        study.sha256(),
        "f1f454a29d112577742c03d2d526ac20bd1fbdd446987c83ac607c382cac1d33"
    );
    // A run in earnest speaks of the study itself, and a rehearsal of its rehearsal.
    assert_eq!(study.spoken_digest(NoiseOrigin::Secret), study.digest());
    assert_eq!(
        hex::encode(&study.spoken_digest(NoiseOrigin::Seeded)),
        "1c6a283125cf06eecc2bc17986f86ceca080c5beba48dc76f881690266eea309"
    );
}

#[test]
fn comments_spacing_order_and_spelling_do_not_change_the_digest() {
    let plain = digest(EXAMPLE);
    let bare: String = EXAMPLE
        .lines()
        .map(|line| line.split(" #").next().unwrap_or(line).trim_end())
        .map(|line| format!("\t{}\r\n", line.replace(" = ", "=")))
        .collect();
    assert_eq!(digest(&format!("# for all of us\n\n{bare}")), plain);
    for (old, new) in [
        ("weight = 1750.0", "weight = 1_750"),
        ("ridge = 0.00316", "ridge = 3.16e-3"),
        ("count = \"rows\"\n", ""),
        ("age = [0, 90]", "'age' = [0.0, 9e1]"),
        (
            "method = \"shuffled\"\nseed = 7",
            "seed = 7\nmethod = \"shuffled\"",
        ),
        (
            "damping = { start = 1.0, growth = 1.01 }",
            "damping.start = 1\ndamping.growth = 1.01",
        ),
        // A default that is left out, and a key without an effect.
        ("tolerance = 1e-10\n", ""),
        ("recycle = 1\n", ""),
        ("intercept = false\n", ""),
        ("rate = 2.0", "rate = 2.0\nsigma = 3"),
        (
            "path = \"rows.csv\"",
            "path = \"rows.csv\"\nseparator = \",\"\ndecimal = \".\"",
        ),
    ] {
        assert!(EXAMPLE.contains(old), "{old}");
        assert_eq!(digest(&EXAMPLE.replacen(old, new, 1)), plain, "{new}");
    }
}

#[test]
fn every_key_changes_the_digest() {
    let changes = [
        ("name = \"visits\"", "name = \"visit\""),
        ("\"rows.csv\"", "\"row.csv\""),
        (
            "path = \"rows.csv\"",
            "path = \"rows.csv\"\nformat = \"parquet\"",
        ),
        (
            "path = \"rows.csv\"",
            "path = \"rows.csv\"\nseparator = \";\"",
        ),
        (
            "path = \"rows.csv\"",
            "path = \"rows.csv\"\ndecimal = \",\"",
        ),
        ("path = \"rows.csv\"", "builtin = \"clinic\""),
        ("\"outcome\"", "\"result\""),
        ("\"yes\"", "\"no\""),
        ("[\"?\", \"\"]", "[\"?\"]"),
        ("\"unit\"", "\"clip\""),
        ("intercept = false", "intercept = true"),
        ("age = [0, 90]", "age = [0, 91]"),
        ("age = [0, 90]", "age = { bins = [0, 90] }"),
        (
            "age = [0, 90]\n\"hours per week\" = [1, 99]",
            "\"hours per week\" = [1, 99]\nage = [0, 90]",
        ),
        ("[\"Female\", \"Male\"]", "[\"Male\", \"Female\"]"),
        (
            "[\"Female\", \"Male\"]",
            "{ values = [\"Female\", \"Male\"], other = \"missing\" }",
        ),
        (
            "age = [0, 90]",
            "age = { bounds = [0, 90], other = \"missing\" }",
        ),
        ("\"shuffled\"", "\"round-robin\""),
        ("\"shuffled\"", "\"dirichlet\"\nalpha = 1"),
        ("seed = 7", "seed = 8"),
        ("[data.split]", "[data.test]\nlast = 9\n[data.split]"),
        ("nodes = 5", "nodes = 6"),
        ("\"random\"", "\"ring\""),
        ("probability = 0.6", "probability = 0.61"),
        ("seed = 3", "seed = 4"),
        ("\"logistic\"", "\"smooth-hinge\""),
        ("1750.0", "1751.0"),
        ("0.00316", "0.00317"),
        ("\"r-admm\"", "\"r-dlm\"\n#"),
        ("iterations = 100", "iterations = 101"),
        ("recycle = 1", "recycle = 2"),
        ("penalty = 0.5", "penalty = 0.6"),
        ("growth = 1.01", "growth = 1.02"),
        ("\"zeros\"", "{ normal = 1 }"),
        ("1e-10", "1e-9"),
        ("\"objective\"", "\"output\""),
        ("\"objective\"", "\"none\""),
        ("\"gamma\"", "\"laplace\""),
        ("\"gamma\"", "\"gaussian\"\nsigma = 2\ndelta = 1e-5"),
        ("rate = 2.0", "rate = 2.1"),
        ("rate = 2.0", "epsilon = 2"),
        ("rate = 2.0", "epsilon = 2.1"),
        ("noise = \"gamma\"\nrate = 2.0", "epsilon = 2\ndelta = 1e-5"),
        ("noise = \"gamma\"\nrate = 2.0", "epsilon = 2\ndelta = 1e-6"),
        ("\"fixed\"", "\"penalty\""),
        ("\"tight\"", "\"paper\""),
        ("repetitions = 10", "repetitions = 11"),
        ("repetitions = 10", "repetitions = 10\ntick = 0"),
        ("repetitions = 10", "repetitions = 10\ntick = 0.5"),
        ("seed = 1\n", "seed = 2\n"),
    ];
    let mut seen = vec![digest(EXAMPLE)];
    for (old, new) in changes {
        assert!(EXAMPLE.contains(old), "{old}");
        let mut text = EXAMPLE.replacen(old, new, 1);
        if new.contains("r-dlm") {
            text = text.replace("\"objective\"", "\"gradient\"");
        }
        let changed = digest(&text);
        assert!(!seen.contains(&changed), "{old} → {new}");
        seen.push(changed);
    }
}

#[test]
fn a_study_that_is_read_back_has_the_digest_of_the_one_that_was_written() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a study");
        let (study, _) = Study::parse(&text, "study.toml").expect("a study");
        let indented = serde_json::to_string_pretty(&study).expect("JSON");
        let read = serde_json::from_str(&indented).expect("JSON");
        assert_eq!(sha256_of_json(&read), study.sha256(), "{}", path.display());
    }
}

#[test]
fn every_key_of_a_study_can_be_set_by_its_dotted_name() {
    let (study, _) = Study::parse(EXAMPLE, "study.toml").expect("a study");
    let json = serde_json::to_value(&study).expect("JSON");
    let keys = dotted_keys(json.as_object().expect("a table"));
    assert!(keys.len() > 30, "{keys:?}");
    assert!(
        keys.iter()
            .any(|(key, _)| key == "data.numeric.\"hours per week\""),
        "{keys:?}"
    );
    for (key, value) in keys {
        let one = Override::of_json(format!("--set {key}"), &key, &value).expect("a key");
        let again = Study::parse_with(EXAMPLE, "study.toml", &[one]);
        assert_eq!(again.expect("a study").0.sha256(), study.sha256(), "{key}");
    }
}
