//! The result files below a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::LeftOutRun;

const RESULT: &str = "result.json";

/// The name under which a result is written until it is complete.
const INCOMPLETE: &str = "result.json.new";

/// Returns all result files below a folder, and what cannot be searched, in the order of their paths: name by name, as bytes.
pub(super) fn result_files(folder: &Path) -> io::Result<Vec<Result<PathBuf, LeftOutRun>>> {
    let mut found = Vec::new();
    search(folder, &mut found)?;
    found.sort_by(|a, b| path(a).cmp(path(b)));
    Ok(found)
}

fn path(found: &Result<PathBuf, LeftOutRun>) -> &Path {
    match found {
        Ok(path) => path,
        Err(left_out) => &left_out.path,
    }
}

fn search(folder: &Path, found: &mut Vec<Result<PathBuf, LeftOutRun>>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if let Err(cause) = search(&path, found) {
                let reason = format!("the folder cannot be read: {cause}");
                found.push(Err(LeftOutRun { path, reason }));
            }
        } else if entry.file_name() == RESULT {
            found.push(Ok(path));
        } else if entry.file_name() == INCOMPLETE && !folder.join(RESULT).exists() {
            let reason = "the run ended while it wrote its result; run it again".to_owned();
            found.push(Err(LeftOutRun { path, reason }));
        }
    }
    Ok(())
}
