//! Tables in CSV files.

use std::io::Read;

use crate::encode::Encoder;
use crate::error::{DataError, FieldProblem, add_label, excerpt, first_few, nearest};
use crate::holdout::{Gate, Held, HeldRows, Row};
use crate::partition::{Deal, Dealer, Partition};
use crate::records::{Column, Record, Records};
use crate::schema::{Schema, Split};

/// [`deal_csv`] with no rows held out.
pub fn read_csv(
    source: impl Read,
    file: &str,
    schema: &Schema,
    split: &Split,
    nodes: usize,
) -> Result<Partition, DataError> {
    let deal = Deal {
        split,
        nodes,
        holdout: None,
    };
    deal_csv(source, file, schema, deal)
}

/// Reads a table, encodes its rows, holds some out and deals the others out to nodes, in one pass.
///
/// The first line names the columns. Fields are separated by commas, quoted as in RFC 4180, and trimmed. Columns that
/// neither the schema nor the split names are ignored; a row with a missing value in one of the others is dropped.
/// `file` is how errors call the source.
pub fn deal_csv(
    source: impl Read,
    file: &str,
    schema: &Schema,
    deal: Deal<'_>,
) -> Result<Partition, DataError> {
    let mut dealer = Dealer::new(file, schema, deal.split, deal.nodes)?;
    let mut gate = Gate::new(file, schema, deal.holdout);
    let mut records = Records::new(source, file)?;
    let header = Header::of(records.next()?, file)?;
    let encoder = Encoder::new(schema, |name| header.find(name))?;
    let split_by = match deal.split {
        Split::Column { column, .. } => Some(header.find(column)?),
        Split::RoundRobin
        | Split::Shuffled { .. }
        | Split::Sizes { .. }
        | Split::Dirichlet { .. } => None,
    };
    let used: Vec<Column<'_>> = encoder.columns().chain(split_by).collect();

    let mut tally = Tally {
        clipped: vec![0; schema.numeric.len()],
        ..Tally::default()
    };
    let mut row = Row::default();
    while let Some(record) = records.next()? {
        header.check_width(&record)?;
        tally.read += 1;
        if is_missing(&record, &used, &schema.missing)? {
            tally.dropped += 1;
            continue;
        }
        row.fill(&encoder, &record, split_by)?;
        let Some(passed) = gate.pass(std::mem::take(&mut row))? else {
            continue;
        };
        row = passed;
        tally.count(&row);
        let node = match split_by {
            Some(column) => {
                let node = dealer.named(&row.party);
                let unknown = || DataError::Field {
                    file: file.to_owned(),
                    line: row.line,
                    column: column.name.to_owned(),
                    problem: no_node_for(&row.party, dealer.values()),
                };
                Some(node.ok_or_else(unknown)?)
            }
            None => dealer.turn(),
        };
        dealer.push(node, &row.entries, row.positive)?;
    }
    tally.check_complete(file)?;
    let held = gate.finish(tally.trained)?;
    tally.check_classes(file, schema)?;
    let names = schema.numeric.iter().map(|column| column.name.clone());
    let clipped = names.zip(tally.clipped).filter(|(_, count)| *count > 0);
    let mut labels = tally.labels;
    for label in held.iter().flat_map(|held| &held.labels) {
        add_label(&mut labels, label);
    }
    Ok(Partition {
        parts: dealer.finish()?,
        test: held.map(|held| held.shard),
        read: tally.dropped + tally.trained,
        dropped: tally.dropped,
        positive: tally.positive,
        ignored: header.without(&used),
        labels,
        clipped: clipped.collect(),
    })
}

/// Reads a table of rows to test on. The split has no say in it: its column may be missing.
pub fn read_test_csv(source: impl Read, file: &str, schema: &Schema) -> Result<Held, DataError> {
    let mut records = Records::new(source, file)?;
    let header = Header::of(records.next()?, file)?;
    let encoder = Encoder::new(schema, |name| header.find(name))?;
    let used: Vec<Column<'_>> = encoder.columns().collect();
    let mut tally = Tally::default();
    let mut held = HeldRows::new(schema);
    let mut row = Row::default();
    while let Some(record) = records.next()? {
        header.check_width(&record)?;
        tally.read += 1;
        if is_missing(&record, &used, &schema.missing)? {
            tally.dropped += 1;
            continue;
        }
        row.fill(&encoder, &record, None)?;
        held.push(file, &row)?;
    }
    tally.check_complete(file)?;
    // A complete row has been pushed.
    held.finish().ok_or_else(|| DataError::NoRows {
        file: file.to_owned(),
    })
}

