//! Rows held out for testing.
//!
//! - *last*: the last n complete rows of the file. A row is a training row as soon as n complete rows have followed it,
//!   so that no more than n rows are ever buffered.
//! - *share*: for each complete row, in the order of the file, u is uniform in [0, 1); the row is held out if u <
//!   share.
//!
//! A seed means the same rows as long as the tag of its generator says v1; a test pins them.

use radmm::curator::{RowMemory, Shard, ShardBuilder};
use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use super::counts::{RowCounts, add_label};
use super::row::{Row, TableRow};
use super::seeded_rng;
use super::tail_buffer::TailBuffer;
use crate::error::DataError;
use crate::error_kinds::HoldoutError;
use crate::schema::Schema;

/// The tag of the generator of holdouts.
const TAG: &[u8; 16] = b"radmm test v1\0\0\0";

/// The rule that holds complete rows out for testing. Serialised as in a study file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Holdout {
    /// The last rows of the file are held out.
    Last {
        /// The number of rows, at least one.
        #[serde(rename = "last")]
        rows: usize,
    },
    /// Each row is held out with a probability.
    Share {
        /// The probability, above 0 and below 1.
        share: f64,
        /// The seed of the draw.
        seed: u64,
    },
}

/// Rows for testing.
pub struct TestSet {
    /// The rows, encoded as training rows are; there is at least one.
    pub shard: Shard,
    /// The number of rows of the positive class.
    pub positive: usize,
    /// The first few different labels, in order of appearance.
    pub labels: Vec<String>,
}

/// A filter that passes training rows, late if need be, and keeps the held-out ones.
pub(crate) struct HoldoutFilter<'a> {
    file: &'a str,
    state: Option<FilterState>,
    held_out: TestSetBuilder,
}

enum FilterState {
    Last {
        rows: usize,
        tail: Box<TailBuffer>,
    },
    Share {
        share: f64,
        rng: Box<ChaCha20Rng>,
        complete: usize,
    },
}

impl<'a> HoldoutFilter<'a> {
    pub(crate) fn new(
        file: &'a str,
        schema: &Schema,
        holdout: Option<&Holdout>,
        memory: Option<&RowMemory>,
    ) -> Self {
        let state = holdout.map(|holdout| match *holdout {
            Holdout::Last { rows } => FilterState::Last {
                rows,
                tail: Box::new(TailBuffer::within(memory)),
            },
            Holdout::Share { share, seed } => FilterState::Share {
                share,
                rng: Box::new(seeded_rng(seed, TAG)),
                complete: 0,
            },
        });
        Self {
            file,
            state,
            held_out: TestSetBuilder::new(schema, memory),
        }
    }

    /// Takes a row, and returns whether a training row passes. If so, `row` is replaced by that row.
    pub(crate) fn pass(&mut self, row: &mut Row) -> Result<bool, DataError> {
        match &mut self.state {
            None => Ok(true),
            Some(FilterState::Last { rows, tail }) => {
                let failed = DataError::storage(self.file);
                tail.push(row).map_err(&failed)?;
                Ok(tail.len() > *rows && tail.pop(row).map_err(failed)?)
            }
            Some(FilterState::Share {
                share,
                rng,
                complete,
            }) => {
                *complete += 1;
                if rng.random::<f64>() < *share {
                    self.held_out.push(self.file, row)?;
                    return Ok(false);
                }
                Ok(true)
            }
        }
    }

    /// Returns the held-out rows, if there is a rule, after `trained` rows have passed.
    pub(crate) fn finish(mut self, trained: usize) -> Result<Option<TestSet>, DataError> {
        let error = match self.state {
            None => return Ok(None),
            Some(FilterState::Last { rows, mut tail }) => {
                let complete = trained + tail.len();
                let mut row = Row::default();
                while tail.pop(&mut row).map_err(DataError::storage(self.file))? {
                    self.held_out.push(self.file, &row)?;
                }
                (trained == 0).then_some(HoldoutError::Last { rows, complete })
            }
            Some(FilterState::Share {
                share, complete, ..
            }) => match complete - trained {
                0 => Some(HoldoutError::NothingDrawn { share, complete }),
                _ if trained == 0 => Some(HoldoutError::AllDrawn { share, complete }),
                _ => None,
            },
        };
        let cause = match (error, self.held_out.finish()) {
            (None, Some(test_set)) => return Ok(Some(test_set)),
            (None, None) => HoldoutError::Zero,
            (Some(cause), _) => cause,
        };
        let file = self.file.to_owned();
        Err(DataError::Holdout { file, cause })
    }
}

