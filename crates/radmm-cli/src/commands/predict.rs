//! `radmm predict`: applies a model to the rows of a file.

use std::fs;
use std::io::{self, Write};

use radmm_data::{DataError, EncodedRow, Format, ScoreCounts, TableFile, score_each};
use radmm_study::ModelFile;
use radmm_study::foreign_text::{MAX_FOREIGN_TEXT, quoted, visible};

use crate::args::PredictArgs;
use crate::error::CommandError;
use crate::input::load;
use crate::output::metrics::{Metrics, MetricsBuilder};
use crate::output::prediction_writer::{Prediction, PredictionWriter, Summary};
use crate::output::{files, stderr};

pub(crate) fn run(args: &PredictArgs) -> Result<(), CommandError> {
    let text = load::read_text(&args.model)?;
    let model = ModelFile::parse(&text, &args.model.display().to_string())?;
    let classifier = Classifier::new(&model, args.threshold)?;
    // Only LIBSVM has numbered columns.
    let numbered = model.schema().numbered > 0;
    let mut options = args.written.options();
    let known = options.format.or_else(|| Format::of(&args.data));
    options.format = known.or(numbered.then_some(Format::Libsvm));
    let table = load::table(&args.data, options)?;
    protect_inputs(args)?;

    let mut predicted = None;
    let mut unreadable = None;
    let write = |to: &mut dyn Write| {
        let writer = match args.json {
            true => PredictionWriter::json(to, classifier.column()),
            false => PredictionWriter::csv(to, classifier.column()),
        };
        match classifier.predict_all(table, writer) {
            Ok(end) => {
                predicted = Some(end);
                Ok(())
            }
            Err(PredictError::Write(cause)) => Err(cause),
            Err(PredictError::Read(error)) => {
                unreadable = Some(error);
                Err(io::Error::other("the rows cannot be read"))
            }
        }
    };
    let written = match &args.out {
        Some(path) => files::write_with(path, write),
        None => files::print_with(write),
    };
    if let Some(error) = unreadable {
        return Err(CommandError::from_scored_rows(error));
    }
    written?;
    // `None` if the reader of stdout has closed it.
    if let Some(predicted) = predicted {
        if let Some(path) = &args.out {
            stderr::wrote(path, false);
        }
        let ScoreCounts {
            rows, incomplete, ..
        } = predicted.rows;
        if incomplete > 0 {
            stderr::line(format!(
                "note: {incomplete} of {rows} rows lack a field and have no prediction"
            ));
        }
        if !args.json {
            stderr::line(classifier.explanation(predicted.metrics.as_ref()));
        }
    }
    Ok(())
}

/// Fails if the output would overwrite an input.
fn protect_inputs(args: &PredictArgs) -> Result<(), CommandError> {
    let Some(out) = &args.out else {
        return Ok(());
    };
    // A file that does not exist has no canonical path.
    let same = |input| match (fs::canonicalize(out), fs::canonicalize(input)) {
        (Ok(out), Ok(input)) => out == input,
        _ => false,
    };
    match same(&args.data) || same(&args.model) {
        true => Err(CommandError::OverwritesInput(out.clone())),
        false => Ok(()),
    }
}

/// A model with a threshold.
struct Classifier<'a> {
    model: &'a ModelFile,
    threshold: f64,
}

/// The result of predicting all rows.
struct Predicted {
    rows: ScoreCounts,
    metrics: Option<Metrics>,
}

/// The reason why not all rows were predicted.
enum PredictError {
    Read(DataError),
    Write(io::Error),
}

impl From<DataError> for PredictError {
    fn from(error: DataError) -> Self {
        Self::Read(error)
    }
}

impl From<io::Error> for PredictError {
    fn from(cause: io::Error) -> Self {
        Self::Write(cause)
    }
}

impl<'a> Classifier<'a> {
    fn new(model: &'a ModelFile, threshold: Option<f64>) -> Result<Self, CommandError> {
        let has_probabilities = model.probability(0.0).is_some();
        let threshold = match (threshold, has_probabilities) {
            (Some(threshold), true) if !(0.0..=1.0).contains(&threshold) => {
                let reason = "must be a probability, from 0 to 1";
                return Err(CommandError::Threshold(reason));
            }
            (Some(threshold), _) => threshold,
            (None, true) => 0.5,
            (None, false) => 0.0,
        };
        Ok(Self { model, threshold })
    }

    /// Returns the name of the predicted value.
    fn column(&self) -> &'static str {
        match self.model.probability(0.0) {
            Some(_) => "probability",
            None => "score",
        }
    }

    fn predict(&self, row: &EncodedRow<'_>) -> Prediction {
        let score = row.score(self.model.weights());
        let value = self.model.probability(score).unwrap_or(score);
        Prediction {
            score,
            value,
            positive: value >= self.threshold,
        }
    }

    /// Predicts and writes all rows of a table.
    fn predict_all(
        &self,
        table: TableFile,
        mut writer: PredictionWriter<'_>,
    ) -> Result<Predicted, PredictError> {
        let mut metrics = MetricsBuilder::default();
        let rows = score_each(table, self.model.schema(), |row| {
            let prediction = row.as_ref().map(|row| self.predict(row));
            let actual = row.and_then(|row| row.positive());
            if let (Some(prediction), Some(actual)) = (&prediction, actual) {
                metrics.add(prediction, actual);
            }
            writer.row(prediction)?;
            Ok::<_, PredictError>(())
        })?;
        let metrics = metrics.finish();
        writer.end(&Summary {
            model: self.model,
            threshold: self.threshold,
            rows,
            metrics: metrics.as_ref(),
        })?;
        Ok(Predicted { rows, metrics })
    }

    /// Explains the predictions, and shows their metrics if the rows have labels.
    fn explanation(&self, metrics: Option<&Metrics>) -> String {
        let schema = self.model.schema();
        let (label, positive) = (
            visible(&schema.label, MAX_FOREIGN_TEXT),
            quoted(&schema.positive),
        );
        let (column, threshold) = (self.column(), self.threshold);
        let meaning =
            format!("1 means that {label} is {positive}: a {column} of at least {threshold}");
        match metrics {
            None => meaning,
            Some(metrics) if metrics.positives() == 0 => format!(
                "{meaning}\nnote: no row has {positive} for {label}; is it written differently there?\n\n{}",
                metrics.table(&schema.positive)
            ),
            Some(metrics) => format!("{meaning}\n\n{}", metrics.table(&schema.positive)),
        }
    }
}
