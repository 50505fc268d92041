//! Rows in: a table becomes one shard of unit-norm rows per node.
//!
//! A [`Schema`] declares the meaning of the columns in public facts only: bounds and vocabularies agreed on beforehand,
//! never taken from the rows. A [`Split`] assigns rows to nodes, and a [`Holdout`] keeps some rows for testing.
//! [`read_partition`] does it all in one pass over a file in one of three [formats](Format), or over a [table in memory](MemoryTable). Whatever the split and the
//! holdout, it needs at most twice the memory of the encoded rows.
//!
//! ```
//! use radmm_data::{Numeric, PartitionSpec, Schema, Split, partition_csv};
//!
//! let schema = Schema {
//!     missing: vec!["?".into()],
//!     intercept: true,
//!     numeric: vec![Numeric::within("age", 0.0, 100.0)],
//!     ..Schema::new("ill", "yes")
//! };
//! let text = "age,ill\n71,yes\n34,no\n?,no\n58,no\n";
//! let spec = PartitionSpec::new(&Split::RoundRobin, 2);
//! let partition = partition_csv(text.as_bytes(), "rows.csv", &schema, spec)?;
//! assert_eq!((partition.read, partition.dropped), (4, 1));
//! assert_eq!(partition.parts[0].shard.rows(), 2);
//! # Ok::<(), radmm_data::DataError>(())
//! ```
//!
//! Invariant: the content of a row ends in a [`Shard`](radmm::curator::Shard) and nowhere else. There are three
//! exceptions, all for the party that owns the file: a [`DataError`] quotes the field at fault, a [`TableProfile`] from
//! [`profile`] helps to draft a study, and an [`EncodedRow`] from [`score_each`] is scored by a model.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests compare with the platform's functions"
    )
)]

mod builtin;
mod encode;
mod error;
mod error_kinds;
mod formats;
mod ingest;
mod number;
mod profile;
mod schema;
mod scoring;

pub use self::builtin::Builtin;
pub use self::encode::spline_weights;
pub use self::error::{DataError, FilePosition};
pub use self::error_kinds::{
    ColumnError, FieldError, FormatError, HoldoutError, LineError, SplitError,
};
pub use self::formats::catch_panic::is_decoding;
pub use self::formats::memory::{
    CellValue, LabelledMatrix, MemoryColumn, MemoryTable, NamedColumn, SparseRows,
};
pub use self::formats::{
    DecimalMark, FileOptions, Format, PieceCounts, RowFiles, Separator, TableFile, TablePiece,
    TableSource, TableStream, partition_csv, partition_libsvm, read_partition, read_pieces,
    read_test_set,
};
pub use self::ingest::holdout::{Holdout, TestSet};
pub use self::ingest::partition::{Part, Partition, PartitionSpec};
pub use self::profile::{
    ColumnProfile, MAX_VALUES, MISSING_MARKERS, MissingPatterns, NonNumbers, Quantiles,
    TableProfile, profile,
};
pub use self::schema::{
    Categorical, MISSING_CATEGORY, Numeric, NumericScale, Schema, Spacing, Split,
};
pub use self::scoring::{EncodedRow, ScoreCounts, score_each};
