//! A buffer of the last rows of a file, as far as it is read.

use std::collections::HashMap;

use radmm::curator::{PassFailed, RowMemory};

use super::block_queue::BlockQueue;
use super::row::{Row, SplitValue};
use super::row_buffer::RowBuffer;
use crate::error::MAX_LISTED;

/// A FIFO buffer of rows that may be among the last ones of the file.
///
/// A row needs hardly more memory here than in a shard: labels and split values are interned. Labels after the first
/// few different ones lose their text, because only the first few in the order of the file are ever reported. A split
/// value leaves with the position of its first row, because an unknown value is reported at that row.
#[derive(Default)]
pub(crate) struct TailBuffer {
    rows: RowBuffer,
    /// The first few different labels.
    labels: Vec<String>,
    label_indices: BlockQueue<u8>,
    /// The number of noted values of each row.
    note_counts: BlockQueue<u32>,
    /// The notes on the values.
    noted: BlockQueue<u32>,
    /// The different split values, each with the position of its first row.
    split_values: Vec<SplitValue>,
    /// The index of each split value.
    split_value_index: HashMap<String, u32>,
    split_value_indices: BlockQueue<u32>,
}

impl TailBuffer {
    /// Creates a buffer that stores the rows that exceed this memory.
    pub(crate) fn within(memory: Option<&RowMemory>) -> Self {
        Self {
            rows: RowBuffer::within(memory),
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn push(&mut self, row: &Row) -> Result<(), PassFailed> {
        self.rows.push(&row.entries, row.positive)?;
        let label = self.label_index(&row.label);
        self.label_indices.push(label);
        // Columns are numbered in 32 bits.
        self.note_counts.push(row.noted.len() as u32);
        row.noted.iter().for_each(|column| self.noted.push(*column));
        if let Some(split_value) = &row.split_value {
            let index = self.intern(split_value);
            self.split_value_indices.push(index);
        }
        Ok(())
    }

    /// Removes the first row into `row`, and returns whether there was one.
    pub(crate) fn pop(&mut self, row: &mut Row) -> Result<bool, PassFailed> {
        let Some(positive) = self.rows.pop(&mut row.entries)? else {
            return Ok(false);
        };
        row.positive = positive;
        row.label.clear();
        let label = self.label_indices.pop();
        let label = label.and_then(|label| self.labels.get(usize::from(label)));
        row.label.push_str(label.map_or("", String::as_str));
        row.noted.clear();
        for _ in 0..self.note_counts.pop().unwrap_or(0) {
            row.noted.extend(self.noted.pop());
        }
        row.split_value = self
            .split_value_indices
            .pop()
            .map(|index| self.split_values[index as usize].clone());
        Ok(true)
    }

    fn label_index(&mut self, label: &str) -> u8 {
        let known = self.labels.iter().position(|known| known == label);
        // A label beyond the first few gets an index that no label has.
        let index = known.unwrap_or(self.labels.len());
        if index == self.labels.len() && index < MAX_LISTED {
            self.labels.push(label.to_owned());
        }
        index as u8
    }

    fn intern(&mut self, split_value: &SplitValue) -> u32 {
        let value = &split_value.value;
        if let Some(index) = self.split_value_index.get(value) {
            return *index;
        }
        // Each value has a row in memory, so there are fewer than 2³².
        let index = self.split_values.len() as u32;
        self.split_values.push(split_value.clone());
        self.split_value_index.insert(value.clone(), index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FilePosition;

    fn row(n: u32) -> Row {
        Row {
            entries: vec![(n, 1.0), (n + 1, -0.5)],
            positive: n.is_multiple_of(3),
            label: format!("label {}", n % 7),
            noted: (0..n % 4).collect(),
            split_value: Some(SplitValue {
                value: format!("ward {}", n % 5),
                file: "rows.csv".into(),
                // The first row of the ward.
                position: FilePosition::Line(u64::from(n % 5) + 2),
            }),
        }
    }

    fn described(row: &Row) -> String {
        let split_value = row.split_value.as_ref();
        let split_value = split_value.map(|split| (&split.value, split.position));
        let Row {
            entries,
            positive,
            label,
            noted,
            ..
        } = row;
        format!("{entries:?} {positive} {label} {noted:?} {split_value:?}")
    }

    #[test]
    fn rows_leave_in_order_with_their_labels_clips_and_split_values() {
        let mut buffer = TailBuffer::default();
        let mut first = Row::default();
        for n in 0..100 {
            buffer.push(&row(n)).unwrap();
            if n >= 10 {
                assert!(buffer.pop(&mut first).unwrap());
                assert_eq!(described(&first), described(&row(n - 10)));
            }
        }
        assert_eq!(buffer.len(), 10);
    }

    #[test]
    fn a_row_without_a_split_value_leaves_without_one() {
        let mut buffer = TailBuffer::default();
        let mut first = row(1);
        buffer.push(&Row::default()).unwrap();
        assert!(buffer.pop(&mut first).unwrap());
        assert_eq!(described(&first), described(&Row::default()));
        assert!(!buffer.pop(&mut first).unwrap());
    }

    #[test]
    fn only_the_first_few_different_labels_keep_their_text() {
        let mut buffer = TailBuffer::default();
        let labelled = |n: usize| Row {
            label: n.to_string(),
            ..Row::default()
        };
        (0..1000).for_each(|n| buffer.push(&labelled(n)).unwrap());
        assert_eq!(buffer.labels.len(), MAX_LISTED);
        let mut first = Row::default();
        for n in 0..1000 {
            buffer.pop(&mut first).unwrap();
            let expected = if n < MAX_LISTED {
                n.to_string()
            } else {
                String::new()
            };
            assert_eq!(first.label, expected);
        }
    }
}
