//! The binary `radmm`: what was typed → what it means → what came of it.
//!
//! Data goes to stdout, messages to stderr. Exit code 0: done; 1: it failed; 2: it was used wrongly.

mod accuracy;
mod args;
mod audit;
mod bounds;
mod certify;
mod compare;
mod data;
mod failure;
mod files;
mod key;
mod label;
mod ledger;
mod message;
mod node;
mod notes;
mod predict;
mod prepare;
mod privacy;
mod progress;
mod proposal;
mod quality;
mod render;
mod reproduce;
mod run;
mod sheet;
mod toml;
mod up;
mod verify;

use std::panic;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};
use crate::message::message;

fn main() -> ExitCode {
    keep_caught_panics_quiet();
    let outcome = match Args::parse().command {
        Command::Run(typed) => run::run(typed),
        Command::Compare(typed) => compare::run(typed),
        Command::Reproduce(typed) => reproduce::run(&typed),
        Command::Certify(typed) => certify::certify(typed),
        Command::Privacy(typed) => privacy::privacy(&typed),
        Command::Audit(typed) => audit::audit(&typed),
        Command::Node(typed) => node::node(&typed),
        Command::Up(typed) => up::up(&typed),
        Command::Predict(typed) => predict::predict(&typed),
        Command::Verify(typed) => verify::verify(&typed),
        Command::Data(command) => data::data(command),
        Command::Key(command) => key::key(&command),
        Command::Ledger(command) => ledger::ledger(&command),
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
        if !radmm_data::is_decoding() {
            usual(panic);
        }
    }));
}
