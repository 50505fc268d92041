//! The model file, `model.json`: a trained model with everything that is needed to use it. docs/predict.md describes it.

mod error;
mod parse;

use radmm::privacy::Guarantee;
use radmm::problem::Loss;
use radmm_data::{Format, Schema};
use serde::Serialize;

use crate::Study;
use crate::canonical::serialize_data::ColumnMeaning;

pub use error::{BadWeights, ModelError};

/// The name of the program in a model file.
const PROGRAM: &str = "radmm";

/// A model, the meaning of its columns, how it was trained and what that cost. There is one finite weight a column.
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

/// The result of a party's training.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// The party's name.
    pub party: String,
    /// The number of iterations.
    pub iterations: u32,
    /// The guarantee for its rows, if there is one.
    pub guarantee: Option<ModelGuarantee>,
    /// `f`, in the order of the encoded columns.
    pub weights: Vec<f64>,
}

/// The guarantee for the rows that a model was trained on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelGuarantee {
    /// The total over every message of the run.
    #[serde(flatten)]
    pub total: Guarantee,
    /// Whether it holds for these rows; not in a simulation.
    pub protects: bool,
    /// The caveat that belongs to it.
    pub caveat: String,
}

impl ModelFile {
    /// Makes the model that a party trained in a study.
    pub fn new(study: &Study, trained: Trained) -> Result<Self, BadWeights> {
        let schema = study.data.schema.clone();
        check(&schema, &trained.weights)?;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            study: study.name.clone(),
            study_sha256: study.sha256(),
            loss: study.problem.loss,
            format: study.data.options.format.unwrap_or(Format::Csv),
            schema,
            trained,
        })
    }

    /// Returns the version of the program that made it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the name of the study.
    pub fn study(&self) -> &str {
        &self.study
    }

    /// Returns [`Study::sha256`].
    pub fn study_sha256(&self) -> &str {
        &self.study_sha256
    }

    /// Returns the party, the number of iterations, the guarantee and the weights.
    pub fn trained(&self) -> &Trained {
        &self.trained
    }

    /// Returns the loss that it was trained with.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// Returns the format of the rows that it was trained on.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the meaning of the columns.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns `f`, one weight for each of the schema's [`columns`](Schema::columns).
    pub fn weights(&self) -> &[f64] {
        &self.trained.weights
    }

    /// Returns the probability of the positive class at a score `fᵀx`; `None` if the loss has no probabilities.
    pub fn probability(&self, score: f64) -> Option<f64> {
        self.loss.probability(score)
    }

    /// Returns the text of the file, with a line end. [`parse`](Self::parse) returns the same model, to the bit.
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
            data: ColumnMeaning::new(Some(self.format), &self.schema),
            columns: self.schema.columns(),
            weights,
        };
        // Every map has string keys and all weights are finite, so that serialising cannot fail.
        serde_json::to_string_pretty(&written).expect("a model is valid JSON") + "\n"
    }
}

/// Checks that there is one finite weight a column.
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
    data: ColumnMeaning<'a>,
    columns: Vec<String>,
    weights: &'a [f64],
}

#[derive(Serialize)]
struct Program<'a> {
    name: &'a str,
    version: &'a str,
}
