//! `[[parties]]`: the parties of a study between real parties, in the order of node numbers.

use std::collections::BTreeMap;

use radmm::curator::MAX_ROWS;
use radmm::problem::RowCount;

use super::address;
use super::entry::Entry;
use super::reader::Section;
use crate::StudyParty;
use crate::error::StudyError;
use crate::identity::{Identity, IdentityError};

const KEYS: [&str; 4] = ["name", "key", "rows", "address"];

const MAX_NAME: usize = 64;

/// Reads the list, which is empty if the study is only simulated.
pub(crate) fn read(top: &Section<'_>) -> Result<Vec<StudyParty>, StudyError> {
    let Some(list) = top.get("parties") else {
        return Ok(Vec::new());
    };
    let form = "must be a list of tables: begin each party with [[parties]]";
    if !list.is_array() {
        return Err(list.wrong(form));
    }
    let mut parties = Vec::new();
    let (mut names, mut keys) = (BTreeMap::new(), BTreeMap::new());
    for element in list.elements()? {
        if !element.is_table() {
            return Err(element.wrong(form));
        }
        let section = element.table()?.only(&KEYS)?;
        let entry = section.required("name", "what people call this party")?;
        let name = entry.string()?;
        check_name(&entry, name)?;
        if let Some(other) = names.insert(name, element.key.clone()) {
            return Err(entry.wrong(format!("is the name of {other} too; names must differ")));
        }
        let entry = section.required(
            "key",
            "this party's public key, \"ed25519:\" and 64 hexadecimal digits",
        )?;
        let key = key(&entry)?;
        if let Some(other) = keys.insert(key, name) {
            return Err(entry.wrong(format!(
                "is the key of {other:?} too; every party has a key of its own"
            )));
        }
        parties.push(StudyParty {
            name: name.to_owned(),
            key,
            rows: section.optional("rows", |entry| entry.integer(1..=MAX_ROWS))?,
            address: section.optional("address", address::read)?,
        });
    }
    if parties.len() < 2 {
        return Err(list.wrong("must be two parties or more"));
    }
    Ok(parties)
}

/// Checks that every party declares its rows, where the weights of all parties depend on them.
pub(crate) fn check_rows(
    top: &Section<'_>,
    parties: &[StudyParty],
    count: RowCount,
) -> Result<(), StudyError> {
    let undeclared = parties.iter().position(|party| party.rows.is_none());
    let (RowCount::Rows, Some(index), Some(list)) = (count, undeclared, top.get("parties")) else {
        return Ok(());
    };
    let section = list.elements()?[index].table()?;
    let entry = section.required("name", "what people call this party")?;
    Err(entry.wrong(
        "give this party's number of training rows, as in rows = 8101: every row counts the same, so that each party's weight \
         depends on all of them; or let every party count the same with [problem] count = \"parties\"",
    ))
}

/// Checks a party's name, which is used in tables, in logs and before colons.
pub(crate) fn check_name(entry: &Entry<'_>, name: &str) -> Result<(), StudyError> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    if let Some(c) = name.chars().find(|c| !plain(*c)) {
        return Err(entry.wrong(format!(
            "a party's name has letters, digits, '-', '_', '.' and spaces, not {c:?}"
        )));
    }
    if name.trim().is_empty() {
        return Err(entry.wrong("a party's name must not be empty"));
    }
    if name.trim() != name {
        return Err(entry.wrong("a party's name must not begin or end with a space"));
    }
    let length = name.chars().count();
    if length > MAX_NAME {
        return Err(entry.wrong(format!(
            "a party's name has at most {MAX_NAME} characters, not {length}"
        )));
    }
    Ok(())
}

fn key(entry: &Entry<'_>) -> Result<Identity, StudyError> {
    entry.string()?.parse().map_err(|error: IdentityError| {
        let advice = error.to_string();
        match error {
            IdentityError::Secret => entry.wrong_hidden(advice),
            _ => entry.wrong(advice),
        }
    })
}
