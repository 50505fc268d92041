//! Arguments of the commands on files of rows: `data inspect`, `predict`.

use std::path::PathBuf;

use clap::Subcommand;
use radmm_data::Format;

use super::values;

#[derive(Subcommand)]
pub(crate) enum DataCommand {
    Inspect(InspectArgs),
}

/// Draft the data section of a study from a file of rows
///
/// Prints the section, with comments, on stdout and a table of the columns on stderr. Its bounds and vocabularies are read off
/// the rows, so they are not public: before a study uses them, replace them by values that are known without the rows, from
/// documentation, physiology, law or a code book.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm data inspect rows.csv > study.toml
  radmm data inspect rows.parquet --label income --positive '>50K'
  radmm data inspect a9a --format libsvm --json | jq .numbered")]
pub(crate) struct InspectArgs {
    /// A CSV, Parquet or LIBSVM file
    pub file: PathBuf,

    /// The column that holds the outcome [default: a column with two values]
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,

    /// The label's value for the positive class [default: one of its two values]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub positive: Option<String>,

    /// csv, parquet or libsvm [default: by the extension]
    #[arg(long, value_name = "FORMAT", value_parser = values::format)]
    pub format: Option<Format>,

    /// Print the findings as JSON instead of the section
    #[arg(long)]
    pub json: bool,
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
  radmm predict model.json rows.csv --json | jq .summary.quality")]
pub(crate) struct PredictArgs {
    /// A model.json written by radmm node or radmm run --out
    pub model: PathBuf,

    /// A CSV, Parquet or LIBSVM file with the columns that the model was trained on
    pub data: PathBuf,

    /// csv, parquet or libsvm [default: by the extension]
    #[arg(long, value_name = "FORMAT", value_parser = values::format)]
    pub format: Option<Format>,

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
