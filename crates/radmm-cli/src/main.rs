//! The binary `radmm`: what was typed → what it means → what came of it.
//!
//! Data goes to stdout, messages to stderr. Exit code 0: done; 1: it failed; 2: it was used wrongly.

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
use crate::output::stderr::message;

fn main() -> ExitCode {
    keep_caught_panics_quiet();
    let outcome = match Args::parse().command {
        Command::Run(typed) => commands::run::run(typed),
        Command::Compare(typed) => commands::compare::run(typed),
        Command::Reproduce(typed) => commands::reproduce::run(&typed),
        Command::Certify(typed) => commands::certify::certify(typed),
        Command::Privacy(typed) => commands::privacy::privacy(&typed),
        Command::Audit(typed) => commands::audit::audit(&typed),
        Command::Node(typed) => commands::node::node(&typed),
        Command::Up(typed) => commands::up::up(&typed),
        Command::Predict(typed) => commands::predict::predict(&typed),
        Command::Verify(typed) => commands::verify::verify(&typed),
        Command::Data(command) => commands::data::data(command),
        Command::Key(command) => commands::key::key(&command),
        Command::Ledger(command) => commands::ledger::ledger(&command),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            message!("error: {failure}");
            failure.exit_code()
        }
    }
}

/// Damaged files make their decoder panic; that is caught and told as an error, and needs no second telling.
fn keep_caught_panics_quiet() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !radmm_data::decoding() {
            usual(panic);
        }
    }));
}
