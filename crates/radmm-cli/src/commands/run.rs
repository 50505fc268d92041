//! `radmm run`: runs a study in simulation.

use std::path::{Path, PathBuf};

use radmm::curator::RowMemory;
use radmm_data::row_memory;
use radmm_lab::report;
use radmm_lab::{Experiment, MeanModels, Outcome, PrivacyStatement, ResultFile, final_model};
use radmm_study::{RowSource, TestRows};

use crate::args::RunArgs;
use crate::error::CommandError;
use crate::input::load;
use crate::input::relative_path::relative_to;
use crate::output::progress::Progress;
use crate::output::{files, stderr, tables};

/// The area under the ROC curve above which a column probably gives the label away.
const GIVEN_AWAY: f64 = 0.9995;

pub(crate) fn run(args: &RunArgs) -> Result<(), CommandError> {
    let quiet = args.work.quiet;
    let study = load::study(args.study.as_deref(), &args.sweep.overrides(), quiet)?;
    if let Some(out) = &args.out {
        files::check_folder(out)?;
        files::check_other_results(out, &study.study, "--out")?;
    }
    let pool = args.work.thread_pool()?;
    let memory = memory(args, &study.source.folder)?;
    let mut experiment = study.experiment_within(memory.as_ref())?;
    if args.no_baselines {
        experiment = experiment.without_baselines();
    }
    if args.out.is_none() {
        // The terminal shows the course of the first repetition; only a report shows all.
        experiment = experiment.with_mean_models(MeanModels::First);
    }
    let drowned = pool.install(|| experiment.noise_warning());
    let drowned =
        drowned.map_err(|cause| CommandError::unattainable_budget(study.name(), cause))?;
    stderr::warning(drowned.as_ref(), quiet);
    let progress = Progress::new(experiment.progress_steps(), quiet);
    let outcome =
        pool.install(|| experiment.run(args.limit, &|snapshot| progress.step(snapshot)))?;
    progress.done();
    stderr::notes(suspicion(&outcome), quiet);
    write_and_print(args, &study.source.folder, &experiment, &outcome)?;
    let mut repetitions = outcome.repetitions.iter();
    match repetitions.find_map(|repetition| repetition.stopped.clone()) {
        Some(reason) => Err(CommandError::StoppedEarly(reason)),
        None => Ok(()),
    }
}

/// Returns the memory for encoded rows, if it is limited.
fn memory(args: &RunArgs, folder: &Path) -> Result<Option<RowMemory>, CommandError> {
    let Some(bytes) = args.memory else {
        return Ok(None);
    };
    let folder = match &args.scratch {
        Some(scratch) => scratch,
        None if folder.as_os_str().is_empty() => Path::new("."),
        None => folder,
    };
    let memory = row_memory(bytes, folder);
    memory.map(Some).map_err(|cause| CommandError::Scratch {
        folder: folder.to_owned(),
        cause,
    })
}

/// Returns a note about columns that tell the label with certainty.
fn suspicion(outcome: &Outcome) -> Option<&'static str> {
    let auc = outcome.centralised_held_out.as_ref()?.auc;
    (auc > GIVEN_AWAY).then_some(
        "without noise the columns tell the label with certainty: was each of them known before the outcome was?",
    )
}

/// Returns the study with everything that rules chose, to be kept beside its result: its rows are named from there.
fn chosen_study(folder: &Path, out: &Path, experiment: &Experiment) -> String {
    let mut study = experiment.study().clone();
    let moved = |path: &mut String| {
        *path = relative_to(out, &folder.join(&path)).display().to_string();
    };
    if let RowSource::File(path) = &mut study.data.source {
        moved(path);
    }
    if let Some(TestRows::File { path, .. }) = &mut study.data.test {
        moved(path);
    }
    study.to_toml_with(&experiment.instance().choices())
}

fn write_and_print(
    args: &RunArgs,
    folder: &Path,
    experiment: &Experiment,
    outcome: &Outcome,
) -> Result<(), CommandError> {
    if let Some(out) = &args.out {
        for path in write_results(out, folder, experiment, outcome)? {
            stderr::wrote(&path, args.work.quiet);
        }
    }
    match args.json {
        true => {
            let result = ResultFile::new(experiment, outcome);
            files::print_with(|stdout| result.write_json(stdout))
        }
        false => files::print(&tables::outcome(experiment, outcome)),
    }
}

/// Writes the files of a result into the folder `out`, and returns their paths. `folder` is that of the study.
pub(crate) fn write_results(
    out: &Path,
    folder: &Path,
    experiment: &Experiment,
    outcome: &Outcome,
) -> Result<Vec<PathBuf>, CommandError> {
    files::create_folder(out)?;
    let result = out.join("result.json");
    files::write_with(&result, |file| {
        ResultFile::new(experiment, outcome).write_json(file)
    })?;
    let mut written = vec![result];
    let report = report::run_page(experiment, outcome).to_html();
    let statement = PrivacyStatement::new(experiment, outcome).to_json();
    let mut texts = vec![
        ("report.html", report),
        ("privacy-statement.json", statement),
        ("study.toml", chosen_study(folder, out, experiment)),
    ];
    // A run that stopped early has no model.
    let model = final_model(experiment.study(), &outcome.repetitions[0]);
    texts.extend(model.map(|model| ("model.json", model.to_json())));
    for (name, text) in texts {
        let path = out.join(name);
        files::write_with(&path, |file| file.write_all(text.as_bytes()))?;
        written.push(path);
    }
    Ok(written)
}
