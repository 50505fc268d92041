//! The files of rows at a path: one file, or those of a folder or of a pattern, in a fixed order.
//!
//! In a folder, files are found in all folders below it. In a pattern `*` stands for any characters of a name, `?` for one
//! character, and `**` for any number of folders; a folder that matches it stands for all files in it. Names that begin with `.`
//! or `_` are left out, as other programs leave their notes under such names. Files are ordered by their paths relative to the
//! folder, or to the part of a pattern before its first wildcard: as bytes, with `/` between names.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

/// The number of bytes that are read at a time.
const BLOCK: usize = 1 << 16;

/// The wildcard for any number of folders, which at the end of a pattern stands for all files in them.
const ANY_FOLDERS: &str = "**";

/// The files of rows at a path, in the order in which they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFiles {
    path: PathBuf,
    files: Vec<RowFile>,
    is_one: bool,
}

/// One of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowFile {
    /// Its path relative to the folder, in bytes, with `/` between names.
    name: Vec<u8>,
    pub(crate) path: PathBuf,
}

impl RowFiles {
    /// Finds the files at a path.
    pub fn find(path: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        let mut is_one = false;
        let found = fs::metadata(path);
        match (&found, split(path)) {
            (Ok(found), _) if found.is_dir() => collect(path, b"", &[], &mut files)?,
            (Ok(_), _) => {
                is_one = true;
                files.push(RowFile {
                    name: Vec::new(),
                    path: path.to_owned(),
                });
            }
            (Err(error), (base, pattern))
                if error.kind() == ErrorKind::NotFound && !pattern.is_empty() =>
            {
                collect(&base, b"", &pattern, &mut files)?;
            }
            _ => {
                found?;
            }
        }
        files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        // Several folders of a pattern with `**` can lead to one file.
        files.dedup();
        if files.is_empty() {
            let reason = "there is no file of rows; names that begin with . or _ are left out";
            return Err(io::Error::new(ErrorKind::NotFound, reason));
        }
        Ok(Self {
            path: path.to_owned(),
            files,
            is_one,
        })
    }

    /// Returns the absolute path of a file, a folder or a pattern. Of a pattern, the part before the first wildcard is resolved.
    pub fn resolve(path: &Path) -> io::Result<PathBuf> {
        if let Ok(path) = path.canonicalize() {
            return Ok(path);
        }
        let (base, pattern) = split(path);
        let base = if base.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &base
        };
        Ok(base
            .canonicalize()?
            .join(pattern.iter().collect::<PathBuf>()))
    }

    /// Returns the path at which they were found.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the only file, if the path is that of a file.
    pub(crate) fn only(&self) -> Option<&Path> {
        self.files
            .first()
            .filter(|_| self.is_one)
            .map(|file| &*file.path)
    }

    pub(crate) fn files(&self) -> &[RowFile] {
        &self.files
    }

    /// Passes everything that rows are made of to `take`, piece by piece: the bytes of a file; those of several with their names
    /// and lengths. Files in which one byte or one name differs have other pieces.
    pub fn each_piece(&self, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        if let Some(path) = self.only() {
            each_block(path, take)?;
            return Ok(());
        }
        take(b"radmm rows in files v1\0");
        for RowFile { name, path } in &self.files {
            take(&(name.len() as u64).to_le_bytes());
            take(name);
            let length = at(path, fs::metadata(path))?.len();
            take(&length.to_le_bytes());
            if each_block(path, take)? != length {
                let reason = format!("{} changed while it was read", path.display());
                return Err(io::Error::other(reason));
            }
        }
        Ok(())
    }
}

/// Passes the bytes of a file to `take`, and returns their number.
fn each_block(path: &Path, take: &mut dyn FnMut(&[u8])) -> io::Result<u64> {
    let mut file = at(path, File::open(path))?;
    let mut buffer = vec![0; BLOCK];
    let mut length = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(length),
            Ok(count) => {
                take(&buffer[..count]);
                length += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return at(path, Err(error)),
        }
    }
}

