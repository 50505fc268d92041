//! The rows of a study, dealt out to its parties.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use radmm::private::Shard;
use radmm_data::{
    DataError, Format, Partition, PartitionSpec, TableFile, TestSet, partition_csv, read_partition,
    read_test_set,
};
use serde::Serialize;
use thiserror::Error;

use crate::{Source, Study, Test};

/// Everyone's rows, and what may be said of them.
pub struct Table {
    /// Of an encoded row.
    pub columns: Vec<String>,
    /// What became of the rows of the file.
    pub counts: Counts,
    /// By node.
    pub parties: Vec<PartyRows>,
    /// Rows that nobody trains on, if the study has some.
    pub test: Option<Arc<Shard>>,
}

/// What became of the rows of the file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counts {
    /// Rows in the file, without those held out.
    pub read: usize,
    /// Of these, left out because a field was missing.
    pub dropped: usize,
    /// Of the others, those of the positive class.
    pub positive: usize,
    /// Rows to test on, of this file or of another: no row above is among them.
    pub held_out: usize,
    /// Columns of the file that the study does not name.
    pub ignored_columns: Vec<String>,
    /// The first few values of the label.
    pub labels: Vec<String>,
    /// How many values of a numeric column were beyond its bounds, where there were any.
    pub clipped: BTreeMap<String, usize>,
}

/// One party's rows.
pub struct PartyRows {
    /// Its name in the study; else `node 3`, or the value by which rows were dealt out.
    pub name: String,
    /// Shared by all runs of the study.
    pub shard: Arc<Shard>,
    /// How many of its rows are of the positive class.
    pub positive: usize,
}

/// Why there are no rows.
#[derive(Debug, Error)]
pub enum TableError {
    /// The file cannot be opened.
    #[error("{}: {cause}; {key} is relative to the study file", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// By which key of the study.
        key: &'static str,
        /// What the operating system says.
        cause: std::io::Error,
    },
    /// The study has none of its own.
    #[error(
        "[data] has neither path nor builtin: every party has its own rows; run it with \"radmm node\", or give path or builtin to simulate it"
    )]
    Parties,
    /// The file is not what the study says.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl Table {
    /// Reads the rows of a study; `folder` is where the study file is.
    pub fn read(study: &Study, folder: &Path) -> Result<Self, TableError> {
        let data = &study.data;
        let schema = &data.schema;
        let spec = PartitionSpec {
            split: &data.split,
            nodes: study.network.nodes as usize,
            holdout: match &data.test {
                Some(Test::Held(holdout)) => Some(holdout),
                Some(Test::File { .. }) | None => None,
            },
        };
        let mut partition = match &data.source {
            Source::File(name) => {
                let file = open(folder, name, data.format, "[data] path")?;
                read_partition(file, schema, spec)?
            }
            Source::Builtin(table) => {
                partition_csv(table.csv().as_bytes(), table.name(), schema, spec)?
            }
            Source::Parties => return Err(TableError::Parties),
        };
        if let Some(Test::File { path, format }) = &data.test {
            let file = open(folder, path, *format, "[data.test] path")?;
            let TestSet { shard, labels } = read_test_set(file, schema)?;
            partition.test = Some(shard);
            // A label that is spelt in another way there shows.
            let new = labels
                .into_iter()
                .filter(|label| !partition.labels.contains(label));
            let new: Vec<String> = new.collect();
            partition.labels.extend(new);
        }
        // Parties that have names keep them, whatever their rows are dealt by.
        for (part, party) in partition.parts.iter_mut().zip(&study.parties) {
            part.name.clone_from(&party.name);
        }
        Ok(Self::new(partition, schema.columns()))
    }

    fn new(partition: Partition, columns: Vec<String>) -> Self {
        let held_out = partition.held_out();
        let parties = partition.parts.into_iter().map(|part| PartyRows {
            name: part.name,
            shard: Arc::new(part.shard),
            positive: part.positive,
        });
        Self {
            columns,
            parties: parties.collect(),
            test: partition.test.map(Arc::new),
            counts: Counts {
                read: partition.read,
                dropped: partition.dropped,
                positive: partition.positive,
                held_out,
                ignored_columns: partition.ignored,
                labels: partition.labels,
                clipped: partition.clipped.into_iter().collect(),
            },
        }
    }

    /// Rows that are trained on.
    pub fn rows(&self) -> usize {
        self.counts.read - self.counts.dropped
    }
}

/// A file of the study.
fn open(
    folder: &Path,
    name: &str,
    format: Format,
    key: &'static str,
) -> Result<TableFile, TableError> {
    let path = folder.join(name);
    TableFile::open(&path, format).map_err(|cause| TableError::Open { path, key, cause })
}
