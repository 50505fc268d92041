//! Forged evidence that looks right at first sight.

use radmm_study::SiteFile;
use sha2::{Digest, Sha256};

use super::*;

/// Truncates alder's transcript, and restates the totals of the rest.
fn cut_off(evidence: &Evidence, end: u32) {
    let within = |t: &Value| t.as_u64().is_none_or(|t| t <= u64::from(end));
    evidence.edit(0, |lines| {
        lines[0]["iterations"] = end.into();
        lines[0]["finished"] = false.into();
        lines.retain(|line| within(&line["iteration"]) && within(&line["charge"]["iteration"]));
    });
    let verification = verify(&evidence.world.study, &evidence.transcripts[..1], &[]).unwrap();
    assert!(verification.holds(), "{:?}", verification.faults);
    let CheckedTranscript {
        charges,
        recycled,
        total,
        ..
    } = verification.transcripts[0].clone();
    let hash = Sha256::digest(fs::read(&evidence.transcripts[0]).unwrap());
    evidence.restate(0, &evidence.key(0), |stated| {
        // A lower total would not do: what is stated of an unfinished run is the planned one.
        assert!(total.unwrap().epsilon < stated["epsilon"].as_f64().unwrap());
        stated["scope"] = crate::evidence::statement::PLANNED_SCOPE.into();
        stated["iterations"] = end.into();
        stated["finished"] = false.into();
        stated["data_steps"] = charges.into();
        stated["recycled_steps"] = recycled.into();
        stated["transcript_sha256"] = hex::encode(&hash).into();
    });
}

#[test]
fn a_truncated_transcript_is_found_by_the_messages_of_others() {
    let evidence = Evidence::ring();
    cut_off(&evidence, 4);
    let study = &evidence.world.study;
    // Alone it holds, and so it does beside a party that is not a neighbour.
    let far = [
        evidence.transcripts[0].clone(),
        evidence.transcripts[2].clone(),
    ];
    let verification = verify(study, &far, &evidence.statements[..1]).unwrap();
    assert!(verification.holds() && verification.statements[0].compared);
    let near = evidence.transcripts[1].display();
    for order in [[0, 1], [1, 0]] {
        let two = order.map(|i: usize| evidence.transcripts[i].clone());
        let faults = verify(study, &two, &[]).unwrap().faults;
        assert_eq!(faults.len(), 1, "{faults:?}");
        let expected = format!(
            "{}: alder, iteration 5: its own transcript ends at iteration 4, and the transcript of birch ({near}) has this message, with its signature, and 4 after it",
            evidence.transcripts[0].display()
        );
        assert_eq!(faults[0].to_string(), expected);
    }
    // The statement alone shows it too.
    let verification = verify(
        study,
        &evidence.transcripts[1..2],
        &evidence.statements[..1],
    )
    .unwrap();
    let expected = format!(
        "it states iterations = 4, and of iteration 5 the transcript of birch ({near}) has this message"
    );
    assert_eq!(verification.faults.len(), 1, "{:?}", verification.faults);
    assert!(verification.faults[0].what.starts_with(&expected));
}

#[test]
fn no_party_is_blamed_for_messages_that_others_forged() {
    let evidence = Evidence::ring();
    cut_off(&evidence, 4);
    // Birch has alder's last values, but not alder's signatures.
    evidence.edit(1, |lines| {
        for t in 5..10 {
            evidence.nudge(message(lines, 0, t), 1);
        }
    });
    let two = &evidence.transcripts[..2];
    let faults = verify(&evidence.world.study, two, &[]).unwrap().faults;
    let ends = faults.iter().filter(|fault| fault.what.contains("ends at"));
    assert_eq!(ends.count(), 0, "{faults:?}");
    assert!(faults.iter().all(|fault| fault.file == two[1]));
}

/// Runs one study on rows with these limits, in TOML.
fn limited(study: &str, limits: &str) -> Evidence {
    let site = format!("key = \"k\"\nstate = \"s\"\n[data]\nshare = true\n[limit]\n{limits}");
    let (site, _) = SiteFile::parse(&site, "site.toml").unwrap();
    let mut world = World::of(&on("ring", study), 1);
    world.run(0);
    Evidence::under(world, site.limit.as_ref())
}

fn pure() -> String {
    let study = STUDY.replace("\"gaussian\"", "\"gamma\"");
    study.replace("sigma = 5", "rate = 0.5")
}

fn gradients() -> String {
    let study = STUDY.replace("r-admm", "r-dlm");
    study.replace("\"objective\"", "\"gradient\"")
}

