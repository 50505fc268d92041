//! Runs `radmm` as a user would.

use std::path::Path;
use std::process::{Command, Output};

/// Returns the command `radmm` in a folder.
#[allow(dead_code, reason = "only some tests write to its standard input")]
pub fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_radmm"));
    command.current_dir(folder).args(args);
    command
}

/// Runs `radmm` in a folder.
#[allow(dead_code, reason = "some tests start it by `command` alone")]
pub fn radmm(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_radmm"))
        .current_dir(folder)
        .args(args)
        .output()
        .unwrap()
}

/// Converts output to text.
pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
