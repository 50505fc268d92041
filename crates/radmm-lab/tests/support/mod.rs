//! Studies that differ from a file's own in a few lines.

use radmm_study::Study;

/// The study of a text with parts of it replaced; each must be there.
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
