//! Counts of what was unusual in a party's own file, for the people who may see its rows.
//!
//! Privacy: these counts come from rows and are not paid for. No notice, status, statement or transcript has a field for them.

use std::collections::BTreeMap;

use radmm_data::{Partition, Schema};
use serde::{Serialize, Serializer};

/// Counts over the fields of a party's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DataCheck {
    /// The number of rows left out because a field was missing.
    pub left_out: usize,
    /// The columns without whose values rows were left out, and how many rows lack each, most first.
    #[serde(serialize_with = "as_map")]
    pub lacking: Vec<(String, usize)>,
    /// The number of values clipped to the study's bounds, by numeric column.
    pub clipped: BTreeMap<String, usize>,
    /// The number of values that count as missing because they cannot be encoded, by column.
    pub others: BTreeMap<String, usize>,
    /// The column of the label.
    pub label: String,
    /// The label's value for the positive class. All others count as negative.
    pub positive: String,
    /// The label's first few values.
    pub labels: Vec<LabelCount>,
    /// The number of rows with other labels.
    pub other_labels: usize,
}

/// The number of rows with one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabelCount {
    /// The label as it is written.
    pub value: String,
    /// The number of rows.
    pub rows: usize,
}

fn as_map<S: Serializer>(counts: &[(String, usize)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().map(|(column, rows)| (column, rows)))
}

impl DataCheck {
    pub(super) fn new(partition: &Partition, schema: &Schema) -> Self {
        let pairs = partition.labels.iter().zip(&partition.label_counts);
        let labels: Vec<LabelCount> = pairs
            .map(|(value, rows)| LabelCount {
                value: value.clone(),
                rows: *rows,
            })
            .collect();
        let listed: usize = labels.iter().map(|label| label.rows).sum();
        Self {
            left_out: partition.dropped,
            lacking: partition.lacking.clone(),
            clipped: partition.clipped.iter().cloned().collect(),
            others: partition.others.iter().cloned().collect(),
            label: schema.label.clone(),
            positive: schema.positive.clone(),
            other_labels: partition.read - partition.dropped - listed,
            labels,
        }
    }
}
