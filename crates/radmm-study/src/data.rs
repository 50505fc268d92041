//! `[data]`, `[data.numeric]` and `[data.categorical]`: where the rows are and what their columns mean.

use std::collections::BTreeSet;
use std::path::Path;

use radmm::private::NormPolicy;
use radmm_data::{Builtin, Categorical, Format, Numeric, Schema, Split};
use serde::{Serialize, Serializer};

use crate::entry::{Entry, Range};
use crate::error::StudyError;
use crate::reader::Section;
use crate::{Data, Source};

/// What may stand in `[data]`.
pub(crate) const KEYS: [&str; 12] = [
    "path",
    "builtin",
    "format",
    "columns",
    "label",
    "positive",
    "missing",
    "rows",
    "intercept",
    "numeric",
    "categorical",
    "split",
];

/// A model has a number for each of them at every party, so that more would not fit into memory anyway.
const MOST_COLUMNS: u32 = 100_000_000;

const FINITE: Range = Range {
    holds: |_| true,
    needed: "finite",
};

/// What errors call the label of a file that does not name it.
const LABEL: &str = "label";

pub(crate) fn read(top: &Section<'_>) -> Result<(Source, Format, Schema), StudyError> {
    let section = top.section("data", &KEYS)?;
    let source = source(&section)?;
    let format = format(&section, &source)?;
    let columns = section.optional("columns", |entry| entry.integer(1..=MOST_COLUMNS))?;
    if format == Format::Libsvm {
        return Ok((source, format, numbered(&section, columns)?));
    }
    if let Some(entry) = section.get("columns") {
        return Err(entry.wrong("is for LIBSVM files alone; remove it, or set format = \"libsvm\""));
    }
    let label = section.required("label", "the name of the column that holds the outcome")?;
    let positive = section.required("positive", "the label's value for the positive class")?;
    let Common {
        missing,
        rows,
        intercept,
    } = Common::read(&section)?;
    let numeric = section.open_section("numeric")?.entries();
    let categorical = section.open_section("categorical")?.entries();
    let schema = Schema {
        label: label.words()?.to_owned(),
        positive: positive.string()?.to_owned(),
        missing,
        rows,
        intercept,
        numeric: numeric.iter().map(bounds).collect::<Result<_, _>>()?,
        categorical: categorical
            .iter()
            .map(vocabulary)
            .collect::<Result<_, _>>()?,
        numbered: 0,
    };

    check_positive(&positive, &schema)?;
    let numeric: BTreeSet<&str> = numeric.iter().map(|entry| entry.name).collect();
    if let Some(entry) = categorical
        .iter()
        .find(|entry| numeric.contains(entry.name))
    {
        return Err(entry.wrong("is in [data.numeric] too; a column is one or the other"));
    }
    if numeric.contains(schema.label.as_str()) {
        return Err(label.wrong("is also a feature, in [data.numeric]; keep it in one place"));
    }
    if categorical.iter().any(|entry| entry.name == schema.label) {
        return Err(label.wrong("is also a feature, in [data.categorical]; keep it in one place"));
    }
    if numeric.is_empty() && categorical.is_empty() && !schema.intercept {
        return Err(section.missing(
            "numeric",
            "there are no features; name columns in [data.numeric] or [data.categorical], or set intercept = true",
        ));
    }
    Ok((source, format, schema))
}

/// What a file of numbered columns needs no names for.
fn numbered(section: &Section<'_>, columns: Option<u32>) -> Result<Schema, StudyError> {
    let positive = section.required("positive", "the label's value for the positive class")?;
    let Common {
        missing,
        rows,
        intercept,
    } = Common::read(section)?;
    for (name, advice) in [
        (
            "label",
            "a LIBSVM file begins each line with its label; remove this",
        ),
        (
            "numeric",
            "a LIBSVM file has numbered columns; remove this section and give columns",
        ),
        (
            "categorical",
            "a LIBSVM file has numbered columns; remove this section and give columns",
        ),
    ] {
        if let Some(entry) = section.get(name) {
            return Err(entry.wrong(advice));
        }
    }
    let columns = columns.ok_or_else(|| {
        let meaning = "the public number of columns of a LIBSVM file, an integer from 1";
        section.missing("columns", meaning)
    })?;
    let schema = Schema {
        label: LABEL.to_owned(),
        positive: positive.string()?.to_owned(),
        missing,
        rows,
        intercept,
        numeric: Vec::new(),
        categorical: Vec::new(),
        numbered: columns,
    };
    check_positive(&positive, &schema)?;
    Ok(schema)
}

