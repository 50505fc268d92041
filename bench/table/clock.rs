//! Times and memory, of this process and of its children.

use std::fs;
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Seconds that something takes, and what comes of it.
pub fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let clock = Instant::now();
    let result = black_box(work());
    (clock.elapsed().as_secs_f64(), result)
}

/// The middle of an odd number of measurements, the upper of the two in the middle of an even one.
pub fn median(mut measured: Vec<f64>) -> f64 {
    measured.sort_by(f64::total_cmp);
    measured[measured.len() / 2]
}

/// Median seconds of up to so many runs; none is started once those before took longer than `patience` together.
pub fn median_within(runs: usize, patience: f64, mut work: impl FnMut()) -> f64 {
    let mut measured = vec![timed(&mut work).0];
    while measured.len() < runs && measured.iter().sum::<f64>() < patience {
        measured.push(timed(&mut work).0);
    }
    median(measured)
}

/// Median seconds of two works, done in turns: what slows the machine for a while slows both.
pub fn in_turns(turns: usize, mut one: impl FnMut(), mut other: impl FnMut()) -> (f64, f64) {
    let (mut ones, mut others) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        ones.push(timed(&mut one).0);
        others.push(timed(&mut other).0);
    }
    (median(ones), median(others))
}

/// Runs something on a pool of so many threads.
pub fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(work)
}

/// This program in a process of its own, for a peak of memory is that of a process: what it prints.
pub fn child(args: &[&str]) -> String {
    let this = std::env::current_exe().unwrap();
    let child = Command::new(this)
        .arg("--child")
        .args(args)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(child.status.success(), "{args:?}: {}", child.status);
    String::from_utf8(child.stdout).unwrap()
}

/// The most memory that this process ever held in bytes, where the operating system tells.
pub fn peak() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024.0)
}
