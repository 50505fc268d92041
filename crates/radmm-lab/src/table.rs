//! The rows of a study, dealt out to its parties.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use radmm::private::Shard;
use radmm_data::{DataError, Partition, TableFile, read, read_csv};
use radmm_study::{Source, Study};
use serde::Serialize;
use thiserror::Error;

/// Everyone's rows, and what may be said of them.
pub struct Table {
    /// Of an encoded row.
    pub columns: Vec<String>,
    /// What became of the rows of the file.
    pub counts: Counts,
    /// By node.
    pub parties: Vec<PartyRows>,
}

/// What became of the rows of the file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counts {
    /// Rows in the file.
    pub read: usize,
    /// Of these, left out because a field was missing.
    pub dropped: usize,
    /// Of the others, those of the positive class.
    pub positive: usize,
    /// Columns of the file that the study does not name.
    pub ignored_columns: Vec<String>,
    /// The first few values of the label.
    pub labels: Vec<String>,
    /// How many values of a numeric column were beyond its bounds, where there were any.
    pub clipped: BTreeMap<String, usize>,
}

/// One party's rows.
pub struct PartyRows {
    /// `node 3`, or the value by which rows were dealt out.
    pub name: String,
    /// Shared by all runs of the study.
    pub shard: Arc<Shard>,
}

/// Why there are no rows.
#[derive(Debug, Error)]
pub enum TableError {
    /// The file cannot be opened.
    #[error("{}: {cause}; [data] path is relative to the study file", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// What the operating system says.
        cause: std::io::Error,
    },
    /// The file is not what the study says.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl Table {
    /// Reads the rows of a study; `folder` is where the study file is.
    pub fn read(study: &Study, folder: &Path) -> Result<Self, TableError> {
        let schema = &study.data.schema;
        let nodes = study.network.nodes as usize;
        let partition = match &study.data.source {
            Source::File(name) => {
                let path = folder.join(name);
                let file = TableFile::open(&path, study.data.format)
                    .map_err(|cause| TableError::Open { path, cause })?;
                read(file, schema, &study.data.split, nodes)?
            }
            Source::Builtin(table) => {
                let (text, name) = (table.csv(), table.name());
                read_csv(text.as_bytes(), name, schema, &study.data.split, nodes)?
            }
        };
        Ok(Self::new(partition, schema.columns()))
    }

    fn new(partition: Partition, columns: Vec<String>) -> Self {
        let parties = partition.parts.into_iter().map(|part| PartyRows {
            name: part.name,
            shard: Arc::new(part.shard),
        });
        Self {
            columns,
            parties: parties.collect(),
            counts: Counts {
                read: partition.read,
                dropped: partition.dropped,
                positive: partition.positive,
                ignored_columns: partition.ignored,
                labels: partition.labels,
                clipped: partition.clipped.into_iter().collect(),
            },
        }
    }

    /// Rows that are used.
    pub fn rows(&self) -> usize {
        self.counts.read - self.counts.dropped
    }
}
