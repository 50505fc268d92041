//! Encoded rows that wait for the last one before they know their node.
//!
//! A row holds one number for each numeric column with bounds, one code for each column of bins or words, and its
//! class; which encoded columns the numbers are is the same for all rows and kept once. That is less than a shard
//! needs for the row.

use crate::schema::{Scale, Schema};

/// Neither `Debug`, `Clone` nor `Serialize`: rows go from here to shards and nowhere else.
pub(crate) struct Table {
    /// For each column of the file the encoded column of its numbers, or none if it has codes.
    columns: Vec<Option<u32>>,
    /// Columns with numbers, and with codes.
    widths: [usize; 2],
    intercept: Option<u32>,
    numbers: Vec<f64>,
    codes: Vec<u32>,
    positive: Vec<bool>,
}

impl Table {
    pub(crate) fn new(schema: &Schema) -> Self {
        let mut next = 0;
        let numeric = schema.numeric.iter().map(|column| {
            let first = next;
            next += column.scale.width();
            matches!(column.scale, Scale::Bounds { .. }).then_some(first)
        });
        let mut columns: Vec<Option<u32>> = numeric.collect();
        let numbers = columns.iter().flatten().count();
        columns.resize(columns.len() + schema.categorical.len(), None);
        Self {
            widths: [numbers, columns.len() - numbers],
            columns,
            intercept: schema.intercept.then(|| schema.columns().len() as u32 - 1),
            numbers: Vec::new(),
            codes: Vec::new(),
            positive: Vec::new(),
        }
    }

    /// Adds a row as encoded: numeric columns, categorical columns, the intercept.
    pub(crate) fn push(&mut self, entries: &[(u32, f64)], positive: bool) {
        for (column, (at, value)) in self.columns.iter().zip(entries) {
            match column {
                Some(_) => self.numbers.push(*value),
                None => self.codes.push(*at),
            }
        }
        self.positive.push(positive);
    }

    /// Replaces `entries` by those of row `r`.
    pub(crate) fn copy_row(&self, r: usize, entries: &mut Vec<(u32, f64)>) {
        let mut numbers = self.numbers[r * self.widths[0]..].iter();
        let mut codes = self.codes[r * self.widths[1]..].iter();
        entries.clear();
        for column in &self.columns {
            entries.extend(match column {
                Some(at) => numbers.next().map(|number| (*at, *number)),
                None => codes.next().map(|code| (*code, 1.0)),
            });
        }
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
    use crate::schema::Numeric;

    #[test]
    fn rows_come_out_as_they_went_in() {
        for intercept in [true, false] {
            let mut schema = Schema {
                intercept,
                ..schema()
            };
            schema
                .numeric
                .insert(0, Numeric::binned("bmi", [20.0, 25.0]));
            schema.numeric.push(Numeric::within("pulse", 0.0, 200.0));
            let text = "age,bmi,pulse,smoker,ill\n0,25,70,no,no\n50,18,100,yes,yes\n";
            let rows = encoded(text, &schema);
            assert_eq!(rows[0].0[..2], [(2, 1.0), (3, 0.0)]);
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
