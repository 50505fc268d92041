//! The layers of the crate, as far as the compiler does not see to them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "purity is asked of the core, not of its tests"
)]

use std::fs;
use std::path::Path;

#[test]
fn nothing_public_imports_anything_private() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/public");
    let files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(files.len() >= 8, "the folder has moved");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            assert!(
                !code.contains("private") && !code.contains("curator"),
                "{}:{}: {line}",
                file.display(),
                number + 1
            );
        }
    }
}
