//! The binary `radmm`: parses the arguments, runs one command, maps its error to an exit code.
//!
//! Data goes to stdout, messages to stderr. Exit code 0: success; 1: failure; 2: wrong use
//! ([`CommandError::exit_code`](error::CommandError::exit_code)).

mod args;
mod commands;
mod error;
mod input;
mod inspect;
mod output;

use std::panic;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};
use crate::output::stderr;

fn main() -> ExitCode {
    silence_caught_panics();
    let result = match Args::parse().command {
        Command::Init(args) => commands::init::run(&args),
        Command::Run(args) => commands::run::run(&args),
        Command::Plan(args) => commands::plan::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Reproduce(args) => commands::reproduce::run(&args),
        Command::Certify(args) => commands::certify::run(&args),
        Command::Privacy(args) => commands::privacy::run(&args),
        Command::Audit(args) => commands::audit::run(&args),
        Command::Node(args) => commands::node::run(&args),
        Command::Up(args) => commands::up::run(&args),
        Command::Predict(args) => commands::predict::run(&args),
        Command::Verify(args) => commands::verify::run(&args),
        Command::Data(command) => commands::data::run(&command),
        Command::Key(command) => commands::key::run(&command),
        Command::Ledger(command) => commands::ledger::run(&command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            stderr::line(format!("error: {error}"));
            error.exit_code()
        }
    }
}

/// Suppresses the panic message of decoders: damaged files make them panic, which is caught and reported as an error.
fn silence_caught_panics() {
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !radmm_data::is_decoding() {
            default_hook(panic);
        }
    }));
}
