//! What a party may see of its own rows before it takes part.
//!
//! Privacy: this is computed from rows, and nothing was paid for it. It is for the eyes of whoever may see the rows: no notice,
//! status, statement or transcript has a place for it.

use std::collections::BTreeMap;

use radmm_data::{Partition, Schema};
use serde::Serialize;

/// What became of the fields of a party's file, counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// Rows that were left out because a field was missing.
    pub left_out: usize,
    /// Numeric columns with values beyond the study's bounds, and how many were taken to the nearer bound.
    pub clipped: BTreeMap<String, usize>,
    /// The column of the label.
    pub label: String,
    /// Its value for the positive class; all others count as negative.
    pub positive: String,
    /// Its first few values, and how many rows have each.
    pub labels: Vec<Labelled>,
    /// How many rows have yet other values.
    pub other_labels: usize,
}

/// A value of the label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Labelled {
    /// As it is written.
    pub value: String,
    /// How many rows have it.
    pub rows: usize,
}

impl Seen {
    pub(crate) fn new(partition: &Partition, schema: &Schema) -> Self {
        let pairs = partition.labels.iter().zip(&partition.label_counts);
        let labels: Vec<Labelled> = pairs
            .map(|(value, rows)| Labelled {
                value: value.clone(),
                rows: *rows,
            })
            .collect();
        let named: usize = labels.iter().map(|one| one.rows).sum();
        Self {
            left_out: partition.dropped,
            clipped: partition.clipped.iter().cloned().collect(),
            label: schema.label.clone(),
            positive: schema.positive.clone(),
            other_labels: partition.read - partition.dropped - named,
            labels,
        }
    }
}
