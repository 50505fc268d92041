//! The state folder: creation, permissions, and durability of names.

use std::fs;
use std::io;
use std::path::Path;

/// The number of folders to sync: the state folder, and those above it that may have been created with it.
const SYNCED_FOLDERS: usize = 4;

/// Creates the folder unless it exists; a new one is accessible to this user only.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
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

/// Makes the names of file and folders durable. Where folders cannot be opened as files, the system takes care of it.
pub(super) fn sync_names(folder: &Path) -> io::Result<()> {
    // The parent of a file that is named without a folder.
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    #[cfg(unix)]
    for folder in folder.canonicalize()?.ancestors().take(SYNCED_FOLDERS) {
        // Folders further up may not be readable; those existed before.
        match fs::File::open(folder) {
            Ok(folder) => folder.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes the file accessible to this user only, since it holds the secret of the noise.
pub(super) fn restrict_to_owner(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(file, fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}
