//! What can be wrong with a study file or a site file, and what is merely worth saying.

use std::fmt;

use thiserror::Error;

/// Why a text is not a study, or not a site file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StudyError {
    /// The text is not TOML.
    #[error("{file}:{line}:{column}: {message}")]
    Syntax {
        /// Its name.
        file: String,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// The parser's own words.
        message: String,
    },
    /// A key or a section that means nothing.
    #[error("{file}:{line}: {what}: {advice}")]
    Unknown {
        /// Its name.
        file: String,
        /// From 1.
        line: usize,
        /// What stands there.
        what: String,
        /// The nearest known name, or all of them.
        advice: String,
    },
    /// A required key that is not there.
    #[error("{file}: {key} is missing: {meaning}")]
    Missing {
        /// Its name.
        file: String,
        /// With its section.
        key: String,
        /// What it would say, and in which form.
        meaning: String,
    },
    /// A value of the wrong type, out of range, or at odds with another one.
    #[error("{file}:{line}: {key} = {value}: {advice}")]
    Wrong {
        /// Its name.
        file: String,
        /// From 1.
        line: usize,
        /// With its section.
        key: String,
        /// As written, cut short if long.
        value: String,
        /// What would be right.
        advice: String,
    },
}

/// A key that was understood and checked, but has no effect on this study, or one that it is hardly meant to have.
///
/// Not an error: whoever compares algorithms switches `name` back and forth and leaves the other keys in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where the key stands, from 1.
    pub line: usize,
    /// The whole message, with file and line: `study.toml:31: [algorithm] recycle is not used by admm`.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
