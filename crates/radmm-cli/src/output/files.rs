//! Result files and stdout.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use radmm_node::atomic_file::AtomicFile;
use radmm_study::Study;
use serde::Serialize;
use serde_json::Value;

use crate::error::CommandError;
use crate::output::stderr;

/// Checks that results can be written into a folder. Called before the computation, so that hours of work are not lost.
pub(crate) fn check_folder(out: &Path) -> Result<(), CommandError> {
    try_folder(out).map_err(|cause| unwritable(out, cause))
}

/// Creates, syncs and removes a file in a folder. Nothing is left behind: a folder that does not exist is created and removed
/// again.
pub(crate) fn try_folder(folder: &Path) -> io::Result<()> {
    if folder.is_file() {
        return Err(io::Error::other("it is a file, not a folder"));
    }
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
    fs::create_dir_all(folder)?;
    let file = folder.join(format!(".radmm-{}", process::id()));
    let tried = File::create(&file).and_then(|mut file| {
        file.write_all(b"can this be written?\n")?;
        file.sync_all()
    });
    let removed = fs::remove_file(&file);
    // Another process may have put something into it meanwhile.
    missing
        .iter()
        .for_each(|folder| drop(fs::remove_dir(folder)));
    tried.and(removed)
}

/// Checks that a folder does not hold the results of another study. `key` is what names the folder.
pub(crate) fn check_other_results(
    out: &Path,
    study: &Study,
    key: &'static str,
) -> Result<(), CommandError> {
    let statement = fs::read_to_string(out.join("privacy-statement.json"));
    let statement = statement
        .ok()
        .and_then(|text| serde_json::from_str::<Value>(&text).ok());
    // A node's statement is signed, and lies beside its signature.
    let statement = statement.map(|mut file| match file["statement"].take() {
        Value::Null => file,
        signed => signed,
    });
    match statement {
        Some(existing) if existing["study_sha256"] != study.sha256().as_str() => {
            Err(CommandError::OtherResults {
                path: out.to_owned(),
                study: existing["study"].as_str().unwrap_or("?").to_owned(),
                key,
            })
        }
        _ => Ok(()),
    }
}

/// Creates a folder for results.
pub(crate) fn create_folder(out: &Path) -> Result<(), CommandError> {
    fs::create_dir_all(out).map_err(|cause| unwritable(out, cause))
}

/// Writes result files into a folder, which is created if need be, and reports each unless `quiet`.
pub(crate) fn write_all<N: AsRef<Path>>(
    folder: &Path,
    quiet: bool,
    files: impl IntoIterator<Item = (N, String)>,
) -> Result<(), CommandError> {
    create_folder(folder)?;
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

/// Prints text on stdout, and waits for its reader for a limited time.
pub(crate) fn print_within(patience: Duration, text: String) -> Result<(), CommandError> {
    let (done, printed) = channel();
    thread::spawn(move || drop(done.send(print(&text))));
    match printed.recv_timeout(patience) {
        Ok(printed) => printed,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "nobody reads stdout").into()),
    }
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
