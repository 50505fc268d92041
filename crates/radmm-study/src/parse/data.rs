//! `[data]`: where the rows are and what their columns mean.

use radmm::curator::NormPolicy;
use radmm_data::{Builtin, Categorical, FileOptions, Format, Schema};

use super::entry::Entry;
use super::features;
use super::file_options;
use super::reader::Section;
use crate::error::{Note, StudyError};
use crate::{RowSource, StudyParty};

/// The keys of `[data]`.
pub(crate) const KEYS: [&str; 16] = [
    "path",
    "builtin",
    "format",
    "separator",
    "decimal",
    "columns",
    "nonzeros",
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

/// The keys that say what columns mean.
const MEANING: [&str; 10] = [
    "format",
    "columns",
    "nonzeros",
    "label",
    "positive",
    "missing",
    "rows",
    "intercept",
    "numeric",
    "categorical",
];

/// The most columns: every party keeps several numbers for each of them in memory.
const MAX_COLUMNS: u32 = 100_000_000;

/// The name, in errors, of the label of a file that does not name it.
const LABEL: &str = "label";

/// Reads the section. A built-in table has a schema of its own, of which the study may replace parts: the label with its
/// positive value, what is missing, all numeric columns, all categorical columns.
pub(crate) fn read(
    top: &Section<'_>,
    parties: &[StudyParty],
    notes: &mut Vec<Note>,
) -> Result<(RowSource, FileOptions, Schema), StudyError> {
    if let Some(entry) = top.open_section("data")?.get("command") {
        // Privacy: others write the study, and nobody runs what others wrote.
        return Err(entry.wrong_hidden(
            "is for the site file of a party: a study runs no program on anybody's machine; remove it",
        ));
    }
    let section = top.section("data", &KEYS)?;
    let source = source(&section, parties)?;
    let options = options(&section, &source)?;
    let own = match &source {
        RowSource::File(_) | RowSource::Parties => None,
        RowSource::Builtin(table) => Some(table.schema()),
    };
    let schema = schema(&section, options.format, own, notes)?;
    Ok((source, options, schema))
}

/// Reads the section of a model, which says what columns mean and not where rows are.
pub(crate) fn read_meaning(top: &Section<'_>) -> Result<(Format, Schema), StudyError> {
    let section = top.section("data", &MEANING)?;
    let format = file_options::format(&section)?.unwrap_or(Format::Csv);
    let schema = schema(&section, Some(format), None, &mut Vec::new())?;
    Ok((format, schema))
}

/// Reads what the columns mean; `own` is the schema of a built-in table.
fn schema(
    section: &Section<'_>,
    format: Option<Format>,
    own: Option<Schema>,
    notes: &mut Vec<Note>,
) -> Result<Schema, StudyError> {
    let columns = section.optional("columns", |entry| entry.integer(1..=MAX_COLUMNS))?;
    if format == Some(Format::Libsvm) {
        return numbered(section, columns);
    }
    for name in ["columns", "nonzeros"] {
        if let Some(entry) = section.get(name) {
            return Err(
                entry.wrong("is for LIBSVM files alone; remove it, or set format = \"libsvm\"")
            );
        }
    }
    let label = label(section, own.as_ref())?;
    let positive = positive(section, own.as_ref().filter(|own| own.label == label))?;
    let own = own.map(|own| (own.missing, own.numeric, own.categorical));
    let (own_missing, own_numeric, own_categorical) =
        own.unwrap_or_else(|| (usually_missing(), vec![], vec![]));
    let Common {
        missing,
        rows,
        intercept,
    } = Common::read(section, own_missing)?;
    let numeric = features(section, "numeric", features::numeric)?;
    let categorical = features(section, "categorical", features::categorical)?;
    let schema = Schema {
        label,
        positive,
        missing,
        rows,
        intercept,
        numeric: numeric.unwrap_or(own_numeric),
        categorical: categorical.unwrap_or(own_categorical),
        numbered: 0,
        nonzeros: None,
    };
    check(section, &schema)?;
    note_dropped(section, &schema, notes)?;
    note_spelling(section, &schema, notes)?;
    Ok(schema)
}

/// Reads the schema of a file whose columns have numbers and no names.
fn numbered(section: &Section<'_>, columns: Option<u32>) -> Result<Schema, StudyError> {
    let positive = positive(section, None)?;
    let Common {
        missing,
        rows,
        intercept,
    } = Common::read(section, usually_missing())?;
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
        positive,
        missing,
        rows,
        intercept,
        numeric: Vec::new(),
        categorical: Vec::new(),
        numbered: columns,
        nonzeros: section.optional("nonzeros", |entry| entry.integer(1..=columns))?,
    };
    check_positive(section, &schema)?;
    Ok(schema)
}

/// Keys that mean the same for every format.
struct Common {
    missing: Vec<String>,
    rows: NormPolicy,
    intercept: bool,
}

impl Common {
    /// Reads them; `own_missing` is the default.
    fn read(section: &Section<'_>, own_missing: Vec<String>) -> Result<Self, StudyError> {
        let missing = section.optional("missing", |entry| entry.strings())?;
        let rows = section.optional("rows", |entry| {
            entry.choice(&[("unit", NormPolicy::Unit), ("clip", NormPolicy::Clip)])
        })?;
        let intercept = section.optional("intercept", |entry| entry.boolean())?;
        Ok(Self {
            missing: missing.unwrap_or(own_missing),
            rows: rows.unwrap_or(NormPolicy::Unit),
            intercept: intercept.unwrap_or(false),
        })
    }
}