#[test]
fn the_statements_of_honest_sites_hold() {
    for limits in [
        "epsilon = 0.1\ndelta = 1e-4\npure = 1",
        "epsilon = 20\ndelta = 1e-4",
        "epsilon = 500\ndelta = 1e-9\npure = 800",
        "epsilon = 3000\ndelta = 0.1",
        "epsilon = 5",
    ] {
        for study in [STUDY.to_owned(), pure()] {
            let verification = limited(&study, limits).verification();
            assert!(verification.holds(), "{limits}: {:?}", verification.faults);
            assert!(verification.statements.iter().all(|stated| stated.site));
        }
    }
    for limits in [
        "epsilon = 20\ndelta = 1e-4\naccounting = \"gaussian\"",
        "epsilon = 0.1\ndelta = 1e-4\npure = 1\naccounting = \"gaussian\"",
    ] {
        for study in [gradients(), STUDY.to_owned()] {
            let verification = limited(&study, limits).verification();
            assert!(verification.holds(), "{limits}: {:?}", verification.faults);
        }
    }
    let verification = Evidence::ring().verification();
    assert!(verification.statements.iter().all(|stated| !stated.site));
}

#[test]
fn a_balance_below_the_study_is_found() {
    let evidence = limited(&pure(), "epsilon = 500\ndelta = 1e-4\npure = 800");
    let found = |change: fn(&mut Value), expected: &str| {
        let before = fs::read(&evidence.statements[0]).unwrap();
        evidence.restate(0, &evidence.key(0), |stated| change(&mut stated["site"]));
        let verification = verify(
            &evidence.world.study,
            &evidence.transcripts[..1],
            &evidence.statements[..1],
        );
        fs::write(&evidence.statements[0], before).unwrap();
        let faults = verification.unwrap().faults;
        assert_eq!(faults.len(), 1, "{expected}: {faults:?}");
        assert!(
            faults[0].to_string().contains(expected),
            "{expected}: {faults:?}"
        );
    };
    let totals = "alder: it states site.totals with epsilon = ";
    // The pure total is this study's to the bit, the other one is above the tight bound.
    found(|site| site["totals"][0]["epsilon"] = 0.01.into(), totals);
    found(|site| site["totals"][1]["epsilon"] = 0.01.into(), totals);
    found(
        |site| {
            let epsilon = site["totals"][0]["epsilon"].as_f64().unwrap();
            site["totals"][0]["epsilon"] = (epsilon * 0.999_999).into();
        },
        totals,
    );
    found(
        |site| site["charges"] = 4.into(),
        "alder: it states site.charges = 4, and this study alone has 5",
    );
    found(
        |site| site["charges"] = 6.into(),
        "it states site.charges = 6 of one study, and this one has 5",
    );
    found(|site| site["studies"] = 0.into(), "site.studies = 0");
    found(|site| site["totals"] = json!([]), "site: totals: must be");
    found(
        |site| site["audited"] = true.into(),
        "unknown field \"audited\"",
    );
    found(|site| *site = Value::Null, "site: must be an object");
    found(
        |site| site["totals"][0]["relation"] = "nobody".into(),
        "site: totals: relation: must be \"one row",
    );
    found(
        |site| site["totals"][1]["delta"] = 2.into(),
        "it states site.totals at delta = 2",
    );
    found(
        |site| site["totals"][1]["epsilon"] = "0.1".into(),
        "site: totals: epsilon: must be a number",
    );
}

#[test]
fn a_mu_below_the_studys_is_found() {
    let evidence = limited(
        &gradients(),
        "epsilon = 20\ndelta = 1e-4\naccounting = \"gaussian\"",
    );
    let mu = |stated: &Value| stated["site"]["totals"][0]["mu"].as_f64().unwrap();
    evidence.restate(1, &evidence.key(1), |stated| {
        // The only study: its μ, and that of all studies.
        assert_eq!(stated["mu"], stated["site"]["totals"][0]["mu"]);
        stated["site"]["totals"][0]["mu"] = (0.999 * mu(stated)).into();
    });
    evidence.restate(2, &evidence.key(2), |stated| {
        stated["site"]["totals"][0]["mu"] = "little".into();
    });
    // More was spent by other studies.
    evidence.restate(3, &evidence.key(3), |stated| {
        stated["site"]["totals"][0]["mu"] = (2.0 * mu(stated)).into();
    });
    let faults = evidence.verification().faults;
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(
        faults[0]
            .what
            .starts_with("it states site.totals with mu =")
    );
    assert!(faults[1].what.contains("mu: must be a number"));
}

