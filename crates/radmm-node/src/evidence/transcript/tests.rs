use std::fs;

use radmm_study::SiteFile;

use super::*;
use crate::evidence::{SignedStatement, write_evidence};
use crate::machine::tests::{STUDY, World, consensus, mechanism, on};

/// Returns the public facts facts a party of a world.
pub(crate) fn facts(world: &World, i: u32) -> PublicFacts {
    let rows = world.hosts[i as usize].shard.rows();
    PublicFacts {
        study: world.study.clone(),
        graph: world.graph.clone(),
        node: NodeId(i),
        rows,
        mechanism: mechanism(&world.study, &world.graph, NodeId(i)),
        noise: world.noise(),
        read_off: false,
        limit: None,
    }
}

fn written(world: &World, i: u32, facts: &PublicFacts) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let party = world.hosts[i as usize].party.as_ref().unwrap();
    let paths = write_evidence(party, facts, folder.path()).unwrap();
    (folder, paths)
}

/// Returns two finished studies, one with Gaussian noise and one without noise.
fn worlds() -> [World; 2] {
    let gaussian = "mechanism = \"objective\"\nnoise = \"gaussian\"\nsigma = 5";
    let exact = STUDY.replace(gaussian, "mechanism = \"none\"");
    assert_ne!(exact, STUDY);
    ["ring", "star"].map(|topology| {
        let text = match topology {
            "star" => &exact,
            _ => STUDY,
        };
        let mut world = World::of(&on(topology, text), 1);
        world.run(0);
        world
    })
}

/// Returns a finished study whose first messages are Gram matrices.
fn sums_of_gram_matrices() -> World {
    let mut world = World::of(&on("ring", &consensus("gram")), 1);
    world.run(0);
    world
}

