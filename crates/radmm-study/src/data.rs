//! `[data]`: where the rows are and what their columns mean.

use radmm::private::NormPolicy;
use radmm_data::{Builtin, Categorical, Numeric, Scale, Schema, Split};
use serde::{Serialize, Serializer};

use crate::entry::Entry;
use crate::error::StudyError;
use crate::reader::Section;
use crate::{Data, Source, Test, features};

/// What may stand in `[data]`.
pub(crate) const KEYS: [&str; 11] = [
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
    "test",
];

/// A built-in table has a schema of its own. What the study says takes the place of a part of it: the label with its
/// positive value, what is missing, all numeric columns, all categorical columns.
pub(crate) fn read(top: &Section<'_>) -> Result<(Source, Schema), StudyError> {
    let section = top.section("data", &KEYS)?;
    let source = source(&section)?;
    let own = match &source {
        Source::File(_) => None,
        Source::Builtin(table) => Some(table.schema()),
    };
    let label = label(&section, own.as_ref())?;
    let positive = positive(&section, own.as_ref().filter(|own| own.label == label))?;
    let missing = section.optional("missing", |entry| entry.strings())?;
    let rows = section.optional("rows", |entry| {
        entry.choice(&[("unit", NormPolicy::Unit), ("clip", NormPolicy::Clip)])
    })?;
    let intercept = section.optional("intercept", |entry| entry.boolean())?;
    let numeric = columns(&section, "numeric", features::numeric)?;
    let categorical = columns(&section, "categorical", features::categorical)?;
    let own = own.map(|own| (own.missing, own.numeric, own.categorical));
    let (own_missing, own_numeric, own_categorical) =
        own.unwrap_or_else(|| (vec!["?".to_owned(), String::new()], vec![], vec![]));
    let schema = Schema {
        label,
        positive,
        missing: missing.unwrap_or(own_missing),
        rows: rows.unwrap_or(NormPolicy::Unit),
        intercept: intercept.unwrap_or(false),
        numeric: numeric.unwrap_or(own_numeric),
        categorical: categorical.unwrap_or(own_categorical),
    };
    check(&section, &schema)?;
    Ok((source, schema))
}

fn label(section: &Section<'_>, own: Option<&Schema>) -> Result<String, StudyError> {
    match (section.get("label"), own) {
        (Some(entry), _) => Ok(entry.words()?.to_owned()),
        (None, Some(own)) => Ok(own.label.clone()),
        (None, None) => {
            Err(section.missing("label", "the name of the column that holds the outcome"))
        }
    }
}

fn positive(section: &Section<'_>, own: Option<&Schema>) -> Result<String, StudyError> {
    match (section.get("positive"), own) {
        (Some(entry), _) => Ok(entry.string()?.to_owned()),
        (None, Some(own)) => Ok(own.positive.clone()),
        (None, None) => {
            Err(section.missing("positive", "the label's value for the positive class"))
        }
    }
}

/// The columns of a section, if it is there.
fn columns<C>(
    section: &Section<'_>,
    name: &str,
    column: fn(&Entry<'_>) -> Result<C, StudyError>,
) -> Result<Option<Vec<C>>, StudyError> {
    section.optional(name, |entry| {
        let entries = entry.table()?.entries();
        entries.iter().map(column).collect()
    })
}

/// What two keys may not say together. The one that stands in the file is at fault, the other may be the table's own.
fn check(section: &Section<'_>, schema: &Schema) -> Result<(), StudyError> {
    if schema.missing.contains(&schema.positive) {
        let positive = &schema.positive;
        return Err(match (section.get("positive"), section.get("missing")) {
            (None, Some(missing)) => missing.wrong(format!(
                "holds {positive:?}, the positive value of the table's own label, so that no row would be positive"
            )),
            (Some(entry), _) => {
                entry.wrong("is also in missing, so that no row would be positive")
            }
            // Unreachable: the table's own agree.
            (None, None) => section.missing("positive", "the label's value for the positive class"),
        });
    }
    let column = |kind: &str, name: &str| -> Result<Option<Entry<'_>>, StudyError> {
        Ok(section.open_section(kind)?.get(name))
    };
    let numeric = |name: &str| schema.numeric.iter().any(|column| column.name == name);
    let categorical = |name: &str| schema.categorical.iter().any(|column| column.name == name);
    if let Some(Categorical { name, .. }) = schema.categorical.iter().find(|c| numeric(&c.name)) {
        let found = [column("numeric", name)?, column("categorical", name)?];
        return Err(match found {
            [Some(_), Some(entry)] => {
                entry.wrong("is in [data.numeric] too; a column is one or the other")
            }
            [Some(entry), None] => entry.wrong(
                "is in the table's own [data.categorical] too; write that section without it",
            ),
            [None, Some(entry)] => entry
                .wrong("is in the table's own [data.numeric] too; write that section without it"),
            // Unreachable: the table's own agree.
            [None, None] => section.missing("numeric", "there are no features"),
        });
    }
    for (kind, is_feature) in [
        ("numeric", numeric(&schema.label)),
        ("categorical", categorical(&schema.label)),
    ] {
        if is_feature {
            let found = [section.get("label"), column(kind, &schema.label)?];
            return Err(match found {
                [Some(label), Some(_)] => label.wrong(format!(
                    "is also a feature, in [data.{kind}]; keep it in one place"
                )),
                [Some(label), None] => label.wrong(format!(
                    "is also a feature, in the table's own [data.{kind}]; write that section without it"
                )),
                [None, Some(entry)] => {
                    entry.wrong("is the table's own label; remove it, or name another label")
                }
                // Unreachable: the table's own agree.
                [None, None] => section.missing("label", "the column that holds the outcome"),
            });
        }
    }
    if schema.numeric.is_empty() && schema.categorical.is_empty() && !schema.intercept {
        return Err(section.missing(
            "numeric",
            "there are no features; name columns in [data.numeric] or [data.categorical], or set intercept = true",
        ));
    }
    Ok(())
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

// As in the file: columns are keys, in their order, not structures in a list.
impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            source,
            schema,
            split,
            test,
        } = self;
        let section = Written {
            source,
            label: &schema.label,
            positive: &schema.positive,
            missing: &schema.missing,
            rows: schema.rows,
            intercept: schema.intercept,
            numeric: Columns(&schema.numeric, |column| (&column.name, &column.scale)),
            categorical: Columns(&schema.categorical, |column| (&column.name, &column.values)),
            split,
            test,
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
    numeric: Columns<'a, Numeric, &'a Scale>,
    categorical: Columns<'a, Categorical, &'a Vec<String>>,
    split: &'a Split,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: &'a Option<Test>,
}

struct Columns<'a, C, V>(&'a [C], fn(&'a C) -> (&'a String, V));

impl<C, V: Serialize> Serialize for Columns<'_, C, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(self.1))
    }
}
