//! What others would use, in Python: pinned versions in virtual environments below `target/`, made when first needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A set of pinned packages that go together.
#[derive(Clone, Copy)]
pub enum Venv {
    /// NumPy, SciPy and scikit-learn.
    Plain,
    /// diffprivlib, and a scikit-learn that it works with.
    Private,
}

impl Venv {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Private => "private",
        }
    }

    fn requirements(self) -> &'static str {
        match self {
            Self::Plain => "requirements.txt",
            Self::Private => "requirements-private.txt",
        }
    }
}

/// Runs a script of `bench/peers` on one thread, with what it is asked as JSON; what it answers, or why it cannot.
pub fn ask(venv: Venv, script: &str, wanted: &Value) -> Result<Value, String> {
    let python = ready(venv)?;
    let mut command = Command::new(python);
    command.arg(scripts().join(script)).arg(wanted.to_string());
    // The folder of the scripts stays as it is.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    for threads in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
        command.env(threads, "1");
    }
    let printed = said(&mut command, script)?;
    serde_json::from_slice(&printed).map_err(|error| format!("{script}: {error}"))
}

/// The versions that a script answered with.
pub fn versions(answer: &Value) -> Vec<(String, String)> {
    let named = answer["versions"].as_object().into_iter().flatten();
    named
        .map(|(name, version)| (name.clone(), version.as_str().unwrap_or("?").to_owned()))
        .collect()
}

/// The interpreter of a virtual environment whose packages are those of its requirements.
fn ready(venv: Venv) -> Result<PathBuf, String> {
    let folder = super::target().join("bench-venv").join(venv.name());
    let requirements = scripts().join(venv.requirements());
    let wanted = fs::read_to_string(&requirements)
        .map_err(|error| format!("{}: {error}", requirements.display()))?;
    let (stamp, python) = (folder.join("installed.txt"), folder.join("bin/python"));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    eprintln!("installing {}", venv.requirements());
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(&folder);
    said(&mut make, "python3 with venv is needed")?;
    let mut install = Command::new(&python);
    install
        .args(["-m", "pip", "install", "--quiet", "--requirement"])
        .arg(&requirements);
    said(&mut install, "pip install")?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(python)
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../peers")
}

fn said(command: &mut Command, name: &str) -> Result<Vec<u8>, String> {
    match command.output() {
        Err(error) => Err(format!("{name}: {error}")),
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => {
            // Errors come last; where nothing is said on stderr, the reason is the first thing on stdout.
            let stderr = String::from_utf8_lossy(&output.stderr);
            let stdout = String::from_utf8_lossy(&output.stdout);
            let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
            let reason = last.or(stdout.lines().next()).unwrap_or("failed");
            Err(format!("{name}: {}", reason.trim()))
        }
    }
}