#[test]
fn totals_at_other_deltas_are_compared_with_the_charges() {
    let evidence = Evidence::of(&gradients().replace("TOPOLOGY", "ring"));
    assert!(evidence.verification().holds());
    evidence.restate(0, &evidence.key(0), |stated| {
        let totals = stated["epsilon_at"].as_array().unwrap().clone();
        assert_eq!(totals.len(), 5);
        assert_eq!(totals[0]["epsilon"], stated["epsilon"]);
        assert_eq!(totals[0]["delta"], stated["delta"]);
        stated["epsilon_at"][3]["epsilon"] = totals[0]["epsilon"].clone();
    });
    evidence.restate(1, &evidence.key(1), |stated| {
        stated["mu"] = (0.5 * stated["mu"].as_f64().unwrap()).into();
    });
    // Without one of the two it is not a statement of an earlier program either.
    evidence.restate(2, &evidence.key(2), |stated| {
        stated.as_object_mut().unwrap().shift_remove("mu");
    });
    let faults = evidence.verification().faults;
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(faults[0].what.starts_with("it states epsilon_at = "));
    assert!(faults[1].what.starts_with("it states mu = "));
    assert!(faults[2].what.starts_with("it states mu = null"));
}

/// Rewrites alder's evidence as an earlier program wrote it, which knew only the signs of slopes and stated one total.
fn by_an_earlier_program(evidence: &Evidence, epsilon: impl Fn(f64) -> f64) {
    evidence.edit(0, |lines| {
        for line in lines.iter_mut().filter(|line| line["charge"].is_object()) {
            let event = line["charge"]["event"].as_object_mut().unwrap();
            assert_eq!(event.shift_remove("slope"), Some("logistic".into()));
            event.insert("one_signed".to_owned(), true.into());
        }
    });
    let hash = Sha256::digest(fs::read(&evidence.transcripts[0]).unwrap());
    evidence.restate(0, &evidence.key(0), |stated| {
        stated["transcript_sha256"] = hex::encode(&hash).into();
        stated["epsilon"] = epsilon(stated["epsilon"].as_f64().unwrap()).into();
        let fields = stated.as_object_mut().unwrap();
        fields.shift_remove("mu");
        fields.shift_remove("epsilon_at");
    });
}

#[test]
fn the_evidence_of_earlier_programs_holds() {
    for (factor, holds) in [(1.0, true), (1.1, true), (0.999, false)] {
        let evidence = Evidence::ring();
        by_an_earlier_program(&evidence, |epsilon| factor * epsilon);
        let verification = evidence.verification();
        assert_eq!(verification.holds(), holds, "{:?}", verification.faults);
        assert!(verification.transcripts.iter().all(|one| one.charges == 5));
    }
    // Under gamma noise an earlier program charged slope and curvature apart, and stated their sum.
    let evidence = Evidence::of(&pure().replace("TOPOLOGY", "ring"));
    let price = |stated: f64| stated;
    by_an_earlier_program(&evidence, price);
    let faults = evidence.verification().faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].what.starts_with("it states epsilon = "));
}

#[test]
fn a_finite_pure_total_of_gaussian_noise_is_found() {
    let evidence = limited(STUDY, "epsilon = 800");
    evidence.restate(2, &evidence.key(2), |stated| {
        assert!(stated["site"]["totals"][0]["epsilon"].is_null());
        stated["site"]["totals"][0]["epsilon"] = 700.into();
    });
    let faults = evidence.verification().faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].what.ends_with("this study alone comes to inf"));
}

#[test]
fn duplicate_keys_are_rejected_everywhere() {
    let evidence = limited(STUDY, "epsilon = 500\ndelta = 1e-4");
    let assert_first_fault = |what: &str| {
        let faults = evidence.verification().faults;
        assert!(!faults.is_empty(), "{what}");
        assert!(faults[0].to_string().contains(what), "{faults:?}");
    };
    // The signature is over the last value of a key, so that it would be valid with any value before it.
    let stated = fs::read_to_string(&evidence.statements[0]).unwrap();
    let at = stated.find("\"epsilon\"").unwrap();
    let at_site = at + 1 + stated[at + 1..].find("\"epsilon\"").unwrap();
    for at in [at, at_site] {
        let forged = format!("{}\"epsilon\": 0.01, {}", &stated[..at], &stated[at..]);
        fs::write(&evidence.statements[0], forged).unwrap();
        assert_first_fault("it is not a signed privacy statement: duplicate key \"epsilon\"");
    }
    let forged = stated.replacen('{', "{\"epsilon\": 0.01, ", 1);
    fs::write(&evidence.statements[0], forged).unwrap();
    assert_first_fault("unknown field `epsilon`");
    fs::write(&evidence.statements[0], stated).unwrap();

    let whole = fs::read_to_string(&evidence.transcripts[0]).unwrap();
    for (key, line) in [("rows", 1), ("amount", 2), ("signature", 7)] {
        let key = format!("\"{key}\":");
        let forged = whole.replacen(&key, &format!("{key}1,{key}"), 1);
        fs::write(&evidence.transcripts[0], forged).unwrap();
        assert_first_fault(&format!(
            "line {line}: duplicate key {}",
            key.trim_end_matches(':')
        ));
    }
}

