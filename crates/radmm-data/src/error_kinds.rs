//! The causes in a [`DataError`](crate::DataError): what is wrong with a field, a line, a column, a format, a split or
//! a holdout.

use thiserror::Error;

use crate::error::list;
use crate::formats::{MAX_FIELD_BYTES, MAX_ROW_BYTES};

/// The reason why a field does not fit its column. Long fields are cut.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FieldError {
    /// The bytes are not text.
    #[error("the field is not UTF-8; save the file as UTF-8")]
    NotUtf8,
    /// The field is longer than any is.
    #[error(
        "the field has {bytes} bytes, and at most {} are read; shorten it, or leave the column out of the study",
        MAX_FIELD_BYTES
    )]
    TooLong {
        /// Its number of bytes.
        bytes: usize,
    },
    /// A field of a numeric column is not a number.
    #[error("invalid number {value:?}; correct it, or list it under missing to drop such rows")]
    NotANumber {
        /// The field.
        value: String,
    },
    /// A field of a numeric column has a comma where the file has decimal points.
    #[error(
        "invalid number {value:?}: if its comma is a decimal mark, set decimal = \",\"; if it separates thousands, remove it"
    )]
    CommaInNumber {
        /// The field.
        value: String,
    },
    /// A field of a numeric column has a point where the file has decimal commas.
    #[error(
        "invalid number {value:?}: decimal = \",\" is set; if the point is a decimal mark, set decimal = \".\"; if it separates thousands, remove it"
    )]
    PointInNumber {
        /// The field.
        value: String,
    },
    /// A field of a numeric column is a date.
    #[error(
        "invalid number {value:?}: if the column holds dates, give it bounds that are dates, such as bounds = [2000-01-01, 2030-01-01]"
    )]
    DateInNumber {
        /// The field.
        value: String,
    },
    /// The field is NaN, an infinity, or a number beyond `f64`.
    #[error(
        "invalid number {value:?}: must be finite; correct it, or list it under missing to drop such rows"
    )]
    NotFinite {
        /// The field.
        value: String,
    },
    /// A field of a column of dates is not a date.
    #[error(
        "invalid date {value:?}: must be a day such as 2020-12-31, with a time behind it or without; correct it, or list it under missing to drop such rows"
    )]
    NotADate {
        /// The field.
        value: String,
    },
    /// A field of a column of truth values is not one.
    #[error(
        "invalid truth value {value:?}: must be true or false, t or f, or 1 or 0; correct it, list it under missing to drop such rows, or give the column a vocabulary of other words"
    )]
    NotABoolean {
        /// The field.
        value: String,
    },
    /// The value is not in the vocabulary of the study.
    #[error(
        "{value:?} is not among the known values {}; add it to them, list it under missing to drop such rows, or count such values as missing with other = \"missing\"",
        list(known)
    )]
    UnknownCategory {
        /// The field.
        value: String,
        /// The first few values of the vocabulary.
        known: Vec<String>,
    },
    /// The value is not in the vocabulary of the model.
    #[error(
        "{value:?} is not among the values that the model knows, {}; correct it, or remove the row",
        list(known)
    )]
    UnknownToModel {
        /// The field.
        value: String,
        /// The first few values of the vocabulary.
        known: Vec<String>,
    },
    /// The value is not among those of a split by column.
    #[error(
        "{value:?} belongs to no node: the nodes are {}; add one for it, or list it under missing to drop such rows",
        list(known)
    )]
    UnknownNode {
        /// The field.
        value: String,
        /// The first few values that have a node.
        known: Vec<String>,
    },
}