/// Keys that mean the same for every format.
struct Common {
    missing: Vec<String>,
    rows: NormPolicy,
    intercept: bool,
}

impl Common {
    fn read(section: &Section<'_>) -> Result<Self, StudyError> {
        let missing = section.optional("missing", |entry| entry.strings())?;
        let rows = section.optional("rows", |entry| {
            entry.choice(&[("unit", NormPolicy::Unit), ("clip", NormPolicy::Clip)])
        })?;
        let intercept = section.optional("intercept", |entry| entry.boolean())?;
        Ok(Self {
            missing: missing.unwrap_or_else(|| vec!["?".to_owned(), String::new()]),
            rows: rows.unwrap_or(NormPolicy::Unit),
            intercept: intercept.unwrap_or(false),
        })
    }
}

fn check_positive(positive: &Entry<'_>, schema: &Schema) -> Result<(), StudyError> {
    match schema.missing.contains(&schema.positive) {
        true => Err(positive.wrong("is also in missing, so that no row would be positive")),
        false => Ok(()),
    }
}

/// What is written, or what the file's extension says; a file with another extension is CSV.
fn format(section: &Section<'_>, source: &Source) -> Result<Format, StudyError> {
    let formats = Format::ALL.map(|format| (format.name(), format));
    let written = section.optional("format", |entry| entry.choice(&formats))?;
    match (source, section.get("format")) {
        (Source::Builtin(_), Some(entry)) => {
            Err(entry.wrong("is that of a file, and builtin is not one; remove it"))
        }
        (Source::Builtin(_), None) => Ok(Format::Csv),
        (Source::File(name), _) => {
            let told = written.or_else(|| Format::of(Path::new(name)));
            Ok(told.unwrap_or(Format::Csv))
        }
    }
}

fn source(section: &Section<'_>) -> Result<Source, StudyError> {
    match (section.get("path"), section.get("builtin")) {
        (Some(path), None) => Ok(Source::File(path.words()?.to_owned())),
        (None, Some(builtin)) => {
            let tables = Builtin::ALL.map(|table| (table.name(), table));
            Ok(Source::Builtin(builtin.choice(&tables)?))
        }
        (Some(_), Some(builtin)) => Err(builtin.wrong("path is given too; keep one of the two")),
        (None, None) => Err(section.missing(
            "path",
            "a file of rows, relative to the study file (or builtin, the name of a table that comes with the program)",
        )),
    }
}

fn bounds(entry: &Entry<'_>) -> Result<Numeric, StudyError> {
    let form = "must be [low, high]: the public bounds of the column, low below high";
    if !entry.is_array() {
        return Err(entry.wrong(form));
    }
    let elements = entry.elements()?;
    let [low, high] = elements.as_slice() else {
        return Err(entry.wrong(form));
    };
    let (low, high) = (low.number(FINITE)?, high.number(FINITE)?);
    if low >= high {
        return Err(entry.wrong(form));
    }
    Ok(Numeric {
        name: entry.name.to_owned(),
        low,
        high,
    })
}

fn vocabulary(entry: &Entry<'_>) -> Result<Categorical, StudyError> {
    Ok(Categorical {
        name: entry.name.to_owned(),
        values: entry.vocabulary()?,
    })
}

// As in the file: columns are keys, in their order, not structures in a list.
impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            source,
            format,
            schema,
            split,
        } = self;
        let numbered = schema.numbered > 0;
        let section = Written {
            source,
            format: matches!(source, Source::File(_)).then_some(*format),
            columns: numbered.then_some(schema.numbered),
            label: (!numbered).then_some(&schema.label),
            positive: &schema.positive,
            missing: &schema.missing,
            rows: schema.rows,
            intercept: schema.intercept,
            numeric: (!numbered).then_some(Columns(&schema.numeric, |column| {
                (&column.name, [column.low, column.high])
            })),
            categorical: (!numbered).then_some(Columns(&schema.categorical, |column| {
                (&column.name, &column.values)
            })),
            split,
        };
        section.serialize(serializer)
    }
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    source: &'a Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format>,
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a String>,
    positive: &'a str,
    missing: &'a [String],
    rows: NormPolicy,
    intercept: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    numeric: Option<Columns<'a, Numeric, [f64; 2]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    categorical: Option<Columns<'a, Categorical, &'a Vec<String>>>,
    split: &'a Split,
}

struct Columns<'a, C, V>(&'a [C], fn(&'a C) -> (&'a String, V));

impl<C, V: Serialize> Serialize for Columns<'_, C, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(self.1))
    }
}
