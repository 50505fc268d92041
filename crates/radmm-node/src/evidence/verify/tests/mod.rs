mod forgeries;

use std::fs;

use radmm::message::Message;
use radmm::public::graph::NodeId;
use radmm::public::release::Release;
use radmm_study::Limit;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::evidence::statement::{SignedStatement, write_results};
use crate::evidence::transcript::tests::about;
use crate::hex;
use crate::key::SecretKey;
use crate::machine::frame::Signed;
use crate::machine::tests::{STUDY, World};
use crate::public_facts::About;

/// A study that is over, and what its parties show of it.
struct Shown {
    world: World,
    _folder: TempDir,
    transcripts: Vec<PathBuf>,
    statements: Vec<PathBuf>,
}

impl Shown {
    fn ring() -> Self {
        Self::of(&STUDY.replace("TOPOLOGY", "ring"))
    }

    fn of(study: &str) -> Self {
        let mut world = World::of(study, 1);
        world.run(0);
        Self::by(world)
    }

    fn by(world: World) -> Self {
        Self::under(world, None)
    }

    /// At sites with such a limit.
    fn under(world: World, limit: Option<&Limit>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut transcripts, mut statements) = (Vec::new(), Vec::new());
        for i in 0..5 {
            let out = folder.path().join(&world.study.parties[i as usize].name);
            let party = world.seats[i as usize].party.as_ref().unwrap();
            let about = About {
                limit: limit.cloned(),
                ..about(&world, i)
            };
            let written = write_results(party, &about, &out).unwrap();
            transcripts.push(written[0].clone());
            statements.push(written[1].clone());
        }
        Self {
            world,
            _folder: folder,
            transcripts,
            statements,
        }
    }

    fn key(&self, i: usize) -> SecretKey {
        SecretKey::from_pem(&self.world.seats[i].pem).unwrap()
    }

    /// Changes the lines of a transcript.
    fn edit(&self, i: usize, change: impl FnOnce(&mut Vec<Value>)) {
        let text = fs::read_to_string(&self.transcripts[i]).unwrap();
        let read = |line| serde_json::from_str(line).unwrap();
        let mut lines: Vec<Value> = text.lines().map(read).collect();
        change(&mut lines);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&self.transcripts[i], text).unwrap();
    }

    /// Moves a message by one unit, and has it signed again by some party.
    fn nudge(&self, line: &mut Value, signer: usize) {
        let units = line["units"].as_array_mut().unwrap();
        units[0] = (units[0].as_i64().unwrap() + 1).into();
        let units = units.iter().map(|unit| unit.as_i64().unwrap()).collect();
        let message = Message {
            from: NodeId(line["node"].as_u64().unwrap() as u32),
            iteration: line["iteration"].as_u64().unwrap() as u32,
            release: Release::on_grid(units).unwrap(),
        };
        let signed = Signed::new(message, &self.world.study.digest(), &self.key(signer));
        line["signature"] = hex::digits(&signed.signature).into();
    }

    /// States something else, with a key's signature.
    fn restate(&self, i: usize, key: &SecretKey, change: impl FnOnce(&mut Value)) {
        let text = fs::read_to_string(&self.statements[i]).unwrap();
        let mut file: Value = serde_json::from_str(&text).unwrap();
        change(&mut file["statement"]);
        let signed = format!("radmm statement v1\0{}", file["statement"]);
        file["signature"] = hex::digits(&key.sign(signed.as_bytes())).into();
        file["signed_by"] = radmm_study::Identity::from(key.public()).to_string().into();
        fs::write(&self.statements[i], file.to_string()).unwrap();
    }

    fn verdict(&self) -> Verdict {
        verify(&self.world.study, &self.transcripts, &self.statements).unwrap()
    }

    /// What does not hold of transcripts alone, as it is told.
    fn faults(&self) -> Vec<String> {
        let verdict = verify(&self.world.study, &self.transcripts, &[]).unwrap();
        let told = |fault: &Fault| {
            let text = fault.to_string();
            let folder = self._folder.path().display().to_string();
            text.replace(&format!("{folder}/"), "")
        };
        verdict.faults.iter().map(told).collect()
    }
}

fn message(lines: &mut [Value], from: u32, iteration: u32) -> &mut Value {
    let mut lines = lines.iter_mut();
    let is = |line: &&mut Value| {
        line["from"].is_string() && line["node"] == from && line["iteration"] == iteration
    };
    lines.find(is).unwrap()
}

fn charge(lines: &mut [Value], iteration: u32) -> &mut Value {
    let mut lines = lines.iter_mut();
    let found = lines.find(|line| line["charge"]["iteration"] == iteration);
    &mut found.unwrap()["charge"]
}

