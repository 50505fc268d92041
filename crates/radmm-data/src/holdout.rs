//! Rows that are not trained on, but tested on.
//!
//! - *last*: the last so many complete rows of the file. A row is known to be none of them when so many complete rows
//!   have come behind it, so that no more than these are ever kept back.
//! - *share*: for each complete row, in the order of the file, u uniform in [0, 1); held out if u < share.
//!
//! A seed means the same rows for as long as the tag of its generator says v1: a test holds them.

use radmm::private::{Shard, ShardBuilder};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde::Serialize;
use thiserror::Error;

use crate::error::{DataError, add_label};
use crate::row::Row;
use crate::schema::Schema;
use crate::tally::check_complete;
use crate::waiting::Waiting;

/// Which complete rows of a table are held out: tested on, not trained on. Serialised as a study has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Holdout {
    /// The last rows of the file.
    Last {
        /// How many, at least one.
        #[serde(rename = "last")]
        rows: usize,
    },
    /// Each row with a probability.
    Share {
        /// The probability, above 0 and below 1.
        share: f64,
        /// Of the draw.
        seed: u64,
    },
}

/// Rows that are not trained on.
pub struct Held {
    /// Encoded by the schema of the others; there is at least one.
    pub shard: Shard,
    /// The first few values of their label, in order of appearance.
    pub labels: Vec<String>,
}

/// Why rows cannot be held out.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum HoldoutProblem {
    /// More than there are.
    #[error(
        "the last {rows} rows are held out of {complete} (without those dropped), and none is left to train on; lower [data.test] last"
    )]
    Last {
        /// To be held out.
        rows: usize,
        /// Rows without a missing field.
        complete: usize,
    },
    /// Nothing to test on.
    #[error("no rows are held out; raise [data.test] last, or leave [data.test] out")]
    Zero,
    /// A small share of few rows.
    #[error(
        "none of {complete} rows (without those dropped) is held out at share = {share}; raise [data.test] share or change its seed"
    )]
    NothingDrawn {
        /// Of the rows, on average.
        share: f64,
        /// Rows without a missing field.
        complete: usize,
    },
    /// A large share of few rows.
    #[error(
        "all {complete} rows (without those dropped) are held out at share = {share}, and none is left to train on; lower [data.test] share or change its seed"
    )]
    AllDrawn {
        /// Of the rows, on average.
        share: f64,
        /// Rows without a missing field.
        complete: usize,
    },
}

/// Lets rows to be trained on pass, late if need be, and keeps the others.
pub(crate) struct Gate<'a> {
    file: &'a str,
    rule: Option<Rule>,
    held: HeldRows,
}

enum Rule {
    Last {
        rows: usize,
        waiting: Box<Waiting>,
    },
    Share {
        share: f64,
        rng: Box<ChaCha20Rng>,
        complete: usize,
    },
}

impl<'a> Gate<'a> {
    pub(crate) fn new(file: &'a str, schema: &Schema, holdout: Option<&Holdout>) -> Self {
        let rule = holdout.map(|holdout| match *holdout {
            Holdout::Last { rows } => Rule::Last {
                rows,
                waiting: Box::default(),
            },
            Holdout::Share { share, seed } => Rule::Share {
                share,
                rng: Box::new(generator(seed)),
                complete: 0,
            },
        });
        Self {
            file,
            rule,
            held: HeldRows::new(schema),
        }
    }

    /// Takes a row. If it is true that one is to be trained on, that one is in `row` now.
    pub(crate) fn pass(&mut self, row: &mut Row) -> Result<bool, DataError> {
        match &mut self.rule {
            None => Ok(true),
            Some(Rule::Last { rows, waiting }) => {
                waiting.push(row);
                Ok(waiting.len() > *rows && waiting.pop(row))
            }
            Some(Rule::Share {
                share,
                rng,
                complete,
            }) => {
                *complete += 1;
                if rng.random::<f64>() < *share {
                    self.held.push(self.file, row)?;
                    return Ok(false);
                }
                Ok(true)
            }
        }
    }

    /// The rows held out, if any were to be, when `trained` others have passed.
    pub(crate) fn finish(mut self, trained: usize) -> Result<Option<Held>, DataError> {
        let problem = match self.rule {
            None => return Ok(None),
            Some(Rule::Last { rows, mut waiting }) => {
                let complete = trained + waiting.len();
                let mut row = Row::default();
                while waiting.pop(&mut row) {
                    self.held.push(self.file, &row)?;
                }
                (trained == 0).then_some(HoldoutProblem::Last { rows, complete })
            }
            Some(Rule::Share {
                share, complete, ..
            }) => match complete - trained {
                0 => Some(HoldoutProblem::NothingDrawn { share, complete }),
                _ if trained == 0 => Some(HoldoutProblem::AllDrawn { share, complete }),
                _ => None,
            },
        };
        match (problem, self.held.finish()) {
            (None, Some(held)) => Ok(Some(held)),
            (None, None) => Err(refuse(self.file, HoldoutProblem::Zero)),
            (Some(problem), _) => Err(refuse(self.file, problem)),
        }
    }
}

