//! Predictions as CSV or JSON, row by row as they come.

use std::io::{self, Write};

use radmm_data::ScoreCounts;
use radmm_study::{ModelFile, ModelGuarantee};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::quality::Quality;

/// What is said of a row.
#[derive(Clone, Copy)]
pub(crate) struct Prediction {
    /// `fᵀx`.
    pub score: f64,
    /// What is written: a probability, or the score.
    pub value: f64,
    /// Whether it is the positive class.
    pub positive: bool,
}

/// What is said of all.
pub(crate) struct Summary<'a> {
    pub model: &'a ModelFile,
    pub threshold: f64,
    pub rows: ScoreCounts,
    pub quality: Option<&'a Quality>,
}

/// Where predictions go.
pub(crate) struct Sheet<'a> {
    to: &'a mut dyn Write,
    /// The name of a prediction's value.
    column: &'static str,
    shape: Shape,
    rows: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Csv,
    Json,
}

impl<'a> Sheet<'a> {
    pub(crate) fn csv(to: &'a mut dyn Write, column: &'static str) -> Self {
        Self {
            to,
            column,
            shape: Shape::Csv,
            rows: 0,
        }
    }

    pub(crate) fn json(to: &'a mut dyn Write, column: &'static str) -> Self {
        Self {
            shape: Shape::Json,
            ..Self::csv(to, column)
        }
    }

    pub(crate) fn begin(&mut self) -> io::Result<()> {
        match self.shape {
            Shape::Csv => writeln!(self.to, "row,{},predicted", self.column),
            Shape::Json => write!(self.to, "{{\n  \"rows\": ["),
        }
    }

    /// The next row; one without a prediction has empty cells.
    pub(crate) fn row(&mut self, prediction: Option<Prediction>) -> io::Result<()> {
        self.rows += 1;
        let (row, column) = (self.rows, self.column);
        if self.shape == Shape::Json {
            let comma = if row == 1 { "" } else { "," };
            let object = Map::from_iter([
                ("row".to_owned(), row.into()),
                (column.to_owned(), prediction.map(|told| told.value).into()),
                (
                    "predicted".to_owned(),
                    prediction.map(|told| u8::from(told.positive)).into(),
                ),
            ]);
            return write!(self.to, "{comma}\n    {}", Value::Object(object));
        }
        match prediction {
            // The shortest decimal that means the number.
            Some(told) => {
                let predicted = u8::from(told.positive);
                writeln!(self.to, "{row},{:?},{predicted}", told.value)
            }
            None => writeln!(self.to, "{row},,"),
        }
    }

    pub(crate) fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        if self.shape == Shape::Csv {
            return Ok(());
        }
        let gap = if self.rows == 0 { "" } else { "\n  " };
        let summary = serde_json::to_string_pretty(&Written::new(summary))?;
        let summary = summary.replace('\n', "\n  ");
        writeln!(self.to, "{gap}],\n  \"summary\": {summary}\n}}")
    }
}

#[derive(Serialize)]
struct Written<'a> {
    model: Origin<'a>,
    label: &'a str,
    positive: &'a str,
    threshold: f64,
    rows: usize,
    incomplete: usize,
    labelled: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<&'a Quality>,
}

/// Which model it was.
#[derive(Serialize)]
struct Origin<'a> {
    study: &'a str,
    study_sha256: &'a str,
    party: &'a str,
    iterations: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    guarantee: Option<&'a ModelGuarantee>,
}

impl<'a> Written<'a> {
    fn new(summary: &Summary<'a>) -> Self {
        let model = summary.model;
        let trained = model.trained();
        let ScoreCounts {
            rows,
            incomplete,
            labelled,
        } = summary.rows;
        Self {
            model: Origin {
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
            quality: summary.quality,
        }
    }
}