#[test]
fn what_honest_parties_show_holds() {
    let gradients = STUDY
        .replace("r-admm", "r-dlm")
        .replace("\"objective\"", "\"gradient\"");
    let studies = [
        STUDY.to_owned(),
        gradients,
        STUDY.replace("sigma = 5", "epsilon = 20"),
        STUDY.replace("sigma = 5", "precision = \"float\"\nsigma = 5"),
        STUDY.replace("r-admm", "admm").replace("damping = 1", ""),
        STUDY.replace("damping = 1", "damping = 1\nstart = { normal = 0.1 }"),
    ];
    for (study, topology) in studies
        .iter()
        .zip(["ring", "star", "path", "ring", "complete", "ring"])
    {
        let shown = Shown::of(&study.replace("TOPOLOGY", topology));
        let verdict = shown.verdict();
        assert!(verdict.holds(), "{:?}", verdict.faults);
        for (i, checked) in verdict.transcripts.iter().enumerate() {
            let party = shown.world.seats[i].party.as_ref().unwrap();
            assert_eq!(checked.signed, checked.messages);
            assert_eq!(checked.recycled + checked.answered, 9);
            assert_eq!(checked.charges, checked.answered);
            assert_eq!(checked.total, Some(party.spent()));
        }
        assert!(verdict.statements.iter().all(|stated| stated.compared));
    }
}

#[test]
fn a_study_that_is_not_over_holds_as_far_as_it_goes() {
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
    let verdict = Shown::by(world).verdict();
    assert!(verdict.holds(), "{:?}", verdict.faults);
    for checked in &verdict.transcripts {
        assert!(!checked.finished && checked.iterations > 0 && checked.iterations < 9);
        let made = checked.recycled + checked.answered;
        assert_eq!(made, checked.iterations as usize);
    }
}

#[test]
fn a_recycled_value_that_does_not_follow_is_found_though_its_party_signed_it() {
    let shown = Shown::ring();
    shown.edit(0, |lines| shown.nudge(message(lines, 0, 4), 0));
    let faults = shown.faults();
    assert_eq!(
        faults[0],
        "alder/transcript.jsonl: alder, iteration 4: the recycled value does not follow from the messages before it"
    );
    // The neighbours have what it told them.
    let two = "alder, iteration 4: it said two different things: one in the transcript of alder";
    assert_eq!(faults.iter().filter(|fault| fault.contains(two)).count(), 2);
    assert_eq!(faults.len(), 3, "{faults:?}");
}

#[test]
fn charges_other_than_the_studys_are_found() {
    let shown = Shown::ring();
    shown.edit(0, |lines| {
        lines.retain(|line| line["charge"]["iteration"] != 3);
    });
    shown.edit(1, |lines| {
        let event = &mut charge(lines, 5)["event"];
        event["amount"] = json!(50.0);
    });
    shown.edit(2, |lines| {
        let units = charge(lines, 7)["units"].as_array_mut().unwrap();
        units[2] = (units[2].as_i64().unwrap() - 1).into();
    });
    shown.edit(3, |lines| {
        let mut another = charge(lines, 3).clone();
        another["iteration"] = 4.into();
        lines.insert(3, json!({ "charge": another }));
    });
    // Fewer noise for more rows than there are.
    shown.edit(4, |lines| lines[0]["rows"] = 1_000_000.into());
    let faults = shown.faults();
    let told = |place: usize, what: &str| assert!(faults[place].contains(what), "{faults:?}");
    told(
        0,
        "alder, iteration 3: the rows were asked, and there is no answer that was charged",
    );
    told(
        1,
        "alder, iteration 3: the study charges here, and the transcript does not",
    );
    told(2, "birch, iteration 5: the charge is not the study's");
    told(
        3,
        "cedar, iteration 7: the value does not follow from the answer on record",
    );
    told(
        4,
        "maple, iteration 4: there is a charge, and the study asks for none here",
    );
    told(
        5,
        "rowan, iteration 1: the charge is not the study's for 1000000 rows",
    );
    assert_eq!(faults.len(), 5 + 5, "{faults:?}");
}

#[test]
fn what_others_said_cannot_be_altered() {
    let shown = Shown::ring();
    // By alder, without birch's key: with the old signature, and with alder's own.
    shown.edit(0, |lines| {
        let units = message(lines, 1, 9)["units"].as_array_mut().unwrap();
        units[0] = (units[0].as_i64().unwrap() + 1).into();
    });
    shown.edit(2, |lines| shown.nudge(message(lines, 1, 9), 2));
    let faults = shown.faults();
    let wanted = "birch, iteration 9: the message does not have its signature";
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults.iter().all(|fault| fault.ends_with(wanted)));
}