/// Names the path in an error.
fn at<T>(path: &Path, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Splits a path before its first component with a wildcard.
fn split(path: &Path) -> (PathBuf, Vec<&OsStr>) {
    let is_plain = |component: &Component<'_>| !has_wildcard(component.as_os_str());
    let base = path.components().take_while(is_plain).collect();
    let pattern = path.components().skip_while(is_plain);
    (base, pattern.map(Component::as_os_str).collect())
}

fn has_wildcard(name: &OsStr) -> bool {
    name.as_encoded_bytes()
        .iter()
        .any(|byte| b"*?".contains(byte))
}

/// Adds the files that match a pattern in a folder, whose path relative to the first one is `name`.
fn collect(
    folder: &Path,
    name: &[u8],
    pattern: &[&OsStr],
    files: &mut Vec<RowFile>,
) -> io::Result<()> {
    let (first, rest) = match pattern.split_first() {
        Some((first, rest)) => (*first, rest),
        // The folder itself matches: all files in it do.
        None => (OsStr::new(ANY_FOLDERS), pattern),
    };
    let any_folders = first == ANY_FOLDERS;
    if any_folders && !rest.is_empty() {
        collect(folder, name, rest, files)?;
    }
    let found: Vec<PathBuf> = match has_wildcard(first) {
        true => visible(folder)?,
        // A name that is written out may begin as it likes.
        false => vec![folder.join(first)],
    };
    for path in found {
        let own = path.file_name().unwrap_or(first);
        if !any_folders && !matches(&own.to_string_lossy(), &first.to_string_lossy()) {
            continue;
        }
        let metadata: Metadata = match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound && !has_wildcard(first) => continue,
            result => at(&path, result)?,
        };
        let mut name = name.to_owned();
        if !name.is_empty() {
            name.push(b'/');
        }
        name.extend_from_slice(own.as_encoded_bytes());
        if metadata.is_dir() {
            let rest = if any_folders { pattern } else { rest };
            collect(&path, &name, rest, files)?;
        } else if !rest.is_empty() {
            continue;
        } else if metadata.is_file() {
            files.push(RowFile { name, path });
        } else {
            let reason =
                "is neither a file nor a folder; remove it, or choose files with a pattern";
            return at(&path, Err(io::Error::new(ErrorKind::InvalidInput, reason)));
        }
    }
    Ok(())
}

/// Returns the entries of a folder whose names begin with neither `.` nor `_`.
fn visible(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let here = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let mut found = Vec::new();
    for entry in at(here, fs::read_dir(here))? {
        let name = at(here, entry)?.file_name();
        if !matches!(name.as_encoded_bytes().first(), Some(b'.' | b'_')) {
            found.push(folder.join(name));
        }
    }
    Ok(found)
}

