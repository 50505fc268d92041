//! A small study with its rows.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs;

use tempfile::TempDir;

/// A small study with noise.
pub const STUDY: &str = r#"
name = "small"
[data]
path = "rows.csv"
label = "outcome"
positive = "yes"
intercept = true
[data.numeric]
age = [0, 90]
[data.categorical]
sex = ["f", "m"]
[network]
nodes = 3
topology = "ring"
[problem]
weight = 4.0
ridge = 0.1
[algorithm]
name = "r-admm"
iterations = 10
penalty = 0.5
damping = 1.0
[privacy]
mechanism = "objective"
rate = 2.0
[run]
seed = 1
"#;

/// Returns sixty rows, and one with a missing field.
pub fn rows() -> String {
    let mut text = "age,sex,outcome\n".to_owned();
    for n in 0..60 {
        let age = 20 + (n * 37) % 60;
        let sex = if n % 3 == 0 { "f" } else { "m" };
        let outcome = if age + (n * 7) % 20 > 55 { "yes" } else { "no" };
        text += &format!("{age},{sex},{outcome}\n");
    }
    text + "?,f,no\n"
}

/// Returns a folder with a study and its rows.
pub fn folder(study: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("study.toml"), study).unwrap();
    fs::write(folder.path().join("rows.csv"), rows()).unwrap();
    folder
}
