//! What was typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use radmm_data::Format;

/// Train one linear classifier on many parties' rows: no server, neighbours only, one privacy guarantee over every message.
#[derive(Parser)]
#[command(name = "radmm", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    /// Look at files of rows
    #[command(subcommand, arg_required_else_help = true)]
    Data(DataCommand),
}

#[derive(Subcommand)]
pub(crate) enum DataCommand {
    Inspect(InspectArgs),
}

/// Draft the data section of a study from a file of rows
///
/// Prints the section, with comments, on stdout and a table of the columns on stderr. The bounds and vocabularies in it
/// are read off the rows, so they are not public: replace them by ones that are known without the rows (documentation,
/// physiology, law, a code book) before a study uses them.
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

    /// Its value for the positive class [default: one of two]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub positive: Option<String>,

    /// csv, parquet or libsvm [default: what the extension says]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub format: Option<Format>,

    /// Print what was found as JSON in place of the section
    #[arg(long)]
    pub json: bool,
}

/// Run a study in simulation: all parties in this process
///
/// Prints what came out, beside what each party could do alone and by averaging once. A simulation repeats from its seed
/// and holds everybody's rows: it says how good and how private an algorithm is, and protects nobody.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm run                              the built-in study
  radmm run study.toml --out results     a study of your own (docs/study.md says what may stand in it)
  radmm run study.toml --json | jq .privacy")]
pub(crate) struct RunArgs {
    /// The study file; without one, a built-in study on invented patients
    pub study: Option<PathBuf>,

    /// Write result.json into this folder, which is made if need be
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print result.json in place of the tables
    #[arg(long)]
    pub json: bool,

    /// Every party's own limit on its total ε; a question that would exceed it is refused
    #[arg(long, value_name = "EPSILON", value_parser = limit, allow_negative_numbers = true)]
    pub limit: Option<f64>,

    /// How many threads to use [default: all cores]; the result is the same for any number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true)]
    pub threads: Option<u16>,

    /// No progress bar and no notes
    #[arg(long, short)]
    pub quiet: bool,
}

fn limit(typed: &str) -> Result<f64, String> {
    match typed.parse::<f64>() {
        Ok(epsilon) if epsilon.is_finite() && epsilon > 0.0 => Ok(epsilon),
        _ => Err("must be a positive, finite number".into()),
    }
}

fn format(typed: &str) -> Result<Format, String> {
    let known = Format::ALL
        .into_iter()
        .find(|format| format.name() == typed);
    known.ok_or_else(|| "must be csv, parquet or libsvm".into())
}
