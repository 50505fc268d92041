//! Counts of the rows of a file.

use std::cmp::Reverse;

use super::row::Row;
use crate::encode::Lacking;
use crate::error::{DataError, MAX_LISTED, excerpt};
use crate::schema::{Schema, Split};

/// Counts of the rows of a file, and what they say about its columns.
pub(crate) struct RowCounts {
    pub(crate) read: usize,
    pub(crate) dropped: usize,
    pub(crate) trained: usize,
    /// The training rows of the positive class.
    pub(crate) positive: usize,
    /// The first few different labels.
    pub(crate) labels: Vec<String>,
    /// The number of training rows with each of these labels.
    pub(crate) label_counts: Vec<usize>,
    /// The number of values beyond their bounds, by numeric column, and then of those that count as missing because they cannot be
    /// encoded, by feature.
    noted: Vec<usize>,
    /// The names of the columns that a row needs: features, the label, and the column of the split if there is one.
    needed: Vec<String>,
    /// The number of dropped rows that lack each of them.
    lacking: Vec<usize>,
}

impl RowCounts {
    pub(crate) fn new(schema: &Schema, split: Option<&Split>) -> Self {
        let numeric = schema.numeric.iter().map(|column| &column.name);
        let categorical = schema.categorical.iter().map(|column| &column.name);
        let split_by = match split {
            Some(Split::Column { column, .. }) => Some(column),
            _ => None,
        };
        let needed = numeric.chain(categorical).chain([&schema.label]);
        let needed: Vec<String> = needed.chain(split_by).cloned().collect();
        Self {
            lacking: vec![0; needed.len()],
            needed,
            read: 0,
            dropped: 0,
            trained: 0,
            positive: 0,
            labels: Vec::new(),
            label_counts: Vec::new(),
            noted: vec![0; 2 * schema.numeric.len() + schema.categorical.len()],
        }
    }

    /// Counts a row that is dropped.
    pub(crate) fn drop_row(&mut self, lacking: &Lacking) {
        self.dropped += 1;
        for column in lacking.columns() {
            self.lacking[*column as usize] += 1;
        }
    }

    /// Adds numbers of dropped rows that lack some columns.
    pub(crate) fn add_lacking(&mut self, lacking: &[(String, usize)]) {
        for (name, rows) in lacking {
            if let Some(column) = self.needed.iter().position(|needed| needed == name) {
                self.lacking[column] += rows;
            }
        }
    }

    /// Returns the columns without whose values rows were dropped, and how many rows lack each, most first.
    pub(crate) fn lacking(&self) -> Vec<(String, usize)> {
        let mut lacking = named(self.needed.iter(), &self.lacking);
        lacking.sort_by_key(|(_, rows)| Reverse(*rows));
        lacking
    }

    /// Checks that a row is left.
    pub(crate) fn check_complete(&self, file: &str) -> Result<(), DataError> {
        match self.read - self.dropped {
            0 => Err(DataError::AllDropped {
                file: file.to_owned(),
                read: self.read,
                lacking: self.lacking(),
            }),
            _ => Ok(()),
        }
    }

    /// Counts a training row.
    pub(crate) fn count(&mut self, row: &Row) {
        self.trained += 1;
        self.positive += usize::from(row.positive);
        if let Some(index) = add_label(&mut self.labels, &row.label) {
            self.label_counts.resize(self.labels.len(), 0);
            self.label_counts[index] += 1;
        }
        for note in &row.noted {
            self.noted[*note as usize] += 1;
        }
    }

    /// Checks that both classes occur among the training rows.
    pub(crate) fn check_classes(&mut self, file: &str, schema: &Schema) -> Result<(), DataError> {
        let file = file.to_owned();
        let (column, positive) = (schema.label.clone(), schema.positive.clone());
        if self.positive == 0 {
            Err(DataError::OnlyNegative {
                file,
                column,
                positive,
                labels: std::mem::take(&mut self.labels),
            })
        } else if self.positive == self.trained {
            Err(DataError::OnlyPositive {
                file,
                column,
                positive,
            })
        } else {
            Ok(())
        }
    }

    /// Returns the numeric columns with values beyond their bounds, and how many.
    pub(crate) fn clipped(&self, schema: &Schema) -> Vec<(String, usize)> {
        let names = schema.numeric.iter().map(|column| &column.name);
        named(names, &self.noted)
    }

    /// Returns the features with values that count as missing because they cannot be encoded, and how many.
    pub(crate) fn others(&self, schema: &Schema) -> Vec<(String, usize)> {
        let numeric = schema.numeric.iter().map(|column| &column.name);
        let categorical = schema.categorical.iter().map(|column| &column.name);
        named(
            numeric.chain(categorical),
            &self.noted[schema.numeric.len()..],
        )
    }
}

/// Returns the counts that are not zero, with the names of their columns.
fn named<'a>(names: impl Iterator<Item = &'a String>, counts: &[usize]) -> Vec<(String, usize)> {
    let counts = names.cloned().zip(counts.iter().copied());
    counts.filter(|(_, count)| *count > 0).collect()
}

/// Adds a label to the first few different ones, and returns its index; `None` if it is not one of them.
pub(crate) fn add_label(labels: &mut Vec<String>, label: &str) -> Option<usize> {
    let index = labels.iter().position(|known| known == label);
    if index.is_none() && labels.len() < MAX_LISTED {
        labels.push(excerpt(label));
        return Some(labels.len() - 1);
    }
    index
}
