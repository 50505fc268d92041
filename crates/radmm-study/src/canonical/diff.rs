//! The first key in which two studies differ.

use std::fmt;

use serde_json::{Map, Value};

use crate::foreign_text::visible;
use crate::parse::suggest::toml_key;

/// The most characters of a value that are shown.
const MAX_VALUE: usize = 60;

/// The most characters of a key that are shown: it has a section, and columns have long names.
const MAX_KEY: usize = 120;

/// A key that two studies do not agree on. Its texts are short and have no control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key with its section: `[algorithm] penalty`, `[[parties]] birch: address`.
    pub key: String,
    /// The value in my study as JSON, cut short if long; `absent` if the key is missing.
    pub mine: String,
    /// The value in the other study.
    pub theirs: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, mine, theirs } = self;
        write!(f, "{key}: {mine} here, {theirs} there")
    }
}

/// Returns the first key, in the order of [`Study::canonical`](crate::Study::canonical), in which two studies in that form
/// differ; `None` if the texts are equal.
///
/// `theirs` may be any text, even a malicious one. It takes memory in proportion to its length, which the caller must limit.
pub fn first_difference(mine: &str, theirs: &str) -> Option<Difference> {
    if mine == theirs {
        return None;
    }
    // The parser rejects a depth of more than 128, which bounds the recursion below.
    let study = |text| serde_json::from_str::<Map<String, Value>>(text);
    let difference = match (study(mine), study(theirs)) {
        (Ok(mine), Ok(theirs)) => in_tables("", &mine, &theirs).unwrap_or_else(|| Difference {
            key: "study".to_owned(),
            mine: "in canonical form".to_owned(),
            theirs: "the same in another form".to_owned(),
        }),
        (mine, theirs) => {
            let kind = |is_study| match is_study {
                true => "is a study".to_owned(),
                false => "is not a study".to_owned(),
            };
            Difference {
                key: "study".to_owned(),
                mine: kind(mine.is_ok()),
                theirs: kind(theirs.is_ok()),
            }
        }
    };
    Some(difference)
}

/// The first difference of two tables. As long as they agree, their keys come in the same order.
fn in_tables(
    path: &str,
    mine: &Map<String, Value>,
    theirs: &Map<String, Value>,
) -> Option<Difference> {
    let key_path = |name: &str| KeyPath {
        path: path.to_owned(),
        name: toml_key(name),
    };
    let (mut left, mut right) = (mine.iter(), theirs.iter());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return None,
            (Some((name, a)), Some((other, b))) if name == other => {
                let found = in_values(&key_path(name), a, b);
                if found.is_some() {
                    return found;
                }
            }
            (Some((name, value)), _) if !theirs.contains_key(name) => {
                return Some(key_path(name).differs(Some(value), None));
            }
            (_, Some((name, value))) if !mine.contains_key(name) => {
                return Some(key_path(name).differs(None, Some(value)));
            }
            // Both have both keys in another order, and the order of columns has a meaning.
            _ => return Some(in_order(path, mine, theirs)),
        }
    }
}

fn in_order(path: &str, mine: &Map<String, Value>, theirs: &Map<String, Value>) -> Difference {
    let names = |table: &Map<String, Value>| {
        let names: Vec<String> = table.keys().map(|name| toml_key(name)).collect();
        visible(&names.join(", "), MAX_VALUE)
    };
    let of = match path {
        "" => "sections".to_owned(),
        path => format!("[{path}]"),
    };
    Difference {
        key: visible(&format!("order of {of}"), MAX_KEY),
        mine: names(mine),
        theirs: names(theirs),
    }
}

fn in_values(path: &KeyPath, mine: &Value, theirs: &Value) -> Option<Difference> {
    match (mine, theirs) {
        (Value::Object(mine), Value::Object(theirs)) => in_tables(&path.as_path(), mine, theirs),
        (Value::Array(mine), Value::Array(theirs)) => in_arrays(path, mine, theirs),
        _ if mine == theirs => None,
        _ => Some(path.differs(Some(mine), Some(theirs))),
    }
}

fn in_arrays(path: &KeyPath, mine: &[Value], theirs: &[Value]) -> Option<Difference> {
    (0..mine.len().max(theirs.len())).find_map(|index| {
        let element = path.element(index);
        match (mine.get(index), theirs.get(index)) {
            (Some(a), Some(b)) if path.is_parties() => in_parties(&element, a, b),
            (Some(a), Some(b)) => in_values(&element, a, b),
            (a, b) => Some(element.differs(a, b)),
        }
    })
}

/// The first difference of two parties, under their name if they have the same.
fn in_parties(path: &KeyPath, mine: &Value, theirs: &Value) -> Option<Difference> {
    let (Value::Object(a), Value::Object(b)) = (mine, theirs) else {
        return in_values(path, mine, theirs);
    };
    let found = in_tables("", a, b)?;
    let party = match (a.get("name"), b.get("name")) {
        (Some(Value::String(name)), Some(other)) if name == other => format!("[[parties]] {name}"),
        _ => path.key(),
    };
    let key = format!("{party}: {}", found.key);
    Some(Difference {
        key: visible(&key, MAX_KEY),
        ..found
    })
}

/// The section and name of a value.
struct KeyPath {
    /// The path of its section; empty at the top.
    path: String,
    /// The name, with an index if the value is an element.
    name: String,
}

impl KeyPath {
    /// The key as in messages about the file.
    fn key(&self) -> String {
        match self.path.as_str() {
            "" => self.name.clone(),
            path => format!("[{path}] {}", self.name),
        }
    }

    /// The path of the section that the value is, if it is one.
    fn as_path(&self) -> String {
        match self.path.as_str() {
            "" => self.name.clone(),
            path => format!("{path}.{}", self.name),
        }
    }

    fn is_parties(&self) -> bool {
        self.path.is_empty() && self.name == "parties"
    }

    fn element(&self, index: usize) -> Self {
        Self {
            path: self.path.clone(),
            name: match self.is_parties() {
                true => format!("[[parties]] node {index}"),
                false => format!("{}[{index}]", self.name),
            },
        }
    }

    fn differs(&self, mine: Option<&Value>, theirs: Option<&Value>) -> Difference {
        let text = |value: Option<&Value>| match value {
            Some(value) => visible(&value.to_string(), MAX_VALUE),
            None => "absent".to_owned(),
        };
        Difference {
            key: visible(&self.key(), MAX_KEY),
            mine: text(mine),
            theirs: text(theirs),
        }
    }
}
