//! Writes the results of a party: its model, the signed statement of what it cost, and the transcript that others check.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use radmm_study::{BadWeights, ModelFile, ModelGuarantee, Trained};
use thiserror::Error;

use super::statement::PartyStatement;
use super::transcript;
use crate::atomic_file::AtomicFile;
use crate::machine::Party;
use crate::public_facts::{PublicFacts, TotalError};
use crate::setup::Balance;
use crate::store::StoreError;

/// The reason why results cannot be written.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// The disk or the folder failed.
    #[error("{}: {cause}; results can be written again as long as the state folder is there", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The charges on record have no total.
    #[error("the charges on record have no total: {0}")]
    Total(#[from] TotalError),
}

/// Writes `privacy-statement.json`, `transcript.jsonl` and, if the party has finished, `model.json` into a folder, which is made if
/// need be.
pub fn write_result_files(
    party: &Party,
    facts: &PublicFacts,
    out: &Path,
) -> Result<Vec<PathBuf>, ResultsError> {
    let mut files = write_evidence(party, facts, out)?;
    if !party.is_finished() {
        return Ok(files);
    }
    let path = out.join("model.json");
    let model =
        trained_model(party, facts).map_err(|error| failed(&path)(io::Error::other(error)))?;
    write_text(&path, &model.to_json())?;
    files.push(path);
    Ok(files)
}

/// Returns the model of a party that has finished.
pub fn trained_model(party: &Party, facts: &PublicFacts) -> Result<ModelFile, BadWeights> {
    let trained = Trained {
        party: facts.name().to_owned(),
        iterations: party.iterations(),
        guarantee: Some(ModelGuarantee {
            total: party.spent(),
            protects: facts.protects(),
            caveat: facts.caveat(),
        }),
        weights: party.node().model().values().to_vec(),
    };
    ModelFile::new(&facts.study, trained)
}

/// Writes `transcript.jsonl` and `privacy-statement.json` into a folder, which is made if need be.
pub fn write_evidence(
    party: &Party,
    facts: &PublicFacts,
    out: &Path,
) -> Result<Vec<PathBuf>, ResultsError> {
    fs::create_dir_all(out).map_err(failed(out))?;
    let transcript = out.join("transcript.jsonl");
    let mut file = AtomicFile::create(&transcript).map_err(failed(&transcript))?;
    let summary = transcript::write(party, facts, &transcript, &mut file)?;
    file.commit().map_err(failed(&transcript))?;
    let (store, _) = party.store();
    let balance = match &facts.limit {
        Some(limit) => {
            let balance = Balance::with_limit(limit, store, &store.charges()?);
            Some(balance.map_err(TotalError::from)?)
        }
        None => None,
    };
    let path = out.join("privacy-statement.json");
    let statement = PartyStatement::new(facts, &summary, balance)?;
    write_text(&path, &statement.signed(party.key()))?;
    Ok(vec![transcript, path])
}

fn write_text(path: &Path, text: &str) -> Result<(), ResultsError> {
    let mut file = AtomicFile::create(path).map_err(failed(path))?;
    file.write_all(text.as_bytes()).map_err(failed(path))?;
    file.commit().map_err(failed(path))
}

pub(super) fn failed(path: &Path) -> impl Fn(io::Error) -> ResultsError {
    move |cause| ResultsError::File {
        path: path.to_owned(),
        cause,
    }
}
