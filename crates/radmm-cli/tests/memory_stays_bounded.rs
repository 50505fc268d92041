//! A long run needs hardly more memory and no more file handles at its end than at its beginning.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/party_processes.rs"]
mod party_processes;
mod support;

use std::fmt::Write;
use std::fs;

use party_processes::PartyProcesses;

const ITERATIONS: u64 = 10_000;

const STUDY: &str = r#"
name = "long"
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

/// Returns forty rows, eight for each party.
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

/// The resources of a process.
#[derive(Clone, Copy, Debug)]
struct Resources {
    /// Resident memory, in bytes.
    memory: u64,
    /// The room for file handles, which doubles when it is too small. Only the process itself may count them.
    file_handles: u64,
    /// The size of its state file, in bytes.
    state: u64,
}

fn resources(parties: &PartyProcesses, party: usize) -> Resources {
    Resources {
        memory: parties.memory(party).unwrap(),
        file_handles: parties.process_status(party, "FDSize").unwrap(),
        state: fs::metadata(parties.state_file(party)).unwrap().len(),
    }
}

#[test]
fn ten_thousand_iterations_need_hardly_more_memory_than_a_thousand() {
    let mut parties = PartyProcesses::with_rows(STUDY, &rows());
    parties.start_all();
    // Not the last iteration, since a party may exit at any time after it.
    let [early, late] = [ITERATIONS / 10, ITERATIONS - 20].map(|iteration| {
        let after = |party: usize| {
            parties.wait_until("an iteration is done", |parties| {
                parties.iteration(party) >= iteration
            });
            resources(&parties, party)
        };
        (0..5).map(after).collect::<Vec<Resources>>()
    });
    for (party, (early, late)) in early.iter().zip(&late).enumerate() {
        let grown = (late.state - early.state) / (ITERATIONS - 20 - ITERATIONS / 10);
        println!(
            "{}: {early:?}, then {late:?}: {grown} bytes of state an iteration",
            parties.name(party)
        );
        // The state file grows, since it keeps every message. The offset of each and every charge stay in memory: a hundred
        // bytes an iteration, a megabyte in all.
        assert!(
            late.memory <= early.memory + (2 << 20),
            "{early:?}, then {late:?}"
        );
        assert!(
            late.file_handles <= early.file_handles,
            "{early:?}, then {late:?}"
        );
    }
    parties.assert_end_as_simulated();
}
