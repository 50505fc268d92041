//! Result files and stdout.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use radmm_node::atomic_file::AtomicFile;
use serde::Serialize;

use crate::error::CommandError;
use crate::output::stderr;

/// Creates a folder for results. Called before the computation, so that hours of work are not lost.
pub(crate) fn create_folder(out: &Path) -> Result<(), CommandError> {
    if out.is_file() {
        let cause = io::Error::other("it is a file, not a folder");
        return Err(unwritable(out, cause));
    }
    fs::create_dir_all(out).map_err(|cause| unwritable(out, cause))
}

/// Writes result files into a folder, and reports each unless `quiet`.
pub(crate) fn write_all<N: AsRef<Path>>(
    folder: &Path,
    quiet: bool,
    files: impl IntoIterator<Item = (N, String)>,
) -> Result<(), CommandError> {
    for (name, text) in files {
        let path = folder.join(name);
        write_with(&path, |file| file.write_all(text.as_bytes()))?;
        stderr::wrote(&path, quiet);
    }
    Ok(())
}

/// Writes a result file atomically: a reader sees the old file or the new one, never a part.
pub(crate) fn write_with(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CommandError> {
    let written = AtomicFile::create(path).and_then(|mut file| {
        write(&mut file)?;
        file.commit()
    });
    written.map_err(|cause| unwritable(path, cause))
}

/// Formats a value as JSON that ends in a newline.
pub(crate) fn json(value: &impl Serialize) -> String {
    // Every map has string keys, and floats that are not finite become null: serialisation cannot fail.
    serde_json::to_string_pretty(value).expect("a result is valid JSON") + "\n"
}

/// Prints text on stdout.
pub(crate) fn print(text: &str) -> Result<(), CommandError> {
    print_with(|stdout| stdout.write_all(text.as_bytes()))
}

/// Prints on stdout piece by piece.
pub(crate) fn print_with(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CommandError> {
    let mut stdout = io::BufWriter::new(io::stdout());
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        // The reader has closed the pipe: `radmm run | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}

fn unwritable(path: &Path, cause: io::Error) -> CommandError {
    CommandError::Unwritable {
        path: path.to_owned(),
        cause,
    }
}
