//! The layers of the crate, as far as the compiler does not see to them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "purity is asked of the core, not of its tests"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// Modules that may import `curator`, by the first part of their path below `src`.
const SEE_ROWS: [&str; 5] = ["curator", "node.rs", "sim", "convergence", "lib.rs"];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(sources(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

/// The lines of code, not of comments, that name `module`.
fn mentions(text: &str, module: &str) -> Vec<usize> {
    let names = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| word == module)
    };
    let numbered = text.lines().enumerate();
    numbered
        .filter(|(_, line)| names(line))
        .map(|(n, _)| n + 1)
        .collect()
}

/// Every place below `src` that imports the rows' folder and must not.
fn violations(src: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for file in sources(src) {
        let below = file.strip_prefix(src).unwrap();
        let top = below.components().next().unwrap().as_os_str();
        if SEE_ROWS.iter().any(|allowed| *allowed == top) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        // Unit tests of a public layer may bring rows.
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let is_test = file.file_stem().is_some_and(|stem| stem == "tests");
        if !is_test {
            let lines = mentions(text, "curator");
            found.extend(lines.iter().map(|n| format!("{}:{n}", below.display())));
        }
    }
    found
}

#[test]
fn only_the_node_the_simulator_and_the_rate_import_the_curator() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert!(sources(&src).len() >= 50, "the sources have moved");
    assert_eq!(violations(&src), [""; 0]);
}

#[test]
fn a_planted_import_is_found_in_any_folder_however_deep() {
    let copy = std::env::temp_dir().join(format!("radmm-layers-{}", std::process::id()));
    let deep = copy.join("algorithm/deeper/still");
    fs::create_dir_all(&deep).unwrap();
    fs::write(
        copy.join("algorithm/mod.rs"),
        "// curator\nuse crate::graph;\n",
    )
    .unwrap();
    fs::write(
        deep.join("planted.rs"),
        "\nuse crate::{graph, curator::Shard};\n",
    )
    .unwrap();
    fs::create_dir_all(copy.join("curator")).unwrap();
    fs::write(copy.join("curator/mod.rs"), "use crate::curator::rows;\n").unwrap();
    let found = violations(&copy);
    fs::remove_dir_all(&copy).unwrap();
    assert_eq!(found, ["algorithm/deeper/still/planted.rs:2"]);
}
