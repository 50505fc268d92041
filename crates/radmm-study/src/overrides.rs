//! Keys that are given apart from a study file and take the place of the file's.

use std::mem;

use serde_json::Value;
use thiserror::Error;
use toml::de::{DeTable, DeValue};

use crate::canonical::write_toml;
use crate::error::StudyError;

/// One key of a study with a value that takes the place of the file's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The argument as it was given, for messages: `--set algorithm.penalty=3`.
    given: String,
    /// The names of the sections, and of the key in the last of them.
    path: Vec<String>,
    /// The value as TOML.
    value: String,
}

/// The reason why an argument is not a key with a value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OverrideError {
    /// There is no `=`, or nothing on one side of it.
    #[error("must be KEY=VALUE, such as algorithm.penalty=3")]
    Form,
    /// The key is not TOML.
    #[error(
        "{0} is not a key: its names have dots between them, as in algorithm.penalty, and quotes around them if they have other characters than letters, digits, - and _"
    )]
    Key(String),
    /// A value of a list is missing.
    #[error("must be KEY=VALUE,VALUE,…, such as algorithm.penalty=0.3,1,3")]
    List,
    /// A value of a list is there twice.
    #[error("{0} is listed twice")]
    Twice(String),
    /// The value is neither TOML nor a bare word.
    #[error(
        "{value} is not a value of TOML: {message}; close its brackets and quotes, or put all of it in quotes"
    )]
    Value {
        /// The value as given.
        value: String,
        /// The parser's message.
        message: String,
    },
}

impl OverrideError {
    fn value(value: &str, error: &toml::de::Error) -> Self {
        Self::Value {
            value: value.to_owned(),
            message: error.message().replace('\n', "; "),
        }
    }
}

impl Override {
    /// Reads `KEY=VALUE`. The key is dotted, as in TOML. The value is one of TOML, or else a text.
    ///
    /// `option` is what the text was given to, for messages: `--set`.
    pub fn parse(option: &str, text: &str) -> Result<Self, OverrideError> {
        let (key, value) = Self::split(text)?;
        Self::new(format!("{option} {text}"), key, value)
    }

    /// Splits `KEY=VALUE` at the first `=` outside of quotes.
    pub fn split(text: &str) -> Result<(&str, &str), OverrideError> {
        let mut quote = None;
        let separator = text.char_indices().find(|&(_, c)| {
            match quote {
                Some(open) if open == c => quote = None,
                None if c == '"' || c == '\'' => quote = Some(c),
                _ => {}
            }
            quote.is_none() && c == '='
        });
        let (at, _) = separator.ok_or(OverrideError::Form)?;
        let (key, value) = (text[..at].trim(), text[at + 1..].trim());
        match key.is_empty() || value.is_empty() {
            true => Err(OverrideError::Form),
            false => Ok((key, value)),
        }
    }

    /// Returns a dotted key with a value of TOML, or else a text. `given` is what messages show.
    pub fn new(given: String, key: &str, value: &str) -> Result<Self, OverrideError> {
        Self::of_toml(given, key, &toml_value(value)?)
    }

    /// Returns a dotted key with a value of JSON. `given` is what messages show.
    pub fn of_json(given: String, key: &str, value: &Value) -> Result<Self, OverrideError> {
        Self::of_toml(given, key, &write_toml::inline(value))
    }

    fn of_toml(given: String, key: &str, value: &str) -> Result<Self, OverrideError> {
        let path = names(key).ok_or_else(|| OverrideError::Key(key.to_owned()))?;
        let one = Self {
            given,
            path,
            value: value.to_owned(),
        };
        match DeTable::parse(&one.toml()) {
            Ok(_) => Ok(one),
            Err(error) => Err(OverrideError::value(value, &error)),
        }
    }

    /// Returns the names of the sections, and of the key in the last of them.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Returns the dotted key: `algorithm.penalty`.
    pub fn key(&self) -> String {
        let names: Vec<String> = self
            .path
            .iter()
            .map(|name| write_toml::bare(name))
            .collect();
        names.join(".")
    }

    /// Returns the value as TOML.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns key and value as a line of TOML.
    fn toml(&self) -> String {
        format!("{} = {}", self.key(), self.value)
    }

    /// Returns the argument as it was given.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Returns whether two keys are the same, or one is in the section that the other is.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.path.iter().zip(&other.path).all(|(a, b)| a == b)
    }

    /// Returns an error about this argument.
    pub(crate) fn wrong(&self, advice: String) -> StudyError {
        StudyError::Override {
            given: self.given.clone(),
            advice,
        }
    }
}

/// An override beside the text of a file, with a range of positions of its own.
pub(crate) struct PlacedOverride<'a> {
    pub one: &'a Override,
    /// The first position, after those of the file and of earlier overrides.
    pub start: usize,
    /// The line of TOML after so many spaces, which TOML allows: what it is parsed to has positions from `start` on.
    pub text: String,
}

impl<'a> PlacedOverride<'a> {
    /// Places overrides after a file of so many bytes.
    pub(crate) fn all(file_length: usize, overrides: &'a [Override]) -> Vec<Self> {
        let mut start = file_length;
        let place = |one: &'a Override| {
            let text = " ".repeat(start) + &one.toml();
            let next = text.len();
            let placed = Self { one, start, text };
            start = next;
            placed
        };
        overrides.iter().map(place).collect()
    }

    /// Puts the value into the tables of the file.
    pub(crate) fn put_into<'t>(&'t self, table: &mut DeTable<'t>) -> Result<(), StudyError> {
        // The same line was parsed when the override was made.
        let given = DeTable::parse(&self.text).expect("an override is valid TOML");
        put(table, given.into_inner(), self.one.path.len()).map_err(|InList| {
            let advice = "is in a list, of which no single element can be set; set the whole list";
            self.one.wrong(advice.to_owned())
        })
    }
}

/// The error that a key is in a list.
struct InList;

/// Puts the only key of `given`, which has `depth` names, into a table. A key that is there keeps its place in the order of
/// the file.
fn put<'a>(table: &mut DeTable<'a>, given: DeTable<'a>, depth: usize) -> Result<(), InList> {
    for (name, mut value) in given {
        let Some(old) = table.get_mut(name.get_ref().as_ref()) else {
            table.insert(name, value);
            continue;
        };
        match (old.get_mut(), value.get_mut()) {
            (DeValue::Table(old), DeValue::Table(given)) if depth > 1 => {
                put(old, mem::take(given), depth - 1)?;
            }
            (DeValue::Array(_), _) if depth > 1 => return Err(InList),
            _ => *old = value,
        }
    }
    Ok(())
}

/// Returns the names of a dotted key.
fn names(key: &str) -> Option<Vec<String>> {
    if key.contains(['\n', '\r']) {
        return None;
    }
    let text = format!("{key} = 0");
    let parsed = DeTable::parse(&text).ok()?.into_inner();
    let mut names = Vec::new();
    let mut table = &parsed;
    loop {
        let (name, value) = table.iter().next()?;
        names.push(name.get_ref().as_ref().to_owned());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(names),
        }
    }
}

/// Returns a value as TOML has it: as it is if that is TOML, else in quotes unless it looks like TOML with a mistake.
fn toml_value(value: &str) -> Result<String, OverrideError> {
    match DeValue::parse(value) {
        Ok(_) => Ok(value.to_owned()),
        Err(error) if value.starts_with(['"', '\'', '[', '{']) => {
            Err(OverrideError::value(value, &error))
        }
        Err(_) => Ok(write_toml::quoted(value)),
    }
}
