//! JSON from untrusted files, in which no object may have a key twice.
//!
//! Parsers disagree about which value of a repeated key counts, so that the same signed bytes would mean different things to
//! different readers.

use radmm_study::foreign_text::quoted;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The reason why bytes are not strict JSON.
#[derive(Debug)]
pub(crate) enum StrictJsonError {
    /// The bytes are not JSON.
    Json(serde_json::Error),
    /// A key occurs twice in one object, at any depth.
    DuplicateKey(String),
}

/// Parses JSON in which no object has a key twice, at any depth.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, StrictJsonError> {
    let parsed: Parsed = serde_json::from_slice(bytes).map_err(StrictJsonError::Json)?;
    match parsed.duplicate {
        None => Ok(parsed.value),
        Some(key) => Err(StrictJsonError::DuplicateKey(key)),
    }
}

/// A JSON object whose fields are read one by one, so that an error names the field.
pub(crate) struct Object<'a>(&'a Map<String, Value>);

impl<'a> Object<'a> {
    /// Views a value as an object.
    pub(crate) fn new(value: &'a Value) -> Result<Self, String> {
        value
            .as_object()
            .map(Self)
            .ok_or_else(|| "must be an object".to_owned())
    }

    /// Rejects fields other than these.
    pub(crate) fn only(self, names: &[&str]) -> Result<Self, String> {
        match self.0.keys().find(|key| !names.contains(&key.as_str())) {
            Some(key) => Err(format!("unknown field {}", quoted(key))),
            None => Ok(self),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn get(&self, name: &str) -> Result<&'a Value, String> {
        self.0.get(name).ok_or_else(|| format!("{name} is missing"))
    }

    pub(crate) fn object(&self, name: &str) -> Result<Self, String> {
        Self::new(self.get(name)?).map_err(|error| format!("{name}: {error}"))
    }

    pub(crate) fn text(&self, name: &str) -> Result<&'a str, String> {
        let text = self.get(name)?.as_str();
        text.ok_or_else(|| format!("{name}: must be a string"))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, String> {
        let flag = self.get(name)?.as_bool();
        flag.ok_or_else(|| format!("{name}: must be true or false"))
    }

    /// Reads an unsigned integer that fits `T`.
    pub(crate) fn count<T: TryFrom<u64>>(&self, name: &str) -> Result<T, String> {
        let count = self.get(name)?.as_u64();
        let count = count.and_then(|count| T::try_from(count).ok());
        let bits = 8 * size_of::<T>();
        count.ok_or_else(|| format!("{name}: must be a whole number below 2^{bits}"))
    }

    /// Reads a number that is not negative.
    pub(crate) fn number(&self, name: &str) -> Result<f64, String> {
        let number = self.get(name)?.as_f64().filter(|number| *number >= 0.0);
        number.ok_or_else(|| format!("{name}: must be a number of at least 0"))
    }

    pub(crate) fn integers(&self, name: &str) -> Result<Vec<i64>, String> {
        let list = self.get(name)?.as_array();
        let list = list.and_then(|list| list.iter().map(Value::as_i64).collect());
        list.ok_or_else(|| format!("{name}: must be a list of whole numbers"))
    }
}

struct Parsed {
    value: Value,
    /// The first key that occurs twice.
    duplicate: Option<String>,
}

impl Parsed {
    /// Wraps a value that has no keys.
    fn plain(value: impl Into<Value>) -> Self {
        Self {
            value: value.into(),
            duplicate: None,
        }
    }
}

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Parsed, E> {
        Ok(Parsed::plain(Value::Null))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Parsed, E> {
        Ok(Parsed::plain(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Parsed, E> {
        Ok(Parsed::plain(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Parsed, E> {
        Ok(Parsed::plain(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Parsed, E> {
        Ok(Parsed::plain(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Parsed, E> {
        Ok(Parsed::plain(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Parsed, A::Error> {
        let (mut list, mut duplicate) = (Vec::new(), None);
        while let Some(parsed) = from.next_element::<Parsed>()? {
            duplicate = duplicate.or(parsed.duplicate);
            list.push(parsed.value);
        }
        let value = Value::Array(list);
        Ok(Parsed { value, duplicate })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Parsed, A::Error> {
        let (mut object, mut duplicate) = (Map::new(), None);
        while let Some((key, parsed)) = from.next_entry::<String, Parsed>()? {
            let seen = object.contains_key(&key).then(|| key.clone());
            duplicate = duplicate.or(seen).or(parsed.duplicate);
            object.insert(key, parsed.value);
        }
        let value = Value::Object(object);
        Ok(Parsed { value, duplicate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_without_repeated_keys_is_read_as_by_serde_json() {
        for text in [
            r#"{"b":[1,-2,3.5e-7,18446744073709551615,null,true,"x\n"],"a":{"b":{"b":{}}},"c":[]}"#,
            r#"[{"a":1},{"a":2}]"#,
            "0.1",
            " null ",
        ] {
            let plain: Value = serde_json::from_str(text).unwrap();
            let read = parse(text.as_bytes()).unwrap();
            assert_eq!(read.to_string(), plain.to_string());
        }
        for text in ["", "{", "1 2", "{\"a\":}", "[1,]", "\"\\ud800\"", "1e999"] {
            assert!(matches!(
                parse(text.as_bytes()),
                Err(StrictJsonError::Json(_))
            ));
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(
            parse(deep.as_bytes()),
            Err(StrictJsonError::Json(_))
        ));
    }

    #[test]
    fn a_repeated_key_is_found_at_every_depth() {
        for text in [
            r#"{"e":1,"e":1}"#,
            r#"{"e":1,"f":2,"\u0065":3}"#,
            r#"{"a":{"e":1,"e":2}}"#,
            r#"{"a":[0,[{"b":{"e":null,"e":null}}]],"c":1}"#,
            r#"{"a":{"e":1,"e":2},"a":0}"#,
        ] {
            let Err(StrictJsonError::DuplicateKey(key)) = parse(text.as_bytes()) else {
                panic!("{text}");
            };
            assert_eq!(key, "e", "{text}");
        }
    }
}