#[test]
fn parties_without_a_transcript_are_named() {
    let evidence = Evidence::ring();
    assert!(evidence.verification().missing.is_empty());
    let study = &evidence.world.study;
    let some = [
        evidence.transcripts[3].clone(),
        evidence.transcripts[0].clone(),
    ];
    let verification = verify(study, &some, &[]).unwrap();
    assert_eq!(verification.missing, ["birch", "cedar", "rowan"]);
    // An unreadable transcript counts as missing.
    fs::write(&some[0], "{}\n").unwrap();
    let verification = verify(study, &some, &[]).unwrap();
    assert_eq!(verification.missing, ["birch", "cedar", "maple", "rowan"]);
}

#[test]
fn a_transcript_is_not_compared_with_itself() {
    let evidence = Evidence::ring();
    let study = &evidence.world.study;
    let copy = evidence.transcripts[0].with_extension("copy");
    fs::copy(&evidence.transcripts[0], &copy).unwrap();
    for second in [&evidence.transcripts[0], &copy] {
        let two = [evidence.transcripts[0].clone(), second.clone()];
        let error = verify(study, &two, &[]).unwrap_err().to_string();
        assert!(error.contains("the same transcript as"), "{error}");
        assert!(error.starts_with(&second.display().to_string()), "{error}");
    }
    // Two different transcripts of one party are a fault.
    cut_off(&evidence, 4);
    let two = [evidence.transcripts[0].clone(), copy];
    let faults = verify(study, &two, &[]).unwrap().faults;
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].what.starts_with("its transcript differs from"));
    assert!(faults[1].what.starts_with("its own transcript ends at"));
}

/// Returns the evidence of a study in which a party lies at an iteration, and the parties that halted for it.
fn lied(topology: &str, metric: &str, liar: u32, at: u32) -> (Evidence, Vec<u32>) {
    let mut world = World::with_liar(&on(topology, &consensus(metric)), 1, Some((liar, at)));
    let halted = world.run_until_halted();
    (Evidence::by(world), halted.into_keys().collect())
}

const DOES_NOT_FOLLOW: &str = "the recycled value does not follow from the messages before it";

#[test]
fn a_party_that_adds_something_to_a_sum_is_named() {
    // The root adds up in iteration 3 on a ring, where it is birch, and in iteration 2 on a star, where it is alder. Nobody has all
    // that it adds up, so that the study goes on to its end.
    for (topology, liar, name, first, period) in
        [("ring", 1, "birch", 3, 5), ("star", 0, "alder", 2, 3)]
    {
        for metric in ["none", "mean", "gram"] {
            for at in [first, first + period] {
                let (evidence, halted) = lied(topology, metric, liar, at);
                assert!(halted.is_empty());
                let shown = format!("{name}, iteration {at}: {DOES_NOT_FOLLOW}");
                let own = format!("{name}/transcript.jsonl: {shown}");
                assert_eq!(evidence.faults(), [own]);
                // All parties agree on the wrong model.
                let models = evidence.verification().models;
                let uncompared: Vec<&str> = { models.iter() }
                    .filter(|model| !model.compared)
                    .map(|model| model.party.as_str())
                    .collect();
                assert_eq!(uncompared, [name]);
                // Without its own transcript those of its neighbours show it.
                let others: Vec<usize> = (0..5).filter(|i| *i != liar as usize).collect();
                let faults = evidence.faults_of(&others);
                assert_eq!(faults.len(), 1, "{faults:?}");
                assert!(faults[0].contains(&shown), "{faults:?}");
                assert!(faults[0].contains("unless a neighbour sent it another"));
            }
        }
    }
}

