//! Arguments of the commands on files of rows: `data inspect`, `predict`.

use std::path::PathBuf;

use clap::Subcommand;
use radmm_data::{DecimalMark, FileOptions, Format, Separator};

use super::values;
use crate::inspect::NumericEncoding;

#[derive(Subcommand)]
pub(crate) enum DataCommand {
    Inspect(InspectArgs),
}

/// Draft a study from a file of rows, on stdout
///
/// Prints what `radmm init` writes, with comments, on stdout and a table of the columns on stderr. Its bounds and vocabularies
/// are read off the rows, so they are not public: before a study uses them, replace them by values that are known without the
/// rows, from documentation, physiology, law or a code book.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm data inspect rows.csv > study.toml
  radmm data inspect rows.parquet --label income --positive '>50K'
  radmm data inspect a9a --format libsvm --json | jq .numbered
  psql -c 'copy (select …) to stdout (format csv, header)' | radmm data inspect -")]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub table: LabelledTable,

    /// Print the findings as JSON instead of the study
    #[arg(long)]
    pub json: bool,
}

/// The way in which a file of rows is written.
#[derive(clap::Args, Default)]
pub(crate) struct FileArgs {
    /// csv, parquet or libsvm [default: by the extension]
    #[arg(long, value_name = "FORMAT", value_parser = values::format)]
    pub format: Option<Format>,

    /// The character between the fields of a CSV file: , ; | or tab [default: by the extension]
    #[arg(long, value_name = "CHAR", value_parser = values::separator)]
    pub separator: Option<Separator>,

    /// The decimal mark of a CSV file: . or , [default: .]
    #[arg(long, value_name = "CHAR", value_parser = values::decimal)]
    pub decimal: Option<DecimalMark>,
}

impl FileArgs {
    pub(crate) fn options(&self) -> FileOptions {
        FileOptions {
            format: self.format,
            separator: self.separator,
            decimal: self.decimal,
        }
    }
}

/// A file of rows with an outcome.
#[derive(clap::Args)]
pub(crate) struct LabelledTable {
    /// A CSV, Parquet or LIBSVM file; - for stdin, with data inspect
    pub file: PathBuf,

    /// The column that holds the outcome [default: a column with two values]
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,

    /// The label's value for the positive class [default: one of its two values]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub positive: Option<String>,

    #[command(flatten)]
    pub written: FileArgs,

    /// The encoding of numbers as columns [default: splines; bins for a pure total]
    #[arg(long, value_name = "HOW", value_enum)]
    pub numeric: Option<NumericEncoding>,
}

/// Write a study that runs, from a file of rows
///
/// Guesses nothing but what the file shows: numeric columns become splines, categories become columns of zeros and ones, a
/// missing value is a category of its own. The algorithm and all its numbers are left to public rules. Bounds, bins and
/// vocabularies are read off the rows, so they are not public: replace them by values that are known without the rows, or give
/// them with --ask. Everything can be changed in the file that is written.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm init rows.csv --label outcome --parties 5 --epsilon 1
  radmm init rows.csv --label outcome --by hospital --out trial/study.toml
  radmm init rows.csv --ask                     asks for label, bounds and vocabularies, with what it found as default
Then:
  radmm plan study.toml                         what accuracy to expect, for which privacy
  radmm run study.toml --out results            simulate it: results/report.html")]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub table: LabelledTable,

    #[command(flatten)]
    pub terms: StudyTerms,

    /// The study file to write
    #[arg(long, value_name = "FILE", default_value = "study.toml")]
    pub out: PathBuf,

    /// Overwrite the study file if it exists
    #[arg(long)]
    pub force: bool,

    /// Ask for the label, and for the public bounds and vocabularies of all columns
    #[arg(long)]
    pub ask: bool,

    /// Suppress the table of columns, notes and warnings
    #[arg(long, short)]
    pub quiet: bool,
}

/// The parties of a study that is to be drafted, and their total.
#[derive(clap::Args)]
pub(crate) struct StudyTerms {
    /// The number of parties among which a simulation deals out the rows
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub parties: u32,

    /// A column that tells whose a row is, such as a hospital: a party for each of its values
    #[arg(long, value_name = "COLUMN", conflicts_with = "parties")]
    pub by: Option<String>,

    /// ε, the total of every party over the whole run
    #[arg(long, value_name = "EPSILON", default_value_t = 1.0, value_parser = values::total_epsilon, allow_negative_numbers = true)]
    pub epsilon: f64,

    /// δ of the total; 0 for a pure one [default: 1e-6, or less where rows are many]
    #[arg(long, value_name = "DELTA", value_parser = values::delta, allow_negative_numbers = true)]
    pub delta: Option<f64>,
}

/// Apply a trained model to rows of your own
///
/// Prints a line for every row of the file, in its order: the row's number from 1, the probability of the label's positive value,
/// and 1 if that is at least the threshold, else 0. A model trained with the smooth hinge has scores instead of probabilities.
/// Rows need no label; if they have one, accuracy and AUC are printed on stderr. A row with a missing field gets no prediction.
/// Exit code 2 if the model cannot be read or the file has other columns.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm predict model.json rows.csv > predictions.csv
  radmm predict model.json rows.parquet --out predictions.csv     complete, or not written if a row is invalid
  radmm predict model.json rows.csv --threshold 0.2               accept more false alarms
  radmm predict model.json rows.csv --json | jq .summary.quality
  psql -c 'copy (select …) to stdout (format csv, header)' | radmm predict model.json - > predictions.csv")]
pub(crate) struct PredictArgs {
    /// A model.json written by radmm node or radmm run --out
    pub model: PathBuf,

    /// A CSV, Parquet or LIBSVM file with the columns that the model was trained on; - for CSV or LIBSVM through stdin
    pub data: PathBuf,

    #[command(flatten)]
    pub written: FileArgs,

    /// Predict 1 from this probability on [default: 0.5], or from this score on for models with scores [default: 0]
    #[arg(long, value_name = "P", value_parser = values::finite, allow_negative_numbers = true)]
    pub threshold: Option<f64>,

    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Write JSON instead of CSV: the rows, and a summary with accuracy and AUC
    #[arg(long)]
    pub json: bool,
}
