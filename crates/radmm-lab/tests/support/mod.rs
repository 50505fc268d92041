//! Studies that differ from a test's own in a few lines.

use radmm_study::Study;

/// Parses a study with parts of its text replaced; each must occur.
pub fn study(text: &str, changes: &[(&str, &str)]) -> Study {
    let mut text = text.to_owned();
    for (old, new) in changes {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    Study::parse(&text, "study.toml")
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .0
}
