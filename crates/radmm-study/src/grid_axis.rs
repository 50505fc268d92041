//! An axis of a grid: several values of one key of a study, of which every combination with those of other axes is tried.

use crate::overrides::{Override, OverrideError};

/// A key of a study and at least one value for it, no two of them equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridAxis {
    values: Vec<Override>,
}

impl GridAxis {
    /// Reads `KEY=VALUE,VALUE,…`. A value is one of TOML, or else a text without commas.
    ///
    /// `option` is what the text was given to, for messages: `--grid`.
    pub fn parse(option: &str, text: &str) -> Result<Self, OverrideError> {
        let (key, list) = Override::split(text)?;
        let mut values: Vec<Override> = Vec::new();
        for value in split_at_commas(list) {
            if value.is_empty() {
                return Err(OverrideError::List);
            }
            let one = Override::new(format!("{option} {key}={value}"), key, value)?;
            if values.iter().any(|other| other.value() == one.value()) {
                return Err(OverrideError::Twice(value.to_owned()));
            }
            values.push(one);
        }
        Ok(Self { values })
    }

    /// Returns the values, in the order given.
    pub fn values(&self) -> &[Override] {
        &self.values
    }

    /// Returns the dotted key.
    pub fn key(&self) -> String {
        // Splitting a text gives at least one value.
        self.values[0].key()
    }

    /// Returns every combination of one value of each axis. The last axis varies fastest.
    pub fn combinations(axes: &[Self]) -> Vec<Vec<&Override>> {
        axes.iter().fold(vec![Vec::new()], |shorter, axis| {
            let longer = |one: Vec<_>| {
                let with = move |value| one.iter().copied().chain([value]).collect();
                axis.values.iter().map(with).collect::<Vec<_>>()
            };
            shorter.into_iter().flat_map(longer).collect()
        })
    }
}

/// Splits a list at the commas that are outside of quotes, brackets and braces.
fn split_at_commas(list: &str) -> Vec<&str> {
    let (mut quote, mut depth, mut start) = (None, 0_u32, 0);
    let mut parts = Vec::new();
    for (at, c) in list.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts
}
