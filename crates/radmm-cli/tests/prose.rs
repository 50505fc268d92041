//! Doc comments open with a complete statement, and nothing "is none". The remaining exceptions may only become fewer.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/sources.rs"]
mod sources;

use std::collections::BTreeMap;

/// Words that open a headless clause.
const HEADLESS: &[&str] = &[
    "Of", "What", "So", "Who", "Whoever", "Whatever", "That", "As", "Where", "Before", "After",
    "If", "How",
];

/// Noun phrases that name a duration or a count, though they open with such a word.
const ALLOWED: &[&str] = &["How long ", "How many "];

/// Phrases of invalid values that belong to no text.
const FORBIDDEN: &[&str] = &["is none;", "that is none"];

/// The exceptions left in each crate.
const REMAINING: &[(&str, usize)] = &[];

/// Returns the text of a doc comment's line.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or(line.strip_prefix("//!"))?;
    (!text.starts_with('/')).then(|| text.trim_start())
}

fn is_headless(opening: &str) -> bool {
    let word = opening.split(|c: char| !c.is_alphabetic()).next();
    let is_opening = |headless: &&str| word.is_some_and(|word| word.eq_ignore_ascii_case(headless));
    HEADLESS.iter().any(is_opening) && !ALLOWED.iter().any(|phrase| opening.starts_with(phrase))
}

/// Returns the places of one file that break a rule.
fn faults(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut inside_doc = false;
    for (number, line) in (1..).zip(text.lines()) {
        let doc = doc_text(line);
        let headless = !inside_doc && doc.is_some_and(is_headless);
        if headless || FORBIDDEN.iter().any(|phrase| line.contains(phrase)) {
            faults.push(format!("{path}:{number}: {}", line.trim()));
        }
        inside_doc = doc.is_some();
    }
    faults
}

#[test]
fn headless_openings_and_forbidden_phrases_are_found() {
    for line in [
        "/// Of a node.",
        "    //! What is sent",
        "/// as many as",
        "/// How it works",
    ] {
        assert_eq!(faults("file", line).len(), 1, "{line}");
    }
    for line in [
        "/// Offers a node.",
        "/// How long to wait.",
        "// Of no doc",
        "/// A node\n/// of a ring",
    ] {
        assert_eq!(faults("file", line).len(), 0, "{line}");
    }
    let said = format!("let text = \"the ring {}\"", FORBIDDEN[0]);
    assert_eq!(faults("file", &said).len(), 1);
}

#[test]
fn doc_comments_open_with_a_complete_statement() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in sources::all() {
        let name = path.split(['/', '\\']).next().unwrap_or_default();
        let places = found.entry(name.to_owned()).or_default();
        places.extend(faults(&path, &text));
    }
    assert!(found.len() > 4, "the sources were not found");
    found.retain(|_, places| !places.is_empty());
    let counts: Vec<(&str, usize)> = found
        .iter()
        .map(|(name, places)| (name.as_str(), places.len()))
        .collect();
    assert!(
        counts == REMAINING,
        "REMAINING must be {counts:?}, and no count may grow; found in {found:#?}"
    );
}
