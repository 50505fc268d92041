//! `model.json`: a trained model with all that is needed to use it. docs/predict.md describes it.

mod error;
mod parse;

use radmm::account::Guarantee;
use radmm::private::Loss;
use radmm_data::{Format, Schema};
use serde::Serialize;

use crate::Study;
use crate::meaning::Meaning;

pub use error::{BadWeights, ModelError};

/// What [`ModelFile`] calls the program that made it.
const PROGRAM: &str = "radmm";

/// A model, what its columns mean, how it was made and what that cost. There is one finite weight a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFile {
    version: String,
    study: String,
    study_sha256: String,
    loss: Loss,
    format: Format,
    schema: Schema,
    trained: Trained,
}

/// How a party's training ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// The party's name.
    pub party: String,
    /// How many iterations it made.
    pub iterations: u32,
    /// What is promised of its rows, if anything is.
    pub guarantee: Option<ModelGuarantee>,
    /// `f`, in the order of the encoded columns.
    pub weights: Vec<f64>,
}

/// What is promised of the rows that a model was trained on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelGuarantee {
    /// The total over every message of the run.
    #[serde(flatten)]
    pub total: Guarantee,
    /// Whether it holds for these rows; not in a simulation.
    pub protects: bool,
    /// What must be said with it.
    pub caveat: String,
}

impl ModelFile {
    /// The model that a party got out of a study.
    pub fn new(study: &Study, trained: Trained) -> Result<Self, BadWeights> {
        let schema = study.data.schema.clone();
        check(&schema, &trained.weights)?;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            study: study.name.clone(),
            study_sha256: study.sha256(),
            loss: study.problem.loss,
            format: study.data.format,
            schema,
            trained,
        })
    }

    /// The version of the program that made it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The name of the study.
    pub fn study(&self) -> &str {
        &self.study
    }

    /// [`Study::sha256`].
    pub fn study_sha256(&self) -> &str {
        &self.study_sha256
    }

    /// Whose model it is, how long it was trained, and what is promised.
    pub fn trained(&self) -> &Trained {
        &self.trained
    }

    /// What it was trained to minimise.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// How the rows that it was trained on were written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What the columns mean.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// `f`, one for each of the schema's [`columns`](Schema::columns).
    pub fn weights(&self) -> &[f64] {
        &self.trained.weights
    }

    /// The probability of the positive class at a score `fᵀx`, 1/(1 + e^−score); none if the loss has no probabilities.
    pub fn probability(&self, score: f64) -> Option<f64> {
        match self.loss {
            // −L'(z) is the probability of the label other than that of margin z.
            Loss::Logistic => Some(-self.loss.slope_and_curvature(-score).0),
            Loss::SmoothHinge { .. } => None,
        }
    }

    /// As text, with a line end. [`parse`](Self::parse) gives the same model back, to the bit.
    pub fn to_json(&self) -> String {
        let Trained {
            party,
            iterations,
            guarantee,
            weights,
        } = &self.trained;
        let written = Written {
            program: Program {
                name: PROGRAM,
                version: &self.version,
            },
            study: &self.study,
            study_sha256: &self.study_sha256,
            party,
            iterations: *iterations,
            guarantee: guarantee.as_ref(),
            problem: &self.loss,
            data: Meaning::new(Some(self.format), &self.schema),
            columns: self.schema.columns(),
            weights,
        };
        // Every map has string keys and all weights are finite, so that nothing is left to fail.
        serde_json::to_string_pretty(&written).expect("a model is valid JSON") + "\n"
    }
}

/// Whether there is one finite weight a column.
fn check(schema: &Schema, weights: &[f64]) -> Result<(), BadWeights> {
    let columns = schema.width();
    if weights.len() != columns {
        let weights = weights.len();
        return Err(BadWeights::Count { weights, columns });
    }
    match weights.iter().position(|weight| !weight.is_finite()) {
        Some(k) => Err(BadWeights::NotFinite {
            index: k,
            column: schema.columns().swap_remove(k),
        }),
        None => Ok(()),
    }
}

#[derive(Serialize)]
struct Written<'a> {
    program: Program<'a>,
    study: &'a str,
    study_sha256: &'a str,
    party: &'a str,
    iterations: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    guarantee: Option<&'a ModelGuarantee>,
    problem: &'a Loss,
    data: Meaning<'a>,
    columns: Vec<String>,
    weights: &'a [f64],
}

#[derive(Serialize)]
struct Program<'a> {
    name: &'a str,
    version: &'a str,
}
