//! `radmm predict`.

use std::fs;
use std::io::{self, Write};

use radmm_data::{DataError, EncodedRow, Format, ScoreCounts, TableFile, score_each};
use radmm_study::ModelFile;

use crate::args::PredictArgs;
use crate::data;
use crate::failure::Failure;
use crate::files;
use crate::message::message;
use crate::quality::{Quality, Seen};
use crate::sheet::{Prediction, Sheet, Summary};

pub(crate) fn predict(typed: &PredictArgs) -> Result<(), Failure> {
    let text = files::read_text(&typed.model)?;
    let model = ModelFile::parse(&text, &typed.model.display().to_string())?;
    let judge = Judge::new(&model, typed.threshold)?;
    // Only one format has numbered columns.
    let numbered = model.schema().numbered > 0;
    let format = typed.format.or_else(|| Format::of(&typed.data));
    let format = format.or(numbered.then_some(Format::Libsvm));
    let table = data::open(&typed.data, format)?;
    keep_inputs(typed)?;

    let mut told = None;
    let mut fault = None;
    let write = |to: &mut dyn Write| {
        let sheet = match typed.json {
            true => Sheet::json(to, judge.column()),
            false => Sheet::csv(to, judge.column()),
        };
        match judge.all(table, sheet) {
            Ok(end) => {
                told = Some(end);
                Ok(())
            }
            Err(Stopped::Written(cause)) => Err(cause),
            Err(Stopped::Read(error)) => {
                fault = Some(error);
                Err(io::Error::other("the rows cannot be read"))
            }
        }
    };
    let written = match &typed.out {
        Some(path) => files::write_whole_by(path, write),
        None => files::print_by(write),
    };
    if let Some(error) = fault {
        return Err(Failure::of_rows(error));
    }
    written?;
    // Nothing is left to tell if whoever reads has read enough.
    if let Some(told) = told {
        if let Some(path) = &typed.out {
            message!("wrote {}", path.display());
        }
        let ScoreCounts {
            rows, incomplete, ..
        } = told.rows;
        if incomplete > 0 {
            message!("note: {incomplete} of {rows} rows lack a field and have no prediction");
        }
        if !typed.json {
            message!("{}", judge.words(told.quality.as_ref()));
        }
    }
    Ok(())
}

/// Results must not take the place of what they are made of.
fn keep_inputs(typed: &PredictArgs) -> Result<(), Failure> {
    let Some(out) = &typed.out else {
        return Ok(());
    };
    // A file that is not there has no such path.
    let same = |input| match (fs::canonicalize(out), fs::canonicalize(input)) {
        (Ok(out), Ok(input)) => out == input,
        _ => false,
    };
    match same(&typed.data) || same(&typed.model) {
        true => Err(Failure::Overwrites(out.clone())),
        false => Ok(()),
    }
}

/// A model and where it draws the line.
struct Judge<'a> {
    model: &'a ModelFile,
    threshold: f64,
}

/// What came of all rows.
struct Told {
    rows: ScoreCounts,
    quality: Option<Quality>,
}

/// Why it ended early.
enum Stopped {
    Read(DataError),
    Written(io::Error),
}

impl From<DataError> for Stopped {
    fn from(error: DataError) -> Self {
        Self::Read(error)
    }
}

impl From<io::Error> for Stopped {
    fn from(cause: io::Error) -> Self {
        Self::Written(cause)
    }
}

impl<'a> Judge<'a> {
    fn new(model: &'a ModelFile, typed: Option<f64>) -> Result<Self, Failure> {
        let has_probabilities = model.probability(0.0).is_some();
        let threshold = match (typed, has_probabilities) {
            (Some(threshold), true) if !(0.0..=1.0).contains(&threshold) => {
                return Err(Failure::Threshold("a probability is from 0 to 1"));
            }
            (Some(threshold), _) => threshold,
            (None, true) => 0.5,
            (None, false) => 0.0,
        };
        Ok(Self { model, threshold })
    }

    /// What is said of a row.
    fn column(&self) -> &'static str {
        match self.model.probability(0.0) {
            Some(_) => "probability",
            None => "score",
        }
    }

    fn of(&self, row: &EncodedRow<'_>) -> Prediction {
        let score = row.score(self.model.weights());
        let value = self.model.probability(score).unwrap_or(score);
        Prediction {
            score,
            value,
            positive: value >= self.threshold,
        }
    }

    /// Goes over all rows and writes what it thinks of them.
    fn all(&self, table: TableFile, mut sheet: Sheet<'_>) -> Result<Told, Stopped> {
        let mut seen = Seen::default();
        sheet.begin()?;
        let rows = score_each(table, self.model.schema(), |row| {
            let prediction = row.as_ref().map(|row| self.of(row));
            let actual = row.and_then(|row| row.positive());
            if let (Some(prediction), Some(actual)) = (&prediction, actual) {
                seen.add(prediction, actual);
            }
            sheet.row(prediction)?;
            Ok::<_, Stopped>(())
        })?;
        let quality = seen.quality();
        sheet.end(&Summary {
            model: self.model,
            threshold: self.threshold,
            rows,
            quality: quality.as_ref(),
        })?;
        Ok(Told { rows, quality })
    }

    /// What predictions mean, and how good they are if that is known.
    fn words(&self, quality: Option<&Quality>) -> String {
        let schema = self.model.schema();
        let (label, positive) = (&schema.label, &schema.positive);
        let (column, threshold) = (self.column(), self.threshold);
        let meaning =
            format!("1 means that {label} is {positive:?}: a {column} of at least {threshold}");
        match quality {
            None => meaning,
            Some(quality) if quality.positives() == 0 => format!(
                "{meaning}\nnote: no row has {positive:?} for {label}; is it written in another way there?\n\n{}",
                quality.table(positive)
            ),
            Some(quality) => format!("{meaning}\n\n{}", quality.table(positive)),
        }
    }
}
