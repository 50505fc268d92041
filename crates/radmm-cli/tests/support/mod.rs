//! The program, run as a user would.

use std::path::Path;
use std::process::{Command, Output};

/// Runs `radmm` in a folder.
pub fn radmm(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_radmm"))
        .current_dir(folder)
        .args(args)
        .output()
        .unwrap()
}

/// What it printed.
pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
