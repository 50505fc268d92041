//! The parser of model files.
//!
//! `data` and `problem` have the keys and forms of a study's sections. They are converted to the TOML of a study and read by
//! its parser, so that there is one parser for both, with one set of checks.

use radmm::privacy::Guarantee;
use radmm::problem::Loss;
use radmm_data::{Format, Schema};
use serde_json::{Map, Value};
use toml::de::DeTable;

use super::{BadWeights, ModelError, ModelFile, ModelGuarantee, PROGRAM, Trained, check};
use crate::error::StudyError;
use crate::parse::reader::{Document, KnownNames, Section};
use crate::parse::{data, problem};

impl ModelFile {
    /// Reads a model and checks it. `file` is its name in messages.
    ///
    /// Unknown fields are ignored, except within `data` and `problem`.
    pub fn parse(text: &str, file: &str) -> Result<Self, ModelError> {
        let value = serde_json::from_str(text).map_err(|error| syntax(text, file, &error))?;
        let Value::Object(object) = &value else {
            return Err(not_a_model(file, "it is not a JSON object"));
        };
        let top = Fields {
            file,
            path: "",
            object,
        };
        let version = version(&top)?;
        let (format, schema, loss) = meaning(&top)?;
        let trained = Trained {
            party: top.text("party")?.to_owned(),
            iterations: top.count("iterations")?,
            guarantee: guarantee(&top)?,
            weights: weights(&top, &schema)?,
        };
        columns(&top, &schema)?;
        Ok(Self {
            version,
            study: top.text("study")?.to_owned(),
            study_sha256: sha256(&top)?,
            loss,
            format,
            schema,
            trained,
        })
    }
}

/// An object of the file.
#[derive(Clone, Copy)]
struct Fields<'a> {
    file: &'a str,
    /// `guarantee.`, or empty at the top.
    path: &'static str,
    object: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    fn get(&self, name: &str) -> Result<&'a Value, ModelError> {
        let value = self.object.get(name);
        value.ok_or_else(|| self.wrong(name, "is missing: the file is damaged or was edited"))
    }

    fn text(&self, name: &str) -> Result<&'a str, ModelError> {
        let text = self.get(name)?.as_str();
        text.ok_or_else(|| self.wrong(name, "must be a string"))
    }

    fn count(&self, name: &str) -> Result<u32, ModelError> {
        let count = self.get(name)?.as_u64();
        let count = count.and_then(|count| u32::try_from(count).ok());
        count.ok_or_else(|| self.wrong(name, "must be a whole number below 2³²"))
    }

    fn flag(&self, name: &str) -> Result<bool, ModelError> {
        let flag = self.get(name)?.as_bool();
        flag.ok_or_else(|| self.wrong(name, "must be true or false"))
    }

    fn list(&self, name: &str) -> Result<&'a [Value], ModelError> {
        let list = self.get(name)?.as_array();
        list.map(Vec::as_slice)
            .ok_or_else(|| self.wrong(name, "must be a list"))
    }

    fn object(&self, name: &str, path: &'static str) -> Result<Self, ModelError> {
        let object = self.get(name)?.as_object();
        Ok(Self {
            file: self.file,
            path,
            object: object.ok_or_else(|| self.wrong(name, "must be an object"))?,
        })
    }

    fn wrong(&self, name: &str, advice: impl Into<String>) -> ModelError {
        ModelError::Field {
            file: self.file.to_owned(),
            field: format!("{}{name}", self.path),
            advice: advice.into(),
        }
    }
}

/// The version of the program that made the file, if this program can read it.
fn version(top: &Fields<'_>) -> Result<String, ModelError> {
    let foreign = || not_a_model(top.file, "its program is not radmm");
    let program = top.object("program", "program.").map_err(|_| foreign())?;
    match program.text("name") {
        Ok(PROGRAM) => {}
        _ => return Err(foreign()),
    }
    if !top.object.contains_key("weights") {
        return Err(not_a_model(top.file, "it has no weights"));
    }
    let version = program.text("version")?;
    let this = env!("CARGO_PKG_VERSION");
    match (release(version), release(this)) {
        (None, _) => Err(program.wrong("version", "must be a version such as 1.2.3")),
        // Another patch of a release writes the same files.
        (made, this_one) if made > this_one => Err(ModelError::Newer {
            file: top.file.to_owned(),
            version: version.to_owned(),
            this,
        }),
        _ => Ok(version.to_owned()),
    }
}

