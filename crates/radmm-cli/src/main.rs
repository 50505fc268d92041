//! The binary `radmm`: what was typed → what it means → what came of it.
//!
//! Data goes to stdout, messages to stderr. Exit code 0: done; 1: it failed; 2: it was used wrongly.

mod args;
mod bounds;
mod data;
mod failure;
mod files;
mod label;
mod notes;
mod progress;
mod proposal;
mod render;
mod run;
mod toml;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Run(typed) => run::run(typed),
        Command::Data(command) => data::data(command),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}
