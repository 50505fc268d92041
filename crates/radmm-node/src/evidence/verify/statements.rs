//! Checks a statement against the transcript that it is about.

use std::path::Path;

use radmm::graph::NodeId;
use radmm::privacy::PrivacyEvent;
use radmm_study::Study;
use radmm_study::foreign_text::quoted;
use serde_json::Value;

use super::account;
use super::messages::SentMessages;
use super::replay::ReplayedTranscript;
use super::{CheckedStatement, Fault, VerifyError};
use crate::evidence::statement::{PartyStatement, SignedStatement, StatementError};

/// The fields that do not follow from a transcript: the version of the program, and the balance of all studies.
const NOT_IN_TRANSCRIPT: [&str; 2] = ["program", "site"];

/// The fields that statements of earlier programs do not have.
const ADDED: [&str; 2] = ["mu", "epsilon_at"];

/// Checks a statement; returns it if its signature is valid, and everything that does not hold.
pub(super) fn check(
    study: &Study,
    path: &Path,
    replayed: &[ReplayedTranscript],
    sent: &SentMessages,
) -> Result<(Option<CheckedStatement>, Vec<Fault>), VerifyError> {
    let mut faults = Vec::new();
    let mut fault = |party: Option<&str>, what: String| {
        faults.push(Fault {
            file: path.to_owned(),
            party: party.map(str::to_owned),
            iteration: None,
            what,
        });
    };
    let stated = match SignedStatement::read(path) {
        Ok(stated) => stated,
        Err(error @ StatementError::Open { .. }) => return Err(VerifyError::Statement(error)),
        Err(StatementError::Form { what, .. }) => {
            fault(
                None,
                format!("it is not a signed privacy statement: {what}"),
            );
            return Ok((None, faults));
        }
        Err(StatementError::Signature { signed_by, .. }) => {
            let party = study.parties.iter().find(|party| party.key == signed_by);
            let party = party.map(|party| party.name.as_str());
            fault(
                party,
                format!("the statement has no valid signature of {signed_by}"),
            );
            return Ok((None, faults));
        }
    };
    let signer = study
        .parties
        .iter()
        .position(|party| party.key == stated.signed_by);
    let Some(signer) = signer else {
        let key = stated.signed_by;
        fault(
            None,
            format!("it is signed by {key}, which is not a party of the study"),
        );
        return Ok((None, faults));
    };
    let party = study.parties[signer].name.as_str();
    let replay = replayed
        .iter()
        .find(|replay| replay.node.0 as usize == signer);
    let mut differs = |name: &str, expected: &Value, from: &str| {
        let found = stated.fields.get(name).unwrap_or(&Value::Null);
        if found != expected {
            let what = format!("it states {name} = {found}, and {from} {expected}");
            fault(Some(party), what);
        }
    };
    let compared = replay.and_then(|replay| Some((replay, replay.facts.as_ref()?)));
    let expected = compared.and_then(|(replay, facts)| {
        let statement = PartyStatement::new(facts, &replay.summary, None).ok()?;
        Some((replay, statement.fields()))
    });
    match &expected {
        Some((replay, expected)) => {
            let from = format!("{} comes to", replay.file().display());
            let earlier = ADDED.iter().all(|name| !stated.fields.contains_key(*name));
            let told = |name: &str| stated.fields.get(name).and_then(Value::as_f64);
            for (name, value) in expected {
                let name = name.as_str();
                // Earlier programs proved more for the same charges, and never less.
                let larger = name == "epsilon" && told(name) >= value.as_f64();
                let excused =
                    earlier && (ADDED.contains(&name) || told("delta") > Some(0.0) && larger);
                if !NOT_IN_TRANSCRIPT.contains(&name) && !excused {
                    differs(name, value, &from);
                }
            }
            let known = |name: &&String| {
                expected.contains_key(*name) || NOT_IN_TRANSCRIPT.contains(&name.as_str())
            };
            for name in stated.fields.keys().filter(|name| !known(name)) {
                fault(
                    Some(party),
                    format!(
                        "it states {}, which is not a field of statements",
                        quoted(name)
                    ),
                );
            }
            if let Some(site) = stated.fields.get("site") {
                let charges = replay.summary.charges.iter();
                let events: Vec<PrivacyEvent> = charges.map(|(_, event)| *event).collect();
                for what in account::faults(site, &events) {
                    fault(Some(party), what);
                }
            }
        }
        None => {
            differs("study_sha256", &study.sha256().into(), "the study has");
            differs("party", &party.into(), "it is signed by");
            differs("node", &signer.into(), "it is signed by node");
            let end = stated.fields.get("iterations").and_then(Value::as_u64);
            let end = end.map_or(0, |end| u32::try_from(end).unwrap_or(u32::MAX));
            if let Some((t, holder)) = sent.after(study, NodeId(signer as u32), end) {
                let what = format!("it states iterations = {end}, and of iteration {t} {holder}");
                fault(Some(party), what);
            }
        }
    }
    let checked = CheckedStatement {
        file: path.to_owned(),
        party: party.to_owned(),
        compared: expected.is_some(),
        site: stated.fields.contains_key("site"),
    };
    Ok((Some(checked), faults))
}