#[test]
fn a_party_that_passes_down_a_wrong_total_is_named_by_those_that_stopped() {
    // On a path birch takes the total over from cedar in iteration 4. Cedar sees that it is another one, and stops.
    for metric in ["none", "mean", "gram"] {
        let (evidence, halted) = lied("path", metric, 1, 4);
        assert_eq!(halted, [2]);
        let shown = format!("birch, iteration 4: {DOES_NOT_FOLLOW}");
        let own = format!("birch/transcript.jsonl: {shown}");
        assert_eq!(evidence.faults(), [own]);
        // Cedar's transcript has the value that it rejected, with birch's signature.
        let faults = evidence.faults_of(&[2]);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with("cedar/transcript.jsonl: ") && faults[0].contains(&shown));
        // A transcript of birch with the right value is a second value.
        evidence.edit(1, |lines| evidence.nudge(message(lines, 1, 4), 1));
        let faults = evidence.faults_of(&[1, 2]);
        let two = "birch, iteration 4: it sent two different values";
        assert!(faults.iter().any(|fault| fault.contains(two)), "{faults:?}");
        assert!(
            faults.iter().all(|fault| fault.contains("birch")),
            "{faults:?}"
        );
    }
}

#[test]
fn a_value_that_must_be_kept_is_no_others_fault() {
    // Birch is idle in iteration 3 on a path: only its own values decide.
    let (evidence, halted) = lied("path", "none", 1, 3);
    assert_eq!(halted, [0, 2]);
    for witness in [0, 2] {
        let faults = evidence.faults_of(&[witness]);
        assert_eq!(faults.len(), 1, "{faults:?}");
        let certain = format!("birch, iteration 3: {DOES_NOT_FOLLOW}");
        assert!(faults[0].ends_with(&certain), "{faults:?}");
    }
}

#[test]
fn a_party_that_sends_different_totals_is_named() {
    for metric in ["none", "gram"] {
        let mut world = World::of(&on("ring", &consensus(metric)), 1);
        world.equivocator = Some((1, 2, 3));
        let halted = world.run_until_halted();
        assert!(halted.contains_key(&3) && halted.contains_key(&4));
        let evidence = Evidence::by(world);
        let faults = evidence.faults();
        let two = "birch, iteration 3: it sent two different values";
        assert!(faults[0].contains(two), "{faults:?}");
        assert!(
            faults
                .iter()
                .all(|fault| fault.contains(": birch, iteration"))
        );
        // Its children's transcripts suffice.
        let faults = evidence.faults_of(&[0, 2]);
        assert!(faults[0].contains(two), "{faults:?}");
    }
}

#[test]
fn a_model_that_does_not_follow_is_found() {
    for study in [STUDY.to_owned(), consensus("none"), consensus("gram")] {
        let evidence = Evidence::of(&on("ring", &study));
        let study = &evidence.world.study;
        let checked = |parties: usize, text: &str| {
            fs::write(&evidence.models[1], text).unwrap();
            let transcripts = &evidence.transcripts[..parties];
            let mut verification = verify(study, transcripts, &[]).unwrap();
            verification
                .check_model(study, &evidence.models[1])
                .unwrap();
            verification
        };
        let whole = fs::read_to_string(&evidence.models[1]).unwrap();
        assert!(checked(5, &whole).holds());
        let change = |change: &dyn Fn(&mut Value)| {
            let mut model: Value = serde_json::from_str(&whole).unwrap();
            change(&mut model);
            model.to_string()
        };
        let other_weights = change(&|model| {
            let weight = model["weights"][2].as_f64().unwrap();
            model["weights"][2] = weight.next_up().into();
        });
        let last = study.algorithm.iterations;
        let expected = format!(
            "birch/model.json: birch, iteration {last}: the weights are not those that follow from the party's transcript"
        );
        assert_eq!(evidence.texts(&checked(5, &other_weights)), [expected]);
        // Without birch's transcript there is nothing to compare with.
        let verification = checked(1, &other_weights);
        assert!(verification.holds() && !verification.models[0].compared);
        for other_study in [
            change(&|model| model["study_sha256"] = "00".repeat(32).into()),
            change(&|model| model["party"] = "willow".into()),
            change(&|model| model["problem"]["loss"] = "smooth-hinge".into()),
        ] {
            let faults = evidence.texts(&checked(5, &other_study));
            assert_eq!(faults.len(), 1, "{faults:?}");
        }
        let faults = evidence.texts(&checked(5, "{}"));
        assert_eq!(faults.len(), 1, "{faults:?}");
    }
}
