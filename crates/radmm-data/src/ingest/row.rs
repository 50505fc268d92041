//! A complete row of a file, encoded.

use std::sync::Arc;

use crate::encode::Lacking;
use crate::error::FilePosition;

/// A complete row, with all that is counted or reported of it once it is known to be a training row.
///
/// Neither `Debug`, `Clone` nor `Serialize`: a row ends in a shard and nowhere else.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) entries: Vec<(u32, f64)>,
    pub(crate) positive: bool,
    pub(crate) label: String,
    /// The notes on its values that are to be counted, as [`encode`](crate::encode::Encoder::encode) notes it.
    pub(crate) noted: Vec<u32>,
    /// The field by which the row is assigned, if rows are split by a column.
    pub(crate) split_value: Option<SplitValue>,
}

/// A row of a table, as it is read.
pub(crate) enum TableRow<'r> {
    /// A row that is kept.
    Complete(&'r mut Row),
    /// A row that is dropped, since it lacks values.
    Incomplete(&'r Lacking),
}

/// A field of the column by which rows are split.
#[derive(Clone)]
pub(crate) struct SplitValue {
    pub(crate) value: String,
    /// The name of the file of its row, or of the first row with this value.
    pub(crate) file: Arc<str>,
    /// The position of that row.
    pub(crate) position: FilePosition,
}
