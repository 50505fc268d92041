//! Writes the man pages and the shell completions of `radmm` from the definition of its command line, for packages.
//!
//! ```sh
//! cargo run -p radmm-cli --example manual -- FOLDER [DATE]
//! ```
//!
//! `FOLDER` receives `man/` with a page for `radmm` and for every subcommand, and `completions/` with a file for each shell.
//! `DATE` is the date in the pages, as 2026-01-31; without one they have none.

mod pages;

use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use clap_complete::Shell;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let folder = args.next().map(PathBuf::from);
    let folder = folder.ok_or("no folder is given; usage: manual FOLDER [DATE]")?;
    let date = args.next().unwrap_or_default();
    let date = date.to_str().ok_or("the date is not text")?;
    write_pages(&folder.join("man"), date)?;
    write_completions(&folder.join("completions"))?;
    Ok(())
}

fn write_pages(folder: &Path, date: &str) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    for page in pages::all(radmm_cli::command(), date) {
        fs::write(folder.join(&page.file), &page.text)?;
    }
    Ok(())
}

/// Writes the completions under the names that the shells look for.
fn write_completions(folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    for (shell, file) in [
        (Shell::Bash, "radmm"),
        (Shell::Zsh, "_radmm"),
        (Shell::Fish, "radmm.fish"),
    ] {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut radmm_cli::command(), "radmm", &mut text);
        fs::write(folder.join(OsStr::new(file)), text)?;
    }
    Ok(())
}