#[test]
fn who_tells_two_neighbours_different_things_is_named_with_both_transcripts() {
    let shown = Shown::ring();
    // Birch, between alder and cedar, has told cedar something else at the very end.
    shown.edit(2, |lines| shown.nudge(message(lines, 1, 9), 1));
    let two = [shown.transcripts[0].clone(), shown.transcripts[2].clone()];
    let verdict = verify(&shown.world.study, &two, &[]).unwrap();
    assert_eq!(verdict.faults.len(), 1, "{:?}", verdict.faults);
    let fault = verdict.faults[0].to_string();
    assert!(fault.contains("birch, iteration 9: it said two different things"));
    assert!(fault.contains(&two[0].display().to_string()), "{fault}");
    assert!(fault.contains(&two[1].display().to_string()), "{fault}");
    // Each alone looks right.
    for one in two {
        assert!(verify(&shown.world.study, &[one], &[]).unwrap().holds());
    }
}

#[test]
fn messages_that_are_missing_are_found() {
    let shown = Shown::ring();
    shown.edit(0, |lines| {
        lines.retain(|line| line["node"] != 1 || line["iteration"].as_u64() < Some(6));
    });
    shown.edit(1, |lines| {
        lines.pop();
    });
    let faults = shown.faults();
    assert!(faults[0].contains("birch, iteration 6: the message is missing, and 3 after it"));
    assert!(
        faults[1].contains("cedar, iteration 9: the message is missing"),
        "{faults:?}"
    );
    assert_eq!(faults.len(), 2, "{faults:?}");
}

#[test]
fn a_statement_that_its_transcript_does_not_bear_out_is_found() {
    let shown = Shown::ring();
    let stranger = SecretKey::generate().unwrap();
    shown.restate(0, &shown.key(0), |stated| stated["epsilon"] = json!(0.1));
    shown.restate(1, &stranger, |_| {});
    shown.restate(2, &shown.key(3), |_| {});
    shown.restate(3, &shown.key(3), |stated| {
        stated["audited"] = json!("\u{1b}[2J")
    });
    let text = fs::read_to_string(&shown.statements[4]).unwrap();
    let changed = text.replace("\"protects\": false", "\"protects\": true");
    assert_ne!(text, changed);
    fs::write(&shown.statements[4], changed).unwrap();
    let faults: Vec<String> = shown
        .verdict()
        .faults
        .iter()
        .map(Fault::to_string)
        .collect();
    let told = |of: usize, what: &str| {
        let file = shown.statements[of].display().to_string();
        let found = faults
            .iter()
            .any(|told| told.starts_with(&file) && told.contains(what));
        assert!(found, "{what}: {faults:?}");
    };
    told(0, "alder: it states epsilon = 0.1, and ");
    told(1, "who is no party of the study");
    told(2, "maple: it states party = \"cedar\", and ");
    told(3, "maple: it states \"audited\", which means nothing");
    told(
        4,
        "rowan: the statement does not have the signature of ed25519:",
    );
}

#[test]
fn a_statement_goes_with_one_transcript_to_the_byte() {
    let shown = Shown::ring();
    // An answer that nobody would miss: another program's name.
    shown.edit(0, |lines| lines[0]["program"]["name"] = "another".into());
    let faults = shown.verdict().faults;
    assert_eq!(faults.len(), 1);
    assert!(faults[0].what.starts_with("it states transcript_sha256 = "));
    // Without a transcript only the signature, the study and the party can be checked.
    let verdict = verify(&shown.world.study, &[], &shown.statements).unwrap();
    assert!(verdict.holds());
    assert!(verdict.statements.iter().all(|stated| !stated.compared));
    SignedStatement::read(&shown.statements[0]).unwrap();
}

#[test]
fn a_transcript_of_another_study_is_told_as_such() {
    let (one, other) = (Shown::ring(), Shown::ring());
    let verdict = verify(
        &one.world.study,
        &other.transcripts[..1],
        &other.statements[..1],
    )
    .unwrap();
    assert_eq!(verdict.faults.len(), 2, "{:?}", verdict.faults);
    assert!(
        verdict.faults[0]
            .what
            .contains("it is of another study, \"rehearsal\"")
    );
    assert!(verdict.faults[1].what.contains("no party of the study"));
    assert!(verdict.transcripts.is_empty());
}

#[test]
fn whatever_a_file_holds_nothing_panics() {
    let shown = Shown::ring();
    let whole = fs::read(&shown.transcripts[0]).unwrap();
    let stated = fs::read(&shown.statements[0]).unwrap();
    for k in 0..400_usize {
        for (path, bytes) in [
            (&shown.transcripts[0], &whole),
            (&shown.statements[0], &stated),
        ] {
            let mut bytes = bytes.clone();
            let at = k.wrapping_mul(2_654_435_761) % bytes.len();
            bytes[at] ^= 1 << (k % 7);
            fs::write(path, bytes).unwrap();
        }
        let verdict = verify(
            &shown.world.study,
            &shown.transcripts[..1],
            &shown.statements[..1],
        );
        assert!(!verdict.unwrap().holds(), "change {k}");
    }
}
