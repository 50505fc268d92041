//! A complete row of a file, encoded.

use crate::error::Place;

/// A complete row, and what may have to be told of it when it is known to be trained on. Neither `Debug`, `Clone` nor
/// `Serialize`: rows go from here to shards and nowhere else.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) entries: Vec<(u32, f64)>,
    pub(crate) positive: bool,
    pub(crate) label: String,
    /// The numeric columns, by their places in the schema, whose values were beyond the bounds.
    pub(crate) clipped: Vec<u32>,
    /// If rows are split by a column, to whom it belongs.
    pub(crate) party: Option<Party>,
}

/// What stands in the column by which rows are split.
pub(crate) struct Party {
    pub(crate) name: String,
    /// Where its row stands, or its first row.
    pub(crate) place: Place,
}