impl Row {
    fn fill(
        &mut self,
        encoder: &Encoder<'_>,
        record: &Record<'_>,
        split_by: Option<Column<'_>>,
    ) -> Result<(), DataError> {
        self.clipped.clear();
        self.clipped.resize(encoder.numeric(), 0);
        self.positive = encoder.encode(record, &mut self.entries, &mut self.clipped)?;
        self.line = record.line();
        self.label.clear();
        self.label.push_str(record.field(encoder.label())?);
        self.party.clear();
        if let Some(column) = split_by {
            self.party.push_str(record.field(column)?);
        }
        Ok(())
    }
}

/// The names in the first line.
struct Header<'a> {
    file: &'a str,
    line: u64,
    names: Vec<String>,
}

impl<'a> Header<'a> {
    fn of(record: Option<Record<'_>>, file: &'a str) -> Result<Self, DataError> {
        let Some(record) = record else {
            let file = file.to_owned();
            return Err(DataError::Empty { file });
        };
        let line = record.line();
        let names = record
            .texts()
            .map_err(|position| DataError::HeaderNotUtf8 {
                file: file.to_owned(),
                line,
                number: position + 1,
            })?;
        let names = names.into_iter().map(str::to_owned).collect();
        Ok(Self { file, line, names })
    }

    fn find<'n>(&self, name: &'n str) -> Result<Column<'n>, DataError> {
        let (file, line) = (self.file.to_owned(), self.line);
        let column = name.to_owned();
        let mut found = (0..self.names.len()).filter(|k| self.names[*k] == name);
        match (found.next(), found.next()) {
            (Some(position), None) => Ok(Column { name, position }),
            (Some(_), Some(_)) => Err(DataError::DuplicateColumn { file, line, column }),
            (None, _) => Err(DataError::NoSuchColumn {
                file,
                line,
                column,
                nearest: nearest(name, self.names.iter().map(String::as_str)),
                header: first_few(self.names.iter().map(String::as_str)),
            }),
        }
    }

    fn check_width(&self, record: &Record<'_>) -> Result<(), DataError> {
        if record.width() == self.names.len() {
            return Ok(());
        }
        Err(DataError::WrongWidth {
            file: self.file.to_owned(),
            line: record.line(),
            expected: self.names.len(),
            got: record.width(),
        })
    }

    fn without(self, used: &[Column<'_>]) -> Vec<String> {
        let mut ignored = vec![true; self.names.len()];
        for column in used {
            ignored[column.position] = false;
        }
        let names = self.names.into_iter().zip(ignored);
        names
            .filter_map(|(name, ignored)| ignored.then_some(name))
            .collect()
    }
}

