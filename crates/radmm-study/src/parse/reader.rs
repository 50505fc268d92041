//! Sections of the file: tables in which every key is known.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::entry::Entry;
use super::suggest::{joined, nearest, one_line, quoted, toml_key};
use crate::error::{KeyPlace, Note, StudyError};
use crate::overrides::PlacedOverride;

/// The text of a file with what overrides it, and its name in messages.
#[derive(Clone, Copy)]
pub(crate) struct Document<'a> {
    pub file: &'a str,
    pub text: &'a str,
    pub overrides: &'a [PlacedOverride<'a>],
}

/// The names that are allowed at the top of a file.
pub(crate) struct KnownNames {
    pub keys: &'static [&'static str],
    /// Written `[name]`.
    pub sections: &'static [&'static str],
    /// Written `[[name]]`, once for each of their elements.
    pub lists: &'static [&'static str],
}

/// A table of the file, in which every key is known. A section that is not there reads as an empty one.
pub(crate) struct Section<'a> {
    pub document: Document<'a>,
    /// `data.split`; empty for the top of the file.
    pub path: String,
    pub table: Option<&'a DeTable<'a>>,
}

impl<'a> Document<'a> {
    /// Parses the text, and puts what overrides it into its tables.
    pub(crate) fn table(&self) -> Result<DeTable<'a>, StudyError> {
        let mut table = DeTable::parse(self.text)
            .map(Spanned::into_inner)
            .map_err(|error| self.syntax(&error))?;
        for (index, placed) in self.overrides.iter().enumerate() {
            let one = placed.one;
            let mut earlier = self.overrides[..index].iter().map(|placed| placed.one);
            if let Some(other) = earlier.find(|other| one.overlaps(other)) {
                return Err(one.wrong(format!(
                    "{} gives this key too; keep one of the two",
                    other.given()
                )));
            }
            placed.put_into(&mut table)?;
        }
        Ok(table)
    }

    fn syntax(&self, error: &toml::de::Error) -> StudyError {
        let span = error.span().unwrap_or(0..0);
        let (line, column) = self.position(span.start);
        let mut message = error.message().replace('\n', "; ");
        // The parser's own words do not name what they are about: "duplicate key".
        let culprit = one_line(self.text.get(span).unwrap_or(""));
        if !culprit.is_empty() {
            message = format!("{message}, at {culprit:?}");
        }
        StudyError::Syntax {
            file: self.file.to_owned(),
            line,
            column,
            message,
        }
    }

    /// Returns the line and column of a byte, both from 1.
    pub(crate) fn position(&self, byte: usize) -> (usize, usize) {
        let before = &self.text.as_bytes()[..byte.min(self.text.len())];
        let line_start = before
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |newline| newline + 1);
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        // A character has one byte that is not a continuation byte (10xxxxxx), so that characters can be counted
        // even if the parser points into the middle of one.
        let characters = before[line_start..].iter().filter(|&&b| b & 0xC0 != 0x80);
        (line, 1 + characters.count())
    }

    /// Returns a value as the user typed it.
    pub(crate) fn source(&self, value: &Spanned<DeValue<'_>>) -> &'a str {
        let text = self
            .override_of(value)
            .map_or(self.text, |placed| placed.text.as_str());
        text.get(value.span()).unwrap_or("")
    }

    /// Returns the place of a key and its value. An overridden value has its own: its key may still be in the file.
    pub(crate) fn place(&self, key: usize, value: &Spanned<DeValue<'_>>) -> KeyPlace {
        match self.override_of(value) {
            Some(placed) => KeyPlace::Override(placed.one.given().to_owned()),
            None => KeyPlace::Line {
                file: self.file.to_owned(),
                line: self.position(key).0,
            },
        }
    }

    /// Returns the override that a value comes from; `None` for one of the file.
    fn override_of(&self, value: &Spanned<DeValue<'_>>) -> Option<&'a PlacedOverride<'a>> {
        let start = value.span().start;
        let mut latest = self.overrides.iter().rev();
        latest.find(|placed| placed.start <= start)
    }
}

impl<'a> Section<'a> {
    /// Returns the top of the file, where every name must be known.
    pub(crate) fn top(
        document: Document<'a>,
        table: &'a DeTable<'a>,
        known: &KnownNames,
    ) -> Result<Self, StudyError> {
        let top = Self {
            document,
            path: String::new(),
            table: Some(table),
        };
        for entry in top.entries() {
            // A section that is not a table, or a list that is not one, is reported when it is read.
            let is_key = known.keys.contains(&entry.name) && !entry.is_table();
            if is_key || known.sections.contains(&entry.name) || known.lists.contains(&entry.name) {
                continue;
            }
            let (what, advice) = known.suggestion_for(&entry);
            return Err(entry.unknown(what, advice));
        }
        Ok(top)
    }

    /// Returns a section of this one, or an inline table, which is the same to TOML.
    pub(crate) fn section(&self, name: &str, known: &[&str]) -> Result<Self, StudyError> {
        self.open_section(name)?.only(known)
    }