#[test]
fn coordinates_are_as_many_as_their_iteration_has() {
    let world = sums_of_gram_matrices();
    let (_folder, paths) = written(&world, 0, &facts(&world, 0));
    let whole = fs::read_to_string(&paths[0]).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let units = |line: &str| {
        line.split("\"units\":[")
            .nth(1)
            .map(|rest| rest.split(']').next().unwrap().to_owned())
    };
    let find = |what: &str| lines.iter().position(|line| line.contains(what)).unwrap();
    let (charge, wide, narrow) = (
        find("\"charge\":{\"iteration\":1,"),
        find("\"iteration\":1,\"units\""),
        find("\"iteration\":6,\"units\""),
    );
    let with = |line: usize, of: usize| {
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        lines[line] =
            lines[line].replace(&units(&lines[line]).unwrap(), &units(&lines[of]).unwrap());
        lines.join("\n") + "\n"
    };
    for (text, expected) in [
        (
            with(charge, narrow),
            "11 coordinates; the study has 66 at iteration 1",
        ),
        (
            with(wide, narrow),
            "11 coordinates; the study has 66 at iteration 1",
        ),
        (
            with(narrow, wide),
            "66 coordinates; the study has 11 at iteration 6",
        ),
    ] {
        fs::write(&paths[0], text).unwrap();
        let error = Transcript::read(&paths[0], &world.study, &world.graph).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_transcript_holds_the_messages_and_charges_of_the_store() {
    for world in worlds().into_iter().chain([sums_of_gram_matrices()]) {
        let last = world.study.algorithm.iterations;
        for i in 0..5 {
            let (_folder, paths) = written(&world, i, &facts(&world, i));
            let read = Transcript::read(&paths[0], &world.study, &world.graph).unwrap();
            let (store, record) = world.hosts[i as usize].party.as_ref().unwrap().store();
            assert_eq!(read.charges, store.charged_answers(record.number).unwrap());
            assert!(read.finished && read.iterations == last && read.node == NodeId(i));
            let around = 1 + world.graph.degree(NodeId(i));
            assert_eq!(read.messages.len(), (last as usize + 1) * around);
            for ((t, from), signed) in &read.messages {
                let kept = match from.0 == i {
                    true => store.sent(record.number, *t),
                    false => store.received(record.number, *t, *from),
                };
                assert_eq!(kept.unwrap().as_ref(), Some(signed));
            }
            let hash: [u8; 32] = Sha256::digest(fs::read(&paths[0]).unwrap()).into();
            assert_eq!(read.sha256, hash);
        }
    }
}

#[test]
fn an_unfinished_party_states_its_last_iteration() {
    let mut world = World::new("ring", 2);
    for (a, b) in world.edges() {
        world.connect(a, b).unwrap();
    }
    for _ in 0..6 {
        for (a, b) in world.edges() {
            world.deliver(a, b).unwrap();
            world.deliver(b, a).unwrap();
        }
    }
    let (_folder, paths) = written(&world, 0, &facts(&world, 0));
    let read = Transcript::read(&paths[0], &world.study, &world.graph).unwrap();
    let party = world.hosts[0].party.as_ref().unwrap();
    assert!(!read.finished && read.iterations > 0);
    assert_eq!(read.iterations, party.iteration());
    let statement = SignedStatement::read(&paths[1]).unwrap();
    assert_eq!(statement.fields["iterations"], read.iterations);
    assert_eq!(statement.fields["finished"], false);
    // The planned total is stated: that of a finished run.
    assert!(
        statement.fields["scope"]
            .as_str()
            .unwrap()
            .starts_with("planned total")
    );
    world.run(0);
    let finished = world.hosts[0].party.as_ref().unwrap().spent();
    assert_eq!(statement.fields["epsilon"], finished.epsilon);
}

#[test]
fn a_statement_says_what_was_spent_and_nothing_about_the_rows_but_their_number() {
    let [world, _] = worlds();
    let site = "key = \"k\"\nstate = \"s\"\n[data]\nshare = true\n[limit]\nepsilon = 90\ndelta = 1e-4\npure = 800";
    let (site, _) = SiteFile::parse(site, "site.toml").unwrap();
    let facts = PublicFacts {
        noise: NoiseOrigin::Secret,
        limit: site.limit,
        ..facts(&world, 2)
    };
    let (_folder, paths) = written(&world, 2, &facts);
    let party = world.hosts[2].party.as_ref().unwrap();
    let statement = SignedStatement::read(&paths[1]).unwrap();
    assert_eq!(statement.signed_by, world.study.parties[2].key);
    let fields = statement.fields;
    assert_eq!(fields["epsilon"], party.spent().epsilon);
    assert_eq!(fields["delta"], 1e-4);
    assert_eq!(fields["relation"], radmm::privacy::Guarantee::RELATION);
    assert_eq!(fields["protects"], true);
    assert_eq!(
        (&fields["noise"], &fields["sigma"]),
        (&"gaussian".into(), &5.0.into())
    );
    assert_eq!(fields["data_steps"], 5);
    assert_eq!(fields["recycled_steps"], 4);
    let totals = fields["site"]["totals"].as_array().unwrap();
    // Gaussian noise has no finite pure total, and an infinite number is null.
    assert!(totals[0]["epsilon"].is_null());
    assert_eq!(totals[0]["limit"], 800.0);
    assert!(totals[1]["epsilon"].as_f64().unwrap() >= party.spent().epsilon);
    assert_eq!(totals[1]["delta"], 1e-4);
    let (_, record) = party.store();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        assert!(!text.contains(&record.fingerprint) && !text.contains("dropped"));
    }
}

#[test]
fn seeded_noise_and_no_noise_are_stated_to_protect_nobody() {
    let [world, exact] = worlds();
    let (_folder, paths) = written(&world, 0, &facts(&world, 0));
    let fields = SignedStatement::read(&paths[1]).unwrap().fields;
    assert_eq!(fields["protects"], false);
    assert!(
        fields["caveat"]
            .as_str()
            .unwrap()
            .contains("repeats from the study's seed")
    );
    let (_folder, paths) = written(&exact, 0, &facts(&exact, 0));
    let fields = SignedStatement::read(&paths[1]).unwrap().fields;
    assert_eq!(fields["protects"], false);
    assert!(fields["epsilon"].is_null());
    assert!(fields["caveat"].as_str().unwrap().contains("without noise"));
}

#[test]
fn an_invalid_transcript_is_reported_with_line_and_field() {
    let [world, _] = worlds();
    let (_folder, paths) = written(&world, 0, &facts(&world, 0));
    let whole = fs::read_to_string(&paths[0]).unwrap();
    let long = format!("{}\n", " ".repeat(100_000));
    let cut = &whole[..whole.len() - 7];
    let cases = [
        (String::new(), ":1: the file is empty"),
        ("{}\n".to_owned(), ":1: it is not a radmm transcript"),
        ("rows, rows\n".to_owned(), ":1: invalid JSON"),
        (long, ":1: a line of more than"),
        (cut.to_owned(), "the line has no end"),
        (
            whole.replace("transcript\":2", "transcript\":3"),
            ":1: a transcript of format 3",
        ),
        (
            whole.replace("\"node\":0,\"rows\"", "\"node\":7,\"rows\""),
            ":1: party: node 7",
        ),
        (
            whole.replace("\"rows\":", "\"rows\":-"),
            ":1: rows: must be a whole number",
        ),
        (
            whole.replacen("\"units\":[", "\"units\":[1.5,", 1),
            ":2: units: must be a list of whole",
        ),
        (
            whole.replacen("\"units\":[", "\"units\":[1,", 1),
            "coordinates; the study has",
        ),
        (
            whole.replacen("\"units\":[", "\"units\":[9223372036854775807,", 1),
            "beyond the grid",
        ),
        (
            whole.replacen("\"sensitivity\"", "\"sensitive\"", 1),
            ":2: charge.event: ",
        ),
        (
            whole.replacen("\"iteration\":3", "\"iteration\":1", 1),
            ":3: charge.iteration: 1 is out of order",
        ),
        (
            whole.replacen("\"signature\":\"", "\"signature\":\"z", 1),
            ":7: signature: 'z' is not one of the digits",
        ),
        (
            whole.replacen("\"from\":\"birch\"", "\"from\":\"maple\"", 1),
            "neither this party nor a neighbour",
        ),
        (
            whole.clone() + whole.lines().last().unwrap() + "\n",
            "without duplicates",
        ),
        (
            whole.clone() + whole.lines().nth(1).unwrap() + "\n",
            "charges come first",
        ),
    ];
    for (text, expected) in cases {
        fs::write(&paths[0], text).unwrap();
        let error = Transcript::read(&paths[0], &world.study, &world.graph).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("transcript.jsonl:"), "{error}");
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
