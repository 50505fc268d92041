//! A study as the TOML file that runs it again.

use serde_json::{Map, Value};

use crate::{Choice, Study};

impl Study {
    /// Returns the study as TOML, with its defaults filled in and without keys that have no effect. Parsing it gives the same
    /// study.
    pub fn to_toml(&self) -> String {
        self.to_toml_with(&[])
    }

    /// Returns the study as TOML, in which a comment gives the reason of each choice. A number that was chosen for the number of
    /// rows at hand takes the place of `"auto"`.
    pub fn to_toml_with(&self, choices: &[Choice]) -> String {
        // Every map of a study has string keys, so that serialising cannot fail.
        let value = serde_json::to_value(self).expect("a study is valid JSON");
        let mut text = String::new();
        if let Value::Object(map) = &value {
            section(&mut text, "", map, choices);
        }
        let Ok((_, notes)) = Self::parse(&text, "study.toml") else {
            return text;
        };
        let idle = |line: &usize| notes.iter().any(|note| note.place.line() == Some(*line));
        let used = (1..).zip(text.lines()).filter(|(line, _)| !idle(line));
        used.map(|(_, line)| line.to_owned() + "\n").collect()
    }
}

/// Returns JSON of the form of a study file as TOML, unchecked.
pub fn toml_of_json(map: &Map<String, Value>) -> String {
    let mut text = String::new();
    section(&mut text, "", map, &[]);
    text
}

/// Appends a table: first its plain keys, then its sub-tables under headers of their own.
fn section(text: &mut String, path: &str, map: &Map<String, Value>, choices: &[Choice]) {
    for (key, value) in map.iter().filter(|(_, value)| !is_section(value, path)) {
        // TOML has no null: a key without a value is left out.
        if value.is_null() {
            continue;
        }
        let mut choices = choices.iter();
        let chosen = choices.find(|choice| choice.section == path && choice.key == key);
        let line = match chosen {
            Some(choice) => format!(
                "{} = {} # chosen: {}",
                bare(key),
                choice.value,
                choice.reason
            ),
            None => format!("{} = {}", bare(key), inline(value)),
        };
        *text += &(line + "\n");
    }
    let parent = path;
    for (key, value) in map {
        let path = match path {
            "" => bare(key),
            path => format!("{path}.{}", bare(key)),
        };
        match value {
            Value::Object(map) if is_section(value, parent) => {
                *text += &format!("\n[{path}]\n");
                section(text, &path, map, choices);
            }
            Value::Array(tables) if is_section(value, parent) => {
                for map in tables.iter().filter_map(Value::as_object) {
                    *text += &format!("\n[[{path}]]\n");
                    section(text, &path, map, &[]);
                }
            }
            _ => {}
        }
    }
}

/// Returns whether a value within the section `parent` has a header of its own. The meaning of a column stands on one line.
fn is_section(value: &Value, parent: &str) -> bool {
    let is_column = ["data.numeric", "data.categorical"].contains(&parent);
    match value {
        _ if is_column => false,
        Value::Object(_) => true,
        Value::Array(items) => !items.is_empty() && items.iter().all(Value::is_object),
        _ => false,
    }
}

pub(crate) fn inline(value: &Value) -> String {
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
pub(crate) fn bare(key: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    match !key.is_empty() && key.chars().all(plain) {
        true => key.to_owned(),
        false => quoted(key),
    }
}

/// Returns a TOML string. It is the JSON string, but for one control character that TOML wants escaped.
pub(crate) fn quoted(text: &str) -> String {
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
            let (again, notes) = Study::parse(&study.to_toml(), "study.toml").unwrap();
            assert_eq!(again.canonical(), study.canonical(), "{}", path.display());
            assert!(notes.is_empty(), "{notes:?}");
            count += 1;
        }
        assert!(count >= 8);
    }

    #[test]
    fn chosen_values_stand_in_the_toml_with_their_reasons() {
        let short = "[data]\nbuiltin = \"clinic\"\n[data.numeric]\nage = { bins = [40], missing = \"category\" }\nbmi = { bounds = [15, 50] }\n\
                     [network]\nnodes = 3\n[privacy]\nepsilon = 1\ndelta = 1e-5\n";
        let (study, _) = Study::parse(short, "short.toml").unwrap();
        let graph = radmm::graph::Graph::new(&study.network.topology, 3).unwrap();
        let choices = crate::instantiate::Instance::new(&study, &graph, vec![500; 3]).choices();
        let text = study.to_toml_with(&choices);
        for choice in &choices {
            let line = format!(
                "{} = {} # chosen: {}\n",
                choice.key, choice.value, choice.reason
            );
            assert!(text.contains(&line), "{line} in\n{text}");
        }
        assert!(
            text.contains("age = { bins = [40.0], missing = \"category\" }\n"),
            "{text}"
        );
        // The ridge of the metric is a number now; everything else is as it was.
        let (mut again, _) = Study::parse(&text, "short.toml").unwrap();
        let crate::Method::Consensus { metric_ridge, .. } = &mut again.algorithm.method else {
            panic!("{:?}", again.algorithm)
        };
        assert!(matches!(metric_ridge, crate::algorithm::AutoNumber::Given(ridge) if *ridge > 0.0));
        *metric_ridge = crate::algorithm::AutoNumber::Auto;
        assert_eq!(again.canonical(), study.canonical());
    }

    #[test]
    fn odd_names_are_quoted() {
        let odd = "[data]\nbuiltin = \"clinic\"\nlabel = \"readmitted\"\npositive = \"yes\"\n[data.numeric]\n\"a b.\\\"c\\\"\" = [18, 95]\n\
                   [network]\nnodes = 2\nedges = [[0, 1]]\n[problem]\nweight = 1\nridge = 1\n\
                   [algorithm]\nname = \"admm\"\niterations = 2\npenalty = { start = 1.0, growth = 1.1 }\n";
        let (study, _) = Study::parse(odd, "odd.toml").unwrap();
        let (again, _) = Study::parse(&study.to_toml(), "odd.toml").unwrap();
        assert_eq!(again.canonical(), study.canonical());
    }
}
