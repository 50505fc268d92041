//! Rows that a forecast trains and tests on: drawn from a schema, or public rows of the same kind.

use std::sync::Arc;

use radmm::curator::{RowError, Shard, ShardBuilder};
use radmm_data::{DataError, Schema, TableSource, score_each};
use radmm_study::rows::{PartyRows, RowCounts, StudyRows};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::population::shuffle;

/// An encoded row with its label. It is nobody's secret: it was drawn from a schema, or is public.
#[derive(Clone)]
pub(super) struct Example {
    pub(super) entries: Vec<(u32, f64)>,
    pub(super) positive: bool,
}

/// Rows to train on and rows to test on. No row is among both.
pub(super) struct Sample {
    pub(super) train: Vec<Example>,
    pub(super) test: Vec<Example>,
}

/// Public rows of the same kind as a study's, with its schema.
pub struct PublicRows {
    examples: Vec<Example>,
}

/// The share of public rows that are tested on.
const TEST_SHARE: f64 = 0.3;

impl PublicRows {
    /// Reads rows by a schema. Rows with a missing field or without a label are left out.
    pub fn read<'a>(table: impl Into<TableSource<'a>>, schema: &Schema) -> Result<Self, DataError> {
        let mut examples = Vec::new();
        score_each(table, schema, |row| -> Result<(), DataError> {
            let labelled = row.and_then(|row| Some((row.positive()?, row)));
            examples.extend(labelled.map(|(positive, row)| Example {
                entries: row.entries().to_vec(),
                positive,
            }));
            Ok(())
        })?;
        Ok(Self { examples })
    }

    #[cfg(test)]
    pub(super) fn from_examples(examples: Vec<Example>) -> Self {
        Self { examples }
    }

    /// Returns the number of complete rows with a label.
    pub fn rows(&self) -> usize {
        self.examples.len()
    }

    /// Divides the rows at random.
    pub(super) fn sample(&self, seed: u64) -> Sample {
        let mut train = self.examples.clone();
        shuffle(&mut train, &mut ChaCha20Rng::seed_from_u64(seed));
        let tested = (TEST_SHARE * train.len() as f64) as usize;
        let test = train.split_off(train.len() - tested);
        Sample { train, test }
    }
}

impl Sample {
    /// Returns the first training rows, shared out to parties of the given sizes, and all test rows.
    pub(super) fn study_rows(
        &self,
        schema: &Schema,
        sizes: &[usize],
    ) -> Result<StudyRows, RowError> {
        let mut rest = &self.train[..];
        let mut parties = Vec::with_capacity(sizes.len());
        for (node, size) in sizes.iter().enumerate() {
            let (own, others) = rest.split_at(*size);
            rest = others;
            parties.push(PartyRows {
                name: format!("node {node}"),
                shard: Arc::new(shard(own, schema)?),
                positive: positive(own),
            });
        }
        let rows: usize = sizes.iter().sum();
        Ok(StudyRows {
            columns: schema.columns(),
            counts: RowCounts {
                read: rows,
                dropped: 0,
                positive: positive(&self.train[..rows]),
                held_out: self.test.len(),
                held_out_positive: positive(&self.test),
                ignored_columns: Vec::new(),
                labels: Vec::new(),
                clipped: Default::default(),
                others: Default::default(),
                lacking: Vec::new(),
            },
            parties,
            test: Some(Arc::new(shard(&self.test, schema)?)),
        })
    }
}

fn positive(examples: &[Example]) -> usize {
    examples.iter().filter(|one| one.positive).count()
}

fn shard(examples: &[Example], schema: &Schema) -> Result<Shard, RowError> {
    let mut builder = ShardBuilder::new(schema.width(), schema.rows);
    for one in examples {
        builder.push(&one.entries, one.positive)?;
    }
    // Every party of a forecast has a row.
    Ok(builder.finish().expect("a shard has at least one row"))
}
