//! The numbers that a study leaves to the program: which were chosen, and why.

use serde::Serialize;

use crate::number_format::as_typed;

/// A value that the study does not give and a public rule chose. No rule reads a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The section of the study file: `algorithm`.
    pub section: &'static str,
    /// The key in it: `penalty`.
    pub key: &'static str,
    /// The value, as it would stand in the file.
    pub value: String,
    /// The reason, as the end of a sentence that begins with the value.
    pub reason: String,
}

impl Choice {
    pub(crate) fn new(
        section: &'static str,
        key: &'static str,
        value: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            section,
            key,
            value: value.into(),
            reason: reason.into(),
        }
    }

    /// Returns the value as people read it: numbers with a few digits, words without quotes.
    pub fn short_value(&self) -> String {
        match self.value.parse() {
            Ok(number) => as_typed(number),
            Err(_) => self.value.trim_matches('"').to_owned(),
        }
    }

    /// Returns the key with its section, as in messages about the file: `[algorithm] penalty`.
    pub fn full_key(&self) -> String {
        format!("[{}] {}", self.section, self.key)
    }
}
