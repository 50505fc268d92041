//! Writes predictions as CSV or JSON, row by row.

use std::io::{self, Write};

use radmm_data::ScoreCounts;
use radmm_study::{ModelFile, ModelGuarantee};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::output::metrics::Metrics;

/// The prediction for a row.
#[derive(Clone, Copy)]
pub(crate) struct Prediction {
    /// `fᵀx`.
    pub score: f64,
    /// The written value: a probability, or the score.
    pub value: f64,
    /// Whether the positive class is predicted.
    pub positive: bool,
}

/// The summary of all rows.
pub(crate) struct Summary<'a> {
    pub model: &'a ModelFile,
    pub threshold: f64,
    pub rows: ScoreCounts,
    pub metrics: Option<&'a Metrics>,
}

/// Writes predictions as CSV or JSON.
pub(crate) struct PredictionWriter<'a> {
    to: &'a mut dyn Write,
    /// The name of the value: `probability` or `score`.
    column: &'static str,
    format: OutputFormat,
    rows: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputFormat {
    Csv,
    Json,
}

impl<'a> PredictionWriter<'a> {
    pub(crate) fn csv(to: &'a mut dyn Write, column: &'static str) -> Self {
        Self {
            to,
            column,
            format: OutputFormat::Csv,
            rows: 0,
        }
    }

    pub(crate) fn json(to: &'a mut dyn Write, column: &'static str) -> Self {
        Self {
            format: OutputFormat::Json,
            ..Self::csv(to, column)
        }
    }

    /// Writes what comes before the rows. Called with the first of them: a table that cannot be read leaves nothing behind.
    fn begin(&mut self) -> io::Result<()> {
        match self.format {
            OutputFormat::Csv => writeln!(self.to, "row,{},predicted", self.column),
            OutputFormat::Json => write!(self.to, "{{\n  \"rows\": ["),
        }
    }

    /// Writes the next row. A row without a prediction has empty cells.
    pub(crate) fn row(&mut self, prediction: Option<Prediction>) -> io::Result<()> {
        if self.rows == 0 {
            self.begin()?;
        }
        self.rows += 1;
        let (row, column) = (self.rows, self.column);
        if self.format == OutputFormat::Json {
            let comma = if row == 1 { "" } else { "," };
            let object = Map::from_iter([
                ("row".to_owned(), row.into()),
                (
                    column.to_owned(),
                    prediction.map(|prediction| prediction.value).into(),
                ),
                (
                    "predicted".to_owned(),
                    prediction
                        .map(|prediction| u8::from(prediction.positive))
                        .into(),
                ),
            ]);
            return write!(self.to, "{comma}\n    {}", Value::Object(object));
        }
        match prediction {
            // Debug prints the shortest decimal that parses to the same number.
            Some(prediction) => {
                let predicted = u8::from(prediction.positive);
                writeln!(self.to, "{row},{:?},{predicted}", prediction.value)
            }
            None => writeln!(self.to, "{row},,"),
        }
    }

    /// Writes what comes after the rows.
    pub(crate) fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        if self.rows == 0 {
            self.begin()?;
        }
        if self.format == OutputFormat::Csv {
            return Ok(());
        }
        let gap = if self.rows == 0 { "" } else { "\n  " };
        let summary = serde_json::to_string_pretty(&JsonSummary::new(summary))?;
        let summary = summary.replace('\n', "\n  ");
        writeln!(self.to, "{gap}],\n  \"summary\": {summary}\n}}")
    }
}

#[derive(Serialize)]
struct JsonSummary<'a> {
    model: JsonModel<'a>,
    label: &'a str,
    positive: &'a str,
    threshold: f64,
    rows: usize,
    incomplete: usize,
    labelled: usize,
    #[serde(rename = "quality", skip_serializing_if = "Option::is_none")]
    metrics: Option<&'a Metrics>,
}

/// The origin of the model.
#[derive(Serialize)]
struct JsonModel<'a> {
    study: &'a str,
    study_sha256: &'a str,
    party: &'a str,
    iterations: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    guarantee: Option<&'a ModelGuarantee>,
}

impl<'a> JsonSummary<'a> {
    fn new(summary: &Summary<'a>) -> Self {
        let model = summary.model;
        let trained = model.trained();
        let ScoreCounts {
            rows,
            incomplete,
            labelled,
        } = summary.rows;
        Self {
            model: JsonModel {
                study: model.study(),
                study_sha256: model.study_sha256(),
                party: &trained.party,
                iterations: trained.iterations,
                guarantee: trained.guarantee.as_ref(),
            },
            label: &model.schema().label,
            positive: &model.schema().positive,
            threshold: summary.threshold,
            rows,
            incomplete,
            labelled,
            metrics: summary.metrics,
        }
    }
}
