//! A statement, held against the transcript that it is about.

use std::path::Path;

use radmm::account::Event;
use radmm::public::graph::NodeId;
use radmm_study::Study;
use serde_json::Value;

use super::account;
use super::messages::Said;
use super::replay::Course;
use super::{CheckedStatement, Fault, VerifyError};
use crate::evidence::statement::{SignedStatement, Statement, StatementError};

/// What no transcript tells, or not all of it: with which version it was made, and what all studies together have spent.
const ITS_OWN: [&str; 2] = ["program", "site"];

/// Who signed it, if anybody did, and what does not hold.
pub(super) fn check(
    study: &Study,
    path: &Path,
    courses: &[Course],
    said: &Said,
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
                format!("the statement does not have the signature of {signed_by}"),
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
            format!("it is signed by {key}, who is no party of the study"),
        );
        return Ok((None, faults));
    };
    let party = study.parties[signer].name.as_str();
    let course = courses
        .iter()
        .find(|course| course.node.0 as usize == signer);
    let mut differs = |name: &str, expected: &Value, from: &str| {
        let found = stated.fields.get(name).unwrap_or(&Value::Null);
        if found != expected {
            let what = format!("it states {name} = {found}, and {from} {expected}");
            fault(Some(party), what);
        }
    };
    let compared = course.and_then(|course| Some((course, course.about.as_ref()?)));
    let expected = compared.and_then(|(course, about)| {
        let statement = Statement::new(about, &course.summary, None).ok()?;
        Some((course, statement.fields()))
    });
    match &expected {
        Some((course, expected)) => {
            let from = format!("{} comes to", course.file().display());
            for (name, value) in expected {
                if !ITS_OWN.contains(&name.as_str()) {
                    differs(name, value, &from);
                }
            }
            let known =
                |name: &&String| expected.contains_key(*name) || ITS_OWN.contains(&name.as_str());
            for name in stated.fields.keys().filter(|name| !known(name)) {
                fault(
                    Some(party),
                    format!("it states {name:?}, which means nothing"),
                );
            }
            if let Some(site) = stated.fields.get("site") {
                let charges = course.summary.charges.iter();
                let events: Vec<Event> = charges.map(|(_, event)| *event).collect();
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
            // Beyond what any message has.
            let end = end.map_or(0, |end| u32::try_from(end).unwrap_or(u32::MAX));
            if let Some((t, told)) = said.after(study, NodeId(signer as u32), end) {
                let what = format!("it states iterations = {end}, and of iteration {t} {told}");
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