/// The reason why a line of a LIBSVM file is not a label and `index:value` pairs. Long parts are cut.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LineError {
    /// The bytes are not text.
    #[error("the line is not UTF-8; is it a LIBSVM file?")]
    NotUtf8,
    /// The line is longer than any is.
    #[error(
        "the line is longer than {} MiB, the most that is read; is it a LIBSVM file, with a line for each row?",
        MAX_ROW_BYTES >> 20
    )]
    TooLong,
    /// A pair has no colon.
    #[error("invalid pair {pair:?}: a row is a label and index:value pairs such as 3:0.5")]
    NoColon {
        /// The text in place of the pair.
        pair: String,
    },
    /// The line has fields with separators and no pairs.
    #[error(
        "{line:?} is no row of a LIBSVM file, which is a label and index:value pairs such as 3:0.5; if the file is CSV, set format = \"csv\""
    )]
    LooksLikeCsv {
        /// The line.
        line: String,
    },
    /// There is a carriage return within the line.
    #[error("a carriage return is within the line; save the file with line ends of LF or CRLF")]
    CarriageReturn,
    /// The text before the colon is not the number of a column.
    #[error("invalid index {index:?}: columns are numbered from 1")]
    Index {
        /// The text before the colon.
        index: String,
    },
    /// The index is beyond the public number of columns.
    #[error("index {index} is beyond the last column: the study has columns = {columns}")]
    IndexBeyondStudy {
        /// The index.
        index: u32,
        /// The number of columns.
        columns: u32,
    },
    /// The index is beyond the columns of the model.
    #[error("index {index} is beyond the last column: the model has {columns}")]
    IndexBeyondModel {
        /// The index.
        index: u32,
        /// The number of columns.
        columns: u32,
    },
    /// An index is out of order, or occurs twice.
    #[error("index {index} comes after index {last}; indices must ascend, each at most once")]
    NotAscending {
        /// The index out of order.
        index: u32,
        /// The index before it.
        last: u32,
    },
    /// The line has more non-zeros than all parties agreed on.
    #[error("the line has {found} non-zeros: the study has nonzeros = {limit}")]
    TooManyNonZeros {
        /// The number of non-zeros.
        found: usize,
        /// The largest number that is allowed.
        limit: u32,
    },
    /// The text after the colon is not a finite number.
    #[error("invalid value {value:?} of index {index}: must be a finite number")]
    Value {
        /// The index of the value.
        index: u32,
        /// The text after the colon.
        value: String,
    },
}

/// The reason why a column of a Parquet file cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ColumnError {
    /// The column is a list, a map or a structure.
    #[error(
        "is nested: only columns of plain values can be read; save the file without it, or with its parts as columns"
    )]
    Nested,
    /// The type is neither number, boolean nor text.
    #[error("is of type {kind}, which cannot be read; save it as a number or as text")]
    Type {
        /// Parquet's name of the type.
        kind: String,
    },
    /// The compression is not supported.
    #[error(
        "is compressed with {codec}, which is not supported; save the file with zstd, snappy, gzip or lz4, or uncompressed"
    )]
    Codec {
        /// Parquet's name of the compression.
        codec: String,
    },
}

/// The reason why a schema and a format do not go together.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FormatError {
    /// The study names columns of a file that numbers them.
    #[error("a LIBSVM file has numbered columns: the study must give their number and no names")]
    Named,
    /// The study numbers columns of a file that names them.
    #[error("only a LIBSVM file has numbered columns: the study must name those that it uses")]
    Numbered,
    /// The model names columns of a file that numbers them.
    #[error(
        "a LIBSVM file has numbered columns, and those of the model have names; give a CSV or Parquet file"
    )]
    ModelNamed,
    /// The model numbers columns of a file that names them.
    #[error("the columns of the model have numbers and no names; give a LIBSVM file")]
    ModelNumbered,
    /// A file without text columns is split by a column.
    #[error("a LIBSVM file cannot be split by a column; use another split")]
    SplitByColumn,
    /// A Parquet file comes as a stream.
    #[error("a Parquet file is read from its end, and a stream cannot be; give a file, or CSV")]
    ParquetStream,
    /// A study is to be drafted from a matrix.
    #[error("a sparse matrix has no columns with names to draft a study from; write the study")]
    Matrix,
}

