//! The command line of radmm, as a library: the binary `radmm` and the Python package run the same commands.
//!
//! Data goes to stdout, messages to stderr. Exit code 0: success; 1: failure; 2: wrong use
//! (`CommandError::exit_code` in `error.rs`).

mod args;
mod commands;
mod error;
mod input;
mod inspect;
mod output;
pub mod text;

use std::ffi::OsString;
use std::panic;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};
use radmm_lab::{Experiment, Outcome};

use crate::args::{Args, Command};
use crate::output::stderr;

pub use commands::plan::planned_epsilons;
pub use inspect::{DraftTerms, DraftedStudy, draft_columns, draft_from_memory};

/// Writes the files of `radmm run --out` into the folder `out`, and returns their paths. `folder` is that of the study.
pub fn write_results(
    out: &Path,
    folder: &Path,
    experiment: &Experiment,
    outcome: &Outcome,
) -> Result<Vec<PathBuf>, String> {
    let written = commands::run::write_results(out, folder, experiment, outcome);
    written.map_err(|error| error.to_string())
}

/// Parses arguments, runs one command and returns its exit code.
///
/// `program` is the command that starts this program, with its leading arguments: `radmm up` starts it again for every party.
/// `args` are the arguments after it.
pub fn run(program: Vec<OsString>, args: impl IntoIterator<Item = OsString>) -> u8 {
    silence_caught_panics();
    let args = match Args::try_parse_from([OsString::from("radmm")].into_iter().chain(args)) {
        Ok(args) => args,
        Err(error) => {
            // Help and version are no errors. A closed pipe is nobody's fault.
            let _ = error.print();
            return error.exit_code() as u8;
        }
    };
    let result = match args.command {
        Command::Init(args) => commands::init::run(&args),
        Command::Run(args) => commands::run::run(&args),
        Command::Plan(args) => commands::plan::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Collect(args) => commands::collect::run(&args),
        Command::Reproduce(args) => commands::reproduce::run(&args),
        Command::Certify(args) => commands::certify::run(&args),
        Command::Privacy(args) => commands::privacy::run(&args),
        Command::Audit(args) => commands::audit::run(&args),
        Command::Node(args) => commands::node::run(&args),
        Command::Status(args) => commands::status::run(&args),
        Command::Page(args) => commands::page::run(&args),
        Command::Up(args) => commands::up::run(&args, &program),
        Command::Predict(args) => commands::predict::run(&args),
        Command::Verify(args) => commands::verify::run(&args),
        Command::Data(command) => commands::data::run(&command),
        Command::Study(command) => commands::study::run(&command),
        Command::Key(command) => commands::key::run(&command),
        Command::Ledger(command) => commands::ledger::run(&command),
        Command::State(command) => commands::state::run(&command),
    };
    let code = match result {
        Ok(()) => 0,
        Err(error) => {
            stderr::line(format!("error: {error}"));
            error.exit_code()
        }
    };
    stderr::finish();
    code
}

/// Returns the definition of the command line, from which examples/manual writes man pages and shell completions.
///
/// Hidden, because clap's types are no part of this library's interface: their version may change at any time.
#[doc(hidden)]
pub fn command() -> clap::Command {
    Args::command()
}

/// Suppresses the panic message of decoders: damaged files make them panic, which is caught and reported as an error.
pub fn silence_caught_panics() {
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !radmm_data::is_decoding() {
            default_hook(panic);
        }
    }));
}
