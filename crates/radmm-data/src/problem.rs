//! What is wrong with a file of its format.

use thiserror::Error;

/// Why a line is not a label and `index:value` pairs. Long parts are cut.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LineProblem {
    /// Bytes that are not text.
    #[error("the line is not UTF-8; is it a LIBSVM file?")]
    NotUtf8,
    /// No pair.
    #[error("{pair:?} is not a pair such as 3:0.5; a row is a label and index:value pairs")]
    NoColon {
        /// What stands there.
        pair: String,
    },
    /// Not a column.
    #[error("{index:?} is not an index: columns are numbered from 1")]
    Index {
        /// What stands before the colon.
        index: String,
    },
    /// Beyond the public number of columns.
    #[error("index {index} is beyond the last column: the study has columns = {columns}")]
    Beyond {
        /// What stands before the colon.
        index: u32,
        /// How many there are.
        columns: u32,
    },
    /// Beyond the columns of a model.
    #[error("index {index} is beyond the last column: the model has {columns}")]
    BeyondModel {
        /// What stands before the colon.
        index: u32,
        /// How many there are.
        columns: u32,
    },
    /// Out of order, or there twice.
    #[error("index {index} comes after index {last}; indices must ascend, each at most once")]
    NotAscending {
        /// The index out of order.
        index: u32,
        /// The one before it.
        last: u32,
    },
    /// Not a value.
    #[error("the value {value:?} of index {index} is not a finite number")]
    Value {
        /// The index that it belongs to.
        index: u32,
        /// What stands after the colon.
        value: String,
    },
}

/// Why a column of a Parquet file cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ColumnProblem {
    /// A list, a map or a structure.
    #[error(
        "is nested: only columns of plain values can be read; save the file without it, or with its parts as columns"
    )]
    Nested,
    /// A type that is neither number, boolean nor text.
    #[error("is of type {kind}, which cannot be read; save it as a number or as text")]
    Type {
        /// As Parquet calls it.
        kind: String,
    },
    /// A compression that is not built in.
    #[error(
        "is compressed with {codec}; known are none, snappy, gzip and lz4: save the file with one of these"
    )]
    Codec {
        /// As Parquet calls it.
        codec: String,
    },
}

/// What does not go together.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FormatProblem {
    /// Columns are found by their numbers.
    #[error("a LIBSVM file has numbered columns: the study must give their number and no names")]
    Named,
    /// Columns are found by their names.
    #[error("only a LIBSVM file has numbered columns: the study must name those that it uses")]
    Numbered,
    /// Columns are found by their numbers, and a model has names.
    #[error(
        "a LIBSVM file has numbered columns, and those of the model have names; give a CSV or Parquet file"
    )]
    ModelNamed,
    /// Columns are found by their names, and a model has numbers.
    #[error("the columns of the model have numbers and no names; give a LIBSVM file")]
    ModelNumbered,
    /// Rows are told apart by a column's text.
    #[error("a LIBSVM file cannot be split by a column; use another split")]
    SplitByColumn,
}
