//! The options of a file of rows, which it does not say of itself: its format, and the separators of its text.

use std::path::Path;

use serde::{Serialize, Serializer};

use super::Format;

/// The way in which a file of rows is written, as far as somebody says it.
///
/// A format that is not given is told by the extension, and a file without a known extension is CSV. The other two are for CSV
/// alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileOptions {
    /// The format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The character between fields; by default a tab in a `.tsv` file, else a comma.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<Separator>,
    /// The character before the fraction of a number; by default a point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decimal: Option<DecimalMark>,
}

impl From<Format> for FileOptions {
    fn from(format: Format) -> Self {
        Self {
            format: Some(format),
            ..Self::default()
        }
    }
}

impl FileOptions {
    /// Returns how the text of a CSV file with this path is written.
    pub(crate) fn dialect(&self, path: &Path) -> CsvDialect {
        let separator = self.separator.or_else(|| Separator::of(path));
        CsvDialect {
            separator: separator.unwrap_or_default(),
            decimal: self.decimal.unwrap_or_default(),
        }
    }
}

/// The character between the fields of a CSV file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Separator {
    /// A comma.
    #[default]
    Comma,
    /// A semicolon, as spreadsheets write it where commas are decimal marks.
    Semicolon,
    /// A tab.
    Tab,
    /// A vertical line.
    Pipe,
}

impl Separator {
    /// All separators.
    pub const ALL: [Self; 4] = [Self::Comma, Self::Semicolon, Self::Tab, Self::Pipe];

    /// Returns the separator that the extension of a file implies: a tab for `.tsv` and `.tab`, a comma for `.csv`.
    pub fn of(path: &Path) -> Option<Self> {
        match super::extension(path)?.as_str() {
            "csv" => Some(Self::Comma),
            "tsv" | "tab" => Some(Self::Tab),
            _ => None,
        }
    }

    /// Returns the character.
    pub fn text(self) -> &'static str {
        match self {
            Self::Comma => ",",
            Self::Semicolon => ";",
            Self::Tab => "\t",
            Self::Pipe => "|",
        }
    }

    pub(crate) fn byte(self) -> u8 {
        self.text().as_bytes()[0]
    }

    /// Returns its name in the plural.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Comma => "commas",
            Self::Semicolon => "semicolons",
            Self::Tab => "tabs",
            Self::Pipe => "vertical lines",
        }
    }
}

impl Serialize for Separator {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

/// The character before the fraction of a number in a CSV file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecimalMark {
    /// A point, as in 3.5.
    #[default]
    Point,
    /// A comma, as in 3,5.
    Comma,
}

impl DecimalMark {
    /// Both marks.
    pub const ALL: [Self; 2] = [Self::Point, Self::Comma];

    /// Returns the character.
    pub fn text(self) -> &'static str {
        match self {
            Self::Point => ".",
            Self::Comma => ",",
        }
    }
}

impl Serialize for DecimalMark {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

/// The way in which the text of a CSV file is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CsvDialect {
    pub(crate) separator: Separator,
    pub(crate) decimal: DecimalMark,
}