/// Looked at before anything is parsed: what stands beside a missing value does not matter.
fn is_missing(
    record: &Record<'_>,
    used: &[Column<'_>],
    missing: &[String],
) -> Result<bool, DataError> {
    for column in used {
        let field = record.field(*column)?;
        if missing.iter().any(|value| value == field) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn no_node_for(value: &str, values: &[String]) -> FieldProblem {
    FieldProblem::UnknownNode {
        value: excerpt(value),
        known: first_few(values.iter().map(String::as_str)),
    }
}

/// What became of the rows.
#[derive(Default)]
struct Tally {
    read: usize,
    dropped: usize,
    trained: usize,
    /// Of those trained on.
    positive: usize,
    /// The first few values of the label.
    labels: Vec<String>,
    /// By numeric column.
    clipped: Vec<usize>,
}

impl Tally {
    /// Counts a row to be trained on.
    fn count(&mut self, row: &Row) {
        self.trained += 1;
        self.positive += usize::from(row.positive);
        add_label(&mut self.labels, &row.label);
        for (count, clipped) in self.clipped.iter_mut().zip(&row.clipped) {
            *count += clipped;
        }
    }

    fn check_complete(&self, file: &str) -> Result<(), DataError> {
        let (file, read) = (file.to_owned(), self.read);
        match read - self.dropped {
            0 if read == 0 => Err(DataError::NoRows { file }),
            0 => Err(DataError::AllDropped { file, read }),
            _ => Ok(()),
        }
    }

    fn check_classes(&mut self, file: &str, schema: &Schema) -> Result<(), DataError> {
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
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::schema::{Categorical, Numeric};
    use radmm::private::NormPolicy;

    /// Age within [0, 100], smoker yes or no, an intercept; ill or not.
    pub(crate) fn schema() -> Schema {
        Schema {
            label: "ill".into(),
            positive: "yes".into(),
            missing: vec!["?".into(), "".into()],
            rows: NormPolicy::Unit,
            intercept: true,
            numeric: vec![Numeric::within("age", 0.0, 100.0)],
            categorical: vec![Categorical {
                name: "smoker".into(),
                values: vec!["yes".into(), "no".into()],
            }],
        }
    }

    /// The kept rows of a table as a shard would get them.
    pub(crate) fn encoded(text: &str, schema: &Schema) -> Vec<(Vec<(u32, f64)>, bool)> {
        let mut records = Records::new(text.as_bytes(), "rows.csv").unwrap();
        let header = Header::of(records.next().unwrap(), "rows.csv").unwrap();
        let encoder = Encoder::new(schema, |name| header.find(name)).unwrap();
        let used: Vec<_> = encoder.columns().collect();
        let mut rows = Vec::new();
        while let Some(record) = records.next().unwrap() {
            if !is_missing(&record, &used, &schema.missing).unwrap() {
                let mut entries = Vec::new();
                let mut clipped = vec![0; schema.numeric.len()];
                let positive = encoder.encode(&record, &mut entries, &mut clipped).unwrap();
                rows.push((entries, positive));
            }
        }
        rows
    }

    #[test]
    fn a_row_is_its_scaled_numbers_ones_for_its_values_and_a_one() {
        assert_eq!(
            encoded(
                "age,smoker,ill\n25,no,yes\n120,yes,no\n-1,no,maybe\n",
                &schema()
            ),
            [
                (vec![(0, 0.25), (2, 1.0), (3, 1.0)], true),
                (vec![(0, 1.0), (1, 1.0), (3, 1.0)], false),
                (vec![(0, 0.0), (2, 1.0), (3, 1.0)], false),
            ]
        );
    }

    #[test]
    fn without_an_intercept_there_is_no_one_at_the_end() {
        let schema = Schema {
            intercept: false,
            ..schema()
        };
        let rows = encoded("age,smoker,ill\n50,yes,yes\n", &schema);
        assert_eq!(rows, [(vec![(0, 0.5), (1, 1.0)], true)]);
    }

    #[test]
    fn vocabularies_follow_one_another() {
        let mut schema = schema();
        schema.categorical.push(Categorical {
            name: "sex".into(),
            values: vec!["f".into(), "m".into()],
        });
        let rows = encoded("sex,age,ill,smoker\nm,50,yes,yes\nf,50,yes,no\n", &schema);
        let columns = |r: usize| rows[r].0.iter().map(|e| e.0).collect::<Vec<_>>();
        assert_eq!(columns(0), [0, 1, 4, 5]);
        assert_eq!(columns(1), [0, 2, 3, 5]);
    }

    #[test]
    fn the_order_of_the_files_columns_and_white_space_do_not_matter() {
        let plain = encoded("age,smoker,ill\n25,no,yes\n", &schema());
        for text in [
            "ill,age,smoker\nyes,25,no\n",
            " age ,\tsmoker, ill\r\n 25, no ,yes \r\n",
            "name,age,smoker,ill\nAda,\" 25\",\"no\",\"yes\"",
        ] {
            assert_eq!(encoded(text, &schema()), plain, "{text:?}");
        }
    }

    #[test]
    fn a_row_with_a_missing_value_is_dropped_whatever_else_it_holds() {
        let text = "age,smoker,ill\n?,no,yes\n25,,no\n25,no,?\nx,?,no\n25,no,yes\n";
        assert_eq!(encoded(text, &schema()).len(), 1);
    }
}
