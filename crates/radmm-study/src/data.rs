//! `[data]`, `[data.numeric]` and `[data.categorical]`: where the rows are and what their columns mean.

use std::collections::BTreeSet;

use radmm::private::NormPolicy;
use radmm_data::{Builtin, Categorical, Numeric, Schema, Split};
use serde::{Serialize, Serializer};

use crate::entry::{Entry, Range};
use crate::error::StudyError;
use crate::reader::Section;
use crate::{Data, Source};

/// What may stand in `[data]`.
pub(crate) const KEYS: [&str; 10] = [
    "path",
    "builtin",
    "label",
    "positive",
    "missing",
    "rows",
    "intercept",
    "numeric",
    "categorical",
    "split",
];

const FINITE: Range = Range {
    holds: |_| true,
    needed: "finite",
};

pub(crate) fn read(top: &Section<'_>) -> Result<(Source, Schema), StudyError> {
    let section = top.section("data", &KEYS)?;
    let source = source(&section)?;
    let label = section.required("label", "the name of the column that holds the outcome")?;
    let positive = section.required("positive", "the label's value for the positive class")?;
    let missing = section.optional("missing", |entry| entry.strings())?;
    let rows = section.optional("rows", |entry| {
        entry.choice(&[("unit", NormPolicy::Unit), ("clip", NormPolicy::Clip)])
    })?;
    let intercept = section.optional("intercept", |entry| entry.boolean())?;
    let numeric = section.open_section("numeric")?.entries();
    let categorical = section.open_section("categorical")?.entries();
    let schema = Schema {
        label: label.words()?.to_owned(),
        positive: positive.string()?.to_owned(),
        missing: missing.unwrap_or_else(|| vec!["?".to_owned(), String::new()]),
        rows: rows.unwrap_or(NormPolicy::Unit),
        intercept: intercept.unwrap_or(false),
        numeric: numeric.iter().map(bounds).collect::<Result<_, _>>()?,
        categorical: categorical
            .iter()
            .map(vocabulary)
            .collect::<Result<_, _>>()?,
    };

    if schema.missing.contains(&schema.positive) {
        return Err(positive.wrong("is also in missing, so that no row would be positive"));
    }
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
    Ok((source, schema))
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
            "a CSV file, relative to the study file (or builtin, the name of a table that comes with the program)",
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
            schema,
            split,
        } = self;
        let section = Written {
            source,
            label: &schema.label,
            positive: &schema.positive,
            missing: &schema.missing,
            rows: schema.rows,
            intercept: schema.intercept,
            numeric: Columns(&schema.numeric, |column| {
                (&column.name, [column.low, column.high])
            }),
            categorical: Columns(&schema.categorical, |column| (&column.name, &column.values)),
            split,
        };
        section.serialize(serializer)
    }
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    source: &'a Source,
    label: &'a str,
    positive: &'a str,
    missing: &'a [String],
    rows: NormPolicy,
    intercept: bool,
    numeric: Columns<'a, Numeric, [f64; 2]>,
    categorical: Columns<'a, Categorical, &'a Vec<String>>,
    split: &'a Split,
}

struct Columns<'a, C, V>(&'a [C], fn(&'a C) -> (&'a String, V));

impl<C, V: Serialize> Serialize for Columns<'_, C, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(self.1))
    }
}
