//! One value of the file. Every getter returns it in range, or an error with its line and a remedy.

use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::DeValue;

use super::reader::{Document, Section};
use super::suggest::{nearest, one_line, quoted};
use crate::error::{KeyPlace, Note, StudyError};

/// A value and its key.
pub(crate) struct Entry<'a> {
    pub document: Document<'a>,
    /// The bare name, for maps whose keys are the user's own.
    pub name: &'a str,
    /// The key in messages: `[data.split] seed`.
    pub key: String,
    /// The path, used if the value is a table: `data.split.seed`.
    pub path: String,
    /// Its offset in bytes.
    pub start: usize,
    pub value: &'a Spanned<DeValue<'a>>,
}

/// A condition on a finite number.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub holds: fn(f64) -> bool,
    /// Completes "must be …".
    pub needed: &'static str,
}

/// `x > 0`.
pub(crate) const POSITIVE: Range = Range {
    holds: |x| x > 0.0,
    needed: "positive and finite",
};

/// `x ≥ 0`.
pub(crate) const NON_NEGATIVE: Range = Range {
    holds: |x| x >= 0.0,
    needed: "zero or more, and finite",
};

/// The range of seeds, which fit into the signed integers of TOML.
pub(crate) const SEEDS: RangeInclusive<u64> = 0..=i64::MAX.unsigned_abs();

