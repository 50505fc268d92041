//! `radmm run`.

use std::path::PathBuf;

use radmm_lab::report;
use radmm_lab::{Experiment, Outcome, ResultFile};
use radmm_study::Study;

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::files::{self, StudyText};
use crate::notes;
use crate::progress::Progress;
use crate::render;

const BUILT_IN: &str = include_str!("../../../studies/clinic.toml");

pub(crate) fn run(typed: RunArgs) -> Result<(), Failure> {
    let StudyText { text, name, folder } = match &typed.study {
        Some(path) => StudyText::read(path)?,
        None => StudyText {
            text: BUILT_IN.to_owned(),
            name: "clinic.toml".to_owned(),
            folder: PathBuf::new(),
        },
    };
    let (study, notes) = Study::parse(&text, &name)?;
    if !typed.work.quiet {
        notes.iter().for_each(|note| eprintln!("note: {note}"));
    }
    if let Some(out) = &typed.out {
        files::make_folder(out)?;
    }
    let pool = typed.work.pool()?;
    let experiment =
        Experiment::prepare(study, &folder).map_err(|error| Failure::of_study(&name, error))?;
    if !typed.work.quiet {
        notes::on_rows(&experiment)
            .iter()
            .for_each(|note| eprintln!("note: {note}"));
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
    let json = ResultFile::new(experiment, outcome).to_json();
    if let Some(out) = &typed.out {
        let report = report::of_run(experiment, outcome).to_html();
        for (name, text) in [("result.json", &json), ("report.html", &report)] {
            let path = out.join(name);
            files::write_whole(&path, text)?;
            if !typed.work.quiet {
                eprintln!("wrote {}", path.display());
            }
        }
    }
    match typed.json {
        true => files::print(&json),
        false => files::print(&render::outcome(experiment, outcome)),
    }
}