/// The first two numbers of a version.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn sha256(top: &Fields<'_>) -> Result<String, ModelError> {
    let digits = top.text("study_sha256")?;
    match digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        true => Ok(digits.to_owned()),
        false => Err(top.wrong("study_sha256", "must be 64 hexadecimal digits")),
    }
}

fn guarantee(top: &Fields<'_>) -> Result<Option<ModelGuarantee>, ModelError> {
    if top.object.get("guarantee").is_none_or(Value::is_null) {
        return Ok(None);
    }
    let fields = top.object("guarantee", "guarantee.")?;
    let number = |name: &str, needed: &str, holds: fn(&f64) -> bool| {
        let number = match fields.get(name)? {
            // As infinities are written.
            Value::Null => Some(f64::INFINITY),
            value => value.as_f64(),
        };
        number
            .filter(holds)
            .ok_or_else(|| fields.wrong(name, format!("must be {needed}")))
    };
    let total = Guarantee {
        epsilon: number("epsilon", "zero or more, or null", |x| *x >= 0.0)?,
        delta: number("delta", "from 0 to 1", |x| (0.0..=1.0).contains(x))?,
    };
    // An ε for another relation is another promise.
    if fields.text("relation")? != Guarantee::RELATION {
        return Err(fields.wrong("relation", format!("must be {:?}", Guarantee::RELATION)));
    }
    Ok(Some(ModelGuarantee {
        total,
        protects: fields.flag("protects")?,
        caveat: fields.text("caveat")?.to_owned(),
    }))
}

fn weights(top: &Fields<'_>, schema: &Schema) -> Result<Vec<f64>, ModelError> {
    let list = top.list("weights")?;
    let mut weights = Vec::with_capacity(list.len());
    for (k, value) in list.iter().enumerate() {
        weights.push(match value {
            // As NaN and infinities are written by programs that write them at all.
            Value::Null => f64::NAN,
            value => value
                .as_f64()
                .ok_or_else(|| top.wrong(&format!("weights[{k}]"), "must be a number"))?,
        });
    }
    match check(schema, &weights) {
        Ok(()) => Ok(weights),
        Err(cause) => Err(bad_weights(top.file, cause)),
    }
}

/// Checks that the names are those of the schema, which shows that weights and columns belong together.
fn columns(top: &Fields<'_>, schema: &Schema) -> Result<(), ModelError> {
    let listed = top.list("columns")?;
    let columns = schema.columns();
    if listed.len() != columns.len() {
        return Err(top.wrong(
            "columns",
            format!(
                "there are {} names, and data has {} columns; the file is damaged or was edited",
                listed.len(),
                columns.len()
            ),
        ));
    }
    let differs = |(listed, column): (&Value, &String)| listed.as_str() != Some(column);
    match listed.iter().zip(&columns).position(differs) {
        None => Ok(()),
        Some(k) => Err(top.wrong(
            &format!("columns[{k}]"),
            format!(
                "{} is not a column of data, which has {:?} there; the file is damaged or was edited",
                listed[k], columns[k]
            ),
        )),
    }
}

/// The sections of a study that a model file has.
const KNOWN: KnownNames = KnownNames {
    keys: &[],
    sections: &["data", "problem"],
    lists: &[],
};

