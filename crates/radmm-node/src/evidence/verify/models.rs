//! Compares a model with the one that follows from its party's transcript.

use std::fs;
use std::path::Path;

use radmm_study::{ModelFile, Study};

use super::{CheckedModel, Fault, Verification, VerifyError};

impl Verification {
    /// Checks a `model.json` of the study against the transcripts that were checked.
    ///
    /// The file has no signature: a fault shows that it is not the party's model, and not who changed it.
    pub fn check_model(&mut self, study: &Study, path: &Path) -> Result<(), VerifyError> {
        let text = fs::read_to_string(path).map_err(|cause| VerifyError::Model {
            path: path.to_owned(),
            cause,
        })?;
        let mut fault = |party: Option<&str>, iteration, what: &str| {
            self.faults.push(Fault {
                file: path.to_owned(),
                party: party.map(str::to_owned),
                iteration,
                what: what.to_owned(),
            });
        };
        let model = match ModelFile::parse(&text, &path.display().to_string()) {
            Ok(model) => model,
            Err(error) => {
                fault(None, None, &error.to_string());
                return Ok(());
            }
        };
        let party = model.trained().party.as_str();
        let same_study = model.study_sha256() == study.sha256()
            && *model.schema() == study.data.schema
            && model.loss() == study.problem.loss
            && study.parties.iter().any(|known| known.name == party);
        if !same_study {
            fault(None, None, "it is not a model of this study");
            return Ok(());
        }
        let transcripts = self.transcripts.iter();
        let expected = { transcripts }
            .filter(|checked| checked.party == party)
            .find_map(|checked| checked.model.as_ref());
        if let Some(expected) = expected {
            let bits =
                |weights: &[f64]| -> Vec<u64> { weights.iter().map(|w| w.to_bits()).collect() };
            if bits(expected.values()) != bits(model.weights()) {
                let what = "the weights are not those that follow from the party's transcript";
                fault(Some(party), Some(study.algorithm.iterations), what);
            }
        }
        let compared = expected.is_some();
        self.models.push(CheckedModel {
            file: path.to_owned(),
            party: party.to_owned(),
            compared,
        });
        Ok(())
    }
}
