//! Paths of rows as study files name them: relative to the folder of the study.

use std::env;
use std::path::{Path, PathBuf};

use radmm_data::RowFiles;

/// Returns the path of a file, a folder or a pattern relative to a folder, all of which exist. An absolute path stays as it is.
pub(crate) fn relative_to(folder: &Path, file: &Path) -> PathBuf {
    if file.is_absolute() {
        return file.to_owned();
    }
    let here = env::current_dir().unwrap_or_default();
    let at = |path: &Path| RowFiles::resolve(&here.join(path));
    let (Ok(target), Ok(folder)) = (at(file), at(folder)) else {
        return file.to_owned();
    };
    let pairs = target.components().zip(folder.components());
    let common = pairs.take_while(|(a, b)| a == b).count();
    let up = folder
        .components()
        .skip(common)
        .map(|_| PathBuf::from(".."));
    let down = target.components().skip(common);
    up.chain(down.map(|part| PathBuf::from(part.as_os_str())))
        .collect()
}
