//! Errors about model files.

use thiserror::Error;

/// The reason why a text is not a model: the file, the field, and the remedy.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ModelError {
    /// The text is not JSON.
    #[error("{file}:{line}:{column}: {message}")]
    Syntax {
        /// The model file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in bytes.
        column: usize,
        /// The error at that place.
        message: String,
    },
    /// JSON of another kind.
    #[error(
        "{file} is not a model file: {reason}; give the model.json that radmm node or radmm run wrote"
    )]
    NotAModel {
        /// The file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// A file of a newer version.
    #[error(
        "{file} was made by radmm {version}, and this is {this}; use that version or a later one"
    )]
    Newer {
        /// The model file.
        file: String,
        /// The version of the program that made it.
        version: String,
        /// The version of this program.
        this: &'static str,
    },
    /// A field that is missing, of the wrong type or at odds with another one.
    #[error("{file}: {field}: {advice}")]
    Field {
        /// The model file.
        file: String,
        /// Its path: `data.numeric.age`.
        field: String,
        /// The remedy.
        advice: String,
    },
    /// Weights that do not fit.
    #[error("{file}: {cause}; the file is damaged or was edited: get it again from its party")]
    Weights {
        /// The model file.
        file: String,
        /// The reason.
        cause: BadWeights,
    },
}

/// The reason why weights do not belong to a study.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadWeights {
    /// Too many or too few.
    #[error("there are {weights} weights for {columns} columns")]
    Count {
        /// The number of weights.
        weights: usize,
        /// The number of columns.
        columns: usize,
    },
    /// NaN or an infinity.
    #[error("weights[{index}], of column {column:?}, is not a finite number")]
    NotFinite {
        /// The index of the weight, from 0.
        index: usize,
        /// The encoded column that it belongs to.
        column: String,
    },
}