fn usually_missing() -> Vec<String> {
    vec!["?".to_owned(), String::new()]
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

/// Reads the columns of a section, if it is there.
fn features<C>(
    section: &Section<'_>,
    name: &str,
    column: fn(&Entry<'_>) -> Result<C, StudyError>,
) -> Result<Option<Vec<C>>, StudyError> {
    section.optional(name, |entry| {
        let entries = entry.table()?.entries();
        entries.iter().map(column).collect()
    })
}

/// Checks that `positive` is not in `missing`. The key that is in the file is at fault, the other may be the table's own.
fn check_positive(section: &Section<'_>, schema: &Schema) -> Result<(), StudyError> {
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
    Ok(())
}

/// Checks keys against each other. The key that is in the file is at fault, the other may be the table's own.
fn check(section: &Section<'_>, schema: &Schema) -> Result<(), StudyError> {
    check_positive(section, schema)?;
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

/// Adds notes about values of vocabularies that no row can have.
fn note_dropped(
    section: &Section<'_>,
    schema: &Schema,
    notes: &mut Vec<Note>,
) -> Result<(), StudyError> {
    let written = section.open_section("categorical")?;
    let dropping = schema.categorical.iter();
    for Categorical { name, values, .. } in dropping.filter(|column| !column.missing_category) {
        let dropped = values.iter().find(|value| schema.missing.contains(value));
        if let (Some(value), Some(entry)) = (dropped, written.get(name)) {
            notes.push(entry.note(&format!(
                "holds {value:?}, which is also in missing: rows with it are dropped"
            )));
        }
    }
    Ok(())
}

/// Adds notes about values of vocabularies that look misspelt: with stray spaces, or nearly equal to one another.
fn note_spelling(
    section: &Section<'_>,
    schema: &Schema,
    notes: &mut Vec<Note>,
) -> Result<(), StudyError> {
    let written = section.open_section("categorical")?;
    for Categorical { name, values, .. } in &schema.categorical {
        let Some(entry) = written.get(name) else {
            continue;
        };
        let mut note = |remark: String| notes.push(entry.note(&remark));
        if let Some(value) = values.iter().find(|value| value.trim() != *value) {
            note(format!(
                "holds {value:?}, with white space around it: fields are compared without, so that no row has this value"
            ));
        }
        let inner = |value: &&String| value.trim() != plain_spaces(value);
        if let Some(value) = values.iter().find(inner) {
            note(format!(
                "holds {value:?}, with several spaces or a line break in it: is that how rows have it?"
            ));
        }
        let mut folded: Vec<(String, &String)> = values
            .iter()
            .map(|value| (plain_spaces(value).to_lowercase(), value))
            .collect();
        folded.sort();
        if let Some(pair) = folded.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            note(format!(
                "holds {:?} and {:?}, which differ only in spaces or case: are they two values?",
                pair[0].1, pair[1].1
            ));
        }
    }
    Ok(())
}

/// Returns the words of a text with one space between them.
fn plain_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Adds a note about a section on rows, where the study has none.
pub(crate) fn note_idle(
    top: &Section<'_>,
    name: &str,
    notes: &mut Vec<Note>,
) -> Result<(), StudyError> {
    let entry = top.open_section("data")?.get(name);
    notes.extend(entry.map(|entry| entry.note("is not used: every party has its own rows")));
    Ok(())
}

/// Reads how the file is written. Where every party has a file of its own, only the format is common to them.
fn options(section: &Section<'_>, source: &RowSource) -> Result<FileOptions, StudyError> {
    match source {
        RowSource::File(path) => file_options::read(section, path, FileOptions::default()),
        RowSource::Builtin(_) => {
            let advice = "is that of a file, and builtin is not one; remove it";
            file_options::format(section)?;
            file_options::refuse(section, &file_options::KEYS, advice)?;
            Ok(FileOptions::default())
        }
        RowSource::Parties => {
            let advice = "describes a file, and the study names none; every party gives it in [data] of its site file";
            file_options::refuse(section, &file_options::TEXT_KEYS, advice)?;
            let format = file_options::format(section)?;
            Ok(format.unwrap_or(Format::Csv).into())
        }
    }
}

fn source(section: &Section<'_>, parties: &[StudyParty]) -> Result<RowSource, StudyError> {
    match (section.get("path"), section.get("builtin")) {
        (Some(path), None) if path.words()? == "-" => Err(path.wrong(
            "is stdin, which gives its rows once; save them in a file, and give its path",
        )),
        (Some(path), None) => Ok(RowSource::File(path.words()?.to_owned())),
        (None, Some(builtin)) => {
            let tables = Builtin::ALL.map(|table| (table.name(), table));
            Ok(RowSource::Builtin(builtin.choice(&tables)?))
        }
        (Some(_), Some(builtin)) => Err(builtin.wrong("path is given too; keep one of the two")),
        (None, None) if !parties.is_empty() => Ok(RowSource::Parties),
        (None, None) => Err(section.missing(
            "path",
            "a file of rows, relative to the study file (or builtin, the name of a table that comes with the program)",
        )),
    }
}
