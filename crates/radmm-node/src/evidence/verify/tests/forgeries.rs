//! What a party could show that would look right to who does not look twice.

use radmm_study::SiteFile;
use sha2::{Digest, Sha256};

use super::*;

/// Cuts alder's transcript off, and states what the rest comes to.
fn cut_off(shown: &Shown, end: u32) {
    let within = |t: &Value| t.as_u64().is_none_or(|t| t <= u64::from(end));
    shown.edit(0, |lines| {
        lines[0]["iterations"] = end.into();
        lines[0]["finished"] = false.into();
        lines.retain(|line| within(&line["iteration"]) && within(&line["charge"]["iteration"]));
    });
    let verdict = verify(&shown.world.study, &shown.transcripts[..1], &[]).unwrap();
    assert!(verdict.holds(), "{:?}", verdict.faults);
    let Checked {
        charges,
        recycled,
        total,
        ..
    } = verdict.transcripts[0].clone();
    let hash = Sha256::digest(fs::read(&shown.transcripts[0]).unwrap());
    shown.restate(0, &shown.key(0), |stated| {
        assert!(total.unwrap().epsilon < stated["epsilon"].as_f64().unwrap());
        stated["epsilon"] = total.unwrap().epsilon.into();
        stated["iterations"] = end.into();
        stated["finished"] = false.into();
        stated["data_steps"] = charges.into();
        stated["recycled_steps"] = recycled.into();
        stated["transcript_sha256"] = hex::digits(&hash).into();
    });
}

#[test]
fn a_transcript_that_ends_before_what_others_heard_is_found() {
    let shown = Shown::ring();
    cut_off(&shown, 4);
    let study = &shown.world.study;
    // Alone it looks right, and so it does beside a party that is no neighbour.
    let far = [shown.transcripts[0].clone(), shown.transcripts[2].clone()];
    let verdict = verify(study, &far, &shown.statements[..1]).unwrap();
    assert!(verdict.holds() && verdict.statements[0].compared);
    let near = shown.transcripts[1].display();
    for order in [[0, 1], [1, 0]] {
        let two = order.map(|i: usize| shown.transcripts[i].clone());
        let faults = verify(study, &two, &[]).unwrap().faults;
        assert_eq!(faults.len(), 1, "{faults:?}");
        let told = format!(
            "{}: alder, iteration 5: its own transcript ends at iteration 4, and the transcript of birch ({near}) has this message, with its signature, and 4 after it",
            shown.transcripts[0].display()
        );
        assert_eq!(faults[0].to_string(), told);
    }
    // The statement alone is enough to see it.
    let verdict = verify(study, &shown.transcripts[1..2], &shown.statements[..1]).unwrap();
    let told = format!(
        "it states iterations = 4, and of iteration 5 the transcript of birch ({near}) has this message"
    );
    assert_eq!(verdict.faults.len(), 1, "{:?}", verdict.faults);
    assert!(verdict.faults[0].what.starts_with(&told));
}

#[test]
fn nobody_is_blamed_for_messages_that_others_made_up() {
    let shown = Shown::ring();
    cut_off(&shown, 4);
    // Birch has what alder said in the end, but not alder's signatures.
    shown.edit(1, |lines| {
        for t in 5..10 {
            shown.nudge(message(lines, 0, t), 1);
        }
    });
    let two = &shown.transcripts[..2];
    let faults = verify(&shown.world.study, two, &[]).unwrap().faults;
    let ends = faults.iter().filter(|fault| fault.what.contains("ends at"));
    assert_eq!(ends.count(), 0, "{faults:?}");
    assert!(faults.iter().all(|fault| fault.file == two[1]));
}

/// One study on rows whose limits are these, in TOML.
fn limited(study: &str, limits: &str) -> Shown {
    let site = format!("key = \"k\"\nstate = \"s\"\n[data]\nshare = true\n[limit]\n{limits}");
    let (site, _) = SiteFile::parse(&site, "site.toml").unwrap();
    let mut world = World::of(&study.replace("TOPOLOGY", "ring"), 1);
    world.run(0);
    Shown::under(world, site.limit.as_ref())
}

fn pure() -> String {
    let study = STUDY.replace("\"gaussian\"", "\"gamma\"");
    study.replace("sigma = 5", "rate = 0.5")
}

#[test]
fn what_honest_sites_state_holds() {
    for limits in [
        "epsilon = 0.1\ndelta = 1e-4\npure = 1",
        "epsilon = 20\ndelta = 1e-4",
        "epsilon = 500\ndelta = 1e-9\npure = 800",
        "epsilon = 3000\ndelta = 0.1",
        "epsilon = 5",
    ] {
        for study in [STUDY.to_owned(), pure()] {
            let verdict = limited(&study, limits).verdict();
            assert!(verdict.holds(), "{limits}: {:?}", verdict.faults);
            assert!(verdict.statements.iter().all(|stated| stated.site));
        }
    }
    let verdict = Shown::ring().verdict();
    assert!(verdict.statements.iter().all(|stated| !stated.site));
}

