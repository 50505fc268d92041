//! Files in and out: studies, results, and what is printed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::Failure;

/// A study file's text, its name in messages, and the folder that its paths are relative to.
pub(crate) struct StudyText {
    pub text: String,
    pub name: String,
    pub folder: PathBuf,
}

impl StudyText {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        Ok(Self {
            text: read_text(path)?,
            name: path.display().to_string(),
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
        })
    }
}

/// The text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|cause| Failure::Unreadable {
        path: path.to_owned(),
        cause: match cause.kind() {
            io::ErrorKind::InvalidData => {
                io::Error::other("it is not text in UTF-8; save it as UTF-8")
            }
            _ => cause,
        },
    })
}

/// Makes a folder for results. Done before hours of computation, not after them.
pub(crate) fn make_folder(out: &Path) -> Result<(), Failure> {
    if out.is_file() {
        let cause = io::Error::other("it is a file, not a folder");
        return Err(unwritable(out, cause));
    }
    fs::create_dir_all(out).map_err(|cause| unwritable(out, cause))
}

/// Writes a file of results. A reader sees the old file or the new one, never half of it.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    write_whole_by(path, |file| file.write_all(text.as_bytes()))
}

/// The same of what is written piece by piece.
pub(crate) fn write_whole_by(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    let written = fs::File::create(&beside).and_then(|file| {
        let mut file = io::BufWriter::new(file);
        write(&mut file)?;
        file.flush()?;
        fs::rename(&beside, path)
    });
    written.map_err(|cause| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
        unwritable(path, cause)
    })
}

/// As JSON, with a line end.
pub(crate) fn json(value: &impl Serialize) -> String {
    // Every map has string keys and floats that are not finite become null, so that nothing is left to fail.
    serde_json::to_string_pretty(value).expect("a result is valid JSON") + "\n"
}

/// Data for stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_by(|stdout| stdout.write_all(text.as_bytes()))
}

/// The same of what is written piece by piece.
pub(crate) fn print_by(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut stdout = io::BufWriter::new(io::stdout());
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        // Whoever reads has read enough: `radmm run | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}

fn unwritable(path: &Path, cause: io::Error) -> Failure {
    Failure::Unwritable {
        path: path.to_owned(),
        cause,
    }
}
