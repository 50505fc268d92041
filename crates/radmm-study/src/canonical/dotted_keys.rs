//! The keys of a study as one list, with dotted names.

use serde_json::{Map, Value};

use super::write_toml::bare;

/// Returns all keys of a study in the form of [`Study::canonical`](crate::Study::canonical), each with its dotted name, as an
/// [`Override`](crate::Override) has it: `algorithm.penalty`. Lists are values.
pub fn dotted_keys(study: &Map<String, Value>) -> Vec<(String, Value)> {
    let mut keys = Vec::new();
    add("", study, &mut keys);
    keys
}

fn add(path: &str, table: &Map<String, Value>, keys: &mut Vec<(String, Value)>) {
    for (name, value) in table {
        let path = match path {
            "" => bare(name),
            path => format!("{path}.{}", bare(name)),
        };
        match value {
            Value::Object(table) => add(&path, table, keys),
            value => keys.push((path, value.clone())),
        }
    }
}
