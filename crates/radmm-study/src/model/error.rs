//! Why a text is not a model.

use thiserror::Error;

/// Why a text is not a model: the file, the field, and what to do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ModelError {
    /// The text is not JSON.
    #[error("{file}:{line}:{column}: {message}")]
    Syntax {
        /// The model file.
        file: String,
        /// From 1.
        line: usize,
        /// From 1, in bytes.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// JSON of another kind.
    #[error("{file} is not a model file: {reason}; give the model.json that a node wrote")]
    NotAModel {
        /// The file.
        file: String,
        /// What tells so.
        reason: String,
    },
    /// From the future.
    #[error(
        "{file} was made by radmm {version}, and this is {this}; use that version or a later one"
    )]
    Newer {
        /// The model file.
        file: String,
        /// Of the program that made it.
        version: String,
        /// Of this program.
        this: &'static str,
    },
    /// A field that is missing, of the wrong type or at odds with another one.
    #[error("{file}: {field}: {advice}")]
    Field {
        /// The model file.
        file: String,
        /// The way to it: `data.numeric.age`.
        field: String,
        /// What would be right.
        advice: String,
    },
    /// Weights that do not fit.
    #[error("{file}: {cause}; the file is damaged or was edited: get it again from its party")]
    Weights {
        /// The model file.
        file: String,
        /// Why not.
        cause: BadWeights,
    },
}

/// Why weights are not those of a study.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadWeights {
    /// Too many or too few.
    #[error("there are {weights} weights for {columns} columns")]
    Count {
        /// How many there are.
        weights: usize,
        /// How many there must be.
        columns: usize,
    },
    /// NaN or an infinity.
    #[error("weights[{index}], of column {column:?}, is not a finite number")]
    NotFinite {
        /// Among the weights, from 0.
        index: usize,
        /// The encoded column that it belongs to.
        column: String,
    },
}