/// Held out so far.
struct HeldRows {
    builder: ShardBuilder,
    labels: Vec<String>,
}

impl HeldRows {
    fn new(schema: &Schema) -> Self {
        Self {
            builder: ShardBuilder::new(schema.width(), schema.rows),
            labels: Vec::new(),
        }
    }

    fn push(&mut self, file: &str, row: &Row) -> Result<(), DataError> {
        add_label(&mut self.labels, &row.label);
        let pushed = self.builder.push(&row.entries, row.positive);
        pushed.map_err(|cause| DataError::Row {
            file: file.to_owned(),
            cause,
        })
    }

    /// None if there are no rows.
    fn finish(self) -> Option<Held> {
        let shard = self.builder.finish().ok()?;
        let labels = self.labels;
        Some(Held { shard, labels })
    }
}

/// All rows of a file of its own.
pub(crate) struct TestRows<'a> {
    file: &'a str,
    read: usize,
    dropped: usize,
    held: HeldRows,
}

impl<'a> TestRows<'a> {
    pub(crate) fn new(file: &'a str, schema: &Schema) -> Self {
        Self {
            file,
            read: 0,
            dropped: 0,
            held: HeldRows::new(schema),
        }
    }

    /// Takes the next row, or drops it if a field of it is missing.
    pub(crate) fn add(&mut self, row: Option<&Row>) -> Result<(), DataError> {
        self.read += 1;
        match row {
            Some(row) => self.held.push(self.file, row),
            None => {
                self.dropped += 1;
                Ok(())
            }
        }
    }

    /// None if no row has come, and an error if all were dropped.
    pub(crate) fn finish(self) -> Result<Option<Held>, DataError> {
        if self.read > 0 {
            check_complete(self.file, self.read, self.dropped)?;
        }
        Ok(self.held.finish())
    }
}

fn refuse(file: &str, problem: HoldoutProblem) -> DataError {
    let file = file.to_owned();
    DataError::Holdout { file, problem }
}

fn generator(seed: u64) -> ChaCha20Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[16..].copy_from_slice(b"radmm test v1\0\0\0");
    ChaCha20Rng::from_seed(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::tests::schema;
    use crate::error::Place;
    use crate::row::Party;

    /// The lines of the rows that pass of `rows` rows, and how many are held out.
    fn passed(holdout: Holdout, rows: u64) -> Result<(Vec<u64>, usize), DataError> {
        let schema = schema();
        let mut gate = Gate::new("rows.csv", &schema, Some(&holdout));
        let mut lines = Vec::new();
        for line in 0..rows {
            let party = Party {
                name: line.to_string(),
                place: Place::Line(line),
            };
            let mut row = Row {
                entries: vec![(0, 1.0)],
                party: Some(party),
                ..Row::default()
            };
            if gate.pass(&mut row)?
                && let Some(Place::Line(line)) = row.party.map(|party| party.place)
            {
                lines.push(line);
            }
        }
        let held = gate.finish(lines.len())?;
        Ok((lines, held.map_or(0, |held| held.shard.rows())))
    }

    #[test]
    fn all_but_the_last_rows_pass_in_order() {
        let (lines, held) = passed(Holdout::Last { rows: 3 }, 7).unwrap();
        assert_eq!((lines, held), (vec![0, 1, 2, 3], 3));
    }

    #[test]
    fn no_more_rows_wait_than_are_held_out() {
        let schema = schema();
        let mut gate = Gate::new("rows.csv", &schema, Some(&Holdout::Last { rows: 2 }));
        for _ in 0..100 {
            gate.pass(&mut Row::default()).unwrap();
            let Some(Rule::Last { waiting, .. }) = &gate.rule else {
                panic!("another rule");
            };
            assert!(waiting.len() <= 2);
        }
    }

    #[test]
    fn a_seed_means_the_same_rows_for_ever() {
        let share = |seed| Holdout::Share { share: 0.4, seed };
        let (lines, held) = passed(share(1), 10).unwrap();
        assert_eq!((lines, held), (vec![0, 6, 7, 9], 6));
        assert_ne!(
            passed(share(1), 100).unwrap(),
            passed(share(2), 100).unwrap()
        );
    }

    #[test]
    fn a_share_of_the_rows_is_held_out() {
        // Binomial with mean 2,000 and deviation 40: six deviations, a false failure once in 10⁸ choices of a seed.
        let (_, held) = passed(
            Holdout::Share {
                share: 0.2,
                seed: 5,
            },
            10_000,
        )
        .unwrap();
        assert!(held.abs_diff(2000) < 240, "{held}");
    }
}
