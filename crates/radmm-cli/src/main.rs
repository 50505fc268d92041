//! The binary `radmm`.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Without a path of its own, a program is found by its name.
    let program = env::current_exe().map_or_else(|_| OsString::from("radmm"), Into::into);
    ExitCode::from(radmm_cli::run(vec![program], env::args_os().skip(1)))
}
