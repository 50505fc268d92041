//! `[data]` as it is serialised: with the keys of its file.

use radmm::curator::NormPolicy;
use radmm_data::{
    Categorical, DecimalMark, Format, Numeric, NumericScale, Schema, Separator, Split, date_of_days,
};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::{DataSection, RowSource, TestRows};

// As in the file, columns are keys in their order, not structures in a list.
impl Serialize for DataSection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            source,
            options,
            schema,
            split,
            test,
        } = self;
        let section = Written {
            source,
            separator: options.separator,
            decimal: options.decimal,
            meaning: ColumnMeaning::new(options.format, schema),
            split: (*source != RowSource::Parties).then_some(split),
            test,
        };
        section.serialize(serializer)
    }
}

// The key that is in the file, if there is one.
impl Serialize for RowSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::File(path) => map.serialize_entry("path", path)?,
            Self::Builtin(table) => map.serialize_entry("builtin", table)?,
            Self::Parties => {}
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    source: &'a RowSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    separator: Option<Separator>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decimal: Option<DecimalMark>,
    #[serde(flatten)]
    meaning: ColumnMeaning<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    split: Option<&'a Split>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: &'a Option<TestRows>,
}

/// The keys that say what columns mean.
#[derive(Serialize)]
pub(crate) struct ColumnMeaning<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format>,
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonzeros: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a String>,
    positive: &'a str,
    missing: &'a [String],
    rows: NormPolicy,
    intercept: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    numeric: Option<Columns<'a, Numeric, NumericForm<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    categorical: Option<Columns<'a, Categorical, CategoricalForm<'a>>>,
}

impl<'a> ColumnMeaning<'a> {
    pub(crate) fn new(format: Option<Format>, schema: &'a Schema) -> Self {
        let numbered = schema.numbered > 0;
        Self {
            format,
            columns: numbered.then_some(schema.numbered),
            nonzeros: schema.nonzeros,
            label: (!numbered).then_some(&schema.label),
            positive: &schema.positive,
            missing: &schema.missing,
            rows: schema.rows,
            intercept: schema.intercept,
            numeric: (!numbered).then_some(Columns(&schema.numeric, |column| {
                (&column.name, NumericForm::new(column))
            })),
            categorical: (!numbered).then_some(Columns(&schema.categorical, |column| {
                (&column.name, CategoricalForm::new(column))
            })),
        }
    }
}

/// A column that says what becomes of values which are missing or cannot be encoded; others have the short form of their file.
#[derive(Serialize)]
struct WithExceptions<T> {
    #[serde(flatten)]
    column: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other: Option<&'static str>,
}

impl<T> WithExceptions<T> {
    /// Returns the long form of a column, if it needs one.
    fn new(column: T, missing_category: bool, other_is_missing: bool) -> Option<Self> {
        (missing_category || other_is_missing).then(|| Self {
            column,
            missing: missing_category.then_some("category"),
            other: other_is_missing.then_some("missing"),
        })
    }
}

/// A numeric column as its file has it.
#[derive(Serialize)]
#[serde(untagged)]
enum NumericForm<'a> {
    Scale(&'a NumericScale),
    Long(WithExceptions<&'a NumericScale>),
    Dates(DateScale),
    LongDates(WithExceptions<DateScale>),
}

impl<'a> NumericForm<'a> {
    fn new(column: &'a Numeric) -> Self {
        let (missing, other) = (column.missing_category, column.other_is_missing);
        let scale = &column.scale;
        if !column.is_date {
            return WithExceptions::new(scale, missing, other)
                .map_or(Self::Scale(scale), Self::Long);
        }
        match WithExceptions::new(DateScale::new(scale), missing, other) {
            None => Self::Dates(DateScale::new(scale)),
            Some(long) => Self::LongDates(long),
        }
    }
}

/// The scale of a column of dates, with dates in place of days.
#[derive(Default, Serialize)]
struct DateScale {
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds: Option<[String; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bins: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    splines: Option<u32>,
}

impl DateScale {
    fn new(scale: &NumericScale) -> Self {
        let between = |bounds: [f64; 2]| Self {
            bounds: Some(bounds.map(date_of_days)),
            ..Self::default()
        };
        match scale {
            NumericScale::Bounds { low, high } => between([*low, *high]),
            NumericScale::Centred { bounds } => between(*bounds),
            NumericScale::Bins { edges } => Self {
                bins: Some(edges.iter().map(|edge| date_of_days(*edge)).collect()),
                ..Self::default()
            },
            NumericScale::Splines { bounds, count, .. } => Self {
                splines: Some(*count),
                ..between(*bounds)
            },
        }
    }
}

/// A categorical column as its file has it.
#[derive(Serialize)]
#[serde(untagged)]
enum CategoricalForm<'a> {
    Values(Vocabulary<'a>),
    Long(WithExceptions<LongVocabulary<'a>>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Vocabulary<'a> {
    Texts(&'a [String]),
    Booleans(Vec<bool>),
}

#[derive(Serialize)]
struct LongVocabulary<'a> {
    values: Vocabulary<'a>,
}

impl<'a> CategoricalForm<'a> {
    fn new(column: &'a Categorical) -> Self {
        let values = || match column.is_boolean {
            true => Vocabulary::Booleans(column.values.iter().map(|v| v == "true").collect()),
            false => Vocabulary::Texts(&column.values),
        };
        let long = LongVocabulary { values: values() };
        WithExceptions::new(long, column.missing_category, column.other_is_missing)
            .map_or_else(|| Self::Values(values()), Self::Long)
    }
}

struct Columns<'a, C, V>(&'a [C], fn(&'a C) -> (&'a String, V));

impl<C, V: Serialize> Serialize for Columns<'_, C, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(self.1))
    }
}
