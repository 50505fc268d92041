//! From the rows of a file, whatever its format, to the part of each node.

pub(crate) mod block_queue;
pub(crate) mod counts;
pub(crate) mod holdout;
pub(crate) mod overflow_file;
pub(crate) mod partition;
pub(crate) mod row;
pub(crate) mod row_buffer;
pub(crate) mod split;
pub(crate) mod tail_buffer;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use self::counts::{RowCounts, add_label};
use self::holdout::HoldoutFilter;
use self::partition::{Partition, PartitionSpec, Partitioner};
use self::row::{SplitValue, TableRow};
use crate::error::{DataError, excerpt, first_few};
use crate::error_kinds::FieldError;
use crate::schema::{Schema, Split};

/// Takes rows one at a time: holds some out, counts the others and assigns them to nodes.
pub(crate) struct Ingest<'a> {
    file: &'a str,
    schema: &'a Schema,
    split: &'a Split,
    filter: HoldoutFilter<'a>,
    partitioner: Partitioner<'a>,
    counts: RowCounts,
}

impl<'a> Ingest<'a> {
    pub(crate) fn new(
        file: &'a str,
        schema: &'a Schema,
        spec: PartitionSpec<'a>,
    ) -> Result<Self, DataError> {
        Ok(Self {
            file,
            schema,
            split: spec.split,
            filter: HoldoutFilter::new(file, schema, spec.holdout, spec.memory),
            partitioner: Partitioner::new(file, schema, spec)?,
            counts: RowCounts::new(schema, Some(spec.split)),
        })
    }

    /// Takes the next row, or counts a dropped one. Afterwards a complete row may be another one.
    pub(crate) fn add(&mut self, row: TableRow<'_>) -> Result<(), DataError> {
        self.counts.read += 1;
        let row = match row {
            TableRow::Complete(row) => row,
            TableRow::Incomplete(lacking) => {
                self.counts.drop_row(lacking);
                return Ok(());
            }
        };
        if !self.filter.pass(row)? {
            return Ok(());
        }
        self.counts.count(row);
        let node = match &row.split_value {
            Some(value) => Some(self.node_of(value)?),
            None => self.partitioner.round_robin(),
        };
        self.partitioner.push(node, &row.entries, row.positive)
    }

    fn node_of(&mut self, split_value: &SplitValue) -> Result<usize, DataError> {
        let node = self.partitioner.node_for(&split_value.value);
        node.ok_or_else(|| DataError::Field {
            file: split_value.file.to_string(),
            position: split_value.position,
            column: match self.split {
                Split::Column { column, .. } => column.clone(),
                // Unreachable: rows of other splits have no split value.
                _ => String::new(),
            },
            cause: FieldError::UnknownNode {
                value: excerpt(&split_value.value),
                known: first_few(self.partitioner.values().iter().map(String::as_str)),
            },
        })
    }

    /// Returns the number of rows so far, dropped ones included.
    pub(crate) fn read(&self) -> usize {
        self.counts.read
    }

    /// Returns the partition of a file with these unused columns.
    pub(crate) fn finish(self, ignored: Vec<String>) -> Result<Partition, DataError> {
        let (file, schema, mut counts) = (self.file, self.schema, self.counts);
        counts.check_complete(file)?;
        let test_set = self.filter.finish(counts.trained)?;
        counts.check_classes(file, schema)?;
        for label in test_set.iter().flat_map(|test_set| &test_set.labels) {
            add_label(&mut counts.labels, label);
        }
        Ok(Partition {
            parts: self.partitioner.finish()?,
            test_positive: test_set.as_ref().map_or(0, |test_set| test_set.positive),
            test: test_set.map(|test_set| test_set.shard),
            read: counts.dropped + counts.trained,
            dropped: counts.dropped,
            positive: counts.positive,
            ignored,
            clipped: counts.clipped(schema),
            others: counts.others(schema),
            lacking: counts.lacking(),
            labels: counts.labels,
            label_counts: counts.label_counts,
        })
    }
}

/// Returns the generator of a seed for one purpose. The tag has a version: as long as it stays, a seed means the same
/// draws.
fn seeded_rng(seed: u64, tag: &[u8; 16]) -> ChaCha20Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[16..].copy_from_slice(tag);
    ChaCha20Rng::from_seed(key)
}
