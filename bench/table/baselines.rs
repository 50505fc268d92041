//! What a user waits for beside the study: the baselines that `radmm run` reports, at five thousand parties.

use radmm_bench::report::{Found, Ratio, Target, duration, thousands};
use radmm_lab::Experiment;

use crate::adult::Adult;
use crate::clock::median_within;

const PARTIES: u32 = 5_000;
const RUNS: usize = 3;
const PATIENCE: f64 = 10.0;

/// All sections but `[data]`: the study's own work is small, so that baselines that take long show.
fn sections() -> String {
    format!(
        "[network]\nnodes = {PARTIES}\ntopology = \"random-regular\"\ndegree = 4\nseed = 1\n\
         [algorithm]\nname = \"r-admm\"\niterations = 4\n\
         [privacy]\nepsilon = 5\ndelta = 1e-5\n[run]\nseed = 1\n"
    )
}

/// Measures all of `radmm run` against the study alone.
pub fn whole_run() -> Found {
    let study = Adult::builtin(&sections());
    let rows = Experiment::prepare(study.clone(), "".as_ref()).unwrap();
    let experiment = || rows.on_same_rows(study.clone()).unwrap();
    let run = |experiment: Experiment| drop(experiment.run(None, &|_| ()).unwrap());
    let alone = median_within(RUNS, PATIENCE, || run(experiment().without_baselines()));
    let whole = median_within(RUNS, PATIENCE, || run(experiment()));
    Found {
        ratios: vec![Ratio {
            work: format!(
                "`radmm run` against its study alone (`--no-baselines`), R-ADMM on Adult, {} parties",
                thousands(PARTIES as usize)
            ),
            ours: duration(whole),
            other: format!("{}, the study alone", duration(alone)),
            ratio: whole / alone,
            target: Target::AtMost(4.0),
        }],
        ..Found::default()
    }
}