/// Returns whether a name matches a pattern of `*` and `?`.
fn matches(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) =
        (name.chars().collect(), pattern.chars().collect());
    let (mut n, mut p) = (0, 0);
    // Where to go on after a mismatch: the last star takes one more character.
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((n, p));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => (n, p) = (n + 1, p + 1),
            _ => match star {
                Some((from, at)) => {
                    star = Some((from + 1, at));
                    (n, p) = (from + 1, at + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a folder with these files, which hold their own names.
    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        folder
    }

    /// Returns the names of the files at a path in a folder.
    fn names(folder: &tempfile::TempDir, path: &str) -> Vec<String> {
        let found = RowFiles::find(&folder.path().join(path)).unwrap();
        let files = found.files().iter();
        files
            .map(|file| String::from_utf8(file.name.clone()).unwrap())
            .collect()
    }

    const TREE: [&str; 11] = [
        "rows/b.csv",
        "rows/a/z.csv",
        "rows/a-b.csv",
        "rows/a.csv",
        "rows/B.csv",
        "rows/_SUCCESS",
        "rows/.a.csv.crc",
        "rows/_log/c.csv",
        "rows/a/deep/er.csv",
        "rows/a/.hidden/d.csv",
        "other.csv",
    ];

    #[test]
    fn a_folder_is_read_in_the_order_of_the_bytes_of_paths_without_hidden_names() {
        let folder = folder(&TREE);
        let expected = [
            "B.csv",
            "a-b.csv",
            "a.csv",
            "a/deep/er.csv",
            "a/z.csv",
            "b.csv",
        ];
        for path in [
            "rows",
            "rows/",
            "rows/**",
            "rows/**/*",
            "rows/**/*.csv",
            "rows/*",
        ] {
            assert_eq!(names(&folder, path), expected, "{path}");
        }
    }

    #[test]
    fn a_pattern_matches_names_folders_and_any_number_of_folders() {
        let folder = folder(&TREE);
        assert_eq!(
            names(&folder, "rows/*.csv"),
            ["B.csv", "a-b.csv", "a.csv", "b.csv"]
        );
        assert_eq!(names(&folder, "rows/?.csv"), ["B.csv", "a.csv", "b.csv"]);
        assert_eq!(names(&folder, "r*/a*/*.csv"), ["rows/a/z.csv"]);
        assert_eq!(names(&folder, "rows/**/er.csv"), ["a/deep/er.csv"]);
        assert_eq!(names(&folder, "**/z.csv"), ["rows/a/z.csv"]);
        assert_eq!(
            names(&folder, "rows/a*"),
            ["a-b.csv", "a.csv", "a/deep/er.csv", "a/z.csv"]
        );
        // A name that is written out may be hidden.
        assert_eq!(names(&folder, "r*/_log/*.csv"), ["rows/_log/c.csv"]);
        assert_eq!(names(&folder, "rows/**/**/z.csv"), ["a/z.csv"]);
    }

    #[test]
    fn a_file_is_itself_even_if_its_name_has_a_star() {
        let folder = folder(&["a*.csv", "ab.csv", "one.csv"]);
        let find = |name: &str| RowFiles::find(&folder.path().join(name)).unwrap();
        assert_eq!(
            find("one.csv").only(),
            Some(&*folder.path().join("one.csv"))
        );
        assert_eq!(find("a*.csv").files().len(), 1);
        assert_eq!(find("o*.csv").only(), None);
    }

    #[test]
    fn no_file_is_an_error() {
        let folder = folder(&["rows/_a.csv"]);
        for path in ["rows", "rows/*.csv", "*/*/b.csv"] {
            let error = RowFiles::find(&folder.path().join(path)).unwrap_err();
            assert_eq!(
                (error.kind(), error.to_string().as_str()),
                (
                    ErrorKind::NotFound,
                    "there is no file of rows; names that begin with . or _ are left out"
                ),
                "{path}"
            );
        }
        let gone = RowFiles::find(&folder.path().join("gone.csv")).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        let gone = RowFiles::find(&folder.path().join("gone/*.csv")).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        assert!(gone.to_string().contains("gone: "), "{gone}");
    }

    fn pieces(folder: &tempfile::TempDir, path: &str) -> Vec<u8> {
        let mut all = Vec::new();
        let files = RowFiles::find(&folder.path().join(path)).unwrap();
        files
            .each_piece(&mut |piece| all.extend_from_slice(piece))
            .unwrap();
        all
    }

    #[test]
    fn the_pieces_of_a_file_are_its_bytes_and_those_of_several_tell_names_and_lengths() {
        let folder = folder(&["rows/a", "rows/b", "ab"]);
        assert_eq!(pieces(&folder, "ab"), b"ab");
        let both = pieces(&folder, "rows");
        assert_eq!(pieces(&folder, "rows/*"), both);
        // The same bytes in other files, or under other names.
        let changes = [("rows/a", "ar"), ("rows/b", "ows/b")];
        for (name, content) in changes {
            fs::write(folder.path().join(name), content).unwrap();
        }
        assert_ne!(pieces(&folder, "rows"), both);
        for (name, content) in [("rows/a", "rows/a"), ("rows/b", "rows/b")] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        assert_eq!(pieces(&folder, "rows"), both);
        fs::rename(folder.path().join("rows/b"), folder.path().join("rows/c")).unwrap();
        assert_ne!(pieces(&folder, "rows"), both);
        fs::write(folder.path().join("rows/b"), "rows/b").unwrap();
        assert_ne!(pieces(&folder, "rows"), both);
    }

    #[test]
    fn a_path_is_resolved_up_to_its_first_wildcard() {
        let folder = folder(&["rows/a.csv"]);
        let resolve = |path: &str| RowFiles::resolve(&folder.path().join(path)).unwrap();
        let rows = folder.path().canonicalize().unwrap().join("rows");
        assert_eq!(resolve("rows/../rows/"), rows);
        assert_eq!(resolve("rows/../rows/*.csv"), rows.join("*.csv"));
        assert_eq!(resolve("rows/**/x?"), rows.join("**/x?"));
    }

    #[test]
    fn stars_take_as_much_as_they_must() {
        for (name, pattern, expected) in [
            ("rows.csv", "*.csv", true),
            ("rows.csv.csv", "*.csv", true),
            ("rows.csv.gz", "*.csv", false),
            ("year=2024", "year=*", true),
            ("abcabd", "*ab?", true),
            ("ab", "a*b*", true),
            ("é", "?", true),
            ("", "*", true),
            ("a", "", false),
            ("a", "b", false),
        ] {
            assert_eq!(matches(name, pattern), expected, "{name} {pattern}");
        }
    }
}
