//! The rows of a study, partitioned among its parties.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use radmm::curator::{RowMemory, Shard};
use radmm_data::{
    DataError, FileOptions, MemoryTable, Partition, PartitionSpec, TableFile, TestSet,
    partition_csv, read_partition, read_test_set,
};
use serde::Serialize;
use thiserror::Error;

use crate::{RowSource, Study, TestRows};

/// The rows of all parties.
pub struct StudyRows {
    /// The names of the encoded columns.
    pub columns: Vec<String>,
    /// Counts of the rows of the file.
    pub counts: RowCounts,
    /// The parties' rows by node.
    pub parties: Vec<PartyRows>,
    /// Rows that nobody trains on, if the study has some.
    pub test: Option<Arc<Shard>>,
}

/// Counts of the rows of the file, and of what was ignored, clipped or held out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowCounts {
    /// Rows in the file, without those held out.
    pub read: usize,
    /// Rows of these that were dropped because a field was missing.
    pub dropped: usize,
    /// Rows of the others that are of the positive class.
    pub positive: usize,
    /// Rows to test on, of this file or of another: no row above is among them.
    pub held_out: usize,
    /// Rows to test on that are of the positive class.
    pub held_out_positive: usize,
    /// Columns of the file that the study does not name.
    pub ignored_columns: Vec<String>,
    /// The first few values of the label.
    pub labels: Vec<String>,
    /// The number of values beyond its bounds for each numeric column that has any.
    pub clipped: BTreeMap<String, usize>,
    /// The number of values that count as missing because they cannot be encoded, for each column that has any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, usize>,
    /// The columns without whose values rows were dropped, and how many rows lack each, most first. Results do not have them.
    #[serde(skip)]
    pub lacking: Vec<(String, usize)>,
}

/// One party's rows.
pub struct PartyRows {
    /// Its name in the study; else `node 3`, or the value by which rows were partitioned.
    pub name: String,
    /// The rows, shared by all runs of the study.
    pub shard: Arc<Shard>,
    /// The number of its rows of the positive class.
    pub positive: usize,
}

/// The reason why the rows of a study cannot be read.
#[derive(Debug, Error)]
pub enum StudyRowsError {
    /// The file cannot be opened.
    #[error("{}: {cause}; {key} is relative to the study file", path.display())]
    Open {
        /// The path of the file.
        path: PathBuf,
        /// The key of the study that names it.
        key: &'static str,
        /// The operating system's error.
        cause: std::io::Error,
    },
    /// The study has no rows of its own.
    #[error(
        "[data] has neither path nor builtin: every party has its own rows; run it with \"radmm node\", or give path or builtin to simulate it"
    )]
    Parties,
    /// The split gives a party another number of rows than the study declares for it.
    #[error(
        "[[parties]] {party}: rows = {declared}, and the split of the study's own table gives this party {found}; correct rows, and \
         have every party agree on the study again"
    )]
    OtherCount {
        /// The party.
        party: String,
        /// The number of rows that the study declares.
        declared: usize,
        /// The number of its training rows.
        found: usize,
    },
    /// The file does not fit the study.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl StudyRows {
    /// Reads the rows of a study; `folder` is where the study file is.
    pub fn read(study: &Study, folder: &Path) -> Result<Self, StudyRowsError> {
        Self::read_within(study, folder, None)
    }

    /// Does the same, and stores the rows that exceed the memory.
    pub fn read_within(
        study: &Study,
        folder: &Path,
        memory: Option<&RowMemory>,
    ) -> Result<Self, StudyRowsError> {
        let data = &study.data;
        let spec = PartitionSpec {
            memory,
            ..partition_spec(study)
        };
        let partition = match &data.source {
            RowSource::File(name) => {
                let file = open(folder, name, data.options, "[data] path")?;
                read_partition(file, &data.schema, spec)?
            }
            RowSource::Builtin(table) => {
                partition_csv(table.csv().as_bytes(), table.name(), &data.schema, spec)?
            }
            RowSource::Parties => return Err(StudyRowsError::Parties),
        };
        Self::with_test_rows(study, folder, partition, memory)
    }

    /// Reads the rows of a table in memory, in place of those that the study names. Test rows in a file of their own are
    /// relative to `folder`.
    pub fn from_memory(
        study: &Study,
        table: &MemoryTable<'_>,
        folder: &Path,
    ) -> Result<Self, StudyRowsError> {
        let partition = read_partition(table, &study.data.schema, partition_spec(study))?;
        Self::with_test_rows(study, folder, partition, None)
    }

    /// Adds the test rows that have a file of their own, and names the parties.
    fn with_test_rows(
        study: &Study,
        folder: &Path,
        mut partition: Partition,
        memory: Option<&RowMemory>,
    ) -> Result<Self, StudyRowsError> {
        let data = &study.data;
        let schema = &data.schema;
        if let Some(TestRows::File { path, options }) = &data.test {
            let file = open(folder, path, *options, "[data.test] path")?;
            let TestSet {
                shard,
                positive,
                labels,
            } = read_test_set(file, schema, memory)?;
            partition.test = Some(shard);
            partition.test_positive = positive;
            // A label that is spelt in another way in that file is shown too.
            let new = labels
                .into_iter()
                .filter(|label| !partition.labels.contains(label));
            let new: Vec<String> = new.collect();
            partition.labels.extend(new);
        }
        // Parties that have names keep them, however rows are partitioned.
        for (part, party) in partition.parts.iter_mut().zip(&study.parties) {
            part.name.clone_from(&party.name);
            let found = part.shard.rows();
            if let Some(declared) = party.rows.filter(|rows| *rows != found) {
                return Err(StudyRowsError::OtherCount {
                    party: party.name.clone(),
                    declared,
                    found,
                });
            }
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
            counts: RowCounts {
                read: partition.read,
                dropped: partition.dropped,
                positive: partition.positive,
                held_out,
                held_out_positive: partition.test_positive,
                ignored_columns: partition.ignored,
                labels: partition.labels,
                clipped: partition.clipped.into_iter().collect(),
                others: partition.others.into_iter().collect(),
                lacking: partition.lacking,
            },
        }
    }

    /// Returns the number of rows that are trained on.
    pub fn rows(&self) -> usize {
        self.counts.read - self.counts.dropped
    }
}

/// Returns who gets which row, and which rows are held out.
fn partition_spec(study: &Study) -> PartitionSpec<'_> {
    PartitionSpec {
        split: &study.data.split,
        nodes: study.network.nodes as usize,
        holdout: match &study.data.test {
            Some(TestRows::Held(holdout)) => Some(holdout),
            Some(TestRows::File { .. }) | None => None,
        },
        memory: None,
    }
}

/// Opens a file of the study.
fn open(
    folder: &Path,
    name: &str,
    options: FileOptions,
    key: &'static str,
) -> Result<TableFile, StudyRowsError> {
    let path = folder.join(name);
    TableFile::open(&path, options).map_err(|cause| StudyRowsError::Open { path, key, cause })
}
