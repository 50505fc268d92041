//! JSON of strangers, in which every key is there once.
//!
//! Of a key that is there twice one program takes the first value and another the last, so that the same signed bytes would say
//! different things to different readers.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Why bytes are not such JSON.
#[derive(Debug)]
pub(crate) enum NotOnce {
    /// They are no JSON.
    Json(serde_json::Error),
    /// A key that is there twice, in whatever object.
    Twice(String),
}

/// Reads JSON whose objects have no key twice, however deep they are.
pub(crate) fn value(bytes: &[u8]) -> Result<Value, NotOnce> {
    let read: Read = serde_json::from_slice(bytes).map_err(NotOnce::Json)?;
    match read.twice {
        None => Ok(read.value),
        Some(key) => Err(NotOnce::Twice(key)),
    }
}

struct Read {
    value: Value,
    /// The first one.
    twice: Option<String>,
}

impl Read {
    /// What has no keys.
    fn plain(value: impl Into<Value>) -> Self {
        Self {
            value: value.into(),
            twice: None,
        }
    }
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Read, E> {
        Ok(Read::plain(Value::Null))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Read, E> {
        Ok(Read::plain(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Read, E> {
        Ok(Read::plain(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Read, E> {
        Ok(Read::plain(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Read, E> {
        Ok(Read::plain(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Read, E> {
        Ok(Read::plain(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Read, A::Error> {
        let (mut list, mut twice) = (Vec::new(), None);
        while let Some(read) = from.next_element::<Read>()? {
            twice = twice.or(read.twice);
            list.push(read.value);
        }
        let value = Value::Array(list);
        Ok(Read { value, twice })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Read, A::Error> {
        let (mut object, mut twice) = (Map::new(), None);
        while let Some((key, read)) = from.next_entry::<String, Read>()? {
            let before = object.contains_key(&key).then(|| key.clone());
            twice = twice.or(before).or(read.twice);
            object.insert(key, read.value);
        }
        let value = Value::Object(object);
        Ok(Read { value, twice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_every_key_once_is_read_as_ever() {
        for text in [
            r#"{"b":[1,-2,3.5e-7,18446744073709551615,null,true,"x\n"],"a":{"b":{"b":{}}},"c":[]}"#,
            r#"[{"a":1},{"a":2}]"#,
            "0.1",
            " null ",
        ] {
            let plain: Value = serde_json::from_str(text).unwrap();
            let read = value(text.as_bytes()).unwrap();
            assert_eq!(read.to_string(), plain.to_string());
        }
        for text in ["", "{", "1 2", "{\"a\":}", "[1,]", "\"\\ud800\"", "1e999"] {
            assert!(matches!(value(text.as_bytes()), Err(NotOnce::Json(_))));
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(value(deep.as_bytes()), Err(NotOnce::Json(_))));
    }

    #[test]
    fn a_key_that_is_there_twice_is_found_at_every_depth() {
        for text in [
            r#"{"e":1,"e":1}"#,
            r#"{"e":1,"f":2,"\u0065":3}"#,
            r#"{"a":{"e":1,"e":2}}"#,
            r#"{"a":[0,[{"b":{"e":null,"e":null}}]],"c":1}"#,
            r#"{"a":{"e":1,"e":2},"a":0}"#,
        ] {
            let Err(NotOnce::Twice(key)) = value(text.as_bytes()) else {
                panic!("{text}");
            };
            assert_eq!(key, "e", "{text}");
        }
    }
}