/// The reason why rows cannot be split over the nodes.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SplitError {
    /// There are no nodes.
    #[error("there are no nodes to give rows to")]
    NoNodes,
    /// There are fewer rows than nodes.
    #[error(
        "{rows} rows (without those dropped) are too few for {nodes} nodes; lower [network] nodes"
    )]
    TooFewRows {
        /// The number of rows kept.
        rows: usize,
        /// The number of nodes.
        nodes: usize,
    },
    /// A split by column names more or fewer values than there are nodes.
    #[error(
        "the split by column {column:?} has {values} values for {nodes} nodes; name one value a node"
    )]
    WrongValues {
        /// The column of the split.
        column: String,
        /// The number of values named.
        values: usize,
        /// The number of nodes.
        nodes: usize,
    },
    /// A split by column names a value twice.
    #[error("the split by column {column:?} names {value:?} twice; name each value once")]
    RepeatedValue {
        /// The column of the split.
        column: String,
        /// The value.
        value: String,
    },
    /// No kept row has a value of the split by column.
    #[error(
        "node {node} is left without rows: no row has {value:?} in column {column:?}; correct the value or remove the node"
    )]
    NoRowsWithValue {
        /// The number of the node, from 0.
        node: usize,
        /// The column of the split.
        column: String,
        /// The value of the node.
        value: String,
    },
    /// The random proportions leave a node without rows.
    #[error("node {node} is left without rows at alpha = {alpha}; raise alpha or change the seed")]
    NoRowsDrawn {
        /// The number of the node, from 0.
        node: usize,
        /// The parameter of the Dirichlet distribution.
        alpha: f64,
    },
    /// A split by sizes has more or fewer sizes than there are nodes.
    #[error("there are {sizes} sizes for {nodes} nodes; give each node one")]
    WrongSizes {
        /// The number of sizes.
        sizes: usize,
        /// The number of nodes.
        nodes: usize,
    },
    /// A size is not a proportion.
    #[error("invalid size {size}: must be positive and finite")]
    Size {
        /// The size in the study.
        size: f64,
    },
    /// A size is too small for a row.
    #[error(
        "node {node} is left without rows: its size {size} is a share of less than one of {rows} rows; raise it"
    )]
    NoRowsForSize {
        /// The number of the node, from 0.
        node: usize,
        /// The size in the study.
        size: f64,
        /// The number of rows kept, of all nodes.
        rows: usize,
    },
    /// The parameter of the Dirichlet distribution is invalid.
    #[error("invalid alpha = {alpha}: must be positive and finite")]
    Alpha {
        /// The parameter in the study.
        alpha: f64,
    },
}

/// The reason why rows cannot be held out.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum HoldoutError {
    /// There are no more rows than are to be held out.
    #[error(
        "the last {rows} rows are held out of {complete} (without those dropped), and none is left to train on; lower [data.test] last"
    )]
    Last {
        /// The number of rows to hold out.
        rows: usize,
        /// The number of rows without a missing field.
        complete: usize,
    },
    /// No rows are to be held out.
    #[error("no rows are held out; raise [data.test] last, or leave [data.test] out")]
    Zero,
    /// A small share of few rows holds out none.
    #[error(
        "none of {complete} rows (without those dropped) is held out at share = {share}; raise [data.test] share or change its seed"
    )]
    NothingDrawn {
        /// The expected share of the rows.
        share: f64,
        /// The number of rows without a missing field.
        complete: usize,
    },
    /// A large share of few rows holds out all.
    #[error(
        "all {complete} rows (without those dropped) are held out at share = {share}, and none is left to train on; lower [data.test] share or change its seed"
    )]
    AllDrawn {
        /// The expected share of the rows.
        share: f64,
        /// The number of rows without a missing field.
        complete: usize,
    },
}
