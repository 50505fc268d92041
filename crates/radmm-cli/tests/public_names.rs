//! No two public types of the workspace share a name.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/sources.rs"]
mod sources;

use std::collections::BTreeMap;

/// Names that are still defined more than once. It may only shrink.
const KNOWN_DUPLICATES: &[&str] = &[];

/// Returns the name that a line defines as a public type. Aliases, associated types and re-exports are not definitions.
fn defined_type(line: &str) -> Option<&str> {
    let item = line.trim_start().strip_prefix("pub ")?;
    let item = item.strip_prefix("unsafe ").unwrap_or(item);
    let keywords = ["struct ", "enum ", "trait ", "union "];
    let name = keywords
        .iter()
        .find_map(|keyword| item.strip_prefix(keyword))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

#[test]
fn every_public_type_name_is_defined_once() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in sources::all() {
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(name) = defined_type(line) {
                let place = format!("{path}:{number}");
                places.entry(name.to_owned()).or_default().push(place);
            }
        }
    }
    assert!(places.len() > 100, "the sources were not found");
    places.retain(|_, places| places.len() > 1);
    let duplicates: Vec<&String> = places.keys().collect();
    assert!(
        duplicates == KNOWN_DUPLICATES,
        "KNOWN_DUPLICATES must be {duplicates:?}; defined in {places:#?}"
    );
}
