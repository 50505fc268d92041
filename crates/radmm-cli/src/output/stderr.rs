//! Messages on stderr.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

/// Writes a line. A closed stderr is ignored, where `eprintln!` would panic.
pub(crate) fn line(text: impl Display) {
    // One write, so that lines of several processes do not mix.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Writes a line for every note, unless `quiet`.
pub(crate) fn notes<T: Display>(notes: impl IntoIterator<Item = T>, quiet: bool) {
    if !quiet {
        let notes = notes.into_iter();
        notes.for_each(|note| line(format!("note: {note}")));
    }
}

/// Writes a warning, unless there is none or `quiet`.
pub(crate) fn warning(warning: Option<&impl Display>, quiet: bool) {
    if let (Some(warning), false) = (warning, quiet) {
        line(format!("warning: {warning}"));
    }
}

/// Reports that a file was written, unless `quiet`.
pub(crate) fn wrote(path: &Path, quiet: bool) {
    if !quiet {
        line(format!("wrote {}", path.display()));
    }
}
