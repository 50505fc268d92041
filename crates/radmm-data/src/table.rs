//! Encoded rows that wait for the last one before they know their node.
//!
//! A row holds one number for each numeric column, one code for each categorical column and its class; which encoded
//! columns these are is the same for all rows and kept once. That is less than a shard needs for the row.

use crate::schema::Schema;

/// Neither `Debug`, `Clone` nor `Serialize`: rows go from here to shards and nowhere else.
pub(crate) struct Table {
    numeric: usize,
    categorical: usize,
    intercept: Option<u32>,
    numbers: Vec<f64>,
    codes: Vec<u32>,
    positive: Vec<bool>,
}

impl Table {
    pub(crate) fn new(schema: &Schema) -> Self {
        Self {
            numeric: schema.numeric.len(),
            categorical: schema.categorical.len(),
            intercept: schema.intercept.then(|| schema.columns().len() as u32 - 1),
            numbers: Vec::new(),
            codes: Vec::new(),
            positive: Vec::new(),
        }
    }

    /// Adds a row as encoded: numeric columns, categorical columns, the intercept.
    pub(crate) fn push(&mut self, entries: &[(u32, f64)], positive: bool) {
        let (numbers, rest) = entries.split_at(self.numeric);
        let codes = &rest[..self.categorical];
        self.numbers.extend(numbers.iter().map(|entry| entry.1));
        self.codes.extend(codes.iter().map(|entry| entry.0));
        self.positive.push(positive);
    }

    /// Replaces `entries` by those of row `r`.
    pub(crate) fn copy_row(&self, r: usize, entries: &mut Vec<(u32, f64)>) {
        let numbers = &self.numbers[r * self.numeric..][..self.numeric];
        let codes = &self.codes[r * self.categorical..][..self.categorical];
        entries.clear();
        entries.extend((0..).zip(numbers.iter().copied()));
        entries.extend(codes.iter().map(|code| (*code, 1.0)));
        entries.extend(self.intercept.map(|at| (at, 1.0)));
    }

    /// The class of each row.
    pub(crate) fn positive(&self) -> &[bool] {
        &self.positive
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::tests::{encoded, schema};

    #[test]
    fn rows_come_out_as_they_went_in() {
        for intercept in [true, false] {
            let schema = Schema {
                intercept,
                ..schema()
            };
            let rows = encoded("age,smoker,ill\n0,no,no\n50,yes,yes\n", &schema);
            let mut table = Table::new(&schema);
            for (entries, positive) in &rows {
                table.push(entries, *positive);
            }
            let mut entries = Vec::new();
            for (r, row) in rows.iter().enumerate() {
                table.copy_row(r, &mut entries);
                assert_eq!((&entries, table.positive()[r]), (&row.0, row.1));
            }
        }
    }
}
