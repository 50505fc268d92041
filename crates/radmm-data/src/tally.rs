//! What became of the rows.

use crate::error::{DataError, FEW, excerpt};
use crate::partition::{Part, Partition};
use crate::schema::Schema;

pub(crate) struct Tally {
    pub(crate) read: usize,
    pub(crate) dropped: usize,
    positive: usize,
    /// The first few values of the label.
    labels: Vec<String>,
    /// By numeric column.
    pub(crate) clipped: Vec<usize>,
}

impl Tally {
    pub(crate) fn new(numeric: usize) -> Self {
        Self {
            read: 0,
            dropped: 0,
            positive: 0,
            labels: Vec::new(),
            clipped: vec![0; numeric],
        }
    }

    pub(crate) fn count(&mut self, positive: bool, label: &str) {
        self.positive += usize::from(positive);
        if self.labels.len() < FEW && !self.labels.iter().any(|seen| seen == label) {
            self.labels.push(excerpt(label));
        }
    }

    /// Whether anything can be learnt of what was kept.
    pub(crate) fn check(&mut self, file: &str, schema: &Schema) -> Result<(), DataError> {
        let file = file.to_owned();
        let (column, positive) = (schema.label.clone(), schema.positive.clone());
        let kept = self.read - self.dropped;
        if kept == 0 {
            let read = self.read;
            Err(DataError::AllDropped { file, read })
        } else if self.positive == 0 {
            Err(DataError::OnlyNegative {
                file,
                column,
                positive,
                seen: std::mem::take(&mut self.labels),
            })
        } else if self.positive == kept {
            Err(DataError::OnlyPositive {
                file,
                column,
                positive,
            })
        } else {
            Ok(())
        }
    }

    pub(crate) fn partition(
        self,
        parts: Vec<Part>,
        schema: &Schema,
        ignored: Vec<String>,
    ) -> Partition {
        let names = schema.numeric.iter().map(|column| column.name.clone());
        let clipped = names.zip(self.clipped).filter(|(_, count)| *count > 0);
        Partition {
            parts,
            read: self.read,
            dropped: self.dropped,
            positive: self.positive,
            ignored,
            labels: self.labels,
            clipped: clipped.collect(),
        }
    }
}
