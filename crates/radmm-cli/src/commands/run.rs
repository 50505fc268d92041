//! `radmm run`.

use std::path::Path;

use radmm_lab::report;
use radmm_lab::{Experiment, Outcome, PrivacyStatement, ResultFile};

use crate::args::RunArgs;
use crate::error::Failure;
use crate::input::load as prepare;
use crate::output::files;
use crate::output::progress::Progress;
use crate::output::stderr::message;
use crate::output::tables as render;

pub(crate) fn run(typed: RunArgs) -> Result<(), Failure> {
    let study = prepare::study(typed.study.as_deref(), typed.work.quiet)?;
    if let Some(out) = &typed.out {
        files::make_folder(out)?;
    }
    let pool = typed.work.pool()?;
    let experiment = study.rows()?;
    let drowned = pool.install(|| experiment.drowned());
    if let Some(drowned) = drowned.map_err(|cause| Failure::too_dear(study.name(), cause))?
        && !typed.work.quiet
    {
        message!("warning: {drowned}");
    }
    let progress = Progress::new(experiment.steps(), typed.work.quiet);
    let outcome =
        pool.install(|| experiment.run(typed.limit, &|snapshot| progress.step(snapshot)))?;
    progress.done();
    tell(&typed, &experiment, &outcome)?;
    match outcome
        .repetitions
        .iter()
        .find_map(|run| run.stopped.clone())
    {
        Some(reason) => Err(Failure::Stopped(reason)),
        None => Ok(()),
    }
}

fn tell(typed: &RunArgs, experiment: &Experiment, outcome: &Outcome) -> Result<(), Failure> {
    let result = ResultFile::new(experiment, outcome);
    if let Some(out) = &typed.out {
        let wrote = |path: &Path| {
            if !typed.work.quiet {
                message!("wrote {}", path.display());
            }
        };
        let path = out.join("result.json");
        files::write_whole_by(&path, |file| result.write_json(file))?;
        wrote(&path);
        let report = report::of_run(experiment, outcome).to_html();
        let statement = PrivacyStatement::new(experiment, outcome).to_json();
        for (name, text) in [
            ("report.html", &report),
            ("privacy-statement.json", &statement),
        ] {
            let path = out.join(name);
            files::write_whole(&path, text)?;
            wrote(&path);
        }
    }
    match typed.json {
        true => files::print_by(|stdout| result.write_json(stdout)),
        false => files::print(&render::outcome(experiment, outcome)),
    }
}
