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
    #[error("{file}:{line}: {what}: {advice}")]
    Unknown {
        /// The name of the file.
        file: String,
        /// The line, from 1.
        line: usize,
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
    #[error("{file}:{line}: {key} = {value}: {advice}")]
    Wrong {
        /// The name of the file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The key with its section.
        key: String,
        /// The value as written, cut short if long.
        value: String,
        /// The remedy.
        advice: String,
    },
}

/// A note about a key that is valid, but has no effect on this study or a surprising one.
///
/// It is not an error: to compare algorithms one changes `name` and leaves the other keys in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line of the key, from 1.
    pub line: usize,
    /// The whole message, with file and line: `study.toml:31: [algorithm] recycle is not used by admm`.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
