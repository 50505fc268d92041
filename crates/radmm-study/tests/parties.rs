//! Studies between real parties: who takes part, and that every party has its own rows.

use radmm_data::{Format, Holdout, Split};
use radmm_study::rows::{StudyRows, StudyRowsError};
use radmm_study::{RowSource, Study, StudyParty, TestRows};
use serde_json::{Value, json};

const PARTIES: &str = include_str!("parties.toml");
const REFERENCE: &str = include_str!("../../../docs/study.md");

fn read(changes: &[(&str, &str)]) -> (Study, Vec<String>) {
    let text = changes.iter().fold(PARTIES.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old:?}");
        text.replacen(old, new, 1)
    });
    match Study::parse(&text, "study.toml") {
        Ok((study, notes)) => (study, notes.iter().map(ToString::to_string).collect()),
        Err(error) => panic!("{error} in\n{text}"),
    }
}

fn serialised(study: &Study) -> Value {
    serde_json::to_value(study).expect("no map has keys other than strings")
}

/// A line of the example.
fn line(start: &str) -> &'static str {
    let line = PARTIES.lines().find(|line| line.starts_with(start));
    line.unwrap_or_else(|| panic!("no line begins with {start}"))
}

#[test]
fn parties_are_listed_in_the_order_of_nodes() {
    let (study, notes) = read(&[]);
    assert_eq!(notes, [""; 0]);
    let names: Vec<&str> = study.parties.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["alder", "birch", "cedar"]);
    assert_eq!(
        study.parties[1],
        StudyParty {
            name: "birch".into(),
            key: "ed25519:548a42517fa28525d6af7249de69bd6fefb51d10c996bb8135e337a53cf3b4cf"
                .parse()
                .expect("a key"),
            rows: Some(4463),
            address: Some("10.1.2.3:7411".into()),
        }
    );
    assert_eq!(study.parties[2].address, None);
    assert_eq!(study.network.nodes, 3);
    let (counted, _) = read(&[("topology", "nodes = 3\ntopology")]);
    assert_eq!(counted, study);
}

#[test]
fn names_and_addresses_have_many_forms() {
    for name in ["Klinik Süd", "st.-anna_2", "9", &"ä".repeat(64)] {
        let (study, _) = read(&[("\"alder\"", &format!("{name:?}"))]);
        assert_eq!(study.parties[0].name, name);
    }
    for address in [
        "localhost:1",
        "[::1]:65535",
        "a_b.example.:07411",
        "127.0.0.1:7411",
    ] {
        let (study, _) = read(&[("\"10.1.2.3:7411\"", &format!("{address:?}"))]);
        assert_eq!(study.parties[1].address.as_deref(), Some(address));
    }
}

#[test]
fn the_reference_shows_the_example() {
    let (list, _) = PARTIES
        .split_once("[[parties]]")
        .and_then(|(_, rest)| rest.split_once("[network]"))
        .expect("parties before the network");
    assert!(REFERENCE.contains(&format!("```toml\n[[parties]]{}\n```", list.trim_end())));
}

#[test]
fn every_party_has_its_own_rows_if_the_study_names_none() {
    let (study, _) = read(&[]);
    assert_eq!(study.data.source, RowSource::Parties);
    assert_eq!(study.data.options, Format::Csv.into());
    assert_eq!((study.run.repetitions, study.run.seed), (1, 0));
    // Rows that the study names are for rehearsals.
    let (rehearsal, _) = read(&[
        ("label", "path = \"rows.csv\"\nlabel"),
        ("[privacy]", "[run]\nseed = 1\n[privacy]"),
    ]);
    assert_eq!(rehearsal.data.source, RowSource::File("rows.csv".into()));
    assert_eq!(rehearsal.parties, study.parties);
}

#[test]
fn parties_may_all_have_libsvm_files() {
    let (study, _) = read(&[
        ("label = \"outcome\"", "format = \"libsvm\"\ncolumns = 7"),
        ("[data.numeric]\nage = [0, 90]\n", ""),
    ]);
    assert_eq!(study.data.options, Format::Libsvm.into());
    assert_eq!(study.data.schema.numbered, 7);
}

#[test]
fn sections_on_rows_are_noted_in_a_study_without_rows() {
    let idle = "[data.split]\nmethod = \"shuffled\"\nseed = 1\nalpha = 1\n[data.test]\nlast = 9\n[[parties]]";
    let run = "[run]\nrepetitions = 5\nseed = 3\n[privacy]";
    let (study, notes) = read(&[("[[parties]]", idle), ("[privacy]", run)]);
    assert_eq!(
        notes,
        [
            "study.toml:10: [data] split is not used: every party has its own rows",
            "study.toml:14: [data] test is not used: every party has its own rows",
            "study.toml:47: [run] repetitions is not used: real parties run a study once",
        ]
    );
    assert_eq!(study.data.split, Split::RoundRobin);
    assert_eq!(study.data.test, None);
    let (plain, _) = read(&[("[privacy]", "[run]\nseed = 3\n[privacy]")]);
    assert_eq!(study.sha256(), plain.sha256());
}

#[test]
fn a_simulation_uses_split_and_test_of_a_study_with_parties() {
    let (study, notes) = read(&[
        ("label", "builtin = \"clinic\"\nlabel"),
        ("[[parties]]", "[data.test]\nlast = 9\n[[parties]]"),
        ("[privacy]", "[run]\nrepetitions = 5\nseed = 3\n[privacy]"),
    ]);
    assert_eq!(notes, [""; 0]);
    assert_eq!(
        study.data.test,
        Some(TestRows::Held(Holdout::Last { rows: 9 }))
    );
    assert_eq!(study.run.repetitions, 5);
}

