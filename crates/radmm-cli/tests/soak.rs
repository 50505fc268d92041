//! A long run takes hardly more memory and no more file handles at its end than at its beginning.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/parties.rs"]
mod parties;
mod support;

use std::fmt::Write;
use std::fs;

use parties::{Parties, simulated};

const ITERATIONS: u64 = 10_000;

const STUDY: &str = r#"
name = "soak"
[data]
path = "rows.csv"
label = "label"
positive = "1"
[data.numeric]
x = [0, 1]
y = [0, 1]
[network]
nodes = 5
topology = "ring"
[problem]
weight = 10
ridge = 0.5
[algorithm]
name = "r-admm"
iterations = 10000
penalty = 3
damping = 1
[privacy]
mechanism = "objective"
noise = "gaussian"
sigma = 500
delta = 1e-4
[run]
repetitions = 1
seed = 11
"#;

/// Forty rows, eight a party.
fn rows() -> String {
    let mut rows = "x,y,label\n".to_owned();
    for i in 0..40 {
        let (x, y) = (i * 7 % 40, i * 11 % 40);
        let label = u32::from(x + y > 40);
        writeln!(
            rows,
            "{},{},{label}",
            f64::from(x) / 40.0,
            f64::from(y) / 40.0
        )
        .unwrap();
    }
    rows
}

/// What a process takes.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// Memory, in kB.
    memory: u64,
    handles: usize,
    /// Bytes of its state.
    state: u64,
}

fn taken(parties: &Parties, party: usize) -> Taken {
    let process = format!("/proc/{}", parties.pid(party));
    let status = fs::read_to_string(format!("{process}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.unwrap().trim().trim_end_matches(" kB");
    Taken {
        memory: resident.parse().unwrap(),
        handles: fs::read_dir(format!("{process}/fd")).unwrap().count(),
        state: fs::metadata(parties.state_file(party)).unwrap().len(),
    }
}

#[test]
fn ten_thousand_iterations_take_hardly_more_than_a_thousand() {
    let mut parties = Parties::of(STUDY);
    fs::write(parties.folder().join("rows.csv"), rows()).unwrap();
    parties.start_all();
    // The last one is told as "finished", and then a party may be gone at any time.
    let [early, late] = [ITERATIONS / 10, ITERATIONS - 20].map(|iteration| {
        let of = |party: usize| {
            parties.until("an iteration is done", |parties| {
                parties.iteration(party) >= iteration
            });
            taken(&parties, party)
        };
        (0..5).map(of).collect::<Vec<Taken>>()
    });
    for (party, (early, late)) in early.iter().zip(&late).enumerate() {
        let grown = (late.state - early.state) / (ITERATIONS - 20 - ITERATIONS / 10);
        println!(
            "{}: {early:?}, then {late:?}: {grown} bytes of state an iteration",
            parties.name(party)
        );
        // The file grows, since it keeps every message. Of each, where it is stays in memory, and every charge does: a hundred
        // bytes an iteration, which is a megabyte.
        assert!(
            late.memory <= early.memory + 2048,
            "{early:?}, then {late:?}"
        );
        assert!(late.handles <= early.handles, "{early:?}, then {late:?}");
    }
    parties.wait_all();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rows.csv"), rows()).unwrap();
    assert_eq!(parties.weights(), simulated(folder.path(), STUDY));
}