fn meaning(top: &Fields<'_>) -> Result<(Format, Schema, Loss), ModelError> {
    let mut text = String::new();
    for name in ["data", "problem"] {
        top.object(name, "")?;
        let written = toml(top.get(name)?, name)
            .map_err(|path| top.wrong(&path, "is null; the file is damaged or was edited"))?;
        text.push_str(&format!("{name} = {written}\n"));
    }
    let document = Document {
        file: top.file,
        text: &text,
        overrides: &[],
    };
    let table = DeTable::parse(&text).map_err(|error| top.wrong("data", error.message()))?;
    let read = || -> Result<(Format, Schema, Loss), StudyError> {
        let section = Section::top(document, table.get_ref(), &KNOWN)?;
        let (format, schema) = data::read_meaning(&section)?;
        let problem = section.section("problem", &["loss", "width"])?;
        problem.required("loss", "logistic, smooth-hinge or cut-logistic")?;
        Ok((format, schema, problem::loss(&problem)?))
    };
    read().map_err(|error| section_error(top, error))
}

/// Returns JSON as TOML with inline tables; if there is a null, its path.
fn toml(value: &Value, path: &str) -> Result<String, String> {
    match value {
        Value::Null => Err(path.to_owned()),
        Value::Array(elements) => {
            let elements = elements.iter().enumerate();
            let elements = elements.map(|(k, value)| toml(value, &format!("{path}[{k}]")));
            Ok(format!(
                "[{}]",
                elements.collect::<Result<Vec<_>, _>>()?.join(", ")
            ))
        }
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| {
                let value = toml(value, &format!("{path}.{key}"))?;
                Ok(format!("{} = {value}", string(key)))
            });
            Ok(format!(
                "{{ {} }}",
                entries.collect::<Result<Vec<_>, String>>()?.join(", ")
            ))
        }
        Value::String(text) => Ok(string(text)),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
    }
}

/// Returns a TOML string. JSON escapes the same characters but for one control character.
fn string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// Returns the error of a study's section without its line, which is one of the generated TOML.
fn section_error(top: &Fields<'_>, error: StudyError) -> ModelError {
    let (field, advice) = match error {
        StudyError::Wrong {
            key, value, advice, ..
        } => (key, format!("{value}: {advice}")),
        StudyError::Missing { key, meaning, .. } => (key, format!("is missing: {meaning}")),
        // `[data] unknown key "colour"`
        StudyError::Unknown { what, advice, .. } => match what.split_once("] ") {
            Some((section, what)) => (section.to_owned(), format!("{what}: {advice}")),
            None => ("data".to_owned(), format!("{what}: {advice}")),
        },
        StudyError::Syntax {
            message: advice, ..
        }
        | StudyError::Override { advice, .. } => ("data".to_owned(), advice),
    };
    // `[data.numeric] age` to the study, `data.numeric.age` here.
    let field = field.strip_prefix('[').unwrap_or(&field);
    top.wrong(&field.replacen("] ", ".", 1), advice)
}

fn not_a_model(file: &str, reason: &str) -> ModelError {
    ModelError::NotAModel {
        file: file.to_owned(),
        reason: reason.to_owned(),
    }
}

fn bad_weights(file: &str, cause: BadWeights) -> ModelError {
    ModelError::Weights {
        file: file.to_owned(),
        cause,
    }
}

fn syntax(text: &str, file: &str, error: &serde_json::Error) -> ModelError {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    let word = word_at(text, line, column);
    let message = if error.is_eof() {
        "the text ends before the model does; get the file again from its party".to_owned()
    } else if ["NaN", "Infinity", "-Infinity"].contains(&word) {
        format!("{word} is not a finite number; get the file again from its party")
    } else {
        format!(
            "{message}; a model file is JSON, the model.json that radmm node or radmm run wrote"
        )
    };
    ModelError::Syntax {
        file: file.to_owned(),
        line,
        column,
        message,
    }
}

/// Returns the letters, with a sign, around a byte of a line; line and column are counted from 1.
fn word_at(text: &str, line: usize, column: usize) -> &str {
    let line = text.split('\n').nth(line.saturating_sub(1)).unwrap_or("");
    let inside = |c: char| c.is_ascii_alphabetic() || c == '-';
    let Some((before, after)) = line.split_at_checked(column.saturating_sub(1)) else {
        return "";
    };
    let start = before.trim_end_matches(inside).len();
    let end = before.len() + after.len() - after.trim_start_matches(inside).len();
    &line[start..end]
}
