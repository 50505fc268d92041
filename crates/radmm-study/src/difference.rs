//! Where two studies part, told by the key.

use std::fmt;

use serde_json::{Map, Value};

use crate::spelling::bare;

/// Values are cut to this many characters.
const LONGEST: usize = 60;

/// Keys are cut to this many: they have a section, and columns have long names.
const LONGEST_KEY: usize = 120;

/// A key that two studies do not agree on. Nothing in it can move a cursor or fill a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// With its section: `[algorithm] penalty`, `[[parties]] birch: address`.
    pub key: String,
    /// The value in my study as JSON, cut short if long; `absent` if there is none.
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

/// The first key, in the order of [`Study::canonical`](crate::Study::canonical), that two studies in that form differ in;
/// `None` if the texts are equal. `theirs` may be any text: it may come from somebody who means ill. It takes memory in
/// proportion to its length, which is for the caller to limit.
pub fn first_difference(mine: &str, theirs: &str) -> Option<Difference> {
    if mine == theirs {
        return None;
    }
    // The parser gives up at a depth of 128, so that what follows does not go deeper.
    let study = |text| serde_json::from_str::<Map<String, Value>>(text);
    let told = match (study(mine), study(theirs)) {
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
    Some(told)
}

/// The first difference of two tables. As long as they agree, their keys come in the same order.
fn in_tables(
    path: &str,
    mine: &Map<String, Value>,
    theirs: &Map<String, Value>,
) -> Option<Difference> {
    let place = |name: &str| Place {
        path: path.to_owned(),
        name: bare(name),
    };
    let (mut left, mut right) = (mine.iter(), theirs.iter());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return None,
            (Some((name, a)), Some((other, b))) if name == other => {
                let found = in_values(&place(name), a, b);
                if found.is_some() {
                    return found;
                }
            }
            (Some((name, value)), _) if !theirs.contains_key(name) => {
                return Some(place(name).differs(Some(value), None));
            }
            (_, Some((name, value))) if !mine.contains_key(name) => {
                return Some(place(name).differs(None, Some(value)));
            }
            // Both have both, in another order: that of columns means something.
            _ => return Some(in_order(path, mine, theirs)),
        }
    }
}

fn in_order(path: &str, mine: &Map<String, Value>, theirs: &Map<String, Value>) -> Difference {
    let names = |table: &Map<String, Value>| {
        let names: Vec<String> = table.keys().map(|name| bare(name)).collect();
        shown(&names.join(", "), LONGEST)
    };
    let of = match path {
        "" => "sections".to_owned(),
        path => format!("[{path}]"),
    };
    Difference {
        key: shown(&format!("order of {of}"), LONGEST_KEY),
        mine: names(mine),
        theirs: names(theirs),
    }
}

fn in_values(place: &Place, mine: &Value, theirs: &Value) -> Option<Difference> {
    match (mine, theirs) {
        (Value::Object(mine), Value::Object(theirs)) => in_tables(&place.as_path(), mine, theirs),
        (Value::Array(mine), Value::Array(theirs)) => in_arrays(place, mine, theirs),
        _ if mine == theirs => None,
        _ => Some(place.differs(Some(mine), Some(theirs))),
    }
}

fn in_arrays(place: &Place, mine: &[Value], theirs: &[Value]) -> Option<Difference> {
    (0..mine.len().max(theirs.len())).find_map(|index| {
        let element = place.element(index);
        match (mine.get(index), theirs.get(index)) {
            (Some(a), Some(b)) if place.is_parties() => in_parties(&element, a, b),
            (Some(a), Some(b)) => in_values(&element, a, b),
            (a, b) => Some(element.differs(a, b)),
        }
    })
}

/// The first difference of two parties, which are told by their name if they have the same.
fn in_parties(place: &Place, mine: &Value, theirs: &Value) -> Option<Difference> {
    let (Value::Object(a), Value::Object(b)) = (mine, theirs) else {
        return in_values(place, mine, theirs);
    };
    let found = in_tables("", a, b)?;
    let party = match (a.get("name"), b.get("name")) {
        (Some(Value::String(name)), Some(other)) if name == other => format!("[[parties]] {name}"),
        _ => place.key(),
    };
    let key = format!("{party}: {}", found.key);
    Some(Difference {
        key: shown(&key, LONGEST_KEY),
        ..found
    })
}

/// Where a value stands.
struct Place {
    /// Of its section; empty at the top.
    path: String,
    /// With its index, if it is an element.
    name: String,
}

impl Place {
    /// As in messages about the file.
    fn key(&self) -> String {
        match self.path.as_str() {
            "" => self.name.clone(),
            path => format!("[{path}] {}", self.name),
        }
    }

    /// Of the section that it is, if it is one.
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
            Some(value) => shown(&value.to_string(), LONGEST),
            None => "absent".to_owned(),
        };
        Difference {
            key: shown(&self.key(), LONGEST_KEY),
            mine: text(mine),
            theirs: text(theirs),
        }
    }
}

/// A text of bearable length, in characters that can be seen.
fn shown(text: &str, longest: usize) -> String {
    let seen = |c: char| -> String {
        match c {
            '"' | '\'' | '\\' => c.to_string(),
            // Also what is invisible, or turns the direction of what follows.
            _ => c.escape_debug().collect(),
        }
    };
    // One more than fits, whatever is escaped.
    let seen: String = text.chars().take(longest + 1).map(seen).collect();
    if seen.chars().count() <= longest {
        return seen;
    }
    seen.chars().take(longest - 1).chain(['…']).collect()
}
