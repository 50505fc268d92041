//! The commands of a page of docs/, as a reader would type them.

use std::path::Path;
use std::process::{Command, Output};

/// Returns all commands of a page, in order.
pub fn commands(page: &str) -> String {
    let mut inside = false;
    let mut script = "set -e\n".to_owned();
    for line in page.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            _ if inside => script += &format!("{line}\n"),
            _ => {}
        }
    }
    // Word for word except the ports, which another program may use; below the range that the system assigns.
    let first = 12_000 + std::process::id() % 6_000 * 3;
    for k in 0..3 {
        script = script.replace(&format!("741{}", k + 1), &(first + k).to_string());
    }
    script
}

/// Runs a script in a folder, with `radmm` on the path.
#[allow(dead_code, reason = "some pages need variables")]
pub fn shell(folder: &Path, script: &str) -> Output {
    shell_with(folder, script, &[])
}

/// Runs a script in a folder, with `radmm` on the path and these variables.
#[allow(dead_code, reason = "only some pages need variables")]
pub fn shell_with(folder: &Path, script: &str, variables: &[(&str, &str)]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_radmm"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    Command::new("bash")
        .args(["-c", script])
        .current_dir(folder)
        .env("PATH", path)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}
