//! The folder of a store: whose it is, and that it is there.

use std::fs;
use std::io;
use std::path::Path;

/// The state folder, and as many above it that may have been made with it.
const NAMES: usize = 4;

/// A folder for this party alone.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    if !folder.is_dir() {
        fs::create_dir_all(folder)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        }
    }
    Ok(())
}

/// The names of file and folders are on the disk. Where folders cannot be opened as files, the system sees to it.
pub(super) fn make_sure_of_names(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    for folder in folder.canonicalize()?.ancestors().take(NAMES) {
        // Of those further up some may not be readable, and those were there before.
        match fs::File::open(folder) {
            Ok(folder) => folder.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The file holds the secret of noise: nobody else may read it, whoever made the folder.
pub(super) fn for_this_user_alone(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(file, fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}
