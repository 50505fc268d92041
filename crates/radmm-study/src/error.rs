//! Errors in study files and site files, and notes about keys without an effect.

use std::fmt;

use thiserror::Error;

/// An error in a study file or a site file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StudyError {
    /// The text is not TOML.
    #[error("{file}:{line}:{column}: {message}")]
    Syntax {
        /// The name of the file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in characters.
        column: usize,
        /// The parser's message.
        message: String,
    },
    /// An unknown key or section.
    #[error("{place}: {what}: {advice}")]
    Unknown {
        /// The place where it was given.
        place: KeyPlace,
        /// The unknown name.
        what: String,
        /// The nearest known name, or all of them.
        advice: String,
    },
    /// A missing key that is required.
    #[error("{file}: {key} is missing: {meaning}")]
    Missing {
        /// The name of the file.
        file: String,
        /// The key with its section.
        key: String,
        /// Its meaning and form.
        meaning: String,
    },
    /// A value of the wrong type, out of range, or at odds with another one.
    #[error("{place}: {key} = {value}: {advice}")]
    Wrong {
        /// The place where it was given.
        place: KeyPlace,
        /// The key with its section.
        key: String,
        /// The value as written, cut short if long.
        value: String,
        /// The remedy.
        advice: String,
    },
    /// A key that cannot be overridden.
    #[error("{given}: {advice}")]
    Override {
        /// The argument as it was given.
        given: String,
        /// The reason and the remedy.
        advice: String,
    },
}

/// The place where a key was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// A line of a file.
    Line {
        /// The name of the file.
        file: String,
        /// The line, from 1.
        line: usize,
    },
    /// An argument beside the file, as it was given: `--set algorithm.penalty=3`.
    Override(String),
}

impl KeyPlace {
    /// Returns the line in the file; `None` for an argument.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Line { line, .. } => Some(*line),
            Self::Override(_) => None,
        }
    }
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{file}:{line}"),
            Self::Override(given) => f.write_str(given),
        }
    }
}

/// A note about a key that is valid, but has no effect on this study or a surprising one.
///
/// It is not an error: to compare algorithms one changes `name` and leaves the other keys in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The place where the key was given.
    pub place: KeyPlace,
    /// The message without the place: `[algorithm] recycle is not used by admm`.
    pub text: String,
}

impl Note {
    /// Brings notes into the order of their lines; those on overrides are last.
    pub(crate) fn sort(notes: &mut [Self]) {
        notes.sort_by_key(|note| note.place.line().unwrap_or(usize::MAX));
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}
