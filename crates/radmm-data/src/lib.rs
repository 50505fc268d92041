//! Rows in: a table of text becomes shards of unit-norm rows, one a node.
//!
//! A [`Schema`] says what the columns mean, in public facts only: bounds and vocabularies agreed on beforehand,
//! never taken from the rows. A [`Split`] says which row goes to which node, a [`Holdout`] which go to none and are
//! tested on. [`read`] does it all in one pass over a file in one of three [formats](Format). Whatever the split and
//! whatever is held out, it needs at most twice the memory of the encoded rows.
//!
//! ```
//! use radmm::private::NormPolicy;
//! use radmm_data::{Numeric, Schema, Split, read_csv};
//!
//! let schema = Schema {
//!     label: "ill".into(),
//!     positive: "yes".into(),
//!     missing: vec!["?".into()],
//!     rows: NormPolicy::Unit,
//!     numbered: 0,
//!     intercept: true,
//!     numeric: vec![Numeric::within("age", 0.0, 100.0)],
//!     categorical: vec![],
//! };
//! let text = "age,ill\n71,yes\n34,no\n?,no\n58,no\n";
//! let partition = read_csv(text.as_bytes(), "rows.csv", &schema, &Split::RoundRobin, 2)?;
//! assert_eq!((partition.read, partition.dropped), (4, 1));
//! assert_eq!(partition.parts[0].shard.rows(), 2);
//! # Ok::<(), radmm_data::DataError>(())
//! ```
//!
//! Invariant: what is read of a row ends in a [`Shard`](radmm::private::Shard) and nowhere else. The exceptions are for
//! the party that owns the file: a [`DataError`], which quotes the field at fault, a [`Profile`], which [`inspect`]
//! makes for whoever drafts a study, and [`Features`], which [`score_each`] hands to whoever uses a model on rows of
//! their own.

mod adult;
mod builtin;
#[cfg(test)]
mod clinic;
mod csv;
mod decoding;
mod encode;
mod error;
mod fifo;
mod file;
mod holdout;
mod inspect;
mod intake;
mod libsvm;
mod named;
mod parquet;
mod partition;
mod problem;
mod records;
mod row;
mod schema;
mod score;
mod split;
mod table;
mod tally;
mod waiting;

pub use self::builtin::Builtin;
pub use self::csv::{deal_csv, read_csv, read_test_csv};
pub use self::decoding::decoding;
pub use self::error::{DataError, FieldProblem, Place, SplitProblem};
pub use self::file::{Format, TableFile, read, read_test};
pub use self::holdout::{Held, Holdout, HoldoutProblem};
pub use self::inspect::{ColumnProfile, MARKERS, MOST_VALUES, Profile, Slips, inspect};
pub use self::libsvm::{deal_libsvm, read_test_libsvm};
pub use self::parquet::{deal_parquet, read_test_parquet};
pub use self::partition::{Deal, Part, Partition};
pub use self::problem::{ColumnProblem, FormatProblem, LineProblem};
pub use self::schema::{Categorical, Numeric, Scale, Schema, Split};
pub use self::score::{Features, Scored, score_each};
