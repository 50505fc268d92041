//! What became of the rows.

use crate::error::{DataError, add_label};
use crate::row::Row;
use crate::schema::Schema;

pub(crate) struct Tally {
    pub(crate) read: usize,
    pub(crate) dropped: usize,
    pub(crate) trained: usize,
    /// Of those trained on.
    pub(crate) positive: usize,
    /// The first few values of the label.
    pub(crate) labels: Vec<String>,
    /// How many rows have each of them.
    pub(crate) label_rows: Vec<usize>,
    /// By numeric column.
    clipped: Vec<usize>,
}

impl Tally {
    pub(crate) fn new(schema: &Schema) -> Self {
        Self {
            read: 0,
            dropped: 0,
            trained: 0,
            positive: 0,
            labels: Vec::new(),
            label_rows: Vec::new(),
            clipped: vec![0; schema.numeric.len()],
        }
    }

    /// Counts a row to be trained on.
    pub(crate) fn count(&mut self, row: &Row) {
        self.trained += 1;
        self.positive += usize::from(row.positive);
        if let Some(place) = add_label(&mut self.labels, &row.label) {
            self.label_rows.resize(self.labels.len(), 0);
            self.label_rows[place] += 1;
        }
        for column in &row.clipped {
            self.clipped[*column as usize] += 1;
        }
    }

    /// Whether anything can be learnt of what is trained on.
    pub(crate) fn check_classes(&mut self, file: &str, schema: &Schema) -> Result<(), DataError> {
        let file = file.to_owned();
        let (column, positive) = (schema.label.clone(), schema.positive.clone());
        if self.positive == 0 {
            Err(DataError::OnlyNegative {
                file,
                column,
                positive,
                seen: std::mem::take(&mut self.labels),
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

    /// Numeric columns with values beyond their bounds, and how many.
    pub(crate) fn clipped(&self, schema: &Schema) -> Vec<(String, usize)> {
        let names = schema.numeric.iter().map(|column| column.name.clone());
        let clipped = names.zip(self.clipped.iter().copied());
        clipped.filter(|(_, count)| *count > 0).collect()
    }
}

/// Whether a row is complete, of `read` rows of which `dropped` are not.
pub(crate) fn check_complete(file: &str, read: usize, dropped: usize) -> Result<(), DataError> {
    let file = file.to_owned();
    match read - dropped {
        0 => Err(DataError::AllDropped { file, read }),
        _ => Ok(()),
    }
}
