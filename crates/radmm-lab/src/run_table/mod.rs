//! One table of many runs: a row for each method of each run that `radmm run --out` left below a folder.

mod find;
mod read;
mod records;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use radmm::privacy::Guarantee;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

pub use records::shown_value;

use crate::candidate::HeldOutStats;
use crate::stats::SampleStats;

/// The runs below a folder, in the order of their paths.
#[derive(Debug)]
pub struct RunTable {
    /// The runs that came to their end.
    pub runs: Vec<CollectedRun>,
    /// The others.
    pub left_out: Vec<LeftOutRun>,
}

/// A run that came to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectedRun {
    /// Its folder, relative to the one that was searched.
    pub path: String,
    /// The study's name.
    pub study: String,
    /// The study's digest.
    pub study_sha256: String,
    /// The version of the program that ran it.
    pub version: String,
    /// All keys of the study with their dotted names.
    pub keys: BTreeMap<String, Value>,
    /// The seed of the noise.
    pub seed: u64,
    /// The number of training rows of all parties.
    pub rows: u64,
    /// The number of parties.
    pub parties: usize,
    /// The share of the majority class on held-out rows, if there are any.
    pub majority_held_out: Option<f64>,
    /// The share of the majority class on all training rows.
    pub majority: f64,
    /// The study's own algorithm, then the baselines that were run beside it.
    pub methods: Vec<CollectedMethod>,
}

/// One method of a run, over its repetitions.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectedMethod {
    /// The algorithm's name in study files.
    pub name: String,
    /// The total over every message of the run, the largest of the parties'.
    pub total: Guarantee,
    /// The number of repetitions.
    pub repetitions: usize,
    /// The quality on held-out rows, if there are any.
    pub held_out: Option<HeldOutStats>,
    /// The share of everybody's training rows that the models classify correctly.
    pub accuracy_everywhere: SampleStats,
    /// The loss at the end, of each party's model on its own training rows.
    pub loss: SampleStats,
}

/// A run that is not in the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOutRun {
    /// The file or folder.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
}

/// The reason why there is no table.
#[derive(Debug, Error)]
pub enum CollectError {
    /// The folder cannot be read.
    #[error("{}: {cause}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
    /// There are no results.
    #[error(
        "{}: there is no result.json in this folder or below; radmm run --out writes one",
        .0.display()
    )]
    NoResults(PathBuf),
}

/// The result files below a folder.
pub struct RunFiles {
    folder: PathBuf,
    files: Vec<Result<PathBuf, LeftOutRun>>,
}

impl RunFiles {
    /// Finds every `result.json` below a folder, at any depth. Links to folders are not followed.
    pub fn find(folder: &Path) -> Result<Self, CollectError> {
        let files = find::result_files(folder).map_err(|cause| CollectError::Folder {
            path: folder.to_owned(),
            cause,
        })?;
        if files.is_empty() {
            return Err(CollectError::NoResults(folder.to_owned()));
        }
        Ok(Self {
            folder: folder.to_owned(),
            files,
        })
    }

    /// Returns the number of files.
    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// Reads the files on all threads of the current pool. `progress` is called after each. The runs come in the order of their
    /// paths, on any number of threads.
    pub fn read(self, progress: &(dyn Fn() + Sync)) -> RunTable {
        let read = |file: PathBuf| {
            read::run(&self.folder, &file).map_err(|reason| LeftOutRun { path: file, reason })
        };
        let collected: Vec<Result<CollectedRun, LeftOutRun>> = self
            .files
            .into_par_iter()
            .map(|file| {
                let run = file.and_then(read);
                progress();
                run
            })
            .collect();
        let mut table = RunTable {
            runs: Vec::new(),
            left_out: Vec::new(),
        };
        for one in collected {
            match one {
                Ok(run) => table.runs.push(run),
                Err(left_out) => table.left_out.push(left_out),
            }
        }
        table
    }
}

impl RunTable {
    /// Returns the dotted names of the keys by which the runs' studies differ, in alphabetical order. Keys that have a column of
    /// their own are left out: the name, the algorithm, the seed and the number of repetitions.
    pub fn varied_keys(&self) -> Vec<&str> {
        const OWN: [&str; 4] = ["name", "algorithm.name", "run.seed", "run.repetitions"];
        let Some((first, others)) = self.runs.split_first() else {
            return Vec::new();
        };
        let mut varied: Vec<&str> = Vec::new();
        for other in others {
            let names = first.keys.keys().chain(other.keys.keys());
            let differs = |name: &&String| first.keys.get(*name) != other.keys.get(*name);
            varied.extend(names.filter(differs).map(String::as_str));
        }
        varied.sort_unstable();
        varied.dedup();
        varied.retain(|name| !OWN.contains(name));
        varied
    }
}
