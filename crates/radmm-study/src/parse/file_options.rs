//! `format`, `separator` and `decimal`: how a file of rows is written.

use std::path::Path;

use radmm_data::{DecimalMark, FileOptions, Format, Separator};

use super::reader::Section;
use crate::error::StudyError;

/// The keys that describe a file.
pub(crate) const KEYS: [&str; 3] = ["format", "separator", "decimal"];

/// Those that describe the text of a CSV file.
pub(crate) const TEXT_KEYS: [&str; 2] = ["separator", "decimal"];

/// Reads how the file at a path is written. A file whose extension says nothing is written like another one. What follows from the
/// path is left out, so that saying it changes nothing.
pub(crate) fn read(
    section: &Section<'_>,
    path: &str,
    like: FileOptions,
) -> Result<FileOptions, StudyError> {
    let path = Path::new(path);
    let given_separator = section.optional("separator", |entry| entry.choice(&SEPARATORS))?;
    let decimals = DecimalMark::ALL.map(|mark| (mark.text(), mark));
    let given_decimal = section.optional("decimal", |entry| entry.choice(&decimals))?;
    let format = format(section)?
        .or_else(|| Format::of(path))
        .or(like.format)
        // A name without an extension may be that of a folder.
        .or_else(|| path.extension().map(|_| Format::Csv));
    if let Some(format @ (Format::Parquet | Format::Libsvm)) = format {
        for name in TEXT_KEYS {
            if let Some(entry) = section.get(name) {
                return Err(entry.wrong(format!(
                    "is for CSV files, and this one is {:?}; remove it, or correct format",
                    format.name()
                )));
            }
        }
        return Ok(format.into());
    }
    let of_extension = Separator::of(path);
    let implied = of_extension.or_else(|| path.extension().map(|_| Separator::Comma));
    let separator = match given_separator {
        Some(separator) => Some(separator).filter(|_| given_separator != implied),
        None => like
            .separator
            .filter(|_| of_extension != Some(Separator::Tab)),
    };
    let decimal = given_decimal.or(like.decimal);
    Ok(FileOptions {
        format,
        separator,
        decimal: decimal.filter(|mark| *mark != DecimalMark::Point),
    })
}

/// The separators as files write them.
const SEPARATORS: [(&str, Separator); 5] = [
    (",", Separator::Comma),
    (";", Separator::Semicolon),
    ("\t", Separator::Tab),
    ("tab", Separator::Tab),
    ("|", Separator::Pipe),
];

/// Reads the format that a section gives, if it does.
pub(crate) fn format(section: &Section<'_>) -> Result<Option<Format>, StudyError> {
    let formats = Format::ALL.map(|format| (format.name(), format));
    section.optional("format", |entry| entry.choice(&formats))
}

/// Checks that none of these keys is there, of which `advice` says why.
pub(crate) fn refuse(section: &Section<'_>, keys: &[&str], advice: &str) -> Result<(), StudyError> {
    match keys.iter().find_map(|key| section.get(key)) {
        Some(entry) => Err(entry.wrong(advice)),
        None => Ok(()),
    }
}
