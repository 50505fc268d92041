//! What it costs to run a private study ten times rather than once, on all cores.

use radmm_lab::Experiment;
use radmm_study::Study;

use crate::clock::{in_turns, timed};
use radmm_bench::report::{Detail, Found, Ratio, Target, duration, times};

const STUDY: &str = include_str!("../../studies/adult-admm.toml");

/// Ten repetitions against one.
pub fn ten_against_one() -> Found {
    let [one, ten] = [1, 10].map(|repetitions| {
        let (mut study, _) = Study::parse(STUDY, "adult-admm.toml").unwrap();
        study.run.repetitions = repetitions;
        Experiment::prepare(study, "".as_ref()).unwrap()
    });
    let repeat = |experiment: &Experiment| {
        let noise = experiment.noise().unwrap();
        drop(experiment.repeat(&noise, None, &|_| ()).unwrap());
    };
    let (once, often) = in_turns(5, || repeat(&one), || repeat(&ten));
    let whole = |experiment: &Experiment| timed(|| experiment.run(None, &|_| ()).unwrap()).0;
    let (run_once, run_often) = (whole(&one), whole(&ten));
    let line = |what: &str, once: f64, often: f64| {
        vec![
            what.to_owned(),
            duration(once),
            duration(often),
            times(often / once),
        ]
    };
    Found {
        ratios: vec![Ratio {
            work: "ten repetitions of studies/adult-admm.toml against one".to_owned(),
            ours: duration(often),
            other: format!("{}, one", duration(once)),
            ratio: often / once,
            target: Target::AtMost(6.0),
        }],
        details: vec![Detail {
            title: "Ten repetitions".to_owned(),
            head: vec!["work", "one", "ten", "ratio"],
            lines: vec![
                line("the study alone", once, often),
                line(
                    "all of `radmm run`, with the baselines that it reports",
                    run_once,
                    run_often,
                ),
            ],
            notes: vec!["All cores; reading rows is not counted.".to_owned()],
        }],
        ..Found::default()
    }
}