/// The rows held out so far.
struct TestSetBuilder {
    builder: ShardBuilder,
    positive: usize,
    labels: Vec<String>,
}

impl TestSetBuilder {
    fn new(schema: &Schema, memory: Option<&RowMemory>) -> Self {
        Self {
            builder: ShardBuilder::new(schema.width(), schema.rows).with_memory(memory),
            positive: 0,
            labels: Vec::new(),
        }
    }

    fn push(&mut self, file: &str, row: &Row) -> Result<(), DataError> {
        add_label(&mut self.labels, &row.label);
        self.positive += usize::from(row.positive);
        let pushed = self.builder.push(&row.entries, row.positive);
        pushed.map_err(DataError::row(file))
    }

    /// Returns the test set, or `None` if there are no rows.
    fn finish(self) -> Option<TestSet> {
        Some(TestSet {
            shard: self.builder.finish().ok()?,
            positive: self.positive,
            labels: self.labels,
        })
    }
}

/// Takes the rows of a file that are all for testing.
pub(crate) struct TestFile<'a> {
    file: &'a str,
    counts: RowCounts,
    rows: TestSetBuilder,
}

impl<'a> TestFile<'a> {
    pub(crate) fn new(file: &'a str, schema: &Schema, memory: Option<&RowMemory>) -> Self {
        Self {
            file,
            counts: RowCounts::new(schema, None),
            rows: TestSetBuilder::new(schema, memory),
        }
    }

    /// Takes the next row, or counts a dropped one.
    pub(crate) fn add(&mut self, row: TableRow<'_>) -> Result<(), DataError> {
        self.counts.read += 1;
        match row {
            TableRow::Complete(row) => self.rows.push(self.file, row),
            TableRow::Incomplete(lacking) => {
                self.counts.drop_row(lacking);
                Ok(())
            }
        }
    }

    /// Returns the test set, `None` if there was no row, and an error if all were dropped.
    pub(crate) fn finish(self) -> Result<Option<TestSet>, DataError> {
        if self.counts.read > 0 {
            self.counts.check_complete(self.file)?;
        }
        Ok(self.rows.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FilePosition;
    use crate::formats::csv::tests::schema;
    use crate::ingest::row::SplitValue;

    /// Returns the lines of the rows that pass of `rows` rows, and how many are held out.
    fn passed(holdout: Holdout, rows: u64) -> Result<(Vec<u64>, usize), DataError> {
        let schema = schema();
        let mut filter = HoldoutFilter::new("rows.csv", &schema, Some(&holdout), None);
        let mut lines = Vec::new();
        for line in 0..rows {
            let split_value = SplitValue {
                value: line.to_string(),
                file: "rows.csv".into(),
                position: FilePosition::Line(line),
            };
            let mut row = Row {
                entries: vec![(0, 1.0)],
                split_value: Some(split_value),
                ..Row::default()
            };
            if filter.pass(&mut row)?
                && let Some(FilePosition::Line(line)) = row.split_value.map(|split| split.position)
            {
                lines.push(line);
            }
        }
        let held = filter.finish(lines.len())?;
        Ok((lines, held.map_or(0, |held| held.shard.rows())))
    }

    #[test]
    fn all_but_the_last_rows_pass_in_order() {
        let (lines, held) = passed(Holdout::Last { rows: 3 }, 7).unwrap();
        assert_eq!((lines, held), (vec![0, 1, 2, 3], 3));
    }

    #[test]
    fn no_more_rows_are_buffered_than_are_held_out() {
        let schema = schema();
        let holdout = Holdout::Last { rows: 2 };
        let mut filter = HoldoutFilter::new("rows.csv", &schema, Some(&holdout), None);
        for _ in 0..100 {
            filter.pass(&mut Row::default()).unwrap();
            let Some(FilterState::Last { tail, .. }) = &filter.state else {
                panic!("another state");
            };
            assert!(tail.len() <= 2);
        }
    }

    #[test]
    fn a_seed_means_the_same_rows_in_all_versions() {
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
