//! One line of a transcript, whose fields are looked at one by one: an error names the field.

use serde_json::{Map, Value};

use crate::strict_json::{self, NotOnce};

/// A JSON object.
pub(super) struct Line(Map<String, Value>);

impl Line {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        match strict_json::value(bytes) {
            Ok(Value::Object(object)) => Ok(Self(object)),
            Ok(_) => Err("it is not a JSON object".to_owned()),
            Err(NotOnce::Json(error)) => Err(format!("it is not JSON (column {})", error.column())),
            Err(NotOnce::Twice(key)) => Err(format!("{key:?} is there twice")),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn get(&self, name: &str) -> Result<&Value, String> {
        self.0.get(name).ok_or_else(|| format!("{name} is missing"))
    }

    pub(super) fn within(&self, name: &str) -> Result<Self, String> {
        match self.get(name)? {
            Value::Object(object) => Ok(Self(object.clone())),
            _ => Err(format!("{name}: must be an object")),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<&str, String> {
        let text = self.get(name)?.as_str();
        text.ok_or_else(|| format!("{name}: must be a string"))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        let flag = self.get(name)?.as_bool();
        flag.ok_or_else(|| format!("{name}: must be true or false"))
    }

    pub(super) fn count(&self, name: &str) -> Result<u32, String> {
        let count = self.get(name)?.as_u64();
        let count = count.and_then(|count| u32::try_from(count).ok());
        count.ok_or_else(|| format!("{name}: must be a whole number below 2³²"))
    }

    pub(super) fn integers(&self, name: &str) -> Result<Vec<i64>, String> {
        self.list(name, Value::as_i64, "whole numbers")
    }

    pub(super) fn doubles(&self, name: &str) -> Result<Vec<f64>, String> {
        self.list(name, Value::as_f64, "numbers")
    }

    fn list<T>(
        &self,
        name: &str,
        of: impl Fn(&Value) -> Option<T>,
        what: &str,
    ) -> Result<Vec<T>, String> {
        let list = self.get(name)?.as_array();
        let list = list.and_then(|list| list.iter().map(of).collect());
        list.ok_or_else(|| format!("{name}: must be a list of {what}"))
    }
}
