//! From the rows of a file, whatever its format, to everyone's part.

use crate::error::{DataError, FieldProblem, add_label, excerpt, first_few};
use crate::holdout::Gate;
use crate::partition::{Deal, Dealer, Partition};
use crate::row::{Party, Row};
use crate::schema::{Schema, Split};
use crate::tally::{Tally, check_complete};

/// Takes rows one at a time: holds some out, counts the others and deals them.
pub(crate) struct Intake<'a> {
    file: &'a str,
    schema: &'a Schema,
    split: &'a Split,
    gate: Gate<'a>,
    dealer: Dealer<'a>,
    tally: Tally,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(
        file: &'a str,
        schema: &'a Schema,
        deal: Deal<'a>,
    ) -> Result<Self, DataError> {
        Ok(Self {
            file,
            schema,
            split: deal.split,
            gate: Gate::new(file, schema, deal.holdout),
            dealer: Dealer::new(file, schema, deal.split, deal.nodes)?,
            tally: Tally::new(schema),
        })
    }

    /// Takes the next row, or drops it if a field of it is missing. Afterwards `row` may be another one.
    pub(crate) fn add(&mut self, row: Option<&mut Row>) -> Result<(), DataError> {
        self.tally.read += 1;
        let Some(row) = row else {
            self.tally.dropped += 1;
            return Ok(());
        };
        if !self.gate.pass(row)? {
            return Ok(());
        }
        self.tally.count(row);
        let node = match &row.party {
            Some(party) => Some(self.node_of(party)?),
            None => self.dealer.turn(),
        };
        self.dealer.push(node, &row.entries, row.positive)
    }

    fn node_of(&mut self, party: &Party) -> Result<usize, DataError> {
        let node = self.dealer.named(&party.name);
        node.ok_or_else(|| DataError::Field {
            file: self.file.to_owned(),
            place: party.place,
            column: match self.split {
                Split::Column { column, .. } => column.clone(),
                // Unreachable: no other split asks for parties.
                _ => String::new(),
            },
            problem: FieldProblem::UnknownNode {
                value: excerpt(&party.name),
                known: first_few(self.dealer.values().iter().map(String::as_str)),
            },
        })
    }

    /// How many rows have come, dropped ones among them.
    pub(crate) fn read(&self) -> usize {
        self.tally.read
    }

    /// Everyone's part, of a file with these columns that nobody named.
    pub(crate) fn finish(self, ignored: Vec<String>) -> Result<Partition, DataError> {
        let (file, schema, mut tally) = (self.file, self.schema, self.tally);
        check_complete(file, tally.read, tally.dropped)?;
        let held = self.gate.finish(tally.trained)?;
        tally.check_classes(file, schema)?;
        for label in held.iter().flat_map(|held| &held.labels) {
            add_label(&mut tally.labels, label);
        }
        Ok(Partition {
            parts: self.dealer.finish()?,
            test: held.map(|held| held.shard),
            read: tally.dropped + tally.trained,
            dropped: tally.dropped,
            positive: tally.positive,
            ignored,
            clipped: tally.clipped(schema),
            labels: tally.labels,
            label_rows: tally.label_rows,
        })
    }
}
