//! Files that are no tables of this program, recognised by their first bytes.

use super::compression::Compression;
use crate::error::DataError;

/// The format of a file that cannot be read, and the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForeignFormat {
    name: &'static str,
    remedy: &'static str,
}

/// The remedy for a file of a program that can write CSV.
const EXPORT: &str = "export it as CSV in UTF-8, and give that file";

/// The remedy for a file that holds other files.
const UNPACK: &str = "unpack it, and give the file or the folder of the rows";

/// The remedy for a compression that is not read.
const DECOMPRESS: &str = "decompress it, or compress it with gzip or zstd";

/// The remedy for text in another encoding.
const ENCODE: &str = "save it as UTF-8";

/// The remedy for a page or a data structure in place of a table.
const NO_TABLE: &str = "give a file with a line for each row, such as CSV";

/// First bytes of data that is not text.
const BINARY: [(&[u8], &str, &str); 12] = [
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls)", EXPORT),
    (b"SQLite format 3\0", "an SQLite database", EXPORT),
    (b"\x89HDF", "an HDF5 file", EXPORT),
    (b"ARROW1", "an Arrow file", "save it as Parquet or CSV"),
    (b"ORC", "an ORC file", "save it as Parquet or CSV"),
    (b"PAR1", "a Parquet file", "set format = \"parquet\""),
    (b"BZh", "compressed with bzip2", DECOMPRESS),
    (b"\xfd7zXZ\0", "compressed with xz", DECOMPRESS),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    (b"Rar!", "a RAR archive", UNPACK),
    (b"\xff\xfe", "text in UTF-16", ENCODE),
    (b"\xfe\xff", "text in UTF-16", ENCODE),
];

/// First characters of text without rows, in any case, and of data that may look like text.
const TEXT: [(&[u8], &str, &str); 6] = [
    (b"\x04\x22\x4d\x18", "compressed with LZ4", DECOMPRESS),
    (b"%PDF", "a PDF document", EXPORT),
    (b"<?xml", "an XML document", NO_TABLE),
    (b"<html", "a web page", NO_TABLE),
    (b"<!doctype", "a web page", NO_TABLE),
    (b"{\"", "JSON", NO_TABLE),
];

/// The place of the word that marks a tar archive.
const TAR: (usize, &[u8]) = (257, b"ustar");

impl ForeignFormat {
    /// Returns the error of a file of this format, which has this name in messages.
    pub(crate) fn error(self, file: &str) -> DataError {
        DataError::Foreign {
            file: file.to_owned(),
            found: self.name,
            remedy: self.remedy,
        }
    }

    /// Returns the format of a file that should be a Parquet file and begins like this; `None` for a Parquet file.
    pub(crate) fn instead_of_parquet(start: &[u8]) -> Option<Self> {
        let found = |name, remedy| Some(Self { name, remedy });
        match start {
            [b'P', b'A', b'R', b'1', ..] => None,
            [b'P', b'A', b'R', b'E', ..] => {
                found("an encrypted Parquet file", "save it without encryption")
            }
            [] => found("empty", "give a Parquet file"),
            _ if Compression::of(start).is_some() => found(
                "compressed as a whole",
                "decompress it; Parquet compresses its own pages",
            ),
            _ => Self::of(start).or_else(|| {
                found(
                    "no Parquet file, which begins with PAR1",
                    "if it is CSV, set format = \"csv\"",
                )
            }),
        }
    }

    /// Returns the format of a file that begins like this, if it is a known one that is not text with rows.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        let found = |name, remedy| Some(Self { name, remedy });
        if start.starts_with(b"PK\x03\x04") {
            let holds = |part: &[u8]| start.windows(part.len()).any(|bytes| bytes == part);
            return if holds(b"[Content_Types].xml") || holds(b"xl/") {
                found("an Excel workbook (.xlsx)", EXPORT)
            } else if holds(b"application/vnd.oasis.opendocument") {
                found("an OpenDocument spreadsheet (.ods)", EXPORT)
            } else {
                found("a zip archive", UNPACK)
            };
        }
        if start
            .get(TAR.0..)
            .is_some_and(|rest| rest.starts_with(TAR.1))
        {
            return found("a tar archive", UNPACK);
        }
        let mut texts = TEXT.iter();
        let text = texts.find(|(magic, ..)| {
            let beginning = start.get(..magic.len());
            beginning.is_some_and(|bytes| bytes.eq_ignore_ascii_case(magic))
        });
        // A column of a table may be called "ORCID".
        let mut others = BINARY.iter().filter(|_| !is_text(start));
        let known = text.or_else(|| others.find(|(magic, ..)| start.starts_with(magic)));
        known.and_then(|(_, name, remedy)| found(*name, *remedy))
    }
}

/// Returns whether this is the beginning of a text in UTF-8.
fn is_text(start: &[u8]) -> bool {
    let valid = match std::str::from_utf8(start) {
        Ok(_) => true,
        // The last character may be cut.
        Err(error) => error.error_len().is_none(),
    };
    valid && !start.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(start: &[u8]) -> Option<&'static str> {
        ForeignFormat::of(start).map(|found| found.name)
    }

    #[test]
    fn archives_are_told_apart_by_what_they_hold() {
        let zip = |content: &str| format!("PK\x03\x04\x14\0\x06\0{content}").into_bytes();
        assert_eq!(
            name(&zip("[Content_Types].xml")),
            Some("an Excel workbook (.xlsx)")
        );
        let ods = "mimetypeapplication/vnd.oasis.opendocument.spreadsheet";
        assert_eq!(name(&zip(ods)), Some("an OpenDocument spreadsheet (.ods)"));
        assert_eq!(name(&zip("rows.csv")), Some("a zip archive"));
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(name(&tar), Some("a tar archive"));
    }

    #[test]
    fn tables_are_not_taken_for_other_formats() {
        for table in [
            "age,ill\n1,yes\n",
            "+1 3:0.5\n",
            "",
            "P",
            "\u{feff}age,ill\n",
            "ORCID,ill\n",
        ] {
            assert_eq!(name(table.as_bytes()), None, "{table}");
        }
        assert_eq!(name(b"<!DOCTYPE html>"), Some("a web page"));
    }
}