impl<'a> Entry<'a> {
    /// Returns a finite number in range; an integer is accepted.
    pub(crate) fn number(&self, range: Range) -> Result<f64, StudyError> {
        let number = match self.value.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
            DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix())
                .ok()
                .map(|integer| integer as f64),
            _ => return Err(self.not_a("a number")),
        };
        number
            .filter(|&x: &f64| x.is_finite() && (range.holds)(x))
            .ok_or_else(|| self.wrong(format!("must be {}", range.needed)))
    }

    /// Returns an integer in range.
    pub(crate) fn integer<T>(&self, range: RangeInclusive<T>) -> Result<T, StudyError>
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        let DeValue::Integer(integer) = self.value.get_ref() else {
            return Err(self.not_a("an integer"));
        };
        i128::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .and_then(|integer| T::try_from(integer).ok())
            .filter(|integer| range.contains(integer))
            .ok_or_else(|| {
                let (low, high) = (range.start(), range.end());
                self.wrong(format!("must be an integer from {low} to {high}"))
            })
    }

    pub(crate) fn boolean(&self) -> Result<bool, StudyError> {
        let boolean = self.value.get_ref().as_bool();
        boolean.ok_or_else(|| self.not_a("true or false"))
    }

    pub(crate) fn string(&self) -> Result<&'a str, StudyError> {
        let string = self.value.get_ref().as_str();
        string.ok_or_else(|| self.not_a("a string"))
    }

    /// Returns a string that is not blank.
    pub(crate) fn words(&self) -> Result<&'a str, StudyError> {
        match self.string()? {
            blank if blank.trim().is_empty() => Err(self.wrong("must not be empty")),
            words => Ok(words),
        }
    }

    /// Returns the meaning of one of several words.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, StudyError> {
        let word = self.string()?;
        if let Some((_, meaning)) = choices.iter().find(|(known, _)| *known == word) {
            return Ok(*meaning);
        }
        let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
        Err(self.wrong(match nearest(word, &known) {
            Some(known) => format!("did you mean {known:?}?"),
            None if known.len() == 1 => format!("must be {}", quoted(&known)),
            None => format!("must be one of {}", quoted(&known)),
        }))
    }

    pub(crate) fn elements(&self) -> Result<Vec<Entry<'a>>, StudyError> {
        let array = self.value.get_ref().as_array();
        let array = array.ok_or_else(|| self.not_a("an array"))?;
        Ok(array
            .iter()
            .enumerate()
            .map(|(index, value)| Entry {
                document: self.document,
                name: self.name,
                key: format!("{}[{index}]", self.key),
                path: format!("{}[{index}]", self.path),
                start: value.span().start,
                value,
            })
            .collect())
    }

    pub(crate) fn strings(&self) -> Result<Vec<String>, StudyError> {
        let elements = self.elements()?;
        elements
            .iter()
            .map(|e| Ok(e.string()?.to_owned()))
            .collect()
    }

    /// Returns at least one string, no two of them equal.
    pub(crate) fn vocabulary(&self) -> Result<Vec<String>, StudyError> {
        let words = self.strings()?;
        if words.is_empty() {
            return Err(self.wrong("must have at least one value"));
        }
        let mut sorted: Vec<&str> = words.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(self.wrong(format!("{:?} is listed twice", pair[0]))),
            None => Ok(words),
        }
    }

    /// Returns an inline table with these keys.
    pub(crate) fn inline(&self, known: &[&str]) -> Result<Section<'a>, StudyError> {
        self.table()?.only(known)
    }

    /// Returns whether the value is left to the public rule.
    pub(crate) fn is_auto(&self) -> bool {
        self.value.get_ref().as_str() == Some("auto")
    }

    pub(crate) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    pub(crate) fn is_boolean(&self) -> bool {
        self.value.get_ref().is_bool()
    }

    pub(crate) fn is_date_or_time(&self) -> bool {
        self.value.get_ref().is_datetime()
    }

    /// Returns the text of a string, or of a date or time without quotes.
    pub(crate) fn date_or_text(&self) -> Option<String> {
        match self.value.get_ref() {
            DeValue::Datetime(date) => Some(date.to_string()),
            DeValue::String(text) => Some(text.to_string()),
            _ => None,
        }
    }

    pub(crate) fn is_array(&self) -> bool {
        self.value.get_ref().is_array()
    }

    /// Returns whether it was written as `[[name]]`, once or several times.
    pub(crate) fn is_list_of_sections(&self) -> bool {
        let first = self
            .value
            .get_ref()
            .as_array()
            .and_then(|array| array.first());
        // The span of a table with a header is the header; any other in an array has braces.
        first.is_some_and(|first| {
            first.get_ref().is_table() && self.document.source(first).starts_with('[')
        })
    }

    pub(crate) fn is_number(&self) -> bool {
        self.value.get_ref().is_float() || self.value.get_ref().is_integer()
    }

    /// Returns an error about this value.
    pub(crate) fn wrong(&self, advice: impl Into<String>) -> StudyError {
        self.wrong_value(self.written(), advice.into())
    }

    /// Returns an error about a value that must not be shown.
    pub(crate) fn wrong_hidden(&self, advice: impl Into<String>) -> StudyError {
        self.wrong_value("\"…\"".to_owned(), advice.into())
    }

    fn wrong_value(&self, value: String, advice: String) -> StudyError {
        StudyError::Wrong {
            place: self.place(),
            key: self.key.clone(),
            value,
            advice,
        }
    }

    /// Returns a note about this key.
    pub(crate) fn note(&self, remark: &str) -> Note {
        Note {
            place: self.place(),
            text: format!("{} {remark}", self.key),
        }
    }

    /// Returns an error about this value's type.
    pub(crate) fn not_a(&self, wanted: &str) -> StudyError {
        let got = match self.value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.wrong(format!("must be {wanted}, not {got}"))
    }

    pub(crate) fn table(&self) -> Result<Section<'a>, StudyError> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(Section {
                document: self.document,
                path: self.path.clone(),
                table: Some(table),
            }),
            _ => Err(self.not_a(&format!("the section [{}]", self.path))),
        }
    }

    /// Returns an error about this key.
    pub(crate) fn unknown(&self, what: String, advice: String) -> StudyError {
        StudyError::Unknown {
            place: self.place(),
            what,
            advice,
        }
    }

    fn place(&self) -> KeyPlace {
        self.document.place(self.start, self.value)
    }

    /// The value as the user typed it.
    pub(crate) fn written(&self) -> String {
        // The span of a table with a header is the header, and of a dotted table one of its keys.
        if self.is_table() && !self.source().starts_with('{') {
            return "{ … }".to_owned();
        }
        one_line(self.source())
    }

    fn source(&self) -> &'a str {
        self.document.source(self.value)
    }
}
