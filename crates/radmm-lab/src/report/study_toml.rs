//! A study as the TOML file that runs it again.

use radmm_study::Study;
use serde_json::{Map, Value};

/// Returns a study as TOML, with its defaults filled in and without keys that have no effect. Parsing it gives the same study.
pub(super) fn study_toml(study: &Study) -> String {
    // Every map of a study has string keys, so that serialising cannot fail.
    let value = serde_json::to_value(study).expect("a study is valid JSON");
    let mut text = String::new();
    if let Value::Object(map) = &value {
        section(&mut text, "", map);
    }
    let Ok((_, notes)) = Study::parse(&text, "study.toml") else {
        return text;
    };
    let idle = |line: &usize| notes.iter().any(|note| note.line == *line);
    let used = (1..).zip(text.lines()).filter(|(line, _)| !idle(line));
    used.map(|(_, line)| line.to_owned() + "\n").collect()
}

/// Appends a table: first its plain keys, then its sub-tables under headers of their own.
fn section(text: &mut String, path: &str, map: &Map<String, Value>) {
    for (key, value) in map.iter().filter(|(_, value)| !is_section(value)) {
        // TOML has no null: a key without a value is left out.
        if !value.is_null() {
            *text += &format!("{} = {}\n", bare(key), inline(value));
        }
    }
    for (key, value) in map {
        let path = match path {
            "" => bare(key),
            path => format!("{path}.{}", bare(key)),
        };
        match value {
            Value::Object(map) => {
                *text += &format!("\n[{path}]\n");
                section(text, &path, map);
            }
            Value::Array(tables) if is_section(value) => {
                for map in tables.iter().filter_map(Value::as_object) {
                    *text += &format!("\n[[{path}]]\n");
                    section(text, &path, map);
                }
            }
            _ => {}
        }
    }
}

fn is_section(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => !items.is_empty() && items.iter().all(Value::is_object),
        _ => false,
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| format!("{} = {}", bare(key), inline(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// Returns a key, quoted where it has other characters than TOML allows in bare keys.
fn bare(key: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    match !key.is_empty() && key.chars().all(plain) {
        true => key.to_owned(),
        false => quoted(key),
    }
}

/// Returns a TOML string. It is the JSON string, but for one control character that TOML wants escaped.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_toml_of_a_study_parses_to_the_same_study() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let (study, _) = Study::parse(&text, "study.toml").unwrap();
            let (again, notes) = Study::parse(&study_toml(&study), "study.toml").unwrap();
            assert_eq!(again.canonical(), study.canonical(), "{}", path.display());
            assert!(notes.is_empty(), "{notes:?}");
            count += 1;
        }
        assert!(count >= 9);
    }

    #[test]
    fn odd_names_are_quoted() {
        let odd = "[data]\nbuiltin = \"clinic\"\nlabel = \"readmitted\"\npositive = \"yes\"\n[data.numeric]\n\"a b.\\\"c\\\"\" = [18, 95]\n\
                   [network]\nnodes = 2\nedges = [[0, 1]]\n[problem]\nweight = 1\nridge = 1\n\
                   [algorithm]\nname = \"admm\"\niterations = 2\npenalty = { start = 1.0, growth = 1.1 }\n";
        let (study, _) = Study::parse(odd, "odd.toml").unwrap();
        let (again, _) = Study::parse(&study_toml(&study), "odd.toml").unwrap();
        assert_eq!(again.canonical(), study.canonical());
    }
}