#[test]
fn rows_may_be_left_out_where_parties_count_alike() {
    let (declared, _) = read(&[("weight", "count = \"parties\"\nweight")]);
    assert_eq!(declared.parties[2].rows, Some(443));
    let (study, notes) = read(&[
        ("weight", "count = \"parties\"\nweight"),
        ("rows = 443\n", ""),
    ]);
    assert_eq!(notes, [""; 0]);
    assert_eq!(study.parties[2].rows, None);
    assert_eq!(serialised(&study)["parties"][2].get("rows"), None);
}

#[test]
fn parties_are_serialised_as_written() {
    let (study, _) = read(&[]);
    let json = serialised(&study);
    let sections: Vec<&String> = json.as_object().expect("an object").keys().collect();
    assert_eq!(
        sections,
        [
            "name",
            "data",
            "network",
            "parties",
            "problem",
            "algorithm",
            "privacy",
            "run"
        ]
    );
    assert_eq!(
        json["data"],
        json!({
            "format": "csv",
            "label": "outcome",
            "positive": "yes",
            "missing": ["?", ""],
            "rows": "unit",
            "intercept": false,
            "numeric": { "age": [0.0, 90.0] },
            "categorical": {},
        })
    );
    assert_eq!(
        json["parties"][2],
        json!({
            "name": "cedar",
            "key": "ed25519:0c274639936717793d7695ef0373039e397acdabc247d9953d3c9209a95044cd",
            "rows": 443,
        })
    );
    assert_eq!(json["parties"][0]["address"], "alder.example:7411");
}

#[test]
fn lists_may_be_written_inline() {
    let (study, _) = read(&[]);
    let party = |party: &StudyParty| {
        let address = party.address.as_ref();
        let address = address.map(|address| format!(", address = {address:?}"));
        format!(
            "{{ name = {:?}, key = \"{}\", rows = {}{} }}",
            party.name,
            party.key,
            party.rows.expect("declared"),
            address.unwrap_or_default()
        )
    };
    let list: Vec<String> = study.parties.iter().map(party).collect();
    let (head, rest) = PARTIES.split_once("[[parties]]").expect("parties");
    let (_, tail) = rest.split_once("[network]").expect("a network");
    let text = format!("parties = [{}]\n{head}[network]{tail}", list.join(", "));
    let (inline, _) = Study::parse(&text, "study.toml").expect("the same study");
    assert_eq!(inline, study);
}

#[test]
fn every_key_of_a_party_changes_the_digest() {
    let (study, _) = read(&[]);
    let mut seen = vec![study.sha256()];
    let swapped = (
        PARTIES.split("[[parties]]").nth(1).expect("a party"),
        PARTIES.split("[[parties]]").nth(2).expect("a party"),
    );
    let swap = format!("[[parties]]{}[[parties]]{}", swapped.0, swapped.1);
    let back = format!("[[parties]]{}[[parties]]{}", swapped.1, swapped.0);
    for change in [
        ("\"alder\"", "\"elder\""),
        ("\"ed25519:bf", "\"ed25519:be"),
        ("alder.example:7411", "alder.example:7412"),
        ("rows = 8101", "rows = 8102"),
        (line("address = \"10"), ""),
        (&swap, &back),
        ("label", "path = \"rows.csv\"\nlabel"),
        ("label", "format = \"parquet\"\nlabel"),
    ] {
        let (study, _) = read(&[change, ("[privacy]", "[run]\nseed = 0\n[privacy]")]);
        let hash = study.sha256();
        assert!(!seen.contains(&hash), "{change:?}");
        seen.push(hash);
    }
}

#[test]
fn reading_rows_that_only_parties_have_is_an_error() {
    let (study, _) = read(&[]);
    let error = StudyRows::read(&study, ".".as_ref())
        .err()
        .expect("no rows");
    assert!(matches!(error, StudyRowsError::Parties));
    assert_eq!(
        error.to_string(),
        "[data] has neither path nor builtin: every party has its own rows; run it with \"radmm node\", \
         or give path or builtin to simulate it"
    );
}

const REHEARSAL: (&str, &str) = ("label = \"outcome\"\n", "builtin = \"clinic\"\n");
const SEED: (&str, &str) = ("[privacy]", "[run]\nseed = 1\n[privacy]");
/// The numbers of rows that the table has for three parties.
const ROWS: [(&str, &str); 3] = [
    ("rows = 8101", "rows = 664"),
    ("rows = 4463", "rows = 664"),
    ("rows = 443", "rows = 663"),
];

#[test]
fn a_split_that_gives_a_party_other_rows_than_it_declares_is_an_error() {
    let (study, _) = read(&[REHEARSAL, SEED, ROWS[0], ROWS[1]]);
    let error = StudyRows::read(&study, ".".as_ref()).err();
    assert_eq!(
        error.expect("other rows").to_string(),
        "[[parties]] cedar: rows = 443, and the split of the study's own table gives this party 663; correct rows, and have \
         every party agree on the study again"
    );
}

#[test]
fn simulated_parties_have_the_names_of_real_ones() {
    let (study, _) = read(&[REHEARSAL, SEED, ROWS[0], ROWS[1], ROWS[2]]);
    let rows = StudyRows::read(&study, ".".as_ref()).expect("rows");
    let names: Vec<&str> = rows.parties.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["alder", "birch", "cedar"]);
}
