//! What was typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

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
    Certify(CertifyArgs),
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

/// Say whether a study's algorithm converges, and how fast
///
/// Decides the condition of the paper's Theorem III.1, computes the true rate near the optimum of the study's rows, and runs
/// the study without noise. Exit code 0 whether or not the condition is met: that is an answer.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm certify                          the built-in study
  radmm certify study.toml               a study of your own
  radmm certify study.toml --json | jq .theorem")]
pub(crate) struct CertifyArgs {
    /// The study file; without one, a built-in study on invented patients
    pub study: Option<PathBuf>,

    /// Print the numbers as JSON in place of the tables
    #[arg(long)]
    pub json: bool,

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
