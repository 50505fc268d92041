//! What a party that has finished leaves: its model, a signed statement of what that cost, and a transcript for who wants to
//! check.

use std::io;
use std::path::{Path, PathBuf};

use radmm_study::{ModelFile, ModelGuarantee, Trained};

use crate::atomic_file::{WriteError, write_whole};
use crate::evidence::statement::write_results;
use crate::machine::party::Party;
use crate::public_facts::About;

/// Writes `model.json`, `privacy-statement.json` and `transcript.jsonl` into a folder, which is made if need be.
pub fn write_all(party: &Party, about: &About, out: &Path) -> Result<Vec<PathBuf>, WriteError> {
    let mut files = write_results(party, about, out)?;
    let trained = Trained {
        party: about.name().to_owned(),
        iterations: party.iterations(),
        guarantee: Some(ModelGuarantee {
            total: party.spent(),
            protects: about.protects(),
            caveat: about.caveat(),
        }),
        weights: party.node().model().values().to_vec(),
    };
    let path = out.join("model.json");
    let failed = |cause| WriteError::File {
        path: path.clone(),
        cause,
    };
    let model = ModelFile::new(&about.study, trained);
    let text = model
        .map_err(|error| failed(io::Error::other(error)))?
        .to_json();
    write_whole(&path, |to| to.write_all(text.as_bytes()).map_err(failed))?;
    files.push(path);
    Ok(files)
}
