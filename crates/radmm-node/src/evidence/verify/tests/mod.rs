mod forgeries;

use std::fs;

use radmm::graph::NodeId;
use radmm::protocol::message::Message;
use radmm::protocol::release::Release;
use radmm_study::{Limit, hex};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::evidence::transcript::tests::facts;
use crate::evidence::{SignedStatement, write_result_files};
use crate::key::SecretKey;
use crate::machine::SignedMessage;
use crate::machine::tests::{STUDY, World, consensus, on, with_privacy};
use crate::public_facts::PublicFacts;

/// A study, and the transcripts and statements of its parties.
struct Evidence {
    world: World,
    _folder: TempDir,
    transcripts: Vec<PathBuf>,
    statements: Vec<PathBuf>,
    /// The models of the parties that have finished.
    models: Vec<PathBuf>,
}

impl Evidence {
    fn ring() -> Self {
        Self::of(&on("ring", STUDY))
    }

    fn of(study: &str) -> Self {
        let mut world = World::of(study, 1);
        world.run(0);
        Self::by(world)
    }

    fn by(world: World) -> Self {
        Self::under(world, None)
    }

    /// Writes the evidence of sites with a limit.
    fn under(world: World, limit: Option<&Limit>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut transcripts, mut statements, mut models) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..5 {
            let out = folder.path().join(&world.study.parties[i as usize].name);
            let party = world.hosts[i as usize].party.as_ref().unwrap();
            let facts = PublicFacts {
                limit: limit.cloned(),
                ..facts(&world, i)
            };
            let mut written = write_result_files(party, &facts, &out).unwrap();
            models.extend(written.drain(2..));
            transcripts.push(written[0].clone());
            statements.push(written[1].clone());
        }
        Self {
            world,
            _folder: folder,
            transcripts,
            statements,
            models,
        }
    }

    fn key(&self, i: usize) -> SecretKey {
        SecretKey::from_pem(&self.world.hosts[i].pem).unwrap()
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

    /// Moves a message by one unit and signs it with the key of some party.
    fn nudge(&self, line: &mut Value, signer: usize) {
        let units = line["units"].as_array_mut().unwrap();
        units[0] = (units[0].as_i64().unwrap() + 1).into();
        let units = units.iter().map(|unit| unit.as_i64().unwrap()).collect();
        let message = Message {
            from: NodeId(line["node"].as_u64().unwrap() as u32),
            iteration: line["iteration"].as_u64().unwrap() as u32,
            release: Release::from_units(units).unwrap(),
        };
        let signed = SignedMessage::new(message, &self.world.spoken(), &self.key(signer));
        line["signature"] = hex::encode(&signed.signature).into();
    }

    /// Changes a statement and signs it with a key.
    fn restate(&self, i: usize, key: &SecretKey, change: impl FnOnce(&mut Value)) {
        let text = fs::read_to_string(&self.statements[i]).unwrap();
        let mut file: Value = serde_json::from_str(&text).unwrap();
        change(&mut file["statement"]);
        let signed = format!("radmm statement v1\0{}", file["statement"]);
        file["signature"] = hex::encode(&key.sign(signed.as_bytes())).into();
        file["signed_by"] = radmm_study::Identity::from(key.public()).to_string().into();
        fs::write(&self.statements[i], file.to_string()).unwrap();
    }

    fn verification(&self) -> Verification {
        let study = &self.world.study;
        let mut verification = verify(study, &self.transcripts, &self.statements).unwrap();
        for model in &self.models {
            verification.check_model(study, model).unwrap();
        }
        verification
    }

    /// Returns what does not hold of the transcripts alone, as text.
    fn faults(&self) -> Vec<String> {
        self.faults_of(&[0, 1, 2, 3, 4])
    }

    /// Returns what does not hold of some parties' transcripts alone, as text.
    fn faults_of(&self, parties: &[usize]) -> Vec<String> {
        let some: Vec<PathBuf> = { parties.iter() }
            .map(|i| self.transcripts[*i].clone())
            .collect();
        let verification = verify(&self.world.study, &some, &[]).unwrap();
        self.texts(&verification)
    }

    fn texts(&self, verification: &Verification) -> Vec<String> {
        let folder = format!("{}/", self._folder.path().display());
        let text = |fault: &Fault| fault.to_string().replace(&folder, "");
        verification.faults.iter().map(text).collect()
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
fn the_evidence_of_honest_parties_holds() {
    let gradients = STUDY
        .replace("r-admm", "r-dlm")
        .replace("\"objective\"", "\"gradient\"");
    let studies = [
        STUDY.to_owned(),
        gradients,
        STUDY.replace("sigma = 5", "epsilon = 20"),
        STUDY.replace("r-admm", "admm").replace("damping = 1", ""),
        STUDY.replace("damping = 1", "damping = 1\nstart = { normal = 0.1 }"),
        consensus("none"),
        consensus("mean").replace("sigma = 5", "epsilon = 20"),
        consensus("gram").replace("sigma = 5", "epsilon = 20"),
    ];
    let topologies = [
        "ring", "star", "path", "complete", "ring", "ring", "path", "random",
    ];
    for (study, topology) in studies.iter().zip(topologies) {
        let evidence = Evidence::of(&on(topology, study));
        let verification = evidence.verification();
        assert!(verification.holds(), "{:?}", verification.faults);
        for (i, checked) in verification.transcripts.iter().enumerate() {
            let party = evidence.world.hosts[i].party.as_ref().unwrap();
            assert_eq!(checked.signed, checked.messages);
            assert_eq!(checked.recycled + checked.answered, checked.of as usize);
            assert_eq!(checked.charges, checked.answered);
            assert_eq!(checked.total, Some(party.spent()));
            assert_eq!(checked.model.as_ref(), Some(party.node().model()));
        }
        assert_eq!(verification.models.len(), 5);
        assert!(verification.models.iter().all(|model| model.compared));
        assert!(verification.statements.iter().all(|stated| stated.compared));
    }
}

#[test]
fn the_evidence_of_parties_with_laplace_noise_holds() {
    let evidence = Evidence::of(&with_privacy("noise = \"laplace\"\nrate = 0.3"));
    let verification = evidence.verification();
    assert_eq!(verification.faults, []);
    let text = fs::read_to_string(&evidence.statements[0]).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let statement = &file["statement"];
    assert_eq!(statement["noise"], "laplace");
    assert_eq!(statement["rate"], 0.3);
    // A transcript that claims the cheaper price of gamma noise is found.
    evidence.edit(0, |lines| {
        charge(lines, 1)["event"]["noise"] = "gamma".into()
    });
    assert!(!evidence.faults().is_empty());
}

#[test]
fn an_unfinished_study_holds_up_to_its_last_iteration() {
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
    let verification = Evidence::by(world).verification();
    assert!(verification.holds(), "{:?}", verification.faults);
    for checked in &verification.transcripts {
        assert!(!checked.finished && checked.iterations > 0 && checked.iterations < 9);
        let made = checked.recycled + checked.answered;
        assert_eq!(made, checked.iterations as usize);
    }
}

#[test]
fn a_signed_recycled_value_that_does_not_follow_is_found() {
    let evidence = Evidence::ring();
    evidence.edit(0, |lines| evidence.nudge(message(lines, 0, 4), 0));
    let faults = evidence.faults();
    assert_eq!(
        faults[0],
        "alder/transcript.jsonl: alder, iteration 4: the recycled value does not follow from the messages before it"
    );
    // The neighbours have the value that was sent.
    let two = "alder, iteration 4: it sent two different values: one in the transcript of alder";
    assert_eq!(faults.iter().filter(|fault| fault.contains(two)).count(), 2);
    assert_eq!(faults.len(), 3, "{faults:?}");
}

#[test]
fn charges_other_than_the_studys_are_found() {
    let evidence = Evidence::ring();
    evidence.edit(0, |lines| {
        lines.retain(|line| line["charge"]["iteration"] != 3);
    });
    evidence.edit(1, |lines| {
        let event = &mut charge(lines, 5)["event"];
        event["amount"] = json!(50.0);
    });
    evidence.edit(2, |lines| {
        let units = charge(lines, 7)["units"].as_array_mut().unwrap();
        units[2] = (units[2].as_i64().unwrap() - 1).into();
    });
    evidence.edit(3, |lines| {
        let mut another = charge(lines, 3).clone();
        another["iteration"] = 4.into();
        lines.insert(3, json!({ "charge": another }));
    });
    // Less noise for more rows than there are.
    evidence.edit(4, |lines| lines[0]["rows"] = 1_000_000.into());
    let faults = evidence.faults();
    let assert_fault =
        |place: usize, what: &str| assert!(faults[place].contains(what), "{faults:?}");
    assert_fault(
        0,
        "alder, iteration 3: the rows were asked, and there is no answer on record",
    );
    assert_fault(
        1,
        "alder, iteration 3: the study charges here, and the transcript does not",
    );
    assert_fault(2, "birch, iteration 5: the charge is not the study's");
    // The charges are shown as transcripts write them.
    assert_fault(2, "\"amount\":50.0");
    assert!(!faults[2].contains("PrivacyEvent"), "{faults:?}");
    assert_fault(
        3,
        "cedar, iteration 7: the value does not follow from the answer on record",
    );
    assert_fault(
        4,
        "maple, iteration 4: there is a charge, and the study has none here",
    );
    assert_fault(
        5,
        "rowan: the transcript is of 1000000 rows, and the study declares ",
    );
    assert_fault(
        6,
        "rowan, iteration 1: the charge is not the study's for 1000000 rows",
    );
    assert_eq!(faults.len(), 6 + 5, "{faults:?}");
}

#[test]
fn the_messages_of_others_cannot_be_altered() {
    let evidence = Evidence::ring();
    // By alder, without birch's key: with the old signature, and with alder's own.
    evidence.edit(0, |lines| {
        let units = message(lines, 1, 9)["units"].as_array_mut().unwrap();
        units[0] = (units[0].as_i64().unwrap() + 1).into();
    });
    evidence.edit(2, |lines| evidence.nudge(message(lines, 1, 9), 2));
    let faults = evidence.faults();
    let wanted = "birch, iteration 9: the message has no valid signature";
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults.iter().all(|fault| fault.ends_with(wanted)));
}

#[test]
fn equivocation_is_found_and_both_transcripts_are_named() {
    let evidence = Evidence::ring();
    // Birch, between alder and cedar, has sent cedar another last value.
    evidence.edit(2, |lines| evidence.nudge(message(lines, 1, 9), 1));
    let two = [
        evidence.transcripts[0].clone(),
        evidence.transcripts[2].clone(),
    ];
    let verification = verify(&evidence.world.study, &two, &[]).unwrap();
    assert_eq!(verification.faults.len(), 1, "{:?}", verification.faults);
    let fault = verification.faults[0].to_string();
    assert!(fault.contains("birch, iteration 9: it sent two different values"));
    assert!(fault.contains(&two[0].display().to_string()), "{fault}");
    assert!(fault.contains(&two[1].display().to_string()), "{fault}");
    // Each alone looks right.
    for one in two {
        assert!(verify(&evidence.world.study, &[one], &[]).unwrap().holds());
    }
}

#[test]
fn missing_messages_are_found() {
    let evidence = Evidence::ring();
    evidence.edit(0, |lines| {
        lines.retain(|line| line["node"] != 1 || line["iteration"].as_u64() < Some(6));
    });
    evidence.edit(1, |lines| {
        lines.pop();
    });
    let faults = evidence.faults();
    assert!(faults[0].contains("birch, iteration 6: the message is missing, and 3 after it"));
    assert!(
        faults[1].contains("cedar, iteration 9: the message is missing"),
        "{faults:?}"
    );
    assert_eq!(faults.len(), 2, "{faults:?}");
}

#[test]
fn a_statement_that_contradicts_its_transcript_is_found() {
    let evidence = Evidence::ring();
    let stranger = SecretKey::generate().unwrap();
    evidence.restate(0, &evidence.key(0), |stated| stated["epsilon"] = json!(0.1));
    evidence.restate(1, &stranger, |_| {});
    evidence.restate(2, &evidence.key(3), |_| {});
    evidence.restate(3, &evidence.key(3), |stated| {
        stated["audited"] = json!("\u{1b}[2J")
    });
    let text = fs::read_to_string(&evidence.statements[4]).unwrap();
    let changed = text.replace("\"protects\": false", "\"protects\": true");
    assert_ne!(text, changed);
    fs::write(&evidence.statements[4], changed).unwrap();
    let faults: Vec<String> = evidence
        .verification()
        .faults
        .iter()
        .map(Fault::to_string)
        .collect();
    let assert_fault = |of: usize, what: &str| {
        let file = evidence.statements[of].display().to_string();
        let found = faults
            .iter()
            .any(|fault| fault.starts_with(&file) && fault.contains(what));
        assert!(found, "{what}: {faults:?}");
    };
    assert_fault(0, "alder: it states epsilon = 0.1, and ");
    assert_fault(1, "which is not a party of the study");
    assert_fault(2, "maple: it states party = \"cedar\", and ");
    assert_fault(3, "maple: it states \"audited\", which is not a field");
    assert_fault(4, "rowan: the statement has no valid signature of ed25519:");
}

#[test]
fn a_statement_is_bound_to_one_transcript_to_the_byte() {
    let evidence = Evidence::ring();
    // A change without a meaning: the name of another program.
    evidence.edit(0, |lines| lines[0]["program"]["name"] = "another".into());
    let faults = evidence.verification().faults;
    assert_eq!(faults.len(), 1);
    assert!(faults[0].what.starts_with("it states transcript_sha256 = "));
    // Without a transcript only the signature, the study and the party can be checked.
    let verification = verify(&evidence.world.study, &[], &evidence.statements).unwrap();
    assert!(verification.holds());
    assert!(
        verification
            .statements
            .iter()
            .all(|stated| !stated.compared)
    );
    SignedStatement::read(&evidence.statements[0]).unwrap();
}

#[test]
fn a_transcript_of_another_study_is_rejected() {
    let (one, other) = (Evidence::ring(), Evidence::ring());
    let verification = verify(
        &one.world.study,
        &other.transcripts[..1],
        &other.statements[..1],
    )
    .unwrap();
    assert_eq!(verification.faults.len(), 2, "{:?}", verification.faults);
    assert!(
        verification.faults[0]
            .what
            .contains("it is of another study, \"rehearsal\"")
    );
    assert!(
        verification.faults[1]
            .what
            .contains("not a party of the study")
    );
    assert!(verification.transcripts.is_empty());
}

#[test]
fn damaged_files_are_reported_without_a_panic() {
    let evidence = Evidence::ring();
    let whole = fs::read(&evidence.transcripts[0]).unwrap();
    let stated = fs::read(&evidence.statements[0]).unwrap();
    for k in 0..400_usize {
        for (path, bytes) in [
            (&evidence.transcripts[0], &whole),
            (&evidence.statements[0], &stated),
        ] {
            let mut bytes = bytes.clone();
            let at = k.wrapping_mul(2_654_435_761) % bytes.len();
            bytes[at] ^= 1 << (k % 7);
            fs::write(path, bytes).unwrap();
        }
        let verification = verify(
            &evidence.world.study,
            &evidence.transcripts[..1],
            &evidence.statements[..1],
        );
        assert!(!verification.unwrap().holds(), "change {k}");
    }
}

#[test]
fn a_rehearsal_is_named_and_proves_nothing_in_earnest() {
    let evidence = Evidence::ring();
    let verification = evidence.verification();
    assert!(verification.holds() && verification.transcripts.iter().all(|one| one.rehearsal));
    // Its header claims that it is in earnest.
    evidence.edit(0, |lines| lines[0]["rehearsal"] = false.into());
    let faults = evidence.faults_of(&[0]);
    assert_eq!(faults.len(), 30, "{faults:?}");
    for fault in &faults {
        let why = "the message is signed for a rehearsal, whose noise everybody knows, and means nothing in a run in earnest";
        assert!(fault.ends_with(why), "{fault}");
    }
    let faults = evidence.faults_of(&[1, 0]);
    let apart = "alder/transcript.jsonl: alder: its transcript is of a run in earnest, and birch/transcript.jsonl is of a rehearsal: they are not of one run";
    assert!(faults.iter().any(|fault| fault == apart), "{faults:?}");
    // In a format that knows no rehearsals it proves nothing either.
    evidence.edit(0, |lines| lines[0]["radmm transcript"] = 1.into());
    assert_eq!(evidence.faults_of(&[0]).len(), 30);
    // A rehearsal protects nobody.
    evidence.edit(1, |lines| lines[0]["protects"] = true.into());
    let faults = evidence.faults_of(&[1]);
    assert!(
        faults[0].ends_with("protects: a rehearsal protects nobody"),
        "{faults:?}"
    );
}

#[test]
fn a_run_in_earnest_proves_nothing_in_a_rehearsal() {
    let mut world = World::new("ring", 1);
    world.secret_from_the_start();
    world.run(0);
    let evidence = Evidence::by(world);
    assert!(evidence.verification().holds());
    assert!(
        evidence
            .verification()
            .transcripts
            .iter()
            .all(|one| !one.rehearsal && one.protects)
    );
    evidence.edit(0, |lines| {
        lines[0]["rehearsal"] = true.into();
        lines[0]["protects"] = false.into();
    });
    let faults = evidence.faults_of(&[0]);
    let why = "the message is signed for a run in earnest, and means nothing in a rehearsal";
    assert!(faults.len() == 30 && faults[0].ends_with(why), "{faults:?}");
}

#[test]
fn an_answer_that_cannot_be_honest_is_found() {
    let evidence = Evidence::ring();
    let sixteen = |line: &mut Value| {
        for unit in line["units"].as_array_mut().unwrap() {
            *unit = (16_i64 << 40).into();
        }
    };
    evidence.edit(0, |lines| {
        sixteen(charge(lines, 3));
        let line = message(lines, 0, 3);
        sixteen(line);
        evidence.nudge(line, 0);
        let units = charge(lines, 3)["units"].as_array_mut().unwrap();
        units[0] = ((16_i64 << 40) + 1).into();
    });
    let faults = evidence.faults_of(&[0]);
    let what = "alder/transcript.jsonl: alder, iteration 3: the answer on record cannot be an honest one: it lies ";
    assert!(faults[0].starts_with(what), "{faults:?}");
    // It is recorded as alder's answer, and only what follows from it does not follow.
    assert_eq!(faults.len(), 2, "{faults:?}");
    // Without alder's transcript, its neighbours' show only its first answer to be within the limit.
    let faults = evidence.faults_of(&[1, 4]);
    assert!(faults.is_empty(), "{faults:?}");
    for i in [1, 4] {
        evidence.edit(i, |lines| {
            let line = message(lines, 0, 1);
            sixteen(line);
            evidence.nudge(line, 0);
        });
    }
    let faults = evidence.faults_of(&[1, 4]);
    let what = "alder, iteration 1: the value cannot be an honest party's: it lies ";
    assert!(
        faults.iter().any(|fault| fault.contains(what)),
        "{faults:?}"
    );
}