    /// Returns a section whose keys are the user's own.
    pub(crate) fn open_section(&self, name: &str) -> Result<Self, StudyError> {
        match self.get(name) {
            Some(entry) => entry.table(),
            None => Ok(Self {
                document: self.document,
                path: joined(&self.path, name),
                table: None,
            }),
        }
    }

    /// Returns all entries, in the order of the file.
    pub(crate) fn entries(&self) -> Vec<Entry<'a>> {
        let pairs = self.table.into_iter().flatten();
        let mut entries: Vec<_> = pairs.map(|(key, value)| self.entry(key, value)).collect();
        // The parser's tables are sorted by name, but the order of columns is the user's to choose.
        entries.sort_by_key(|entry| entry.start);
        entries
    }

    pub(crate) fn get(&self, name: &str) -> Option<Entry<'a>> {
        let mut pairs = self.table.into_iter().flatten();
        let (key, value) = pairs.find(|(key, _)| key.get_ref() == name)?;
        Some(self.entry(key, value))
    }

    /// Returns the entry, unless it is missing or `"auto"`: then the public rule decides.
    pub(crate) fn given(&self, name: &str) -> Option<Entry<'a>> {
        self.get(name).filter(|entry| !entry.is_auto())
    }

    /// Returns the entry, or an error that says what it would mean.
    pub(crate) fn required(&self, name: &str, meaning: &str) -> Result<Entry<'a>, StudyError> {
        self.get(name).ok_or_else(|| self.missing(name, meaning))
    }

    /// Reads the value, if there is one. It is checked whether it will be used or not.
    pub(crate) fn optional<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Entry<'a>) -> Result<T, StudyError>,
    ) -> Result<Option<T>, StudyError> {
        self.get(name).map(|entry| read(&entry)).transpose()
    }

    pub(crate) fn missing(&self, name: &str, meaning: &str) -> StudyError {
        StudyError::Missing {
            file: self.document.file.to_owned(),
            key: self.titled(name),
            meaning: meaning.to_owned(),
        }
    }

    /// Adds a note about every key but those that are used.
    pub(crate) fn note_all_but(&self, used: &[&str], by: &str, notes: &mut Vec<Note>) {
        for entry in self.entries() {
            if !used.contains(&entry.name) {
                self.note_unused(entry.name, by, notes);
            }
        }
    }

    /// Adds a note about a key, if it is there.
    pub(crate) fn note_unused(&self, name: &str, by: &str, notes: &mut Vec<Note>) {
        let remark = format!("is not used by {by}");
        notes.extend(self.get(name).map(|entry| entry.note(&remark)));
    }

    /// Returns this section, or an error if a key in it is not known.
    pub(crate) fn only(self, known: &[&str]) -> Result<Self, StudyError> {
        let unknown = |entry: &Entry| !known.contains(&entry.name);
        let Some(entry) = self.entries().into_iter().find(unknown) else {
            return Ok(self);
        };
        let what = format!("[{}] unknown key {:?}", self.path, entry.name);
        let advice = match nearest(entry.name, known) {
            Some(key) => format!("did you mean {key:?}?"),
            None if known.len() == 1 => format!("known is {}", quoted(known)),
            None => format!("known are {}", quoted(known)),
        };
        Err(entry.unknown(what, advice))
    }

    fn entry(&self, key: &'a Spanned<DeString<'a>>, value: &'a Spanned<DeValue<'a>>) -> Entry<'a> {
        Entry {
            document: self.document,
            name: key.get_ref(),
            key: self.titled(key.get_ref()),
            path: joined(&self.path, key.get_ref()),
            start: key.span().start,
            value,
        }
    }

    fn titled(&self, name: &str) -> String {
        if self.path.is_empty() {
            toml_key(name)
        } else {
            format!("[{}] {}", self.path, toml_key(name))
        }
    }
}

impl KnownNames {
    /// Describes an unknown entry, and the name that was probably meant.
    fn suggestion_for(&self, entry: &Entry<'_>) -> (String, String) {
        let name = entry.name;
        if !entry.is_table() && !entry.is_list_of_sections() {
            let advice = match nearest(name, self.keys) {
                Some(key) => format!("did you mean {key:?}?"),
                None => format!(
                    "only {} is allowed before the first section",
                    quoted(self.keys)
                ),
            };
            return (format!("unknown key {name:?}"), advice);
        }
        let header = |name: &str| match self.lists.contains(&name) {
            true => format!("[[{name}]]"),
            false => format!("[{name}]"),
        };
        let headers = [self.sections, self.lists].concat();
        let advice = match nearest(name, &headers) {
            Some(section) => format!("did you mean {}?", header(section)),
            None => {
                let headers: Vec<String> = headers.iter().map(|name| header(name)).collect();
                format!("known are {}", headers.join(", "))
            }
        };
        let what = match entry.is_table() {
            true => format!("unknown section [{}]", entry.path),
            false => format!("unknown section [[{}]]", entry.path),
        };
        (what, advice)
    }
}
