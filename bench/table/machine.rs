//! Where and when it was measured, and with what.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;

/// The machine, the compiler and the day, and whether others wanted the cores, in words.
pub fn words(versions: &[(String, String)]) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut with = vec![said("rustc", &["--version"])];
    with.extend(
        versions
            .iter()
            .map(|(name, version)| format!("{name} {version}")),
    );
    let busy = busy().map_or(String::new(), |busy| format!(" {busy}"));
    format!(
        "{} cores of {}, {:.0} GB, {}; {}. Measured on {}.{busy}",
        cores,
        from_proc("/proc/cpuinfo", "model name"),
        memory_gb(),
        std::env::consts::OS,
        with.join(", "),
        said("date", &["-u", "+%Y-%m-%d"]),
    )
}

/// Returns a warning if others wanted the cores when this was first called, before any measurement.
pub fn busy() -> Option<String> {
    static LOAD: OnceLock<Option<f64>> = OnceLock::new();
    let load = (*LOAD.get_or_init(load))?;
    (load > 0.5).then(|| {
        format!("The machine was busy with other work beforehand (load {load:.1}): the ratio of threads is too low, and the other ratios are less certain.")
    })
}

fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// The version of a crate that was built.
pub fn locked(name: &str) -> String {
    let lock = include_str!("../../Cargo.lock");
    let entry = format!("name = \"{name}\"\nversion = \"");
    let rest = lock.split_once(&entry).map_or("?", |(_, rest)| rest);
    rest.split('"').next().unwrap_or("?").to_owned()
}

fn memory_gb() -> f64 {
    let total = from_proc("/proc/meminfo", "MemTotal");
    let kilobytes = total
        .split(' ')
        .next()
        .and_then(|number| number.parse::<f64>().ok());
    kilobytes.map_or(0.0, |kilobytes| kilobytes * 1024.0 / 1e9)
}

fn from_proc(file: &str, key: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or("an unknown kind".to_owned(), |(_, value)| {
        value.trim().to_owned()
    })
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map_or("?".to_owned(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
}
