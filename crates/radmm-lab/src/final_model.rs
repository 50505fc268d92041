//! `model.json` of a simulated run: the model that `radmm predict` applies to new rows.

use radmm::problem::RowCount;
use radmm_study::{ModelFile, ModelGuarantee, Study, Trained};

use crate::outcome::Repetition;
use crate::result_file::caveat;

/// The party that a simulated model names.
const PARTY: &str = "all parties, simulated";

/// Returns the model of a simulated run; `None` if it stopped early. It protects nobody, since its noise repeats from a seed, and
/// its guarantee says so.
pub fn final_model(study: &Study, run: &Repetition) -> Option<ModelFile> {
    if run.stopped.is_some() {
        return None;
    }
    let trained = Trained {
        party: PARTY.to_owned(),
        iterations: study.algorithm.iterations,
        guarantee: Some(ModelGuarantee {
            total: run.total(),
            protects: false,
            caveat: caveat(&study.privacy).to_owned(),
        }),
        weights: run.mean_model(study.problem.count),
    };
    // Values on the grid are finite, and so is their mean.
    ModelFile::new(study, trained).ok()
}

impl Repetition {
    /// Returns the mean of the parties' models, over rows or over parties. An algorithm that ends in consensus has one model only.
    pub fn mean_model(&self, count: RowCount) -> Vec<f64> {
        let first = &self.nodes[0].model;
        if self.nodes.iter().all(|node| node.model == *first) {
            return first.clone();
        }
        let mut mean = vec![0.0; first.len()];
        let mut total = 0.0;
        for node in &self.nodes {
            let share = match count {
                RowCount::Rows => node.rows as f64,
                RowCount::Parties => 1.0,
            };
            total += share;
            let terms = mean.iter_mut().zip(&node.model);
            terms.for_each(|(sum, weight)| *sum += share * weight);
        }
        mean.iter_mut().for_each(|sum| *sum /= total);
        mean
    }
}
