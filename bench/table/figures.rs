//! How long the paper takes to be reproduced.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::clock::timed;
use radmm_bench::report::{Found, Ratio, Target, duration};

/// `radmm reproduce all`, ten runs a setting, on all cores.
pub fn reproduce() -> Found {
    let out = super::target().join("bench-data/reproduced");
    let mut command = Command::new(binary());
    command
        .args(["reproduce", "all", "--quiet", "--out"])
        .arg(&out);
    let (seconds, status) = timed(|| command.stdout(Stdio::null()).status().unwrap());
    assert!(status.success(), "radmm reproduce: {status}");
    Found {
        ratios: vec![Ratio {
            work: "`radmm reproduce all`".to_owned(),
            ours: duration(seconds),
            other: "two minutes".to_owned(),
            ratio: seconds / 120.0,
            target: Target::AtMost(1.0),
        }],
        ..Found::default()
    }
}

/// The program, built as users build it; or as this one is, where that is for a first look.
pub fn binary() -> std::path::PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let this = std::env::current_exe().unwrap();
    let (folder, how) = match this.starts_with(super::target().join("debug")) {
        true => ("debug", "dev"),
        false => ("release", "release"),
    };
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--profile", how, "--bin", "radmm"])
        .current_dir(workspace)
        .status()
        .unwrap();
    assert!(built.success(), "radmm could not be built");
    super::target().join(folder).join("radmm")
}