#[test]
fn a_site_that_has_spent_less_than_the_study_is_found() {
    let shown = limited(&pure(), "epsilon = 500\ndelta = 1e-4\npure = 800");
    let found = |change: fn(&mut Value), told: &str| {
        let before = fs::read(&shown.statements[0]).unwrap();
        shown.restate(0, &shown.key(0), |stated| change(&mut stated["site"]));
        let verdict = verify(
            &shown.world.study,
            &shown.transcripts[..1],
            &shown.statements[..1],
        );
        fs::write(&shown.statements[0], before).unwrap();
        let faults = verdict.unwrap().faults;
        assert_eq!(faults.len(), 1, "{told}: {faults:?}");
        assert!(faults[0].to_string().contains(told), "{told}: {faults:?}");
    };
    let totals = "alder: it states site.totals with epsilon = ";
    // Its pure total is this study's to the bit, the other one above the best bound.
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
        "\"audited\" means nothing",
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
fn a_finite_pure_total_of_gaussian_noise_is_found() {
    let shown = limited(STUDY, "epsilon = 800");
    shown.restate(2, &shown.key(2), |stated| {
        assert!(stated["site"]["totals"][0]["epsilon"].is_null());
        stated["site"]["totals"][0]["epsilon"] = 700.into();
    });
    let faults = shown.verdict().faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].what.ends_with("this study alone comes to inf"));
}

#[test]
fn a_key_that_is_there_twice_is_refused_wherever_it_is() {
    let shown = limited(STUDY, "epsilon = 500\ndelta = 1e-4");
    let told = |what: &str| {
        let faults = shown.verdict().faults;
        assert!(!faults.is_empty(), "{what}");
        assert!(faults[0].to_string().contains(what), "{faults:?}");
    };
    // The signature is over what is read, so that it holds whatever goes before it.
    let stated = fs::read_to_string(&shown.statements[0]).unwrap();
    let at = stated.find("\"epsilon\"").unwrap();
    let at_site = at + 1 + stated[at + 1..].find("\"epsilon\"").unwrap();
    for at in [at, at_site] {
        let forged = format!("{}\"epsilon\": 0.01, {}", &stated[..at], &stated[at..]);
        fs::write(&shown.statements[0], forged).unwrap();
        told("it is not a signed privacy statement: \"epsilon\" is there twice");
    }
    let forged = stated.replacen('{', "{\"epsilon\": 0.01, ", 1);
    fs::write(&shown.statements[0], forged).unwrap();
    told("\"epsilon\" is beside what is signed");
    fs::write(&shown.statements[0], stated).unwrap();

    let whole = fs::read_to_string(&shown.transcripts[0]).unwrap();
    for (key, line) in [("rows", 1), ("amount", 2), ("signature", 7)] {
        let key = format!("\"{key}\":");
        let forged = whole.replacen(&key, &format!("{key}1,{key}"), 1);
        fs::write(&shown.transcripts[0], forged).unwrap();
        told(&format!(
            "line {line}: {} is there twice",
            key.trim_end_matches(':')
        ));
    }
}

#[test]
fn parties_without_a_transcript_are_named() {
    let shown = Shown::ring();
    assert!(shown.verdict().missing.is_empty());
    let study = &shown.world.study;
    let some = [shown.transcripts[3].clone(), shown.transcripts[0].clone()];
    let verdict = verify(study, &some, &[]).unwrap();
    assert_eq!(verdict.missing, ["birch", "cedar", "rowan"]);
    // One that cannot be read is as good as none.
    fs::write(&some[0], "{}\n").unwrap();
    let verdict = verify(study, &some, &[]).unwrap();
    assert_eq!(verdict.missing, ["birch", "cedar", "maple", "rowan"]);
}

#[test]
fn a_transcript_is_compared_with_others_than_itself() {
    let shown = Shown::ring();
    let study = &shown.world.study;
    let copy = shown.transcripts[0].with_extension("copy");
    fs::copy(&shown.transcripts[0], &copy).unwrap();
    for second in [&shown.transcripts[0], &copy] {
        let two = [shown.transcripts[0].clone(), second.clone()];
        let error = verify(study, &two, &[]).unwrap_err().to_string();
        assert!(error.contains("the same transcript as"), "{error}");
        assert!(error.starts_with(&second.display().to_string()), "{error}");
    }
    // Two of one party are not the same, and one of them is not what happened.
    cut_off(&shown, 4);
    let two = [shown.transcripts[0].clone(), copy];
    let faults = verify(study, &two, &[]).unwrap().faults;
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].what.starts_with("its transcript is another one"));
    assert!(faults[1].what.starts_with("its own transcript ends at"));
}
